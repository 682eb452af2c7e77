# python/burtorch/transforms.py — functions of Values as functions of numbers, with their gradients
# SPDX-License-Identifier: MIT
"""Gradients of whole functions: grad, value_and_grad, check_grad.

A transform may be called inside of a function that is being transformed or compiled. The inner one then
gives Values instead of numbers: its gradient is recorded, so that the outer one can go through it. What is
recorded by `_compile.gradients` is the calculus of the operations themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from io import BytesIO
from typing import Any, Callable

import numpy as np
from numpy.typing import NDArray

from ._core import Error, Tape, Value, View, _compile, backward, current_tape

__all__ = ["GradientError", "check_grad", "grad", "value_and_grad"]


class GradientError(Error, AssertionError):
    """A gradient differs from central differences."""


# The transforms that are calling their functions now, outermost first: the tape, and how many nodes are older.
_running: ContextVar[tuple[tuple[Tape, int], ...]] = ContextVar("_running", default=())


@contextmanager
def _transforming(tape: Tape) -> Iterator[None]:
    """Let transforms that are called inside give Values of this tape."""
    token = _running.set((*_running.get(), (tape, len(tape))))
    try:
        yield
    finally:
        _running.reset(token)


def _since() -> int | None:
    """Return the node since which the outermost transform records here; None: there is none."""
    running = _running.get()
    if running:
        tape = current_tape()
        for each, since in running:
            if each is tape:
                return since
    return None


@contextmanager
def _apart() -> Iterator[None]:
    """Forget afterwards what is recorded inside, and give older Values back the gradients they had.

    It is what _transforming is, too: a context of its own would cost a microsecond per call.
    """
    tape = current_tape()
    with tape.scope():
        older = len(tape)
        kept: Any = b""
        if older and tape.dtype in {"bfloat16", "float128"}:  # there tape.grads is rounded
            file = BytesIO()
            tape.save(file, last=older, what="grads")
            kept = file.getbuffer()
        elif older:
            kept = tape.grads[:older].copy()
        token = _running.set((*_running.get(), (tape, older)))
        try:
            yield
        finally:
            _running.reset(token)
            if older:
                tape.load(kept, what="grads")


def _numbers(argument: Any) -> NDArray[np.float64]:
    """Return an argument as an array of floats; NumPy would drop imaginary parts."""
    array = np.asarray(argument)
    if array.dtype.kind == "c":
        raise TypeError("gradients are of functions of real numbers, not of complex ones")
    return array.astype(float, copy=False)


def _leaves(argument: Any) -> tuple[Any, list[Value]]:
    """Turn a number into a Value, a sequence or array of numbers into an object array of Values."""
    numbers = _numbers(argument)
    if isinstance(argument, (int, float, np.generic)):
        leaf = Value(float(numbers))
        return leaf, [leaf]
    values = np.empty(numbers.shape, dtype=object)
    flat = [Value(x) for x in numbers.ravel().tolist()]
    values.ravel()[:] = flat
    return values, flat


def _nested_leaves(argument: Any) -> tuple[Any, list[Value]]:
    """Do the same inside of another transform, whose Values may be among the numbers.

    Each argument is a node of its own: it is not the outer variable, but it passes gradients on to it.
    """
    things = _things(argument)
    flat = []
    for thing in things.ravel():
        if isinstance(thing, Value):
            flat.append(thing * 1.0)
        elif isinstance(thing, (int, float, np.generic)):
            flat.append(Value(float(_numbers(thing))))
        else:
            raise TypeError(f"an argument is of numbers and Values, not of {type(thing).__name__}")
    if things.ndim == 0 and not isinstance(argument, np.ndarray):
        return flat[0], flat
    return _array_of(flat).reshape(things.shape), flat


def _things(nested: Any) -> NDArray[Any]:
    """Return numbers, Values, Views and sequences of them as one array of objects.

    NumPy would take a View for its numbers, which are cut off from the graph.
    """
    if isinstance(nested, View):
        return _array_of(nested.reshape(nested.size)).reshape(nested.shape)
    if isinstance(nested, np.ndarray):
        return nested.astype(object)
    if not isinstance(nested, (list, tuple)):
        return _array_of([nested]).reshape(())
    parts = [_things(part) for part in nested]
    if len({part.shape for part in parts}) > 1:
        raise ValueError("parts of different shapes make no array")
    array = np.empty((len(parts), *(parts[0].shape if parts else ())), dtype=object)
    for k, part in enumerate(parts):
        array[k] = part if part.ndim else part.item()
    return array


def _shape(argument: Any) -> tuple[int, ...]:
    return argument.shape if isinstance(argument, View) else _things(argument).shape


def _array_of(values: Any) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = list(values)
    return array


def _recorded_gradients(root: Any, leaves: list[Value], since: int) -> list[Value]:
    """Return derivatives as Values; a root that is a plain number depends on nothing."""
    if isinstance(root, Value):
        gradients: list[Value] = _compile.gradients(root, leaves, since)
        return gradients
    return [Value(0.0) for _ in leaves]


def _like(argument: Any, parts: list[Any]) -> Any:
    """Return a gradient, whose parts are Values, in the shape of its argument."""
    shape = _shape(argument)
    return _array_of(parts).reshape(shape) if shape else parts[0]


def _gradient_like(argument: Any, leaves: list[Value]) -> Any:
    if np.ndim(argument) == 0:
        return leaves[0].grad
    return np.array([leaf.grad for leaf in leaves]).reshape(np.shape(argument))


def _call(
    f: Callable[..., Any],
    arguments: Sequence[Any],
    leaves_of: Callable[[Any], tuple[Any, list[Value]]] = _leaves,
) -> tuple[Any, list[list[Value]]]:
    """Return what f gives for Values instead of numbers, a Value or a number, and those Values."""
    if not arguments:
        raise TypeError("a function of no arguments has no gradient")
    traced = [leaves_of(argument) for argument in arguments]
    result = f(*(values for values, _ in traced))
    if isinstance(result, np.ndarray) and result.ndim == 0:
        result = result.item()
    if not isinstance(result, (Value, int, float, np.generic)):
        raise TypeError(
            f"the function must return one Value or number, not {type(result).__name__}"
        )
    return result, [leaves for _, leaves in traced]


def _number(result: Any) -> float:
    """Return the number of what _call gives: a plain one depends on nothing, its derivatives are 0."""
    return result.data if isinstance(result, Value) else float(result)


def _nested_value_and_gradient(
    f: Callable[..., Any], arguments: Sequence[Any], since: int
) -> tuple[Any, Any]:
    result, traced = _call(f, arguments, _nested_leaves)
    parts = iter(_recorded_gradients(result, [leaf for leaves in traced for leaf in leaves], since))
    gradients = [_like(a, [next(parts) for _ in leaves]) for a, leaves in zip(arguments, traced)]
    return result, gradients[0] if len(gradients) == 1 else tuple(gradients)


def value_and_grad(f: Callable[..., Any]) -> Callable[..., tuple[Any, Any]]:
    """Return a function that gives f's value and its gradient by all arguments.

    f takes Values where the returned function takes numbers, and arrays of Values where it takes
    sequences or arrays. With one argument the gradient is of its kind, a float or an array; with
    several it is a tuple. What f records is forgotten afterwards, and the gradients of Values from
    outside that it uses stay what they were.

    >>> value_and_grad(lambda x: x[0] * x[1])([3.0, 4.0])
    (12.0, array([4., 3.]))

    Called in a function that is itself being transformed or compiled, it takes the Values of that
    function, too, and gives Values, which depend on them; nothing is forgotten before the outer one ends.

    >>> value_and_grad(lambda x: grad(lambda z: z * z * x)(3.0))(2.0)
    (12.0, 6.0)
    """

    def value_and_gradient(*arguments: Any) -> tuple[Any, Any]:
        since = _since()
        if since is not None:
            return _nested_value_and_gradient(f, arguments, since)
        with _apart():
            result, traced = _call(f, arguments)
            if isinstance(result, Value):
                backward(result)
            gradients = [_gradient_like(a, leaves) for a, leaves in zip(arguments, traced)]
            return _number(result), gradients[0] if len(gradients) == 1 else tuple(gradients)

    return value_and_gradient


def grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that gives the gradient of f; see value_and_grad.

    >>> grad(lambda x: x**3)(2.0)
    12.0
    >>> grad(grad(lambda x: x**3))(2.0)
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
    gradients = grad(f)(*arguments)
    gradients = (gradients,) if len(arguments) == 1 else gradients
    worst, complaints = 0.0, []
    for k, (argument, gradient) in enumerate(zip(arguments, gradients)):
        base = _numbers(argument)
        for place in np.ndindex(base.shape):
            h = step * max(1.0, abs(float(base[place])))
            ends = []
            for sign in (1, -1):
                moved = base.copy()
                moved[place] += sign * h
                end = moved if base.ndim else float(moved)
                with current_tape().scope(), _transforming(current_tape()):
                    ends.append(_number(_call(f, [*arguments[:k], end, *arguments[k + 1 :]])[0]))
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
