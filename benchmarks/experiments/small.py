# benchmarks/experiments/small.py — micrograd's example of 32 nodes, 20 000 gradients
# SPDX-License-Identifier: MIT
from __future__ import annotations

from benchmarks.experiments import tiny
from benchmarks.registry import Case, Job, Peer, cross
from benchmarks.report import Table
from benchmarks.runner import Result
from benchmarks.works import WANT

TITLE = "Small graph: 32 nodes, FP64"
ORDER = 2
CASE = Case("small", "small", want=WANT["small"])
PAPER = {
    "burtorch C++ eager": "0.0082",
    "micrograd": "1.07",
    "JAX jit": "1.18",
    "LiteRT FP32": "2.44",
    "LibTorch C++ eager": "3.20",
    "PyTorch eager": "5.44",
    "autograd": "12.1",
    "TensorFlow eager": "24.8",
    "JAX eager": "186",
    "derived by hand in C++": "0.00033",
}


def jobs(peers: list[Peer], quick: bool) -> list[Job]:
    return cross(peers, [CASE], count_instructions=True)


def tables(results: list[Result]) -> list[Table]:
    return [tiny.table(results, 20_000, PAPER, "the paper's, s (Windows)")]
