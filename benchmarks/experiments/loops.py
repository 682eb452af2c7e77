# benchmarks/experiments/loops.py — programs of plain loops, recorded: replayed, as native code, and as CasADi's C
# SPDX-License-Identifier: MIT
from __future__ import annotations

from benchmarks.registry import Case, Job, Peer, cross
from benchmarks.report import Column, Table, median, per_gradient
from benchmarks.runner import Result
from benchmarks.works import BODIES, LOOPS, STEPS

TITLE = "Loops: gravity of some bodies, steps of a pendulum, FP64"
ORDER = 20


def jobs(peers: list[Peer], quick: bool) -> list[Job]:
    return cross(peers, [Case(work, work) for work in LOOPS])


def tables(results: list[Result]) -> list[Table]:
    columns = [
        Column(f"{work}, µs per gradient", per_gradient(1e6), work, beside=median(1e6))
        for work in LOOPS
    ]
    text = (
        f"The energy of {BODIES} bodies, each pair of them, and {STEPS} Runge-Kutta steps. Recorded once, then called "
        "from Python with memory that was given before. auto is the default; its background compilation "
        "is waited for (`c.wait()`)."
    )
    return [Table("", columns, text, plot="bar")]
