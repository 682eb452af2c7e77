# tests/test_derivatives.py — jvp, hvp, jacobian, hessian against formulas
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any

import burtorch as bt
import numpy as np
import pytest


def rosenbrock(x: Any) -> Any:
    return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2


X = np.array([0.5, -1.2])
GRADIENT = np.array([-2 * 0.5 - 400 * 0.5 * (-1.45), 200 * -1.45])
HESSIAN = np.array([[2 - 400 * (-1.2 - 0.75), -200.0], [-200.0, 200.0]])


def test_jvp_is_the_gradient_times_the_direction() -> None:
    value, slope = bt.jvp(rosenbrock, X, [2.0, 3.0])
    assert value == pytest.approx(0.25 + 100 * 1.45**2)
    assert slope == pytest.approx(GRADIENT @ [2, 3])
    assert bt.jvp(lambda x: x**3, 2.0, 1.0) == (8.0, 12.0)
    assert bt.jvp(lambda x: 5.0, 2.0, 1.0) == (5.0, 0.0)


def test_jvp_of_several_outputs() -> None:
    values, slopes = bt.jvp(lambda x: [x[0] * x[1], bt.sin(x[0]), 7.0], [2.0, 3.0], [1.0, 0.0])
    assert values == pytest.approx([6, np.sin(2), 7])
    assert slopes == pytest.approx([3, np.cos(2), 0])


def test_hvp_and_hessian() -> None:
    value, product = bt.hvp(rosenbrock, X, [2.0, 3.0])
    assert value == pytest.approx(0.25 + 100 * 1.45**2)
    assert product == pytest.approx(HESSIAN @ [2, 3])
    assert bt.hessian(rosenbrock, X) == pytest.approx(HESSIAN)
    assert bt.hvp(lambda x: x**3, 2.0, 1.0) == (8.0, 12.0)
    assert bt.hessian(lambda x: x**3, 2.0) == pytest.approx(12)


def test_shapes_follow_the_arguments() -> None:
    matrix = np.arange(6.0).reshape(2, 3)

    def f(m: Any) -> Any:
        return bt.reduce_sum_of_squares(list(m.ravel()))

    assert bt.hvp(f, matrix, np.ones((2, 3)))[1] == pytest.approx(2 * np.ones((2, 3)))
    assert bt.hessian(f, matrix).shape == (2, 3, 2, 3)
    assert bt.jacobian(lambda m: m * m, matrix).shape == (2, 3, 2, 3)
    assert bt.jacobian(f, matrix) == pytest.approx(2 * matrix)


def test_jacobian() -> None:
    j = bt.jacobian(lambda p: [p[0] * bt.cos(p[1]), p[0] * bt.sin(p[1]), 3.0], [2.0, 0.3])
    want = [[np.cos(0.3), -2 * np.sin(0.3)], [np.sin(0.3), 2 * np.cos(0.3)], [0, 0]]
    assert j == pytest.approx(np.array(want))


def test_nothing_stays_on_the_current_tape() -> None:
    before = len(bt.current_tape())
    bt.jvp(rosenbrock, X, X)
    bt.hessian(rosenbrock, X)
    bt.jacobian(lambda x: [rosenbrock(x)], X)
    assert len(bt.current_tape()) == before


def test_misuse_is_told() -> None:
    with pytest.raises(ValueError, match=r"x has shape \(2,\), but v has shape \(3,\)"):
        bt.jvp(rosenbrock, X, [1, 2, 3])
    with pytest.raises(TypeError, match="must return Values or numbers, not str"):
        bt.hvp(lambda x: "no", X, X)
    outside = bt.Value(2.0)
    with pytest.raises(bt.TapeMismatchError):
        bt.hvp(lambda x: x[0] * outside, X, X)
