# tests/test_cpp.py — builds the C++ tests with each preset and runs every CTest entry as one test
# SPDX-License-Identifier: MIT
from __future__ import annotations

import itertools
import json
import platform
import re
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, WARNINGS, Build, Run

UNITS = sorted(path.stem[: -len("_test")] for path in (ROOT / "cpp_tests").glob("*_test.cpp"))


def units(preset: str) -> list[str]:
    """Return which of them a preset builds; compiling all of them five times takes too long."""
    presets = json.loads((ROOT / "CMakePresets.json").read_text(encoding="utf-8"))
    known = {each["name"]: each for each in presets["configurePresets"]}
    at: str | None = preset
    while at is not None:
        found = known[at].get("cacheVariables", {}).get("BURTORCH_TEST_FILTER")
        if found is not None:
            return [name for name in UNITS if re.search(found, name)]
        at = known[at].get("inherits")
    return UNITS


SWITCHES = [
    f"labels{labels}_checks{checks}{exceptions}"
    for labels, checks, exceptions in itertools.product("01", "01", ["", "_no_exceptions"])
] + ["no_rtti", "bare"]

# Lanes without registers, and in those of other instruction sets.
LANES = ["lanes.plain_array"]
if platform.machine() in {"x86_64", "AMD64"}:
    LANES += ["lanes.i386", "lanes.x86_64_v3", "lanes.x86_64_v4"]

PRESETS = ("optimized", "debug", "clang", "asan", "tsan")


def entries(preset: str) -> list[str]:
    """Return the names of the CTest entries to run."""
    found = [f"unit.{name}" for name in units(preset)]
    if preset == "debug":
        found += [*(f"switches.{name}" for name in SWITCHES), "two_units", *LANES]
    if preset == "clang":
        found += ["switches.labels1_checks1", "switches.bare", "two_units"]
    return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "entry" in metafunc.fixturenames:
        assert metafunc.cls is not None
        metafunc.parametrize("entry", entries(metafunc.cls.preset))


def fixed_addresses() -> list[str]:
    """Return a command that fixes addresses, if allowed; old tsan runtimes need that."""
    command = ["setarch", "-R"]
    try:
        return command if subprocess.run([*command, "true"], check=False).returncode == 0 else []
    except OSError:
        return []


def test_every_unit_is_run_by_some_preset() -> None:
    everywhere = PRESETS[:3]  # make test; the sanitizers are `make sanitize`
    assert {name for preset in everywhere for name in units(preset)} == set(UNITS)


class Entries:
    """A class for each preset: its tests run in one worker, which builds the preset once."""

    preset = ""

    def test_entry(self, entry: str, build: Build, ctest: str, run: Run) -> None:
        folder = build(self.preset)
        pattern = "^" + entry.replace(".", "[.]") + "$"
        prefix = fixed_addresses() if self.preset == "tsan" else []
        run([*prefix, ctest, "--output-on-failure", "--no-tests=error", "-R", pattern], cwd=folder)


# These print the same in C++ and in Python, number for number.
TWINS = {"char_mlp", "gpt", "logistic_regression", "per_sample_gradients", "two_moons"}


EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.cpp"))
BENCHMARKS = sorted(path.stem for path in (ROOT / "benchmarks").glob("*.cpp"))


class TestOptimized(Entries):
    preset = "optimized"

    @pytest.mark.parametrize("name", EXAMPLES)
    def test_example_runs(self, name: str, build: Build, run: Run, tmp_path: Path) -> None:
        program = build("optimized") / "examples" / f"burtorch_{name}"
        printed = run([program], cwd=tmp_path)
        assert printed.strip(), "an example should show something"
        if name in TWINS:
            twin = ROOT / "tests" / "data" / "examples" / f"{name}.txt"
            assert printed == twin.read_text(encoding="utf-8")


class TestDebug(Entries):
    preset = "debug"

    def test_no_entry_is_forgotten(self, build: Build, ctest: str, run: Run) -> None:
        listing = json.loads(run([ctest, "--show-only=json-v1"], cwd=build("debug")))
        assert {test["name"] for test in listing["tests"]} == set(entries("debug"))


class TestClang(Entries):
    preset = "clang"

    @pytest.mark.parametrize("name", BENCHMARKS)
    def test_benchmark_is_valid(self, name: str, clang: str, run: Run) -> None:
        source = ROOT / "benchmarks" / f"{name}.cpp"
        run([clang, "-std=c++20", "-fsyntax-only", *WARNINGS, f"-I{ROOT / 'include'}", source])


@pytest.mark.sanitize
class TestAsan(Entries):
    preset = "asan"


@pytest.mark.sanitize
class TestTsan(Entries):
    preset = "tsan"
