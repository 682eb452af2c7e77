# python/burtorch/nn/convolution.py — layers of images and signals: convolutions and pooling
# SPDX-License-Identifier: MIT
"""Conv1d, Conv2d, MaxPool2d, AvgPool2d, with PyTorch's names, shapes and first values.

Images are (b, channels, height, width) or (channels, height, width), signals lack the height. An array of
numbers is data. Where views have two dimensions at most, results are matrices with a row per image, and
`shape` says the sizes of one image.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

from numpy.typing import ArrayLike

from .. import _core as bt
from .layers import _parameter
from .module import Module


def _shaped(view: bt.View, shape: tuple[int, ...]) -> bt.View:
    """Return the view in a shape; as it is, a matrix, where views have two dimensions at most."""
    try:
        return view.reshape(shape)
    except ValueError:
        if len(shape) > 2 and view.size == prod(shape):
            return view
        raise


def _sizes(each: int | Sequence[int], count: int, what: str) -> tuple[int, ...]:
    """Return one size for each dimension; one number stands for all."""
    sizes = (each,) * count if isinstance(each, int) else tuple(each)
    if len(sizes) != count or not all(isinstance(n, int) and n >= 0 for n in sizes):
        raise ValueError(f"{what} is one size or {count}, not {each!r}")
    return sizes


class _Convolution(Module):
    """What convolutions over one and two dimensions share."""

    _dimensions = 0

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        groups: int = 1,
        bias: bool = True,
        random: bt.Random | None = None,
    ) -> None:
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = _sizes(kernel_size, self._dimensions, "kernel_size")
        self.stride = _sizes(stride, self._dimensions, "stride")
        self.padding = _sizes(padding, self._dimensions, "padding")
        self.groups = groups
        if groups < 1 or in_channels % groups != 0 or out_channels % groups != 0:
            raise ValueError(
                f"{in_channels} channels and {out_channels} outputs can't be shared by {groups} groups"
            )
        shape = (out_channels, in_channels // groups, *self.kernel_size)
        fan = prod(shape[1:])
        matrix = _parameter((out_channels, fan), "linear", random, fan, out_channels)
        self.weight = _shaped(matrix, shape)
        self.bias = (
            _parameter((out_channels,), "linear", random, fan, out_channels) if bias else None
        )

    @property
    def config(self) -> dict[str, Any]:
        return {
            "in_channels": self.in_channels,
            "out_channels": self.out_channels,
            "kernel_size": list(self.kernel_size),
            "stride": list(self.stride),
            "padding": list(self.padding),
            "groups": self.groups,
            "bias": self.bias is not None,
        }

    @classmethod
    def count_parameters(
        cls,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        groups: int = 1,
        bias: bool = True,
    ) -> int:
        """How many parameters a layer of these sizes has, without making it."""
        fan = in_channels // groups * prod(_sizes(kernel_size, cls._dimensions, "kernel_size"))
        return out_channels * (fan + bool(bias))

    def parts(self) -> Iterable[tuple[str, bt.View | Module]]:
        yield "weight", self.weight
        if self.bias is not None:
            yield "bias", self.bias


class Conv2d(_Convolution):
    """Filters over images: (b, in_channels, h, w) gives (b, out_channels, …, …)."""

    _dimensions = 2

    def forward(self, x: bt.View | ArrayLike, shape: Sequence[int] | None = None) -> bt.View:
        return bt.conv2d(
            x,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self.groups,
            shape,
            self.kernel_size,
        )


class Conv1d(_Convolution):
    """Filters over signals: (b, in_channels, length) gives (b, out_channels, …)."""

    _dimensions = 1

    def forward(self, x: bt.View | ArrayLike, shape: Sequence[int] | None = None) -> bt.View:
        return bt.conv1d(
            x,
            self.weight,
            self.bias,
            self.stride[0],
            self.padding[0],
            self.groups,
            shape,
            self.kernel_size[0],
        )


class _Pool(Module):
    """What both kinds of pooling share."""

    def __init__(
        self, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None
    ) -> None:
        self.kernel_size = _sizes(kernel_size, 2, "kernel_size")
        self.stride = self.kernel_size if stride is None else _sizes(stride, 2, "stride")

    @property
    def config(self) -> dict[str, Any]:
        return {"kernel_size": list(self.kernel_size), "stride": list(self.stride)}

    @staticmethod
    def count_parameters(
        kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None
    ) -> int:
        return 0

    def parts(self) -> Iterable[tuple[str, bt.View | Module]]:
        return ()


class MaxPool2d(_Pool):
    """The largest number of each window; of equal ones the first takes the gradient."""

    def forward(self, x: bt.View, shape: Sequence[int] | None = None) -> bt.View:
        return bt.max_pool2d(x, self.kernel_size, self.stride, shape)


class AvgPool2d(_Pool):
    """The mean of each window."""

    def forward(self, x: bt.View, shape: Sequence[int] | None = None) -> bt.View:
        return bt.avg_pool2d(x, self.kernel_size, self.stride, shape)
