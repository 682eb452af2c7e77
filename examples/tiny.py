# examples/tiny.py — the smallest program: an expression, its gradient, and how it was made
# SPDX-License-Identifier: MIT
"""The paper's tiny graph. Run: python examples/tiny.py"""

from __future__ import annotations

import burtorch as bt


def main() -> None:
    a = bt.Value(-41.0, name="a")
    b = bt.Value(2.0, name="b")
    c = a + b
    d = a * b + b**3
    e = c - d
    f = e**2
    g = f / 2

    g.backward()
    print(f"g = {g.data}")  # g = 612.5
    print(f"dg/da = {a.grad}, dg/db = {b.grad}")  # dg/da = -35.0, dg/db = 1050.0
    print(f"dg/de = {e.grad}")  # dg/de = 35.0: every node in between has its derivative, too

    # A Value remembers its operation and its operands; numbers are not nodes, but are remembered.
    print(f"g = {g.op}(f, {g.args[1]})")  # g = div(f, 2.0)
    print(f"e = {e.op}(c, d): {e.args == (c, d)}")  # e = sub(c, d): True

    # Gradients of leaves add up over backward() until they are zeroed.
    g.backward()
    print(f"after a second backward: dg/da = {a.grad}")  # after a second backward: dg/da = -70.0
    bt.zero_grad()
    print(f"after zero_grad: dg/da = {a.grad}")  # after zero_grad: dg/da = 0.0


if __name__ == "__main__":
    main()
