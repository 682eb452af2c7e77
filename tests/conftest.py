# tests/conftest.py — finds the tools, and builds each preset at most once per run
# SPDX-License-Identifier: MIT
from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

import setup  # noqa: E402

# How many processes may compile; workers that run tests side by side share them.
WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
JOBS = str(max(1, int(os.environ.get("BURTORCH_JOBS") or os.cpu_count() or 1) // WORKERS))
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
LISTING = ROOT / "cpp_tests" / "consumer" / "main.cpp"
LISTING_PRINTS = "138.834"

# What to build; "all" where a preset is not named. Checks that are about compiling, not running,
# are made once.
TARGETS = {
    "debug": ["cpp_tests/all"],
    "optimized": ["burtorch_tests", "examples/all"],
    "asan": ["burtorch_tests"],
    "tsan": ["burtorch_tests"],
    "clang": ["burtorch_tests", "switches_labels1_checks1", "switches_bare", "two_units"],
}

Run = Callable[..., str]
Build = Callable[..., Path]


def operations(of: str) -> list[str]:
    """Return the names in Python of the table's operations that take "x", "x, y" or "x₁, …, xₙ"."""
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| `")]
    return [row[1].strip("`") for row in rows if row[2] == of]


def tail(log: str, length: int = 30) -> str:
    """Return the end of a log, and what follows the first error if that is further up."""
    lines = log.strip().splitlines()
    last = max(0, len(lines) - length)
    first = next((n for n, line in enumerate(lines[:last]) if "error:" in line.lower()), last)
    start = lines[first : min(first + length, last)]
    left_out = last - first - len(start)
    gap = [f"... {left_out} lines left out"] if left_out else []
    return "\n".join([*start, *gap, *lines[last:]])


def run_command(
    command: Sequence[object], cwd: Path = ROOT, timeout: float = 1200, **environment: str
) -> str:
    """Run a command, return what it printed, and fail the test with the end of that if it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words,
        cwd=cwd,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
        check=False,
    )
    if done.returncode != 0:
        pytest.fail(
            f"{' '.join(words)}\nended with status {done.returncode}:\n{tail(done.stdout)}",
            pytrace=False,
        )
    return done.stdout


# What takes longest to build is begun first: workers take file after file, and in test_cpp.py class
# after class.
SLOW_FILES = ["test_cpp.py", "test_packaging.py", "test_install.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def place(item: pytest.Item) -> int:
        name = item.path.name
        return SLOW_FILES.index(name) if name in SLOW_FILES else len(SLOW_FILES)

    items.sort(key=place)


@pytest.fixture(scope="session")
def run() -> Run:
    return run_command


@pytest.fixture(scope="session")
def compiler() -> str:
    """The compiler that setup.py would choose."""
    found = setup.find_compiler()
    if found is None:
        pytest.fail(f"please install {setup.WANTED}, or run `make venv`", pytrace=False)
    return found.path


@pytest.fixture(scope="session")
def clang() -> str:
    found = setup.find_compiler(setup.CLANG_NAMES)
    if found is None:
        pytest.skip("no clang++ 16 or newer; `python3 scripts/setup.py --clang` installs one")
    return found.path


def tool(name: str) -> str:
    """Find a tool in the environment that runs the tests, else on the path."""
    beside = Path(sys.executable).parent
    found = shutil.which(name, path=f"{beside}{os.pathsep}{os.environ.get('PATH', '')}")
    if found is None:
        pytest.fail(f"{name} is missing; run `make venv`", pytrace=False)
    return found


@pytest.fixture(scope="session")
def cmake() -> str:
    return tool("cmake")


@pytest.fixture(scope="session")
def ctest() -> str:
    return tool("ctest")


@pytest.fixture(scope="session")
def generator() -> list[str]:
    """CMake arguments for projects that do not use the presets."""
    return ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}"]


@pytest.fixture(scope="session")
def build(request: pytest.FixtureRequest, cmake: str, compiler: str) -> Build:
    """Configure and build a preset once; asking again returns the folder or fails the same way."""
    results: dict[str, Path | str] = {}

    def build_once(preset: str) -> Path:
        if preset not in results:
            try:
                results[preset] = build_now(preset)
            except pytest.fail.Exception:
                results[preset] = f"the preset {preset} did not build; the first failure says why"
                raise
        result = results[preset]
        if isinstance(result, str):
            pytest.fail(result, pytrace=False)
        return result

    def build_now(preset: str) -> Path:
        chosen = request.getfixturevalue("clang") if preset in {"asan", "clang"} else compiler
        configure = [cmake, "--preset", preset, f"-DCMAKE_CXX_COMPILER={chosen}"]
        # Optimizing, g++ 12 warns of uninitialized lanes and overlapping strings that are not there.
        strict = "OFF" if preset == "optimized" else "ON"
        configure += [f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}", f"-DBURTORCH_WERROR={strict}"]
        run_command(configure)
        make = [cmake, "--build", "--preset", preset, "-j", JOBS]
        run_command([*make, "--target", *TARGETS.get(preset, ["all"])])
        return ROOT / "build" / preset

    return build_once
