# python/burtorch/compiled.py — compile: a function of Values recorded once, then run at the engine's speed
# SPDX-License-Identifier: MIT
"""Functions recorded once and run again on new numbers: compile, load_compiled."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import inspect
import math
import operator
import os
import re
import threading
import warnings
from collections.abc import Iterator, Sequence
from os import PathLike
from typing import Any, BinaryIO, Callable, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._core import Error, Tape, Value, View, _compile, backward, current_tape, load_graph
from ._indices import Indices
from .transforms import _grouped, _places, _since, _transforming

__all__ = ["Compiled", "Minimum", "VerifyError", "compile", "load_compiled"]

# With backend="auto" the first call waits for a C compiler where it takes about a second. What it takes
# grows with the text, and faster with the numbers that come in and go out. Larger functions are compiled
# in the background, and larger ones yet are not. With backend="native" there is no limit.
_SOON_WORK, _SOON_TRAFFIC = 8000, 150
_MOST_WORK, _MOST_TRAFFIC = 400_000, 2_000
_MOST_SECONDS, _MOST_SECONDS_IN_BACKGROUND = 20.0, 120.0

# "number", ("array", shape), (type of a tuple or list, parts), (dict, keys, parts); of data also
# ("integers", shape) and ("static", type, value)
_Structure = Any


class VerifyError(Error, AssertionError):
    """A function does not do what was recorded of it."""


class Minimum(NamedTuple):
    """Where a minimization ended."""

    x: Any  #: the point, of the kind it started from
    value: float
    slope: float  #: the largest derivative, without its sign
    steps: int
    converged: bool


# ---- structures: nested tuples, dicts and lists of numbers and arrays, as one flat vector -----------


def _is_number(x: Any) -> bool:
    return isinstance(x, (int, float)) or (isinstance(x, np.generic) and x.dtype.kind in "fiub")


def _numbers_in(argument: Any) -> np.ndarray | None:
    """Return the numbers of an argument that is a number or an array; None if it has parts."""
    if _is_number(argument):
        return np.array(float(argument))
    if isinstance(argument, (tuple, dict)):
        return None
    if isinstance(argument, list) and any(
        isinstance(x, (tuple, dict, np.ndarray)) for x in argument
    ):
        return None
    try:
        array = np.asarray(argument)
    except ValueError:  # rows of different lengths
        array = np.empty((), dtype=object)
    if array.dtype.kind in "fiub":
        return array.astype(float, copy=False)
    if isinstance(argument, list):
        return None
    what = type(argument).__name__
    if array.ndim:
        what = f"{what} of {array.dtype}"
    raise TypeError(
        f"a compiled function takes numbers, arrays, and tuples, lists or dicts of them, not {what}"
    )


def _values_in(result: Any) -> np.ndarray | None:
    """Return the Values of a result that is a Value, a number, a View or an array, likewise."""
    if isinstance(result, (tuple, list, dict)):
        return None
    if isinstance(result, View):
        values = np.empty(result.size, dtype=object)
        values[:] = list(result.reshape(result.size))
        return values.reshape(result.shape)
    array = np.empty((), dtype=object)
    array[()] = result
    things = result if isinstance(result, np.ndarray) else array
    values = np.empty(things.shape, dtype=object)
    for place in np.ndindex(things.shape):
        values[place] = _output(things[place])
    return values


def _output(result: Any) -> Value:
    if isinstance(result, Value):
        return result
    if _is_number(result):
        return Value(float(result))  # depends on nothing
    raise TypeError(f"the function must return Values or numbers, not {type(result).__name__}")


def _flatten(
    thing: Any, flat: list[Any], leaf: Callable[[Any], np.ndarray | None] = _numbers_in
) -> _Structure:
    """Append what leaf() finds in it, as flat arrays; return what it looked like."""
    array = leaf(thing)
    if array is not None:
        flat.append(array.ravel())
        return ("array", array.shape) if array.ndim else "number"
    if isinstance(thing, dict):
        return dict, tuple(thing), tuple(_flatten(x, flat, leaf) for x in thing.values())
    return type(thing), tuple(_flatten(x, flat, leaf) for x in thing)


def _flatten_data(thing: Any, flat: list[Any]) -> _Structure:
    """Do the same with data: integers are known as such, and plain ints, strings and None stay."""
    if thing is None or (isinstance(thing, (int, str)) and not isinstance(thing, np.generic)):
        return "static", type(thing), thing
    array = _numbers_in(thing)
    if array is None:
        parts = thing.values() if isinstance(thing, dict) else thing
        structures = tuple(_flatten_data(part, flat) for part in parts)
        return (
            (dict, tuple(thing), structures)
            if isinstance(thing, dict)
            else (type(thing), structures)
        )
    flat.append(array.ravel())
    if np.asarray(thing).dtype.kind in "iub":
        return "integers", array.shape
    return ("array", array.shape) if array.ndim else "number"


def _flatten_result(result: Any, flat: list[Any]) -> _Structure:
    """Do the same with what a function returned; equal parts side by side are one array."""

    def joined(structure: _Structure) -> _Structure:
        if structure == "number" or structure[0] == "array":
            return structure
        parts = tuple(map(joined, structure[-1]))
        shapes = {part if part == "number" else part[1] for part in parts}
        arrays = all(part == "number" or part[0] == "array" for part in parts)
        if structure[0] in {tuple, list} and arrays and len(shapes) <= 1:
            shape = shapes.pop() if shapes else ()
            return "array", (len(parts), *(() if shape == "number" else shape))
        return (*structure[:-1], parts)

    return joined(_flatten(result, flat, _values_in))


def _build(
    structure: _Structure,
    leaf: Callable[[tuple[int, ...] | None], Any],
    integers: Callable[[tuple[int, ...]], Any] | None = None,
) -> Any:
    """Return what looks like the structure; leaf(shape) gives the next array, leaf(None) a number."""
    if structure == "number":
        return leaf(None)
    if structure[0] == "array":
        return leaf(structure[1])
    if structure[0] == "integers":
        return (integers or leaf)(structure[1])
    if structure[0] == "static":
        return structure[2]
    parts = [_build(part, leaf, integers) for part in structure[-1]]
    if structure[0] is dict:
        return dict(zip(structure[1], parts))
    kind = structure[0]
    return kind(*parts) if hasattr(kind, "_fields") else kind(parts)


def _pieces(things: np.ndarray) -> Callable[[tuple[int, ...] | None], Any]:
    """Return a function that hands out things in shapes, one after the other."""
    place = 0

    def piece(shape: tuple[int, ...] | None) -> Any:
        nonlocal place
        start, place = place, place + math.prod(shape or ())
        if shape is not None:
            return things[start:place].reshape(shape + things.shape[1:])
        one = things.dtype.kind == "f" and things.ndim == 1
        return things[start].item() if one else things[start]

    return piece


def _names(structure: _Structure, name: str) -> Iterator[str]:
    """Yield a name for each number of an argument: x, x[0, 1], x['w'][2]."""
    if structure == "number":
        yield name
    elif structure[0] in {"array", "integers"}:
        for place in np.ndindex(structure[1]):
            yield f"{name}[{', '.join(map(str, place))}]" if place else name
    elif structure[0] != "static":
        keys = structure[1] if structure[0] is dict else range(len(structure[1]))
        for key, part in zip(keys, structure[-1]):
            yield from _names(part, f"{name}[{key!r}]")


class _Recorded(NamedTuple):
    function: Any
    output: _Structure


class _Recordings:
    """What was recorded for arguments of one structure: one function, or one per way it can branch."""

    def __init__(
        self,
        structure: tuple[_Structure, ...],
        keywords: tuple[str, ...],
        argnums: int | Sequence[int] | None = None,
    ) -> None:
        self.structure = structure
        self.keywords = keywords  #: of the last arguments
        self.argnums = argnums
        self.all: list[_Recorded] = []
        #: the places of variables, whose numbers come first, and then of data
        self.variables = _variable_places(argnums, len(structure) - len(keywords), len(structure))
        self.data = [k for k in range(len(structure)) if k not in self.variables]
        self.has_integers = any(structure[k][0] == "integers" for k in self.data)

    @property
    def takes_vector(self) -> bool:
        """Whether the argument is a single vector."""
        first = self.structure[0]
        return len(self.structure) == 1 and first[0] == "array" and len(first[1]) == 1

    def like_arguments(self, flat: np.ndarray) -> Any:
        """Shape a flat vector like the variables; a single one stands for itself."""
        piece = _pieces(flat)
        parts = {k: _build(self.structure[k], piece) for k in sorted(self.variables)}
        return _grouped(self.argnums, [parts[k] for k in self.variables])

    def rows_like_arguments(self, rows: np.ndarray, shape: tuple[int, ...] | None) -> Any:
        """Shape the derivatives of an output of this shape, which are rows."""
        first = self.structure[self.variables[0]]
        is_one = len(self.variables) == 1 and not isinstance(self.argnums, (tuple, list))
        if is_one and (first == "number" or first[0] == "array"):
            inner = () if first == "number" else first[1]
            array = rows.reshape((shape or ()) + inner)
            return array if array.ndim else array.item()
        parts = [self.like_arguments(row) for row in rows.reshape(-1, rows.shape[-1])]
        return parts[0] if shape is None else parts

    def call(
        self,
        f: Callable[..., Any],
        leaf: Callable[[NDArray[Any]], Any],
        data: Callable[[NDArray[Any]], Any],
        integers: Callable[[NDArray[Any]], Any],
    ) -> Any:
        """Call f with arguments made of the places that their numbers have in the flat vector."""
        place = 0

        def places(shape: tuple[int, ...] | None) -> NDArray[Any]:
            nonlocal place
            start, place = place, place + math.prod(shape or ())
            return np.arange(start, place).reshape(shape or ())

        arguments: list[Any] = [None] * len(self.structure)
        for k in sorted(self.variables):
            arguments[k] = _build(self.structure[k], lambda shape: leaf(places(shape)))
        for k in self.data:
            arguments[k] = _build(
                self.structure[k],
                lambda shape: data(places(shape)),
                lambda shape: integers(places(shape)),
            )
        split = len(arguments) - len(self.keywords)
        return f(*arguments[:split], **dict(zip(self.keywords, arguments[split:])))


def _variable_places(argnums: int | Sequence[int] | None, positional: int, count: int) -> list[int]:
    return list(range(count)) if argnums is None else _places(argnums, positional)


def _use_native(function: Any, timeout: float | None) -> None:
    from . import _native

    # Without guards: where the library gives NaN, the recording is replayed.
    library = _native.load(function.source("f", guarded=False), timeout)
    names = ("f_value", "f", "f_batch") if function.outputs == 1 else ("f_values", "f_jacobian")
    addresses = [ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in names]
    function.use_native(addresses, library)


class Compiled:
    """A function recorded once and run on new numbers; see compile."""

    def __init__(
        self,
        f: Callable[..., Any],
        backend: str,
        dynamic: bool = False,
        share: bool = False,
        argnums: int | Sequence[int] | None = None,
        dtype: Any = "float64",
    ) -> None:
        if backend not in {"auto", "replay", "native"}:
            raise ValueError(f"backend is 'auto', 'replay' or 'native', not {backend!r}")
        if dynamic and backend == "native":
            raise ValueError("native code has one way to go; with dynamic=True use 'replay'")
        if not callable(f):
            raise TypeError(f"compile takes a function, not {type(f).__name__}")
        if np.dtype(dtype) not in {np.dtype("float64"), np.dtype("float32")}:
            raise ValueError(f"functions are compiled for float64 and float32, not for {dtype}")
        functools.update_wrapper(self, f, updated=())
        self.__wrapped__ = f
        self.backend = backend
        self.dynamic = dynamic
        self.share = share
        self.argnums = argnums
        self.dtype = np.dtype(dtype).name
        self._calls, self._verifies = 0, os.environ.get("BURTORCH_VERIFY", "0") not in {"", "0"}
        self._signature: inspect.Signature | None = None
        with contextlib.suppress(TypeError, ValueError):  # of which there is none
            self._signature = inspect.signature(f)
        self._recordings: dict[Any, _Recordings] = {}
        self._last: _Recorded | None = None
        self._background: threading.Thread | None = None
        self._attribute: str | None = None
        #: value_and_grad(*arguments, out=None): the value and the gradient by all variables, which has
        #: their structure. With out, an array of the shape of the single argument, it is written there.
        self.value_and_grad = _compile.Fast(self._value_and_grad)

    def __repr__(self) -> str:
        return f"compile({getattr(self.__wrapped__, '__name__', self.__wrapped__)!s})"

    def __set_name__(self, owner: type, name: str) -> None:
        self._attribute = name

    def __get__(self, instance: Any, owner: type | None = None) -> Compiled:
        """Return the method of an instance, compiled for it alone."""
        if instance is None or not hasattr(self.__wrapped__, "__get__"):
            return self
        method = self.__wrapped__.__get__(instance, owner)
        bound = Compiled(method, self.backend, self.dynamic, self.share, self.argnums, self.dtype)
        if self._attribute is not None and hasattr(instance, "__dict__"):
            vars(instance)[self._attribute] = bound  # found before this one from now on
        return bound

    # ---- recording ----------------------------------------------------------------------------------

    def _prepare(
        self, arguments: tuple[Any, ...], keywords: dict[str, Any] | None = None
    ) -> tuple[_Recordings, np.ndarray]:
        if keywords and self._signature is not None:
            bound = self._signature.bind(*arguments, **keywords)
            arguments, keywords = bound.args, bound.kwargs
        x = arguments[0] if len(arguments) == 1 and not keywords else None
        if type(x) is np.ndarray and x.dtype == self.dtype and x.size:
            return self._recordings_for((("array", x.shape),)), np.ascontiguousarray(x).ravel()
        everything = (*arguments, *(keywords or {}).values())
        variables = _variable_places(self.argnums, len(arguments), len(everything))
        numbers: list[Any] = []
        data: list[Any] = []
        structure = tuple(
            _flatten(each, numbers) if k in variables else _flatten_data(each, data)
            for k, each in enumerate(everything)
        )
        if not sum(part.size for part in numbers):
            raise TypeError("a function of no arguments, or of no numbers, has no gradient")
        flat = np.concatenate(numbers + data).astype(self.dtype, copy=False)
        recordings = self._recordings_for(structure, tuple(keywords or ()))
        if recordings.has_integers:
            for k in recordings.data:
                self._demand_exact(
                    everything[k], self._name(k, recordings.keywords, len(structure))
                )
        return recordings, flat

    def _demand_exact(self, thing: Any, name: str) -> None:
        """Refuse integers that a number of this dtype would round."""
        array = np.asarray(thing) if isinstance(thing, (np.ndarray, np.generic, list)) else None
        most = 2 ** (53 if self.dtype == "float64" else 24)
        if array is not None and array.dtype.kind in "iu" and array.size:
            far = max(abs(int(array.max())), abs(int(array.min())))
            if far > most:
                raise ValueError(f"{name} holds the integer {far}, which {self.dtype} would round")

    def _recordings_for(
        self, structure: tuple[_Structure, ...], keywords: tuple[str, ...] = ()
    ) -> _Recordings:
        recordings = self._recordings.get((structure, keywords))
        if recordings is None:
            recordings = _Recordings(structure, keywords, self.argnums)
            self._recordings[structure, keywords] = recordings
        return recordings

    def _tape(self) -> Tape:
        tape = current_tape()
        return tape if tape.dtype == self.dtype else Tape(self.dtype)

    def _record(self, recordings: _Recordings, flat: np.ndarray) -> _Recorded:
        """Call the function with Values and keep what it did."""
        return self._keep(recordings, self._trace(recordings, flat))

    def _trace(self, recordings: _Recordings, flat: np.ndarray) -> _Recorded:
        tape = self._tape()
        outer, start = _since(), len(tape)
        with tape.scope(), _transforming(tape):
            leaves = np.empty(len(flat), dtype=object)
            leaves[:] = [Value(x) for x in flat.tolist()]
            for leaf, name in zip(leaves, self._input_names(recordings)):
                leaf.name = name

            def values(places: NDArray[Any]) -> Any:
                return leaves[places]

            def integers(places: NDArray[Any]) -> Any:
                return Indices(flat[places].astype(np.int64), places, values)

            variables = sum(_size(recordings.structure[k]) for k in recordings.variables)
            with _compile.Tracing(tape, leaves.tolist(), variables, self.dynamic) as tracing:
                result = recordings.call(self.__wrapped__, values, values, integers)
            found: list[Any] = []
            output = _flatten_result(result, found)
            roots = np.concatenate(found).tolist() if found else []
            if not roots:
                raise TypeError("the function returned nothing to compute")
            if outer is not None and _compile.reaches(roots, outer, start):
                raise ValueError(
                    "this compiled function is called inside of another transform and uses Values of "
                    "that one's function, which it would freeze; compile the outer function instead"
                )
            kind = _compile.Function if self.dtype == "float64" else _compile.Function32
            return _Recorded(kind(tracing, roots, self.share), output)

    def _keep(self, recordings: _Recordings, recorded: _Recorded) -> _Recorded:
        self._make_native(recorded.function)
        recordings.all.insert(0, recorded)
        self._attach(recordings, recorded)
        return recorded

    def _input_names(self, recordings: _Recordings) -> Iterator[str]:
        for k in (*sorted(recordings.variables), *recordings.data):
            yield from _names(
                recordings.structure[k],
                self._name(k, recordings.keywords, len(recordings.structure)),
            )

    def _name(self, k: int, keywords: tuple[str, ...] = (), count: int = 0) -> str:
        """Return the name of the k-th argument of so many, of which the last are keywords."""
        if k >= count - len(keywords) and keywords:
            return keywords[k - count + len(keywords)]
        names = list(self._signature.parameters) if self._signature is not None else []
        return names[k] if k < len(names) else f"x{k}"

    def _attach(self, recordings: _Recordings, recorded: _Recorded) -> None:
        """Let value_and_grad take the short way where the argument is one vector."""
        if recordings.takes_vector and self.dtype == "float64" and not self._verifies:
            self.value_and_grad.attach(recorded.function if recorded.output == "number" else None)

    def _make_native(self, function: Any) -> None:
        if self.backend == "replay" or self.dynamic:
            return
        must = self.backend == "native"
        work, traffic = function.work * function.outputs, function.inputs * function.outputs
        if not must and (function.has_blocks or work > _MOST_WORK or traffic > _MOST_TRAFFIC):
            return
        from . import _native  # which imports much that only a compiler needs

        if must:
            _use_native(function, None)
        elif work <= _SOON_WORK and traffic <= _SOON_TRAFFIC:
            try:
                _use_native(function, _MOST_SECONDS)
            except _native.CompilerError as error:
                _warn_once(str(error))
        else:  # until then, or if it fails, the recording is replayed

            def work_on() -> None:
                with contextlib.suppress(_native.CompilerError):
                    _use_native(function, _MOST_SECONDS_IN_BACKGROUND)

            self._background = _native.in_background(work_on)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for native code that is being made in the background, for so many seconds at most.

        Return whether native code is used from now on. Nothing needs it: until then a function is
        replayed, and the numbers are the same.
        """
        if self._background is not None:
            self._background.join(timeout)
        recorded = self._last
        return recorded is not None and bool(recorded.function.is_native)

    def _run(
        self,
        recordings: _Recordings,
        flat: np.ndarray,
        method: str,
        *more: Any,
        single: bool = False,
    ) -> tuple[Any, _Recorded]:
        """Call a method of the recorded function that goes this way; record if there is none.

        With single, the function must return one Value.
        """
        for known in [*recordings.all, None]:
            recorded = known or self._record(recordings, flat)
            if single and recorded.output != "number":
                if recorded.function.values(flat) is None:
                    continue
                raise ValueError(
                    f"the function returns {_described(recorded.output)}; "
                    "a gradient is of one Value, use jacobian()"
                )
            answer = getattr(recorded.function, method)(flat, *more)
            if answer is not None:
                break
        self._last = recorded
        return answer, recorded

    def _arguments(self, x: Any) -> tuple[Any, ...]:
        """Return the arguments that one object stands for: a tuple of them if there are several."""
        return tuple(x) if self._takes_several() and isinstance(x, (tuple, list)) else (x,)

    def _takes_several(self) -> bool:
        if self._signature is None:
            return False
        parameters = self._signature.parameters.values()
        if any(p.kind is p.VAR_POSITIONAL for p in parameters):
            return True
        wanted = [p for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
        return len(wanted) > 1

    # ---- running ------------------------------------------------------------------------------------

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Return the value: a float, or arrays where the function returns several Values."""
        recordings, flat = self._prepare(arguments, keywords)
        self._verify_sometimes(recordings, flat)
        values, recorded = self._run(recordings, flat, "values")
        if recorded.output == "number":
            return float(values[0])
        return _build(recorded.output, _pieces(values))

    def _value_and_grad(
        self, *arguments: Any, out: Any = None, **keywords: Any
    ) -> tuple[float, Any]:
        recordings, flat = self._prepare(arguments, keywords)
        self._verify_sometimes(recordings, flat)
        (value, gradient), recorded = self._run(recordings, flat, "value_and_grad", single=True)
        self._attach(recordings, recorded)
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

    def jacobian(self, *arguments: Any, **keywords: Any) -> Any:
        """Return the derivatives of all that the function returns: its shape, then that of x."""
        recordings, flat = self._prepare(arguments, keywords)
        (_, rows), recorded = self._run(recordings, flat, "jacobian")
        piece = _pieces(rows)
        return _build(
            recorded.output, lambda shape: recordings.rows_like_arguments(piece(shape), shape)
        )

    def bind(self, x: np.ndarray, out: np.ndarray) -> Callable[[], None]:
        """Return run(): each call reads x and writes the value and then the gradient into out.

        x is a contiguous float64 vector, out one that is longer by one: out[0] is the value.
        """
        if self.dtype != "float64":
            raise ValueError(f"bind is of functions of float64; this one is of {self.dtype}")
        _, recorded = self._run(*self._prepare((x,)), "value_and_grad", single=True)
        bound: Callable[[], None] = _compile.bind(recorded.function, x, out)
        return bound

    def batch(
        self,
        *arguments: Any,
        in_axes: Sequence[int | None] | int | None = None,
        reduce: str | None = "auto",
        index: Any = None,
        clip: float | None = None,
        micro_batch: int | str = "auto",
        threads: int = 1,
        out: tuple[np.ndarray, np.ndarray] | None = None,
        callback: Callable[[int, np.ndarray, np.ndarray], object] | None = None,
    ) -> Any:
        """Run the function, which is written for one sample, on many.

        in_axes says for each argument whether it has a row per sample (0) or is shared by all (None); by
        default the first one is shared. reduce "mean" or "sum" gives the value and the gradient of that
        over all samples; None gives arrays: the values, and the gradients as rows of all derivatives.

        >>> c = compile(lambda w, x, y: (w * x - y) ** 2, argnums=0, backend="replay")
        >>> c.batch(2.0, [1.0, 2.0], [1.0, 1.0], in_axes=(None, 0, 0), reduce="sum")
        (10.0, 14.0)
        >>> c.batch(2.0, [1.0, 2.0], [1.0, 1.0], reduce=None)
        (array([1., 9.]), array([[ 2.],
               [12.]]))

        index picks samples by their numbers, without a copy of the data. clip bounds the norm of each
        sample's gradient before it is added. Samples go through in lanes, `micro_batch` of them between two
        looks at interrupts; memory does not grow with their number. The result depends on the number of
        threads, not on their timing. With callback and reduce=None nothing is kept: it is called with
        (first, values, gradients) for each micro-batch.

        With one array alone, its rows hold all numbers of the arguments; values and gradients are arrays.
        With out, two contiguous float64 arrays, both are written there: new memory costs more than small
        functions do.

        >>> compile(lambda x: x[0] * x[1], backend="replay").batch([[3.0, 4.0], [5.0, 6.0]])
        (array([12., 30.]), array([[4., 3.],
               [6., 5.]]))
        """
        if operator.index(threads) < 1:
            raise ValueError(f"threads is at least 1, not {threads}")
        plain = in_axes is None and reduce == "auto" and len(arguments) == 1
        if plain and index is None and clip is None and callback is None:
            return self._rows(arguments[0], threads, out)
        return self._samples(
            arguments, in_axes, reduce, index, clip, micro_batch, threads, out, callback
        )

    def _samples(
        self,
        arguments: tuple[Any, ...],
        in_axes: Sequence[int | None] | int | None,
        reduce: str | None,
        index: Any,
        clip: float | None,
        micro_batch: int | str,
        threads: int,
        out: tuple[np.ndarray, np.ndarray] | None,
        callback: Callable[[int, np.ndarray, np.ndarray], object] | None,
    ) -> tuple[Any, Any] | None:
        axes = self._axes(in_axes, len(arguments))
        n, whole = self._per_sample(arguments, axes)
        first = [each if axis is None else each[0] for each, axis in zip(whole, axes)]
        recordings, flat = self._prepare(tuple(first))
        apart = [self._name(k) for k in recordings.variables if axes[k] is not None]
        if reduce == "auto":
            reduce = None if apart else "mean"
        if reduce not in {"mean", "sum", None}:
            raise ValueError(f"reduce is 'mean', 'sum' or None, not {reduce!r}")
        if reduce is not None and apart:
            raise ValueError(
                f"a {reduce} has a gradient by what all samples share, but in_axes gives {apart[0]} a row "
                "per sample: use reduce=None, or argnums to make it data"
            )
        if callback is not None and reduce is not None:
            raise ValueError("callback takes the gradients of samples: use reduce=None")
        if clip is not None and not clip > 0:
            raise ValueError(f"clip is a positive number, not {clip}")
        if micro_batch != "auto" and operator.index(micro_batch) < 1:  # type: ignore[arg-type]
            raise ValueError(f"micro_batch is 'auto' or at least 1, not {micro_batch}")
        chosen = None if index is None else _index(index, n)
        count = n if chosen is None else len(chosen)
        _, recorded = self._run(recordings, flat, "values", single=True)
        function, d = recorded.function, recorded.function.variables
        given = []
        for k in (*sorted(recordings.variables), *recordings.data):
            if axes[k] is not None:
                whole_kind = "i8" if recordings.structure[k][0] == "integers" else self.dtype
                if k in recordings.data:
                    self._demand_exact(whole[k], self._name(k))
                given.append((np.ascontiguousarray(whole[k], dtype=whole_kind), True))
            else:
                numbers: list[Any] = []
                (_flatten if k in recordings.variables else _flatten_data)(whole[k], numbers)
                if numbers:
                    given.append((np.concatenate(numbers).astype(self.dtype), False))
        size = 0 if micro_batch == "auto" else operator.index(micro_batch)  # type: ignore[arg-type]
        options = (0.0 if clip is None else float(clip), size, threads)

        def run(values: np.ndarray, gradients: np.ndarray, which: Any) -> float:
            if function.has_branches:
                return self._one_by_one(first, whole, axes, reduce, values, gradients, which, clip)
            total: float = function.samples(
                given, n, reduce or "", values, gradients, which, *options
            )
            return total

        if reduce is not None:
            if reduce == "mean" and count == 0:
                raise ValueError("there is no mean of no samples")
            gradient = np.zeros(d, self.dtype)
            value = run(np.empty(0, self.dtype), gradient, chosen)
            return value, recordings.like_arguments(gradient)
        if callback is not None:
            every = np.arange(n) if chosen is None else chosen
            step = size or 256
            for start in range(0, count, step):
                part = every[start : start + step]
                rows = np.empty((len(part), d), self.dtype)
                values = np.empty(len(part), self.dtype)
                run(values, rows, part)
                callback(start, values, rows)
            return None
        values, rows = (
            (np.empty(count, self.dtype), np.empty((count, d), self.dtype)) if out is None else out
        )
        self._demand_out(values, rows, count, d)
        run(values, rows, chosen)
        return values, rows

    def _one_by_one(
        self,
        first: list[Any],
        whole: list[Any],
        axes: list[int | None],
        reduce: str | None,
        values: np.ndarray,
        gradients: np.ndarray,
        which: Any,
        clip: float | None,
    ) -> float:
        """Run samples of a function that branches, each with the recording of its way."""
        n = next(len(each) for each, axis in zip(whole, axes) if axis is not None)
        samples, total = range(n) if which is None else which, 0.0
        for place, k in enumerate(samples):
            one = [a if axis is None else a[k] for a, axis in zip(whole, axes)]
            (value, gradient), _ = self._run(
                *self._prepare(tuple(one)), "value_and_grad", single=True
            )
            norm = float(np.linalg.norm(gradient))
            if clip is not None and norm > clip:
                gradient = gradient * (clip / norm)
            total += value
            if reduce is None:
                values[place], gradients[place] = value, gradient
            else:
                gradients += gradient
        if reduce == "mean":
            gradients /= len(samples)
            total /= len(samples)
        return total

    def _axes(self, in_axes: Any, count: int) -> list[int | None]:
        if in_axes is None:
            in_axes = 0 if count == 1 else (None,) + (0,) * (count - 1)
        axes = [in_axes] * count if isinstance(in_axes, int) else list(in_axes)
        if len(axes) != count:
            raise ValueError(f"in_axes has {len(axes)} entries for {count} arguments")
        for k, axis in enumerate(axes):
            if axis is not None and (isinstance(axis, bool) or axis != 0):
                raise ValueError(
                    f"in_axes is 0 (a row per sample) or None (shared) for each argument, not {axis!r} as "
                    f"for {self._name(k)}"
                )
        if all(axis is None for axis in axes):
            raise ValueError("in_axes shares all arguments: there are no samples")
        return axes

    def _per_sample(
        self, arguments: tuple[Any, ...], axes: list[int | None]
    ) -> tuple[int, list[Any]]:
        """Return how many samples there are, and the arguments, with arrays where they have rows."""
        whole, known = list(arguments), ""
        n = 0
        for k, axis in enumerate(axes):
            if axis is None:
                continue
            array = np.asarray(arguments[k])
            if array.dtype.kind not in "fiub" or array.ndim == 0:
                raise ValueError(
                    f"{self._name(k)} has a row per sample, so it is an array of numbers, not "
                    f"{type(arguments[k]).__name__} of {array.dtype} and shape {array.shape}"
                )
            text = f"{self._name(k)} of shape {array.shape}"
            if known and len(array) != n:
                raise ValueError(f"samples do not fit: {known}, but {text}")
            whole[k], n, known = array, len(array), known or text
        if n == 0:
            raise ValueError(f"there are no samples: {known}")
        return n, whole

    def _demand_out(self, values: np.ndarray, rows: np.ndarray, n: int, d: int) -> None:
        for array, shape in ((values, (n,)), (rows, (n, d))):
            if array.shape != shape or array.dtype != self.dtype or not array.flags.carray:
                raise ValueError(
                    f"out holds contiguous {self.dtype} arrays of shapes {(n,)} and {(n, d)}"
                )

    def _rows(
        self, x: Any, threads: int, out: tuple[np.ndarray, np.ndarray] | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the values and the gradients at the rows of x, which hold all numbers."""
        rows = np.ascontiguousarray(x, dtype=self.dtype)
        if rows.ndim != 2:
            raise ValueError(f"batch takes an array of shape (n, d), not {rows.shape}")
        n, d = rows.shape
        if n == 0 and out is None:
            return np.empty(0, self.dtype), np.empty((0, d), self.dtype)
        recordings = self._recordings_of_rows(d)
        inner = d
        if n:
            _, recorded = self._run(recordings, rows[0], "values", single=True)
            inner = recorded.function.variables
        if out is None:
            out = np.empty(n, self.dtype), np.empty((n, inner), self.dtype)
        values, gradients = out
        self._demand_out(values, gradients, n, inner)
        start = 0
        while start < n:
            _, recorded = self._run(recordings, rows[start], "values", single=True)
            rest = slice(start, None)
            start += recorded.function.batch(rows[rest], values[rest], gradients[rest], threads)
        return values, gradients

    def _recordings_of_rows(self, d: int) -> _Recordings:
        """Find out what arguments a row of d numbers stands for: one vector, else what is known."""
        vector = ((("array", (d,)),), ())
        if vector in self._recordings:
            return self._recordings[vector]
        for recordings in self._recordings.values():
            if recordings.all and recordings.all[0].function.inputs == d:
                return recordings
        return self._recordings_for(("number",) * d if self._takes_several() else vector[0])

    def jvp(self, x: Any, v: Any) -> tuple[Any, Any]:
        """Return the value and its derivative along v; x and v are tuples if there are arguments."""
        recordings, flat, direction = self._point_and_direction(x, v)
        pairs, recorded = self._run(recordings, flat, "jvp", direction)
        values, slopes = (_build(recorded.output, _pieces(column)) for column in pairs.T)
        return values, slopes

    def hvp(self, x: Any, v: Any) -> tuple[float, Any]:
        """Return the value and the product of the Hessian with v."""
        recordings, flat, direction = self._point_and_direction(x, v)
        (value, product), _ = self._run(recordings, flat, "hvp", direction, single=True)
        return value, recordings.like_arguments(product)

    def _point_and_direction(self, x: Any, v: Any) -> tuple[_Recordings, np.ndarray, np.ndarray]:
        recordings, flat = self._prepare(self._arguments(x))
        directions = self._arguments(v) if self.argnums is None else (v,)
        if isinstance(self.argnums, (tuple, list)):
            directions = tuple(v)
        numbers: dict[int, list[Any]] = {k: [] for k in recordings.variables}
        structure = tuple(_flatten(each, numbers[k]) for k, each in zip(numbers, directions))
        wanted = tuple(recordings.structure[k] for k in recordings.variables)
        if structure != wanted or len(directions) != len(wanted):
            raise ValueError(f"x is {wanted}, but v is {structure}")
        direction = np.zeros(len(flat), self.dtype)
        parts = np.concatenate([part for k in sorted(numbers) for part in numbers[k]])
        direction[: len(parts)] = parts
        return recordings, flat, direction

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
        if operator.index(steps) < 0 or operator.index(memory) < 0:
            raise ValueError(f"steps and memory can't be negative: {steps}, {memory}")
        recordings, flat = self._prepare(self._arguments(x))
        _, recorded = self._run(recordings, flat, "values", single=True)
        options = (method, steps, lr, momentum, tolerance, memory)
        answer = recorded.function.minimize(flat, *options)
        if answer is not None:
            return Minimum(recordings.like_arguments(answer[0]), *answer[1:])
        raise ValueError(
            "the function branches differently on the way to the minimum: minimize it with "
            "scipy.optimize.minimize(c.value_and_grad, x, jac=True), which records as it goes"
        )

    # ---- eager against recorded ---------------------------------------------------------------------

    def verify(self, *arguments: Any, **keywords: Any) -> None:
        """Run the function itself at these arguments and compare it with its recording.

        Whatever a function takes from outside was recorded as it was then. Where value or gradient are not
        the same any more, this raises VerifyError, which names the first operation that differs. With
        BURTORCH_VERIFY=1 in the environment every hundredth call does this.

        >>> scale = [2.0]
        >>> c = compile(lambda x: x * scale[0], backend="replay")
        >>> c(3.0), c.verify(3.0)
        (6.0, None)
        >>> scale[0] = 5.0
        >>> c.verify(3.0)
        Traceback (most recent call last):
            ...
        burtorch.compiled.VerifyError: the value is 6 in the recording and 15 now; the first difference: \
operation 0 (mul) gives 6.000000 in the recording and 15.000000 now
        """
        recordings, flat = self._prepare(arguments, keywords)
        self._verify(recordings, flat)

    def _verify_sometimes(self, recordings: _Recordings, flat: np.ndarray) -> None:
        if self._verifies:
            self._calls += 1
            if self._calls % 100 == 0:
                self._verify(recordings, flat)

    def _verify(self, recordings: _Recordings, flat: np.ndarray) -> None:
        values, recorded = self._run(recordings, flat, "values")
        eager, gradient = self._eagerly(recordings, flat)
        tolerance = 1e-9 if self.dtype == "float64" else 1e-4
        complaint = ""
        if len(eager) != len(values):
            complaint = f"the recording has {len(values)} results, and now there are {len(eager)}"
        else:
            names = (
                ["the value"] if len(values) == 1 else [f"result {k}" for k in range(len(values))]
            )
            complaint = _difference(names, values, eager, tolerance)
        if not complaint and recorded.output == "number":
            (_, known), _ = self._run(recordings, flat, "value_and_grad", single=True)
            names = [f"the derivative by {name}" for name in self._input_names(recordings)]
            complaint = _difference(names, known, gradient, tolerance)
        if complaint:
            again = self._trace(recordings, flat)
            where = recorded.function.difference(again.function, flat, tolerance)
            raise VerifyError(complaint + (f"; the first difference: {where}" if where else ""))

    def _eagerly(self, recordings: _Recordings, flat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what the function gives without a recording, and the gradient if that is one number."""
        tape = self._tape()
        with tape.scope(), _transforming(tape):
            count = sum(_size(recordings.structure[k]) for k in recordings.variables)
            leaves = np.empty(count, dtype=object)
            leaves[:] = [Value(x) for x in flat[:count].tolist()]
            result = recordings.call(
                self.__wrapped__,
                lambda places: leaves[places],
                lambda places: flat[places] if places.ndim else float(flat[places]),
                lambda places: flat[places].astype(np.int64),
            )
            found: list[Any] = []
            _flatten_result(result, found)
            roots = np.concatenate(found).tolist() if found else []
            values = np.array([root.data for root in roots], self.dtype)
            if len(roots) == 1:
                for leaf in leaves:
                    leaf.grad = 0.0
                backward(roots[0])
            return values, np.array([leaf.grad for leaf in leaves], self.dtype)

    # ---- looking and keeping ------------------------------------------------------------------------

    def _function(self, arguments: tuple[Any, ...]) -> Any:
        """Return the recorded function that goes the way of these arguments, or that ran last."""
        if arguments:
            self._run(*self._prepare(arguments), "values")
        if self._last is None:
            raise ValueError("nothing is recorded yet: call it, or give arguments here")
        return self._last.function

    def source(self, *arguments: Any, name: str = "f") -> str:
        """Return what was recorded last, or for these arguments, as C that includes only <math.h>."""
        if not name.isidentifier() or not name.isascii() or _TAKEN.fullmatch(name):
            raise ValueError(f"a function in C can't be called {name!r}")
        text: str = self._function(arguments).source(name)
        return text

    def dot(self, *arguments: Any) -> str:
        """Return what was recorded last, or for these arguments, as a graph in the DOT language."""
        text: str = self._function(arguments).dot()
        return text

    def save(self, path: str | PathLike[str] | BinaryIO, *arguments: Any) -> None:
        """Write what was recorded last, or for these arguments, as a graph; see load_compiled."""
        if self.dtype != "float64":
            raise ValueError(f"functions of float64 can be stored; this one is of {self.dtype}")
        tape, marks = self._function(arguments).graph()
        tape.save_graph(path, marks=marks)


# Names that C or the emitted text itself uses.
_TAKEN = re.compile(
    "auto|break|case|char|const|continue|default|do|double|else|enum|extern|float|for|goto|if|inline|"
    "int|long|main|register|restrict|return|short|signed|sizeof|static|struct|switch|typedef|union|"
    "unsigned|void|volatile|while|NAN|INFINITY|HUGE_VAL[FL]?|[xnikt]|xs|gs|sums|values|gradients?|"
    "(a?(cos|sin|tan)h?|atan2|exp2?|expm1|frexp|ilogb|ldexp|log|log10|log1p|log2|logb|modf|scalbl?n|"
    "cbrt|fabs|hypot|pow|sqrt|erfc?|[lt]gamma|gamma|ceil|floor|nearbyint|l?l?rint|l?l?round|trunc|"
    "fmod|remainder|remquo|copysign|nan|nextafter|nexttoward|fdim|fmax|fmin|fma|[jy][01n])[fl]?|"
    "fpclassify|signbit|is(finite|inf|nan|normal|greater|greaterequal|less|lessequal|lessgreater|"
    "unordered)"
)


def _size(structure: _Structure) -> int:
    return sum(1 for _ in _names(structure, ""))


def _index(index: Any, n: int) -> NDArray[np.int64]:
    """Return the numbers of samples as an array, which the engine reads."""
    array = np.asarray(index)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        raise ValueError(
            f"index is a vector of integers, not of {array.dtype} and shape {array.shape}"
        )
    wrong = np.flatnonzero((array < 0) | (array >= n))
    if wrong.size:
        place = int(wrong[0])
        raise ValueError(f"index[{place}] is {array[place]}, but there are {n} samples")
    return np.ascontiguousarray(array, dtype=np.int64)


def _difference(names: list[str], known: Any, now: Any, tolerance: float) -> str:
    """Say where two vectors differ first; nothing if they do not."""
    for name, a, b in zip(names, known.tolist(), now.tolist()):
        same = a == b or abs(a - b) <= tolerance * (1 + abs(b)) or (a != a and b != b)
        if not same:
            return f"{name} is {a:.10g} in the recording and {b:.10g} now"
    return ""


def _described(output: _Structure) -> str:
    if output != "number" and output[0] == "array":
        return f"Values of shape {output[1]}"
    return f"a {output[0].__name__} of Values"


_warned = False


def _warn_once(reason: str) -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            f"burtorch.compile: {reason.splitlines()[0]}: functions are replayed; "
            "backend='replay' says that this is meant",
            RuntimeWarning,
            stacklevel=7,
        )


def compile(
    f: Callable[..., Any],
    backend: str = "auto",
    dynamic: bool = False,
    *,
    share: bool = False,
    argnums: int | Sequence[int] | None = None,
    dtype: Any = "float64",
) -> Compiled:
    """Record a function once and run it on new numbers at the engine's speed.

    f takes Values where the compiled function takes numbers, and arrays of Values where it takes
    arrays; arguments may be tuples, lists and dicts of them. It is called when a structure or shape of
    arguments is seen for the first time; whatever else it reads (Values from outside, too) is taken as
    it was then. A comparison that depends on the arguments would be, too: it raises BranchError, unless
    dynamic=True, where f is recorded again for each way it goes. So would be a number, .data of a Value
    that depends on them: it raises GraphError. stop_gradient(x) is the number at every call.

    backend "native" writes C, compiles it with the system's compiler and keeps it in a cache
    (BURTORCH_CACHE_DIR says where, BURTORCH_CACHE_BYTES how large it may become, by default 256 MiB);
    "replay" walks over the recording. "auto" compiles functions of single Values, without operations on
    views, which have no C text, and without dynamic=True. Where that takes about a second, the call that
    records waits for the compiler; if it fails, a warning says so once. Larger functions are replayed
    while they are compiled in the background; wait() waits for that.

    argnums names the arguments that are variables, by their places: gradients are by them. The others are
    data: other numbers at every call, of the same shapes, without a gradient. Arrays of integers may be
    indices of gather and cross_entropy; a plain int, a string or None is a constant, for each of which the
    function is recorded anew. Without argnums all arguments are variables.

    >>> c = compile(lambda w, x, n: w**n * x, argnums=0, backend="replay")
    >>> c.value_and_grad(2.0, 5.0, 3), c.value_and_grad(2.0, 7.0, 3)
    ((40.0, 60.0), (56.0, 84.0))

    dtype "float32" computes with single precision.

    With share=True a replay computes equal expressions once. Values stay as they are; gradients are sums in
    another order, so their last digits may differ.

    >>> c = compile(lambda x: x[0] * x[1], backend="replay")
    >>> c([3.0, 4.0])
    12.0
    >>> c.value_and_grad([3.0, 4.0])
    (12.0, array([4., 3.]))
    """
    return Compiled(f, backend, dynamic, share, argnums, dtype)


def load_compiled(path: str | PathLike[str] | BinaryIO | bytes, backend: str = "auto") -> Compiled:
    """Return a function that Compiled.save wrote, as a function of one vector of all its numbers.

    If it has several outputs, they are a vector, too.

    >>> import io
    >>> file = io.BytesIO()
    >>> compile(lambda a, b: a * b, backend="replay").save(file, 3.0, 4.0)
    >>> load_compiled(file.getvalue(), backend="replay").value_and_grad([5.0, 6.0])
    (30.0, array([6., 5.]))
    """
    tape, marks = load_graph(path, marks=True)
    function = _compile.Function(tape, marks)
    n = function.inputs

    def stored(x: Any) -> Any:
        raise TypeError(f"this function was stored: it takes one vector of {n} numbers")

    compiled = Compiled(stored, backend)
    output = "number" if function.outputs == 1 else ("array", (function.outputs,))
    vector = compiled._recordings_for((("array", (n,)),))
    compiled._last = compiled._keep(vector, _Recorded(function, output))
    return compiled
