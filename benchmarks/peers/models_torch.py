# benchmarks/peers/models_torch.py — CharMLP and GPT in PyTorch, eager and compiled; prints seconds
# SPDX-License-Identifier: MIT
"""Run with an interpreter that has torch: python models_torch.py mlp 64 1 [compile]

Heads are batched: the form in which they are fastest.
"""

from __future__ import annotations

import sys

import torch
from timing import report
from torch import nn
from torch.nn import functional


class CharMLP(nn.Module):
    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.wte = nn.Embedding(27, 64)
        self.mlp = nn.Sequential(nn.Linear(1024, hidden), nn.Tanh(), nn.Linear(hidden, 27))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(self.mlp(self.wte(x).flatten(1)), y)


class Block(nn.Module):
    def __init__(self, size: int = 24, heads: int = 6) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(size, 3 * size, bias=False)
        self.proj = nn.Linear(size, size)
        self.ffwd = nn.Sequential(nn.Linear(size, 4 * size), nn.ReLU(), nn.Linear(4 * size, size))
        self.ln1, self.ln2 = nn.LayerNorm(size), nn.LayerNorm(size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, c = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        out = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(out.transpose(1, 2).reshape(b, t, c))
        return x + self.ffwd(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, vocab: int = 65, context: int = 8, size: int = 24, layers: int = 6) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab, size), nn.Embedding(context, size)
        self.blocks = nn.Sequential(*[Block(size) for _ in range(layers)])
        self.head = nn.Linear(size, vocab)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        h = self.blocks(self.tokens(x) + self.positions.weight)
        return functional.cross_entropy(self.head(h).flatten(0, 1), y.flatten())


def main(kind: str, size: str, batch: str, *how: str) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    b = int(batch)
    if kind == "mlp":
        model: nn.Module = CharMLP(int(size))
        x, y = torch.randint(27, (b, 16)), torch.randint(27, (b,))
    else:
        model = GPT()
        x, y = torch.randint(65, (b, 8)), torch.randint(65, (b, 8))
    run = torch.compile(model) if "compile" in how else model
    parameters = list(model.parameters())

    def step() -> None:
        for p in parameters:
            p.grad = None
        run(x, y).backward()

    report(step)


if __name__ == "__main__":
    main(*sys.argv[1:])
