# tests/layer_support.py — PyTorch's numbers for layers, and gradients for given adjoints
# SPDX-License-Identifier: MIT
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import burtorch as bt
import numpy as np

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "data" / "layer_reference.json").read_text("utf-8")
)


def cases(*layers: str) -> list[dict[str, Any]]:
    return [each for each in CASES if each["layer"] in layers]


def variable(x: Any) -> bt.View:
    """Leaves of any shape: a row for each entry of the first dimension; a vector stays one."""
    x = np.asarray(x, dtype=float)
    return bt.vector(x) if x.ndim == 1 else bt.matrix(x.reshape(x.shape[0], -1))


def close(got: Any, want: Any) -> None:
    """Numbers are the same but for rounding, whatever their shape."""
    want = np.asarray(want)
    error = 1e-4 if bt.current_tape().dtype == "float32" else 1e-11
    np.testing.assert_allclose(np.asarray(got).reshape(want.shape), want, rtol=error, atol=error)


def pull(results: list[bt.View], adjoints: list[Any]) -> None:
    """Gradients of Σ result·adjoint."""
    total: Any = 0.0
    for y, adjoint in zip(results, adjoints):
        numbers = np.asarray(adjoint, dtype=y.data.dtype).reshape(y.shape)
        total = (y * numbers).sum() + total
    bt.backward(total)
