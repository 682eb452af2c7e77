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

import math
import numbers
from typing import Any, Callable, Union

import numpy as np
from numpy.typing import NDArray

from ._core import Value, View, _optim, _runs

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
        self.dtype, self.sizes = values.dtype.name, [values.size]

    def step(self, optimizer: Any) -> None:
        optimizer.step(self._values, self._grads)

    def on_gradients(self, f: Callable[..., Any], *numbers: float) -> Any:
        """Call a function that reads or changes the gradients."""
        return f(self._grads, *numbers)

    def zero_grad(self) -> None:
        self._grads.fill(0)


class _Nodes:
    """Views that are neighbours on a tape: one run of nodes, changed where they are."""

    def __init__(self, run: View, sizes: list[int]) -> None:
        self._run = run
        self.dtype, self.sizes = run.tape.dtype, sizes

    def step(self, optimizer: Any) -> None:
        optimizer.step(self._run)

    def on_gradients(self, f: Callable[..., Any], *numbers: float) -> Any:
        return f(self._run, *numbers)

    def zero_grad(self) -> None:
        self._run.zero_grad()


class _Scalars:
    """Values, one by one."""

    def __init__(self, values: list[Value]) -> None:
        self._scalars = values
        self.dtype, self.sizes = self._numbers()[0].dtype.name, [len(values)]

    def _numbers(self) -> tuple[NDArray[Any], NDArray[Any]]:
        return np.array([v.data for v in self._scalars]), np.array([v.grad for v in self._scalars])

    def step(self, optimizer: Any) -> None:
        values, grads = self._numbers()
        optimizer.step(values, grads)
        for v, x in zip(self._scalars, values):
            v.data = x

    def on_gradients(self, f: Callable[..., Any], *numbers: float) -> Any:
        grads = self._numbers()[1]
        result = f(grads, *numbers)
        for v, g in zip(self._scalars, grads):
            v.grad = g
        return result

    def zero_grad(self) -> None:
        for v in self._scalars:
            v.grad = 0.0


_Piece = Union[_Arrays, _Nodes, _Scalars]


def _arrays(parameter: Any) -> _Arrays:
    if not isinstance(getattr(parameter, "grad", None), np.ndarray):
        raise TypeError(f"an optimizer needs a model or parameters, not {parameter!r}")
    return _Arrays(parameter.data, parameter.grad)


def _pieces(target: Any) -> tuple[list[_Piece], list[list[int]]]:
    """What to optimize: a model, or parameters (of a layer, or any mixture of what has gradients).

    Beside each piece stands which parameters it is made of; all Values together are the first one.
    """
    is_module = hasattr(target, "named_parameters")  # whose memory may move
    if not is_module and isinstance(getattr(target, "values", None), np.ndarray):
        return [_Arrays(target.values, target.grads)], [[0]]
    parameters = list(target.parameters() if hasattr(target, "parameters") else target)
    scalars = [p for p in parameters if isinstance(p, Value)]
    others = [p for p in parameters if not isinstance(p, Value)]
    pieces: list[_Piece] = [_Scalars(scalars)] if scalars else []
    places = [[0]] if scalars else []
    first = len(pieces)
    views = [i for i, p in enumerate(others) if isinstance(p, View)]
    for run, positions in _runs([others[i] for i in views]):
        members = [views[i] for i in positions]
        pieces.append(_Nodes(run, [others[i].size for i in members]))
        places.append([first + i for i in members])
    for i, parameter in enumerate(others):
        if not isinstance(parameter, View):
            pieces.append(_arrays(parameter))
            places.append([first + i])
    if not pieces:
        raise ValueError("there are no parameters to optimize")
    return pieces, places


def _kind(name: str, dtype: str) -> Any:
    if not hasattr(_optim, f"{name}_{dtype}"):
        raise TypeError(f"parameters to optimize are of float32 or float64, not {dtype}")
    return getattr(_optim, f"{name}_{dtype}")


def _plain(option: Any) -> Any:
    """An option without NumPy's types: a number, whether or not, or a pair."""
    if isinstance(option, (bool, np.bool_)):
        return bool(option)
    return tuple(map(float, option)) if np.ndim(option) else float(option)


def _is_number(x: Any) -> bool:
    """Of something that a file may have said: true is no number, and 10**400 is none to compute with."""
    try:
        return isinstance(x, numbers.Real) and not isinstance(x, bool) and math.isfinite(x)
    except OverflowError:
        return False


def _is_like(given: Any, own: Any) -> bool:
    """Whether it could be the same option."""
    if isinstance(own, tuple):
        fits = isinstance(given, (tuple, list)) and len(given) == len(own)
        return fits and all(map(_is_number, given))
    return isinstance(given, bool) if isinstance(own, bool) else _is_number(given)


def _fitting(
    kept: dict[str, Any], size: int, dtype: str, wanted: set[str]
) -> dict[str, NDArray[Any]]:
    """The state of a parameter, if it is one; before the first step there are no numbers."""
    arrays = {name: np.asarray(x, dtype) for name, x in kept.items()}
    shapes = {name: x.shape for name, x in arrays.items()}
    if set(shapes) != wanted or any(n not in ((0,), (size,)) for n in shapes.values()):
        raise ValueError(f"a state of {shapes} does not fit {size} parameters and {sorted(wanted)}")
    return arrays


class _Optimizer:
    """What all optimizers have in common."""

    def __init__(self, parameters: Any, lr: Rate, **options: Any) -> None:
        self._pieces, self._places = _pieces(parameters)
        self._schedule = lr if callable(lr) else None
        self._options = {name: _plain(option) for name, option in options.items()}
        self._optimizers = self._made(float(lr(0) if callable(lr) else lr), self._options)

    def _made(self, lr: float, options: dict[str, Any]) -> list[Any]:
        name = type(self).__name__
        return [_kind(name, piece.dtype)(lr=lr, **options) for piece in self._pieces]

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
            piece.step(optimizer)
        self._follow_schedule()

    def _follow_schedule(self) -> None:
        if self._schedule is not None:
            self.lr = self._schedule(self.steps)

    def zero_grad(self) -> None:
        """Set the gradients of all parameters to 0."""
        for piece in self._pieces:
            piece.zero_grad()

    def state_dict(self) -> dict[str, Any]:
        """What is needed to go on as if nothing had happened: copies.

        A schedule is only named: the optimizer that goes on has its own.
        """
        return {
            "lr": self.lr,
            "steps": self.steps,
            "options": dict(self._options),
            "schedule": type(self._schedule).__name__ if self._schedule is not None else None,
            "state": self._state(),
        }

    def _state(self) -> list[dict[str, NDArray[Any]]]:
        """What the optimizers keep, a dictionary per parameter (all Values count as one)."""
        by_place: dict[int, dict[str, NDArray[Any]]] = {}
        for piece, places, optimizer in zip(self._pieces, self._places, self._optimizers):
            state = optimizer.state
            ends = np.cumsum(piece.sizes)[:-1]
            split = {  # before the first step there is nothing to split
                name: np.split(x, ends) if x.size else [x] * len(places)
                for name, x in state.items()
            }
            for i, place in enumerate(places):
                by_place[place] = {name: parts[i] for name, parts in split.items()}
        return [by_place[place] for place in sorted(by_place)]

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where another optimizer of the same kind and parameters was, with its options.

        If the state does not fit, nothing is changed.
        """
        if state.get("schedule") is not None and self._schedule is None:
            raise ValueError(
                f"a state with learning rates of {state['schedule']} needs an optimizer whose lr is "
                "such a schedule"
            )
        options, lr = state.get("options", self._options), state["lr"]
        same = isinstance(options, dict) and options.keys() == self._options.keys()
        if not same or not all(_is_like(options[name], x) for name, x in self._options.items()):
            raise ValueError(f"a state of other options does not fit {type(self).__name__}")
        if not _is_number(lr):
            raise ValueError("the learning rate of a state is no number")
        options = {name: _plain(option) for name, option in options.items()}
        optimizers = self._made(float(lr), options)
        given = state["state"]
        count = sum(map(len, self._places))
        if len(given) != count:
            raise ValueError(f"a state of {len(given)} parameters does not fit {count}")
        for piece, places, optimizer in zip(self._pieces, self._places, optimizers):
            parts = [
                _fitting(given[place], size, piece.dtype, set(optimizer.state))
                for place, size in zip(places, piece.sizes)
            ]
            joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
            if any(x.size not in (0, sum(piece.sizes)) for x in joined.values()):
                raise ValueError("a state of some parameters only does not fit")
            optimizer.state = joined
            optimizer.steps = state["steps"]
        self._options, self._optimizers = options, optimizers
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


def clip_by_norm(parameters: Any, most: float) -> float:
    """Scale all gradients together to a norm of at most `most`; return the norm they had."""
    pieces, _ = _pieces(parameters)
    norm = math.hypot(*(piece.on_gradients(_optim.norm) for piece in pieces))
    factor = _optim.clip_factor(norm, most)
    if factor < 1:
        for piece in pieces:
            piece.on_gradients(_optim.scale, factor)
    return norm


def clip_by_value(parameters: Any, most: float) -> None:
    """Move each gradient into [-most, most]."""
    for piece in _pieces(parameters)[0]:
        piece.on_gradients(_optim.clip_by_value, most)
