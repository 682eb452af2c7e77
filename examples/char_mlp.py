# examples/char_mlp.py — the paper's MLP learns to make up words
# SPDX-License-Identifier: MIT
"""CharMLP: the next character from the 16 before it. The C++ twin is char_mlp.cpp.

Run: python examples/char_mlp.py
"""

from __future__ import annotations

import burtorch as bt
import numpy as np

WORDS = "apple apricot banana blueberry cherry date fig grape lemon lime mango melon"
ALPHABET = ".abcdefghijklmnopqrstuvwxyz"  # index 0 ends a word
CONTEXT = 16


def samples() -> tuple[np.ndarray, np.ndarray]:
    """For every character of every word: those before it, padded with index 0, and itself."""
    x, y = [], []
    for word in WORDS.split():
        before = [0] * CONTEXT
        for character in word + ".":
            index = ALPHABET.index(character)
            x.append(before)
            y.append(index)
            before = [*before[1:], index]
    return np.array(x), np.array(y)


def main() -> None:
    x, y = samples()
    model = bt.nn.CharMLP(hidden=16, dtype="float64")
    print(f"{model.num_parameters} parameters, {len(y)} samples")  # 18587 parameters
    optimizer = bt.optim.Adam(model, lr=0.003)
    for step in range(201):
        loss = model.loss_and_grad(x, y, micro_batch=32)
        if step % 50 == 0:
            print(f"step {step:3}: loss {loss:.3f}")
        optimizer.step()
    text = "".join(ALPHABET[i] for i in model.generate(60, seed=1))
    print(f"some of what it makes up: {text}")


if __name__ == "__main__":
    main()
