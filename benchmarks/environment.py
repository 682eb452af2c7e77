# benchmarks/environment.py — installs peers and compiles programs, all below build/peers
# SPDX-License-Identifier: MIT
"""Nothing outside build/peers changes: pip installs into a virtual environment there, Debian's packages are
only unpacked. Every peer is installed on its own, so that one that fails stops no other."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from benchmarks import worker
from benchmarks.registry import MissingError, Peer, Program

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / "build" / "peers"
PYTHON = HOME / "bin" / "python"
DEBIAN = HOME / "debian"
CPP = ROOT / "benchmarks" / "cpp"

sys.path.insert(0, str(ROOT / "scripts"))
import setup as setup  # noqa: E402


def last_line(text: str) -> str:
    """Return the line that says most about a failure."""
    text = re.sub(r"\w+://\S+", "…", text.replace(f"{ROOT}/", ""))  # no addresses, no local paths
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower() and "warning" not in line.lower()]
    return (errors[:1] or lines[-1:] or ["no message"])[0][:160]


def run(command: list[str], cwd: Path = ROOT, timeout: float = 900) -> str:
    """Run a command and return what it printed; MissingError says why it failed."""
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            timeout=timeout,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingError(f"{Path(command[0]).name}: {error}") from None
    if done.returncode:
        raise MissingError(last_line(done.stdout))
    return done.stdout


def installed_bytes(packages: list[str]) -> int:
    """Return the size of the files of distributions in the environment of the peers."""
    where = [str(path) for path in HOME.glob("lib/python*/site-packages")]
    found = [d for name in packages for d in metadata.distributions(name=name, path=where)]
    return worker.bytes_of(found)


def install(peer: Peer) -> None:
    """Install what a peer needs, unless that was done before."""
    if not (peer.pip or peer.debian):
        return
    stamp = HOME / "installed" / peer.name
    wanted = " ".join([*peer.pip, *peer.debian, *peer.modules])
    is_there = stamp.is_file() and stamp.read_text().splitlines()[0] == wanted
    if is_there and set(peer.debian) <= set(debian_versions(peer)):
        return
    if not PYTHON.is_file():
        run([sys.executable, "-m", "venv", str(HOME)])
    if peer.pip:
        run([str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check", "-q", *peer.pip])
    for module in peer.modules:
        run([str(PYTHON), "-m", module])
    versions = unpack(peer.debian) if peer.debian else []
    stamp.parent.mkdir(exist_ok=True)
    stamp.write_text("\n".join([wanted, *versions]))


def debian_versions(peer: Peer) -> dict[str, str]:
    """Return the versions of the packages that were unpacked, as the peer's stamp holds them."""
    stamp = HOME / "installed" / peer.name
    lines = stamp.read_text().splitlines()[1:] if peer.debian and stamp.is_file() else []
    return dict(line.split(" ", 1) for line in lines)


def unpack(packages: list[str]) -> list[str]:
    """Unpack Debian packages below build/peers/debian; return a line "name version" for each."""
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        raise MissingError("Debian's packages need apt-get")
    DEBIAN.mkdir(parents=True, exist_ok=True)
    try:
        run(["apt-get", "download", "-q", *packages], cwd=DEBIAN)
    except MissingError:
        run([*setup.apt_command(), "update", "-qq"])
        run(["apt-get", "download", "-q", *packages], cwd=DEBIAN)
    versions = []
    for file in DEBIAN.glob("*.deb"):
        versions.append(run(["dpkg-deb", "-W", "--showformat=${Package} ${Version}", str(file)]))
        run(["dpkg", "-x", str(file), str(DEBIAN)])
        file.unlink()
    return versions


def debian_flags(include: str, *libraries: str) -> list[str]:
    """Return the compiler's flags for packages that were unpacked; libraries are static ones."""
    folders = [f"-L{path}" for path in (DEBIAN / "usr" / "lib").glob("*-linux-gnu")]
    return [f"-I{DEBIAN / 'usr' / 'include' / include}", *folders, *(f"-l:{x}" for x in libraries)]


@functools.cache
def newest_source() -> float:
    files = [*(ROOT / "include").rglob("*.h*"), *CPP.iterdir(), *CPP.parent.glob("*.hpp")]
    return max(path.stat().st_mtime for path in files)


def compile_program(program: Program, peer: Peer) -> Path:
    """Return the compiled program, made now if it is not there or older than a source."""
    kinds = {"g++": setup.GNU_NAMES, "clang++": setup.CLANG_NAMES}
    found = setup.find_compiler(kinds.get(program.compiler))
    if found is None:
        raise MissingError(f"no {program.compiler or 'compiler'} on this machine")
    command = [found.path, "-std=c++20", "-DNDEBUG", f"-I{ROOT / 'include'}", f"-I{CPP.parent}"]
    command += [*program.flags, str(CPP / f"{program.source}.cpp"), "-pthread", *peer.libraries()]
    key = hashlib.sha256(" ".join(command).encode()).hexdigest()[:8]
    target = HOME / "programs" / f"{program.source}-{key}"
    if not target.is_file() or target.stat().st_mtime < newest_source():
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_suffix(".new")  # a compilation that is interrupted leaves no program
        run([*command, "-o", str(partial)])
        partial.replace(target)
    return target


def compiler_version(names: list[str] | None) -> str:
    found = setup.find_compiler(names)
    if found is None:
        return ""
    option = "-dumpfullversion" if found.kind == "g++" else "-dumpversion"
    return f"{found.kind} {run([found.path, option]).strip()}"


def processor() -> str:
    """Return the processor's name with the numbers of its model: virtual machines often have no other name."""
    import platform

    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    except OSError:
        lines = []
    said = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    numbers = ("cpu family", "model", "stepping", "CPU implementer", "CPU part")
    words = [f"{key.removeprefix('cpu ')} {said[key]}" for key in numbers if key in said]
    return ", ".join([said.get("model name", name), *words, f"{os.cpu_count()} cores"])


def machine() -> dict[str, str]:
    """Say what the figures were measured on."""
    import platform

    return {
        "processor": processor(),
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "python": platform.python_version(),
        "compiler": compiler_version(None) or "none",
        "clang": compiler_version(setup.CLANG_NAMES) or "none",
    }
