# python/burtorch/interop/torch.py — compiled functions as differentiable functions of PyTorch tensors
# SPDX-License-Identifier: MIT
"""Use a compiled function inside a PyTorch program.

>>> import burtorch as bt, torch
>>> from burtorch.interop.torch import wrap
>>> f = wrap(bt.compile(lambda x: x[0] * x[1]))
>>> x = torch.tensor([3.0, 4.0], requires_grad=True)
>>> f(x).backward()
>>> x.grad
tensor([4., 3.])
"""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import torch  # type: ignore[import-not-found, unused-ignore]

from ..compiled import Compiled

__all__ = ["wrap"]


def _numbers(tensor: Any) -> Any:
    return tensor.detach().to("cpu", torch.float64).contiguous().numpy()


def _like(numbers: Any, tensor: Any) -> Any:
    return torch.as_tensor(np.asarray(numbers), dtype=tensor.dtype, device=tensor.device)


class _Single(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
    """The value of a compiled function of tensors; the gradients are computed along with it."""

    @staticmethod
    def forward(ctx: Any, compiled: Compiled, *tensors: Any) -> Any:
        value, gradients = compiled.value_and_grad(*map(_numbers, tensors))
        gradients = gradients if len(tensors) > 1 else (gradients,)
        ctx.save_for_backward(*map(_like, gradients, tensors))
        return _like(value, tensors[0])

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator, unused-ignore]
    def backward(ctx: Any, adjoint: Any) -> Any:
        return (None, *(adjoint * gradient for gradient in ctx.saved_tensors))


class _Rows(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
    """The values at the rows of a tensor."""

    @staticmethod
    def forward(ctx: Any, compiled: Compiled, threads: int, x: Any) -> Any:
        values, gradients = compiled.batch(_numbers(x), threads=threads)
        ctx.save_for_backward(_like(gradients, x))
        return _like(values, x)

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator, unused-ignore]
    def backward(ctx: Any, adjoint: Any) -> Any:
        (gradients,) = ctx.saved_tensors
        return None, None, adjoint[:, None] * gradients


def wrap(compiled: Compiled, *, rows: bool = False, threads: int = 1) -> Callable[..., Any]:
    """Return a function of tensors through which PyTorch can differentiate once.

    With rows=True it takes one tensor of shape (n, d) and gives the n values at its rows. The numbers
    are computed in float64 on the CPU and come back in the tensors' dtype, on their device.
    """
    if rows:
        return lambda x: _Rows.apply(compiled, threads, x)
    return lambda *tensors: _Single.apply(compiled, *tensors)
