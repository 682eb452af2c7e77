# examples/logistic_regression.py — which side of a line a point is on, learnt from examples
# SPDX-License-Identifier: MIT
"""Logistic regression with plain Values and an optimizer. The C++ twin is logistic_regression.cpp.

Run: python examples/logistic_regression.py
"""

from __future__ import annotations

import burtorch as bt

# Points of a grid, and whether they lie above the line y = 2x - 1; those very near it are left out.
GRID = [(x / 4, y / 4) for x in range(-8, 9) for y in range(-8, 9)]
POINTS = [(x, y, 1.0 if y > 2 * x - 1 else -1.0) for x, y in GRID if abs(y - 2 * x + 1) > 0.2]


def main() -> None:
    weights, bias = [bt.Value(0.0), bt.Value(0.0)], bt.Value(0.0)
    optimizer = bt.optim.SGD([*weights, bias], lr=0.5, momentum=0.9)
    tape = bt.current_tape()
    for step in range(101):
        optimizer.zero_grad()
        with tape.scope():  # the graph of this step is forgotten at the end
            scores = [weights[0] * x + weights[1] * y + bias for x, y, _ in POINTS]
            # The chance of being above is sigmoid(score); softplus(-s) is -log(sigmoid(s)).
            loss = bt.reduce_mean(
                [bt.softplus(-side * s) for s, (_, _, side) in zip(scores, POINTS)]
            )
            loss.backward()
            right = sum(s.data * side > 0 for s, (_, _, side) in zip(scores, POINTS))
            if step % 25 == 0:
                print(f"step {step:3}: loss {loss.data:.4f}, {right} of {len(POINTS)} right")
        optimizer.step()
    w, b = [v.data for v in weights], bias.data
    print(f"the line: y = {-w[0] / w[1]:.1f} x {-b / w[1]:+.1f}")  # y = 2.0 x -1.0


if __name__ == "__main__":
    main()
