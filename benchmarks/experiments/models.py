# benchmarks/experiments/models.py — networks of images and sequences that users write themselves
# SPDX-License-Identifier: MIT
from __future__ import annotations

from benchmarks.registry import Case, Job, Peer, cross
from benchmarks.report import Column, Table, median, per_gradient
from benchmarks.runner import Result

TITLE = "Convolutions and recurrences, FP32"
ORDER = 22
BATCHES = {"conv": (1, 8, 32), "lstm": (1, 8, 32)}


def title(work: str, batch: int) -> str:
    return f"{work} b={batch}"


def jobs(peers: list[Peer], quick: bool) -> list[Job]:
    cases = [Case(work, title(work, b), {"b": b}) for work, all_ in BATCHES.items() for b in all_]
    return cross(peers, cases)


def tables(results: list[Result]) -> list[Table]:
    there = {r["case"] for r in results}
    found = []
    for work, batches in BATCHES.items():
        columns = [
            Column(f"b={b}", per_gradient(1e6), title(work, b), x=b, beside=median(1e6))
            for b in batches
            if title(work, b) in there
        ]
        if columns:
            found.append(Table(f"{work}: µs per gradient", columns, "", "line", "batch"))
    return found
