# benchmarks/experiments/saveload.py — seven activations of the small graph to a file and back, 5 000 times
# SPDX-License-Identifier: MIT
from __future__ import annotations

from benchmarks.registry import Case, Job, Peer, cross
from benchmarks.report import Column, Table, median, per_gradient
from benchmarks.runner import Result
from benchmarks.works import ACTIVATIONS

TITLE = "Saving and loading 7 numbers, FP64"
ORDER = 3
PAPER = {  # save, load, bytes
    "burtorch C++": "0.75 / 0.08 / 56",
    "PyTorch NumPy's bytes": "1.11 / 0.22 / 56",
    "PyTorch torch.save": "2.54 / 1.36 / 2564",
    "TensorFlow serialize_tensor": "1.97 / 1.66 / 634",
}


def jobs(peers: list[Peer], quick: bool) -> list[Job]:
    return cross(peers, [Case(work, work, want=ACTIVATIONS) for work in ("save", "load")])


def tables(results: list[Result]) -> list[Table]:
    columns = [
        Column("save 5 000 times, s", per_gradient(5000), "save", beside=median(5000)),
        Column("load 5 000 times, s", per_gradient(5000), "load", beside=median(5000)),
        Column("file, bytes", lambda r: str(r.get("file_bytes", "–")), "save"),
        Column("the paper's (save / load / bytes)", lambda r: PAPER.get(r["row"]), "save"),
    ]
    return [
        Table("", columns, "In memory where the system has /dev/shm, not on a disk.", plot="bar")
    ]
