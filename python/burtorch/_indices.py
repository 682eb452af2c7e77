# python/burtorch/_indices.py — integers that are data of a function while it is recorded
# SPDX-License-Identifier: MIT
"""Indices: what an integer array argument is while a function is recorded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Callable

import numpy as np
from numpy.typing import NDArray

from ._core import BranchError, View

__all__ = ["Indices"]


class Indices:
    """Integers of an argument that is being recorded; a later call puts others in their places.

    They can be cut and reshaped as arrays are, be the indices of gather, Embedding and cross_entropy, and be
    computed with as real numbers. What they are can't decide anything: that would be frozen.
    """

    __array_ufunc__ = None  # an array beside them leaves the arithmetic to them
    __slots__ = ("_floats", "_places", "_values")

    def __init__(
        self,
        values: NDArray[Any],
        places: NDArray[np.int64],
        floats: Callable[[NDArray[np.int64]], View],
    ) -> None:
        self._values, self._places = values, places  # the engine reads both
        self._floats = floats  #: data with the numbers at these places

    def __repr__(self) -> str:
        return f"Indices(shape={self.shape})"

    @property
    def shape(self) -> tuple[int, ...]:
        return self._values.shape

    @property
    def ndim(self) -> int:
        return self._values.ndim

    @property
    def size(self) -> int:
        return self._values.size

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._values.dtype

    def __len__(self) -> int:
        return len(self._values)

    def _same(self, f: Callable[[NDArray[Any]], Any]) -> Indices:
        return Indices(np.asarray(f(self._values)), np.asarray(f(self._places)), self._floats)

    def __getitem__(self, key: Any) -> Indices:
        return self._same(lambda x: x[key])

    def __iter__(self) -> Iterator[Indices]:
        return (self[i] for i in range(len(self)))

    def reshape(self, *shape: Any) -> Indices:
        return self._same(lambda x: x.reshape(*shape))

    def ravel(self) -> Indices:
        return self.reshape(-1)

    flatten = ravel

    def astype(self, dtype: Any) -> Any:
        """The same numbers as real ones, or as the integers they are."""
        return self if np.dtype(dtype).kind in "iu" else self._floats(self._places)

    @property
    def T(self) -> Indices:  # noqa: N802 - as arrays call it
        return self._same(lambda x: x.T)

    def _refuse(self, *_: Any) -> Any:
        raise BranchError(
            "an integer argument would decide what is recorded, and stay so at every later call; use it "
            "as an index of gather, Embedding or cross_entropy, or in arithmetic, or take it from outside "
            "of the function as a constant"
        )

    __bool__ = __int__ = __index__ = __float__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __eq__ = __ne__ = _refuse
    __hash__ = object.__hash__

    def __array__(self, *_: Any, **__: Any) -> Any:
        return self._refuse()

    def __add__(self, other: Any) -> Any:
        return self._floats(self._places) + other

    def __radd__(self, other: Any) -> Any:
        return other + self._floats(self._places)

    def __sub__(self, other: Any) -> Any:
        return self._floats(self._places) - other

    def __rsub__(self, other: Any) -> Any:
        return other - self._floats(self._places)

    def __mul__(self, other: Any) -> Any:
        return self._floats(self._places) * other

    def __rmul__(self, other: Any) -> Any:
        return other * self._floats(self._places)

    def __truediv__(self, other: Any) -> Any:
        return self._floats(self._places) / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / self._floats(self._places)

    def __pow__(self, other: Any) -> Any:
        return self._floats(self._places) ** other

    def __neg__(self) -> Any:
        return -self._floats(self._places)
