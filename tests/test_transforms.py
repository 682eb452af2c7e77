# tests/test_transforms.py — grad, value_and_grad, check_grad, and scipy on top of them
# SPDX-License-Identifier: MIT
from __future__ import annotations

import burtorch as bt
import numpy as np
import pytest
from burtorch import transforms


def rosenbrock(x: object) -> object:
    return sum(100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2 for i in range(len(x) - 1))


def test_gradients_have_the_shape_of_their_argument() -> None:
    assert bt.grad(lambda x: x**3)(2.0) == 12.0
    value, gradient = bt.value_and_grad(lambda x: (x * x).sum())(np.arange(6.0).reshape(2, 3))
    assert value == 55.0
    assert gradient.tolist() == [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]
    value, (gx, gy) = bt.value_and_grad(lambda x, y: x * y[0] + y[1])(3.0, [4.0, 5.0])
    assert (value, gx, gy.tolist()) == (17.0, 4.0, [3.0, 1.0])


def test_nothing_stays_on_the_tape() -> None:
    with bt.Tape() as tape:
        bt.grad(rosenbrock)([1.0, 2.0, 3.0])
        assert len(tape) == 0


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float128"])
def test_gradients_of_values_from_outside_stay(dtype: str) -> None:
    with bt.Tape(dtype):
        w = bt.Value(3.0)
        twice = w * 2
        root = twice * w
        root.backward()
        assert bt.grad(lambda x: x * w * twice)(2.0) == 18.0
        assert bt.jacobian(lambda x: [x[0] * w, x[0] * twice], [2.0]).tolist() == [[3.0], [6.0]]
        assert (w.grad, twice.grad, root.grad) == (12.0, 3.0, 1.0)
        root.backward()  # what was given back is not added again
        assert (w.grad, twice.grad, root.grad) == (24.0, 3.0, 1.0)


def test_gradients_stay_where_a_function_fails() -> None:
    w = bt.Value(3.0)

    def fails(x: object) -> object:
        (x * w).backward()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        bt.grad(fails)(1.0)
    assert w.grad == 0.0


def test_check_grad_sweeps_once(monkeypatch: pytest.MonkeyPatch) -> None:
    swept = []
    monkeypatch.setattr(transforms, "backward", lambda root: (swept.append(root), root.backward()))
    w = bt.Value(3.0)
    assert bt.check_grad(lambda x, y: x * w + (y * y).sum(), 2.0, [1.0, 2.0]) < 1e-6
    assert (len(swept), w.grad) == (1, 0.0)


@pytest.mark.parametrize("x", [np.array([1.0 + 2.0j]), np.complex64(1.0 + 2.0j), [1j], 1j])
def test_complex_numbers_are_refused(x: object) -> None:
    for call in (bt.grad(lambda x: x), lambda x: bt.check_grad(lambda x: x, x)):
        with pytest.raises(TypeError, match="not of complex ones"):
            call(x)
    with pytest.raises(TypeError, match="not of complex ones"):
        bt.jvp(lambda x: x, x, x)


def test_a_constant_function() -> None:
    value, gradient = bt.value_and_grad(lambda x: 3.0)([1.0, 2.0])
    assert (value, gradient.tolist()) == (3.0, [0.0, 0.0])


@pytest.mark.parametrize(
    ("f", "arguments", "message"),
    [
        (lambda x: [x], (1.0,), "must return one Value or number, not list"),
        (lambda: 1.0, (), "no arguments"),
    ],
)
def test_misuse(f: object, arguments: tuple[float, ...], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        bt.grad(f)(*arguments)


def test_check_grad_accepts_and_refuses() -> None:
    assert bt.check_grad(rosenbrock, [0.3, -0.7, 1.1]) < 1e-6
    assert bt.check_grad(lambda x, y: bt.exp(x) * y.sum(), 1.0, [2.0, 3.0]) < 1e-6

    def cut(x: object) -> object:  # takes the number out and so loses a part of the gradient
        return x[0] * x[1].data

    with pytest.raises(bt.GradientError, match=r"argument 0\[1\]: gradient 0, differences 2"):
        bt.check_grad(cut, [2.0, 3.0])


def test_scipy_minimizes_rosenbrock() -> None:
    optimize = pytest.importorskip("scipy.optimize")
    found = optimize.minimize(bt.value_and_grad(rosenbrock), [-1.2, 1.0, 0.5], jac=True)
    assert found.success
    assert np.allclose(found.x, 1.0, atol=1e-4)
