# python/burtorch/nn/normalization.py — layers that do one thing in training and another in evaluation
# SPDX-License-Identifier: MIT
"""BatchNorm1d, BatchNorm2d, Dropout. They are in training unless their attribute `training` is False."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import _core as bt
from . import layers
from .layers import _parameter
from .module import Module, is_recording


class _BatchNorm(Module):
    """Each channel shifted and scaled to mean 0 and variance 1, times weight, plus bias.

    In training by the mean and the variance of the batch, towards which the running ones move; in evaluation by
    the running ones. These are in the state dictionary, and no parameters.
    """

    _ranks: tuple[int, ...] = ()
    running_mean: bt.View
    running_var: bt.View
    num_batches_tracked: bt.Value

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1) -> None:
        self.eps = eps
        self.momentum = momentum
        self.weight = _parameter((num_features,), "ones")
        self.bias = _parameter((num_features,), "zeros")
        self.register_buffer("running_mean", _parameter((num_features,), "zeros"))
        self.register_buffer("running_var", _parameter((num_features,), "ones"))
        self.register_buffer("num_batches_tracked", bt.Value(0.0))

    @property
    def config(self) -> dict[str, Any]:
        return {"num_features": self.weight.size, "eps": self.eps, "momentum": self.momentum}

    @staticmethod
    def count_parameters(num_features: int, eps: float = 1e-5, momentum: float = 0.1) -> int:
        """How many parameters a layer of these sizes has, without making it."""
        return 2 * num_features

    def parts(self) -> Iterable[tuple[str, bt.View | Module]]:
        yield "weight", self.weight
        yield "bias", self.bias

    def forward(self, x: bt.View | ArrayLike) -> bt.View:
        shape = tuple(x.shape) if isinstance(x, bt.View) else np.shape(x)
        if len(shape) not in self._ranks:
            raise ValueError(
                f"{type(self).__name__} takes {' or '.join(map(str, self._ranks))} dimensions, "
                f"not the shape {shape}"
            )
        y = bt.batch_norm(
            x,
            self.weight,
            self.bias,
            self.running_mean,
            self.running_var,
            self.training,
            self.momentum,
            self.eps,
        )
        if self.training and not is_recording():
            self.count_batch()
        return y

    def count_batch(self) -> None:
        """Note that a batch went through in training; replays do so, too."""
        self.num_batches_tracked.data += 1


class BatchNorm1d(_BatchNorm):
    """Batch norm of (b, channels) or (b, channels, length)."""

    _ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch norm of (b, channels, height, width); a matrix holds the images in its rows."""

    _ranks = (2, 4)


class Dropout(Module):
    """Each element is 0 with probability p, else divided by 1 - p; in evaluation all stay as they are.

    Which ones is drawn anew at every call from `random`: the generator of all layers, which `bt.nn.seed` restarts,
    unless one is given, whose state can be kept.
    """

    def __init__(self, p: float = 0.5, random: bt.Random | None = None) -> None:
        if not 0 <= p <= 1:
            raise ValueError(f"a probability lies between 0 and 1, not {p}")
        self.p = p
        self.random = random or layers._shared

    @property
    def config(self) -> dict[str, Any]:
        return {"p": self.p}

    @staticmethod
    def count_parameters(p: float = 0.5) -> int:
        return 0

    def parts(self) -> Iterable[tuple[str, bt.View | Module]]:
        return ()

    def forward(self, x: bt.View) -> bt.View:
        if not self.training or self.p == 0:
            return x
        return bt.dropout(x, self.p, self.random.bits())
