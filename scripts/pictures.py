# scripts/pictures.py — draws the paper's graphs for the README
# SPDX-License-Identifier: MIT
"""Write docs/tiny.svg and docs/small.svg."""

from __future__ import annotations

from pathlib import Path

import burtorch as bt
from burtorch._demo import GRAPHS

DOCS = Path(__file__).resolve().parents[1] / "docs"


def main() -> None:
    DOCS.mkdir(exist_ok=True)
    for name, graph, at, _ in GRAPHS:
        with bt.Tape():  # each counts its nodes from 0
            a, b = bt.Value(at[0], "a"), bt.Value(at[1], "b")
            g = graph(a, b)
            g.name = "g"
            g.backward()
            print(bt.viz.save(g, DOCS / f"{name}.svg"))


if __name__ == "__main__":
    main()
