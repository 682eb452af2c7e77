# python/burtorch/micrograd/nn.py — layers with micrograd's constructors, on burtorch's Values
# SPDX-License-Identifier: MIT
"""Neuron, Layer and MLP. Weights come from `random`, one uniform(-1, 1) each, in order, so that a
seeded program gets the numbers it is used to; sums run in the same order for the same reason."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from .. import Value

__all__ = ["MLP", "Layer", "Module", "Neuron"]


class Module:
    """Something with parameters."""

    def parameters(self) -> list[Value]:
        return []

    def zero_grad(self) -> None:
        for parameter in self.parameters():
            parameter.grad = 0


class Neuron(Module):
    """relu(⟨w, x⟩ + b), or without the relu."""

    def __init__(self, nin: int, nonlin: bool = True) -> None:
        self.w = [Value(random.uniform(-1, 1)) for _ in range(nin)]
        self.b = Value(0)
        self.nonlin = nonlin

    def __call__(self, x: Sequence[Any]) -> Value:
        total = self.b
        for weight, value in zip(self.w, x):
            total = total + weight * value
        return total.relu() if self.nonlin else total

    def parameters(self) -> list[Value]:
        return [*self.w, self.b]

    def __repr__(self) -> str:
        return f"{'ReLU' if self.nonlin else 'Linear'}Neuron({len(self.w)})"


class Layer(Module):
    """Neurons side by side; a single one gives its Value, several a list."""

    def __init__(self, nin: int, nout: int, **kwargs: Any) -> None:
        self.neurons = [Neuron(nin, **kwargs) for _ in range(nout)]

    def __call__(self, x: Sequence[Any]) -> Any:
        out = [neuron(x) for neuron in self.neurons]
        return out[0] if len(out) == 1 else out

    def parameters(self) -> list[Value]:
        return [p for neuron in self.neurons for p in neuron.parameters()]

    def __repr__(self) -> str:
        return f"Layer of [{', '.join(map(repr, self.neurons))}]"


class MLP(Module):
    """Layers one after the other; all but the last with relu."""

    def __init__(self, nin: int, nouts: Sequence[int]) -> None:
        sizes = [nin, *nouts]
        self.layers = [
            Layer(sizes[i], sizes[i + 1], nonlin=i + 2 < len(sizes)) for i in range(len(nouts))
        ]

    def __call__(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x

    def parameters(self) -> list[Value]:
        return [p for layer in self.layers for p in layer.parameters()]

    def __repr__(self) -> str:
        return f"MLP of [{', '.join(map(repr, self.layers))}]"
