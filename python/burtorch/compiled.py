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
import re
import threading
import warnings
from collections.abc import Iterator
from os import PathLike
from typing import Any, BinaryIO, Callable, NamedTuple

import numpy as np

from ._core import Tape, Value, View, _compile, current_tape, load_graph
from .transforms import _since, _transforming

__all__ = ["Compiled", "Minimum", "compile", "load_compiled"]

# With backend="auto" the first call waits for a C compiler where it takes about a second. What it takes
# grows with the text, and faster with the numbers that come in and go out. Larger functions are compiled
# in the background, and larger ones yet are not. With backend="native" there is no limit.
_SOON_WORK, _SOON_TRAFFIC = 8000, 150
_MOST_WORK, _MOST_TRAFFIC = 400_000, 2_000
_MOST_SECONDS, _MOST_SECONDS_IN_BACKGROUND = 20.0, 120.0

# "number", ("array", shape), (type of a tuple or list, parts), (dict, keys, parts)
_Structure = Any


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
    raise TypeError(
        "a compiled function takes numbers, arrays, and tuples, lists or dicts of them, "
        f"not {type(argument).__name__}"
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


def _build(structure: _Structure, leaf: Callable[[tuple[int, ...] | None], Any]) -> Any:
    """Return what looks like the structure; leaf(shape) gives the next array, leaf(None) a number."""
    if structure == "number":
        return leaf(None)
    if structure[0] == "array":
        return leaf(structure[1])
    parts = [_build(part, leaf) for part in structure[-1]]
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
        return things[start].item() if things.dtype == float and things.ndim == 1 else things[start]

    return piece


def _names(structure: _Structure, name: str) -> Iterator[str]:
    """Yield a name for each number of an argument: x, x[0, 1], x['w'][2]."""
    if structure == "number":
        yield name
    elif structure[0] == "array":
        for place in np.ndindex(structure[1]):
            yield f"{name}[{', '.join(map(str, place))}]"
    else:
        keys = structure[1] if structure[0] is dict else range(len(structure[1]))
        for key, part in zip(keys, structure[-1]):
            yield from _names(part, f"{name}[{key!r}]")


class _Recorded(NamedTuple):
    function: Any
    output: _Structure


class _Recordings:
    """What was recorded for arguments of one structure: one function, or one per way it can branch."""

    def __init__(self, structure: tuple[_Structure, ...], keywords: tuple[str, ...]) -> None:
        self.structure = structure
        self.keywords = keywords  #: of the last arguments
        self.all: list[_Recorded] = []

    @property
    def takes_vector(self) -> bool:
        """Whether the argument is a single vector."""
        first = self.structure[0]
        return len(self.structure) == 1 and first[0] == "array" and len(first[1]) == 1

    def like_arguments(self, flat: np.ndarray) -> Any:
        """Shape a flat vector like the arguments; a single one stands for itself."""
        piece = _pieces(flat)
        parts = [_build(part, piece) for part in self.structure]
        return parts[0] if len(parts) == 1 else tuple(parts)

    def rows_like_arguments(self, rows: np.ndarray, shape: tuple[int, ...] | None) -> Any:
        """Shape the derivatives of an output of this shape, which are rows."""
        first = self.structure[0]
        if len(self.structure) == 1 and (first == "number" or first[0] == "array"):
            inner = () if first == "number" else first[1]
            array = rows.reshape((shape or ()) + inner)
            return array if array.ndim else array.item()
        parts = [self.like_arguments(row) for row in rows.reshape(-1, rows.shape[-1])]
        return parts[0] if shape is None else parts


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
        self, f: Callable[..., Any], backend: str, dynamic: bool = False, share: bool = False
    ) -> None:
        if backend not in {"auto", "replay", "native"}:
            raise ValueError(f"backend is 'auto', 'replay' or 'native', not {backend!r}")
        if dynamic and backend == "native":
            raise ValueError("native code has one way to go; with dynamic=True use 'replay'")
        if not callable(f):
            raise TypeError(f"compile takes a function, not {type(f).__name__}")
        functools.update_wrapper(self, f, updated=())
        self.__wrapped__ = f
        self.backend = backend
        self.dynamic = dynamic
        self.share = share
        self._signature: inspect.Signature | None = None
        with contextlib.suppress(TypeError, ValueError):  # of which there is none
            self._signature = inspect.signature(f)
        self._recordings: dict[Any, _Recordings] = {}
        self._last: _Recorded | None = None
        self._background: threading.Thread | None = None
        self._attribute: str | None = None
        #: value_and_grad(*arguments, out=None): the value and the gradient by all arguments, which has
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
        bound = Compiled(method, self.backend, self.dynamic, self.share)
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
        if type(x) is np.ndarray and x.dtype == float and x.size:
            return self._recordings_for((("array", x.shape),)), np.ascontiguousarray(x).ravel()
        numbers: list[Any] = []
        everything = (*arguments, *(keywords or {}).values())
        structure = tuple(_flatten(argument, numbers) for argument in everything)
        flat = np.concatenate(numbers) if numbers else np.empty(0)
        if not flat.size:
            raise TypeError("a function of no arguments, or of no numbers, has no gradient")
        return self._recordings_for(structure, tuple(keywords or ())), flat

    def _recordings_for(
        self, structure: tuple[_Structure, ...], keywords: tuple[str, ...] = ()
    ) -> _Recordings:
        recordings = self._recordings.get((structure, keywords))
        if recordings is None:
            recordings = _Recordings(structure, keywords)
            self._recordings[structure, keywords] = recordings
        return recordings

    def _record(self, recordings: _Recordings, flat: np.ndarray) -> _Recorded:
        """Call the function with Values and keep what it did."""
        tape = current_tape()
        if tape.dtype != "float64":
            tape = Tape()
        outer, start = _since(), len(tape)
        with tape.scope(), _transforming(tape):
            leaves = np.empty(len(flat), dtype=object)
            leaves[:] = [Value(x) for x in flat.tolist()]
            for leaf, name in zip(leaves, self._input_names(recordings)):
                leaf.name = name
            with _compile.Tracing(tape, leaves.tolist(), self.dynamic) as tracing:
                piece = _pieces(leaves)
                arguments = [_build(part, piece) for part in recordings.structure]
                split = len(arguments) - len(recordings.keywords)
                keywords = dict(zip(recordings.keywords, arguments[split:]))
                result = self.__wrapped__(*arguments[:split], **keywords)
            values: list[Any] = []
            output = _flatten_result(result, values)
            roots = np.concatenate(values).tolist() if values else []
            if not roots:
                raise TypeError("the function returned nothing to compute")
            if outer is not None and _compile.reaches(roots, outer, start):
                raise ValueError(
                    "this compiled function is called inside of another transform and uses Values of "
                    "that one's function, which it would freeze; compile the outer function instead"
                )
            function = _compile.Function(tracing, roots, self.share)
        return self._keep(recordings, _Recorded(function, output))

    def _keep(self, recordings: _Recordings, recorded: _Recorded) -> _Recorded:
        self._make_native(recorded.function)
        recordings.all.insert(0, recorded)
        self._attach(recordings, recorded)
        return recorded

    def _input_names(self, recordings: _Recordings) -> Iterator[str]:
        names = list(self._signature.parameters) if self._signature is not None else []
        split = len(recordings.structure) - len(recordings.keywords)
        names = [names[k] if k < len(names) else f"x{k}" for k in range(split)]
        for name, part in zip((*names, *recordings.keywords), recordings.structure):
            yield from _names(part, name)

    def _attach(self, recordings: _Recordings, recorded: _Recorded) -> None:
        """Let value_and_grad take the short way where the argument is one vector."""
        if recordings.takes_vector:
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
        values, recorded = self._run(recordings, flat, "values")
        if recorded.output == "number":
            return float(values[0])
        return _build(recorded.output, _pieces(values))

    def _value_and_grad(
        self, *arguments: Any, out: Any = None, **keywords: Any
    ) -> tuple[float, Any]:
        recordings, flat = self._prepare(arguments, keywords)
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
        _, recorded = self._run(*self._prepare((x,)), "value_and_grad", single=True)
        bound: Callable[[], None] = _compile.bind(recorded.function, x, out)
        return bound

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
        if operator.index(threads) < 1:
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
    f: Callable[..., Any], backend: str = "auto", dynamic: bool = False, *, share: bool = False
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

    With share=True a replay computes equal expressions once. Values stay as they are; gradients are sums in
    another order, so their last digits may differ.

    >>> c = compile(lambda x: x[0] * x[1], backend="replay")
    >>> c([3.0, 4.0])
    12.0
    >>> c.value_and_grad([3.0, 4.0])
    (12.0, array([4., 3.]))
    """
    return Compiled(f, backend, dynamic, share)


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
