# python/burtorch/optim.py — optimizers, clipping of gradients, learning rates that change
# SPDX-License-Identifier: MIT
"""Optimizers after torch.optim.

>>> import burtorch as bt
>>> x = bt.Value(3.0)
>>> optimizer = bt.optim.SGD([x], lr=0.1)
>>> (x * x).backward()
>>> optimizer.step()
>>> round(x.data, 10)
2.4
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Callable, Union

import numpy as np
from numpy.typing import NDArray

from ._core import Value, View, _optim

__all__ = [
    "GD",
    "SGD",
    "Adam",
    "AdamW",
    "Constant",
    "Cosine",
    "Linear",
    "StepDecay",
    "clip_by_norm",
    "clip_by_value",
]

# Learning rates as functions of the number of steps made.
Constant = _optim.Constant
StepDecay = _optim.StepDecay
Linear = _optim.Linear
Cosine = _optim.Cosine

Rate = Union[float, Callable[[int], float]]


class _Arrays:
    """Something whose numbers and gradients are arrays, to be changed where they are."""

    def __init__(self, values: NDArray[Any], grads: NDArray[Any]) -> None:
        self._values, self._grads = values, grads

    def read(self) -> tuple[NDArray[Any], NDArray[Any]]:
        return self._values, self._grads

    def write(self, values: NDArray[Any], grads: NDArray[Any]) -> None:
        """The arrays are the numbers themselves."""

    def zero_grad(self) -> None:
        self._grads.fill(0)


class _Nodes:
    """A view of nodes on a tape, read and written as a whole."""

    def __init__(self, view: View) -> None:
        self._view = view

    def read(self) -> tuple[NDArray[Any], NDArray[Any]]:
        return self._view.data, self._view.grad

    def write(self, values: NDArray[Any], grads: NDArray[Any]) -> None:
        self._view.data, self._view.grad = values, grads

    def zero_grad(self) -> None:
        self._view.zero_grad()


class _Scalars:
    """Values, one by one."""

    def __init__(self, values: list[Value]) -> None:
        self._scalars = values

    def read(self) -> tuple[NDArray[Any], NDArray[Any]]:
        return np.array([v.data for v in self._scalars]), np.array([v.grad for v in self._scalars])

    def write(self, values: NDArray[Any], grads: NDArray[Any]) -> None:
        for v, x, g in zip(self._scalars, values, grads):
            v.data, v.grad = x, g

    def zero_grad(self) -> None:
        for v in self._scalars:
            v.grad = 0.0


_Piece = Union[_Arrays, _Nodes, _Scalars]


def _piece(parameter: Any) -> _Piece:
    if isinstance(parameter, View):
        return _Nodes(parameter)
    if not isinstance(getattr(parameter, "grad", None), np.ndarray):
        raise TypeError(f"an optimizer needs a model or parameters, not {parameter!r}")
    return _Arrays(parameter.data, parameter.grad)


def _pieces(target: Any) -> list[_Piece]:
    """What to optimize: a model, or parameters (of a layer, or any mixture of what has gradients)."""
    if isinstance(getattr(target, "values", None), np.ndarray):
        return [_Arrays(target.values, target.grads)]
    parameters = list(target.parameters() if hasattr(target, "parameters") else target)
    scalars = [p for p in parameters if isinstance(p, Value)]
    pieces: list[_Piece] = [_Scalars(scalars)] if scalars else []
    pieces += [_piece(p) for p in parameters if not isinstance(p, Value)]
    if not pieces:
        raise ValueError("there are no parameters to optimize")
    return pieces


def _kind(name: str, dtype: str) -> Any:
    if not hasattr(_optim, f"{name}_{dtype}"):
        raise TypeError(f"parameters to optimize are of float32 or float64, not {dtype}")
    return getattr(_optim, f"{name}_{dtype}")


class _Optimizer:
    """What all optimizers have in common."""

    def __init__(self, parameters: Any, lr: Rate, **options: Any) -> None:
        self._pieces = _pieces(parameters)
        self._schedule = lr if callable(lr) else None
        name, first = type(self).__name__, float(lr(0) if callable(lr) else lr)
        self._optimizers = [
            _kind(name, piece.read()[0].dtype.name)(lr=first, **options) for piece in self._pieces
        ]

    @property
    def lr(self) -> float:
        """The learning rate of the next step; may be set unless a schedule gives it."""
        return float(self._optimizers[0].lr)

    @lr.setter
    def lr(self, lr: float) -> None:
        for optimizer in self._optimizers:
            optimizer.lr = lr

    @property
    def steps(self) -> int:
        """How many steps were made."""
        return int(self._optimizers[0].steps)

    def step(self) -> None:
        """Change the parameters, given their gradients."""
        for piece, optimizer in zip(self._pieces, self._optimizers):
            values, grads = piece.read()
            optimizer.step(values, grads)
            piece.write(values, grads)
        self._follow_schedule()

    def _follow_schedule(self) -> None:
        if self._schedule is not None:
            self.lr = self._schedule(self.steps)

    def zero_grad(self) -> None:
        """Set the gradients of all parameters to 0."""
        for piece in self._pieces:
            piece.zero_grad()

    def state_dict(self) -> dict[str, Any]:
        """What is needed to go on as if nothing had happened: copies."""
        return {
            "lr": self.lr,
            "steps": self.steps,
            "state": [optimizer.state for optimizer in self._optimizers],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where another optimizer of the same kind and parameters was."""
        given = state["state"]
        if len(given) != len(self._optimizers):
            raise ValueError(
                f"a state of {len(given)} parameters does not fit {len(self._optimizers)}"
            )
        for piece, optimizer, kept in zip(self._pieces, self._optimizers, given):
            size, wanted = piece.read()[0].size, set(optimizer.state)
            sizes = {name: np.size(numbers) for name, numbers in kept.items()}
            if set(sizes) != wanted or any(n not in (0, size) for n in sizes.values()):
                raise ValueError(
                    f"a state of {sizes} does not fit {size} parameters and {sorted(wanted)}"
                )
        for optimizer, kept in zip(self._optimizers, given):
            optimizer.state = kept
            optimizer.steps = state["steps"]
        self.lr = state["lr"]
        self._follow_schedule()


class GD(_Optimizer):
    """Gradient descent: parameters -= lr * gradients."""

    def __init__(self, parameters: Any, lr: Rate) -> None:
        super().__init__(parameters, lr)


class SGD(_Optimizer):
    """Stochastic gradient descent with momentum, Nesterov's or plain, and weight decay."""

    def __init__(
        self,
        parameters: Any,
        lr: Rate = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        super().__init__(
            parameters,
            lr,
            momentum=momentum,
            dampening=dampening,
            weight_decay=weight_decay,
            nesterov=nesterov,
        )


class Adam(_Optimizer):
    """Adam; weight decay is added to the gradients."""

    def __init__(
        self,
        parameters: Any,
        lr: Rate = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(parameters, lr, betas=betas, eps=eps, weight_decay=weight_decay)


class AdamW(_Optimizer):
    """Adam with weight decay of its own."""

    def __init__(
        self,
        parameters: Any,
        lr: Rate = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ) -> None:
        super().__init__(parameters, lr, betas=betas, eps=eps, weight_decay=weight_decay)


def _gradients(parameters: Any) -> Iterable[tuple[Any, NDArray[Any], NDArray[Any]]]:
    for piece in _pieces(parameters):
        values, grads = piece.read()
        yield piece, values, grads


def clip_by_norm(parameters: Any, most: float) -> float:
    """Scale all gradients together to a norm of at most `most`; return the norm they had."""
    pieces = list(_gradients(parameters))
    if len(pieces) == 1:
        piece, values, grads = pieces[0]
        norm = _optim.clip_by_norm(grads, most)
        piece.write(values, grads)
        return float(norm)
    joined = np.concatenate([grads.ravel().astype(float) for _, _, grads in pieces])
    norm = _optim.clip_by_norm(joined, most)
    first = 0
    for piece, values, grads in pieces:
        grads[...] = joined[first : first + grads.size].reshape(grads.shape)
        first += grads.size
        piece.write(values, grads)
    return float(norm)


def clip_by_value(parameters: Any, most: float) -> None:
    """Move each gradient into [-most, most]."""
    for piece, values, grads in _gradients(parameters):
        _optim.clip_by_value(grads, most)
        piece.write(values, grads)
