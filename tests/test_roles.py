# tests/test_roles.py — which arguments are differentiated, and which are data: argnums, has_aux, compile, verify
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any

import burtorch as bt
import numpy as np
import pytest

# ---- grad and value_and_grad ------------------------------------------------------------------------


def weighted(w: Any, x: Any, power: int) -> Any:
    assert isinstance(power, int)
    return sum(a * b for a, b in zip(w, x)) ** power


def test_argnums_names_what_is_differentiated() -> None:
    w, x = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    value, gradient = bt.value_and_grad(weighted, argnums=0)(w, x, 2)
    assert value == 121.0
    assert gradient.tolist() == [66.0, 88.0]
    assert bt.grad(weighted, argnums=1)(w, x, 2).tolist() == [22.0, 44.0]
    assert bt.grad(weighted, argnums=-2)(w, x, 2).tolist() == [22.0, 44.0]
    gx, gw = bt.grad(weighted, argnums=(1, 0))(w, x, 2)
    assert (gx.tolist(), gw.tolist()) == ([22.0, 44.0], [66.0, 88.0])
    (alone,) = bt.grad(weighted, argnums=(0,))(w, x, power=2)
    assert alone.tolist() == [66.0, 88.0]
    assert bt.check_grad(lambda w: weighted(w, x, 3), w) < 1e-6


def test_other_arguments_are_passed_as_they_are() -> None:
    seen: list[Any] = []

    def f(w: Any, *rest: Any, **more: Any) -> Any:
        seen.extend([*rest, *more.values()])
        return w * w

    things = [np.arange(3), "text", None, {"a": 1}]
    assert bt.grad(f, argnums=0)(3.0, *things, keyword=things) == 6.0
    assert all(a is b for a, b in zip(seen, [*things, things]))


def test_has_aux() -> None:
    def f(x: Any) -> Any:
        v = bt.vector(x)
        return (v * v).sum(), {
            "twice": 2 * x,
            "view": v * 3.0,
            "first": x[0],
            "name": "n",
            "pair": (1, x[1]),
        }

    (value, aux), gradient = bt.value_and_grad(f, has_aux=True)([1.0, 2.0])
    assert (value, gradient.tolist()) == (5.0, [2.0, 4.0])
    assert aux["twice"].tolist() == [2.0, 4.0]
    assert aux["twice"].dtype == float
    assert aux["view"].tolist() == [3.0, 6.0]
    assert (aux["first"], aux["name"], aux["pair"]) == (1.0, "n", (1, 2.0))
    gradient, aux = bt.grad(f, has_aux=True)([1.0, 2.0])
    assert (gradient.tolist(), aux["first"]) == ([2.0, 4.0], 1.0)
    with pytest.raises(TypeError, match=r"returns \(value, aux\), not Value"):
        bt.grad(lambda x: x * x, has_aux=True)(1.0)
    with pytest.raises(TypeError, match="not 3 of them"):
        bt.grad(lambda x: (x, x, x), has_aux=True)(1.0)


def test_argnums_nest() -> None:
    f = lambda x, y: x**3 * y**2  # noqa: E731
    assert bt.grad(bt.grad(f, argnums=0), argnums=1)(2.0, 5.0) == pytest.approx(120.0)
    inner = bt.value_and_grad(lambda x, y: (x * y, x * x), argnums=0, has_aux=True)

    def outer(x: Any, y: float) -> Any:
        (value, aux), slope = inner(x, y)
        return value + aux * slope

    assert bt.grad(outer, argnums=0)(3.0, 4.0) == pytest.approx(4.0 + 2 * 3.0 * 4.0)


@pytest.mark.parametrize("argnums", [2, -3, (0, 2), (0, 0), (0, -2), ()])
def test_argnums_that_name_nothing_or_twice(argnums: Any) -> None:
    with pytest.raises(ValueError, match="argnums names"):
        bt.grad(lambda x, y: x * y, argnums=argnums)(1.0, 2.0)


def test_a_result_that_is_no_scalar_is_described() -> None:
    with pytest.raises(TypeError, match=r"one Value or number, not View of shape \(2,\)"):
        bt.grad(bt.vector)([1.0, 2.0])
