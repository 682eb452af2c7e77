# tests/test_micrograd.py — programs in micrograd's spelling run with the import changed
# SPDX-License-Identifier: MIT
from __future__ import annotations

import random

import pytest
from burtorch.micrograd import Value, nn
from burtorch.micrograd.engine import Value as EngineValue


def test_the_names_are_there() -> None:
    assert EngineValue is Value
    assert repr(nn.MLP(2, [3, 1])) == (
        "MLP of [Layer of [ReLUNeuron(2), ReLUNeuron(2), ReLUNeuron(2)], Layer of [LinearNeuron(3)]]"
    )


def test_an_expression_with_known_numbers() -> None:
    x = Value(-4.0)
    z = 2 * x + 2 + x
    q = z.relu() + z * x
    h = (z * z).relu()
    y = h + q + q * x
    y.backward()
    assert y.data == -20.0
    assert x.grad == 46.0


def test_weights_are_those_of_a_seeded_random() -> None:
    random.seed(1337)
    expected = [random.uniform(-1, 1) for _ in range(3)]
    random.seed(1337)
    neuron = nn.Neuron(3)
    assert [w.data for w in neuron.w] == expected
    assert neuron.b.data == 0.0
    assert len(nn.MLP(3, [4, 4, 1]).parameters()) == 41


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
