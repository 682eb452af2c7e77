# benchmarks/registry.py — what there is to run: peers offer ways of doing works, experiments ask for them
# SPDX-License-Identifier: MIT
"""A *work* is a computation with parameters ("small", "mlp" with e=64 b=1), a *way* one peer's way of doing it.

A peer is one file in benchmarks/peers with a PEER, an experiment one file in benchmarks/experiments with
TITLE, ORDER (its place in the report), jobs() and tables(). Neither is listed anywhere: the folders are scanned.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Union

NOT_HERE = "not available in this build"

Parameters = dict[str, Any]
Outputs = Union[Sequence[float], Callable[[], Sequence[float]]]  # or how to get them, not timed
Loop = Callable[[int], Outputs]  # runs so many gradients, returns the outputs of the last


class MissingError(Exception):
    """A way that can't run here; the message says why."""


@dataclass(frozen=True)
class Program:
    """A C++ way: benchmarks/cpp/<source>.cpp and how to compile it."""

    source: str
    flags: tuple[str, ...] = ("-O3", "-march=native")
    compiler: str = ""  # "g++" or "clang++", else what scripts/setup.py chooses


@dataclass(frozen=True)
class Way:
    peer: Peer
    name: str
    works: tuple[str, ...]
    make: Callable[[str, Parameters], Loop] | None = None  # Python
    program: Program | None = None  # C++
    argument: str = ""  # what the program calls this way
    tolerance: float = 1e-9  # outputs may differ by so much from what is wanted
    is_slow: bool = False  # to start: --quick has it only in the main case of models
    samples: int = 1  # gradients that the loop takes each time

    @property
    def row(self) -> str:
        return f"{self.peer.title} {self.name}".strip()


@dataclass(frozen=True)
class Case:
    work: str
    title: str
    parameters: Parameters = field(default_factory=dict)
    want: tuple[float, ...] = ()  # empty: what the first way gave
    cores: int = 1
    is_main: bool = False  # of a model: --quick has ways that are slow to start only here


@dataclass(frozen=True)
class Job:
    way: Way
    case: Case
    only_once: bool = False  # a process with one gradient, for its memory and how long it takes
    count_instructions: bool = False

    @property
    def key(self) -> tuple[object, ...]:
        """Jobs with the same key are run once."""
        return self.way.row, self.way.program, self.case.work, self.case.title


class Peer:
    """A library and its ways.

    `pip`, `debian`, `modules` (run once) and `libraries` are what it takes to have it; `packages` are
    the distributions whose size and version count (default: the first of `pip`).
    """

    def __init__(
        self,
        title: str,
        *,
        pip: Sequence[str] = (),
        debian: Sequence[str] = (),
        modules: Sequence[str] = (),
        packages: Sequence[str] = (),
        libraries: Callable[[], list[str]] = list,
    ) -> None:
        self.title = title
        self.pip = list(pip)
        self.debian = list(debian)
        self.modules = list(modules)
        self.packages = list(packages) or [r.partition("==")[0] for r in self.pip[:1]]
        self.libraries = libraries  # flags for the compiler
        self.ways: list[Way] = []
        self.name = ""  # of its file

    @property
    def is_own(self) -> bool:
        return self.name in ("burtorch", "yardstick")

    def offers(
        self,
        way: str,
        *works: str,
        tolerance: float = 1e-9,
        is_slow: bool = False,
        samples: int = 1,
    ) -> Callable[[Any], Any]:
        """Decorate a function of a work's name and parameters that returns a Loop."""
        how: dict[str, Any] = {"tolerance": tolerance, "is_slow": is_slow, "samples": samples}

        def add(make: Any) -> Any:
            self.ways.append(Way(self, way, works, make, **how))
            return make

        return add

    def program(
        self, way: str, source: str, *works: str, argument: str = "", tolerance: float = 1e-9
    ) -> None:
        self.ways.append(
            Way(
                self,
                way,
                works,
                program=Program(source),
                argument=argument or way,
                tolerance=tolerance,
            )
        )


def peers(names: Iterable[str] = ()) -> list[Peer]:
    """Return the peers of these names (default: all), this project's own first."""
    import benchmarks.peers as folder

    known = sorted(module.name for module in pkgutil.iter_modules(folder.__path__))
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"no peer is called {unknown[0]!r}; there are {', '.join(known)}")
    found = []
    for name in sorted(
        set(names) or set(known), key=lambda n: (n != "burtorch", n != "yardstick", n)
    ):
        peer: Peer = importlib.import_module(f"benchmarks.peers.{name}").PEER
        peer.name = name
        found.append(peer)
    return found


def experiments(names: Iterable[str] = ()) -> dict[str, Any]:
    """Return the modules of these experiments (default: all), in their own order: the paper's first."""
    import benchmarks.experiments as folder

    found = [
        (module.name, importlib.import_module(f"benchmarks.experiments.{module.name}"))
        for module in pkgutil.iter_modules(folder.__path__)
    ]
    known = dict(sorted(found, key=lambda each: (each[1].ORDER, each[0])))
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"no experiment is called {unknown[0]!r}; there are {', '.join(known)}")
    chosen = set(names) or set(known)
    return {name: module for name, module in known.items() if name in chosen}


def cross(peers: Iterable[Peer], cases: Sequence[Case], **how: bool) -> list[Job]:
    """Return a job for every way of every peer that offers a case's work."""
    ways = [way for peer in peers for way in peer.ways]
    return [Job(way, case, **how) for case in cases for way in ways if case.work in way.works]
