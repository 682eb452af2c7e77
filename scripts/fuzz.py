# scripts/fuzz.py — builds the fuzzers of cpp_tests/fuzz with clang and runs them, beside that in Python
# SPDX-License-Identifier: MIT
"""Feed the loaders with nonsense.

Inputs that reach something new are kept in build/fuzz/found; one that breaks a loader ends the run, and its path is
printed. cpp_tests/fuzz/corpus is where they start.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import setup

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "cpp_tests" / "fuzz"
BUILD = ROOT / "build" / "fuzz"
BUILT = sorted(path.stem for path in SOURCES.glob("*.cpp"))
IN_PYTHON = sorted(path.stem for path in SOURCES.glob("*.py"))  # of the package in .venv
NAMES = sorted(BUILT + IN_PYTHON)


def tool(name: str) -> str:
    beside = Path(sys.executable).parent, ROOT / ".venv" / "bin"
    folders = os.pathsep.join([*map(str, beside), os.environ.get("PATH", "")])
    return shutil.which(name, path=folders) or name


def build(clang: str, names: list[str]) -> None:
    BUILD.mkdir(parents=True, exist_ok=True)
    configure: list[str | Path] = [
        tool("cmake"),
        "-S",
        ROOT,
        "-B",
        BUILD,
        "-G",
        "Ninja",
        "-DBURTORCH_TESTS=ON",
    ]
    configure += [f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}", f"-DCMAKE_CXX_COMPILER={clang}"]
    targets = [f"fuzz_{name}" for name in names]
    make: list[str | Path] = [tool("cmake"), "--build", BUILD, "--target", *targets]
    for command in (configure, make):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(done.stdout + done.stderr)


def can_fuzz_python() -> bool:
    """Whether atheris is there; there are wheels of it for some Pythons on some systems."""
    python = str(setup.venv_python())
    pip = [python, "-m", "pip", "install", "--disable-pip-version-check", "-qq"]
    attempts = [python, "-c", "import atheris"], [*pip, "--only-binary=:all:", "atheris"]
    return any(
        subprocess.run(attempt, capture_output=True, check=False).returncode == 0
        for attempt in attempts
    )


def run(name: str, seconds: int, seed: int) -> int:
    found = BUILD / "found" / name
    found.mkdir(parents=True, exist_ok=True)
    limits = ["-timeout=10", "-rss_limit_mb=1024", "-malloc_limit_mb=256", "-max_len=4096"]
    program: list[str | Path] = [BUILD / "cpp_tests" / "fuzz" / f"fuzz_{name}"]
    if name in IN_PYTHON:
        program = [setup.venv_python(), SOURCES / f"{name}.py"]
    command: list[str | Path] = [
        *program,
        f"-max_total_time={seconds}",
        f"-seed={seed}",
        *limits,
        "-print_final_stats=1",
    ]
    command += [f"-artifact_prefix={BUILD}/{name}-", found, SOURCES / "corpus" / name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = (done.stdout + done.stderr).splitlines()  # Python's errors go to the first
    lines = [line for line in said if not line.startswith(("#", "\tNEW_FUNC"))]
    print(f"{name}: {'fine' if done.returncode == 0 else 'broken'}")
    print("\n".join(lines[-8 if done.returncode == 0 else -60 :]), flush=True)
    return done.returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="for each of them")
    parser.add_argument(
        "--seed", type=int, default=0, help="the same inputs again (0: others each time)"
    )
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(NAMES)}")
    options = parser.parse_args()
    names = options.names or NAMES
    if wrong := set(names) - set(NAMES):
        parser.error(f"there is no {', '.join(wrong)}; there are {', '.join(NAMES)}")
    if set(names) & set(IN_PYTHON) and not can_fuzz_python():
        print(f"fuzz: no {', '.join(IN_PYTHON)}, because pip finds no atheris", flush=True)
        names = [name for name in names if name not in IN_PYTHON]
    if built := [name for name in names if name in BUILT]:
        clang = setup.find_compiler(setup.CLANG_NAMES)
        if clang is None or not setup.has_fuzzer():
            print("fuzz: no clang with libFuzzer; `python3 scripts/setup.py --clang` installs it")
            return 2
        build(clang.path, built)
    return max((run(name, options.seconds, options.seed) for name in names), default=0)


if __name__ == "__main__":
    sys.exit(main())
