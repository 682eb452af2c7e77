# examples/two_moons.py — a small network tells two half moons apart; its decision boundary is drawn
# SPDX-License-Identifier: MIT
"""Layers on views: one block per layer for all points at once. The C++ twin is two_moons.cpp.

Run: python examples/two_moons.py [two_moons.png] (the picture needs Matplotlib; text is always printed)
"""

from __future__ import annotations

import math
import sys

import burtorch as bt
import numpy as np

ROWS, COLUMNS = 18, 60


def moons(n: int) -> tuple[np.ndarray, np.ndarray]:
    random = bt.Random(1)
    points, labels = [], []
    for i in range(n):
        angle, upper = math.pi * random.uniform(), i % 2
        x = math.cos(angle) if upper else 1 - math.cos(angle)
        y = math.sin(angle) if upper else 0.5 - math.sin(angle)
        points.append((x + 0.1 * random.normal(), y + 0.1 * random.normal()))
        labels.append(upper)
    return np.array(points), np.array(labels)


def opinions(network: bt.nn.MLP) -> np.ndarray:
    """How much the network says upper moon at every place of a grid: above 0 where it does."""
    x = -1.5 + 4.0 * np.arange(COLUMNS) / COLUMNS
    y = 1.4 - 2.4 * np.arange(ROWS) / ROWS
    with bt.current_tape().scope():
        scores = network(bt.matrix([(a, b) for b in y for a in x])).data
    grid: np.ndarray = (scores[:, 1] - scores[:, 0]).reshape(ROWS, COLUMNS)
    return grid


def draw(grid: np.ndarray, points: np.ndarray, labels: np.ndarray) -> None:
    """Print '#' where the network says upper moon and '.' where it says lower; points as 1 and 0."""
    picture = [["#" if z > 0 else "." for z in row] for row in grid]
    for (x, y), label in zip(points, labels):
        r, c = int((1.4 - y) / 2.4 * ROWS), int((x + 1.5) / 4.0 * COLUMNS)
        if 0 <= r < ROWS and 0 <= c < COLUMNS:
            picture[r][c] = str(label)
    print("\n".join("".join(row) for row in picture))


def main() -> None:
    points, labels = moons(100)
    network = bt.nn.MLP([2, 16, 16, 2], activation="tanh", random=bt.Random(0))
    optimizer = bt.optim.Adam(network, lr=0.02)
    for step in range(201):
        optimizer.zero_grad()
        with bt.current_tape().scope():  # the graph of this step is forgotten at the end
            logits = network(bt.matrix(points))
            loss = bt.cross_entropy(logits, labels)
            loss.backward()
            right = (logits.data.argmax(1) == labels).sum()
            if step % 50 == 0:
                print(f"step {step:3}: loss {loss.data:.4f}, {right} of {len(labels)} right")
        optimizer.step()
    grid = opinions(network)
    draw(grid, points, labels)
    if len(sys.argv) > 1:
        bt.viz.run_script(bt.viz.heatmap_basic_script(grid, title="two moons"), sys.argv[1])


if __name__ == "__main__":
    main()
