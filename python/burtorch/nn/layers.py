# python/burtorch/nn/layers.py — layers: parameters on the current tape, and a function of views
# SPDX-License-Identifier: MIT
"""Neuron, Linear, MLP, Embedding, LayerNorm, SelfAttention, TransformerBlock.

A layer's parameters are leaves on the tape that is current when the layer is made. Names and shapes are
those of PyTorch's state dictionaries. Numbers are drawn from `random`, a `burtorch.Random`, and in
the same order as the C++ layers do; without one all layers draw from a generator that `seed` restarts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import _core as bt
from .module import Module

ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "identity": lambda x: x,
    "sigmoid": bt.sigmoid,
    "relu": bt.relu,
    "tanh": bt.tanh,
    "gelu": bt.gelu,
}

_shared = bt.Random(0)


def seed(number: int) -> None:
    """Restart the generator from which layers draw that are given none."""
    _shared.state = bt.Random(number).state


@contextmanager
def drawing_apart() -> Iterator[None]:
    """Let layers that are given no generator draw without a trace; for those that are then loaded."""
    before = _shared.state
    try:
        yield
    finally:
        _shared.state = before


def activation(name: str) -> Callable[[Any], Any]:
    """Return an activation, which takes a Value or a View, by its name."""
    if name not in ACTIVATIONS:
        raise ValueError(f"unknown activation {name!r}; there are {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name]


def _parameter(
    shape: tuple[int, ...],
    init: str,
    random: bt.Random | None = None,
    inputs: int | None = None,
    outputs: int | None = None,
) -> bt.View:
    zeros = np.zeros(shape)
    view = bt.vector(zeros) if len(shape) == 1 else bt.matrix(zeros)
    view.initialize(init, random or _shared, inputs, outputs)
    return view


def _as_view(x: bt.View | ArrayLike, beside: bt.View) -> bt.View:
    """Return x; numbers are data, on the tape of another view: they get no gradient."""
    return x if isinstance(x, bt.View) else bt._data(x, beside)


class Linear(Module):
    """weight @ x + bias; of every row if x is a matrix, side by side if x is a list of views."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        bias: bool = True,
        init: str = "linear",
        random: bt.Random | None = None,
    ) -> None:
        self.weight = _parameter((outputs, inputs), init, random, inputs, outputs)
        start = init if init == "linear" else "zeros"
        self.bias = _parameter((outputs,), start, random, inputs, outputs) if bias else None

    @property
    def config(self) -> dict[str, Any]:
        outputs, inputs = self.weight.shape
        return {"inputs": inputs, "outputs": outputs, "bias": self.bias is not None}

    @staticmethod
    def count_parameters(inputs: int, outputs: int, bias: bool = True) -> int:
        """How many parameters a layer of these sizes has, without making it; so for all layers."""
        return (inputs + bool(bias)) * outputs

    def parts(self) -> Iterable[tuple[str, bt.View | Module]]:
        yield "weight", self.weight
        if self.bias is not None:
            yield "bias", self.bias

    def forward(self, x: bt.View | Sequence[bt.View] | ArrayLike) -> bt.View:
        if isinstance(x, (list, tuple)) and x and all(isinstance(each, bt.View) for each in x):
            return bt.affine(self.weight, x, self.bias)
        return bt.affine(self.weight, _as_view(x, self.weight), self.bias)


class Neuron(Module):
    """One number: activation(⟨weight, x⟩ + bias) of a vector, or of a sequence of Values."""

    def __init__(
        self,
        inputs: int,
        activation: str = "relu",
        init: str = "uniform",
        random: bt.Random | None = None,
    ) -> None:
        self.activation = _checked(activation)
        self.weight = _parameter((inputs,), init, random, inputs, 1)
        self.bias = _parameter((1,), "zeros", random)

    @property
    def config(self) -> dict[str, Any]:
        return {"inputs": self.weight.shape[0], "activation": self.activation}

    @staticmethod
    def count_parameters(inputs: int, activation: str) -> int:
        return inputs + 1

    def parts(self) -> Iterable[tuple[str, bt.View | Module]]:
        yield "weight", self.weight
        yield "bias", self.bias

    def forward(self, x: bt.View | Sequence[bt.Value] | ArrayLike) -> bt.Value:
        values: Any = x
        if not isinstance(x, (list, tuple)) or not all(isinstance(e, bt.Value) for e in x):
            values = _as_view(values, self.weight)
        total = bt.inner_product_with_bias(self.weight, values, self.bias[0])
        result: bt.Value = ACTIVATIONS[self.activation](total)
        return result


class MLP(Module):
    """Linear layers with an activation between them. sizes: inputs, then outputs of each layer."""

    def __init__(
        self,
        sizes: Sequence[int],
        activation: str = "relu",
        init: str = "linear",
        random: bt.Random | None = None,
    ) -> None:
        if len(sizes) < 2:
            raise ValueError(f"an MLP needs at least two sizes, not {list(sizes)}")
        self.activation = _checked(activation)
        pairs = zip(sizes[:-1], sizes[1:])
        self.layers = [Linear(a, b, init=init, random=random) for a, b in pairs]

    @property
    def config(self) -> dict[str, Any]:
        sizes = [self.layers[0].weight.shape[1], *(each.weight.shape[0] for each in self.layers)]
        return {"sizes": sizes, "activation": self.activation}

    @staticmethod
    def count_parameters(sizes: Sequence[int], activation: str) -> int:
        return sum((a + 1) * b for a, b in zip(sizes[:-1], sizes[1:]))

    def parts(self) -> Iterable[tuple[str, bt.View | Module]]:
        for i, layer in enumerate(self.layers):
            yield f"layers.{i}", layer

    def forward(self, x: bt.View | ArrayLike) -> bt.View:
        activate = ACTIVATIONS[self.activation]
        y: bt.View = self.layers[0](x)
        for layer in self.layers[1:]:
            y = layer(activate(y))
        return y


class Embedding(Module):
    """Rows of a table by index: ids (n,) give n rows, ids (n, p) p rows side by side in each."""

    def __init__(
        self, entries: int, size: int, init: str = "normal", random: bt.Random | None = None
    ) -> None:
        self.weight = _parameter((entries, size), init, random, entries, size)

    @property
    def config(self) -> dict[str, Any]:
        entries, size = self.weight.shape
        return {"entries": entries, "size": size}

    @staticmethod
    def count_parameters(entries: int, size: int) -> int:
        return entries * size

    def parts(self) -> Iterable[tuple[str, bt.View | Module]]:
        yield "weight", self.weight

    def forward(self, ids: ArrayLike) -> bt.View:
        return bt.gather(self.weight, ids)


class LayerNorm(Module):
    """Each row shifted and scaled to mean 0 and variance 1, times weight, plus bias."""

    def __init__(self, size: int, eps: float = 1e-5) -> None:
        self.weight = _parameter((size,), "ones")
        self.bias = _parameter((size,), "zeros")
        self.eps = eps

    @property
    def config(self) -> dict[str, Any]:
        return {"size": self.weight.shape[0], "eps": self.eps}

    @staticmethod
    def count_parameters(size: int, eps: float) -> int:
        return 2 * size

    def parts(self) -> Iterable[tuple[str, bt.View | Module]]:
        yield "weight", self.weight
        yield "bias", self.bias

    def forward(self, x: bt.View) -> bt.View:
        return bt.layer_norm(x, self.weight, self.bias, self.eps)


class SelfAttention(Module):
    """Causal self-attention with a projection; rows are sequences of `positions` rows each.

    The keys, queries and values of all heads are one matrix, head by head, so that one
    multiplication makes them all.
    """

    def __init__(self, size: int, heads: int, random: bt.Random | None = None) -> None:
        if heads < 1 or size % heads != 0:
            raise ValueError(f"{size} columns can't be shared by {heads} heads")
        self.heads = heads
        self.keys_queries_values = _parameter((3 * size, size), "linear", random, size, size)
        self.projection = Linear(size, size, random=random)
        rows = size // heads
        self._heads = [
            (f"heads.{i // 3}.{part}.weight", self.keys_queries_values[i * rows : (i + 1) * rows])
            for i, part in enumerate(("key", "query", "value") * heads)
        ]

    @property
    def config(self) -> dict[str, Any]:
        return {"size": self.keys_queries_values.shape[1], "heads": self.heads}

    @staticmethod
    def count_parameters(size: int, heads: int) -> int:
        return (4 * size + 1) * size

    def parts(self) -> Iterable[tuple[str, bt.View | Module]]:
        yield from self._heads
        yield "proj", self.projection

    def _views(self) -> Iterator[bt.View]:
        yield self.keys_queries_values
        yield from self.projection._views()

    def forward(self, x: bt.View, positions: int | None = None) -> bt.View:
        everything = bt.affine(self.keys_queries_values, x)
        y: bt.View = self.projection(bt.attention(everything, self.heads, positions))
        return y


class TransformerBlock(Module):
    """x + attention(norm(x)), then x + feed-forward(norm(x))."""

    def __init__(self, size: int, heads: int, random: bt.Random | None = None) -> None:
        self.attention = SelfAttention(size, heads, random)
        self.up = Linear(size, 4 * size, random=random)
        self.down = Linear(4 * size, size, random=random)
        self.norm1 = LayerNorm(size)
        self.norm2 = LayerNorm(size)

    @property
    def config(self) -> dict[str, Any]:
        return self.attention.config

    @staticmethod
    def count_parameters(size: int, heads: int) -> int:
        return (12 * size + 10) * size

    def parts(self) -> Iterable[tuple[str, bt.View | Module]]:
        yield "sa", self.attention
        yield "ffwd.net.0", self.up
        yield "ffwd.net.2", self.down
        yield "ln1", self.norm1
        yield "ln2", self.norm2

    def forward(self, x: bt.View, positions: int | None = None) -> bt.View:
        y: bt.View = x + self.attention(self.norm1(x), positions)
        more: bt.View = self.down(bt.relu(self.up(self.norm2(y))))
        return y + more


def _checked(name: str) -> str:
    activation(name)
    return name
