# tests/test_compile.py — compile: the eager numbers on every backend, structures, branches, batches, minimization
# SPDX-License-Identifier: MIT
from __future__ import annotations

import copy
import gc
import io
import math
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings
import weakref
from pathlib import Path
from typing import Any, NamedTuple

import burtorch as bt
import numpy as np
import pytest
from burtorch import _native, compiled
from conftest import operations
from hypothesis import given, settings
from hypothesis import strategies as st

BACKENDS = ["replay"] + (["native"] if _native.compiler() else [])
every_backend = pytest.mark.parametrize("backend", BACKENDS)
needs_compiler = pytest.mark.skipif(not _native.compiler(), reason="there is no C compiler")

UNARY, BINARY, REDUCTIONS = operations("x"), operations("x, y"), operations("x₁, …, xₙ")


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Keep the user's cache out of the tests."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BURTORCH_CACHE_DIR", str(folder))
        yield folder


def rosenbrock(x: Any) -> Any:
    return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2


def tiny(x: Any) -> Any:
    a, b = x
    return bt.sqr((a + b) - (a * b + bt.pow3(b))) / 2.0


def every_operation(x: Any) -> list[Any]:
    results = [getattr(bt, name)(x[0]) for name in UNARY]
    for name in BINARY:
        f = getattr(bt, name)
        results += [f(x[0], x[1]), f(x[1], x[0]), f(x[0], 1.5), f(1.5, x[0])]
    results += [bt.clamp(x[0], 0.0, 0.5), bt.clamp(x[0], 0.0, 5.0), -x[0], abs(x[2])]
    results += [getattr(bt, name)(list(x)) for name in REDUCTIONS]
    results += [getattr(bt, name)([x[2], x[0], x[1], x[0]]) for name in REDUCTIONS]
    results += [bt.inner_product(list(x), [x[1], x[0], x[2]])]
    results += [bt.inner_product_with_bias(list(x), [x[1], x[0], x[2]], x[2])]
    return results


@every_backend
def test_every_operation_gives_the_eager_numbers(backend: str) -> None:
    weights = np.linspace(0.5, 1.5, len(every_operation([bt.Value(0.5)] * 3)))

    def weighted(x: Any) -> Any:
        return bt.reduce_sum([w * y for w, y in zip(weights, every_operation(x))])

    c = bt.compile(weighted, backend=backend)
    c([0.4, 0.6, -0.3])  # recorded elsewhere
    at = np.array([0.7, 0.3, -0.2])
    value, gradient = c.value_and_grad(at)
    eager_value, eager_gradient = bt.value_and_grad(weighted)(at)
    if backend == "replay":
        assert value == eager_value
        assert (gradient == eager_gradient).all()
    else:
        assert value == pytest.approx(eager_value, rel=1e-14)
        assert gradient == pytest.approx(eager_gradient, rel=1e-13)
    jacobian = bt.compile(every_operation, backend="replay").jacobian(at)
    assert (jacobian == bt.jacobian(every_operation, at)).all()


@every_backend
def test_arithmetic_is_the_same_to_the_last_bit(backend: str) -> None:
    c = bt.compile(tiny, backend=backend)
    assert c.value_and_grad([-41.0, 2.0])[0] == 612.5
    for x in np.random.default_rng(0).normal(size=(50, 2)):
        value, gradient = c.value_and_grad(x)
        eager_value, eager_gradient = bt.value_and_grad(tiny)(x)
        assert value == eager_value == c(x)
        assert (gradient == eager_gradient).all()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_random_expressions_replay_bit_for_bit(seed: int) -> None:
    def f(x: Any) -> Any:
        random = np.random.default_rng(seed)
        nodes = list(x)
        for _ in range(12):
            a, b = (nodes[i] for i in random.integers(len(nodes), size=2))
            kind = random.integers(4)
            if kind == 0:
                nodes.append(getattr(bt, UNARY[random.integers(len(UNARY))])(bt.sigmoid(a)))
            elif kind == 1:
                nodes.append(bt.tanh(a) * b - 0.5)
            elif kind == 2:
                nodes.append(bt.reduce_mean_squares(nodes[-3:]))
            else:
                nodes.append(bt.max(a, b) / 1.5 + bt.mean(a, b))
        return bt.reduce_sum(nodes)

    c = bt.compile(f, backend="replay")
    c([0.3, 0.7, 0.5])
    at = np.array([0.9, -0.4, 0.2])
    value, gradient = c.value_and_grad(at)
    eager = bt.value_and_grad(f)(at)
    assert value == eager[0] or math.isnan(value)
    assert np.array_equal(gradient, eager[1], equal_nan=True)


# ---- an adjoint of zero gives nothing, not even NaN ------------------------------------------------


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, math.inf, -math.inf, math.nan, 1e-320, 1e308]


def same(x: Any, y: Any) -> bool:
    return np.array_equal(x, y, equal_nan=True)


@every_backend
def test_every_operation_behind_a_product_with_zero(backend: str) -> None:
    """Derivatives are infinite or NaN here and there; eagerly they give nothing."""

    def outputs(x: Any) -> list[Any]:
        return [x[3] * y for y in every_operation(x[:3])]

    c = bt.compile(outputs, backend=backend)
    c(np.array([0.4, 0.6, -0.3, 1.0]))
    rng = np.random.default_rng(0)
    for _ in range(30):
        at = np.append(rng.choice(SPECIAL, 3), 0.0)
        assert same(c.jacobian(at), bt.jacobian(outputs, at))


def meets_infinity(x: Any) -> Any:
    return x[0] * bt.sqrt(x[1]) + x[1] * bt.log(x[0]) + bt.sqr(x[0]) / x[1] * 0.0 + x[0]


@every_backend
def test_infinite_derivatives_on_all_roads(backend: str) -> None:
    c = bt.compile(lambda x: x[0] * bt.sqrt(x[1]) + x[2], backend=backend)
    bad, good = np.array([0.0, 0.0, 3.0]), np.array([2.0, 4.0, 1.0])
    for at, value, gradient in ((bad, 3.0, [0.0, 0.0, 1.0]), (good, 5.0, [2.0, 0.5, 1.0])):
        assert c(at) == value
        got, grad = c.value_and_grad(at)
        assert (got, grad.tolist()) == (value, gradient)
        out = np.empty(3)
        got, grad = c.value_and_grad(at, out=out)
        assert (got, out.tolist()) == (value, gradient)
        bound = np.empty(4)
        c.bind(at, bound)()
        assert bound.tolist() == [value, *gradient]
        assert c.jacobian(at).tolist() == gradient
    rows = np.tile(good, (77, 1))
    rows[[0, 5, 30, 31, 76]] = bad  # a lane, a row of the rest
    for threads in (1, 2):
        values, grads = c.batch(rows, threads=threads)
        for k, row in enumerate(rows):
            assert values[k] == (3.0 if row[0] == 0 else 5.0)
            assert grads[k].tolist() == ([0.0, 0.0, 1.0] if row[0] == 0 else [2.0, 0.5, 1.0])


@every_backend
def test_a_gradient_that_is_nan_stays_nan(backend: str) -> None:
    c = bt.compile(meets_infinity, backend=backend)
    c(np.array([2.0, 3.0]))
    for at in ([0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [math.nan, 1.0], [math.inf, 2.0], [2.0, 3.0]):
        value, gradient = c.value_and_grad(np.array(at))
        eager_value, eager_gradient = bt.value_and_grad(meets_infinity)(at)
        assert same(value, eager_value)
        assert same(gradient, eager_gradient)
        values, gradients = c.batch(np.tile(at, (9, 1)))
        for k in range(9):
            assert same(values[k], eager_value)
            assert same(gradients[k], eager_gradient)


@every_backend
def test_results_may_be_written_over_the_arguments(backend: str) -> None:
    """The point is read again where native code gave NaN."""
    c = bt.compile(lambda x: x[0] * bt.sqrt(x[1]) + x[2] * x[2], backend=backend)
    at = np.array([0.0, 0.0, 3.0])
    c(at)
    value, gradient = c.value_and_grad(at, out=at)
    assert value == 9.0
    assert at.tolist() == gradient.tolist() == [0.0, 0.0, 6.0]
    for offset in range(4):
        room = np.empty(8)
        x, out = room[offset : offset + 3], room[2:6]
        x[...] = [0.0, 0.0, 3.0]
        run = c.bind(x, out)
        run()
        assert out.tolist() == [9.0, 0.0, 0.0, 6.0]
    rows = np.tile([0.0, 0.0, 3.0], (20, 1))
    values, gradients = c.batch(rows, out=(np.empty(20), rows))
    assert (values == 9.0).all()
    assert (gradients == [0.0, 0.0, 6.0]).all()


@every_backend
def test_minimize_passes_infinite_derivatives(backend: str) -> None:
    c = bt.compile(lambda x: bt.sqr(x[0] * bt.sqrt(x[1])) + bt.sqr(x[2] - 1.0), backend=backend)
    m = c.minimize(np.zeros(3))
    assert m.converged
    assert m.x == pytest.approx([0.0, 0.0, 1.0], abs=1e-6)


@needs_compiler
def test_long_functions_are_compiled_in_parts() -> None:
    def energy(x: Any) -> Any:
        e: Any = 0.0
        for i in range(14):
            for j in range(i):
                dx, dy = x[2 * i] - x[2 * j], x[2 * i + 1] - x[2 * j + 1]
                e = e - bt.sin(dx) / bt.sqrt(dx * dx + dy * dy)
        return e

    native, replay = (bt.compile(energy, backend=backend) for backend in ("native", "replay"))
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(5, 28))
    rows[3, 2:4] = rows[3, 0:2]  # two at one place
    for row in rows:
        value, gradient = native.value_and_grad(row)
        wanted, wanted_gradient = replay.value_and_grad(row)
        assert same(value, wanted)
        assert same(native(row), wanted)
        assert same(gradient, wanted_gradient)
    values, gradients = native.batch(rows)
    assert same(values, [replay(row) for row in rows])
    assert same(gradients, [replay.value_and_grad(row)[1] for row in rows])
    assert "f_part1(" in native.source()


# ---- views, blocks and layers ------------------------------------------------------------------------


def test_views_are_made_of_inputs_without_a_copy() -> None:
    values = np.array([bt.Value(float(i)) for i in range(6)])
    size = len(values[0].tape)
    assert bt.vector(values).data.tolist() == [0, 1, 2, 3, 4, 5]
    matrix = bt.matrix(values.reshape(2, 3))
    assert matrix.shape == (2, 3)
    assert matrix[1, 0].index == values[3].index
    assert len(values[0].tape) == size
    mixed = bt.vector([values[4], 7.0, values[1], values[2]])  # from several places: a copy
    assert mixed.data.tolist() == [4, 7, 1, 2]
    (mixed * np.array([1.0, 2.0, 3.0, 4.0])).sum().backward()
    assert [v.grad for v in values] == [0, 3, 4, 0, 1, 0]
    assert bt.tanh(values).shape == (6,)
    with pytest.raises(TypeError, match="not NoneType"):
        bt.vector([values[0], None])
    with bt.Tape():
        other = bt.Value(1.0)
    with pytest.raises(bt.TapeMismatchError):
        bt.vector([values[0], other])


def blocks_of(p: Any) -> Any:
    hidden = bt.affine(p["w"], p["x"], p["b"]).tanh()
    norm = bt.layer_norm(hidden, bt.vector([1.0, 2.0]), p["b"])
    return bt.cross_entropy(bt.softmax(p["x"]) + bt.concat([norm, hidden[:1]]), 2)


def test_blocks_of_inputs_replay_the_eager_numbers() -> None:
    random = np.random.default_rng(4)
    p = {"x": random.normal(size=3), "w": random.normal(size=(2, 3)), "b": random.normal(size=2)}
    c = bt.compile(blocks_of)  # "auto" replays what has no C text
    c({name: x + 1 for name, x in p.items()})
    value, gradient = c.value_and_grad(p)
    leaves = {n: bt.vector(x) if x.ndim == 1 else bt.matrix(x) for n, x in p.items()}
    eager = blocks_of(leaves)
    eager.backward()
    assert value == eager.data
    for name, leaf in leaves.items():
        assert (gradient[name] == leaf.grad).all()
    assert value == bt.value_and_grad(lambda x: blocks_of({**leaves, "x": x}))(p["x"])[0]


def test_layers_in_compiled_functions() -> None:
    layer, model = bt.nn.Linear(3, 3), bt.nn.MLP([3, 4, 1], "tanh")
    c = bt.compile(lambda x: model(bt.relu(layer(x)))[0])
    x = np.random.default_rng(5).normal(size=(70, 3))
    values, gradients = c.batch(x, threads=2)
    for row, value, gradient in zip(x, values, gradients):
        leaf = bt.vector(row)
        eager = model(bt.relu(layer(leaf)))[0]
        eager.backward()
        assert value == eager.data
        assert (gradient == leaf.grad).all()
    with pytest.raises(ValueError, match="affine"):
        bt.compile(lambda x: layer(x).sum(), backend="native")(x[0])


def test_views_can_be_returned() -> None:
    c = bt.compile(lambda x: bt.vector(x) * 2.0, backend="replay")
    c([7.0, 8.0])
    assert c([1.0, 2.0]).tolist() == [2.0, 4.0]
    assert c.jacobian([1.0, 2.0]).tolist() == [[2.0, 0.0], [0.0, 2.0]]
    both = bt.compile(lambda x: (bt.vector(x) * x[0], [x[1]], {"sum": bt.matrix([x]).sum()}))
    view, (one,), more = both([3.0, 2.0])
    assert (view.tolist(), one, more) == ([9.0, 6.0], 2.0, {"sum": 5.0})
    rows = both.jacobian([3.0, 2.0])
    assert rows[0].tolist() == [[6.0, 0.0], [2.0, 3.0]]
    assert rows[2]["sum"].tolist() == [1.0, 1.0]
    assert bt.compile(lambda x: [bt.vector(x), x])([1.0, 2.0]).shape == (2, 2)


# ---- arguments ---------------------------------------------------------------------------------------


@every_backend
def test_floats_several_arguments_and_nested_structures(backend: str) -> None:
    c = bt.compile(lambda x: x**3, backend=backend)
    assert c(2.0) == 8.0
    assert c.value_and_grad(2) == (8.0, 12.0)
    c = bt.compile(lambda a, b: a * b[0] + b[1], backend=backend)
    value, (by_a, by_b) = c.value_and_grad(3.0, np.array([4.0, 5.0]))
    assert (value, by_a, by_b.tolist()) == (17.0, 4.0, [3.0, 1.0])
    c = bt.compile(lambda p: (p["w"] @ p["x"][0]).sum() * p["x"][1] + p["b"], backend=backend)
    w = np.arange(6.0).reshape(2, 3)
    value, gradient = c.value_and_grad({"w": w, "x": (np.ones(3), 2.0), "b": 7})
    assert value == 37
    assert list(gradient) == ["w", "x", "b"]
    assert (gradient["w"] == 2).all()
    assert gradient["w"].shape == (2, 3)
    assert gradient["x"][0].tolist() == [6.0, 10.0, 14.0]
    assert gradient["x"][1] == 15.0
    assert type(gradient["x"][1]) is float
    assert gradient["b"] == 1.0
    c = bt.compile(lambda parts: parts[0][0] * parts[1][0], backend=backend)
    assert c([np.array([2.0]), np.array([3.0, 1.0])]) == 6.0


class Pair(NamedTuple):
    a: Any
    b: Any


def test_ragged_lists_named_tuples_and_nothing() -> None:
    c = bt.compile(lambda x: x[0][0] * x[0][1] * x[1][0], backend="replay")
    value, gradient = c.value_and_grad([[1.0, 2.0], [3.0]])
    assert value == 6.0
    assert [x.tolist() for x in gradient] == [[6.0, 3.0], [2.0]]
    named = bt.compile(lambda p: Pair(p.a * p.b, p.b), backend="replay")
    assert named(Pair(2.0, 3.0)) == Pair(6.0, 3.0)
    assert named.jacobian(Pair(2.0, 3.0)) == Pair(Pair(3.0, 2.0), Pair(0.0, 1.0))
    empty: list[Any] = [(), {}, [], np.empty(0)]
    for nothing in empty:
        with pytest.raises(TypeError, match="no numbers"):
            c(nothing)


def test_keyword_arguments() -> None:
    def f(a: Any, b: Any = 10.0, *, how: str = "plain", c: Any = None) -> Any:
        assert how == "plain"
        return a * b if c is None else a * b * c

    compiled = bt.compile(f, backend="replay")
    assert compiled(3.0, b=2.0) == 6.0
    assert compiled.value_and_grad(b=2.0, a=3.0) == (6.0, (2.0, 3.0))
    assert len(compiled._recordings) == 1
    assert compiled.value_and_grad(3.0) == (30.0, 10.0)
    assert compiled.value_and_grad(3.0, c=4.0) == (120.0, (40.0, 30.0))
    assert compiled.jacobian(3.0, b=2.0) == (2.0, 3.0)
    with pytest.raises(TypeError, match="unexpected"):
        compiled(3.0, d=1.0)


def test_only_real_numbers_are_numbers() -> None:
    c = bt.compile(lambda a, b=0: a, backend="replay")
    for wrong in (None, "1", 1j, np.complex64(1), np.str_("1"), np.array([1j]), [None], object()):
        with pytest.raises(TypeError, match="takes numbers"):
            c(3.0, wrong)
        with pytest.raises(TypeError, match="takes numbers"):
            c([1.0, wrong])
    assert c(True, np.float32(1)) == 1.0


def test_functions_that_write_into_their_argument() -> None:
    def f(x: Any) -> Any:
        x[0] = x[0] * x[1]
        x *= 2.0
        return x.sum()

    c = bt.compile(f, backend="replay")
    at = np.array([3.0, 4.0])
    value, gradient = c.value_and_grad(at)
    assert (value, gradient.tolist(), at.tolist()) == (32.0, [8.0, 8.0], [3.0, 4.0])


class Spring:
    def __init__(self, stiffness: float) -> None:
        self.stiffness = stiffness

    @bt.compile
    def energy(self, x: Any) -> Any:
        """Half the stiffness times x squared."""
        return self.stiffness / 2 * x * x


def test_methods_and_what_describes_a_function() -> None:
    soft, stiff = Spring(1.0), Spring(10.0)
    assert (soft.energy(2.0), stiff.energy(2.0)) == (2.0, 20.0)
    assert soft.energy is soft.energy
    assert Spring.energy.__doc__ == "Half the stiffness times x squared."
    assert soft.energy.__name__ == "energy"  # type: ignore[attr-defined]


def test_records_once_per_shape() -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(x.shape)
        return (x * x).sum()

    c = bt.compile(f, backend="replay")
    for n in (2, 2, 3, 2, 3):
        x = np.arange(float(n))
        value, gradient = c.value_and_grad(x)
        assert value == x @ x
        assert (gradient == 2 * x).all()
    assert c(np.ones((2, 2))) == 4
    assert calls == [(2,), (3,), (2, 2)]


def test_other_arrays_take_the_long_way_to_the_same_numbers() -> None:
    c = bt.compile(rosenbrock, backend="replay")
    want = c.value_and_grad(np.array([2.0, 3.0]))
    for x in (
        [2.0, 3.0],
        [2, 3],
        np.array([2, 3]),
        np.array([2.0, 0.0, 3.0])[::2],
        np.array([2.0, 3.0], dtype=np.float32),
        np.array([2.0, 3.0], dtype=">f8"),
        np.frombuffer(b"\0" + np.array([2.0, 3.0]).tobytes(), dtype=np.uint8)[1:].view(float),
    ):
        value, gradient = c.value_and_grad(x)
        assert value == want[0]
        assert gradient.tolist() == want[1].tolist()
    with pytest.raises(TypeError, match="not str"):
        c("x")
    with pytest.raises(TypeError, match="no arguments"):
        c()


@every_backend
def test_out_is_written_and_returned(backend: str) -> None:
    c = bt.compile(rosenbrock, backend=backend)
    x, out = np.array([2.0, 3.0]), np.empty(2)
    for _ in range(2):  # recorded by the first call, run by the second
        value, same = c.value_and_grad(x, out=out)
        assert same is out
        assert value == 101.0
        assert out.tolist() == [802.0, -200.0]
    strided = np.zeros(4)
    c.value_and_grad(x, out=strided[::2])
    assert strided.tolist() == [802.0, 0.0, -200.0, 0.0]
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        c.value_and_grad(x, out=np.empty(3))
    with pytest.raises(TypeError, match="out"):
        c.value_and_grad(x, out=[0.0, 0.0])
    frozen = np.empty(2)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        c.value_and_grad(x, out=frozen)


def test_results_that_are_numbers_several_or_nothing() -> None:
    assert bt.compile(lambda x: 5.0, backend="replay").value_and_grad([1.0])[1].tolist() == [0.0]
    c = bt.compile(lambda x: [x[0] * x[1], bt.sin(x[0]), 7.0])
    assert c([2.0, 3.0]) == pytest.approx([6, math.sin(2), 7])
    assert c.jacobian([2.0, 3.0]) == pytest.approx(np.array([[3, 2], [math.cos(2), 0], [0, 0]]))
    with pytest.raises(ValueError, match="jacobian"):
        c.value_and_grad([2.0, 3.0])
    with pytest.raises(TypeError, match="str"):
        bt.compile(lambda x: "text")(1.0)
    with pytest.raises(TypeError, match="nothing"):
        bt.compile(lambda x: [])(1.0)


def test_values_from_outside_are_constants() -> None:
    w = bt.Value(3.0)
    c = bt.compile(lambda x: w * x if w > 2 else x, backend="replay")
    assert c.value_and_grad(2.0) == (6.0, 3.0)
    w.data = 100.0
    assert c(2.0) == 6.0
    assert w.grad == 0
    with bt.Tape("float32"):
        assert bt.compile(lambda x: x * x, backend="replay")(3.0) == 9.0


def test_wrong_uses() -> None:
    with pytest.raises(ValueError, match="'fast'"):
        bt.compile(tiny, backend="fast")
    with pytest.raises(TypeError, match="function"):
        bt.compile(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="dynamic"):
        bt.compile(tiny, backend="native", dynamic=True)

    def broken(x: Any) -> Any:
        raise KeyError("mine")

    c = bt.compile(broken)
    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            c(1.0)
    assert (bt.Value(1.0) < 2) is True  # nothing is being recorded any more


# ---- branches ----------------------------------------------------------------------------------------


def relu_by_hand(x: Any) -> Any:
    if x[0] > x[1]:  # this line
        return x[0] * 2.0
    return x[1] * x[1] if x[1] else x[0]


def test_a_branch_is_refused_with_its_line() -> None:
    line = relu_by_hand.__code__.co_firstlineno + 1
    with pytest.raises(bt.BranchError, match=rf"test_compile\.py:{line} compares.*dynamic=True"):
        bt.compile(relu_by_hand)([1.0, 2.0])
    for f in (lambda x: x if x else 1.0, lambda x: max(x, 2 * x), lambda x: x if x > 1 else 2):
        with pytest.raises(bt.BranchError):
            bt.compile(f)(1.0)
    x = bt.Value(1.0)
    assert x < 2 and not x > 2 and x <= 1 and x >= 1 and bool(x)  # noqa: PT018


def test_dynamic_records_each_way_it_goes() -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(1)
        return relu_by_hand(x)

    c = bt.compile(f, dynamic=True)
    for _ in range(2):
        assert c([3.0, 1.0]) == 6.0
        assert c([1.0, 3.0]) == 9.0
        assert c([-1.0, 0.0]) == -1.0
        value, gradient = c.value_and_grad(np.array([1.0, 4.0]))
        assert (value, gradient.tolist()) == (16.0, [0.0, 8.0])
        value, gradient = c.value_and_grad(np.array([5.0, 4.0]))
        assert (value, gradient.tolist()) == (10.0, [2.0, 0.0])
    assert len(calls) == 3
    x = np.random.default_rng(1).normal(size=(200, 2))
    values, gradients = c.batch(x, threads=2)
    for row, value, gradient in zip(x, values, gradients):
        assert (value, gradient.tolist()) == (c(row), c.value_and_grad(row)[1].tolist())
    assert c.jvp([3.0, 1.0], [1.0, 0.0]) == (6.0, 2.0)
    assert c.jvp([1.0, 3.0], [0.0, 1.0]) == (9.0, 6.0)
    point, out = np.array([3.0, 1.0]), np.empty(3)
    run = c.bind(point, out)
    run()
    assert out.tolist() == [6.0, 2.0, 0.0]
    point[:] = [1.0, 3.0]
    with pytest.raises(RuntimeError, match="bind again"):
        run()


def test_dynamic_results_of_different_shapes() -> None:
    c = bt.compile(lambda x: x if x[0] > 0 else [x[1]] if x[0] < -1 else x[0] * 2, dynamic=True)
    for _ in range(2):
        assert c([1.0, 2.0]).tolist() == [1.0, 2.0]
        assert c([-2.0, 3.0]).tolist() == [3.0]
        assert c([-0.5, 3.0]) == -1.0
        assert c.value_and_grad([-0.5, 3.0])[1].tolist() == [2.0, 0.0]
        with pytest.raises(ValueError, match=r"shape \(2,\)"):
            c.value_and_grad([1.0, 2.0])


def test_looking_at_one_way_of_several() -> None:
    def f(x: Any) -> Any:
        if bt.tanh(x) > 0.5:
            return bt.sin(x)
        return bt.cos(x)

    c = bt.compile(f, dynamic=True)
    assert (c(2.0), c(0.0)) == (pytest.approx(math.sin(2)), 1.0)
    for at, shown, other in ((2.0, "sin", "cos"), (0.0, "cos", "sin")):
        graph = c.dot(at)
        assert shown in graph
        assert other not in graph
        assert "tanh" not in graph
    with pytest.raises(ValueError, match="branches"):
        c.source(2.0)
    with pytest.raises(ValueError, match="branches"):
        c.save("never", 2.0)


def test_comparing_what_depends_on_no_input_is_no_branch() -> None:
    def f(x: Any) -> Any:
        limit = bt.exp(bt.Value(2.0))
        x = bt.sin(x)
        return x * 2.0 if limit > 1 and bt.Value(3.0) > 2 else x

    assert bt.compile(f, backend="replay")(0.0) == 0.0
    with pytest.raises(bt.BranchError):
        bt.compile(lambda x: x if bt.exp(bt.Value(2.0)) * x > 1 else 1.0)(1.0)


def newton_sqrt(x: Any) -> Any:
    y = x
    while abs(y * y - x) > 1e-12:
        y = (y + x / y) / 2.0
    return y


def test_dynamic_loops_until_a_value_is_small() -> None:
    c = bt.compile(newton_sqrt, dynamic=True)
    for x in (2.0, 9.0, 0.25, 2.0):
        value, slope = c.value_and_grad(x)
        assert value == pytest.approx(math.sqrt(x))
        assert slope == pytest.approx(0.5 / math.sqrt(x), rel=1e-6)


# ---- ways to run -------------------------------------------------------------------------------------


@every_backend
def test_bind_reads_and_writes_in_place(backend: str) -> None:
    c = bt.compile(rosenbrock, backend=backend)
    x, out = np.array([2.0, 3.0]), np.empty(3)
    run = c.bind(x, out)
    assert run() is None
    assert out.tolist() == [101.0, 802.0, -200.0]
    x[:] = 1.0
    run()
    assert out.tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(TypeError, match="no arguments"):
        run(1)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match=r"\(3,\)"):
        c.bind(x, np.empty(2))
    with pytest.raises(ValueError, match=r"\(2,\)"):
        c.bind(np.array([2, 3]), out)
    with pytest.raises(ValueError, match="refer"):
        x.resize(5)
    del x, c
    gc.collect()
    run()  # keeps what it needs
    assert out.tolist() == [0.0, 0.0, 0.0]


@every_backend
@pytest.mark.parametrize("threads", [1, 3])
def test_batch_is_row_by_row(backend: str, threads: int) -> None:
    def f(x: Any) -> Any:
        return bt.exp(-x[0] * x[0]) * bt.tanh(x[1]) + bt.max(x[0], x[2]) / (2.0 + x[1])

    c = bt.compile(f, backend=backend)
    x = np.random.default_rng(2).normal(size=(501, 3))
    values, gradients = c.batch(x, threads=threads)
    assert values.shape == (501,)
    assert gradients.shape == (501, 3)
    for row, value, gradient in zip(x[::50], values[::50], gradients[::50]):
        one = c.value_and_grad(row)
        assert value == pytest.approx(one[0], rel=1e-13)
        assert gradient == pytest.approx(one[1], rel=1e-12)
    values, gradients = c.batch(np.empty((0, 3)))
    assert values.shape == (0,)
    assert gradients.shape == (0, 3)
    out = np.empty(501), np.empty((501, 3))
    assert c.batch(x, out=out)[0] is out[0]
    assert out[1][-1] == pytest.approx(c.value_and_grad(x[-1])[1], rel=1e-12)
    for wrong in ((out[0], out[1][:, :2]), (out[0][1:], out[1]), (out[0], out[1].T)):
        with pytest.raises(ValueError, match=r"\(501,\) and \(501, 3\)"):
            c.batch(x, out=wrong)
    with pytest.raises(ValueError, match="n, d"):
        c.batch(x[0])
    with pytest.raises(ValueError, match="threads"):
        c.batch(x, threads=0)


def test_batch_of_a_function_of_several_numbers() -> None:
    c = bt.compile(lambda a, b: a * b, backend="replay")
    values, gradients = c.batch([[2.0, 3.0], [4.0, 5.0]])
    assert values.tolist() == [6.0, 20.0]
    assert gradients.tolist() == [[3.0, 2.0], [5.0, 4.0]]


def test_batch_does_not_depend_on_what_was_called_before() -> None:
    c = bt.compile(lambda *x: x[0] * x[-1] if len(x) > 1 else (x[0] * x[0]).sum(), backend="replay")
    c(np.array([1.0, 2.0]))
    c(1.0, 2.0)
    assert c.batch([[3.0, 4.0]])[0].tolist() == [25.0]


@pytest.mark.parametrize("wrong", [{"threads": 2.5}, {"threads": "2"}])
def test_counts_are_integers(wrong: Any) -> None:
    c = bt.compile(rosenbrock, backend="replay")
    with pytest.raises(TypeError, match="integer"):
        c.batch(np.ones((3, 2)), **wrong)
    with pytest.raises(TypeError, match="integer"):
        c.minimize([1.0, 2.0], steps=10.5)  # type: ignore[arg-type]


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on memory")
def test_batch_with_more_threads_than_the_system_gives() -> None:
    code = """
import resource, numpy as np, burtorch as bt
c = bt.compile(lambda x: x[0] * x[1], backend="replay")
x = np.ones((300_000, 2))
c.batch(x[:2])
with open("/proc/self/statm") as f:
    used = int(f.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 30_000_000, used + 30_000_000))
print(c.batch(x, threads=3000)[0].sum())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "300000.0\n", done.stderr


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs signals")
@pytest.mark.parametrize("threads", [1, 2])
def test_batch_stops_on_interrupt(threads: int) -> None:
    c = bt.compile(newton_like, backend="replay")
    x = np.ones((1_000_000, 2))  # minutes of work
    c(x[0])
    main = threading.main_thread().ident
    assert main is not None
    helper = threading.Timer(0.2, lambda: signal.pthread_kill(main, signal.SIGINT))
    helper.start()
    with pytest.raises(KeyboardInterrupt):
        c.batch(x, threads=threads)
    helper.join()


def newton_like(x: Any) -> Any:
    y = x[0]
    for _ in range(5000):
        y = (y + x[1] / y) / 2.0
    return y


def test_jvp_and_hvp() -> None:
    c = bt.compile(rosenbrock)
    x, v = np.array([0.5, -1.2]), np.array([2.0, 3.0])
    assert c.jvp(x, v) == pytest.approx(bt.jvp(rosenbrock, x, v))
    value, product = c.hvp(x, v)
    want = bt.hvp(rosenbrock, x, v)
    assert value == want[0]
    assert product == pytest.approx(want[1])
    assert bt.compile(lambda a, b: a * b).jvp((2.0, 3.0), (1.0, 1.0)) == (6.0, 5.0)
    values, slopes = bt.compile(lambda x: [x[0], x[0] * x[1]]).jvp([2.0, 3.0], [1.0, 0.0])
    assert (values.tolist(), slopes.tolist()) == ([2.0, 6.0], [1.0, 3.0])
    with pytest.raises(ValueError, match="but v is"):
        c.jvp(x, [1.0])


@every_backend
@pytest.mark.parametrize("method", ["gd", "momentum", "adam", "lbfgs"])
def test_minimize(backend: str, method: str) -> None:
    c = bt.compile(lambda x: (x[0] - 3) ** 2 + 10 * (x[1] + 1) ** 2, backend=backend)
    m = c.minimize(np.zeros(2), method=method, steps=5000, tolerance=1e-6)
    assert m.converged
    assert m.slope <= 1e-6
    assert 0 < m.steps < 5000
    assert m.x == pytest.approx([3, -1], abs=1e-5)
    assert m.value == pytest.approx(0, abs=1e-9)


def test_minimize_structures_and_wrong_uses() -> None:
    c = bt.compile(lambda a, b: (a - 1) ** 2 + ((b - 2) ** 2).sum(), backend="replay")
    a, b = c.minimize((0.0, np.zeros(3))).x
    assert a == pytest.approx(1)
    assert b == pytest.approx([2, 2, 2])
    assert bt.compile(rosenbrock).minimize([-1.2, 1.0], steps=100).x == pytest.approx([1, 1])
    assert bt.compile(rosenbrock).minimize([-1.2, 1.0], steps=3).steps == 3
    with pytest.raises(ValueError, match="gd, momentum, adam, lbfgs"):
        c.minimize((0.0, np.zeros(3)), method="newton")
    with pytest.raises(ValueError, match="negative"):
        c.minimize((0.0, np.zeros(3)), steps=-1)
    with pytest.raises(ValueError, match="scipy"):
        bt.compile(lambda x: x * x if x > 1 else x * x * 2, dynamic=True).minimize(5.0)


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs signals")
def test_minimize_stops_on_interrupt() -> None:
    c = bt.compile(rosenbrock, backend="replay")
    c([0.0, 0.0])
    main = threading.main_thread().ident
    assert main is not None
    helper = threading.Timer(0.2, lambda: signal.pthread_kill(main, signal.SIGINT))
    helper.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        c.minimize([-1.2, 1.0], method="gd", lr=1e-9, steps=10**12)
    assert time.monotonic() - start < 60
    helper.join()


def test_threads_run_their_own_compiled_functions() -> None:
    wrong = []

    def work(k: int) -> None:
        c = bt.compile(lambda x: x[0] * float(k) + x[1], backend="replay")
        for i in range(300):
            if c.value_and_grad(np.array([float(i), 1.0]))[0] != i * k + 1.0:
                wrong.append((k, i))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("n", [3, 20_000])  # a long run gives up the interpreter's lock
def test_threads_share_one_compiled_function(n: int) -> None:
    def f(x: Any) -> Any:
        return bt.reduce_sum([a * b for a, b in zip(x, x[1:])]) * 1.0

    c = bt.compile(f, backend="replay")
    wrong = []

    def work(k: int) -> None:
        x = np.full(n, float(k))
        for _ in range(30):
            value, gradient = c.value_and_grad(x)
            values = c(x), c.jacobian(x)[0], c.jvp(x, x)[1]
            if value != k * k * (n - 1) or gradient[1] != 2 * k:
                wrong.append((k, value))
            if values != (value, k, 2 * value):
                wrong.append((k, values))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_scipy_minimizes_it() -> None:
    optimize = pytest.importorskip("scipy.optimize")
    c = bt.compile(rosenbrock)
    found = optimize.minimize(c.value_and_grad, [-1.2, 1.0], jac=True, method="BFGS")
    assert found.x == pytest.approx([1, 1], abs=1e-4)


def test_a_compiled_function_can_be_collected() -> None:
    class Witness:
        pass

    witness = Witness()
    gone: list[int] = []
    weakref.finalize(witness, gone.append, 1)
    c = bt.compile(lambda x, w=witness: (x * x).sum(), backend="replay")
    c.value_and_grad(np.array([1.0]))
    del c, witness
    gc.collect()
    assert gone == [1]


# ---- looking -----------------------------------------------------------------------------------------


def test_source_and_dot() -> None:
    c = bt.compile(tiny)
    with pytest.raises(ValueError, match="nothing is recorded"):
        c.source()
    text = c.source([1.0, 2.0], name="loss")
    assert text.startswith("#include <math.h>\n\ndouble loss_value(const double *restrict x)\n")
    assert "void loss_batch(unsigned long n," in text
    assert text.count("#include") == 1
    graph = bt.compile(lambda alpha, beta: alpha * bt.tanh(beta)).dot(1.5, 2.0)
    assert graph.startswith("digraph")
    assert all(text in graph for text in ("alpha", "beta", "tanh"))
    assert "1.5" not in graph
    for name in ("2f", "int", "exp", "sinhf", "x", "values", "ü"):
        with pytest.raises(ValueError, match=f"called '{name}'"):
            c.source(name=name)
    assert "double expx(" in c.source(name="expx")
    assert "tiny" in repr(c)


@every_backend
def test_a_stored_function_runs_elsewhere(backend: str, tmp_path: Path) -> None:
    scale = bt.Value(3.0)
    c = bt.compile(lambda a, b: scale * a * bt.exp(b[0]) + bt.reduce_sum(list(b)), backend=backend)
    c.save(tmp_path / "f.btg", 1.0, np.ones(2))
    loaded = bt.load_compiled(tmp_path / "f.btg", backend=backend)
    x = np.array([2.0, 0.5, 0.25])
    value, (by_a, by_b) = c.value_and_grad(x[0], x[1:])
    assert loaded(x) == value
    assert loaded.value_and_grad(x)[1].tolist() == [by_a, *by_b]
    assert loaded.batch([x, x])[0] == pytest.approx([value, value])
    with pytest.raises(TypeError, match="one vector of 3 numbers"):
        loaded(1.0)
    # Outputs that are inputs, come twice, or stand amid a block.
    several = bt.compile(lambda x: [x[1], x[1], bt.softmax(x)[0], x[0] * x[0]], backend="replay")
    file = io.BytesIO()
    several.save(file, [1.0, 2.0])
    again = bt.load_compiled(file.getvalue(), backend="replay")
    assert (again([0.5, 0.75]) == several([0.5, 0.75])).all()
    assert (again.jacobian([0.5, 0.75]) == several.jacobian([0.5, 0.75])).all()


def test_files_that_are_no_stored_function(tmp_path: Path) -> None:
    file = io.BytesIO()
    bt.compile(tiny, backend="replay").save(file, [1.0, 2.0])
    content = file.getvalue()
    for i in range(0, len(content), 7):
        with pytest.raises(ValueError, match="graph"):
            bt.load_compiled(content[:i] + bytes([content[i] ^ 1]) + content[i + 1 :])
    with pytest.raises(ValueError, match="graph"):
        bt.load_compiled(content[:-1])
    tape = bt.Tape()
    with tape:
        bt.Value(1.0).backward()
    tape.save_graph(tmp_path / "plain.btg")
    with pytest.raises(ValueError, match="0 marks, not 3"):
        bt.load_compiled(tmp_path / "plain.btg")


# ---- native code -------------------------------------------------------------------------------------


@needs_compiler
def test_native_code_of_several_outputs() -> None:
    def f(x: Any) -> Any:
        return [x[0] * x[1], bt.sin(x[0]), 7.0]

    native, replay = bt.compile(f, backend="native"), bt.compile(f, backend="replay")
    at = [2.0, 3.0]
    assert native(at) == pytest.approx(replay(at), rel=1e-15)
    assert native.jacobian(at) == pytest.approx(replay.jacobian(at), rel=1e-15)
    assert native._last is not None
    assert native._last.function.is_native
    assert bt.compile(lambda x: [x * x], backend="native").jacobian(3.0).tolist() == [6.0]


@needs_compiler
def test_auto_replays_what_would_compile_for_long(monkeypatch: Any) -> None:
    asked = threading.Event()
    monkeypatch.setattr(compiled, "_use_native", lambda *_: asked.wait(10))
    c = bt.compile(lambda x: bt.reduce_sum_of_squares(list(x)))
    assert c(np.ones(1000)) == 1000  # while it is compiled in the background
    assert not c.wait(0)
    asked.set()
    c.wait()
    monkeypatch.setattr(compiled, "_use_native", lambda *_: pytest.fail("this would take long"))
    c = bt.compile(lambda x: bt.reduce_sum_of_squares(list(x)))
    assert c(np.ones(80_000)) == 80_000
    assert c._background is None


@needs_compiler
def test_a_compiler_that_takes_too_long_is_stopped(monkeypatch: Any, tmp_path: Path) -> None:
    script = tmp_path / "cc"
    script.write_text("#!/bin/sh\nsleep 1000\n")
    script.chmod(0o700)
    monkeypatch.setenv("CC", str(script))
    monkeypatch.setattr(compiled, "_MOST_SECONDS", 0.2)
    monkeypatch.setattr(compiled, "_warned", False)
    with pytest.warns(RuntimeWarning, match="longer than 0.2 s"):
        assert bt.compile(rosenbrock)([2.0, 3.0]) == 101.0


@needs_compiler
def test_two_processes_compile_at_once(tmp_path: Path) -> None:
    code = "import burtorch as bt; from test_compile import rosenbrock\n"
    code += "print(bt.compile(rosenbrock, backend='native')([2.0, 3.0]))"
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    env = {**os.environ, "PYTHONPATH": path, "BURTORCH_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", code]
    both = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate()[0] for process in both] == ["101.0\n"] * 2
    assert len(list((tmp_path / "cache").iterdir())) == 1


@needs_compiler
def test_the_cache_is_used_again_and_private(tmp_path: Path, monkeypatch: Any) -> None:
    folder = tmp_path / "cache"
    monkeypatch.setenv("BURTORCH_CACHE_DIR", str(folder))

    def compiled_anew() -> bt.Compiled:
        c = bt.compile(rosenbrock, backend="native")
        assert c([2.0, 3.0]) == 101.0
        return c

    compiled_anew()
    (library,) = folder.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    made = library.stat().st_mtime_ns
    compiled_anew()
    assert library.stat().st_mtime_ns == made
    # What somebody else could have written is not loaded but made anew.
    library.chmod(0o777)
    compiled_anew()
    assert library.stat().st_mode & 0o777 == 0o700
    library.write_bytes(b"rubbish")
    # (this process has the library loaded under that name; another one must read the file)
    code = "import burtorch as bt; from test_compile import rosenbrock\n"
    code += "print(bt.compile(rosenbrock, backend='native')([2.0, 3.0]))"
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "101.0\n", done.stderr


@needs_compiler
def test_a_folder_that_others_can_write_to_is_not_used(tmp_path: Path, monkeypatch: Any) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    monkeypatch.setenv("BURTORCH_CACHE_DIR", str(folder))
    assert _native.cache_folder() != folder
    assert bt.compile(rosenbrock, backend="native")([2.0, 3.0]) == 101.0
    assert list(folder.iterdir()) == []
    link = tmp_path / "link"
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    link.symlink_to(private)
    monkeypatch.setenv("BURTORCH_CACHE_DIR", str(link))
    assert _native.cache_folder() != link


@needs_compiler
def test_no_folder_above_the_cache_is_one_that_others_can_change(
    tmp_path: Path, monkeypatch: Any
) -> None:
    above = tmp_path / "above"
    cache = above / "mine" / "cache"
    cache.mkdir(parents=True, mode=0o700)
    monkeypatch.setenv("BURTORCH_CACHE_DIR", str(cache))
    for mode, is_used in ((0o755, True), (0o777, False), (0o1777, True), (0o700, True)):
        above.chmod(mode)
        assert (_native.cache_folder() == cache.resolve()) is is_used
    above.chmod(0o777)
    assert bt.compile(rosenbrock, backend="native")([2.0, 3.0]) == 101.0
    assert list(cache.iterdir()) == []
    monkeypatch.setattr(_native, "_temporary", [])
    monkeypatch.setattr("tempfile.tempdir", str(above))
    with pytest.raises(_native.CompilerError, match="other users can write"):
        bt.compile(rosenbrock, backend="native")([2.0, 3.0])
    _native._temporary.pop().cleanup()
    # Reached through a link that others could change: what it leads to is used from then on.
    above.chmod(0o755)
    (tmp_path / "link").symlink_to(above / "mine")
    monkeypatch.setenv("BURTORCH_CACHE_DIR", str(tmp_path / "link" / "cache"))
    assert _native.cache_folder() == cache.resolve()


@needs_compiler
def test_the_cache_is_bounded(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("BURTORCH_CACHE_DIR", str(tmp_path / "cache"))
    cache = _native.cache_folder()

    def load(k: int) -> set[str]:
        before = set(cache.iterdir())
        _native.load(f"double f(void) {{ return {k}; }}")
        for file in cache.iterdir():  # whatever the system's clock can tell apart
            os.utime(file, ns=(file.stat().st_atime_ns - 10**9, file.stat().st_mtime_ns))
        return {file.name for file in set(cache.iterdir()) - before}

    first, second = load(1), load(2)
    assert load(1) == set()  # used last
    size = max(file.stat().st_size for file in cache.iterdir())
    monkeypatch.setenv("BURTORCH_CACHE_BYTES", str(2 * size + size // 2))
    third = load(3)
    assert {file.name for file in cache.iterdir()} == first | third
    assert second
    monkeypatch.setenv("BURTORCH_CACHE_BYTES", "0")
    assert {file.name for file in cache.iterdir()} != (fourth := load(4))
    assert {file.name for file in cache.iterdir()} == fourth  # what is in use stays
    monkeypatch.setenv("BURTORCH_CACHE_BYTES", "much")
    with pytest.raises(_native.CompilerError, match="number of bytes, not 'much'"):
        load(5)


@needs_compiler
def test_folders_of_killed_compilations_go(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("BURTORCH_CACHE_DIR", str(tmp_path / "cache"))
    cache = _native.cache_folder()
    left = cache / "making-left"
    left.mkdir()
    (left / "f.c").write_text("int x;")
    with _native._work_folder(cache) as living:
        assert not left.exists()
        _native.load("double f(void) { return 1; }")
        assert living.exists()
    assert not living.exists()
    code = "import os, signal; from burtorch import _native\n"
    code += "from pathlib import Path; import sys\n"
    code += "with _native._work_folder(Path(sys.argv[1])): os.kill(os.getpid(), signal.SIGKILL)"
    subprocess.run([sys.executable, "-c", code, str(cache)], check=False)
    assert len(list(cache.glob("making-*"))) == 1
    _native.load("double f(void) { return 2; }")
    assert list(cache.glob("making-*")) == []


def test_without_a_compiler_auto_replays_and_says_so_once(monkeypatch: Any) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr(compiled, "_warned", False)
    with pytest.warns(RuntimeWarning, match="replayed"):
        assert bt.compile(rosenbrock)([2.0, 3.0]) == 101.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert bt.compile(rosenbrock)([2.0, 3.0]) == 101.0
    with pytest.raises(_native.CompilerError, match="no C compiler"):
        bt.compile(rosenbrock, backend="native")([2.0, 3.0])


@needs_compiler
def test_a_compiler_that_fails_is_quoted(monkeypatch: Any, tmp_path: Path) -> None:
    script = tmp_path / "cc"
    script.write_text("#!/bin/sh\necho out of order >&2\nexit 1\n")
    script.chmod(0o700)
    monkeypatch.setenv("CC", str(script))
    with pytest.raises(_native.CompilerError, match="out of order"):
        bt.compile(rosenbrock, backend="native")([2.0, 3.0])
    monkeypatch.setattr(compiled, "_warned", False)
    with pytest.warns(RuntimeWarning, match="status 1: out of order: functions are replayed"):
        assert bt.compile(rosenbrock)([2.0, 3.0]) == 101.0
    script.write_text("no program")
    for cc in (str(script), "'x", "/bin/false", "/nonexistent/cc"):
        monkeypatch.setenv("CC", cc)
        with pytest.raises(_native.CompilerError):
            bt.compile(rosenbrock, backend="native")([2.0, 3.0])
        monkeypatch.setattr(compiled, "_warned", False)
        with pytest.warns(RuntimeWarning, match="replayed"):
            assert bt.compile(rosenbrock)([2.0, 3.0]) == 101.0


@needs_compiler
def test_the_emitted_text_compiles_without_a_warning(tmp_path: Path) -> None:
    source = tmp_path / "f.c"
    source.write_text(bt.compile(rosenbrock).source([1.0, 2.0]))
    command = [*(_native.compiler() or []), "-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror"]
    subprocess.run([*command, "-c", "-o", str(tmp_path / "f.o"), str(source)], check=True)


# ---- numbers that would be kept -------------------------------------------------------------------


def test_equality_is_a_branch() -> None:
    def f(x: Any) -> Any:
        return x if x == 0 else 1 / x

    with pytest.raises(bt.BranchError, match="compares a Value that depends on the inputs"):
        bt.compile(f)(0.0)
    c = bt.compile(f, dynamic=True)
    assert [c(0.0), c(4.0), c(0.0), c(-2.0)] == [0.0, 0.25, 0.0, -0.5]
    assert c.value_and_grad(2.0) == (0.5, -0.25)
    assert c.value_and_grad(0.0) == (0.0, 1.0)
    d = bt.compile(lambda x: x * 2 if x != 3 else x * 5, dynamic=True)
    assert [d(3.0), d(4.0), d(3.0)] == [15.0, 8.0, 15.0]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    ("read", "what"),
    [
        (lambda x: x.data, r"reads \.data of a Value"),
        (lambda x: (x * x + 1).data, r"reads \.data of a Value"),
        (lambda x: copy.deepcopy(x), "copies a Value"),
        (lambda x: pickle.loads(pickle.dumps(x)), r"reads \.data of a Value"),
        (lambda x: bt.vector(np.array([x, x])).data[0], r"reads \.data of a View"),
        (lambda x: (bt.vector([1.0, 2.0]) * x).data[1], r"reads \.data of a View"),
        (lambda x: [(x * x).backward(), x.grad][1], "goes backward from a Value"),
        (lambda x: bt.stop_gradient(x).data, r"reads \.data of a Value"),
        (lambda x: float(x), "would cut the graph"),
        (lambda x: math.exp(x), "would cut the graph"),
    ],
)
def test_a_number_that_would_hold_for_all_inputs_is_refused(
    read: Any, what: str, dynamic: bool
) -> None:
    """c = compile(lambda x: x * x.data) gave c(2) = 4 and then c(3) = 6."""
    c = bt.compile(lambda x: x * read(x), backend="replay", dynamic=dynamic)
    for _ in range(2):
        with pytest.raises(bt.Error, match=what) as info:
            c(2.0)
        assert isinstance(info.value, TypeError)
    assert bt.current_tape().mark() is not None


def test_the_refusal_names_the_place_and_the_way_out() -> None:
    with pytest.raises(bt.GraphError, match=r"test_compile\.py:\d+ .*burtorch\.stop_gradient\(x\)"):
        bt.compile(lambda x: x * x.data)(2.0)


def test_numbers_that_do_not_depend_on_the_inputs_may_be_read() -> None:
    w = bt.Value(3.0)

    def f(x: Any) -> Any:
        own = bt.Value(2.0) * 5
        assert "Value(data=" in repr(x)  # text is for people
        assert f"{x:.1f}" == "2.0"
        return x * w.data * own.data * bt.vector([4.0]).data[0]

    assert bt.compile(f, backend="replay")(2.0) == 240.0


@every_backend
@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * bt.stop_gradient(x),
        lambda x: x * x.detach(),
        lambda x: bt.stop_gradient(np.array([x, x]))[1] * x,
        lambda x: (bt.vector(np.array([x, x])) * bt.vector(np.array([x, 0 * x])).detach())[0],
    ],
)
def test_stop_gradient_follows_the_inputs_and_has_no_gradient(backend: str, f: Any) -> None:
    c = bt.compile(f, backend=backend if "vector" not in f.__code__.co_names else "replay")
    for x in (2.0, 3.0, -1.5):
        assert c.value_and_grad(x) == (x * x, x)
        assert c(x) == x * x
        assert bt.value_and_grad(f)(x) == (x * x, x)


def test_no_grad_inside_of_a_recorded_function_names_stop_gradient() -> None:
    def f(x: Any) -> Any:
        with bt.no_grad():
            y = x * x
        return x * y

    with pytest.raises(bt.Error, match=r"use burtorch\.stop_gradient\(x\)"):
        bt.compile(f)(2.0)


def test_a_bound_array_that_was_resized_is_not_written_to() -> None:
    c = bt.compile(rosenbrock, backend="replay")
    x, out = np.array([1.5, 2.0]), np.zeros(3)
    run = c.bind(x, out)
    run()
    assert out[0] == rosenbrock([1.5, 2.0])
    out.resize(200_000, refcheck=False)  # elsewhere in memory
    changed = pytest.raises(ValueError, match="bind again")
    with changed:
        run()
    assert not out[3:].any()
    out.resize(3, refcheck=False)
    x.resize(1, refcheck=False)
    with changed:
        run()
    x.resize(2, refcheck=False)
    out.flags.writeable = False
    with changed:
        run()
    out.flags.writeable = True
    x[:] = 1.0
    run()
    assert out[0] == 0.0


def _long(x: Any) -> Any:
    y = x[0]
    for i in range(4000):
        y = bt.sin(y) * x[1] + x[i % 2]
    return y


@needs_compiler
def test_large_functions_are_compiled_in_the_background(monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setenv("BURTORCH_CACHE_DIR", str(tmp_path / "cache"))
    c = bt.compile(_long)
    first = c.value_and_grad([0.5, 0.25])  # at once: replayed
    assert c.wait()
    assert c._last is not None
    value, gradient = c.value_and_grad([0.5, 0.25])
    assert value == first[0]
    np.testing.assert_array_equal(gradient, first[1])
    assert not bt.compile(_long, backend="replay").wait()


@needs_compiler
def test_a_process_does_not_wait_for_the_background(tmp_path: Path) -> None:
    script = tmp_path / "cc"
    script.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nsleep 1000\n")
    script.chmod(0o700)
    code = "import time, burtorch as bt; from test_compile import _long; from pathlib import Path\n"
    code += "print(bt.compile(_long)([0.5, 0.25]) == bt.compile(_long, backend='replay')([0.5, 0.25]))\n"
    code += f"while not Path({str(tmp_path / 'pid')!r}).exists(): time.sleep(0.01)"
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    env = {**os.environ, "PYTHONPATH": path, "CC": str(script)}
    env["BURTORCH_CACHE_DIR"] = str(tmp_path / "cache")
    run = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=300
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "True\n", "")
    pid = int((tmp_path / "pid").read_text())
    for _ in range(500):  # it was killed, but its parent may not know yet
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        state = Path(f"/proc/{pid}/stat")
        if state.exists() and state.read_text().rsplit(")", 1)[1].split()[0] == "Z":
            return
        time.sleep(0.01)
    raise AssertionError("the compiler goes on")


def test_equal_expressions_are_shared_on_request() -> None:
    def f(x: Any) -> Any:
        return bt.exp(x[0] * x[1]) + 2 * bt.exp(x[0] * x[1])

    x = [0.3, 0.7]
    plain = bt.compile(f, backend="replay")
    shared = bt.compile(f, backend="replay", share=True)
    assert plain(x) == shared(x)
    np.testing.assert_allclose(plain.value_and_grad(x)[1], shared.value_and_grad(x)[1], rtol=1e-14)
    assert (plain.dot().count(">exp<"), shared.dot().count(">exp<")) == (2, 1)
