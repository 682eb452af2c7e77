# tests/test_io.py — ranges and graphs: what is stored, what comes back, what is refused
# SPDX-License-Identifier: MIT
from __future__ import annotations

import io
import re
import zlib
from pathlib import Path
from typing import Any

import burtorch as bt
import numpy as np
import pytest
from conftest import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st

DTYPES = ["float64", "float32", "float16", "bfloat16", "float128", "float32x8", "dual64"]


def golden() -> bytes:
    """The stored graph that the C++ tests compare with, too."""
    text = (ROOT / "cpp_tests" / "data" / "graph.inc").read_text(encoding="utf-8")
    return bytes(int(n) for n in re.findall(r"\d+", text.partition("MIT")[2]))


def build() -> bt.Value:
    """The same graph, operation by operation, as build() in cpp_tests/io_graph_test.cpp."""
    a, b = bt.Value(-3.0, "a"), bt.Value(2.0)
    c = a + b
    d = a * b + b.pow3()
    c = c * 2.0 - a
    d = 3.0 / d
    e = bt.clamp(c, -1.5, 1.5)
    f = bt.Value(0.5)
    g = bt.reduce_sum([a, b, c]) + bt.reduce_max([a, b])
    h = bt.inner_product([a, b], [b, c]) + bt.inner_product_with_bias([a, b], [c, d], f)
    root = g * h + e
    root.name = "Wurzel √"
    return root


def stored(tape: bt.Tape) -> bytes:
    file = io.BytesIO()
    tape.save_graph(file)
    return file.getvalue()


def sealed(graph: bytes) -> bytes:
    """The graph with the size and the checksum that it should have."""
    rest = len(graph).to_bytes(8, "little") + graph[24:]
    return graph[:12] + zlib.crc32(rest).to_bytes(4, "little") + rest


# ---- ranges --------------------------------------------------------------------------------------


def test_a_range_is_what_numpy_reads(tmp_path: Path) -> None:
    with bt.Tape() as tape:
        values = [bt.Value(float(i)) for i in range(7)]
        tape.grads[:] = np.arange(7) + 100
        path = tmp_path / "range"
        tape.save(path)
        assert path.stat().st_size == 56
        assert np.fromfile(path).tolist() == [v.data for v in values]
        tape.save(str(path), 2, 4)
        assert np.fromfile(path).tolist() == [2, 3]
        tape.save(path, -2, what="grads", durable=True)
        assert np.fromfile(path).tolist() == [105, 106]
        tape.save(path, 5, what="both")
        assert np.fromfile(path).tolist() == [5, 6, 105, 106]
        np.array([10.0, 11.0]).tofile(path)
        assert tape.load(path, 3) == 2
        assert [v.data for v in values] == [0, 1, 2, 10, 11, 5, 6]
        assert tape.load(path, -2, what="grads") == 2
        assert values[6].grad == 11
    assert [each.name for each in tmp_path.iterdir()] == ["range"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_ranges_go_through_streams_and_bytes(dtype: str, tmp_path: Path) -> None:
    with bt.Tape(dtype) as tape:
        kept = [bt.Value(x) for x in (1.5, -0.0, 3.0)]
        file = io.BytesIO()
        tape.save(file, what="both")
        content = file.getvalue()
        raw = (tmp_path / "raw").open("wb", buffering=0)
        with raw:
            tape.save(raw, what="both")
        assert (tmp_path / "raw").read_bytes() == content
        for source in (io.BytesIO(content), content, bytearray(content), memoryview(content)):
            for v in kept:
                v.data = 9.0
            assert tape.load(source, what="both") == 3
            again = io.BytesIO()
            tape.save(again, what="both")
            assert again.getvalue() == content
        assert tape.load(np.frombuffer(content, np.uint8), what="both") == 3


def test_ranges_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with bt.Tape() as tape:
        kept = [bt.Value(1.0), bt.Value(2.0)]
        with pytest.raises(ValueError, match=r"nodes \[2, 1\) of a tape that holds 2"):
            tape.save(io.BytesIO(), 2, 1)
        with pytest.raises(IndexError, match="node 3 of a tape that holds 2"):
            tape.save(io.BytesIO(), 3)
        with pytest.raises(ValueError, match="13 bytes are not a number of nodes of 8 each"):
            tape.load(bytes(13))
        with pytest.raises(ValueError, match="16 bytes are 2 nodes; from 1 on the tape holds 1"):
            tape.load(bytes(16), 1)
        with pytest.raises(ValueError, match="unknown part 'all'; there are values, grads, both"):
            tape.save(io.BytesIO(), what="all")
        with pytest.raises(TypeError, match="a path or a binary file is needed, not int"):
            tape.save(3)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="a path, a binary file or bytes are needed, not int"):
            tape.load(3)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"read\(\) must give bytes, not str"):
            tape.load(io.StringIO("text"))  # type: ignore[arg-type]
        with pytest.raises(FileNotFoundError) as caught:
            tape.load(tmp_path / "none")
        assert caught.value.filename == tmp_path / "none"
        with pytest.raises(IsADirectoryError):
            tape.save(tmp_path)
        with pytest.raises(IsADirectoryError):
            tape.save(tmp_path, durable=True)
        assert [v.data for v in kept] == [1, 2]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_is_reported() -> None:
    with bt.Tape() as tape:
        kept = bt.Value(1.0)
        for durable in (False, True):
            with pytest.raises(OSError, match="No space left"):
                tape.save("/dev/full", durable=durable)
        with pytest.raises(OSError, match="No space left"):
            tape.save_graph("/dev/full")
        assert kept.data == 1
    assert Path("/dev/full").is_char_device()


# ---- graphs --------------------------------------------------------------------------------------


def test_a_graph_stored_in_python_is_the_one_stored_in_cpp() -> None:
    with bt.Tape() as tape:
        root = build()
        root.backward()
        mine, its = stored(tape), golden()
        # C++ stored a mark at the end, too: one byte more, and another number of them.
        marked = bt.load_graph(its)
        assert stored(marked) == mine
        assert len(its) == len(mine) + 1


def test_a_graph_stored_in_cpp_is_loaded_and_used() -> None:
    tape = bt.load_graph(golden())
    with bt.Tape():
        root = build()
        root.backward()
        assert (tape.values == root.tape.values).all()
        assert (tape.grads == root.tape.grads).all()
    again = tape.value("Wurzel √")
    assert again.index == len(tape) - 1
    tape.zero_grad()
    again.backward()
    assert tape.value("a").grad == tape.value(0).grad == root.tape.value(0).grad
    assert again.op == "add"


def blocks() -> bt.Value:
    x, w = bt.matrix(np.arange(12.0).reshape(4, 3) / 10), bt.matrix(np.ones((6, 3)) / 7)
    y = bt.affine(w, x, bt.vector(np.arange(6.0) / 5))
    y = bt.tanh(y) * 2.0 + 1.0 / (bt.exp(y) + y)
    y = bt.concat([bt.softmax(y), bt.log_softmax(y), y], axis=1)
    y = bt.attention(y, 2, 2)
    y = bt.layer_norm(y, bt.vector(np.ones(6)), bt.vector(np.zeros(6)))
    y = bt.gather(y @ bt.matrix(np.ones((6, 5))) - 0.5, [0, 3, 3])
    root: bt.Value = bt.cross_entropy(y, [0, 4, 2])
    return root


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_blocks_come_back_and_give_the_same_gradients(dtype: str, tmp_path: Path) -> None:
    with bt.Tape(dtype) as tape:
        root = blocks()
        root.backward()
        tape.save_graph(tmp_path / "graph.btg")
        again = bt.load_graph(tmp_path / "graph.btg")
        assert again.dtype == dtype
        assert (again.values == tape.values).all()
        assert (again.grads == tape.grads).all()
        again.zero_grad()
        again.value(-1).backward()
        assert (again.grads == tape.grads).all()
        assert stored(again) == stored(tape)


@pytest.mark.parametrize("dtype", DTYPES)
def test_graphs_of_every_dtype(dtype: str) -> None:
    with bt.Tape(dtype) as tape:
        x = bt.Value(0.5, "x")
        y = bt.tanh(x) * 2.0 + bt.reduce_sum([x, x])
        y.backward()
        again = bt.load_graph(stored(tape))
    assert again.dtype == dtype
    assert (again.values == tape.values).all()
    assert stored(again) == stored(tape)
    assert y.name is None


def test_a_loaded_graph_stays_until_it_is_collected() -> None:
    tape = bt.load_graph(golden())
    size = len(tape)
    value = tape.value(-1)
    del value  # the newest node has no Value any more
    with tape:
        for _ in range(1000):
            bt.Value(1.0)
    assert len(tape) > size
    first = tape.value(0)
    tape.collect()
    assert len(tape) == 1
    assert first.name == "a"
    with pytest.raises(KeyError, match="no node of this tape is called 'b'"):
        tape.value("b")
    with pytest.raises(IndexError, match="node 1 of a tape that holds 1"):
        tape.value(1)


def test_truncated_and_damaged_graphs_are_refused(tmp_path: Path) -> None:
    whole = golden()
    for n in range(0, len(whole), 7):
        with pytest.raises(ValueError, match="this graph can't be loaded"):
            bt.load_graph(whole[:n])
    for bit in range(0, 8 * len(whole), 11):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ValueError, match="this graph can't be loaded"):
            bt.load_graph(changed)
    with pytest.raises(ValueError, match="does not begin as graphs do"):
        bt.load_graph(b"PK\3\4 a zip file, say")
    with pytest.raises(ValueError, match="it holds 'float65', of which there are no tapes"):
        bt.load_graph(sealed(whole.replace(b"float64", b"float65")))
    with pytest.raises(ValueError, match=r"no such operation: 'pow4' of kind 1"):
        bt.load_graph(sealed(whole.replace(b"pow3", b"pow4")))
    with pytest.raises(IsADirectoryError):
        bt.load_graph(tmp_path)
    (tmp_path / "empty").touch()
    with pytest.raises(ValueError, match="does not begin as graphs do"):
        bt.load_graph(tmp_path / "empty")


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_graphs_with_anything_in_them_are_loaded_or_refused(data: Any) -> None:
    with bt.Tape() as tape:
        root = blocks()
        changed = bytearray(stored(tape))
        del root
    # Behind the numbers: names, operations, operands.
    first = 64 + 16 * int.from_bytes(changed[24:32], "little")
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(first, len(changed) - 1))
        changed[at] = data.draw(st.integers(0, 255))
    try:
        loaded = bt.load_graph(sealed(bytes(changed)))
    except ValueError:
        return
    loaded.value(-1).backward()


def test_marks_are_stored_too(tmp_path: Path) -> None:
    with bt.Tape() as tape:
        x = bt.Value(2.0, name="x")
        above_leaves = tape.mark()
        y = x * x
        above_all = tape.mark()
        tape.save_graph(tmp_path / "graph.btg", marks=[above_all, above_leaves])
    again, marks = bt.load_graph(tmp_path / "graph.btg", marks=True)
    assert len(marks) == 2
    again.rewind(marks[1])
    assert len(again) == 2
    again.rewind(marks[0])
    assert again.values.tolist() == [2.0]
    assert isinstance(bt.load_graph(tmp_path / "graph.btg"), bt.Tape)
    with pytest.raises(ValueError, match="mark is of another tape"):
        again.save_graph(tmp_path / "graph.btg", marks=[above_all])
    assert y.data == 4.0
