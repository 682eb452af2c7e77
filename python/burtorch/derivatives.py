# python/burtorch/derivatives.py — directional and second derivatives of functions of Values
# SPDX-License-Identifier: MIT
"""Derivatives of whole functions by forward mode: jvp, hvp, jacobian, hessian.

f takes one Value for a number, or an array of Values for a sequence or array of numbers, like the
functions of transforms.py. jvp, hvp and hessian run it on a tape of duals of its own, so it can use
numbers from outside, but no Values.
"""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from ._core import Tape, Value, backward
from .transforms import _apart, _gradient_like, _leaves, _numbers

__all__ = ["hessian", "hvp", "jacobian", "jvp"]


def _dual_leaves(x: Any, v: Any) -> tuple[Any, list[Value]]:
    """Turn numbers x with directions v into Values on the current tape, which is one of duals."""
    numbers, directions = _numbers(x), _numbers(v)
    if numbers.shape != directions.shape:
        raise ValueError(f"x has shape {numbers.shape}, but v has shape {directions.shape}")
    pairs = np.stack([numbers.ravel(), directions.ravel()], axis=1)
    flat = [Value(pair) for pair in pairs]
    if numbers.ndim == 0:
        return flat[0], flat
    values = np.empty(numbers.shape, dtype=object)
    values.ravel()[:] = flat
    return values, flat


def _parts(result: Any) -> tuple[float, float]:
    """Return value and tangent of what f returned, which may be a number."""
    if isinstance(result, Value):
        value, tangent = result.data
        return float(value), float(tangent)
    if isinstance(result, (int, float, np.generic)):
        return float(result), 0.0
    raise TypeError(f"the function must return Values or numbers, not {type(result).__name__}")


def jvp(f: Callable[[Any], Any], x: Any, v: Any) -> tuple[Any, Any]:
    """Return f(x) and its derivative along v, in one forward pass.

    If f returns a sequence or an array, both are arrays of its shape.

    >>> jvp(lambda x: x[0] * x[1], [3.0, 4.0], [1.0, 0.0])
    (12.0, 4.0)
    """
    with Tape("dual64"):
        values, _ = _dual_leaves(x, v)
        result = f(values)
        if np.ndim(result) == 0:
            return _parts(result.item() if isinstance(result, np.ndarray) else result)
        outputs = np.asarray(result, dtype=object)
        parts = np.array([_parts(output) for output in outputs.ravel()])
    return parts[:, 0].reshape(outputs.shape), parts[:, 1].reshape(outputs.shape)


def hvp(f: Callable[[Any], Any], x: Any, v: Any) -> tuple[float, Any]:
    """Return f(x) and the product of its Hessian with v: a backward pass over a tape of duals.

    >>> hvp(lambda x: x[0] ** 2 * x[1], [3.0, 4.0], [1.0, 0.0])
    (36.0, array([8., 6.]))
    """
    with Tape("dual64"):
        values, leaves = _dual_leaves(x, v)
        result = f(values)
        if isinstance(result, np.ndarray) and result.ndim == 0:
            result = result.item()
        value, _ = _parts(result)
        if isinstance(result, Value):
            backward(result)
        product = np.array([leaf.grad[1] for leaf in leaves])
    return value, float(product[0]) if np.ndim(x) == 0 else product.reshape(np.shape(x))


def jacobian(f: Callable[[Any], Any], x: Any) -> Any:
    """Return the derivatives of all that f returns by all of x: shape of f(x), then shape of x.

    >>> jacobian(lambda x: [x[0] * x[1], x[0] + x[1]], [3.0, 4.0])
    array([[4., 3.],
           [1., 1.]])
    """
    with _apart():
        values, leaves = _leaves(x)
        outputs = np.asarray(f(values), dtype=object)
        rows = []
        for output in outputs.ravel():
            for leaf in leaves:
                leaf.grad = 0.0
            if isinstance(output, Value):
                backward(output)
            else:
                _parts(output)  # a number, or an error
            rows.append(_gradient_like(x, leaves))
        return np.array(rows, dtype=float).reshape(outputs.shape + np.shape(x))


def hessian(f: Callable[[Any], Any], x: Any) -> Any:
    """Return the second derivatives of f, which returns one Value: shape of x twice.

    >>> hessian(lambda x: x[0] ** 2 * x[1], [3.0, 4.0])
    array([[8., 6.],
           [6., 0.]])
    """
    base = _numbers(x)
    rows = []
    for place in np.ndindex(base.shape):
        direction = np.zeros_like(base)
        direction[place] = 1
        rows.append(hvp(f, x, direction)[1])
    return np.array(rows, dtype=float).reshape(base.shape + base.shape)
