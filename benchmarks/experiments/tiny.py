# benchmarks/experiments/tiny.py — the paper's 10-node graph, 100 000 gradients
# SPDX-License-Identifier: MIT
from __future__ import annotations

from benchmarks.registry import Case, Job, Peer, cross
from benchmarks.report import BASE, Column, Table, per_gradient
from benchmarks.runner import Result
from benchmarks.works import WANT

TITLE = "Tiny graph: 10 nodes, FP64"
ORDER = 1
PAPER = {
    "burtorch C++ eager": "0.011 / 0.007",
    "TensorFlow eager": "163.5 / 55.2",
    "TensorFlow tf.function": "27.9 / 14.5",
    "LiteRT FP32": "0.41 / 0.59",
    "autograd": "29.3 / 19.0",
    "PyTorch eager": "15.4 / 10.4",
    "PyTorch TorchScript": "14.2 / 10.0",
    "LibTorch C++ eager": "7.6 / 5.3",
    "JAX eager": "506 / 292",
    "JAX jit": "11.2 / 5.6",
    "micrograd": "2.75 / 1.59",
    "MLX eager": "3.07 / –",
    "derived by hand in C++": "– / 0.0004",
}


def jobs(peers: list[Peer], quick: bool) -> list[Job]:
    return cross(peers, [Case("tiny", "tiny", want=WANT["tiny"])], count_instructions=True)


def counted(results: list[Result]) -> str:
    """Say how instructions were counted, or why they were not."""
    by = dict.fromkeys(r["instructions_by"] for r in results if "instructions_by" in r)
    why = dict.fromkeys(r["no_instructions"] for r in results if "no_instructions" in r)
    said = [f"by {', '.join(by)}"] if by else []
    said += [f"not where {'; '.join(why)}"] if why else []
    return f"Instructions of programs in C++ are counted {' and '.join(said) or 'by nothing here'}."


def table(results: list[Result], iterations: int, paper: dict[str, str], paper_title: str) -> Table:
    columns = [
        Column("µs per gradient", per_gradient(1e6)),
        Column("median", lambda r: r["median"] * 1e6),
        Column("times C++ eager", per_gradient(1e6), relative_to=BASE),
        Column(f"{iterations // 1000} 000 gradients, s", per_gradient(iterations)),
        Column(paper_title, lambda r: paper.get(r["row"])),
        Column("instructions per gradient", lambda r: r.get("instructions")),
        Column("resident MB, peak", lambda r: r["VmHWM"] / 1024 if "VmHWM" in r else None),
        Column("private MB", lambda r: r["private"] / 1024 if "private" in r else None),
    ]
    return Table("", columns, counted(results), plot="bar")


def tables(results: list[Result]) -> list[Table]:
    return [table(results, 100_000, PAPER, "the paper's, s (Linux / Windows)")]
