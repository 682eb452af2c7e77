# tests/test_nn_normalization.py — batch norm and dropout, containers, what is refused
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any

import burtorch as bt
import numpy as np
import pytest
from layer_support import cases, close, pull, variable


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("case", cases("batch_norm"))
def test_batch_norm_as_pytorch(case: dict[str, Any], dtype: str) -> None:
    with bt.Tape(dtype):
        x, weight, bias = (variable(each) for each in case["inputs"].values())
        running = {
            name: variable(case["arguments"][name]) for name in ("running_mean", "running_var")
        }
        y = bt.batch_norm(
            x,
            weight,
            bias,
            **running,
            training=case["arguments"]["training"],
            momentum=0.25,
            eps=1e-3,
        )
        close(y.data, case["results"][0])
        for name, view in running.items():
            close(view.data, case["after"][name])
        pull([y], case["adjoints"])
        for view, gradient in zip((x, weight, bias), case["gradients"].values()):
            close(view.grad, gradient)
        for view in running.values():
            assert not view.grad.any()


def test_batch_norm_keeps_statistics_beside_its_parameters() -> None:
    layer = bt.nn.BatchNorm2d(3)
    assert [name for name, _ in layer.named_parameters()] == ["weight", "bias"]
    x = np.random.default_rng(1).normal(2.0, 3.0, size=(4, 3, 2, 2))
    layer(x)
    state = layer.state_dict()
    assert list(state) == ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"]
    assert state["num_batches_tracked"] == 1
    np.testing.assert_allclose(state["running_mean"], 0.1 * x.mean((0, 2, 3)))
    np.testing.assert_allclose(state["running_var"], 0.9 + 0.1 * x.var((0, 2, 3), ddof=1))
    layer.training = False
    layer(x)
    assert layer.state_dict()["running_mean"].tolist() == state["running_mean"].tolist()
    other = bt.nn.Sequential(bt.nn.ReLU(), bt.nn.BatchNorm2d(3))
    other.load_state_dict({f"1.{name}": value for name, value in state.items()})
    assert {n: v.tolist() for n, v in other.state_dict().items()} == {
        f"1.{n}": v.tolist() for n, v in state.items()
    }
    with pytest.raises(ValueError, match=r"missing: 1\.running_var"):
        other.load_state_dict({f"1.{n}": v for n, v in state.items() if n != "running_var"})


def test_dropout_draws_from_its_generator_and_rests_in_evaluation() -> None:
    random = bt.Random(5)
    layer = bt.nn.Dropout(0.25, random)
    x = bt.matrix(np.ones((50, 40)))
    before = random.state
    first, second = layer(x), layer(x)
    assert first.data.tolist() != second.data.tolist()
    random.state = before
    assert layer(x).data.tolist() == first.data.tolist()
    assert set(np.unique(first.data)) == {0.0, 1 / 0.75}
    assert 0.2 < (first.data == 0).mean() < 0.3
    bt.backward(first.sum())
    assert x.grad.tolist() == first.data.tolist()
    layer.training = False
    assert layer(x) is x


def test_the_key_says_which_elements_are_dropped() -> None:
    x = bt.vector(np.ones(64))
    assert (
        bt.dropout(x, 0.5, 2**63 + 1).data.tolist() == bt.dropout(x, 0.5, 2**63 + 1).data.tolist()
    )
    assert bt.dropout(x, 0.5, 1).data.tolist() != bt.dropout(x, 0.5, 2**32 + 1).data.tolist()
    assert not bt.dropout(x, 1.0, 3).data.any()
    assert bt.dropout(x, 0.0, 3).data.tolist() == [1.0] * 64


def test_sequential_and_functions() -> None:
    net = bt.nn.Sequential(
        bt.nn.Linear(3, 4),
        bt.nn.Tanh(),
        bt.nn.SiLU(),
        bt.nn.GELU(),
        bt.nn.Sigmoid(),
        bt.nn.Flatten(),
        bt.nn.Linear(4, 2),
    )
    assert [name for name, _ in net.named_parameters()] == [
        "0.weight",
        "0.bias",
        "6.weight",
        "6.bias",
    ]
    x = bt.matrix(np.ones((5, 3)))
    y = x
    for layer in net:
        y = layer(y)
    assert net(x).data.tolist() == y.data.tolist()
    assert len(net) == 7
    assert isinstance(net[1], bt.nn.Tanh)


def _functions() -> Any:
    return [bt.relu]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: bt.nn.BatchNorm1d(4)(x), ValueError, "rows of 6×2 are not 4 channels"),
        (lambda x: bt.nn.BatchNorm1d(2)(np.ones((1, 2))), ValueError, "has no variance"),
        (lambda x: bt.nn.BatchNorm2d(2)(np.ones((2, 3, 1, 1))), ValueError, "has no 2 channels"),
        (
            lambda x: bt.nn.BatchNorm1d(2)(np.ones((2, 2, 1, 1))),
            ValueError,
            "BatchNorm1d takes 2 or 3",
        ),
        (lambda x: bt.nn.Dropout(1.5), ValueError, "between 0 and 1"),
        (lambda x: bt.dropout(x, -0.5, 1), ValueError, "between 0 and 1"),
        (lambda x: bt.nn.Sequential(*_functions()), TypeError, "Sequential takes layers"),
    ],
)
def test_what_does_not_fit_is_named(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call(bt.matrix(np.ones((6, 2))))
