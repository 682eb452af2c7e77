# benchmarks/experiments/scaling.py — graphs of 10 to 10⁸ nodes, batches of 1 to 4 096, one and two threads
# SPDX-License-Identifier: MIT
from __future__ import annotations

import math
from collections.abc import Callable

from benchmarks.registry import Case, Job, Peer, cross
from benchmarks.report import Column, Get, Table, median, megabytes, per_gradient
from benchmarks.runner import Result

TITLE = "Scaling"
ORDER = 7
NODES = tuple(10**k for k in range(1, 9))
BATCHES = (1, 4, 16, 64, 256, 1024, 4096)
THREADS = (1, 2)
E, MICRO = 64, 64
THREADED = {  # work and parameters
    "mlp b=64": ("mlp", {"e": E, "b": 64, "micro": MICRO}),
    "mlp b=1024": ("mlp", {"e": E, "b": 1024, "micro": MICRO}),
    "gpt b=64": ("gpt", {"b": 64, "micro": 8}),
}


def jobs(peers: list[Peer], quick: bool) -> list[Job]:
    nodes = [n for n in NODES if not quick or n <= 10**7]
    chains = [Case("chain", f"n={n}", {"n": n}) for n in nodes]
    batches = [
        Case("mlp", f"batch {b}", {"e": E, "b": b, "micro": MICRO})
        for b in ((1, 64, 4096) if quick else BATCHES)
    ]
    threads = [
        Case(work, f"{name} threads {t}", {**how, "threads": t}, cores=t)
        for name, (work, how) in THREADED.items()
        for t in THREADS
    ]
    own = [peer for peer in peers if peer.is_own]
    eager = [job for job in cross(peers, batches) if not job.way.is_slow]
    return cross(peers, chains) + eager + cross(own, threads)


def exponent(points: list[tuple[float, float]]) -> float:
    """Return the slope of the line through the points' logarithms."""
    xs, ys = [math.log(x) for x, _ in points], [math.log(y) for _, y in points]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys)) / sum((a - x) ** 2 for a in xs)


def tables(results: list[Result]) -> list[Table]:
    there = {r["case"] for r in results}

    def columns(
        template: str, xs: tuple[int, ...], get: Callable[[int], Get], beside: Get | None = None
    ) -> list[Column]:
        return [
            Column(template.format(x), get(x), template.format(x), x=x, beside=beside)
            for x in xs
            if template.format(x) in there
        ]

    def rate(n: int) -> Callable[[Result], float]:
        return lambda r: n / r["min"] / 1e6

    mlp = f"CharMLP, e={E}, micro-batch {MICRO} where there is one"
    found = [
        Table("Chains of n nodes: millions of nodes per second, forward and backward", columns("n={}", NODES, rate), "", "line", "nodes"),
        Table("Chains: bytes per node", columns("n={}", NODES, lambda n: lambda r: r.get("bytes_per_node"))),
        Table(f"{mlp}: ms per gradient", columns("batch {}", BATCHES, lambda b: per_gradient(1e3), median(1e3)), "", "line", "batch"),
        Table(f"{mlp}: peak resident MB", columns("batch {}", BATCHES, lambda b: megabytes("VmHWM")), "", "line", "batch"),
        Table("Threads: ms per gradient", [c for name in THREADED for c in columns(f"{name} threads {{}}", THREADS, lambda t: per_gradient(1e3), median(1e3))]),
    ]  # fmt: skip
    return [table for table in found if table.columns]


def notes(results: list[Result]) -> list[str]:
    """Return the exponents of growth: 1 is linear, 0 is flat."""
    lines = []
    for prefix, key, least, what in (
        ("n=", "min", 1000, "time by nodes, from 1 000 on"),
        ("batch ", "min", MICRO, f"time by batch, from {MICRO} on"),
        ("batch ", "VmHWM", MICRO, f"peak memory by batch, from {MICRO} on"),
    ):
        for row in dict.fromkeys(r["row"] for r in results):
            points = [
                (float(r["case"][len(prefix) :]), float(r[key]))
                for r in results
                if r["row"] == row and r["case"].startswith(prefix) and key in r
            ]
            points = [point for point in points if point[0] >= least]
            if len(points) > 1:
                lines.append(f"{row}, {what}: grows with exponent {exponent(points):.2f}")
    return lines
