# scripts/make_layer_reference.py — writes tests/data/layer_reference.json: PyTorch's values and gradients of layers
# SPDX-License-Identifier: MIT
"""What PyTorch computes for the blocks of layers, in double precision, so that the tests need no PyTorch.

Inputs and the adjoints of the results are multiples of 1/64: the same numbers in every precision. Run:
python scripts/make_layer_reference.py (needs torch==2.13.0; the tests do not).
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from torch.nn import functional

OUT = Path(__file__).resolve().parents[1] / "tests" / "data" / "layer_reference.json"
torch.manual_seed(2)
torch.set_default_dtype(torch.float64)


def some(*shape):
    return torch.round((torch.rand(shape) * 4 - 2) * 64) / 64


def case(layer, f, arguments, **inputs):
    """Run f(**inputs) and its gradient for random adjoints of all results."""
    for each in inputs.values():
        each.requires_grad_()
    results = f(**inputs)
    adjoints = [some(*y.shape) for y in results]
    torch.autograd.backward(results, adjoints)
    return {
        "layer": layer,
        "arguments": arguments,
        "inputs": {name: x.tolist() for name, x in inputs.items()},
        "adjoints": [x.tolist() for x in adjoints],
        "results": [y.tolist() for y in results],
        "gradients": {name: x.grad.tolist() for name, x in inputs.items()},
    }


def recurrent(kind, arguments, initial, **inputs):
    """Run a module of PyTorch's with these weights; the states given where `initial` says so."""
    module = getattr(torch.nn, kind)(**arguments, batch_first=True)
    names = [name for name, _ in module.named_parameters()]

    def f(x, **rest):
        state = None
        if initial:
            state = (rest["h0"], rest["c0"]) if kind == "LSTM" else rest["h0"]
        weights = {name: rest[name] for name in names}
        y, last = torch.func.functional_call(module, weights, (x, state))
        return [y, *(last if kind == "LSTM" else [last])]

    shapes = {name: some(*p.shape) / 2 for name, p in module.named_parameters()}
    return case(kind, f, arguments, **inputs, **shapes)


def cases():
    for x, w, options in (
        ((2, 3, 6, 5), (4, 3, 3, 3), {}),
        ((1, 4, 7, 6), (6, 2, 3, 2), {"stride": [2, 1], "padding": [1, 1], "groups": 2}),
        ((3, 5, 5), (2, 3, 2, 2), {"stride": 2, "padding": 1}),
    ):
        yield case(
            "conv2d",
            lambda x, weight, bias, o=options: [functional.conv2d(x, weight, bias, **o)],
            options,
            x=some(*x),
            weight=some(*w),
            bias=some(w[0]),
        )
    yield case(
        "conv1d",
        lambda x, weight, bias: [functional.conv1d(x, weight, bias, stride=2, padding=1)],
        {"stride": 2, "padding": 1},
        x=some(2, 3, 8),
        weight=some(4, 3, 3),
        bias=some(4),
    )
    for kernel, stride in ((2, None), ((3, 2), (1, 2))):
        for name in ("max_pool2d", "avg_pool2d"):
            f = getattr(functional, name)
            yield case(
                name,
                lambda x, f=f, k=kernel, s=stride: [f(x, k, s)],
                {"kernel": kernel, "stride": stride},
                x=some(2, 2, 5, 6),
            )
    sizes = {"input_size": 3, "hidden_size": 2}
    for kind in ("LSTM", "GRU"):
        yield recurrent(kind, sizes, False, x=some(2, 4, 3))
        yield recurrent(kind, {**sizes, "num_layers": 2, "bias": False}, False, x=some(3, 3, 3))
        states = {"h0": some(2, 2, 2)} | ({"c0": some(2, 2, 2)} if kind == "LSTM" else {})
        yield recurrent(kind, {**sizes, "num_layers": 2}, True, x=some(2, 3, 3), **states)
        yield recurrent(kind, sizes, False, x=some(5, 3))
    for shape in ((4, 3), (3, 2, 5), (2, 3, 2, 4)):
        for training in (True, False):
            mean, var = some(shape[1]), some(shape[1]).abs() + 0.5
            before = {"running_mean": mean.tolist(), "running_var": var.tolist()}
            each = case(
                "batch_norm",
                lambda x, weight, bias, m=mean, v=var, t=training: [
                    functional.batch_norm(x, m, v, weight, bias, t, 0.25, 1e-3)
                ],
                {"training": training, **before},
                x=some(*shape),
                weight=some(shape[1]),
                bias=some(shape[1]),
            )
            each["after"] = {"running_mean": mean.tolist(), "running_var": var.tolist()}
            yield each


OUT.write_text("[\n" + ",\n".join(json.dumps(each) for each in cases()) + "\n]\n", "utf-8")
