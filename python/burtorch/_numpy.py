# python/burtorch/_numpy.py — what NumPy's functions do with Views, and the arrays that Views give
# SPDX-License-Identifier: MIT
"""NumPy asks a View what its functions mean: those that burtorch has, too, are burtorch's.

The others know only numbers. They would get them without the graph, so that gradients were 0 without a
word: they raise GraphError.
"""

from __future__ import annotations

import functools
import inspect
import operator
from typing import Any, Callable

import numpy as np
from numpy.typing import NDArray

from . import _core as bt
from ._core import GraphError, Value, View

# ---- the numbers of a View --------------------------------------------------------------------------


class Numbers(np.ndarray):
    """What View.data and View.grad give: an array that was copied, so nothing can be written to it.

    What is computed from it are ordinary arrays. x.data -= y makes a new one, which the View then gets.
    """

    __slots__ = ()

    def __setitem__(self, key: Any, value: Any) -> None:
        if not self.flags.writeable:
            raise ValueError(
                "the data and the grad of a View are copies, so this would be lost; change a copy and "
                "assign it whole: a = view.data.copy(); a[i] = x; view.data = a"
            )
        super().__setitem__(key, value)

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        plain = array.view(np.ndarray)
        return plain[()] if return_scalar else plain

    def copy(self, order: Any = "C") -> NDArray[Any]:  # type: ignore[override]
        return np.array(self, order=order)

    def __copy__(self) -> NDArray[Any]:  # type: ignore[override]
        return np.array(self)

    def __deepcopy__(self, memo: Any) -> NDArray[Any]:  # type: ignore[override]
        return np.array(self)

    def __reduce__(self) -> Any:
        return np.array(self).__reduce__()

    def __repr__(self) -> str:
        return repr(self.view(np.ndarray))


def _in_place(name: str) -> Callable[[NDArray[Any], Any], NDArray[Any]]:
    apply, change = getattr(operator, name), getattr(np.ndarray, f"__i{name.strip('_')}__")

    def inplace(self: NDArray[Any], other: Any) -> Any:
        if self.flags.writeable:
            return change(self, other)
        return apply(self.view(np.ndarray), other)

    return inplace


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    setattr(Numbers, f"__i{_name}__", _in_place(_name))

# ---- functions of NumPy -----------------------------------------------------------------------------

# NumPy's and SciPy's universal functions that are burtorch's of the same name or of another.
_RENAMED = {
    "absolute": "abs",
    "fabs": "abs",
    "arccos": "acos",
    "arcsin": "asin",
    "arctan": "atan",
    "arctan2": "atan2",
    "divide": "div",
    "true_divide": "div",
    "expit": "sigmoid",
    "maximum": "max",
    "minimum": "min",
    "multiply": "mul",
    "power": "pow",
    "reciprocal": "inv",
    "square": "sqr",
    "subtract": "sub",
}
_NAMESAKES = ["add", "hypot"]
_NAMESAKES += ["cos", "cosh", "erf", "exp", "expm1", "log", "log1p", "negative"]
_NAMESAKES += ["sin", "sinh", "sqrt", "tan", "tanh"]
_UFUNCS: dict[str, Callable[..., Any]] = {name: getattr(bt, name) for name in _NAMESAKES}
_UFUNCS |= {name: getattr(bt, ours) for name, ours in _RENAMED.items()}
_UFUNCS["positive"] = operator.pos


class _NoMeaningError(Exception):
    """These arguments have no meaning here."""


def _demand(sensible: bool) -> None:
    if not sensible:
        raise _NoMeaningError


def _is_vector(x: Any) -> bool:
    return isinstance(x, (View, np.ndarray)) and x.ndim == 1


def _flat(x: Any) -> Any:
    _demand(isinstance(x, View))
    return x.reshape(x.size)


def _matmul(a: Any, b: Any) -> Any:
    return a @ b if isinstance(a, View) else b.__rmatmul__(a)  # an array's @ would ask us again


_UFUNCS["matmul"] = _matmul


def _dot(a: Any, b: Any) -> Any:
    return _matmul(a, b) if np.ndim(a) and np.ndim(b) else bt.mul(a, b)


def _inner(a: Any, b: Any) -> Any:
    _demand(_is_vector(a) and _is_vector(b))
    return _matmul(a, b)


def _outer(a: Any, b: Any) -> Any:
    a, b = _leaves(a, b), _leaves(b, a)
    return a.reshape(a.size, 1) * b.reshape(b.size)


def _leaves(x: Any, beside: Any) -> View:
    """Return a View as it is; an array as leaves on the tape of another View."""
    if isinstance(x, View):
        return x
    with beside.tape:
        return bt.vector(x) if np.ndim(x) == 1 else bt.matrix(x)


def _along(name: str) -> Callable[..., Any]:
    """Return a method of Views that goes along axes."""

    def reduced(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
        _demand(isinstance(a, View))
        return getattr(a, name)(axis, keepdims)

    return reduced


def _whole(reduce: Callable[[View], Any]) -> Callable[..., Any]:
    """Return a function of all elements; along an axis only where that is the same."""

    def reduced(a: Any, axis: Any = None) -> Any:
        _demand(isinstance(a, View))
        _demand(axis is None or (a.ndim == 1 and axis in {0, -1}))
        return reduce(a)

    return reduced


def _norm(x: View) -> Any:
    return bt.sqrt(bt.reduce_sum_of_squares(_flat(x)))


def _parts(arrays: Any) -> list[Any]:
    return [x if isinstance(x, View) else np.asarray(x) for x in arrays]


def _concatenate(arrays: Any, axis: int = 0) -> View:
    return bt.concat(_parts(arrays), axis)


def _stack(arrays: Any, axis: int = 0) -> View:
    return bt.stack(_parts(arrays), axis)


def _as_row(x: Any) -> Any:
    return x.reshape(1, x.size) if x.ndim == 1 else x


def _hstack(tup: Any) -> View:
    arrays = _parts(tup)
    return bt.concat(arrays, axis=0 if arrays[0].ndim == 1 else 1)


def _vstack(tup: Any) -> View:
    return bt.concat(map(_as_row, _parts(tup)))


def _where(condition: Any, x: Any, y: Any) -> Any:
    _demand(not isinstance(condition, (View, Value)))
    return bt.where(condition, x, y)


def _split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[View]:
    return bt.split(ary, indices_or_sections, axis)


def _expand_dims(a: View, axis: int) -> View:
    shape = list(a.shape)
    shape.insert(axis if axis >= 0 else axis + a.ndim + 1, 1)
    return a.reshape(shape)


def _squeeze(a: View, axis: Any = None) -> Any:
    shape = np.squeeze(np.empty(a.shape, "int8"), axis).shape  # NumPy says which axes go
    return a.reshape(shape) if shape else a.reshape(1)[0]


def _swapaxes(a: View, axis1: int, axis2: int) -> View:
    axes = list(range(a.ndim))
    axes[axis1], axes[axis2] = axes[axis2], axes[axis1]
    return a.transpose(axes)


def _broadcast_to(array: View, shape: Any) -> Any:
    everywhere = np.ones(shape, dtype=bool)
    if np.broadcast_shapes(array.shape, everywhere.shape) != everywhere.shape:
        raise ValueError(f"a View of shape {array.shape} can't become {everywhere.shape}")
    return bt.where(everywhere, array, 0.0)


def _take(a: View, indices: Any, axis: Any = None) -> Any:
    if axis is None:
        return _flat(a)[indices]
    return a[(slice(None),) * (axis % a.ndim) + (indices,)]


def _clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    return bt.clip(a, a_min if min is None else min, a_max if max is None else max)


def _like(make: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that asks a View for its shape and dtype only, and gives an array."""

    def made(a: View, *arguments: Any, **keywords: Any) -> NDArray[Any]:
        pattern = np.empty(a.shape, np.float32 if a.tape.dtype == "float32" else np.float64)
        return np.asarray(make(pattern, *arguments, **keywords))

    return made


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.amax: _along("max"),
    np.amin: _along("min"),
    np.broadcast_to: _broadcast_to,
    np.max: _along("max"),
    np.min: _along("min"),
    np.clip: _clip,
    np.concatenate: _concatenate,
    np.dot: _dot,
    np.empty_like: _like(np.empty_like),
    np.expand_dims: _expand_dims,
    np.full_like: _like(np.full_like),
    np.hstack: _hstack,
    np.inner: _inner,
    np.linalg.norm: _whole(_norm),
    np.mean: _along("mean"),
    np.ndim: lambda a: a.ndim,
    np.ones_like: _like(np.ones_like),
    np.outer: _outer,
    np.prod: _whole(lambda x: bt.reduce_mul(_flat(x))),
    np.ravel: _flat,
    np.reshape: lambda a, shape: a.reshape(shape),
    np.shape: lambda a: a.shape,
    np.size: lambda a: a.size,
    np.split: _split,
    np.squeeze: _squeeze,
    np.stack: _stack,
    np.sum: _along("sum"),
    np.swapaxes: _swapaxes,
    np.take: _take,
    np.transpose: lambda a, axes=None: bt.transpose(a, axes),
    np.var: _along("var"),
    np.vdot: _inner,
    np.vstack: _vstack,
    np.where: _where,
    np.zeros_like: _like(np.zeros_like),
}


def _refuse(name: str) -> Any:
    raise GraphError(
        f"{name} of a View, called like this, would cut the graph silently; use .data for the numbers, "
        "or burtorch's functions: operators, tanh …, min, max, clamp, concat, gather, affine"
    )


def _array_ufunc(self: View, ufunc: Any, method: str, /, *inputs: Any, **keywords: Any) -> Any:
    name = ufunc.__name__
    if method != "__call__":
        return _refuse(f"numpy.{name}.{method}")
    return _refuse(f"numpy.{name}") if name not in _UFUNCS or keywords else _UFUNCS[name](*inputs)


_signature = functools.cache(inspect.signature)


def _array_function(self: View, function: Any, types: Any, arguments: Any, keywords: Any, /) -> Any:
    name, ours = f"{function.__module__}.{function.__name__}", _FUNCTIONS.get(function)
    if ours is None:
        return _refuse(name)
    try:
        _signature(ours).bind(*arguments, **keywords)
    except TypeError:  # an argument that has no meaning here
        return _refuse(name)
    try:
        return ours(*arguments, **keywords)
    except _NoMeaningError:
        return _refuse(name)


View.__array_ufunc__ = _array_ufunc  # type: ignore[method-assign]
View.__array_function__ = _array_function  # type: ignore[method-assign]
