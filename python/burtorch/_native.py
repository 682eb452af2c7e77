# python/burtorch/_native.py — emitted C as loaded machine code: the system's compiler, and a cache on disk
# SPDX-License-Identifier: MIT
"""Compile C text into a shared library and load it.

Libraries are kept in a folder that only this user can write to, under the hash of everything that went
into them. A library is written under another name first and then renamed, so that several processes may
do this at once. Nothing is loaded that another user could have written: no folder on the way is one that
others can change. Of libraries that together have more than BURTORCH_CACHE_BYTES bytes, those that were not
used for the longest time are removed.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ._core import Error

__all__ = ["CompilerError", "cache_folder", "compiler", "in_background", "load"]

# Value-safe: no fused operations where the program has none, no reordering. Nobody reads errno or
# floating-point traps here.
FLAGS = ["-std=c99", "-fPIC", "-shared", "-ffp-contract=off", "-fno-math-errno"]
FLAGS += ["-fno-trapping-math", "-w"]
# Without jump threading, which splits the paths after equal conditions, conditional expressions become
# vector instructions.
SHORT = ["-O3", "-fno-thread-jumps"]
# Long texts are straight lines. More optimization finds nothing there and takes several times as long,
# and so does moving operands to where they are used.
LONG = ["-O1", "-fno-tree-ter"]
LONG_TEXT = 200_000  # characters
NATIVE = ["-march=native"]


class CompilerError(Error):
    """The C compiler could not compile what it was given."""


def compiler() -> list[str] | None:
    """Return the command of the C compiler: $CC, or cc, gcc or clang; None if there is none."""
    if os.name != "posix":
        return None
    wish = os.environ.get("CC", "")
    try:
        wanted = shlex.split(wish)
    except ValueError as error:
        raise CompilerError(f"$CC is no command ({error}): {wish}") from None
    for command in [wanted] if wanted else [["cc"], ["gcc"], ["clang"]]:
        if path := shutil.which(command[0]):
            return [path, *command[1:]]
    if wanted:
        raise CompilerError(f"there is no program {wanted[0]}, which is $CC")
    return None


def _is_private(status: os.stat_result) -> bool:
    """Tell whether nobody but this user (or the system's) could have written what this describes."""
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _is_group_of_one(group: int) -> bool:
    """Tell whether a group is this user's own, as many systems give one to each."""
    import grp
    import pwd

    try:
        name, entry = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(group)
    except KeyError:
        return False
    return entry.gr_name == name and set(entry.gr_mem) <= {name}


def _is_out_of_reach(folder: Path) -> bool:
    """Tell whether nobody else could put another folder here: also not by renaming one above it."""
    for each in (folder, *folder.parents):
        status = each.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid not in {os.geteuid(), 0}:
            return False
        others = status.st_mode & stat.S_IWOTH or (
            status.st_mode & stat.S_IWGRP and not _is_group_of_one(status.st_gid)
        )
        if others and not status.st_mode & stat.S_ISVTX:  # sticky: others can't touch what is ours
            return False
    return True


_temporary: list[tempfile.TemporaryDirectory[str]] = []  # at most one, as long as the process lives


def _temporary_folder() -> Path:
    """Return a folder of this process, for when the cache can't be trusted or written."""
    if not _temporary:
        _temporary.append(tempfile.TemporaryDirectory(prefix="burtorch-"))
    folder = Path(_temporary[0].name).resolve()
    if not _is_out_of_reach(folder):
        raise CompilerError(f"other users can write to a folder above {folder}")
    return folder


def cache_folder() -> Path:
    """Return the folder of compiled libraries, made if necessary; only this user can write to it."""
    home = os.environ.get("BURTORCH_CACHE_DIR")
    if home:
        folder = Path(home)
    else:
        base = os.environ.get("XDG_CACHE_HOME")
        folder = (Path(base) if base else Path.home() / ".cache") / "burtorch"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        usable = not folder.is_symlink() and _is_private(folder.lstat())
        folder = folder.resolve(strict=True)  # links on the way are followed now and never again
        usable = usable and _is_out_of_reach(folder) and os.access(folder, os.W_OK)
    except (OSError, RuntimeError):
        usable = False
    return folder if usable else _temporary_folder()


# ---- what is removed from the cache: what killed processes left, what is too much --------------------

_MOST_BYTES = 256 << 20


def _most_bytes() -> int:
    """Return how large the cache may become: BURTORCH_CACHE_BYTES, or 256 MiB."""
    text = os.environ.get("BURTORCH_CACHE_BYTES", "")
    if not text:
        return _MOST_BYTES
    if not text.isdecimal():
        raise CompilerError(f"BURTORCH_CACHE_BYTES is a number of bytes, not {text!r}")
    return int(text)


def _locked(folder: Path) -> int | None:
    """Return an open lock on a folder, which closing it gives up; None if somebody else has it."""
    import fcntl

    try:
        number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(number), os.lstat(folder)):
            return number
    except OSError:
        pass
    os.close(number)
    return None


@contextlib.contextmanager
def _work_folder(cache: Path) -> Iterator[Path]:
    """Make a folder to compile in; it is locked as long as its maker lives, and removed afterwards."""
    for entry in cache.glob("making-*"):
        if (lock := _locked(entry)) is not None:  # of a process that was killed
            shutil.rmtree(entry, ignore_errors=True)
            os.close(lock)
    lock = None
    with contextlib.ExitStack() as stack:
        while lock is None:  # a folder may be taken for abandoned before it is locked
            folder = Path(tempfile.mkdtemp(dir=cache, prefix="making-"))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            lock = _locked(folder)
            if lock is None and folder.exists():
                break  # a file system without locks: nobody can take one
        if lock is not None:
            stack.callback(os.close, lock)
        yield folder


def _bound(cache: Path, newest: Path) -> None:
    """Remove libraries, those not used for the longest time first, until they fit."""
    libraries = []
    for entry in cache.glob("*.so"):
        with contextlib.suppress(OSError):
            status = entry.lstat()
            libraries.append((entry == newest, status.st_atime_ns, status.st_size, entry))
    libraries.sort()
    total, most = sum(size for _, _, size, _ in libraries), _most_bytes()
    for is_newest, _, size, entry in libraries:
        if total <= most or is_newest:
            return
        with contextlib.suppress(OSError):
            entry.unlink()
            total -= size


def _processor() -> str:
    """Describe what -march=native stands for here."""
    text = platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        text += "".join(
            line for line in lines[:40] if line.startswith(("flags", "Features", "model"))
        )
    except OSError:
        text += platform.processor()
    return text


def _flags(source: str) -> list[str]:
    return FLAGS + (SHORT if len(source) <= LONG_TEXT else LONG)


def _key(command: list[str], source: str) -> str:
    status = os.stat(command[0])
    parts = [source, *command, *_flags(source), *NATIVE]
    parts += [str(status.st_size), str(status.st_mtime_ns), _processor(), sys.platform]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:40]


_compilers: set[int] = set()  # those that are running


def _kill(process: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)


@atexit.register
def _kill_all() -> None:
    for process in list(_compilers):
        _kill(process)


def _run(command: list[str], timeout: float | None) -> tuple[int, str]:
    """Run a command with all that it starts; return its status and what it complained about."""
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        _compilers.add(process.pid)
        try:
            _, complaint = process.communicate(timeout=timeout)
        except BaseException as error:
            _kill(process.pid)
            if isinstance(error, subprocess.TimeoutExpired):
                raise CompilerError(f"{command[0]} takes longer than {timeout:g} s") from None
            raise
        finally:
            _compilers.discard(process.pid)
    return process.returncode, complaint.decode(errors="replace").strip()


def _compile(command: list[str], source: str, library: Path, timeout: float | None) -> None:
    with _work_folder(library.parent) as folder:
        text, made = folder / "f.c", folder / "f.so"
        text.write_text(source, encoding="utf-8")
        for flags in (_flags(source) + NATIVE, _flags(source)):  # not every compiler knows "native"
            status, complaint = _run([*command, *flags, "-o", str(made), str(text), "-lm"], timeout)
            if status == 0 and made.exists():
                made.chmod(0o700)
                made.replace(library)
                _bound(library.parent, library)
                return
    raise CompilerError(f"{command[0]} failed with status {status}: {complaint}")


def load(source: str, timeout: float | None = None) -> ctypes.CDLL:
    """Return the library of C text, from the cache or compiled now, within so many seconds."""
    command = compiler()
    if command is None:
        raise CompilerError("there is no C compiler: looked for $CC, cc, gcc and clang")
    try:
        return _load(command, source, timeout)
    except OSError as error:  # a compiler that can't be started, a full disk
        raise CompilerError(f"{command[0]} could not be used: {error}") from None


def _load(command: list[str], source: str, timeout: float | None) -> ctypes.CDLL:
    library = cache_folder() / f"{_key(command, source)}.so"
    for _ in range(2):
        try:
            status = library.lstat()
        except FileNotFoundError:
            _compile(command, source, library, timeout)
            status = library.lstat()
        if stat.S_ISREG(status.st_mode) and _is_private(status):
            with contextlib.suppress(OSError):
                os.utime(library, ns=(time.time_ns(), status.st_mtime_ns))  # used now: see _bound
            try:
                return ctypes.CDLL(str(library))
            except OSError:  # not a library, or not one of this system
                pass
        library.unlink(missing_ok=True)
    raise CompilerError(f"{library} can't be loaded")


# ---- in the background -------------------------------------------------------------------------------

_one_at_a_time = threading.Lock()


def in_background(work: Callable[[], None]) -> threading.Thread:
    """Do work in a thread of its own, after what else is done so; it ends with the process."""

    def when_it_is_its_turn() -> None:
        with _one_at_a_time:
            work()

    thread = threading.Thread(target=when_it_is_its_turn, name="burtorch-compile", daemon=True)
    thread.start()
    return thread
