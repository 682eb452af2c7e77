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


# ---- compile: variables and data --------------------------------------------------------------------

both = pytest.mark.parametrize("backend", ["replay", "native"])
dtypes = pytest.mark.parametrize("dtype", ["float64", "float32"])


def logistic(w: Any, x: Any, y: Any) -> Any:
    return bt.softplus(-y * sum(a * b for a, b in zip(w, x)))


def logistic_by_hand(w: Any, x: Any, y: float) -> tuple[float, Any]:
    margin = -y * float(w @ x)
    return float(np.log1p(np.exp(margin))), -y * x / (1 + np.exp(-margin))


@both
@dtypes
def test_data_has_another_value_at_every_call(backend: str, dtype: str) -> None:
    calls = 0

    def f(w: Any, x: Any, y: Any) -> Any:
        nonlocal calls
        calls += 1
        return logistic(w, x, y)

    c = bt.compile(f, argnums=0, backend=backend, dtype=dtype)
    rng = np.random.default_rng(0)
    for _ in range(4):
        w, x = rng.normal(size=(2, 3)).astype(dtype)
        y = float(rng.choice([-1.0, 1.0]))
        value, gradient = c.value_and_grad(w, x, y)
        expected = logistic_by_hand(w, x, y)
        assert gradient.dtype == dtype
        assert value == pytest.approx(expected[0], rel=1e-5)
        assert gradient == pytest.approx(expected[1], rel=1e-4)
        assert c(w, x, y) == pytest.approx(value)
        c.verify(w, x, y)
    assert calls == 1 + 4  # one recording; verify runs the function itself


def test_gradients_are_grouped_as_argnums_asks() -> None:
    f = lambda a, b, x: a * a * x + b["c"][0] * x  # noqa: E731
    b = {"c": np.array([3.0, 4.0])}
    one = bt.compile(f, argnums=0, backend="replay")
    assert one.value_and_grad(2.0, b, 5.0) == (35.0, 20.0)
    two = bt.compile(f, argnums=(1, 0), backend="replay")
    _, (gb, ga) = two.value_and_grad(2.0, b, 5.0)
    assert (gb["c"].tolist(), ga) == ([5.0, 0.0], 20.0)
    (alone,) = bt.compile(f, argnums=(-1,), backend="replay").value_and_grad(2.0, b, 5.0)[1]
    assert alone == 7.0
    assert one.jvp((2.0, b, 5.0), 1.0) == (35.0, 20.0)
    assert one.hvp((2.0, b, 5.0), 1.0) == (35.0, 10.0)
    assert one.jacobian(2.0, b, 5.0) == 20.0
    found = bt.compile(lambda a, x: (a - x) ** 2, argnums=0, backend="replay").minimize((0.0, 3.0))
    assert found.x == pytest.approx(3.0)


def test_plain_ints_are_structure_and_strings_too() -> None:
    seen: list[Any] = []

    def f(x: Any, n: int, kind: str) -> Any:
        seen.append((n, kind))
        for _ in range(n):
            x = x * x if kind == "square" else x + x
        return x

    c = bt.compile(f, argnums=0, backend="replay")
    assert c(3.0, 2, "square") == 81.0
    assert c(2.0, 2, "square") == 16.0
    assert c(3.0, 2, "double") == 12.0
    assert c(3.0, 1, "square") == 9.0
    assert seen == [(2, "square"), (2, "double"), (1, "square")]


@dtypes
def test_integers_are_indices_of_blocks(dtype: str) -> None:
    calls = 0

    def f(table: Any, ids: Any, targets: Any) -> Any:
        nonlocal calls
        calls += 1
        return bt.cross_entropy(bt.gather(bt.matrix(table), ids), targets)

    c = bt.compile(f, argnums=0, dtype=dtype)
    rng = np.random.default_rng(1)
    table = rng.normal(size=(5, 4)).astype(dtype)
    for _ in range(3):
        ids, targets = rng.integers(0, 5, 3), rng.integers(0, 4, 3)
        value, gradient = c.value_and_grad(table, ids, targets)
        with bt.Tape(dtype):
            t = bt.matrix(table)
            loss = bt.cross_entropy(bt.gather(t, ids), targets)
            loss.backward()
            assert value == pytest.approx(loss.data, rel=1e-6)
            assert gradient == pytest.approx(t.grad, rel=1e-5)
        c.verify(table, ids, targets)
    assert calls == 4
    with pytest.raises(ValueError, match=r"ids\[2\] is the index 5, .* between 0 and 4"):
        c.value_and_grad(table, np.array([0, 1, 5]), targets)


def test_integers_in_arithmetic_and_in_decisions() -> None:
    c = bt.compile(lambda w, k: w * k[1] + k[0], argnums=0, backend="replay")
    assert c.value_and_grad(2.0, np.array([3, 4])) == (11.0, 4.0)
    assert c.value_and_grad(2.0, np.array([5, 6])) == (17.0, 6.0)
    for f in (
        lambda w, k: w * int(k[0]),
        lambda w, k: w if k[0] else -w,
        lambda w, k: w if k[0] > 1 else -w,
    ):
        with pytest.raises(bt.BranchError):
            bt.compile(f, argnums=0)(1.0, np.array([1, 2]))


def test_a_branch_on_data_is_refused() -> None:
    with pytest.raises(bt.BranchError):
        bt.compile(lambda w, x: w if x > 0 else -w, argnums=0)(1.0, 2.0)


def test_wrong_roles() -> None:
    with pytest.raises(ValueError, match="float16"):
        bt.compile(logistic, dtype="float16")
    c = bt.compile(lambda w, x: w * x, argnums=5)
    with pytest.raises(ValueError, match="argument 5"):
        c(1.0, 2.0)
    with pytest.raises(TypeError, match="not complex"):
        bt.compile(lambda w, x: w * x, argnums=0)(1.0, 2j)
    narrow = bt.compile(lambda x: x * x, dtype="float32", backend="replay")
    with pytest.raises(ValueError, match="of float32"):
        narrow.bind(np.zeros(1, np.float32), np.zeros(2, np.float32))
    with pytest.raises(ValueError, match="with data is not stored"):
        bt.compile(lambda w, x: w * x, argnums=0).save("nothing", 1.0, 2.0)


# ---- verify -----------------------------------------------------------------------------------------


def test_verify_names_the_first_operation_that_differs() -> None:
    scale = [2.0]
    c = bt.compile(lambda x: (x[0] * scale[0] + x[1]).tanh(), backend="replay")
    c.verify([0.1, 0.2])
    scale[0] = 3.0
    with pytest.raises(bt.VerifyError, match=r"the value is 0\.37.* operation 0 \(mul.*gives 0\.2"):
        c.verify([0.1, 0.2])
    # At 0 the value is the same, the gradient is not.
    with pytest.raises(bt.VerifyError, match=r"the derivative by x\[0\] is"):
        c.verify([0.0, 0.2])


def test_verify_of_a_function_that_does_something_else() -> None:
    way = ["sin"]
    c = bt.compile(lambda x: getattr(bt, way[0])(x) * 2.0, backend="replay")
    c.verify(1.0)
    way[0] = "cos"
    with pytest.raises(bt.VerifyError, match=r"operation 0 \(sin\) of the recording is now .*cos"):
        c.verify(1.0)
    many = bt.compile(lambda x: [x[0] * 2.0, x[1] * way[0].count("s")], backend="replay")
    many.verify([1.0, 2.0])
    way[0] = "sss"
    with pytest.raises(bt.VerifyError, match="result 1"):
        many.verify([1.0, 2.0])


def test_every_hundredth_call_verifies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BURTORCH_VERIFY", "1")
    scale = [2.0]
    c = bt.compile(lambda x: x[0] * scale[0], backend="replay")
    x = np.array([1.0])
    c.value_and_grad(x)
    scale[0] = 3.0
    for _ in range(98):
        assert c.value_and_grad(x)[0] == 2.0
    with pytest.raises(bt.VerifyError):
        c.value_and_grad(x)


def test_integers_that_would_be_rounded_are_refused() -> None:
    c = bt.compile(lambda w, k: w * k[0], argnums=0, dtype="float32", backend="replay")
    assert c(1.0, np.array([2**24])) == 2.0**24
    with pytest.raises(ValueError, match="k holds the integer 16777217, which float32 would round"):
        c(1.0, np.array([2**24 + 1]))
    with pytest.raises(ValueError, match="would round"):
        c.batch(1.0, np.array([[1], [2**24 + 1]]))
