# tests/test_nn_layers.py — burtorch.nn's layers: what they compute, their names, their state
# SPDX-License-Identifier: MIT
from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import burtorch as bt
import numpy as np
import pytest
from burtorch import nn


@pytest.fixture(autouse=True)
def tape() -> Iterator[bt.Tape]:
    with bt.Tape() as fresh:
        yield fresh


def shapes(layer: nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: view.shape for name, view in layer.named_parameters()}


def test_names_and_shapes_are_those_of_pytorch() -> None:
    assert shapes(nn.Linear(4, 3)) == {"weight": (3, 4), "bias": (3,)}
    assert shapes(nn.Linear(4, 3, bias=False)) == {"weight": (3, 4)}
    assert shapes(nn.Neuron(4)) == {"weight": (4,), "bias": (1,)}
    assert list(shapes(nn.MLP([2, 5, 1]))) == [
        "layers.0.weight",
        "layers.0.bias",
        "layers.1.weight",
        "layers.1.bias",
    ]
    assert shapes(nn.Embedding(7, 3)) == {"weight": (7, 3)}
    assert shapes(nn.LayerNorm(6)) == {"weight": (6,), "bias": (6,)}
    block = nn.TransformerBlock(6, 2)
    assert list(shapes(block)) == [
        *(f"sa.heads.{h}.{part}.weight" for h in (0, 1) for part in ("key", "query", "value")),
        "sa.proj.weight",
        "sa.proj.bias",
        *(f"ffwd.net.{i}.{part}" for i in (0, 2) for part in ("weight", "bias")),
        *(f"ln{i}.{part}" for i in (1, 2) for part in ("weight", "bias")),
    ]
    assert shapes(block)["sa.heads.1.key.weight"] == (3, 6)
    assert shapes(block)["ffwd.net.0.weight"] == (24, 6)
    assert block.num_parameters == 3 * 36 + 36 + 6 + 144 + 24 + 144 + 6 + 24


def test_linear_and_mlp_compute_what_numpy_does() -> None:
    layer = nn.Linear(4, 3, random=bt.Random(1))
    w, b = layer.state_dict().values()
    x = np.arange(8.0).reshape(2, 4)
    np.testing.assert_allclose(layer(x).data, x @ w.T + b)
    np.testing.assert_allclose(layer(x[0]).data, w @ x[0] + b)
    v = bt.matrix(x)
    np.testing.assert_allclose(
        layer([bt.matrix(x[:, :1]), bt.matrix(x[:, 1:])]).data, layer(v).data
    )
    mlp = nn.MLP([4, 5, 2], activation="tanh", random=bt.Random(2))
    w0, b0, w1, b1 = mlp.state_dict().values()
    np.testing.assert_allclose(mlp(v).data, np.tanh(x @ w0.T + b0) @ w1.T + b1)


@pytest.mark.parametrize(
    ("name", "f"),
    [
        ("identity", lambda x: x),
        ("sigmoid", lambda x: 1 / (1 + np.exp(-x))),
        ("relu", lambda x: max(x, 0)),
        ("tanh", np.tanh),
        ("gelu", lambda x: bt.gelu(float(x))),
    ],
)
def test_neurons_and_activations_by_name(name: str, f: Any) -> None:
    neuron = nn.Neuron(3, activation=name, random=bt.Random(3))
    w, b = neuron.state_dict().values()
    x = [0.5, -1.0, 2.0]
    want = pytest.approx(f(w @ x + b[0]))
    assert neuron(x).data == want
    assert neuron([bt.Value(a) for a in x]).data == want
    assert neuron(bt.vector(x)).data == want
    assert nn.activation(name)(bt.Value(0.5)).data == pytest.approx(f(0.5))


def test_attention_is_the_textbooks() -> None:
    layer = nn.SelfAttention(6, 2, random=bt.Random(4))
    state = layer.state_dict()
    x = bt.matrix(np.sin(np.arange(30.0)).reshape(5, 6))
    heads = []
    for h in range(2):
        k, q, v = (
            x.data @ state[f"heads.{h}.{part}.weight"].T for part in ("key", "query", "value")
        )
        scores = q @ k.T / np.sqrt(3)
        scores[np.triu_indices(5, 1)] = -np.inf
        weights = np.exp(scores)
        heads.append(weights / weights.sum(axis=1, keepdims=True) @ v)
    want = np.concatenate(heads, axis=1) @ state["proj.weight"].T + state["proj.bias"]
    np.testing.assert_allclose(layer(x).data, want, rtol=1e-12)
    np.testing.assert_allclose(layer(x, positions=1).data[0], want[0], rtol=1e-12)


def test_a_transformer_block_has_the_gradient_of_differences() -> None:
    block = nn.TransformerBlock(4, 2, random=bt.Random(5))
    x = bt.matrix(np.cos(np.arange(24.0)).reshape(6, 4))

    def loss() -> bt.Value:
        total: bt.Value = (block(x, positions=3) ** 2).sum()
        return total

    loss().backward()
    for name, view in block.named_parameters():
        at = (0,) * view.ndim
        grad = view.grad[at]
        data = view.data
        values = []
        for step in (1e-5, -1e-5):
            moved = data.copy()
            moved[at] += step
            view.data = moved
            values.append(loss().data)
        view.data = data
        assert grad == pytest.approx((values[0] - values[1]) / 2e-5, rel=1e-5, abs=1e-7), name
    block.zero_grad()
    assert not any(view.grad.any() for view in block.parameters())


def test_embedding_and_layer_norm() -> None:
    table = nn.Embedding(5, 3, random=bt.Random(6))
    assert (table([4, 0]).data == table.weight.data[[4, 0]]).all()
    assert table([[1, 2]]).shape == (1, 6)
    y = nn.LayerNorm(3)(table([1, 2])).data
    np.testing.assert_allclose(y.mean(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(y.std(axis=1), 1, rtol=1e-3)


def test_layers_draw_the_same_numbers_for_the_same_seed() -> None:
    first = nn.TransformerBlock(4, 2, random=bt.Random(7)).state_dict()
    again = nn.TransformerBlock(4, 2, random=bt.Random(7)).state_dict()
    assert all((first[name] == again[name]).all() for name in first)
    nn.seed(1)
    a, b = nn.Linear(3, 3).weight.data, nn.Linear(3, 3).weight.data
    assert (a != b).all()
    nn.seed(1)
    assert (nn.Linear(3, 3).weight.data == a).all()
    he = nn.Linear(100, 50, init="kaiming_normal", random=bt.Random(1))
    assert he.weight.data.std() == pytest.approx((2 / 100) ** 0.5, rel=0.03)
    assert he.bias is not None
    assert not he.bias.data.any()


def test_every_layer_of_weights_takes_a_scheme() -> None:
    def drawn(inputs: int, outputs: int) -> float:
        return math.sqrt(2 / (inputs + outputs))

    random = bt.Random(3)
    neuron = nn.Neuron(2000, init="xavier_normal", random=random)
    assert neuron.weight.data.std() == pytest.approx(drawn(2000, 1), rel=0.05)
    table = nn.Embedding(300, 20, init="xavier_normal", random=random)
    assert table.weight.data.std() == pytest.approx(drawn(300, 20), rel=0.05)
    layers = nn.MLP([60, 80, 70], init="xavier_normal", random=random).layers
    for layer, (inputs, outputs) in zip(layers, [(60, 80), (80, 70)]):
        assert layer.weight.data.std() == pytest.approx(drawn(inputs, outputs), rel=0.05)
    with pytest.raises(ValueError, match="unknown scheme 'best'"):
        nn.Embedding(2, 3, init="best")


def test_state_goes_from_one_layer_to_another() -> None:
    one, other = nn.TransformerBlock(4, 2), nn.TransformerBlock(4, 2)
    x = bt.matrix(np.ones((3, 4)))
    assert (one(x).data != other(x).data).any()
    other.load_state_dict(one.state_dict())
    assert (one(x).data == other(x).data).all()


def test_a_state_that_does_not_fit_is_described_and_changes_nothing() -> None:
    layer = nn.Linear(2, 3)
    before = layer.state_dict()
    state = {"weight": np.ones((2, 3)), "scale": np.ones(3)}
    with pytest.raises(ValueError, match="does not fit Linear") as caught:
        layer.load_state_dict(state)
    assert str(caught.value) == (
        "the state does not fit Linear: missing: bias; unexpected: scale; "
        "weight has shape (3, 2), not (2, 3)"
    )
    with pytest.raises(ValueError, match=r"bias has shape \(3,\), not \(4,\)"):
        layer.load_state_dict({"weight": np.ones((3, 2)), "bias": np.ones(4)})
    assert all((layer.state_dict()[name] == before[name]).all() for name in before)


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="unknown activation 'cube'; there are identity, sigmoid"):
        nn.MLP([2, 1], activation="cube")
    with pytest.raises(ValueError, match="at least two sizes"):
        nn.MLP([2])
    with pytest.raises(ValueError, match="6 columns can't be shared by 4 heads"):
        nn.SelfAttention(6, 4)
    with pytest.raises(ValueError, match="unknown scheme 'best'"):
        nn.Linear(2, 3, init="best")
    with pytest.raises(ValueError, match="the input has 3 columns, the weights are 1×2"):
        nn.Linear(2, 1)([1.0, 2.0, 3.0])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_an_mlp_learns_xor(dtype: str) -> None:
    with bt.Tape(dtype) as tape:
        mlp = nn.MLP([2, 8, 2], activation="tanh", random=bt.Random(1))
        x = bt.matrix([[0, 0], [0, 1], [1, 0], [1, 1]])
        losses = []
        for _ in range(150):
            mlp.zero_grad()
            loss = bt.cross_entropy(mlp(x), [0, 1, 1, 0])
            loss.backward()
            for view in mlp.parameters():
                view.data -= 0.5 * view.grad
            losses.append(loss.data)
        assert losses[-1] < 0.1 * losses[0]
        assert mlp(x).data.argmax(axis=1).tolist() == [0, 1, 1, 0]
        assert len(tape) < 400
