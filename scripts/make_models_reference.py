# scripts/make_models_reference.py — makes tests/data/models_reference.json with PyTorch
# SPDX-License-Identifier: MIT
"""The paper's two models in PyTorch; their losses and gradients at weights given by a formula.

Needs torch==2.13.0; the tests that read the file do not: python scripts/make_models_reference.py
tests/test_models_torch.py compares with these models directly where torch is installed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "tests" / "data" / "models_reference.json"

CONFIGS: list[tuple[str, dict[str, int]]] = [
    ("CharMLP", {"hidden": 12, "vocab": 27, "embed": 6, "context": 5}),
    ("CharMLP", {"hidden": 1, "vocab": 3, "embed": 2, "context": 1}),
    ("GPT", {"vocab": 19, "context": 8, "d_model": 24, "layers": 2, "heads": 6}),
    ("GPT", {"vocab": 5, "context": 3, "d_model": 4, "layers": 1, "heads": 4}),
]
BATCH = 5


def torch_model(kind: str, config: dict[str, int]) -> Any:
    """A module whose forward(x, y) is the mean loss, with parameters named as burtorch names them."""
    import torch
    from torch import nn
    from torch.nn import functional

    class CharMLP(nn.Module):
        def __init__(self, hidden: int, vocab: int, embed: int, context: int) -> None:
            super().__init__()
            self.wte = nn.Embedding(vocab, embed)
            self.mlp = nn.Sequential(
                nn.Linear(context * embed, hidden), nn.Tanh(), nn.Linear(hidden, vocab)
            )

        def forward(self, x: Any, y: Any) -> Any:
            return functional.cross_entropy(self.mlp(self.wte(x).flatten(1)), y)

    class Head(nn.Module):
        def __init__(self, d_model: int, size: int, context: int) -> None:
            super().__init__()
            self.key = nn.Linear(d_model, size, bias=False)
            self.query = nn.Linear(d_model, size, bias=False)
            self.value = nn.Linear(d_model, size, bias=False)
            self.register_buffer("tril", torch.tril(torch.ones(context, context)))

        def forward(self, x: Any) -> Any:
            weights = self.query(x) @ self.key(x).transpose(1, 2) * self.key.out_features**-0.5
            weights = weights.masked_fill(self.tril == 0, float("-inf"))
            return weights.softmax(-1) @ self.value(x)

    class Attention(nn.Module):
        def __init__(self, d_model: int, heads: int, context: int) -> None:
            super().__init__()
            self.heads = nn.ModuleList(
                Head(d_model, d_model // heads, context) for _ in range(heads)
            )
            self.proj = nn.Linear(d_model, d_model)

        def forward(self, x: Any) -> Any:
            return self.proj(torch.cat([head(x) for head in self.heads], -1))

    class FeedForward(nn.Module):
        def __init__(self, d_model: int) -> None:
            super().__init__()
            self.net = nn.Sequential(
                nn.Linear(d_model, 4 * d_model), nn.ReLU(), nn.Linear(4 * d_model, d_model)
            )

        def forward(self, x: Any) -> Any:
            return self.net(x)

    class Block(nn.Module):
        def __init__(self, d_model: int, heads: int, context: int) -> None:
            super().__init__()
            self.sa = Attention(d_model, heads, context)
            self.ffwd = FeedForward(d_model)
            self.ln1 = nn.LayerNorm(d_model)
            self.ln2 = nn.LayerNorm(d_model)

        def forward(self, x: Any) -> Any:
            x = x + self.sa(self.ln1(x))
            return x + self.ffwd(self.ln2(x))

    class GPT(nn.Module):
        def __init__(self, vocab: int, context: int, d_model: int, layers: int, heads: int) -> None:
            super().__init__()
            self.token_embedding_table = nn.Embedding(vocab, d_model)
            self.position_embedding_table = nn.Embedding(context, d_model)
            self.blocks = nn.Sequential(*(Block(d_model, heads, context) for _ in range(layers)))
            self.lm_head = nn.Linear(d_model, vocab)

        def forward(self, x: Any, y: Any) -> Any:
            positions = self.position_embedding_table(torch.arange(x.shape[1]))
            logits = self.lm_head(self.blocks(self.token_embedding_table(x) + positions))
            return functional.cross_entropy(logits.flatten(0, 1), y.flatten())

    return {"CharMLP": CharMLP, "GPT": GPT}[kind](**config)


def weights(shapes: dict[str, tuple[int, ...]]) -> dict[str, Any]:
    """Numbers that look random and are the same everywhere; in the order of the names given."""
    out, first = {}, 0
    for name, shape in shapes.items():
        n = int(np.prod(shape))
        out[name] = (0.4 * np.sin(1.7 * np.arange(first, first + n) + 0.3)).reshape(shape)
        first += n
    return out


def samples(kind: str, config: dict[str, int]) -> tuple[Any, Any]:
    shape = (BATCH, config["context"])
    x = (np.arange(BATCH * config["context"]).reshape(shape) * 7 + 3) % config["vocab"]
    y = (x * 5 + 1) % config["vocab"]
    return x, y if kind == "GPT" else y[:, -1].copy()


def probe(gradient: Any) -> list[float]:
    """Three numbers that nobody gets right with a wrong gradient."""
    flat = np.asarray(gradient, float).ravel()
    wave = np.cos(0.9 * np.arange(flat.size) + 0.1)
    return [float(flat[0]), float(np.linalg.norm(flat)), float(flat @ wave)]


def main() -> None:
    import torch

    out = []
    for kind, config in CONFIGS:
        model = torch_model(kind, config).double()
        named = {name: tuple(p.shape) for name, p in model.named_parameters()}
        state = {name: torch.tensor(w) for name, w in weights(named).items()}
        model.load_state_dict(state, strict=False)
        x, y = samples(kind, config)
        loss = model(torch.tensor(x), torch.tensor(y))
        loss.backward()
        probes = {name: probe(p.grad) for name, p in model.named_parameters()}
        out.append({"model": kind, "config": config, "loss": loss.item(), "gradients": probes})
    text = ",\n".join(f"  {json.dumps(case)}" for case in out)
    OUTPUT.write_text(f"[\n{text}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
