# examples/tapes.py — memory under control: tapes, marks, scopes, and NumPy views of everything
# SPDX-License-Identifier: MIT
"""What stands behind the Values. Run: python examples/tapes.py"""

from __future__ import annotations

import burtorch as bt
import numpy as np


def main() -> None:
    # A tape holds all values and gradients in two arrays. Entering one makes it the current one.
    with bt.Tape(dtype="float32", capacity=1000) as tape:
        weights = [bt.Value(w) for w in (0.5, -1.0, 0.75)]
        x = [bt.Value(1.0), bt.Value(2.0), bt.Value(3.0)]
        y = bt.inner_product(weights, x).tanh()
        y.backward()
    print(f"{len(tape)} nodes: {np.round(tape.values, 4)}")
    # 8 nodes: three weights, three inputs, the inner product 0.75, its tanh 0.6351

    # The views share the tape's memory: training all parameters at once is one line of NumPy.
    tape.values[:3] -= 0.1 * tape.grads[:3]
    print(f"weights after a step: {[round(w.data, 4) for w in weights]}")  # 0.4403, -1.1193, 0.571

    # mark() is a position; rewind() drops all that was recorded since, in a few instructions.
    mark = tape.mark()
    for target in (0.0, 1.0):
        error = (bt.inner_product(weights, x) - target) ** 2
        print(f"target {target}: error {error.data:.2f} with {len(tape)} nodes")
        tape.rewind(mark)
    # The size was the same both times: the second graph took the place of the first.

    # A handle to a node that is gone says so; it never reads the number of another node.
    try:
        print(error.data)
    except bt.StaleHandleError as stale:
        print(f"StaleHandleError: {stale}")

    # scope() marks, enters and rewinds.
    with tape.scope():
        doubled = [2 * w for w in weights]
        print(f"inside the scope: {len(tape)} nodes, {[round(v.data, 2) for v in doubled]}")
    print(f"after it: {len(tape)} nodes")

    # What is collected is what no Value reaches any more.
    del mark, x, y, error, doubled
    tape.collect()
    print(f"only the weights are left: {np.round(tape.values, 2)}")


if __name__ == "__main__":
    main()
