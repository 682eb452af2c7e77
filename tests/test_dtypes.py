# tests/test_dtypes.py — tapes of halves, quads, lanes and duals from Python
# SPDX-License-Identifier: MIT
from __future__ import annotations

import copy
import pickle

import burtorch as bt
import numpy as np
import pytest

SINGLE = ["float16", "bfloat16", "float32", "float64", "float128"]
LANES = {"float32x8": (8, np.float32), "float64x4": (4, np.float64)}
DIGITS = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-6, "float64": 1e-15}
DIGITS["float128"] = 8 * float(np.finfo(np.longdouble).eps)


@pytest.mark.parametrize("dtype", SINGLE)
def test_every_dtype_computes_to_its_digits(dtype: str) -> None:
    with bt.Tape(dtype) as tape:
        assert tape.dtype == dtype
        a, b = bt.Value(-41.0), bt.Value(2.0)
        g = (a + b - (a * b + b**3)) ** 2 / 2
        g.backward()
        for got, want in [(g.data, 612.5), (a.grad, -35.0), (b.grad, 1050.0)]:
            assert abs(got - want) <= DIGITS[dtype] * abs(want)
        x = bt.Value(0.5)
        y = bt.tanh(x) + bt.reduce_sum(x, x, x) + bt.inner_product([x, x], [a, b])
        y.backward()
        t = np.tanh(np.longdouble(0.5))
        assert abs(y.data - (t + 1.5 - 19.5)) <= 40 * DIGITS[dtype]
        assert abs(x.grad - (1 - t**2 + 3 - 39)) <= 60 * DIGITS[dtype]
        assert bt.Value(2.0) > bt.Value(1.0)
        assert bt.Value(1.0)
        assert not bt.Value(0.0)


def test_float16_rounds_to_nearest_even_and_is_seen_without_a_copy() -> None:
    with bt.Tape("float16") as tape:
        x = bt.Value(2049.0)
        assert x.data == 2048.0
        assert bt.Value(2051.0).data == 2052.0
        assert tape.values.dtype == np.float16
        tape.values[0] = 7
        assert x.data == 7.0


def test_bfloat16_is_shown_as_a_copy_in_float32() -> None:
    with bt.Tape("bfloat16") as tape:
        x = bt.Value(1.0 + 2.0**-8)
        assert x.data == 1.0
        assert tape.values.dtype == np.float32
        with pytest.raises(ValueError, match="read-only"):
            tape.values[0] = 7


def test_float128_keeps_what_a_double_loses() -> None:
    with bt.Tape("float128") as tape:
        x = bt.Value(1.0) + 2.0**-60
        assert (x - 1.0).data == 2.0**-60
        assert isinstance(x.data, np.longdouble)
        assert tape.values.dtype == np.longdouble
        if np.finfo(np.longdouble).nmant > 60:
            assert x.data != 1
            y = bt.Value(x.data)
            assert (y - 1.0).data == 2.0**-60
        tenth = np.longdouble("0.1")
        for made in (
            bt.Value(1.0) * tenth,
            tenth * bt.Value(1.0),
            bt.clamp(bt.Value(9.0), 0, tenth),
        ):
            assert made.data == tenth


@pytest.mark.parametrize("dtype", LANES)
def test_a_graph_of_lanes_computes_several_samples(dtype: str) -> None:
    lanes, kind = LANES[dtype]
    data = np.linspace(-2, 2, lanes).astype(kind)
    with bt.Tape(dtype) as tape:
        x = bt.Value(data)
        y = bt.relu(x) * 3 + bt.tanh(x) - abs(x)
        y.backward()
        assert isinstance(y.data, np.ndarray)
        assert y.data.dtype == kind
        tolerance = 1e-6 if kind is np.float32 else 1e-15
        relu, step = np.maximum(data, 0), (data > 0).astype(kind)
        assert np.allclose(y.data, relu * 3 + np.tanh(data) - abs(data), atol=tolerance)
        slope = 3 * step + 1 - np.tanh(data) ** 2 - np.sign(data)
        assert np.allclose(x.grad, slope, atol=tolerance)
        assert tape.values.shape == (len(tape), lanes)
        tape.values[x.index, 1] = 9
        assert x.data[1] == 9
        x.data = 5  # the same in every lane
        assert (x.data == 5).all()  # type: ignore[attr-defined]
        x.grad = list(range(lanes))
        assert x.grad.tolist() == list(range(lanes))  # type: ignore[attr-defined]
        copied = pickle.loads(pickle.dumps(x))
        assert (copied.data == x.data).all()
        assert (copied.grad == x.grad).all()
        assert (copy.deepcopy(x).data == x.data).all()
        assert "array" in repr(x)
        assert all(arg.shape == (lanes,) for arg in (x * 2).args if not isinstance(arg, bt.Value))  # type: ignore[attr-defined]


def test_wrong_shapes_name_both() -> None:
    with bt.Tape("float32x8"):
        with pytest.raises(ValueError, match=r"takes an array of shape \(8,\), not \(3,\)"):
            bt.Value([1, 2, 3])
        x = bt.Value(1.0)
        with pytest.raises(ValueError, match=r"data is an array of shape \(8,\), not \(2, 8\)"):
            x.data = np.zeros((2, 8))
        with pytest.raises(ValueError, match=r"grad is an array of shape \(8,\), not \(4,\)"):
            x.grad = np.zeros(4)
        with pytest.raises(TypeError, match="data is a number or an array of 8, not str"):
            x.data = "1"  # type: ignore[assignment]
        for wrong in (["a"] * 8, ["1"] * 8, [None] * 8, [1j] * 8, [[1], [1, 2]]):
            with pytest.raises(TypeError, match="takes a number or an array of 8, not list"):
                bt.Value(wrong)  # type: ignore[arg-type]
        assert (x.data == 1).all(), "nothing is lost on bad input"
    with pytest.raises(TypeError, match="takes a number, not list"):
        bt.Value([1.0])


def test_lanes_have_no_truth_and_no_order() -> None:
    with bt.Tape("float64x4"):
        x = bt.Value(1.0)
        for question in (lambda: bool(x), lambda: x < 2, lambda: x > x):
            with pytest.raises(TypeError, match="4 lanes"):
                question()  # type: ignore[no-untyped-call]


def test_values_of_other_dtypes_survive_collect_and_rewind() -> None:
    with bt.Tape("float32x8") as tape:
        kept = bt.Value(range(8))
        for _ in range(2000):
            kept = kept * 1.0
        tape.collect()
        assert kept.data.tolist() == list(range(8))
        with tape.scope():
            gone = kept + 1
        with pytest.raises(bt.StaleHandleError):
            _ = gone.data


def test_scratch_storage_on_other_dtypes() -> None:
    with bt.Tape("float16"):
        x = bt.Value(3.0)
        bt.backward_with_scratch_storage(x * x, bt.Scratch(16))
        assert x.grad == 6.0


def test_pictures_say_what_they_show() -> None:
    with bt.Tape("float32x8"), pytest.raises(ValueError, match="float64 or float32"):
        bt.viz.dot(bt.Value(1.0))


def test_unknown_dtypes_are_told() -> None:
    with pytest.raises(ValueError, match=r"float8.*float64, float32, float16, bfloat16"):
        bt.Tape("float8")
