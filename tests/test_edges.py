# tests/test_edges.py — numbers and sizes at the edges: kinks, overflow, what can't be counted
# SPDX-License-Identifier: MIT
from __future__ import annotations

import math
from typing import Any, Callable

import burtorch as bt
import numpy as np
import pytest


def test_the_factor_of_mul_by_constant_is_differentiated_on_no_road() -> None:
    def f(x: Any) -> Any:
        return bt.mul_by_constant(x[0], x[1])

    at = [3.0, 5.0]
    assert bt.grad(f)(at) == pytest.approx([5, 0])
    assert bt.jvp(f, at, [1.0, 1.0]) == (15, 5)
    assert bt.hessian(f, at) == pytest.approx(np.zeros((2, 2)))
    assert bt.compile(f).jvp(at, [1.0, 1.0])[1] == 5


@pytest.mark.parametrize("f", [bt.min, bt.max])
@pytest.mark.parametrize("direction", [[1.0, 0.0], [0.0, 1.0]])
def test_a_tie_gives_half_forward_as_backward(
    f: Callable[..., Any], direction: list[float]
) -> None:
    assert bt.jvp(lambda x: f(x[0], x[1]), [2.0, 2.0], direction) == (2, 0.5)


@pytest.mark.parametrize(("f", "slope"), [(bt.sigmoid, 0.25), (bt.softplus, 0.5)])
def test_smooth_functions_have_their_slope_at_0(f: Callable[..., Any], slope: float) -> None:
    assert bt.jvp(f, 0.0, 1.0)[1] == slope


def test_derivatives_where_formulas_overflow() -> None:
    x, y = bt.Value(0.0), bt.Value(1e-310)
    (x / y).backward()
    assert y.grad == 0
    base = bt.Value(0.5)
    (base ** bt.Value(math.inf)).backward()
    assert base.grad == 0
    huge = [bt.Value(1.7e308), bt.Value(1.7e308)]
    assert bt.reduce_mean(huge).data == 1.7e308
    zero = [bt.Value(0.0), bt.Value(0.0)]
    bt.atan2(*zero).backward()
    assert [each.grad for each in zero] == [0, 0]


@pytest.mark.parametrize("name", ["hidden", "vocab", "embed", "context"])
def test_a_model_too_large_to_count_is_refused(name: str) -> None:
    with pytest.raises(bt.CapacityError):
        bt.nn.CharMLP(**{name: 2**62})  # type: ignore[arg-type]


def test_a_tape_too_large_to_count_is_refused() -> None:
    for capacity in (2**40, 2**61, 2**62):
        with pytest.raises(bt.CapacityError):
            bt.Tape(capacity=capacity)
