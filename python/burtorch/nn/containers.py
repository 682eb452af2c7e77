# python/burtorch/nn/containers.py — layers one after the other, and functions as layers between them
# SPDX-License-Identifier: MIT
"""Sequential, Flatten, ReLU, Tanh, Sigmoid, GELU, SiLU."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .. import _core as bt
from .module import Module


class Sequential(Module):
    """Layers one after the other; their names are their numbers."""

    def __init__(self, *layers: Module) -> None:
        for layer in layers:
            if not isinstance(layer, Module):
                raise TypeError(f"Sequential takes layers, not {type(layer).__name__}")
        self.layers = list(layers)

    def parts(self) -> Iterable[tuple[str, bt.View | Module]]:
        for i, layer in enumerate(self.layers):
            yield str(i), layer

    def __len__(self) -> int:
        return len(self.layers)

    def __getitem__(self, i: int) -> Module:
        return self.layers[i]

    def __iter__(self) -> Iterator[Module]:
        return iter(self.layers)

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x


class _Function(Module):
    """A layer without parameters."""

    @property
    def config(self) -> dict[str, Any]:
        return {}

    @staticmethod
    def count_parameters() -> int:
        return 0

    def parts(self) -> Iterable[tuple[str, bt.View | Module]]:
        return ()


class Flatten(_Function):
    """Everything after the first dimension side by side: (b, …) gives (b, n)."""

    def forward(self, x: bt.View) -> bt.View:
        if len(x.shape) < 3:
            return x
        return x.reshape(x.shape[0], x.size // x.shape[0] if x.shape[0] else 0)


class ReLU(_Function):
    """max(0, x)."""

    def forward(self, x: bt.View) -> bt.View:
        return bt.relu(x)


class Tanh(_Function):
    """tanh x."""

    def forward(self, x: bt.View) -> bt.View:
        return bt.tanh(x)


class Sigmoid(_Function):
    """1 / (1 + e⁻ˣ)."""

    def forward(self, x: bt.View) -> bt.View:
        return bt.sigmoid(x)


class GELU(_Function):
    """x·Φ(x), with the exact Φ."""

    def forward(self, x: bt.View) -> bt.View:
        return bt.gelu(x)


class SiLU(_Function):
    """x / (1 + e⁻ˣ)."""

    def forward(self, x: bt.View) -> bt.View:
        return bt.silu(x)
