# benchmarks/eager.py — the paper's tiny and small graph from Python, against micrograd
# SPDX-License-Identifier: MIT
"""Contenders take turns; the minimum counts. Run: .venv/bin/python benchmarks/eager.py

micrograd is a peer, not a dependency: `pip install micrograd`, else it is shown as missing.
"""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import burtorch as bt

try:
    from micrograd.engine import Value as MicrogradValue
except ImportError:
    MicrogradValue = None


# The experiment of the paper: the graph is built anew in every iteration.
def tiny(value: Any, count: int) -> tuple[float, float, float]:
    for _ in range(count):
        a = value(-41.0)
        b = value(2.0)
        c = a + b
        d = a * b + b**3
        e = c - d
        f = e**2
        g = f / 2
        g.backward()
    return g.data, a.grad, b.grad


def small(value: Any, count: int) -> tuple[float, float, float]:
    for _ in range(count):
        a = value(-4.0)
        b = value(2.0)
        c = a + b
        d = a * b + b**3
        c += c + 1
        c += 1 + c - a
        d += d * 2 + (b + a).relu()
        d += 3 * d + (b - a).relu()
        e = c - d
        f = e**2
        g = f / 2
        g += 10.0 / f
        g.backward()
    return g.data, a.grad, b.grad


def seconds(loop: Any, value: Any, count: int) -> float:
    start = time.perf_counter()
    loop(value, count)
    return (time.perf_counter() - start) / count


def race(loop: Any, rounds: int = 15) -> list[float]:
    kinds = [(bt.Value, 20000)] + ([(MicrogradValue, 500)] if MicrogradValue else [])
    results = [loop(kind, 1) for kind, _ in kinds]
    if any(abs(x - y) > 1e-12 * abs(y) for r in results for x, y in zip(r, results[0])):
        raise SystemExit(f"{loop.__name__}: the contenders disagree: {results}")
    best = [float("inf")] * len(kinds)
    for _ in range(rounds):
        for i, (kind, count) in enumerate(kinds):
            best[i] = min(best[i], seconds(loop, kind, count))
    return best


def process(program: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def main() -> None:
    for loop in (tiny, small):
        best = race(loop)
        peer = (
            f"micrograd {best[1] * 1e6:.2f} µs, {best[1] / best[0]:.1f} times"
            if best[1:]
            else "micrograd missing"
        )
        print(f"{loop.__name__:<6} burtorch {best[0] * 1e6:.3f} µs, {peer} (asked: 40 times)")
    measure = """
import sys, time, numpy
def resident():  # in KB, as the system counts it
    return next(int(line.split()[1]) for line in open("/proc/self/status") if "VmRSS" in line)
memory, start = resident(), time.perf_counter()
import burtorch as bt
print((time.perf_counter() - start) * 1e3, (resident() - memory) / 1024)
memory = resident(); v = [bt.Value(1.0) for _ in range(10**6)]
print((resident() - memory) * 1024 / 1e6)
"""
    runs = [[float(x) for x in process(measure)] for _ in range(5)]
    load, memory, size = (min(column) for column in zip(*runs))
    print(f"import beyond NumPy: {load:.0f} ms, {memory:.1f} MB (asked: 100 ms, 15 MB)")
    print(f"a million live Values: {size:.0f} bytes each (asked: 120)")


if __name__ == "__main__":
    main()
