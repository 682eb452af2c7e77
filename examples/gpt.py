# examples/gpt.py — a small transformer learns a text by heart
# SPDX-License-Identifier: MIT
"""GPT: every next character of a sequence. The C++ twin is gpt.cpp; `burtorch train gpt` does it in earnest.

Run: python examples/gpt.py
"""

from __future__ import annotations

import burtorch as bt
import numpy as np

TEXT = "round and round the ragged rock the ragged rascal ran. "
CONTEXT = 8


def main() -> None:
    characters = sorted(set(TEXT))
    ids = np.array([characters.index(c) for c in TEXT * 2])
    starts = np.arange(len(TEXT))
    x = ids[starts[:, None] + np.arange(CONTEXT)]
    y = ids[starts[:, None] + np.arange(CONTEXT) + 1]  # the same, one further

    model = bt.nn.GPT(vocab=len(characters), layers=2, dtype="float64")
    optimizer = bt.optim.AdamW(model, lr=bt.optim.Cosine(0.02, steps=101, warm_up=10))
    for step in range(101):
        loss = model.loss_and_grad(x, y, micro_batch=16)
        bt.optim.clip_by_norm(model, 1.0)
        if step % 25 == 0:
            print(f"step {step:3}: loss {loss:.2f}")
        optimizer.step()
    start = [characters.index(c) for c in "round an"]
    text = model.generate(40, start=start, temperature=0.1)
    print(f"round an...{''.join(characters[i] for i in text)}")


if __name__ == "__main__":
    main()
