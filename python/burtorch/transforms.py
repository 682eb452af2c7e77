# python/burtorch/transforms.py — functions of Values as functions of numbers, with their gradients
# SPDX-License-Identifier: MIT
"""Gradients of whole functions: grad, value_and_grad, check_grad.

A transform may be called inside of a function that is being transformed or compiled. The inner one then
gives Values instead of numbers: its gradient is recorded, so that the outer one can go through it. What is
recorded by `_compile.gradients` is the calculus of the operations themselves.
"""

from __future__ import annotations

import operator
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
    places: Sequence[int] | None = None,
    keywords: dict[str, Any] | None = None,
    has_aux: bool = False,
) -> tuple[Any, list[list[Value]], Any]:
    """Return what f gives for Values instead of numbers, those Values, and what it gives beside.

    With places, the arguments at other ones are passed as they are.
    """
    if not arguments:
        raise TypeError("a function of no arguments has no gradient")
    given = list(arguments)
    traced = []
    for place in range(len(given)) if places is None else places:
        given[place], leaves = leaves_of(given[place])
        traced.append(leaves)
    result, aux = f(*given, **(keywords or {})), None
    if has_aux:
        if not isinstance(result, tuple) or len(result) != 2:
            what = f"{len(result)} of them" if isinstance(result, tuple) else _kind(result)
            raise TypeError(f"with has_aux the function returns (value, aux), not {what}")
        result, aux = result
    if isinstance(result, np.ndarray) and result.ndim == 0:
        result = result.item()
    if not isinstance(result, (Value, int, float, np.generic)):
        shape = f" of shape {result.shape}" if isinstance(result, (View, np.ndarray)) else ""
        raise TypeError(f"the function must return one Value or number, not {_kind(result)}{shape}")
    return result, traced, aux


def _kind(thing: Any) -> str:
    return type(thing).__name__


def _places(argnums: int | Sequence[int] | None, count: int) -> list[int]:
    """Return the places of the arguments that argnums names: all for None, from the end if negative."""
    if argnums is None:
        return list(range(count))
    numbers = argnums if isinstance(argnums, (tuple, list)) else (argnums,)
    places = []
    for number in map(operator.index, numbers):
        if not -count <= number < count:
            raise ValueError(f"argnums names argument {number}, but there are {count} arguments")
        places.append(number % count)
    if not places or len(set(places)) != len(places):
        raise ValueError(f"argnums names each argument once, and at least one: {argnums!r}")
    return places


def _grouped(argnums: int | Sequence[int] | None, parts: list[Any]) -> Any:
    """Return one gradient for one argument and a tuple for a tuple, as argnums asks for them."""
    one = len(parts) == 1 if argnums is None else not isinstance(argnums, (tuple, list))
    return parts[0] if one else tuple(parts)


def _plain(aux: Any) -> Any:
    """Return what a function gives beside its value, with numbers instead of Values.

    The Values are forgotten together with what the function recorded.
    """
    if isinstance(aux, Value):
        return aux.data
    if isinstance(aux, View):
        return aux.data.copy()
    if isinstance(aux, dict):
        return {key: _plain(each) for key, each in aux.items()}
    if isinstance(aux, np.ndarray) and aux.dtype == object:
        flat = [_plain(each) for each in aux.ravel()]
        numbers = all(isinstance(each, (int, float)) for each in flat)
        return (np.array(flat, dtype=float) if numbers else _array_of(flat)).reshape(aux.shape)
    if isinstance(aux, (tuple, list)):
        parts = [_plain(each) for each in aux]
        return type(aux)(*parts) if hasattr(aux, "_fields") else type(aux)(parts)
    return aux


def _number(result: Any) -> float:
    """Return the number of what _call gives: a plain one depends on nothing, its derivatives are 0."""
    return result.data if isinstance(result, Value) else float(result)


def value_and_grad(
    f: Callable[..., Any],
    argnums: int | Sequence[int] | None = None,
    has_aux: bool = False,
) -> Callable[..., tuple[Any, Any]]:
    """Return a function that gives f's value and its gradient.

    f takes Values where the returned function takes numbers, and arrays of Values where it takes
    sequences or arrays. What f records is forgotten afterwards, and the gradients of Values from
    outside that it uses stay what they were.

    >>> value_and_grad(lambda x: x[0] * x[1])([3.0, 4.0])
    (12.0, array([4., 3.]))

    argnums names the arguments to differentiate by, by their places, from the end if negative: for one
    of them the gradient is a float or an array, for a tuple of them it is a tuple. The other arguments,
    also those given by keyword, reach f as they are. Without argnums the gradient is by all arguments
    that have places; if there are several, it is a tuple.

    >>> value_and_grad(lambda w, x: w * x, argnums=0)(3.0, 4.0)
    (12.0, 4.0)
    >>> value_and_grad(lambda w, x: w * x)(3.0, 4.0)
    (12.0, (4.0, 3.0))

    With has_aux, f returns its value and something else, and so does this: ((value, aux), gradient).

    >>> value_and_grad(lambda x: (x * x, {"half": x / 2}), has_aux=True)(3.0)
    ((9.0, {'half': 1.5}), 6.0)

    Called in a function that is itself being transformed or compiled, it takes the Values of that
    function, too, and gives Values, which depend on them; nothing is forgotten before the outer one ends.

    >>> value_and_grad(lambda x: grad(lambda z: z * z * x)(3.0))(2.0)
    (12.0, 6.0)
    """

    def value_and_gradient(*arguments: Any, **keywords: Any) -> tuple[Any, Any]:
        places = _places(argnums, len(arguments))
        by = [arguments[place] for place in places]
        since = _since()
        if since is not None:
            result, traced, aux = _call(
                f, arguments, _nested_leaves, places, keywords, has_aux=has_aux
            )
            leaves = [leaf for each in traced for leaf in each]
            parts = iter(_recorded_gradients(result, leaves, since))
            gradients = [_like(a, [next(parts) for _ in each]) for a, each in zip(by, traced)]
        else:
            with _apart():
                result, traced, aux = _call(f, arguments, _leaves, places, keywords, has_aux)
                if isinstance(result, Value):
                    backward(result)
                gradients = [_gradient_like(a, each) for a, each in zip(by, traced)]
                result, aux = _number(result), _plain(aux)
        return (result, aux) if has_aux else result, _grouped(argnums, gradients)

    return value_and_gradient


def grad(
    f: Callable[..., Any],
    argnums: int | Sequence[int] | None = None,
    has_aux: bool = False,
) -> Callable[..., Any]:
    """Return a function that gives the gradient of f; see value_and_grad.

    >>> grad(lambda x: x**3)(2.0)
    12.0
    >>> grad(grad(lambda x: x**3))(2.0)
    12.0
    >>> grad(lambda w, x: w**2 * x, argnums=0)(3.0, 5.0)
    30.0

    With has_aux it gives (gradient, aux).
    """
    both = value_and_grad(f, argnums, has_aux)

    def gradient(*arguments: Any, **keywords: Any) -> Any:
        value, slopes = both(*arguments, **keywords)
        return (slopes, value[1]) if has_aux else slopes

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
