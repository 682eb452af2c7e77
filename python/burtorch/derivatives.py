# python/burtorch/derivatives.py — directional and second derivatives of functions of Values
# SPDX-License-Identifier: MIT
"""Derivatives of whole functions by forward mode: jvp, hvp, jacobian, hessian.

f takes one Value for a number, or an array of Values for a sequence or array of numbers, like the
functions of transforms.py. jvp, hvp and hessian run it on a tape of duals of its own, so it can use
numbers from outside, but no Values.

Inside of a function that is being transformed or compiled all of them work with Values of that function, and
give Values: derivatives are recorded backward passes then.
"""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
from numpy.typing import NDArray

from ._core import Tape, Value, backward
from .transforms import (
    _apart,
    _array_of,
    _gradient_like,
    _leaves,
    _like,
    _nested_leaves,
    _numbers,
    _recorded_gradients,
    _shape,
    _since,
    _things,
    _transforming,
)

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


# ---- inside of another transform: everything is a Value ---------------------------------------------


def _nested_outputs(f: Callable[[Any], Any], x: Any) -> tuple[NDArray[Any], list[Value]]:
    """Return what f gives as an array of Values and numbers, and the Values that f was given."""
    values, leaves = _nested_leaves(x)
    outputs = _things(f(values))
    for output in outputs.ravel():
        if not isinstance(output, Value):
            _parts(output)  # a number, or an error
    return outputs, leaves


def _nested_directions(x: Any, v: Any) -> list[Value]:
    _, directions = _nested_leaves(v)
    if _shape(v) != _shape(x):
        raise ValueError(f"x has shape {_shape(x)}, but v has shape {_shape(v)}")
    return directions


def _weighted_sum(values: Any, weights: Any) -> Any:
    return sum((value * weight for value, weight in zip(values, weights)), 0.0)


def _nested_jvp(f: Callable[[Any], Any], x: Any, v: Any, since: int) -> tuple[Any, Any]:
    """Return f(x) and f'(x)·v. Reverse mode twice: uᵀf'(x) is linear in u, by which its slope is f'(x)."""
    outputs, leaves = _nested_outputs(f, x)
    directions = _nested_directions(x, v)
    weights = [Value(1.0) for _ in range(outputs.size)]
    products = _recorded_gradients(_weighted_sum(weights, outputs.ravel()), leaves, since)
    slopes = _recorded_gradients(_weighted_sum(products, directions), weights, since)
    if outputs.ndim == 0:
        return outputs.item(), slopes[0]
    return outputs, _array_of(slopes).reshape(outputs.shape)


def _nested_hvp(f: Callable[[Any], Any], x: Any, v: Any, since: int) -> tuple[Any, Any]:
    outputs, leaves = _nested_outputs(f, x)
    if outputs.ndim:
        raise TypeError("the function must return one Value or number, not an array of them")
    directions = _nested_directions(x, v)
    slope = _weighted_sum(_recorded_gradients(outputs.item(), leaves, since), directions)
    return outputs.item(), _like(x, _recorded_gradients(slope, leaves, since))


def _nested_jacobian(f: Callable[[Any], Any], x: Any, since: int) -> Any:
    outputs, leaves = _nested_outputs(f, x)
    return _rows(outputs.ravel(), leaves, since, outputs.shape + _shape(x))


def _nested_hessian(f: Callable[[Any], Any], x: Any, since: int) -> Any:
    outputs, leaves = _nested_outputs(f, x)
    if outputs.ndim:
        raise TypeError("the function must return one Value or number, not an array of them")
    slopes = _recorded_gradients(outputs.item(), leaves, since)
    return _rows(slopes, leaves, since, _shape(x) + _shape(x))


def _rows(outputs: Any, leaves: list[Value], since: int, shape: tuple[int, ...]) -> Any:
    """Return the derivatives of all outputs by all leaves in a shape; without any, as one Value."""
    rows = [row for output in outputs for row in _recorded_gradients(output, leaves, since)]
    return _array_of(rows).reshape(shape) if shape else rows[0]


# ---- the transforms ---------------------------------------------------------------------------------


def jvp(f: Callable[[Any], Any], x: Any, v: Any) -> tuple[Any, Any]:
    """Return f(x) and its derivative along v, in one forward pass.

    If f returns a sequence or an array, both are arrays of its shape.

    >>> jvp(lambda x: x[0] * x[1], [3.0, 4.0], [1.0, 0.0])
    (12.0, 4.0)
    """
    since = _since()
    if since is not None:
        return _nested_jvp(f, x, v, since)
    with Tape("dual64") as tape, _transforming(tape):
        values, _ = _dual_leaves(x, v)
        result = f(values)
        if np.ndim(result) == 0:
            return _parts(result.item() if isinstance(result, np.ndarray) else result)
        outputs = np.asarray(result, dtype=object)
        parts = np.array([_parts(output) for output in outputs.ravel()])
    return parts[:, 0].reshape(outputs.shape), parts[:, 1].reshape(outputs.shape)


def hvp(f: Callable[[Any], Any], x: Any, v: Any) -> tuple[Any, Any]:
    """Return f(x) and the product of its Hessian with v: a backward pass over a tape of duals.

    >>> hvp(lambda x: x[0] ** 2 * x[1], [3.0, 4.0], [1.0, 0.0])
    (36.0, array([8., 6.]))
    """
    since = _since()
    if since is not None:
        return _nested_hvp(f, x, v, since)
    with Tape("dual64") as tape, _transforming(tape):
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
    since = _since()
    if since is not None:
        return _nested_jacobian(f, x, since)
    with _apart():
        values, leaves = _leaves(x)
        outputs = _things(f(values))
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
    since = _since()
    if since is not None:
        return _nested_hessian(f, x, since)
    base = _numbers(x)
    rows = []
    for place in np.ndindex(base.shape):
        direction = np.zeros_like(base)
        direction[place] = 1
        rows.append(hvp(f, x, direction)[1])
    return np.array(rows, dtype=float).reshape(base.shape + base.shape)
