# tests/test_micrograd.py — programs in micrograd's spelling run with the import changed
# SPDX-License-Identifier: MIT
"""Each program takes the engine it runs on as `mg`, a module with Value and nn. Its numbers are
compared with stored ones and, where micrograd is installed, with those of micrograd itself."""

from __future__ import annotations

import importlib
import random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from burtorch import micrograd as ours
from burtorch.micrograd import Value, nn
from burtorch.micrograd.engine import Value as EngineValue


def sanity(mg: Any) -> Any:
    x = mg.Value(-4.0)
    z = 2 * x + 2 + x
    q = z.relu() + z * x
    h = (z * z).relu()
    y = h + q + q * x
    y.backward()
    return y.data, x.grad


def more_operations(mg: Any) -> Any:
    a = mg.Value(-4.0)
    b = mg.Value(2.0)
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
    return g.data, a.grad, b.grad


def every_operator(mg: Any) -> Any:
    x, y = mg.Value(1.5), mg.Value(-0.5)
    z = (3 - x) / (2 / y - x / 4) + (x - y) ** 4 - x**-2 + y**0 + (-x + 1) ** 0.0 + x**0.5
    z = sum([z, x, 2, y * 2.0])
    z.backward()  # type: ignore[union-attr]
    return z.data, x.grad, y.grad  # type: ignore[union-attr]


def moons(mg: Any, steps: Any = 3) -> Any:
    """The classifier of micrograd's demo, on two half circles: hinge loss, L2, accuracy."""
    random.seed(1337)
    t = np.linspace(0, np.pi, 8)
    rows = np.concatenate([np.c_[np.cos(t), np.sin(t)], np.c_[1 - np.cos(t), 0.5 - np.sin(t)]])
    labels = np.repeat([-1, 1], 8)
    model = mg.nn.MLP(2, [8, 8, 1])
    numbers = [p.data for p in model.parameters()]
    for k in range(steps):
        inputs = [list(map(mg.Value, row)) for row in rows]
        scores = list(map(model, inputs))
        losses = [(1 + -label * score).relu() for label, score in zip(labels, scores)]
        data_loss = sum(losses) * (1.0 / len(losses))
        regularization = 1e-4 * sum(p * p for p in model.parameters())
        total_loss = data_loss + regularization
        accuracy = [(label > 0) == (score.data > 0) for label, score in zip(labels, scores)]
        model.zero_grad()
        total_loss.backward()
        for p in model.parameters():
            p.data -= (1.0 - 0.9 * k / 100) * p.grad
        numbers += [total_loss.data, sum(accuracy) / len(accuracy)]
    return numbers + [p.data for p in model.parameters()] + [p.grad for p in model.parameters()]


@pytest.mark.parametrize("program", [sanity, more_operations, every_operator, moons])
def test_the_numbers_are_those_of_micrograd(program: Any) -> None:
    pytest.importorskip("micrograd", reason="micrograd is not installed; `make venv` does that")
    theirs = SimpleNamespace(
        Value=importlib.import_module("micrograd.engine").Value,
        nn=importlib.import_module("micrograd.nn"),
    )
    # The order in which gradients are summed is not the same.
    assert program(ours) == pytest.approx(program(theirs), rel=1e-12, abs=1e-15)


def test_the_numbers_are_those_stored() -> None:
    assert sanity(ours) == (-20.0, 46.0)
    expected = (24.70408163265306, 138.83381924198252, 645.5772594752186)
    assert more_operations(ours) == pytest.approx(expected, rel=1e-15)


def test_the_names_are_there() -> None:
    assert EngineValue is Value
    assert repr(nn.MLP(2, [3, 1])) == (
        "MLP of [Layer of [ReLUNeuron(2), ReLUNeuron(2), ReLUNeuron(2)], Layer of [LinearNeuron(3)]]"
    )


def test_weights_are_those_of_a_seeded_random() -> None:
    random.seed(1337)
    expected = [random.uniform(-1, 1) for _ in range(3)]
    random.seed(1337)
    neuron = nn.Neuron(3)
    assert [w.data for w in neuron.w] == expected
    assert neuron.b.data == 0.0
    assert len(nn.MLP(3, [4, 4, 1]).parameters()) == 41


def test_operations_of_ones_own_are_refused() -> None:
    a = Value(0.5)
    with pytest.raises(TypeError):
        Value(a.data, (a,), "tanh")  # type: ignore[arg-type, call-arg]
    with pytest.raises(AttributeError):
        a._backward = lambda: None  # type: ignore[attr-defined]
    assert a.tanh()._op == "tanh"


def test_training_lowers_the_loss() -> None:
    random.seed(7)
    model = nn.MLP(2, [8, 1])
    points = [((0.0, 0.0), -1.0), ((0.0, 1.0), 1.0), ((1.0, 0.0), 1.0), ((1.0, 1.0), -1.0)]
    losses = []
    for _ in range(200):
        loss = sum((model(x) - y) ** 2 for x, y in points)
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= 0.05 * p.grad
        losses.append(loss.data)
    assert losses[-1] < 0.1 * losses[0]
    assert losses[-1] == pytest.approx(min(losses), abs=0.05)


# ---- pictures: micrograd's notebook walks _prev and tells nodes apart by identity ----


def trace(root: Any) -> Any:
    nodes, edges = set(), set()

    def visit(v: Any) -> None:
        if v not in nodes:
            nodes.add(v)
            for operand in v._prev:
                edges.add((operand, v))
                visit(operand)

    visit(root)
    return nodes, edges


def test_a_graph_of_unnamed_nodes_can_be_walked() -> None:
    a, b, c = Value(2.0), Value(-3.0), Value(10.0)
    root = (a * b + c).relu()
    nodes, edges = trace(root)
    assert (len(nodes), len(edges)) == (6, 5)
    assert {a, b, c, root} < nodes
    assert sorted(v._op for v in nodes) == ["", "", "", "*", "+", "relu"]
    assert sorted(v.data for v in nodes) == [-6.0, -3.0, 2.0, 4.0, 4.0, 10.0]


def test_a_node_used_twice_is_one_node() -> None:
    a, b = Value(2.0), Value(-3.0)

    def squared_sum(s: Any) -> Any:
        return (s + a) * (s + b)

    nodes, edges = trace(squared_sum(a * b))
    assert (len(nodes), len(edges)) == (6, 8)
    nodes, edges = trace(a + a)
    assert (len(nodes), len(edges)) == (2, 1)


def test_plain_numbers_are_no_nodes() -> None:
    a = Value(2.0)
    nodes, edges = trace(2 * a + 1)
    assert (len(nodes), len(edges)) == (3, 2)
    assert (2 * a)._prev == {a}
    assert a._prev == set()
