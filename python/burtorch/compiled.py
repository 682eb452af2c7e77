# python/burtorch/compiled.py — compile: a function of Values recorded once, then run at the engine's speed
# SPDX-License-Identifier: MIT
"""Functions recorded once and run again on new numbers: compile."""

from __future__ import annotations

import ctypes
import inspect
import warnings
from collections.abc import Iterator
from typing import Any, Callable, NamedTuple

import numpy as np

from . import _native
from ._core import Tape, Value, _compile, current_tape

__all__ = ["Compiled", "Minimum", "compile"]

# Up to this many operations a C compiler takes about a second; with backend="native" there is no limit.
_MOST_NATIVE = 1000

_Structure = Any  # "number", ("array", shape), ("tuple" | "list", parts), ("dict", keys, parts)


class Minimum(NamedTuple):
    """Where a minimization ended."""

    x: Any  #: the point, of the kind it started from
    value: float
    slope: float  #: the largest derivative, without its sign
    steps: int
    converged: bool


# ---- arguments: nested tuples, dicts and lists of numbers and arrays, as one flat vector ------------


def _flatten(argument: Any, numbers: list[Any]) -> _Structure:
    """Append the numbers of an argument as flat arrays; return what it looked like."""
    if type(argument) is float or (
        isinstance(argument, (int, float, np.generic)) and np.ndim(argument) == 0
    ):
        numbers.append((float(argument),))
        return "number"
    if isinstance(argument, tuple):
        return "tuple", tuple(_flatten(each, numbers) for each in argument)
    if isinstance(argument, dict):
        return "dict", tuple(argument), tuple(_flatten(x, numbers) for x in argument.values())
    if isinstance(argument, list) and any(
        isinstance(x, (tuple, dict, np.ndarray)) for x in argument
    ):
        return "list", tuple(_flatten(each, numbers) for each in argument)
    try:
        array = np.asarray(argument, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(
            "a compiled function takes numbers, arrays, and tuples, lists or dicts of them, "
            f"not {type(argument).__name__}"
        ) from None
    numbers.append(array.ravel())
    return "array", array.shape


def _build(
    structure: _Structure, take: Callable[[int], Any], number: Callable[[Any], Any] = lambda x: x
) -> Any:
    """Return what looks like the structure; take(n) gives the next n things as an array."""
    if structure == "number":
        return number(take(1)[0])
    if structure[0] == "array":
        shape = structure[1]
        return take(int(np.prod(shape))).reshape(shape)
    parts = [_build(part, take, number) for part in structure[-1]]
    if structure[0] == "dict":
        return dict(zip(structure[1], parts))
    return tuple(parts) if structure[0] == "tuple" else parts


def _taker(things: np.ndarray) -> Callable[[int], Any]:
    place = 0

    def take(n: int) -> Any:
        nonlocal place
        place += n
        return things[place - n : place]

    return take


def _names(structure: _Structure, name: str) -> Iterator[str]:
    """Yield a name for each number of an argument: x, x[0, 1], x['w'][2]."""
    if structure == "number":
        yield name
    elif structure[0] == "array":
        for place in np.ndindex(structure[1]):
            yield f"{name}[{', '.join(map(str, place))}]"
    else:
        keys = structure[1] if structure[0] == "dict" else range(len(structure[1]))
        for key, part in zip(keys, structure[-1]):
            yield from _names(part, f"{name}[{key!r}]")


class _Recordings:
    """What was recorded for arguments of one structure: one function, or one per way it can branch."""

    def __init__(self, structure: tuple[_Structure, ...]) -> None:
        self.structure = structure
        self.functions: list[Any] = []
        self.output_shape: tuple[int, ...] | None = None  # None: one Value

    def like_arguments(self, flat: np.ndarray) -> Any:
        """Shape a flat vector like the arguments; a single one stands for itself."""
        take = _taker(flat)
        parts = [_build(part, take, float) for part in self.structure]
        return parts[0] if len(parts) == 1 else tuple(parts)


class Compiled:
    """A function recorded once and run on new numbers; see compile."""

    def __init__(self, f: Callable[..., Any], backend: str, dynamic: bool) -> None:
        if backend not in {"auto", "replay", "native"}:
            raise ValueError(f"backend is 'auto', 'replay' or 'native', not {backend!r}")
        if dynamic and backend == "native":
            raise ValueError("native code has one way to go; with dynamic=True use 'replay'")
        if not callable(f):
            raise TypeError(f"compile takes a function, not {type(f).__name__}")
        self.__wrapped__ = f
        self.backend = backend
        self.dynamic = dynamic
        self._recordings: dict[tuple[_Structure, ...], _Recordings] = {}
        self._last: _Recordings | None = None
        #: value_and_grad(*arguments, out=None): the value and the gradient by all arguments, which has
        #: their structure. With out, an array of the shape of the single argument, it is written there.
        self.value_and_grad = _compile.Fast(self._value_and_grad)

    def __repr__(self) -> str:
        return f"compile({getattr(self.__wrapped__, '__name__', self.__wrapped__)!s})"

    # ---- recording ----------------------------------------------------------------------------------

    def _prepare(self, arguments: tuple[Any, ...]) -> tuple[_Recordings, np.ndarray]:
        if not arguments:
            raise TypeError("a function of no arguments has no gradient")
        if len(arguments) == 1 and type(x := arguments[0]) is np.ndarray and x.dtype == float:
            return self._recordings_for((("array", x.shape),)), np.ascontiguousarray(x).ravel()
        numbers: list[Any] = []
        structure = tuple(_flatten(argument, numbers) for argument in arguments)
        flat = np.concatenate(numbers) if len(numbers) > 1 else np.asarray(numbers[0], dtype=float)
        return self._recordings_for(structure), np.ascontiguousarray(flat)

    def _recordings_for(self, structure: tuple[_Structure, ...]) -> _Recordings:
        recordings = self._recordings.get(structure)
        if recordings is None:
            recordings = self._recordings[structure] = _Recordings(structure)
        self._last = recordings
        return recordings

    def _record(self, recordings: _Recordings, flat: np.ndarray) -> Any:
        """Call the function with Values and keep what it did."""
        tape = current_tape()
        if tape.dtype != "float64":
            tape = Tape()
        with tape.scope(), _compile.Tracing(tape, self.dynamic) as tracing:
            leaves = np.empty(len(flat), dtype=object)
            leaves[:] = [Value(x) for x in flat.tolist()]
            for leaf, name in zip(leaves, self._input_names(recordings.structure)):
                leaf.name = name
            take = _taker(leaves)
            result = self.__wrapped__(*(_build(part, take) for part in recordings.structure))
            outputs = np.asarray(result, dtype=object)
            recordings.output_shape = outputs.shape if outputs.ndim else None
            roots = [_output(each) for each in outputs.ravel().tolist()]
            if not roots:
                raise TypeError("the function returned nothing to compute")
            function = _compile.Function(tracing, leaves.tolist(), roots)
        self._make_native(function)
        recordings.functions.insert(0, function)
        self._attach(recordings, function)
        return function

    def _input_names(self, structure: tuple[_Structure, ...]) -> Iterator[str]:
        try:
            names = list(inspect.signature(self.__wrapped__).parameters)
        except (TypeError, ValueError):
            names = []
        for k, part in enumerate(structure):
            yield from _names(part, names[k] if k < len(names) else f"x{k}")

    def _attach(self, recordings: _Recordings, function: Any) -> None:
        """Let value_and_grad take the short way where the argument is one vector."""
        structure = recordings.structure
        if len(structure) == 1 and structure[0][0] == "array" and len(structure[0][1]) == 1:
            self.value_and_grad.attach(function if recordings.output_shape is None else None)

    def _make_native(self, function: Any) -> None:
        if self.backend == "replay" or self.dynamic:
            return
        must = self.backend == "native"
        if function.outputs != 1:
            if must:
                raise ValueError("native code is for functions that return one Value")
            return
        if not must and function.operations > _MOST_NATIVE:
            return
        if not must and _native.compiler() is None:
            _warn_once()
            return
        try:
            library = _native.load(function.source("f"))
        except (_native.CompilerError, ValueError):
            if must:
                raise
            return
        addresses = [
            ctypes.cast(getattr(library, name), ctypes.c_void_p).value
            for name in ("f_value", "f", "f_batch")
        ]
        function.use_native(*addresses, library)

    def _run(self, recordings: _Recordings, flat: np.ndarray, method: str, *more: Any) -> Any:
        """Call a method of the recorded function that goes this way; record if there is none."""
        for function in recordings.functions:
            answer = getattr(function, method)(flat, *more)
            if answer is not None:
                return answer
        return getattr(self._record(recordings, flat), method)(flat, *more)

    def _arguments(self, x: Any) -> tuple[Any, ...]:
        """Return the arguments that one object stands for: a tuple of them if there are several."""
        return tuple(x) if self._takes_several() and isinstance(x, (tuple, list)) else (x,)

    def _takes_several(self) -> bool:
        try:
            parameters = inspect.signature(self.__wrapped__).parameters.values()
        except (TypeError, ValueError):
            return False
        if any(p.kind is p.VAR_POSITIONAL for p in parameters):
            return True
        wanted = [p for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
        return len(wanted) > 1

    # ---- running ------------------------------------------------------------------------------------

    def __call__(self, *arguments: Any) -> Any:
        """Return the value: a float, or an array if the function returns several Values."""
        recordings, flat = self._prepare(arguments)
        values = self._run(recordings, flat, "values")
        if recordings.output_shape is None:
            return float(values[0])
        return values.reshape(recordings.output_shape)

    def _value_and_grad(self, *arguments: Any, out: Any = None) -> tuple[float, Any]:
        recordings, flat = self._prepare(arguments)
        self._demand_single(recordings, flat)
        value, gradient = self._run(recordings, flat, "value_and_grad")
        if recordings.functions:
            self._attach(recordings, recordings.functions[0])
        like = recordings.like_arguments(gradient)
        if out is None:
            return value, like
        if not isinstance(out, np.ndarray) or not isinstance(like, np.ndarray):
            raise TypeError("out is an array for the gradient of a single array")
        if out.shape != like.shape or not np.can_cast(float, out.dtype, "same_kind"):
            raise ValueError(
                f"out has shape {out.shape} and dtype {out.dtype}, the gradient shape {like.shape}"
            )
        out[...] = like
        return value, out

    def _demand_single(self, recordings: _Recordings, flat: np.ndarray) -> None:
        if not recordings.functions:
            self._record(recordings, flat)
        if recordings.output_shape is not None:
            raise ValueError(
                f"the function returns Values of shape {recordings.output_shape}; "
                "a gradient is of one Value, use jacobian()"
            )

    def jacobian(self, *arguments: Any) -> Any:
        """Return the derivatives of all that the function returns: its shape, then that of x."""
        recordings, flat = self._prepare(arguments)
        _, rows = self._run(recordings, flat, "jacobian")
        parts = [recordings.like_arguments(row) for row in rows]
        if len(recordings.structure) != 1 or isinstance(parts[0], (tuple, dict, list)):
            return parts if recordings.output_shape is not None else parts[0]
        return np.array(parts).reshape((recordings.output_shape or ()) + np.shape(parts[0]))

    def bind(self, x: np.ndarray, out: np.ndarray) -> Callable[[], None]:
        """Return run(): each call reads x and writes the value and then the gradient into out.

        x is a contiguous float64 vector, out one that is longer by one: out[0] is the value.
        """
        recordings, flat = self._prepare((x,))
        self._demand_single(recordings, flat)
        self._run(recordings, flat, "value_and_grad")
        for function in recordings.functions:
            if function.value_and_grad(flat) is not None:
                bound: Callable[[], None] = _compile.bind(function, x, out)
                return bound
        raise AssertionError("unreachable")

    def batch(
        self, x: Any, threads: int = 1, out: tuple[np.ndarray, np.ndarray] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the values and the gradients at many points, the rows of x.

        A row holds all numbers of the arguments. The gradients are rows, too. With out, two contiguous
        float64 arrays, both are written there: new memory costs more than small functions do.
        """
        rows = np.ascontiguousarray(x, dtype=float)
        if rows.ndim != 2:
            raise ValueError(f"batch takes an array of shape (n, d), not {rows.shape}")
        n, d = rows.shape
        if threads < 1:
            raise ValueError(f"threads is at least 1, not {threads}")
        values, gradients = (np.empty(n), np.empty((n, d))) if out is None else out
        for array, shape in ((values, (n,)), (gradients, (n, d))):
            if array.shape != shape or array.dtype != float or not array.flags.carray:
                raise ValueError(
                    f"out holds contiguous float64 arrays of shapes {(n,)} and {(n, d)}"
                )
        if n == 0:
            return values, gradients
        recordings = self._recordings_of_rows(d)
        self._demand_single(recordings, rows[0])
        start = 0
        while start < n:
            self._run(recordings, rows[start], "values")  # so that one of them goes this way
            for function in recordings.functions:
                rest = slice(start, None)
                done = function.batch(rows[rest], values[rest], gradients[rest], threads)
                if done != 0:
                    start += done
                    break
        return values, gradients

    def _recordings_of_rows(self, d: int) -> _Recordings:
        """Find out what arguments a row of d numbers stands for."""
        last = self._last
        if last is not None and last.functions and last.functions[0].inputs == d:
            return last
        structure = ("number",) * d if self._takes_several() else (("array", (d,)),)
        return self._recordings_for(structure)

    def jvp(self, x: Any, v: Any) -> tuple[Any, Any]:
        """Return the value and its derivative along v; x and v are tuples if there are arguments."""
        recordings, flat, direction = self._point_and_direction(x, v)
        pairs = self._run(recordings, flat, "jvp", direction)
        if recordings.output_shape is None:
            return float(pairs[0, 0]), float(pairs[0, 1])
        shape = recordings.output_shape
        return pairs[:, 0].reshape(shape), pairs[:, 1].reshape(shape)

    def hvp(self, x: Any, v: Any) -> tuple[float, Any]:
        """Return the value and the product of the Hessian with v."""
        recordings, flat, direction = self._point_and_direction(x, v)
        self._demand_single(recordings, flat)
        value, product = self._run(recordings, flat, "hvp", direction)
        return value, recordings.like_arguments(product)

    def _point_and_direction(self, x: Any, v: Any) -> tuple[_Recordings, np.ndarray, np.ndarray]:
        recordings, flat = self._prepare(self._arguments(x))
        numbers: list[Any] = []
        structure = tuple(_flatten(argument, numbers) for argument in self._arguments(v))
        if structure != recordings.structure:
            raise ValueError(f"x is {recordings.structure}, but v is {structure}")
        return recordings, flat, np.concatenate(numbers)

    def minimize(
        self,
        x: Any,
        method: str = "lbfgs",
        steps: int = 1000,
        *,
        lr: float = 1e-2,
        momentum: float = 0.9,
        tolerance: float = 1e-8,
        memory: int = 10,
    ) -> Minimum:
        """Minimize the function from x on, without returning to Python between steps.

        method is "gd", "momentum", "adam" (with lr) or "lbfgs", which finds its steps itself and keeps
        `memory` of them. It ends after so many steps, or when no derivative is larger than tolerance.
        """
        if steps < 0:
            raise ValueError(f"steps can't be negative: {steps}")
        recordings, flat = self._prepare(self._arguments(x))
        self._demand_single(recordings, flat)
        self._run(recordings, flat, "values")
        options = (method, steps, lr, momentum, tolerance, memory)
        for function in recordings.functions:
            answer = function.minimize(flat, *options)
            if answer is not None:
                return Minimum(recordings.like_arguments(answer[0]), *answer[1:])
        raise ValueError(
            "the function branches differently on the way to the minimum: minimize it with "
            "scipy.optimize.minimize(c.value_and_grad, x, jac=True), which records as it goes"
        )

    # ---- looking ------------------------------------------------------------------------------------

    def _any_function(self, arguments: tuple[Any, ...]) -> Any:
        if arguments:
            recordings, flat = self._prepare(arguments)
            if not recordings.functions:
                self._record(recordings, flat)
        if self._last is None or not self._last.functions:
            raise ValueError("nothing is recorded yet: call it, or give arguments here")
        return self._last.functions[0]

    def source(self, *arguments: Any, name: str = "f") -> str:
        """Return what was recorded last, or for these arguments, as C that includes only <math.h>."""
        if not name.isidentifier() or not name.isascii():
            raise ValueError(f"a function in C can't be called {name!r}")
        text: str = self._any_function(arguments).source(name)
        return text

    def dot(self, *arguments: Any) -> str:
        """Return what was recorded last, or for these arguments, as a graph in the DOT language."""
        text: str = self._any_function(arguments).dot()
        return text


def _output(result: Any) -> Value:
    if isinstance(result, Value):
        return result
    if isinstance(result, (int, float, np.generic)):
        return Value(float(result))  # depends on nothing
    raise TypeError(f"the function must return Values or numbers, not {type(result).__name__}")


_warned = False


def _warn_once() -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            "burtorch.compile: there is no C compiler ($CC, cc, gcc, clang), so functions are "
            "replayed; backend='replay' says that this is meant",
            RuntimeWarning,
            stacklevel=6,
        )


def compile(f: Callable[..., Any], backend: str = "auto", dynamic: bool = False) -> Compiled:
    """Record a function once and run it on new numbers at the engine's speed.

    f takes Values where the compiled function takes numbers, and arrays of Values where it takes
    arrays; arguments may be tuples, lists and dicts of them. It is called when a structure or shape of
    arguments is seen for the first time; whatever else it reads (Values from outside, too) is taken as
    it was then. A comparison that depends on the arguments would be, too: it raises BranchError, unless
    dynamic=True, where f is recorded again for each way it goes.

    backend "native" writes C, compiles it with the system's compiler and keeps it in a cache;
    "replay" walks over the recording; "auto" takes the first where it can and where compiling does not
    take long.

    >>> c = compile(lambda x: x[0] * x[1], backend="replay")
    >>> c([3.0, 4.0])
    12.0
    >>> c.value_and_grad([3.0, 4.0])
    (12.0, array([4., 3.]))
    """
    return Compiled(f, backend, dynamic)
