# scripts/make_optim_reference.py — makes tests/data/optim_reference.json with torch.optim
# SPDX-License-Identifier: MIT
"""Run every optimizer for 100 steps on a small function and store where it goes.

Needs torch==2.13.0; the tests do not: python scripts/make_optim_reference.py
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "tests" / "data" / "optim_reference.json"
STEPS = 100
AFTER = (1, 2, 10, STEPS)
START = [1.5, -2.0, 0.25, 3.0, -0.5, 0.0, 10.0]

# Names and options are the same in torch.optim and burtorch.optim.
CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("plain", "SGD", {"lr": 0.05}),
    ("weight decay", "SGD", {"lr": 0.05, "weight_decay": 0.1}),
    ("momentum", "SGD", {"lr": 0.02, "momentum": 0.9}),
    ("dampening", "SGD", {"lr": 0.02, "momentum": 0.9, "dampening": 0.3}),
    ("Nesterov", "SGD", {"lr": 0.02, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    ("default", "Adam", {}),
    ("fast", "Adam", {"lr": 0.1, "betas": [0.8, 0.95], "eps": 1e-6}),
    ("weight decay", "Adam", {"lr": 0.05, "weight_decay": 0.1}),
    ("default", "AdamW", {"lr": 0.05}),
    ("weight decay", "AdamW", {"lr": 0.05, "weight_decay": 0.3}),
]


def gradient(x: list[float], step: int) -> list[float]:
    """A valley that sways: each coordinate is drawn to a place of its own, and disturbed."""
    return [(i + 1) * 0.3 * (v - i) + 0.5 * math.cos(step + i) for i, v in enumerate(x)]


def main() -> None:
    import torch

    out = []
    for what, name, options in CASES:
        for dtype in ("float64", "float32"):
            x = torch.tensor(START, dtype=getattr(torch, dtype), requires_grad=True)
            given = {k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}
            optimizer = getattr(torch.optim, name)([x], **given)
            values = {}
            for step in range(1, STEPS + 1):
                x.grad = torch.tensor(gradient(x.tolist(), step), dtype=x.dtype)
                optimizer.step()
                if step in AFTER:
                    values[str(step)] = x.tolist()
            out.append(
                {"name": what, "optimizer": name, "options": options, "dtype": dtype}
                | {"values": values}
            )
    text = ",\n".join(f"  {json.dumps(case)}" for case in out)
    OUTPUT.write_text(f"[\n{text}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
