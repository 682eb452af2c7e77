# examples/two_moons.py — a small network tells two half moons apart; its decision boundary is drawn
# SPDX-License-Identifier: MIT
"""A network of single neurons, as in micrograd. The C++ twin, with layers on views, is two_moons.cpp.

Run: python examples/two_moons.py [two_moons.png] (the picture needs Matplotlib; text is always printed)
"""

from __future__ import annotations

import math
import random
import sys

import burtorch as bt
from burtorch.micrograd import nn

ROWS, COLUMNS = 18, 60
Point = tuple[float, float, int]


def moons(n: int) -> list[Point]:
    points = []
    for i in range(n):
        angle, upper = math.pi * random.random(), i % 2
        x = math.cos(angle) if upper else 1 - math.cos(angle)
        y = math.sin(angle) if upper else 0.5 - math.sin(angle)
        points.append((x + random.gauss(0, 0.1), y + random.gauss(0, 0.1), upper))
    return points


def boundary(network: nn.MLP) -> list[list[float]]:
    """The network's opinion of every place: above 0 where it says upper moon."""
    rows = []
    for r in range(ROWS):
        row = []
        for c in range(COLUMNS):
            with bt.current_tape().scope():
                row.append(network([-1.5 + 4.0 * c / COLUMNS, 1.4 - 2.4 * r / ROWS]).data)
        rows.append(row)
    return rows


def draw(opinions: list[list[float]], points: list[Point]) -> None:
    """Print '#' where the network says upper moon and '.' where it says lower; points as 1 and 0."""
    picture = [["#" if z > 0 else "." for z in row] for row in opinions]
    for x, y, upper in points:
        r, c = int((1.4 - y) / 2.4 * ROWS), int((x + 1.5) / 4.0 * COLUMNS)
        if 0 <= r < ROWS and 0 <= c < COLUMNS:
            picture[r][c] = str(upper)
    print("\n".join("".join(row) for row in picture))


def main() -> None:
    random.seed(1)
    points = moons(100)
    network = nn.MLP(2, [8, 8, 1])
    optimizer = bt.optim.Adam(network, lr=0.05)
    for step in range(61):
        optimizer.zero_grad()
        with bt.current_tape().scope():
            scores = [network([x, y]) for x, y, _ in points]
            signs = [1 if upper else -1 for _, _, upper in points]
            loss = bt.reduce_mean([bt.softplus(-s * z) for s, z in zip(signs, scores)])
            loss.backward()
            right = sum(s * z.data > 0 for s, z in zip(signs, scores))
            if step % 20 == 0:
                print(f"step {step:3}: loss {loss.data:.3f}, {right} of {len(points)} right")
        optimizer.step()
    opinions = boundary(network)
    draw(opinions, points)
    if len(sys.argv) > 1:
        script = bt.viz.heatmap_basic_script(opinions, title="two moons")
        bt.viz.run_script(script, sys.argv[1])


if __name__ == "__main__":
    main()
