# tests/test_view_index.py — parts of Views, as NumPy gives parts of arrays
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any

import burtorch as bt
import numpy as np
import pytest

NUMBERS = np.arange(60.0).reshape(3, 4, 5)
S = np.s_
KEYS = [
    S[1], S[-1], S[1:], S[:0], S[::2], S[::-1], S[2, 3, 4], S[0, 1], S[0, 1:3], S[:, 1], S[:, 1:3], S[:, :, 2],
    S[1, :, 2], S[..., 1], S[..., 1:4:2], S[None], S[:, None, 1], S[..., None], S[0, ::-1], S[:, 3:0:-2, 1], S[...],
    S[[2, 0, 2]], S[[[0, 1], [2, 2]]], S[:, [3, 0, 0]], S[[0, 2], [1, 3]], S[[0, 2], [1, 3], [4, -5]], S[1, [0, 3]],
    S[[0, 1], :, [2, 3]], S[..., [0, 4]], S[None, [1, 2]], S[np.array([1, 2]), 1:3], S[np.int64(1), 2], S[()],
    S[[], 0], S[:, -1:, ::-2],
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_parts_are_those_of_arrays(key: Any) -> None:
    want = NUMBERS[key]
    with bt.Tape():
        x = bt.matrix(NUMBERS)
        part = x[key]
        if np.ndim(want) == 0:
            assert isinstance(part, bt.Value)
            assert part.data == want
            (part * 2.0).backward()
        else:
            assert part.shape == want.shape
            assert part.data.tolist() == want.tolist()
            weights = np.arange(1.0, want.size + 1).reshape(want.shape)
            (part * weights).sum().backward()
        gradient = np.zeros((3, 4, 5))
        np.add.at(gradient, key, weights if np.ndim(want) else 2.0)
        assert x.grad.tolist() == gradient.tolist()


def test_neighbours_are_no_copies() -> None:
    with bt.Tape() as tape:
        x = bt.matrix(NUMBERS)
        nodes = len(tape)
        for key in (
            S[1],
            S[1:],
            S[0, 1],
            S[0, 1:3],
            S[2, 3, 1:],
            S[None, 1],
            S[1:2, 1:3],
            S[..., :],
        ):
            x[key]
        assert len(tape) == nodes
        column = x[:, 0]
        assert len(tape) == nodes + column.size


def test_parts_in_recordings() -> None:
    ids = np.array([2, 0, 2])

    def f(x: Any) -> Any:
        m = bt.matrix(np.asarray(x).reshape(3, 2))
        return (m[ids] * m[:, ::-1] * m[:, :1]).sum()

    at = np.array([0.5, -1.0, 2.0, 0.25, 1.5, -0.75])
    m = at.reshape(3, 2)
    c = bt.compile(f, backend="replay")
    for point in (at, at + 1):
        m = point.reshape(3, 2)
        assert c(point) == pytest.approx(np.sum(m[ids] * m[:, ::-1] * m[:, :1]))
    bt.check_grad(f, at)
    gradient = bt.grad(f)
    for i, direction in enumerate(np.eye(6)):
        row = bt.grad(lambda z, i=i: gradient(z)[i])(at)
        want = (gradient(at + 1e-5 * direction) - gradient(at - 1e-5 * direction)) / 2e-5
        np.testing.assert_allclose(row, want, rtol=1e-6, atol=1e-8)


def test_keys_that_mean_nothing_are_refused() -> None:
    x = bt.matrix(NUMBERS)
    booleans: list[Any] = [NUMBERS > 3, [True, False, True], True, (0, np.ones(4, bool))]
    strange: list[Any] = ["a", 1.5, (0, "a"), [0.5]]
    outside: list[Any] = [3, (0, 4), (0, 0, 0, 0), [3], (slice(None), [4])]
    for key in booleans:
        with pytest.raises(TypeError, match=r"use burtorch\.where"):
            x[key]
    for key in strange:
        with pytest.raises(TypeError, match="indexed by integers"):
            x[key]
    for key in outside:
        with pytest.raises(IndexError):
            x[key]
