# benchmarks/experiments/kernels.py — the kernels at the sizes of the paper's models, beside plain loops
# SPDX-License-Identifier: MIT
from __future__ import annotations

from collections.abc import Callable

from benchmarks.registry import Case, Job, Peer, cross
from benchmarks.report import Column, Table, per_gradient
from benchmarks.runner import Result
from benchmarks.works import KERNELS, PRODUCTS

TITLE = "Kernels, FP32"
ORDER = 23
LAYERS = {  # name: samples m, inputs k, outputs n
    **{
        f"MLP e={e} b={b}": (b, 1024, e)
        for b in (1, 8, 32, 64)
        for e in (4, 16, 64, 128, 512, 1024)
    },
    **{f"MLP e={e} b={b}, output": (b, e, 27) for b in (1, 64) for e in (64, 1024)},
    **{
        f"GPT {k} to {n}, {s} samples": (8 * s, k, n)
        for s in (1, 8)
        for k, n in ((24, 72), (24, 24), (24, 96), (96, 24), (24, 65))
    },
}
QUICK = ("MLP e=64 b=1", "MLP e=64 b=64", "MLP e=1024 b=1", "GPT 24 to 72, 8 samples")


def jobs(peers: list[Peer], quick: bool) -> list[Job]:
    layers = {name: LAYERS[name] for name in QUICK} if quick else LAYERS
    products = [
        Case(work, f"{name}: {work}", {"m": m, "k": k, "n": n})
        for name, (m, k, n) in layers.items()
        for work in PRODUCTS
        if work in PRODUCTS[:3] or m == 1
    ]
    return cross(peers, [*products, *(Case(work, work) for work in KERNELS)])


def tables(results: list[Result]) -> list[Table]:
    there = {r["case"] for r in results}

    def rate(name: str, work: str) -> Callable[[Result], float]:
        m, k, n = LAYERS[name]
        flops = (4 if work == "fused backward" else 2) * m * k * n
        return lambda r: flops / r["min"] / 1e9

    found = []
    for name in LAYERS:
        columns = [
            Column(work, rate(name, work), f"{name}: {work}")
            for work in PRODUCTS
            if f"{name}: {work}" in there
        ]
        if columns:
            found.append(Table(f"{name}, GFLOP/s", columns))
    others = [Column(f"{work}, ns", per_gradient(1e9), work) for work in KERNELS if work in there]
    if others:
        found.append(Table("Others, as a sample of the GPT calls them", others))
    return found
