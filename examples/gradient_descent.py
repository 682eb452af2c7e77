# examples/gradient_descent.py — a line through points, by gradient descent on single numbers
# SPDX-License-Identifier: MIT
"""Least squares in the manner of micrograd: names are rebound in a loop, and nothing else is managed.

Run: python examples/gradient_descent.py
"""

from __future__ import annotations

import burtorch as bt

# Points on y = 3x - 1, each moved up or down by 1/2.
POINTS = [(x / 4, 3 * x / 4 - 1 + (0.5 if x % 2 else -0.5)) for x in range(8)]
STEPS = 200
RATE = 0.1


def mean_squared_error(slope: bt.Value, offset: bt.Value) -> bt.Value:
    return bt.reduce_mean_squares([slope * x + offset - y for x, y in POINTS])


def main() -> None:
    slope, offset = bt.Value(0.0), bt.Value(0.0)
    for step in range(STEPS + 1):
        loss = mean_squared_error(slope, offset)
        bt.zero_grad()
        loss.backward()
        if step % 50 == 0:
            print(
                f"step {step:3}: loss {loss.data:.6f}, y = {slope.data:.4f} x + {offset.data:.4f}"
            )
        slope.data -= RATE * slope.grad
        offset.data -= RATE * offset.grad
    # step   0: loss 6.218750, y = 0.0000 x + 0.0000
    # step 200: loss 0.238097, y = 3.1885 x + -1.1645; least squares gives 67/21 x - 7/6

    # A step records two dozen nodes. What no name reaches any more does not stay on the tape.
    print(f"after {STEPS} steps the tape is small: {len(bt.current_tape()) < 1000}")  # True


if __name__ == "__main__":
    main()
