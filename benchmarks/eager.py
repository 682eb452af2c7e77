# benchmarks/eager.py — the paper's tiny and small graph from Python, against micrograd
# SPDX-License-Identifier: MIT
"""Contenders take turns; the minimum counts. Run: .venv/bin/python benchmarks/eager.py

micrograd is a peer, not a dependency: `pip install micrograd`, else it is shown as missing.
"""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any, Callable

import burtorch as bt
from burtorch._demo import GRAPHS, gradient

try:
    from micrograd.engine import Value as MicrogradValue
except ImportError:
    MicrogradValue = None


def seconds(work: Callable[[], object], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        work()
    return (time.perf_counter() - start) / count


def race(graph: Any, at: tuple[float, float], rounds: int = 15) -> list[float]:
    kinds = [(bt.Value, 20000)] + ([(MicrogradValue, 500)] if MicrogradValue else [])
    best = [float("inf")] * len(kinds)
    for _ in range(rounds):
        for i, (kind, count) in enumerate(kinds):
            best[i] = min(best[i], seconds(lambda kind=kind: gradient(kind, graph, *at), count))
    return best


def process(program: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def main() -> None:
    for name, graph, at, _ in GRAPHS:
        best = race(graph, at)
        peer = (
            f"micrograd {best[1] * 1e6:.2f} µs, {best[1] / best[0]:.1f} times"
            if best[1:]
            else "micrograd missing"
        )
        print(f"{name:<6} burtorch {best[0] * 1e6:.3f} µs, {peer} (asked: 40 times)")
    measure = (
        "import time, resource, numpy; m = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "k, t = m(), time.perf_counter()\n"
        "import burtorch as bt\n"
        "print((time.perf_counter() - t) * 1e3, (m() - k) / 1024)\n"
        "k = m(); v = [bt.Value(1.0) for _ in range(10**6)]; print((m() - k) * 1024 / 1e6)"
    )
    runs = [[float(x) for x in process(measure)] for _ in range(5)]
    load, memory, size = (min(column) for column in zip(*runs))
    print(f"import beyond NumPy: {load:.0f} ms, {memory:.1f} MB (asked: 100 ms, 15 MB)")
    print(f"a million live Values: {size:.0f} bytes each (asked: 120)")


if __name__ == "__main__":
    main()
