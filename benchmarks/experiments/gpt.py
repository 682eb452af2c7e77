# benchmarks/experiments/gpt.py — GPT of 46 289 parameters, batches of 1 to 64
# SPDX-License-Identifier: MIT
from __future__ import annotations

from benchmarks.registry import Case, Job, Peer, cross
from benchmarks.report import Column, Table, median, megabytes, per_gradient
from benchmarks.runner import Result

TITLE = "GPT, 46 289 parameters, FP32"
ORDER = 5
BATCHES = (1, 2, 4, 8, 16, 32, 64)
PAPER = (
    "The paper's, Linux, ms: BurTorch 0.91 1.61 3.22 6.11 12.4 23.8 58.5 in 22.3 MB; "
    "TorchScript 13.1 13.6 14.1 15.0 16.6 19.8 26.4 in 9 258 MB; "
    "PyTorch eager 16.1 16.6 17.0 17.8 19.5 22.5 28.4 in 9 111 MB."
)


def jobs(peers: list[Peer], quick: bool) -> list[Job]:
    return cross(peers, [Case("gpt", f"b={b}", {"b": b}, is_main=b == 1) for b in BATCHES])


def tables(results: list[Result]) -> list[Table]:
    batches = [b for b in BATCHES if f"b={b}" in {r["case"] for r in results}]
    times = [
        Column(f"b={b}", per_gradient(1e3), f"b={b}", x=b, beside=median(1e3)) for b in batches
    ]
    last = f"b={batches[-1]}" if batches else ""
    peaks = [
        Column(f"peak resident MB, {last}", megabytes("VmHWM"), last),
        Column("virtual", megabytes("VmPeak"), last),
    ]
    return [
        Table("ms per gradient", times, PAPER, "line", "batch"),
        Table("Memory", peaks),
    ]
