# scripts/setup.py — makes .venv and installs what is missing; standard library only
# SPDX-License-Identifier: MIT
"""Prepare this checkout: a compiler, a few system packages, and a virtual environment.

python3 scripts/setup.py              what demo, test and bench need
python3 scripts/setup.py --dev        also the tools of `make lint` and `make format`
python3 scripts/setup.py --clang      also clang-16, for the second compiler in the tests
python3 scripts/setup.py --peers      also PyTorch and JAX, which some tests compare with, and a fuzzer
python3 scripts/setup.py --compiler   install nothing, print the compiler that would be used
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Callable, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
OLDEST_PYTHON = (3, 9)
WANTED = "a C++20 compiler (g++ 12 or newer, or clang++ 16 or newer)"
OLDEST = {"g++": 12, "clang++": 16, "Apple clang++": 15}
GNU_NAMES = ["g++", *(f"g++-{n}" for n in range(16, 11, -1))]
CLANG_NAMES = ["clang++", *(f"clang++-{n}" for n in range(22, 15, -1))]


class SetupError(Exception):
    """Something that the person at the keyboard has to do; the message is one sentence."""


class Compiler(NamedTuple):
    path: str
    kind: str
    major: int

    def is_new_enough(self) -> bool:
        return self.major >= OLDEST[self.kind]


def say(text: str) -> None:
    print(f"setup: {text}", flush=True)


# Compilers


def parse_compiler(text: str) -> tuple[str, int] | None:
    """Read kind and major version from what `--version` printed."""
    found = re.search(r"(Apple )?clang version (\d+)", text)
    if found:
        return ("Apple clang++" if found[1] else "clang++", int(found[2]))
    # The first line is "<name> (<who packaged it>) 12.2.0"; the note may hold numbers, too.
    lines = text.splitlines()
    if "Free Software Foundation" in text and lines:
        found = re.search(r"\s(\d+)\.\d+(?:\.\d+)?\b[^()]*$", re.sub(r"\([^()]*\)", "", lines[0]))
        if found:
            return ("g++", int(found[1]))
    return None


def inspect_compiler(name: str) -> Compiler | None:
    path = shutil.which(name)
    if path is None:
        return None
    try:
        run = subprocess.run([path, "--version"], stdout=subprocess.PIPE, text=True, check=False)
    except OSError:
        return None
    parsed = parse_compiler(run.stdout)
    return Compiler(path, *parsed) if parsed else None


def find_compiler(names: list[str] | None = None) -> Compiler | None:
    """Return the first of the names (default: $CXX, then g++, then clang++) that is new enough."""
    if names is None:
        names = [name for name in [os.environ.get("CXX")] if name] + GNU_NAMES + CLANG_NAMES
    for name in names:
        compiler = inspect_compiler(name)
        if compiler and compiler.is_new_enough():
            return compiler
    return None


# System packages


def apt_command() -> list[str]:
    """Return how to call apt-get here, or raise a SetupError that completes "... because"."""
    apt = shutil.which("apt-get")
    if apt is None:
        raise SetupError("there is no apt-get on this machine")
    if os.geteuid() == 0:
        return [apt]
    sudo = shutil.which("sudo")
    if sudo and subprocess.run([sudo, "-n", "true"], stderr=subprocess.DEVNULL).returncode == 0:
        return [sudo, "-n", apt]
    raise SetupError("this user is not root and may not use sudo without a password")


def apt_install(package: str, why: str) -> None:
    command = apt_command()
    say(f"installing the system package {package}: {why}")
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    install = [*command, "install", "-y", "-qq", "--no-install-recommends", package]
    for attempt in (install, [*command, "update", "-qq"], install):
        run = subprocess.run(
            attempt,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if attempt is install and run.returncode == 0:
            return
    last = (run.stdout.strip().splitlines() or ["no message"])[-1]
    raise SetupError(f"apt-get could not install {package} ({last})")


def need_compiler() -> Compiler:
    compiler = find_compiler()
    failure = None
    # A distribution's plain g++ may be too old while a newer one has its own name.
    for package in ("g++", "g++-14", "g++-13", "g++-12"):
        if compiler:
            break
        try:
            apt_install(package, f"{WANTED} is missing")
        except SetupError as error:
            failure = failure or error
        compiler = find_compiler()
    if compiler is None:
        reason = failure or "the packaged ones are older"
        raise SetupError(f"please install {WANTED}, because {reason}.")
    return compiler


def have_doctest() -> bool:
    roots = ["/usr/include", "/usr/local/include", "/opt/homebrew/include"]
    return any(Path(root, "doctest", "doctest.h").is_file() for root in roots)


def have_graphviz() -> bool:
    return shutil.which("dot") is not None


class Nicety(NamedTuple):
    package: str
    why: str
    is_there: Callable[[], bool]
    otherwise: str


NICE_TO_HAVE = [
    Nicety("doctest-dev", "the C++ test framework", have_doctest, "CMake will fetch doctest"),
    Nicety("graphviz", "draws graphs", have_graphviz, "pictures stay DOT text"),
    Nicety(
        "chromium",
        "a browser",
        lambda: shutil.which("chromium") is not None,
        "the tests of the interactive view are skipped",
    ),
    Nicety(
        "xvfb",
        "a display without a screen",
        lambda: shutil.which("Xvfb") is not None,
        "the test of the live view's window is skipped",
    ),
    Nicety(
        "python3-tk",
        "windows for Matplotlib",
        lambda: importlib.util.find_spec("tkinter") is not None,
        "the test of the live view's window is skipped",
    ),
    Nicety(
        "gdb",
        "the debugger",
        lambda: shutil.which("gdb") is not None,
        "the tests of its pretty printers are skipped",
    ),
    Nicety(
        "pkg-config",
        "finds installed libraries",
        lambda: shutil.which("pkg-config") is not None,
        "its test is skipped",
    ),
]
CLANG = Nicety(
    "clang-16",
    "the second compiler",
    lambda: find_compiler(CLANG_NAMES) is not None,
    "the tests run with one compiler",
)


def compiles_32_bit() -> bool:
    compiler = find_compiler()
    if compiler is None or platform.machine() not in {"x86_64", "AMD64"}:
        return True  # no such processor
    command = [compiler.path, "-m32", "-x", "c++", "-fsyntax-only", "-"]
    done = subprocess.run(command, input="#include <vector>", text=True, capture_output=True)
    return done.returncode == 0


def multilib() -> Nicety:
    compiler = find_compiler()
    version = f"-{compiler.major}" if compiler and compiler.kind == "g++" else ""
    return Nicety(
        f"g++{version}-multilib",  # unlike g++-multilib it does not exclude compilers for ARM
        "compiles for 32-bit processors",
        compiles_32_bit,
        "the lanes of such are not tested",
    )


def has_fuzzer() -> bool:
    clang = find_compiler(CLANG_NAMES)
    if clang is None:
        return False
    command = [clang.path, "-print-runtime-dir"]
    folder = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return any(Path(folder).glob("*clang_rt.fuzzer*"))


FUZZER = Nicety(
    "libclang-rt-16-dev",
    "libFuzzer and clang's sanitizers",
    has_fuzzer,
    "the loaders are not fuzzed",
)


def offer(item: Nicety) -> None:
    if item.is_there():
        return
    try:
        apt_install(item.package, item.why)
    except SetupError as error:
        say(f"no {item.package} ({item.why}), because {error}; {item.otherwise}")


# The virtual environment


def venv_python() -> Path:
    return VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def make_venv() -> None:
    # Its programs name their folder, so an environment that was copied or moved is made anew.
    place = VENV / "burtorch-place"
    if place.is_file() and place.read_text() == str(VENV) and venv_python().exists():
        works = [str(venv_python()), "-c", "import pip"]
        if subprocess.run(works, stderr=subprocess.DEVNULL, check=False).returncode == 0:
            return
    try:
        import ensurepip  # noqa: F401
    except ImportError:
        # Debian cuts this module out of Python into a package that carries the version in its name.
        package = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
        try:
            apt_install(package, "Python's venv module is missing")
        except SetupError as error:
            raise SetupError(f"please install Python's venv module, because {error}.") from error
    say("making the virtual environment .venv")
    command = [sys.executable, "-m", "venv", "--clear", str(VENV)]
    if subprocess.run(command, check=False).returncode != 0:
        raise SetupError("Python could not make .venv; its message is above.")
    place.write_text(str(VENV))


def requirements(extra: str) -> list[str]:
    """Read one array of [project.optional-dependencies]; tomllib is younger than Python 3.9."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    section = text.split("[project.optional-dependencies]", 1)[1]
    found = re.search(rf"^{extra} = (\[.*?^\])", section, re.MULTILINE | re.DOTALL)
    if found is None:
        raise SetupError(f"pyproject.toml has no extra called {extra}.")
    return list(ast.literal_eval(found[1]))


def stamp_of(extra: str) -> str:
    """Return what must be unchanged for an earlier installation to count: inputs and place."""
    digest = hashlib.sha256()
    for path in (ROOT / "pyproject.toml", Path(__file__).resolve()):
        digest.update(path.read_bytes())
    digest.update(f"{VENV} {extra}".encode())
    return digest.hexdigest()


def stamp_file(extra: str) -> Path:
    return VENV / f"burtorch-{extra}.stamp"


def is_current(extra: str, stamp: str) -> bool:
    file = stamp_file(extra)
    return venv_python().exists() and file.is_file() and file.read_text() == stamp


def pip_install(extra: str) -> None:
    wanted = requirements(extra)
    say(f"installing into .venv, for {extra}: {', '.join(wanted)}")
    command = [str(venv_python()), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    if subprocess.run([*command, *wanted], check=False).returncode != 0:
        raise SetupError(f"pip could not install the packages for {extra}; its message is above.")


# Libraries that some tests compare with. Where they would bring gigabytes for graphics cards, they are
# left out.
PEERS = ["torch==2.13.0", "jax", "atheris"]


def offer_peers() -> None:
    stamp = stamp_of("peers")
    if is_current("peers", stamp):
        return
    pip = [str(venv_python()), "-m", "pip", "install", "--disable-pip-version-check", "-qq"]
    pip.append("--only-binary=:all:")
    for peer in PEERS:
        plan = subprocess.run(
            [*pip, "--dry-run", "--report", "-", peer], capture_output=True, text=True, check=False
        )
        reason = ""
        if plan.returncode != 0:
            reason = "pip finds none"
        elif re.search(r'"name": "(nvidia|cuda)-', plan.stdout):
            reason = "it comes with gigabytes for graphics cards"
        else:
            say(f"installing into .venv, for some tests: {peer}")
            if subprocess.run([*pip, peer], check=False).returncode != 0:
                reason = "pip could not install it"
        if reason:
            say(f"no {peer}, because {reason}; its tests are skipped")
    stamp_file("peers").write_text(stamp)


def prepare(extras: dict[str, str], with_clang: bool) -> None:
    stale = {extra: stamp for extra, stamp in extras.items() if not is_current(extra, stamp)}
    if stale:
        need_compiler()
        for item in NICE_TO_HAVE:
            offer(item)
        make_venv()
    if with_clang:
        offer(multilib())
        offer(CLANG)
        offer(FUZZER)
    for extra, stamp in stale.items():
        pip_install(extra)
        stamp_file(extra).write_text(stamp)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dev", action="store_true", help="also the lint and format tools")
    parser.add_argument("--bench", action="store_true", help="also what the benchmarks draw with")
    parser.add_argument("--clang", action="store_true", help="also clang-16 and its fuzzer")
    parser.add_argument("--peers", action="store_true", help="also PyTorch, JAX and a fuzzer")
    parser.add_argument("--compiler", action="store_true", help="print the compiler to use")
    options = parser.parse_args(arguments)
    try:
        if sys.version_info < OLDEST_PYTHON:
            raise SetupError("please use Python 3.9 or newer.")
        if options.compiler:
            compiler = find_compiler()
            if compiler is None:
                raise SetupError(f"please install {WANTED}.")
            print(compiler.path)
            return 0
        names = ["test"] + ["dev"] * options.dev + ["bench"] * options.bench
        prepare({name: stamp_of(name) for name in names}, options.clang)
        if options.peers:
            offer_peers()
    except SetupError as error:
        print(f"setup: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
