# tests/test_value.py — burtorch.Value: numbers, operators, attributes, and what it refuses
# SPDX-License-Identifier: MIT
from __future__ import annotations

import copy
import gc
import math
import operator
import os
import pickle
import random
import subprocess
import sys

import burtorch as bt
import numpy as np
import pytest

UNARY = {
    "relu": (lambda x: max(x, 0.0), lambda x: float(x > 0)),
    "tanh": (math.tanh, lambda x: 1 - math.tanh(x) ** 2),
    "exp": (math.exp, math.exp),
    "negative_log": (lambda x: -math.log(x), lambda x: -1 / x),
    "sigmoid": (lambda x: 1 / (1 + math.exp(-x)), lambda x: 1 / (2 + math.exp(x) + math.exp(-x))),
    "inv": (lambda x: 1 / x, lambda x: -1 / x**2),
    "sqr": (lambda x: x * x, lambda x: 2 * x),
    "pow3": (lambda x: x**3, lambda x: 3 * x * x),
    "log": (math.log, lambda x: 1 / x),
    "sqrt": (math.sqrt, lambda x: 0.5 / math.sqrt(x)),
    "inv_sqrt": (lambda x: x**-0.5, lambda x: -0.5 * x**-1.5),
    "sin": (math.sin, math.cos),
    "atan": (math.atan, lambda x: 1 / (1 + x * x)),
}


@pytest.mark.parametrize("name", UNARY)
def test_unary_functions_and_methods(name: str) -> None:
    value, slope = UNARY[name]
    x = bt.Value(0.7)
    y = getattr(bt, name)(x)
    assert y.data == pytest.approx(value(0.7), rel=1e-14)
    assert y.op == name
    bt.backward(y)
    assert x.grad == pytest.approx(slope(0.7), rel=1e-13)
    assert getattr(x, name)().data == y.data
    assert getattr(bt, name)(0.7) == y.data  # of a number: a number


@pytest.mark.parametrize("apply", [operator.add, operator.sub, operator.mul, operator.truediv])
@pytest.mark.parametrize("number", [2, 2.5, True, np.float64(2.5), np.float32(2.5), np.int64(3)])
def test_numbers_on_either_side(apply: object, number: object) -> None:
    with bt.Tape() as tape:
        x = bt.Value(3.0)
        after, before = apply(x, number), apply(number, x)
        assert after.data == apply(3.0, float(number))
        assert before.data == apply(float(number), 3.0)
        assert len(tape) == 3  # numbers take no nodes


def test_the_papers_graph() -> None:
    a, b = bt.Value(-4.0), bt.Value(2.0)
    c = a + b
    d = a * b + b**3
    c += c + 1
    c += 1 + c + (-a)
    d += d * 2 + (b + a).relu()
    d += 3 * d + (b - a).relu()
    e = c - d
    f = e**2
    g = f / 2.0
    g += 10.0 / f
    g.backward()
    assert g.data == 24.70408163265306
    assert a.grad == pytest.approx(138.83381924198252, rel=1e-15)
    assert b.grad == pytest.approx(645.5772594752186, rel=1e-15)


def test_attributes() -> None:
    x = bt.Value(3.0, name="x")
    y = 2 * x
    assert (x.name, y.name, y.op, x.op, x.args) == ("x", None, "mul", "leaf", ())
    assert y.args[0] == 2.0
    assert y.args[1] is x
    x.data, x.grad, x.name = 5, 0.5, None
    assert (x.data, x.grad, x.name) == (5.0, 0.5, None)
    assert repr(x) == "Value(data=5.0, grad=0.5)"
    assert f"{x:.3f}" == "5.000"
    clamped = bt.clamp(x, -1, 1)
    assert clamped.args[1:] == (-1.0, 1.0)
    assert [v.data for v in bt.reduce_sum(x, y).args] == [5.0, 6.0]
    assert x.tape is bt.current_tape()


def test_comparison_by_value_hash_by_identity() -> None:
    x, y = bt.Value(1.0), bt.Value(1.0)
    assert x <= y
    assert x < 2
    assert x > 0
    assert x != y
    assert len({x, y, x}) == 2
    assert max([x, bt.Value(7.0)], key=lambda v: v.data).data == 7.0


def test_reductions() -> None:
    xs = [bt.Value(v) for v in (1.0, -2.0, 4.0)]
    assert bt.reduce_sum(xs).data == 3.0
    assert bt.reduce_sub(*xs).data == -1.0
    assert bt.reduce_mul(xs).data == -8.0
    assert bt.reduce_mean(xs).data == 1.0
    assert bt.reduce_negative_mean(xs).data == -1.0
    assert bt.reduce_max(xs).data == 4.0
    assert bt.variance(xs).data == pytest.approx(9.0)
    assert bt.variance_biased(xs).data == pytest.approx(6.0)
    assert [v.data for v in bt.reduce_mean_and_mean_squares(xs)] == [1.0, 7.0]
    assert bt.inner_product(xs, xs).data == 21.0
    assert bt.inner_product_with_bias(xs, xs, xs[0]).data == 22.0
    assert bt.reduce_sum([]).data == 0.0
    assert sum(xs).data == 3.0


def test_numpy_object_arrays() -> None:
    a = np.array([bt.Value(1.0), bt.Value(2.0)])
    b = np.array([bt.Value(3.0), bt.Value(4.0)])
    assert (a @ b).data == 11.0
    assert [v.data for v in a + b] == [4.0, 6.0]
    assert [v.data for v in a * 2] == [2.0, 4.0]
    assert [v.data for v in a * b[0]] == [3.0, 6.0]
    assert (a * b).sum().data == 11.0
    assert [v.data for v in np.exp(a)] == [math.exp(1), math.exp(2)]
    assert (np.float64(2) * a[0]).data == 2.0


def test_copies() -> None:
    x = bt.Value(3.0, name="x")
    y = x * x
    y.backward()
    assert copy.copy(x) is x
    deep = copy.deepcopy(x)
    assert (deep.data, deep.grad, deep.name, deep.op) == (3.0, 6.0, "x", "leaf")
    assert deep.index != x.index
    back = pickle.loads(pickle.dumps(y))
    assert (back.data, back.op) == (9.0, "leaf")


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (lambda: bt.Value("x"), TypeError, "takes a number, not str"),
        (lambda: bt.Value(), TypeError, "data"),
        (lambda: bt.Value(np.zeros(3)), TypeError, "takes a number, not numpy.ndarray"),
        (lambda: bt.Value(1.0) ** "2", TypeError, "unsupported operand"),
        (lambda: bt.Value(1.0) + "2", TypeError, "unsupported operand"),
        (lambda: float(bt.Value(1.0)), TypeError, r"use \.data"),
        (lambda: math.exp(bt.Value(1.0)), TypeError, "burtorch's function of that name"),
        (lambda: bt.backward(3.0), TypeError, "backward needs a Value, not float"),
        (lambda: bt.exp("x"), TypeError, "a Value, a View or a number, not str"),
        (lambda: bt.add(bt.Value(1.0), None), TypeError, "NoneType"),
        (lambda: bt.add(bt.Value(1.0)), TypeError, "expected 2 arguments, got 1"),
        (lambda: bt.reduce_sum([bt.Value(1.0), 2.0]), TypeError, "expected Values, not float"),
        (lambda: bt.reduce_sum(3), TypeError, "sequence of Values"),
        (lambda: bt.reduce_max([]), ValueError, "extremum of no operands"),
        (lambda: bt.inner_product([bt.Value(1.0)], []), ValueError, "1 with 0 operands"),
        (lambda: bt.clamp(1.0, 0, 1), TypeError, "expected a Value or a View first"),
        (lambda: setattr(bt.Value(1.0), "data", "x"), TypeError, "data is a number, not str"),
        (lambda: setattr(bt.Value(1.0), "name", 3), TypeError, "name is a str or None"),
        (lambda: delattr(bt.Value(1.0), "grad"), AttributeError, "can't be deleted"),
        (lambda: bt.Value(10**400), OverflowError, "too large"),
    ],
)
def test_misuse_is_explained(wrong: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        wrong()


def test_operands_of_two_tapes() -> None:
    with bt.Tape() as one:
        x = bt.Value(1.0)
    y = bt.Value(2.0)
    for apply in (operator.add, lambda a, b: bt.reduce_sum(a, b)):
        with pytest.raises(bt.TapeMismatchError, match="two different tapes"):
            apply(x, y)
    assert len(one) == 1


def test_values_come_and_go_without_leaking() -> None:
    gc.collect()
    tape = bt.Tape()
    with tape:
        kept = [bt.Value(float(i)) for i in range(1000)]
        for _ in range(20000):
            bt.Value(1.0) * 2
        assert len(tape) < 5000
    assert [v.data for v in kept] == [float(i) for i in range(1000)]


@pytest.mark.parametrize(
    "program",
    [
        "import burtorch as bt; v = [bt.Value(1.0)]; import sys; sys.keep = v",  # alive at the end
        "import burtorch as bt, os; x = bt.Value(2.0); y = x * x\n"
        "pid = os.fork()\n"
        "y.backward(); assert x.grad == 4.0\n"
        "if pid == 0: os._exit(0)\n"
        "assert os.waitpid(pid, 0)[1] == 0",
    ],
)
def test_programs_that_end_oddly(program: str) -> None:
    if "fork" in program and not hasattr(os, "fork"):
        pytest.skip("this system has no fork")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_args_are_the_values_that_live() -> None:
    """Whatever came, went and moved in between: a node has one Value, as long as that lives."""
    random.seed(3)
    with bt.Tape() as tape:
        values = [bt.Value(float(i)) for i in range(4)]
        made_from: dict[int, tuple[bt.Value, bt.Value]] = {}
        for step in range(2000):
            x, y = random.choice(values), random.choice(values)
            values.append(x - y)
            made_from[id(values[-1])] = (x, y)
            seen = random.choice(values)
            assert all(a is b for a, b in zip(seen.args, made_from.get(id(seen), ())))
            if len(values) > 40:
                gone = values.pop(random.randrange(4, len(values)))
                made_from = {k: v for k, v in made_from.items() if k != id(gone)}
            if step % 100 == 99:
                tape.collect()


def test_args_made_on_the_way_are_kept_while_held_and_forgotten_after() -> None:
    with bt.Tape() as tape:
        x = bt.Value(2.0)
        root = (x * 3).exp()
        inner = root.args[0]
        assert root.args[0] is inner
        assert inner.args[0] is x
        del inner, root
        assert len(tape) == 1
        with tape.scope():
            stale = x + 1
        fresh = x * 5  # on the node that the stale one named
        outer = fresh.exp()
        assert outer.args[0] is fresh is not stale
