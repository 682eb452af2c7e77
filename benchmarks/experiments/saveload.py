# benchmarks/experiments/saveload.py — seven activations to a file and back, 5 000 times; a model of a million parameters
# SPDX-License-Identifier: MIT
from __future__ import annotations

from benchmarks.registry import Case, Job, Peer, cross
from benchmarks.report import Column, Table, median, per_gradient
from benchmarks.runner import Result
from benchmarks.works import ACTIVATIONS, LARGE

TITLE = "Saving and loading"
ORDER = 3
PAPER = {  # save, load, bytes
    "burtorch C++": "0.75 / 0.08 / 56",
    "PyTorch NumPy's bytes": "1.11 / 0.22 / 56",
    "PyTorch torch.save": "2.54 / 1.36 / 2564",
    "TensorFlow serialize_tensor": "1.97 / 1.66 / 634",
}


def jobs(peers: list[Peer], quick: bool) -> list[Job]:
    few = [Case(work, work, want=ACTIVATIONS) for work in ("save", "load")]
    many = [Case(work, work, want=(LARGE,)) for work in ("save model", "load model")]
    return cross(peers, few + many)


def tables(results: list[Result]) -> list[Table]:
    columns = [
        Column("save 5 000 times, s", per_gradient(5000), "save", beside=median(5000)),
        Column("load 5 000 times, s", per_gradient(5000), "load", beside=median(5000)),
        Column("file, bytes", lambda r: str(r.get("file_bytes", "–")), "save"),
        Column("the paper's (save / load / bytes)", lambda r: PAPER.get(r["row"]), "save"),
    ]
    text = "In memory where the system has /dev/shm, not on a disk."
    found = [Table("7 numbers, FP64", columns, text, plot="bar")]
    there = {r["case"] for r in results}
    for case in ("save model", "load model"):
        if case in there:
            column = Column("ms", per_gradient(1e3), case, beside=median(1e3))
            title = f"{case.capitalize()}: {LARGE:,} parameters, FP32".replace(",", " ", 1)
            found.append(Table(title.replace("079,003", "079 003"), [column]))
    return found
