# tests/test_finite_sum.py — batch: a function of one sample over many, its sums, rows and wrong uses
# SPDX-License-Identifier: MIT
from __future__ import annotations

import tracemalloc
from typing import Any

import burtorch as bt
import numpy as np
import pytest

N, D = 37, 3
rng = np.random.default_rng(3)
X, Y = rng.normal(size=(N, D)), rng.choice([-1.0, 1.0], N)
W = rng.normal(size=D)


def loss(w: Any, x: Any, y: Any) -> Any:
    return bt.softplus(-y * sum(a * b for a, b in zip(w, x)))


def blocks(w: Any, x: Any, y: Any) -> Any:
    return bt.softplus(-y * (bt.vector(w) * bt.vector(x)).sum())


def by_hand(which: Any = slice(None), clip: float = np.inf) -> tuple[Any, Any]:
    margin = -Y[which] * (X[which] @ W)
    rows = (-Y[which] / (1 + np.exp(-margin)))[:, None] * X[which]
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.log1p(np.exp(margin)), rows * np.minimum(1, clip / norms)


@pytest.mark.parametrize("f", [loss, blocks])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("micro_batch", ["auto", 1, 5])
def test_sums_means_and_rows(f: Any, dtype: str, threads: int, micro_batch: Any) -> None:
    c = bt.compile(f, argnums=0, backend="replay", dtype=dtype)
    values, rows = by_hand()
    options: dict[str, Any] = {"threads": threads, "micro_batch": micro_batch}
    close: dict[str, Any] = {
        "rel": 1e-4 if dtype == "float32" else 1e-10,
        "abs": 1e-6 if dtype == "float32" else 1e-12,
    }
    value, gradient = c.batch(W, X, Y, in_axes=(None, 0, 0), reduce="sum", **options)
    assert value == pytest.approx(values.sum(), **close)
    assert gradient == pytest.approx(rows.sum(0), **close)
    assert gradient.dtype == dtype
    value, gradient = c.batch(W, X, Y, **options)
    assert value == pytest.approx(values.mean(), **close)
    assert gradient == pytest.approx(rows.mean(0), **close)
    each, gradients = c.batch(W, X, Y, reduce=None, **options)
    assert each == pytest.approx(values, **close)
    assert gradients == pytest.approx(rows, **close)
    again = c.batch(W, X, Y, **options)
    assert (again[0], again[1].tolist()) == (
        value,
        gradient.tolist(),
    )  # one result per thread count


def test_index_clip_and_callback() -> None:
    c = bt.compile(loss, argnums=0, backend="replay")
    index = [36, 0, 5, 5, 9]
    values, rows = by_hand(index, clip=0.3)
    value, gradient = c.batch(W, X, Y, index=index, clip=0.3, reduce="sum")
    assert value == pytest.approx(values.sum())
    assert gradient == pytest.approx(rows.sum(0))
    assert c.batch(W, X, Y, index=index, clip=0.3, reduce=None)[1] == pytest.approx(rows)
    seen: list[Any] = []
    nothing = c.batch(
        W, X, Y, reduce=None, micro_batch=10, callback=lambda *block: seen.append(block)
    )
    assert nothing is None
    assert [(first, len(v), g.shape) for first, v, g in seen] == [
        (k, min(10, N - k), (min(10, N - k), D)) for k in range(0, N, 10)
    ]
    assert np.concatenate([g for _, _, g in seen]) == pytest.approx(by_hand()[1])
    out = np.empty(N), np.empty((N, D))
    assert c.batch(W, X, Y, reduce=None, out=out)[1] is out[1]
    assert out[0] == pytest.approx(by_hand()[0])


def test_integers_per_sample() -> None:
    def f(table: Any, ids: Any, target: Any) -> Any:
        rows = bt.gather(bt.matrix(table), ids)
        return bt.cross_entropy(rows[0] * rows[1], target)

    c = bt.compile(f, argnums=0)
    table = rng.normal(size=(6, 4))
    ids, targets = rng.integers(0, 6, (9, 2)), rng.integers(0, 4, 9)
    value, gradient = c.batch(table, ids, targets, threads=2)
    expected = np.zeros_like(table)
    total = 0.0
    for i, t in zip(ids, targets):
        one = table[i[0]] * table[i[1]]
        p = np.exp(one) / np.exp(one).sum()
        total -= np.log(p[t])
        p[t] -= 1
        np.add.at(expected, i[0], p * table[i[1]])
        np.add.at(expected, i[1], p * table[i[0]])
    assert value == pytest.approx(total / 9)
    assert gradient == pytest.approx(expected / 9)
    ids[4, 1] = 6
    with pytest.raises(ValueError, match=r"ids\[1\] is the index 6, .* between 0 and 5"):
        c.batch(table, ids, targets)


def test_structures_and_variables_per_sample() -> None:
    f = lambda p, x: p["a"] * x[0] + p["b"][1] * x[1]  # noqa: E731
    c = bt.compile(f, argnums=0, backend="replay")
    p = {"a": 2.0, "b": np.array([3.0, 4.0])}
    value, gradient = c.batch(p, [[1.0, 2.0], [3.0, 4.0]], reduce="sum")
    assert (value, gradient["a"], gradient["b"].tolist()) == (32.0, 4.0, [0.0, 6.0])
    every = bt.compile(lambda x, y: x * y, backend="replay")
    values, rows = every.batch([1.0, 2.0], [3.0, 4.0], in_axes=(0, 0))
    assert (values.tolist(), rows.tolist()) == ([3.0, 8.0], [[3.0, 1.0], [4.0, 2.0]])


def test_samples_of_a_function_that_branches() -> None:
    c = bt.compile(lambda w, x: w * x if w * x > 0 else 3 * w * x, argnums=0, dynamic=True)
    x = np.array([1.0, -2.0, 4.0])
    assert c.batch(2.0, x, reduce="sum") == (2.0 - 12.0 + 8.0, 1.0 - 6.0 + 4.0)
    assert c.batch(2.0, x, reduce=None)[1].tolist() == [[1.0], [-6.0], [4.0]]


def test_memory_does_not_grow_with_the_samples() -> None:
    c = bt.compile(loss, argnums=0, backend="replay")
    peaks = []
    for n in (1000, 20000):
        x, y = np.ones((n, D)), np.ones(n)
        c.batch(W, x, y)
        tracemalloc.start()
        c.batch(W, x, y)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 5000


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((W, X, Y), {"in_axes": (None, 0)}, "in_axes has 2 entries for 3 arguments"),
        ((W, X, Y), {"in_axes": (None, 0, 1)}, "not 1 as for y"),
        ((W, X, Y), {"in_axes": (None, None, None)}, "there are no samples"),
        (
            (W, X, Y),
            {"in_axes": (0, 0, 0), "reduce": "mean"},
            r"samples do not fit: w of shape \(3,\)",
        ),
        ((X, X, Y), {"in_axes": (0, 0, 0), "reduce": "mean"}, "gives w a row per sample"),
        ((W, X, Y[:5]), {}, r"x of shape \(37, 3\), but y of shape \(5,\)"),
        ((W, X, 2.0), {}, r"y has a row per sample, .* shape \(\)"),
        ((W, X, np.array(["a"] * N)), {}, "y has a row per sample, so it is an array of numbers"),
        ((W, X[:0], Y[:0]), {}, "no samples"),
        ((W, X, Y), {"reduce": "max"}, "not 'max'"),
        ((W, X, Y), {"index": [1, 37]}, r"index\[1\] is 37, but there are 37 samples"),
        ((W, X, Y), {"index": [-1]}, r"index\[0\] is -1"),
        ((W, X, Y), {"index": [0.5]}, "vector of integers, not of float64"),
        ((W, X, Y), {"index": []}, "no mean"),
        ((W, X, Y), {"clip": 0.0}, "clip is a positive number"),
        ((W, X, Y), {"threads": 0}, "threads is at least 1"),
        ((W, X, Y), {"micro_batch": 0}, "micro_batch"),
        ((W, X, Y), {"callback": print}, "reduce=None"),
    ],
)
def test_wrong_uses(arguments: Any, options: Any, message: str) -> None:
    c = bt.compile(loss, argnums=0, backend="replay")
    with pytest.raises(ValueError, match=message):
        c.batch(*arguments, **options)


def test_a_function_of_several_results_has_no_sum() -> None:
    c = bt.compile(lambda w, x: [w * x, w], argnums=0, backend="replay")
    with pytest.raises(ValueError, match=r"Values of shape \(2,\)"):
        c.batch(1.0, [1.0, 2.0])
