# python/burtorch/nn/recurrent.py — LSTM and GRU: whole sequences, and single steps
# SPDX-License-Identifier: MIT
"""LSTM, GRU, LSTMCell, GRUCell, with PyTorch's names, shapes, gates and first values.

Sequences are (b, steps, inputs), or (steps, inputs) for one. An array of numbers is data. Where views have two
dimensions at most, sequences are rows, sample by sample, and `steps` says how many rows are one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import _core as bt
from .convolution import _shaped
from .layers import _as_view, _parameter
from .module import Module


class _Recurrent(Module):
    """Weights of one kind of cell, and how its states are called."""

    _gates = 0
    _states = 0  # h, and c beside it
    _block = ""  # the function of one layer

    def _make(self, suffix: str, inputs: int, bias: bool, random: bt.Random | None) -> None:
        """Make the weights of one layer: all of them are drawn as those of `hidden_size` inputs."""
        h = self.hidden_size
        rows = self._gates * h
        shapes: dict[str, tuple[int, ...]] = {
            "weight_ih": (rows, inputs),
            "weight_hh": (rows, h),
        }
        if bias:
            shapes.update(bias_ih=(rows,), bias_hh=(rows,))
        for name, shape in shapes.items():
            setattr(self, name + suffix, _parameter(shape, "linear", random, h, rows))
            self._names.append(name + suffix)

    def __init__(self, input_size: int, hidden_size: int, bias: bool) -> None:
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.has_bias = bias
        self._names: list[str] = []

    def parts(self) -> Iterable[tuple[str, bt.View | Module]]:
        for name in self._names:
            yield name, getattr(self, name)

    @classmethod
    def _count(cls, inputs: int, hidden: int, bias: bool) -> int:
        return cls._gates * hidden * (inputs + hidden + 2 * bool(bias))

    def _run(
        self, suffix: str, x: bt.View | ArrayLike, initial: bt.View | None, steps: int
    ) -> bt.View:
        """All states of sequences of so many steps, a row for each step."""
        weights = [
            getattr(self, name + suffix, None)
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        ]
        y: bt.View = getattr(bt, self._block)(x, *weights, initial, steps)
        return y

    def _part(self, states: bt.View, which: int, step: int | None, steps: int) -> bt.View:
        """One of the states (0: h, 1: c), of all steps or of one."""
        n = self._states
        if n == 1 and step is None:
            return states
        if step is None:
            return bt._every_row(states, which, n, n)
        return bt._every_row(states, step * n + which, steps * n, n)

    def _pair(self, states: list[bt.View]) -> Any:
        """States as they are given back: (h, c), or h alone."""
        return tuple(states) if self._states == 2 else states[0]

    def _given(self, state: Any) -> list[bt.View]:
        """States as they were given, as views."""
        beside = getattr(self, self._names[0])
        each = state if self._states == 2 else (state,)
        if not isinstance(each, (tuple, list)) or len(each) != self._states:
            raise ValueError(f"the state of {type(self).__name__} is (h, c)")
        flat = []
        for one in each:
            if not isinstance(one, bt.View):
                one = np.asarray(one).reshape(-1, self.hidden_size)
            view = _as_view(one, beside)
            flat.append(view.reshape(view.size // self.hidden_size, self.hidden_size))
        return flat


class _Sequences(_Recurrent):
    """One or more layers over whole sequences."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = True,
        random: bt.Random | None = None,
    ) -> None:
        if not batch_first:
            raise ValueError(f"{type(self).__name__} takes sequences sample by sample: batch_first")
        if num_layers < 1:
            raise ValueError(f"{type(self).__name__} has at least one layer, not {num_layers}")
        super().__init__(input_size, hidden_size, bias)
        self.num_layers = num_layers
        for layer in range(num_layers):
            self._make(f"_l{layer}", hidden_size if layer else input_size, bias, random)

    @property
    def config(self) -> dict[str, Any]:
        return {
            "input_size": self.input_size,
            "hidden_size": self.hidden_size,
            "num_layers": self.num_layers,
            "bias": self.has_bias,
        }

    @classmethod
    def count_parameters(
        cls, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True
    ) -> int:
        """How many parameters a layer of these sizes has, without making it."""
        first = cls._count(input_size, hidden_size, bias)
        return first + (num_layers - 1) * cls._count(hidden_size, hidden_size, bias)

    def forward(
        self, x: bt.View | ArrayLike, state: Any = None, steps: int | None = None
    ) -> tuple[bt.View, Any]:
        """Return all outputs and the last states; `steps` of each sequence where x is a matrix of many."""
        if not isinstance(x, bt.View):
            x = np.asarray(x)
        shape = tuple(x.shape)
        if len(shape) not in (2, 3):
            raise ValueError(f"x has the shape (b, steps, inputs) or (steps, inputs), not {shape}")
        single = len(shape) == 2 and steps is None
        t = steps or shape[-2]
        h, layers = self.hidden_size, self.num_layers
        rows = shape[0] * shape[1] if len(shape) == 3 else shape[0]
        b = rows // t if t else 0
        given = None if state is None else self._given(state)
        last: list[list[bt.View]] = [[] for _ in range(self._states)]
        y: bt.View | ArrayLike = x
        for layer in range(layers):
            initial = None
            if given is not None:
                parts = [each[layer * b : (layer + 1) * b] for each in given]
                initial = parts[0] if len(parts) == 1 else bt.concat(parts, axis=1)
            states = self._run(f"_l{layer}", y, initial, t)
            y = self._part(states, 0, None, t)
            for which, each in enumerate(last):
                each.append(self._part(states, which, t - 1, t))
        ends = [each[0] if layers == 1 else bt.concat(each, axis=0) for each in last]
        shape_of_state = (layers, h) if single else (layers, b, h)
        assert isinstance(y, bt.View)
        return (
            y if single else _shaped(y, (b, t, h)),
            self._pair([_shaped(each, shape_of_state) for each in ends]),
        )


class _Cell(_Recurrent):
    """One step."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        random: bt.Random | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias)
        self._make("", input_size, bias, random)

    @property
    def config(self) -> dict[str, Any]:
        return {
            "input_size": self.input_size,
            "hidden_size": self.hidden_size,
            "bias": self.has_bias,
        }

    @classmethod
    def count_parameters(cls, input_size: int, hidden_size: int, bias: bool = True) -> int:
        """How many parameters a layer of these sizes has, without making it."""
        return cls._count(input_size, hidden_size, bias)

    def forward(self, x: bt.View | ArrayLike, state: Any = None) -> Any:
        """Return the next state (LSTM: h and c) of each row of x."""
        initial = None
        if state is not None:
            parts = self._given(state)
            initial = parts[0] if len(parts) == 1 else bt.concat(parts, axis=1)
        states = self._run("", x, initial, 1)
        return self._pair([self._part(states, which, 0, 1) for which in range(self._states)])


class LSTM(_Sequences):
    """Long short-term memory: `output, (h, c) = lstm(x)`, or `lstm(x, (h, c))` from given states."""

    _gates, _states = 4, 2
    _block = "lstm"


class GRU(_Sequences):
    """Gated recurrent units: `output, h = gru(x)`, or `gru(x, h)` from a given state."""

    _gates, _states = 3, 1
    _block = "gru"


class LSTMCell(_Cell):
    """One step of an LSTM: `h, c = cell(x, (h, c))`."""

    _gates, _states = 4, 2
    _block = "lstm"


class GRUCell(_Cell):
    """One step of a GRU: `h = cell(x, h)`."""

    _gates, _states = 3, 1
    _block = "gru"
