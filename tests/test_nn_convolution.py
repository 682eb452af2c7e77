# tests/test_nn_convolution.py — convolution and pooling: PyTorch's numbers, layers, what is refused
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any

import burtorch as bt
import numpy as np
import pytest
from layer_support import cases, close, pull, variable


def name_of(case: dict[str, Any]) -> str:
    return f"{case['layer']}-{case['arguments']}"


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("case", cases("conv2d", "conv1d", "max_pool2d", "avg_pool2d"), ids=name_of)
def test_pytorch(case: dict[str, Any], dtype: str) -> None:
    arguments = dict(case["arguments"])
    with bt.Tape(dtype):
        inputs = {name: variable(x) for name, x in case["inputs"].items()}
        x = np.asarray(case["inputs"]["x"])
        dimensions = 2 if case["layer"] == "conv1d" else 3
        arguments["shape"] = x.shape[-dimensions:]
        if "weight" in inputs:
            sizes = np.shape(case["inputs"]["weight"])[2:]
            arguments["kernel"] = sizes[0] if dimensions == 2 else sizes
        y = getattr(bt, case["layer"])(**inputs, **arguments)
        close(y.data, case["results"][0])
        pull([y], case["adjoints"])
        for name, gradient in case["gradients"].items():
            close(inputs[name].grad, gradient)


def test_layers_have_pytorchs_parameters_and_take_arrays_as_data() -> None:
    case = cases("conv2d")[1]
    layer = bt.nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=1, groups=2)
    assert [name for name, _ in layer.named_parameters()] == ["weight", "bias"]
    assert layer.num_parameters == 6 * 2 * 6 + 6
    layer.weight.data = np.asarray(case["inputs"]["weight"]).reshape(layer.weight.shape)
    assert layer.bias is not None
    layer.bias.data = case["inputs"]["bias"]
    y = layer(np.asarray(case["inputs"]["x"]))
    close(y.data, case["results"][0])
    pull([y], case["adjoints"])
    close(layer.weight.grad, case["gradients"]["weight"])
    signal = bt.nn.Conv1d(3, 4, 3, stride=2, padding=1, bias=False)
    assert signal(np.ones((2, 3, 8))).size == 2 * 4 * 4
    assert np.abs(layer.weight.data).max() > 0
    bound = 1 / np.sqrt(9)
    assert np.abs(signal.weight.data).max() <= bound


def test_a_network_learns_and_its_gradient_is_right() -> None:
    rng = np.random.default_rng(0)
    images = rng.normal(size=(3, 1, 6, 6))
    random = bt.Random(1)
    first = bt.nn.Conv2d(1, 2, 3, random=random)
    last = bt.nn.Linear(8, 3, random=random)
    pool = bt.nn.MaxPool2d(2)

    def loss(x: Any) -> Any:
        y = bt.conv2d(x, first.weight, first.bias, shape=(1, 6, 6), kernel=3)
        flat = bt.relu(pool(y, shape=(2, 4, 4)))
        return bt.cross_entropy(last(flat.reshape(3, 8)), [0, 1, 2])

    x = bt.matrix(images.reshape(3, 36))
    bt.backward(loss(x))
    gradient = x.grad.copy()
    step = 1e-6
    for place in ((0, 7), (1, 20), (2, 35)):
        numbers = images.reshape(3, 36).copy()
        numbers[place] += step
        above = loss(bt.matrix(numbers)).data
        numbers[place] -= 2 * step
        below = loss(bt.matrix(numbers)).data
        assert gradient[place] == pytest.approx((above - below) / (2 * step), abs=1e-8)


def test_gradient_by_differences() -> None:
    weight = np.linspace(-1, 1, 8).reshape(2, 4)

    def f(x: Any) -> Any:
        w = bt.matrix(weight)
        y = bt.conv2d(x.reshape(1, 9), w, shape=(1, 3, 3), kernel=2)
        return (bt.tanh(bt.avg_pool2d(y, 2, shape=(2, 2, 2))) ** 2).sum()

    x = np.linspace(-0.5, 1, 9)
    bt.check_grad(lambda v: f(bt.vector(v)), list(x))


def test_max_pool_gives_the_first_of_equals_the_gradient() -> None:
    x = bt.matrix([[1.0, 2.0, 2.0, 2.0]])
    bt.backward(bt.max_pool2d(x, 2, shape=(1, 2, 2)).sum())
    assert x.grad.tolist() == [[0.0, 1.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x, w: bt.conv2d(x, w, kernel=2), "say shape="),
        (lambda x, w: bt.conv2d(x, w, shape=(1, 3, 3)), "say kernel="),
        (
            lambda x, w: bt.conv2d(x, w, shape=(2, 3, 3), kernel=2),
            r"\(2, 9\) is not images|filters of 2×2×2",
        ),
        (
            lambda x, w: bt.conv2d(x, w, shape=(1, 2, 4), kernel=2),
            r"\(2, 9\) is not images of shape \(1, 2, 4\)",
        ),
        (lambda x, w: bt.conv2d(x, w, shape=(1, 3, 3), kernel=4), "windows of 4×4 do not fit"),
        (lambda x, w: bt.conv2d(x, w, shape=(1, 3, 3), kernel=2, groups=2), "shared by 2 groups"),
        (lambda x, w: bt.conv2d(x, w, shape=(1, 3, 3), kernel=2, stride=0), "at least 1"),
        (
            lambda x, w: bt.conv2d(x, w, shape=(1, 3, 3), kernel=2, stride=(1, 1, 1)),
            "one number or two",
        ),
        (lambda x, w: bt.max_pool2d(x, 4, shape=(1, 3, 3)), "maxPool2d: windows of 4×4 do not fit"),
        (lambda x, w: bt.nn.Conv2d(3, 4, 2, groups=2), "can't be shared by 2 groups"),
        (lambda x, w: bt.nn.Conv2d(3, 4, (2, 2, 2)), "kernel_size is one size or 2"),
    ],
)
def test_what_does_not_fit_is_named(call: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call(bt.matrix(np.ones((2, 9))), bt.matrix(np.ones((2, 4))))


def test_operands_of_two_tapes_are_refused() -> None:
    with bt.Tape():
        w = bt.matrix(np.ones((2, 4)))
    with pytest.raises(ValueError, match="two different tapes"):
        bt.conv2d(bt.matrix(np.ones((2, 9))), w, shape=(1, 3, 3), kernel=2)
