# benchmarks/live.py — what bt.viz.live() costs a training loop, in instructions
# SPDX-License-Identifier: MIT
"""Count the instructions of an update and of a step that it belongs to, with valgrind.

python benchmarks/live.py [milliseconds per step]

Instructions, because time is not repeatable to a percent. Under valgrind everything is slow, so
the view reads a clock that the loop moves by one step's time; the rest, process and pipe included,
is real. Each count is the difference of two runs, without what it takes to start.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from time import process_time

import burtorch as bt
from burtorch.viz import _live


def work(size: int) -> float:
    """Take the time of a training step."""
    x = 0.5
    for _ in range(size):
        x = x * 1.000001 + 1e-9
    return x


def size_of_step(milliseconds: float) -> int:
    def seconds() -> float:
        begin = process_time()
        work(10_000)
        return process_time() - begin

    return max(1, int(10 * milliseconds / min(seconds() for _ in range(50))))


def loop(kind: str, steps: int, size: int, milliseconds: float) -> None:
    """Run steps that only work, or only update a view."""
    clock = 0.0
    _live.monotonic = lambda: clock
    with tempfile.TemporaryDirectory() as folder:
        view = None if kind == "work" else bt.viz.live(Path(folder) / "run.png")
        for _ in range(steps):
            clock += milliseconds / 1000
            if view:
                view.update(loss=0.5, grad_norm=1.0)
            else:
                work(size)
        if view:
            view._forget()


def instructions(kind: str, steps: int, *arguments: object) -> int:
    valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    command = [sys.executable, __file__, "loop", kind, str(steps), *map(str, arguments)]
    done = subprocess.run([*valgrind, *command], stderr=subprocess.PIPE, text=True, check=True)
    found = re.search(r"Collected : (\d+)", done.stderr)
    assert found is not None, done.stderr
    return int(found[1])


def main() -> None:
    milliseconds = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    size = size_of_step(milliseconds)
    few, more = {"work": (100, 200), "view": (4000, 12000)}, {}
    for kind, (a, b) in few.items():
        counts = [instructions(kind, steps, size, milliseconds) for steps in (a, b)]
        more[kind] = (counts[1] - counts[0]) / (b - a)
    print(
        f"a step of {milliseconds:g} ms: {more['work']:,.0f} instructions; "
        f"an update: {more['view']:,.0f}, {more['view'] / more['work']:.3%} of that"
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["loop"]:
        loop(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))
    else:
        main()
