# examples/per_sample_gradients.py — the gradient of each sample, and two uses of them
# SPDX-License-Identifier: MIT
"""Frameworks give the mean gradient of a batch. Here each sample's own costs the same: samples are
computed one after the other anyway. The C++ twin is per_sample_gradients.cpp.

Run: python examples/per_sample_gradients.py
"""

from __future__ import annotations

import burtorch as bt
import numpy as np


def main() -> None:
    model = bt.nn.CharMLP(hidden=8, vocab=5, embed=4, context=3, dtype="float64")
    x = np.array([[i % 5, (i + 1) % 5, (i + 2) % 5] for i in range(20)])
    y = (x[:, 2] + 1) % 5
    y[7] = 3  # one label is wrong: all others say "the next letter"

    each = model.per_sample_grads(x, y)
    model.loss_and_grad(x, y)
    print(f"shape: {each.shape}, mean is the gradient: {np.allclose(each.mean(0), model.grads)}")

    # The sample that pulls against all others is the one with the wrong label.
    for _ in range(100):
        model.loss_and_grad(x, y, micro_batch=20)
        model.values -= 0.5 * model.grads
    each = model.per_sample_grads(x, y)
    lengths = np.linalg.norm(each, axis=1)
    most = lengths.argmax()  # 7
    print(f"the largest gradient, of length {lengths[most]:.3f}, is of sample {most}")

    # Clipping each before averaging bounds what one sample can do (as differential privacy needs).
    bounded = each * np.minimum(1, 0.1 / lengths)[:, None]
    print(f"longest after clipping: {np.linalg.norm(bounded, axis=1).max():.3f}")  # 0.100


if __name__ == "__main__":
    main()
