# python/burtorch/transforms.py — functions of Values as functions of numbers, with their gradients
# SPDX-License-Identifier: MIT
"""Gradients of whole functions: grad, value_and_grad, check_grad."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from ._core import Value, backward, current_tape

__all__ = ["GradientError", "check_grad", "grad", "value_and_grad"]


class GradientError(AssertionError):
    """A gradient differs from central differences."""


def _leaves(argument: Any) -> tuple[Any, list[Value]]:
    """Turn a number into a Value, a sequence or array of numbers into an object array of Values."""
    if isinstance(argument, (int, float, np.generic)) and np.ndim(argument) == 0:
        leaf = Value(float(argument))
        return leaf, [leaf]
    numbers = np.asarray(argument, dtype=float)
    values = np.empty(numbers.shape, dtype=object)
    flat = [Value(x) for x in numbers.ravel().tolist()]
    values.ravel()[:] = flat
    return values, flat


def _gradient_like(argument: Any, leaves: list[Value]) -> Any:
    if np.ndim(argument) == 0:
        return leaves[0].grad
    return np.array([leaf.grad for leaf in leaves]).reshape(np.shape(argument))


def value_and_grad(f: Callable[..., Any]) -> Callable[..., tuple[float, Any]]:
    """Return a function that gives f's value and its gradient by all arguments.

    f takes Values where the returned function takes numbers, and arrays of Values where it takes
    sequences or arrays. With one argument the gradient is of its kind, a float or an array; with
    several it is a tuple. What f records is forgotten afterwards.

    >>> value_and_grad(lambda x: x[0] * x[1])([3.0, 4.0])
    (12.0, array([4., 3.]))
    """

    def value_and_gradient(*arguments: Any) -> tuple[float, Any]:
        if not arguments:
            raise TypeError("a function of no arguments has no gradient")
        with current_tape().scope():
            traced = [_leaves(argument) for argument in arguments]
            result = f(*(values for values, _ in traced))
            if isinstance(result, np.ndarray) and result.ndim == 0:
                result = result.item()
            if isinstance(result, Value):
                backward(result)
                value = result.data
            elif isinstance(result, (int, float, np.generic)):
                value = float(result)  # depends on nothing: all derivatives are 0
            else:
                raise TypeError(
                    f"the function must return one Value or number, not {type(result).__name__}"
                )
            gradients = [_gradient_like(a, leaves) for a, (_, leaves) in zip(arguments, traced)]
        return value, gradients[0] if len(gradients) == 1 else tuple(gradients)

    return value_and_gradient


def grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that gives the gradient of f; see value_and_grad.

    >>> grad(lambda x: x**3)(2.0)
    12.0
    """
    both = value_and_grad(f)

    def gradient(*arguments: Any) -> Any:
        return both(*arguments)[1]

    return gradient


def check_grad(
    f: Callable[..., Any], *arguments: Any, step: float = 1e-6, tolerance: float = 1e-6
) -> float:
    """Compare the gradient of f with central differences; return the largest error.

    Errors are relative to 1 + |derivative|. Raises GradientError, saying where, if one exceeds the
    tolerance.
    """
    both = value_and_grad(f)
    gradients = both(*arguments)[1]
    gradients = (gradients,) if len(arguments) == 1 else gradients
    worst, complaints = 0.0, []
    for k, (argument, gradient) in enumerate(zip(arguments, gradients)):
        base = np.asarray(argument, dtype=float)
        for place in np.ndindex(base.shape):
            h = step * max(1.0, abs(float(base[place])))
            ends = []
            for sign in (1, -1):
                moved = base.copy()
                moved[place] += sign * h
                end = moved if base.ndim else float(moved)
                ends.append(both(*arguments[:k], end, *arguments[k + 1 :])[0])
            expected = (ends[0] - ends[1]) / (2 * h)
            got = float(np.asarray(gradient)[place])
            error = abs(got - expected) / (1 + abs(expected))
            worst = max(worst, error) if error == error else float("nan")
            if not error <= tolerance:
                where = f"argument {k}" + (f"[{', '.join(map(str, place))}]" if place else "")
                complaints.append(f"{where}: gradient {got:.10g}, differences {expected:.10g}")
    if complaints:
        shown = "\n  ".join(complaints[:10])
        more = f"\n  … {len(complaints) - 10} more" if len(complaints) > 10 else ""
        raise GradientError(f"{len(complaints)} derivatives differ:\n  {shown}{more}")
    return worst
