# benchmarks/peers/timing.py — how a peer is timed: warm-up, rounds, the minimum
# SPDX-License-Identifier: MIT
from __future__ import annotations

import time
from typing import Callable


def report(step: Callable[[], object], budget: float = 2.0) -> None:
    """Print the seconds of the fastest of many calls, found within about `budget` seconds."""
    for _ in range(5):
        step()
    best, end = float("inf"), time.perf_counter() + budget
    while time.perf_counter() < end:
        for _ in range(5):
            start = time.perf_counter()
            step()
            best = min(best, time.perf_counter() - start)
    print(best)
