# benchmarks/experiments/scalars.py — what lanes, halves and the vector functions cost against plain numbers
# SPDX-License-Identifier: MIT
from __future__ import annotations

from benchmarks.registry import Case, Job, Peer, cross
from benchmarks.report import Column, Table, median, per_gradient
from benchmarks.runner import Result
from benchmarks.works import FUNCTIONS, WANT

TITLE = "Scalars: lanes, halves, vector functions"
ORDER = 22
AFFINE = "64 x 1024"


def jobs(peers: list[Peer], quick: bool) -> list[Job]:
    cases = [Case("lanes", "small", want=WANT["small"]), Case("affine tanh", AFFINE)]
    return cross(peers, [*cases, *(Case(name, name) for name in FUNCTIONS)])


def tables(results: list[Result]) -> list[Table]:
    def column(title: str, case: str) -> Column:
        return Column(title, per_gradient(1e6), case, beside=median(1e6))

    text = "A graph of lanes computes as many samples."
    functions = [column(f"{name}, µs", name) for name in FUNCTIONS]
    return [
        Table("The small graph", [column("µs per gradient", "small")], text),
        Table(f"tanh(Wx + b), {AFFINE}", [column("µs per gradient", AFFINE)]),
        Table("Functions of 4 096 numbers, FP32", functions),
    ]
