# tests/test_losses.py — mse_loss, huber_loss, bce_with_logits against their closed forms
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any, Callable

import burtorch as bt
import numpy as np
import pytest

X = np.random.default_rng(3).uniform(-4.0, 4.0, (3, 5))
Y = np.random.default_rng(4).uniform(0.0, 1.0, (3, 5))
D = X - Y
FORMS: dict[str, tuple[Callable[..., Any], Any, Any, Any]] = {  # the loss, each number's, its slopes
    "mse": (bt.mse_loss, D**2, 2 * D, -2 * D),
    "huber": (bt.huber_loss, np.where(abs(D) < 1, D**2 / 2, abs(D) - 0.5), np.clip(D, -1, 1), -np.clip(D, -1, 1)),
    "bce": (bt.bce_with_logits, np.log1p(np.exp(X)) - X * Y, 1 / (1 + np.exp(-X)) - Y, -X),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", FORMS)
def test_values_and_gradients(name: str, reduction: str, dtype: str) -> None:
    loss, each, by_x, by_y = FORMS[name]
    close = 1e-12 if dtype == "float64" else 1e-5
    with bt.Tape(dtype):
        x, y = bt.matrix(X), bt.matrix(Y)
        got = loss(x, y, reduction=reduction)
        want = each if reduction == "none" else getattr(each, reduction)()
        np.testing.assert_allclose(got.data, want, rtol=close, atol=close)
        (got.sum() if reduction == "none" else got).backward()
        scale = 1 / X.size if reduction == "mean" else 1.0
        np.testing.assert_allclose(x.grad, scale * by_x, rtol=close, atol=close)
        np.testing.assert_allclose(y.grad, scale * by_y, rtol=close, atol=close)
        assert loss(x, Y).data == pytest.approx(loss(x, y).data, abs=0)


@pytest.mark.parametrize("name", FORMS)
def test_second_derivatives(name: str) -> None:
    loss = FORMS[name][0]

    def f(x: Any) -> Any:
        return loss(bt.vector(x), Y[0])

    bt.check_grad(f, X[0])
    second = {"mse": np.full(5, 2.0), "huber": (abs(D[0]) < 1) * 1.0, "bce": None}[name]
    if second is None:
        s = 1 / (1 + np.exp(-X[0]))
        second = s * (1 - s)
    gradient = bt.grad(f)
    for i in range(5):
        row = bt.grad(lambda z, i=i: gradient(z)[i])(X[0])
        np.testing.assert_allclose(row, np.eye(5)[i] * second[i] / 5, rtol=1e-10, atol=1e-12)


def test_far_away_and_delta() -> None:
    x = bt.vector([1000.0, -1000.0])
    assert bt.bce_with_logits(x, np.array([1.0, 0.0])).data == 0
    assert bt.huber_loss(x, np.zeros(2), delta=2.0, reduction="sum").data == 2 * 2 * 999.0


def test_mistakes_are_named() -> None:
    x = bt.vector([1.0, 2.0])
    with pytest.raises(
        ValueError, match=r"mse_loss: predictions of shape \(2,\) and targets of shape \(1, 2\)"
    ):
        bt.mse_loss(x, np.zeros((1, 2)))
    with pytest.raises(ValueError, match="'mean', 'sum' or 'none', not 'max'"):
        bt.mse_loss(x, x, "max")
    with pytest.raises(ValueError, match=r"delta is positive, not 0\.0"):
        bt.huber_loss(x, x, delta=0)
    with pytest.raises(TypeError, match="x is a View, not float"):
        bt.mse_loss(1.0, 2.0)  # type: ignore[arg-type]
