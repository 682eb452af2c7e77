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
from conftest import ROOT, Build, Run

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
    LANES += ["lanes.x86_64_v3", "lanes.x86_64_v4"]

# (preset, name of a CTest entry), the longest builds first
PRESETS = ("release", "asan", "debug", "clang", "tsan")
ENTRIES = [(preset, f"unit.{name}") for preset in PRESETS for name in units(preset)]
ENTRIES += [
    (preset, entry)
    for preset in ("debug", "clang")
    for entry in [*(f"switches.{name}" for name in SWITCHES), "two_units", *LANES]
    if preset == "debug" or entry not in {"lanes.plain_array", "lanes.x86_64_v4"}
]
ENTRIES.sort(key=lambda entry: PRESETS.index(entry[0]))


def in_one_worker(preset: str, *values: str) -> object:
    """Return a parameter set for the worker that builds the preset."""
    return pytest.param(*values, marks=pytest.mark.xdist_group(preset))


def fixed_addresses() -> list[str]:
    """Return a command that fixes addresses, if allowed; old tsan runtimes need that."""
    command = ["setarch", "-R"]
    try:
        return command if subprocess.run([*command, "true"], check=False).returncode == 0 else []
    except OSError:
        return []


@pytest.mark.parametrize(
    ("preset", "entry"), [in_one_worker(preset, preset, entry) for preset, entry in ENTRIES]
)
def test_entry(preset: str, entry: str, build: Build, ctest: str, run: Run) -> None:
    folder = build(preset)
    pattern = "^" + entry.replace(".", "[.]") + "$"
    prefix = fixed_addresses() if preset == "tsan" else []
    run([*prefix, ctest, "--output-on-failure", "--no-tests=error", "-R", pattern], cwd=folder)


def test_every_unit_is_run_by_some_preset() -> None:
    assert {name for preset in PRESETS for name in units(preset)} == set(UNITS)


@pytest.mark.xdist_group("debug")
def test_no_entry_is_forgotten(build: Build, ctest: str, run: Run) -> None:
    listing = json.loads(run([ctest, "--show-only=json-v1"], cwd=build("debug")))
    assert {test["name"] for test in listing["tests"]} == {
        entry for preset, entry in ENTRIES if preset == "debug"
    }


@pytest.mark.xdist_group("debug")
def test_every_header_compiles_alone(build: Build) -> None:
    objects = build("debug") / "cpp_tests" / "headers" / "CMakeFiles" / "burtorch_headers_alone.dir"
    headers = [*(ROOT / "include").rglob("*.hpp"), *(ROOT / "include").rglob("*.h")]
    assert len(list(objects.rglob("*.o"))) == len(headers)


# These print the same in C++ and in Python, number for number.
TWINS = {"char_mlp", "gpt", "logistic_regression", "two_moons"}


def example_names() -> list[str]:
    return sorted(path.stem for path in (ROOT / "examples").glob("*.cpp"))


@pytest.mark.parametrize("name", [in_one_worker("release", name) for name in example_names()])
def test_example_runs(name: str, build: Build, run: Run, tmp_path: Path) -> None:
    program = build("release") / "examples" / f"burtorch_{name}"
    printed = run([program], cwd=tmp_path)
    assert printed.strip(), "an example should show something"
    if name in TWINS:
        twin = ROOT / "tests" / "data" / "examples" / f"{name}.txt"
        assert printed == twin.read_text(encoding="utf-8")
