# python/burtorch/nn/containers.py — layers one after the other, and functions as layers between them
# SPDX-License-Identifier: MIT
"""Sequential, Flatten, ReLU, Tanh, Sigmoid, GELU, SiLU."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from numpy.typing import ArrayLike, NDArray

from .. import _core as bt
from .layers import Module


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

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Return copies of what all layers store by name."""
        return {
            f"{i}.{name}": x
            for i, layer in enumerate(self.layers)
            for name, x in layer.state_dict().items()
        }

    def load_state_dict(self, state: Mapping[str, ArrayLike], strict: bool = True) -> None:
        """Set what all layers store. If a name or a shape does not fit, nothing is changed."""
        from ._state import fitting

        shapes = {name: x.shape for name, x in self.state_dict().items()}
        fits = fitting(self, shapes, state, strict)
        for i, layer in enumerate(self.layers):
            head = f"{i}."
            layer.load_state_dict(
                {name[len(head) :]: x for name, x in fits.items() if name.startswith(head)}, strict
            )

    def __len__(self) -> int:
        return len(self.layers)

    def __getitem__(self, i: int) -> Module:
        return self.layers[i]

    def __iter__(self) -> Iterator[Module]:
        return iter(self.layers)

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)  # type: ignore[operator]
        return x

    __call__ = forward


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

    __call__ = forward


class ReLU(_Function):
    """max(0, x)."""

    def forward(self, x: bt.View) -> bt.View:
        return bt.relu(x)

    __call__ = forward


class Tanh(_Function):
    """tanh x."""

    def forward(self, x: bt.View) -> bt.View:
        return bt.tanh(x)

    __call__ = forward


class Sigmoid(_Function):
    """1 / (1 + e⁻ˣ)."""

    def forward(self, x: bt.View) -> bt.View:
        return bt.sigmoid(x)

    __call__ = forward


class GELU(_Function):
    """x·Φ(x), with the exact Φ."""

    def forward(self, x: bt.View) -> bt.View:
        return bt.gelu(x)

    __call__ = forward


class SiLU(_Function):
    """x / (1 + e⁻ˣ)."""

    def forward(self, x: bt.View) -> bt.View:
        return bt.silu(x)

    __call__ = forward
