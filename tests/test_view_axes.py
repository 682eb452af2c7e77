# tests/test_view_axes.py — Views of any shape: what NumPy does along axes, and its gradients
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any, Callable

import burtorch as bt
import numpy as np
import pytest

NUMBERS = np.random.default_rng(7).uniform(-2.0, 2.0, (2, 3, 4))
OTHER = np.random.default_rng(8).uniform(0.5, 2.0, (3, 4))
CHOICE = NUMBERS > 0.25


def logsumexp(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    if isinstance(a, bt.View):
        return bt.logsumexp(a, axis, keepdims)
    return np.log(np.sum(np.exp(a), axis=axis, keepdims=keepdims))


# What is written once for arrays and for Views.
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "T": lambda x: x.T,
    "T of a matrix": lambda x: x[1].T,
    "T of a vector": lambda x: x[1, 1].T,
    "transpose": lambda x: x.transpose(1, 0, 2),
    "transpose by a tuple": lambda x: x.transpose((0, 2, 1)),
    "np.transpose": lambda x: np.transpose(x, (2, 0, 1)),
    "swapaxes": lambda x: np.swapaxes(x, 0, -1),
    "reshape": lambda x: x.reshape(4, -1) * 2.0,
    "expand_dims": lambda x: np.expand_dims(x, -1) * OTHER[0],
    "squeeze": lambda x: np.squeeze(x[:, :1], 1) * 2.0,
    "broadcast_to": lambda x: np.broadcast_to(x[:, :1], (5, 2, 3, 4)),
    "take": lambda x: np.take(x, [2, 0, 2], axis=1),
    "x + itself": lambda x: x + x,
    "x * row": lambda x: x * x[0, 0],
    "x * matrix": lambda x: x * x[1],
    "x * array": lambda x: x * OTHER,
    "array - x": lambda x: OTHER - x,
    "x - column": lambda x: x - np.mean(x, axis=-1, keepdims=True),
    "x / first": lambda x: x / np.exp(x[:1]),
    "x * middle": lambda x: x * x[:, :1],
    "both": lambda x: x[:, :1] * x[:1],
    "outer": lambda x: x[0, 0].reshape(4, 1) * x[0, 1],
    "apart": lambda x: x[:, :, :1] + x[:, :1] * 3.0,
    "one": lambda x: x * x[1, 2, 3],
    "maximum": lambda x: np.maximum(x, x[:1]),
    "stack": lambda x: np.stack([x[0], x[1], OTHER], axis=1),
    "stack last": lambda x: np.stack([x[0], x[1]], axis=-1),
    "concatenate": lambda x: np.concatenate([x, x[:, :2], NUMBERS[:, :1]], axis=1),
    "concatenate last": lambda x: np.concatenate([x, x[..., :1]], axis=-1),
    "hstack": lambda x: np.hstack([x[0], x[1]]),
    "split": lambda x: np.split(x, 2, axis=-1)[1] * 2.0,
    "split at places": lambda x: np.split(x, [1, 2], axis=1)[1] * 2.0,
    "where": lambda x: np.where(CHOICE, x, x * x),
    "where a row": lambda x: np.where(CHOICE, x[0, 0], 7.0),
    "where a column": lambda x: np.where(CHOICE[:, :1], x, -x),
    "clip": lambda x: np.clip(x, -1.0, 0.5),
    "clip by arrays": lambda x: np.clip(x, OTHER - 2.0, OTHER),
    "x @ matrix": lambda x: x @ OTHER.T,
    "x @ vector": lambda x: x @ OTHER[0],
    "vector @ x": lambda x: OTHER[:, 0] @ x,
    "matrices @ matrices": lambda x: x @ x.transpose(0, 2, 1),
    "matrix @ matrices": lambda x: OTHER @ x.transpose(0, 2, 1),
    "matrices @ one": lambda x: x @ x[:1].transpose(0, 2, 1),
    "vector @ views": lambda x: x[0, :, 0] @ x,
}


def along(f: Callable[..., Any], axis: Any, keepdims: bool) -> Callable[[Any], Any]:
    return lambda x: f(x, axis=axis, keepdims=keepdims)


REDUCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in ("sum", "mean", "max", "min", "var")},
    "logsumexp": logsumexp,
}
FUNCTIONS |= {
    f"{name} {axis} {keepdims}": along(f, axis, keepdims)
    for name, f in REDUCTIONS.items()
    for axis in (None, 0, 1, -1, (0, 1), (0, 2), (1, 2), (0, 1, 2))
    for keepdims in (False, True)
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_are_numpys_and_gradients_are_differences(name: str, dtype: str) -> None:
    f = FUNCTIONS[name]
    want = np.asarray(f(NUMBERS))
    weights = np.random.default_rng(9).uniform(0.5, 1.5, want.shape)

    def weighted(x: Any) -> Any:
        y = f(x)
        return y * float(weights) if np.ndim(y) == 0 else (y * weights).sum()

    with bt.Tape(dtype):
        x = bt.matrix(NUMBERS)
        assert (x.shape, x.ndim, x.size) == ((2, 3, 4), 3, 24)
        y = f(x)
        assert y.data.shape == want.shape if want.ndim else isinstance(y, bt.Value)
        close = 1e-13 if dtype == "float64" else 1e-5
        np.testing.assert_allclose(y.data, want, rtol=close, atol=close)
        weighted(x).backward()
        gradient = np.array(x.grad)
        assert gradient.shape == (2, 3, 4)
    if dtype == "float64":
        for place in np.ndindex(2, 3, 4):
            step = np.zeros((2, 3, 4))
            step[place] = 1e-6
            slope = (
                float(np.sum(f(NUMBERS + step) * weights))
                - float(np.sum(f(NUMBERS - step) * weights))
            ) / 2e-6
            assert gradient[place] == pytest.approx(slope, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize(
    "name",
    ["sum (0, 2) False", "max 1 False", "logsumexp 0 False", "var -1 True", "T", "both", "where", "stack",
     "matrices @ matrices", "take"],
)  # fmt: skip
def test_second_derivatives_and_recordings(name: str) -> None:
    f = FUNCTIONS[name]

    def g(z: Any) -> Any:
        y = f(bt.matrix(np.asarray(z).reshape(2, 3, 4)))
        return (y * y * y).sum()

    at = NUMBERS.ravel()
    direction = np.linspace(-1.0, 1.0, 24)
    gradient = bt.grad(g)
    product = bt.grad(lambda z: (np.asarray(gradient(z)) * direction).sum())(at)
    want = (gradient(at + 1e-5 * direction) - gradient(at - 1e-5 * direction)) / 2e-5
    np.testing.assert_allclose(product, want, rtol=1e-5, atol=1e-6)
    compiled = bt.compile(g, backend="replay")
    for point in (at, at + 0.01 * (at > 0.5)):
        value, got = compiled.value_and_grad(point)
        assert value == pytest.approx(float(np.sum(np.asarray(f(point.reshape(2, 3, 4))) ** 3)))
        np.testing.assert_allclose(got, gradient(point), rtol=1e-12, atol=1e-12)


def test_layers_take_the_last_axis() -> None:
    with bt.Tape():
        x = bt.matrix(NUMBERS)
        w, b = bt.matrix(OTHER), bt.vector([1.0, 2.0, 3.0])
        y = bt.affine(w, x, b)
        np.testing.assert_allclose(y.data, NUMBERS @ OTHER.T + [1, 2, 3])
        assert bt.affine(w, [x[..., :1], x[..., 1:]], b).shape == (2, 3, 3)
        for block in (bt.softmax, bt.log_softmax):
            flat = block(bt.matrix(NUMBERS.reshape(6, 4)))
            np.testing.assert_array_equal(block(x).data.reshape(6, 4), flat.data)
        ones, zeros = bt.vector(np.ones(4)), bt.vector(np.zeros(4))
        assert abs(bt.layer_norm(x, ones, zeros).data.mean(-1)).max() < 1e-12
        targets = np.array([[0, 1, 2], [3, 2, 1]])
        losses = bt.cross_entropy(x, targets, "none")
        assert losses.shape == (2, 3)
        want = -np.take_along_axis(bt.log_softmax(x).data, targets[..., None], -1)[..., 0]
        np.testing.assert_allclose(losses.data, want)
        assert bt.nn.Linear(4, 5)(x).shape == (2, 3, 5)
        assert bt.tanh(x).shape == x.detach().shape == (2, 3, 4)
        x.data = NUMBERS + 1
        assert (x + 0.0).data[1, 2, 3] == NUMBERS[1, 2, 3] + 1
        assert repr(bt.matrix(np.zeros((1, 1, 2)))) == "View([[[0., 0.]]])"


def test_of_several_largest_the_first_takes_the_gradient() -> None:
    x = bt.matrix([[1.0, 3.0, 3.0], [5.0, 4.0, 5.0]])
    x.max(axis=1).sum().backward()
    assert x.grad.tolist() == [[0, 1, 0], [1, 0, 0]]


def test_arrays_beside_views_are_data() -> None:
    with bt.Tape() as tape:
        x = bt.vector([1.0, 2.0])
        y = bt.concat([x, np.array([3.0])])
        (y * np.array([1.0, 2.0, 3.0])).sum().backward()
        assert x.grad.tolist() == [1, 2]
        assert not np.asarray(tape.grads)[2]


def test_empty_axes() -> None:
    x = bt.matrix(np.zeros((2, 0, 3)))
    assert x.sum(axis=1).data.tolist() == np.zeros((2, 3)).tolist()
    assert x.max(axis=0).shape == (0, 3)
    assert x.sum().data == 0
    assert (x + 1.0).T.shape == (3, 0, 2)
    with pytest.raises(ValueError, match=r"no numbers to choose from .* \(2, 0, 3\)"):
        x.max(axis=1)


@pytest.mark.parametrize(
    ("mistake", "error", "message"),
    [
        (lambda x: x + np.zeros((2, 2, 4)), ValueError, r"add: \(2, 3, 4\) does not go with \(2, 2, 4\)"),
        (lambda x: x @ x, ValueError, r"matmul: \(2, 3, 4\) times \(2, 3, 4\)"),
        (lambda x: x @ np.zeros((3, 4, 2)), ValueError, r"matmul: \(2,\) does not go with \(3,\)"),
        (lambda x: x.sum(axis=1.5), TypeError, "float"),
        (lambda x: np.broadcast_to(x, (3, 4)), ValueError, r"\(2, 3, 4\) can't become \(3, 4\)"),
        (lambda x: x.sum(axis=3), ValueError, r"axis 3 of views of shape \(2, 3, 4\)"),
        (lambda x: x.sum(axis=(0, -3)), ValueError, "axis 0 is named twice"),
        (lambda x: x.transpose(0, 1), ValueError, r"2 axes of a View of shape \(2, 3, 4\)"),
        (lambda x: x.transpose(0, 0, 1), ValueError, "axis 0 is named twice"),
        (lambda x: bt.stack([x, x[0]]), ValueError, r"stack of shapes \(2, 3, 4\) and \(3, 4\)"),
        (lambda x: bt.concat([x, x[:, :2]]), ValueError, r"concat of shapes \(2, 3, 4\) and \(2, 2, 4\)"),
        (lambda x: bt.split(x, 2, axis=1), ValueError, r"\(2, 3, 4\) can't be split into 2 equal parts along axis 1"),
        (lambda x: bt.where(x, 1.0, x), TypeError, "the condition is a boolean or an array of booleans"),
        (lambda x: bt.where(np.ones(5, bool), 1.0, x), ValueError, r"where: \(5,\) does not go with \(2, 3, 4\)"),
        (lambda x: bt.affine(bt.matrix(OTHER), [x[..., :2], x[0, :, :2]]), ValueError, r"shapes \(2, 3, 2\) and \(3, 2\)"),
        (lambda x: bt.cross_entropy(x, [[0, 0], [0, 0]]), ValueError, r"need targets of shape \(2, 3\), not \(2, 2\)"),
    ],
)  # fmt: skip
def test_mistakes_are_named(mistake: Any, error: Any, message: str) -> None:
    with bt.Tape(), pytest.raises(error, match=message):
        mistake(bt.matrix(NUMBERS))
