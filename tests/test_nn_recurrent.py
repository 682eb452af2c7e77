# tests/test_nn_recurrent.py — LSTM and GRU: PyTorch's numbers, cells, what is refused
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any

import burtorch as bt
import numpy as np
import pytest
from layer_support import cases, close, pull


def name_of(case: dict[str, Any]) -> str:
    return f"{case['layer']}-{case['arguments']}-{'h0' in case['inputs']}"


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("case", cases("LSTM", "GRU"), ids=name_of)
def test_pytorch(case: dict[str, Any], dtype: str) -> None:
    with bt.Tape(dtype):
        layer = getattr(bt.nn, case["layer"])(**case["arguments"])
        names = [name for name, _ in layer.named_parameters()]
        layer.load_state_dict({name: case["inputs"][name] for name in names})
        numbers = np.asarray(case["inputs"]["x"])
        x = bt.matrix(numbers.reshape(-1, numbers.shape[-1]))
        steps = numbers.shape[1] if numbers.ndim == 3 else None
        states = [
            bt.matrix(np.asarray(case["inputs"][name]).reshape(-1, 2))
            for name in ("h0", "c0")
            if name in case["inputs"]
        ]
        state = (states[0] if len(states) == 1 else tuple(states)) if states else None
        y, last = layer(x, state, steps)
        results = [y, *(last if case["layer"] == "LSTM" else [last])]
        for got, want in zip(results, case["results"]):
            close(got.data, want)
        pull(results, case["adjoints"])
        gradients = dict(case["gradients"])
        close(x.grad, gradients.pop("x"))
        for view, name in zip(states, ("h0", "c0")):
            close(view.grad, gradients.pop(name))
        for name, gradient in gradients.items():
            close(getattr(layer, name).grad, gradient)


def test_arrays_of_three_dimensions_are_data() -> None:
    case = cases("LSTM")[0]
    layer = bt.nn.LSTM(3, 2)
    layer.load_state_dict({n: case["inputs"][n] for n, _ in layer.named_parameters()})
    y, (h, c) = layer(np.asarray(case["inputs"]["x"]))
    for got, want in zip((y, h, c), case["results"]):
        close(got.data, want)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_cells_step_by_step_are_the_sequence(kind: str) -> None:
    layer = getattr(bt.nn, kind)(3, 4, random=bt.Random(2))
    cell = getattr(bt.nn, kind + "Cell")(3, 4)
    assert [n for n, _ in cell.named_parameters()] == [
        "weight_ih",
        "weight_hh",
        "bias_ih",
        "bias_hh",
    ]
    cell.load_state_dict({n[:-3]: x for n, x in layer.state_dict().items()})
    x = np.random.default_rng(0).normal(size=(2, 5, 3))
    y, _ = layer(x)
    state: Any = None
    for step in range(5):
        state = cell(x[:, step], state)
    h = state[0] if kind == "LSTM" else state
    np.testing.assert_allclose(h.data, np.asarray(y.data).reshape(2, 5, 4)[:, -1], rtol=1e-13)


def test_one_block_and_its_gradient_by_differences() -> None:
    layer = bt.nn.GRU(2, 3, random=bt.Random(4))

    def f(x: Any) -> Any:
        y, h = layer(bt.vector(x).reshape(4, 2))
        return (y * y).sum() + h.sum()

    bt.check_grad(f, [0.1, -0.3, 0.5, 0.2, -0.7, 0.9, 0.4, -0.2])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: bt.nn.LSTM(2, 3)(x, steps=4), "6 rows are not sequences of 4 steps"),
        (lambda x: bt.nn.LSTM(5, 3)(x), "lstm: the input has 2 columns, the weights are 12×5"),
        (lambda x: bt.nn.LSTM(2, 3)(x, np.ones((1, 3))), r"the state of LSTM is \(h, c\)"),
        (
            lambda x: bt.nn.GRU(2, 3)(x, np.ones((2, 3)), steps=2),
            "initial states of 2×3, not of 3×3",
        ),
        (lambda x: bt.nn.LSTM(2, 3, batch_first=False), "batch_first"),
        (lambda x: bt.nn.GRU(2, 3, num_layers=0), "at least one layer"),
    ],
)
def test_what_does_not_fit_is_named(call: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call(bt.matrix(np.ones((6, 2))))
