# python/burtorch/interop/torch.py — compiled functions inside PyTorch programs, PyTorch's modules inside burtorch
# SPDX-License-Identifier: MIT
"""Use a compiled function inside a PyTorch program.

>>> import burtorch as bt, torch
>>> from burtorch.interop.torch import wrap
>>> f = wrap(bt.compile(lambda x: x[0] * x[1]))
>>> x = torch.tensor([3.0, 4.0], requires_grad=True)
>>> f(x).backward()
>>> x.grad
tensor([4., 3.])

convert(module) makes a burtorch module of a PyTorch module, with its weights.
"""

from __future__ import annotations

import functools
from typing import Any, Callable

import numpy as np
import torch  # type: ignore[import-not-found, unused-ignore]

from ..compiled import Compiled
from ._convert import convert

__all__ = ["convert", "wrap"]


def _numbers(x: Any) -> Any:
    if not isinstance(x, torch.Tensor):
        return x
    return x.detach().to("cpu", torch.float64).contiguous().numpy()


def _is_floating(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and x.is_floating_point()


def _result_like(arguments: Any) -> Any:
    """Return an empty tensor of the dtype and device that PyTorch would give a result of these."""
    tensors = [x for x in arguments if _is_floating(x)]
    # As in PyTorch's arithmetic, tensors of no dimension decide only where there are no others.
    deciding = [x for x in tensors if x.dim()] or tensors
    dtypes = [x.dtype for x in deciding] or [torch.get_default_dtype()]
    devices = [x.device for x in arguments if isinstance(x, torch.Tensor)] or [None]
    return torch.empty(0, dtype=functools.reduce(torch.promote_types, dtypes), device=devices[0])


def _like(numbers: Any, tensor: Any) -> Any:
    return torch.as_tensor(np.asarray(numbers), dtype=tensor.dtype, device=tensor.device)


class _Single(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
    """The value of a compiled function of tensors; the gradients are computed along with it."""

    @staticmethod
    def forward(ctx: Any, compiled: Compiled, *arguments: Any) -> Any:
        value, gradients = compiled.value_and_grad(*map(_numbers, arguments))
        gradients = gradients if len(arguments) > 1 else (gradients,)
        ctx.differentiable = [_is_floating(x) for x in arguments]
        pairs = zip(gradients, arguments)
        ctx.save_for_backward(*(_like(g, x) for g, x in pairs if _is_floating(x)))
        return _like(value, _result_like(arguments))

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator, unused-ignore]
    def backward(ctx: Any, adjoint: Any) -> Any:
        saved = iter(ctx.saved_tensors)
        gradients = [next(saved) if yes else None for yes in ctx.differentiable]
        return (None, *(None if g is None else (adjoint * g).to(g.dtype) for g in gradients))


class _Rows(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
    """The values at the rows of a tensor."""

    @staticmethod
    def forward(ctx: Any, compiled: Compiled, threads: int, x: Any) -> Any:
        values, gradients = compiled.batch(_numbers(x), threads=threads)
        like = _result_like([x])
        ctx.save_for_backward(_like(gradients, like))
        return _like(values, like)

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator, unused-ignore]
    def backward(ctx: Any, adjoint: Any) -> Any:
        (gradients,) = ctx.saved_tensors
        return None, None, adjoint[:, None] * gradients


def wrap(compiled: Compiled, *, rows: bool = False, threads: int = 1) -> Callable[..., Any]:
    """Return a function of tensors through which PyTorch can differentiate once.

    Plain numbers may stand among the tensors. With rows=True it takes one tensor of shape (n, d) and
    gives the n values at its rows. The numbers are computed in float64 on the CPU and come back in the
    dtype that PyTorch's arithmetic would give, on the tensors' device.
    """
    if rows:
        return lambda x: _Rows.apply(compiled, threads, x)
    return lambda *arguments: _Single.apply(compiled, *arguments)
