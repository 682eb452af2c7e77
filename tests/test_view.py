# tests/test_view.py — burtorch.View: shapes, elements, operations, life on a tape; blocks against PyTorch's numbers
# SPDX-License-Identifier: MIT
from __future__ import annotations

import copy
import json
import pickle
import random
from pathlib import Path
from typing import Any

import burtorch as bt
import numpy as np
import pytest
from conftest import ROOT

REFERENCE = json.loads((ROOT / "tests" / "data" / "block_reference.json").read_text("utf-8"))
DTYPES = ["float64", "float32"]
TOLERANCE = {"float64": 1e-12, "float32": 2e-5}


@pytest.fixture(autouse=True)
def tape() -> Any:
    with bt.Tape() as fresh:
        yield fresh


# ---- against PyTorch ------------------------------------------------------------------------------


def run(block: str, x: dict[str, bt.View], arguments: dict[str, Any]) -> Any:
    if block == "affine":
        return bt.affine(x["w"], x["x"], x["b"])
    if block == "affine_parts":
        return bt.affine(x["w"], [x["x1"], x["x2"], x["x3"]], x["b"])
    if block == "matmul":
        return x["a"] @ x["b"]
    if block == "concat":
        return bt.concat(list(x.values()), **arguments)
    if block in ("sum", "mean"):
        return getattr(x["x"], block)()
    if block in ("SelfAttention", "TransformerBlock"):
        return run_layer(block, x, **arguments)
    return getattr(bt, block)(*x.values(), **arguments)


def run_layer(name: str, x: dict[str, bt.View], size: int, heads: int, positions: int) -> bt.View:
    layer = getattr(bt.nn, name)(size, heads)
    attention = layer if name == "SelfAttention" else layer.attention
    attention.keys_queries_values = x["kqv"]
    attention.projection.weight, attention.projection.bias = x["weight"], x["bias"]
    if name == "TransformerBlock":
        parts = {"up": "up", "down": "down", "ln1": "norm1", "ln2": "norm2"}
        for short, attribute in parts.items():
            part = getattr(layer, attribute)
            part.weight, part.bias = x[short], x[f"{short}_bias"]
    y: bt.View = layer(x["x"], positions)
    return y


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", REFERENCE["cases"], ids=lambda c: c["block"])
def test_blocks_have_the_values_and_gradients_of_pytorch(case: dict[str, Any], dtype: str) -> None:
    with bt.Tape(dtype):
        x = {
            name: bt.vector(numbers) if np.ndim(numbers) == 1 else bt.matrix(numbers)
            for name, numbers in case["inputs"].items()
        }
        y = run(case["block"], x, case["arguments"])
        root = (
            y * case["adjoint"]
            if isinstance(y, bt.Value)
            else (y * np.array(case["adjoint"])).sum()
        )
        root.backward()

        def close(got: Any, want: Any) -> None:
            want = np.asarray(want)
            assert np.shape(got) == want.shape
            scale = max(1.0, np.abs(want).max())
            assert np.abs(np.asarray(got) - want).max() / scale < TOLERANCE[dtype]

        close(y.data, case["result"])
        for name, view in x.items():
            assert view.grad.dtype == dtype
            close(view.grad, case["gradients"][name])


# ---- shapes, elements, numbers --------------------------------------------------------------------


def test_vectors_and_matrices() -> None:
    v = bt.vector([1, 2, 3], name="v")
    m = bt.matrix(np.arange(6.0).reshape(3, 2))
    assert (v.shape, len(v), v.ndim, v.size, v.name) == ((3,), 3, 1, 3, "v")
    assert (m.shape, len(m), m.ndim, m.size, m.name) == ((3, 2), 3, 2, 6, None)
    assert v[1].name == "v[1]"
    assert isinstance(v[0], bt.Value)
    assert v[-1].data == 3.0
    assert m[1].shape == (2,)
    assert m[1, -1].data == 3.0
    assert m[1:].data.tolist() == [[2, 3], [4, 5]]
    assert m[2, :1].data.tolist() == [4]
    assert v[1:].data.tolist() == [2, 3]
    assert v[3:].shape == (0,)
    assert [x.data for x in v] == [1, 2, 3]
    assert [row.data.tolist() for row in m] == [[0, 1], [2, 3], [4, 5]]
    assert m.reshape(6).data.tolist() == [0, 1, 2, 3, 4, 5]
    assert m.reshape((2, 3))[1].data.tolist() == [3, 4, 5]
    assert repr(v) == "View([1., 2., 3.], name='v')"
    assert repr(m[:1]) == "View([[0., 1.]])"
    v.name = None
    assert v[1].name is None
    assert bt.vector([]).shape == (0,)
    assert bt.matrix(np.zeros((0, 3))).shape == (0, 3)


def test_arrays_are_of_values_or_refused() -> None:
    m = bt.matrix([[1, 2], [3, 4]])
    values = np.asarray(m, dtype=object)
    assert [[v.data for v in row] for row in values] == [[1, 2], [3, 4]]
    (values @ values)[0, 1].backward()
    assert m.grad.tolist() == [[2, 5], [0, 2]]
    assert bt.matrix(m) is m
    refused = pytest.raises(bt.GraphError, match=r"cut the graph silently; use \.data")
    for wrong in (
        lambda: np.asarray(m),
        lambda: np.array(m, dtype=np.float32),
        lambda: np.asarray([m, m]),
        lambda: bt.vector([m[0], m[1]]),
        lambda: np.einsum("ij->i", [m]),
        lambda: bt.grad(lambda x: x.sum())(m),
    ):
        with refused:
            wrong()
    with pytest.raises(ValueError, match="a vector has 1 dimension"):
        bt.vector(m)


def test_data_and_grad_are_copies_that_can_be_assigned() -> None:
    m = bt.matrix([[1, 2], [3, 4]])
    for numbers in (m.data, m.grad, m.data[0], m.data.T):
        with pytest.raises(ValueError, match=r"would be lost; .* view\.data = a"):
            numbers[0] = 100
    before = m.data
    a = m.data.copy()
    a[0, 0] = 100
    m.data = a
    assert (m.data[0, 0], before[0, 0]) == (100, 1)
    assert type(a) is type(m.data + 1) is type(m.data.sum(axis=0)) is np.ndarray
    assert type(m.data.max()) is np.float64
    for plain in (pickle.loads(pickle.dumps(m.data)), copy.copy(m.data), copy.deepcopy(m.data)):
        assert (type(plain), plain.flags.writeable, plain[0, 0]) == (np.ndarray, True, 100)
    assert repr(m.grad) == "array([[0., 0.],\n       [0., 0.]])"
    some = m.data[[1]]  # a copy of its own
    some[0, 0] = 7
    some += 1
    assert some.tolist() == [[8, 5]]
    m.data = [[5, 6], [7, 8]]
    assert m[1, 0].data == 7
    m.data -= 1  # what an optimizer writes
    assert m.data.tolist() == [[4, 5], [6, 7]]
    m.grad = 3
    assert m.grad.tolist() == [[3, 3], [3, 3]]
    m.zero_grad()
    assert not m.grad.any()


@pytest.mark.parametrize(
    ("mistake", "error", "message"),
    [
        (lambda v, m: bt.vector([[1]]), ValueError, r"a vector has 1 dimension, not the shape \(1, 1\)"),
        (lambda v, m: bt.matrix([1]), ValueError, r"a matrix has 2 dimensions or more, not the shape \(1,\)"),
        (lambda v, m: bt.vector(["a"]), TypeError, "expected numbers, not <U1"),
        (lambda v, m: bt.vector([1j]), TypeError, "expected numbers, not complex128"),
        (lambda v, m: bt.matrix([[1], [2, 3]]), ValueError, "inhomogeneous"),
        (lambda v, m: bt.vector([1], name=3), TypeError, "incompatible function arguments"),  # type: ignore[arg-type]
        (lambda v, m: v[3], IndexError, "element 3 of 3"),
        (lambda v, m: m[-3], IndexError, "row -3 of 2"),
        (lambda v, m: m[0, 3], IndexError, "column 3 of 3"),
        (lambda v, m: v[::0], ValueError, "step cannot be zero"),
        (lambda v, m: m[:, 3], IndexError, "index 3 is out of bounds for axis 1 with size 3"),
        (lambda v, m: v[[0, 3]], IndexError, "index 3 is out of bounds"),
        (lambda v, m: v[[True, False, True]], TypeError, r"use burtorch\.where"),
        (lambda v, m: m[m.data > 2], TypeError, r"use burtorch\.where"),
        (lambda v, m: v[[0.5]], TypeError, "indexed by integers, not by an array of float64"),
        (lambda v, m: v["a"], TypeError, "integers and slices, not str"),
        (lambda v, m: v[0, 0], IndexError, "too many indices"),
        (lambda v, m: m.reshape(4, 2), ValueError, r"\(2, 3\) can't become \(4, 2\)"),
        (lambda v, m: m.reshape(-1, 4), ValueError, r"\(2, 3\) can't become \(-1, 4\)"),
        (lambda v, m: m.reshape(-1, -1), ValueError, r"can't become \(-1, -1\)"),
        (lambda v, m: setattr(m, "data", [[1, 2]]), ValueError, r"data of shape \(1, 2\) for a View of shape \(2, 3\)"),
        (lambda v, m: setattr(v, "grad", [1]), ValueError, r"grad of shape \(1,\) for a View of shape \(3,\)"),
        (lambda v, m: setattr(v, "data", "x"), TypeError, "expected numbers"),
        (lambda v, m: v.backward(), ValueError, r"one number, not a View of shape \(3,\)"),
        (lambda v, m: m + bt.matrix([[1, 2], [3, 4]]), ValueError, r"add: \(2, 3\) does not go with \(2, 2\)"),
        (lambda v, m: m + np.zeros((3, 3)), ValueError, r"add: \(2, 3\) does not go with \(3, 3\)"),
        (lambda v, m: v + "a", TypeError, "unsupported operand"),
        (lambda v, m: "a" * v, TypeError, "non-int of type"),
        (lambda v, m: m @ m, ValueError, "matmul: 2×3 times 2×3"),
        (lambda v, m: m @ v[:2], ValueError, "matmul: 2×3 times 2×1"),
        (lambda v, m: v @ v[:2], ValueError, "inner product of 3 with 2"),
        (lambda v, m: m @ 3, TypeError, "unsupported operand"),
        (lambda v, m: bt.affine(m, v[:2]), ValueError, "the input has 2 columns, the weights are 2×3"),
        (lambda v, m: bt.affine(v, v), ValueError, r"W is a matrix, not of shape \(3,\)"),
        (lambda v, m: bt.affine(m, [1, 2]), TypeError, "each part of x is a View, not int"),  # type: ignore[arg-type]
        (lambda v, m: bt.affine(m, v, v), ValueError, "3 biases for weights of 2×3"),
        (lambda v, m: bt.softmax(3), TypeError, "x is a View, not int"),  # type: ignore[arg-type]
        (lambda v, m: bt.cross_entropy(m, [0]), ValueError, "1 targets for logits of 2×3"),
        (lambda v, m: bt.cross_entropy(m, [0, 3]), ValueError, "target 3 at position 1 is not between 0 and 3 - 1"),
        (lambda v, m: bt.cross_entropy(m, [0.5, 1]), TypeError, "expected integers, not float64"),
        (lambda v, m: bt.cross_entropy(m, 1), ValueError, r"logits of shape \(2, 3\) need targets of shape \(2,\), not \(\)"),
        (lambda v, m: bt.cross_entropy(m, [0, 1], "max"), ValueError, "'mean', 'sum' or 'none', not 'max'"),
        (lambda v, m: bt.layer_norm(m, v, v[:2]), ValueError, "3 weights and 2 biases for rows of 2×3"),
        (lambda v, m: bt.gather(m, [2]), ValueError, "index 2 at position 0"),
        (lambda v, m: bt.gather(m, [[[0]]]), ValueError, r"at most two dimensions, not the shape \(1, 1, 1\)"),
        (lambda v, m: bt.attention(m, 2), ValueError, "3 columns are not keys, queries and values of 2 heads"),
        (lambda v, m: bt.attention(m, 1, 3), ValueError, "2 rows are not sequences of 3 positions"),
        (lambda v, m: bt.concat([]), ValueError, "no views"),
        (lambda v, m: bt.concat([v, m]), ValueError, r"concat of shapes \(3,\) and \(2, 3\)"),
        (lambda v, m: bt.concat([m, m.reshape(3, 2)]), ValueError, r"concat of shapes \(2, 3\) and \(3, 2\)"),
        (lambda v, m: bt.concat([v], axis=1), ValueError, "axis 1"),
        (lambda v, m: bt.tanh("x"), TypeError, "a Value, a View or a number, not str"),  # type: ignore[call-overload]
        (lambda v, m: v.initialize("best", bt.Random()), ValueError, "unknown scheme 'best'; there are zeros, ones"),
        (lambda v, m: bt.Random().below(0), ValueError, "no such number"),
    ],
)  # fmt: skip
def test_mistakes_are_named_and_change_nothing(mistake: Any, error: Any, message: str) -> None:
    v, m = bt.vector([1, 2, 3]), bt.matrix([[1, 2, 3], [4, 5, 6]])
    with pytest.raises(error, match=message):
        mistake(v, m)
    assert v.data.tolist() == [1, 2, 3]
    assert m.data.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_two_tapes_do_not_mix() -> None:
    v = bt.vector([1, 2])
    with bt.Tape():
        w = bt.vector([1, 2])
        m = bt.matrix([[1, 2]])
    for mistake in (lambda: v + w, lambda: m @ v, lambda: bt.affine(m, v), lambda: v * w[0]):
        with pytest.raises(bt.TapeMismatchError, match="two different tapes"):
            mistake()


# ---- functions of NumPy ---------------------------------------------------------------------------

A = np.array([0.3, 0.7, 0.2])
B = np.array([[0.1, 0.4, 0.9], [0.6, 0.2, 0.5]])
BIG = np.array([1.0, np.inf, 3.0])

NAMESAKES = (
    "exp log sqrt tanh sin cos tan arcsin arccos arctan sinh cosh log1p expm1 square absolute "
)
NAMESAKES += "negative reciprocal positive sum mean prod var amax amin ravel"
NUMPY_FUNCTIONS = {
    **{name: getattr(np, name) for name in NAMESAKES.split()},
    "norm": np.linalg.norm,
    "add": lambda x: np.add(x, A),
    "array + view": lambda x: A + x,
    "array ** view": lambda x: A**x,
    "array @ view": lambda x: B @ x,
    "maximum": lambda x: np.maximum(x, 0.5),
    "minimum": lambda x: np.minimum(A[::-1], x),
    "power": lambda x: np.power(x, 3.0),
    "divide": lambda x: np.divide(1.0, x),
    "arctan2": lambda x: np.arctan2(x, A),
    "hypot": lambda x: np.hypot(A, x),
    "dot": lambda x: np.dot(x, x),
    "dot of a matrix": lambda x: np.dot(B, x),
    "matmul": lambda x: np.matmul(B, x),
    "inner": lambda x: np.inner(A, x),
    "vdot": lambda x: np.vdot(x, A),
    "outer": lambda x: np.outer(x, [1.0, 2.0]),
    "clip": lambda x: np.clip(x, 0.25, 0.5),
    "clip above": lambda x: np.clip(x, None, 0.5),
    "clip by arrays": lambda x: np.clip(x, A - 0.1, A + 0.1),
    "concatenate": lambda x: np.concatenate([x, A, x]),
    "stack": lambda x: np.stack([x, A]),
    "hstack": lambda x: np.hstack([x, x]),
    "vstack": lambda x: np.vstack([x, B]),
    "reshape": lambda x: np.reshape(x, (3, 1)),
    "where": lambda x: np.where([True, False, True], x, x * x),
    "where by a number": lambda x: np.where(A > 0.25, x, 7.0),
    "where beside infinity": lambda x: np.where([True, False, True], BIG, x),
}


@pytest.mark.parametrize("name", NUMPY_FUNCTIONS)
def test_functions_of_numpy_are_those_of_the_table(name: str) -> None:
    """They went through __array__, and every gradient was 0 without a word."""
    f = NUMPY_FUNCTIONS[name]
    numbers = np.array([0.3, 0.45, 0.2])
    x = bt.vector(numbers)
    y = f(x)
    assert isinstance(y, (bt.View, bt.Value))
    np.testing.assert_allclose(y.data, f(numbers), rtol=1e-14)
    weights = np.arange(1.0, np.size(f(numbers)) + 1).reshape(np.shape(f(numbers)))
    finite = np.isfinite(f(numbers))

    def weighted(z: np.ndarray) -> float:
        return float(np.sum(np.where(finite, weights * f(z), 0.0)))

    root = y * 1.0 if isinstance(y, bt.Value) else (y * weights).sum()
    root.backward()
    for i in range(3):
        step = np.eye(3)[i] * 1e-6
        slope = (weighted(numbers + step) - weighted(numbers - step)) / 2e-6
        assert x.grad[i] == pytest.approx(slope, rel=1e-6, abs=1e-8)
    if name == "where beside infinity":
        return

    def inside(v: Any) -> Any:
        z = f(bt.vector(v))
        return z if isinstance(z, bt.Value) else (z * weights).sum()

    compiled = bt.compile(inside, backend="replay")
    for at in (numbers, numbers + 0.01):
        assert compiled(at) == pytest.approx(weighted(at), rel=1e-12)


def test_the_gradient_of_a_product_by_numpy() -> None:
    f = bt.value_and_grad(lambda x: np.dot(bt.vector(x), bt.vector(x)))
    value, gradient = f([1.0, 2.0, 3.0])
    assert (value, gradient.tolist()) == (14.0, [2.0, 4.0, 6.0])


def test_what_numpy_asks_of_the_shape_only() -> None:
    with bt.Tape("float32"):
        m = bt.matrix([[1.0, 2.0]])
        assert (np.shape(m), np.ndim(m), np.size(m)) == ((1, 2), 2, 2)
        assert np.zeros_like(m).tolist() == [[0, 0]]
        assert np.ones_like(m).dtype == np.float32
        assert np.full_like(m, 3.0).tolist() == [[3, 3]]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x, a: np.einsum("i,i->", x, x),
        lambda x, a: np.tensordot(x, x),
        lambda x, a: np.sort(x),
        lambda x, a: np.cumsum(x),
        lambda x, a: np.sum(x, dtype=float),
        lambda x, a: np.std(x),
        lambda x, a: np.exp(x, out=a),
        lambda x, a: np.add.reduce(x),
        lambda x, a: np.multiply.outer(x, x),
        lambda x, a: np.floor(x),
        lambda x, a: np.isfinite(x),
        lambda x, a: np.less(a, x),
        lambda x, a: np.allclose(x, a),
        lambda x, a: np.linalg.norm(x, 1),
        lambda x, a: np.inner(x.reshape(1, 3), a),
        lambda x, a: np.where(x, a, a),
        lambda x, a: np.copyto(a, x),
        lambda x, a: a.__iadd__(x),
        lambda x, a: a.__eq__(x),
    ],
)
def test_functions_of_numpy_that_know_only_numbers_are_refused(wrong: Any) -> None:
    x, a = bt.vector([1.0, 2.0, 3.0]), np.zeros(3)
    with pytest.raises(bt.GraphError, match=r"numpy\..* would cut the graph silently; use \.data"):
        wrong(x, a)
    assert not a.any()


def test_a_detached_view() -> None:
    x = bt.matrix([[1.0, 2.0], [3.0, 4.0]])
    for cut in (x.detach(), bt.stop_gradient(x)):
        assert (cut.shape, cut.data.tolist(), cut[0, 0].op) == ((2, 2), x.data.tolist(), "leaf")
    (x * x.detach()).sum().backward()
    assert x.grad.tolist() == x.data.tolist()


def test_parts_that_nobody_else_holds() -> None:
    """affine() kept only pointers to what a list of one's own yields."""

    class Yields(list):  # type: ignore[type-arg]
        def __iter__(self) -> Any:
            return (bt.vector([float(i)]) for i in range(3))

    w = bt.matrix([[1.0, 10.0, 100.0]])
    for _ in range(50):
        assert bt.affine(w, Yields([w])).data.tolist() == [210]


# ---- operations -----------------------------------------------------------------------------------

OPERATIONS = {
    "x + y": lambda x, y: x + y,
    "x - y": lambda x, y: x - y,
    "x * y": lambda x, y: x * y,
    "x / y": lambda x, y: x / y,
    "x ** y": lambda x, y: x**y,
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize(
    "other", ["view", "row", "column", "value", "number", "array", "scalar array", "itself"]
)
def test_operators_do_what_they_do_to_single_values(name: str, other: str) -> None:
    numbers = np.array([[0.5, 1.5, 2.0], [1.25, 3.0, 0.75]])
    f = OPERATIONS[name]
    for swap in (False, True):
        x = bt.matrix(numbers)
        y: Any = {  # type: ignore[no-untyped-call]
            "view": lambda: bt.matrix(numbers[::-1]),
            "row": lambda: bt.vector([0.5, 2.0, 1.5]),
            "column": lambda: bt.matrix([[0.5], [2.0]]),
            "value": lambda: bt.Value(1.5),
            "scalar array": lambda: np.array(1.5),
            "number": lambda: 1.5,
            "array": lambda: numbers + 1,
            "itself": lambda x=x: x,  # type: ignore[misc]
        }[other]()
        z = f(y, x) if swap else f(x, y)  # type: ignore[no-untyped-call]
        assert z.shape == (2, 3)
        z.sum().backward()
        got = x.grad
        want = np.zeros((2, 3))
        single = [[bt.Value(a) for a in row] for row in numbers]
        beside = np.broadcast_to(y.data if isinstance(y, (bt.View, bt.Value)) else y, (2, 3))
        for i in range(2):
            for j in range(3):
                a = single[i][j]
                b = a if other == "itself" else bt.Value(beside[i, j])
                c = f(b, a) if swap else f(a, b)  # type: ignore[no-untyped-call]
                assert z[i, j].data == pytest.approx(c.data, rel=1e-14)
                c.backward()
                want[i, j] = a.grad
        np.testing.assert_allclose(got, want, rtol=1e-13)


def test_a_column_and_a_row_give_a_matrix() -> None:
    column, row = bt.matrix([[1.0], [2.0]]), bt.vector([3.0, 4.0, 5.0])
    z = column * row
    assert z.data.tolist() == [[3, 4, 5], [6, 8, 10]]
    z.sum().backward()
    assert column.grad.tolist() == [[12], [12]]
    assert row.grad.tolist() == [3, 3, 3]


def test_elements_between_bounds() -> None:
    x = bt.matrix([[-2.0, 0.5], [0.25, 3.0]])
    y = bt.clamp(x, 0, 1.0)
    assert y.data.tolist() == [[0, 0.5], [0.25, 1]]
    (y * 2).sum().backward()
    assert x.grad.tolist() == [[0, 2], [2, 0]]
    assert y[0, 1].op == "clamp"
    with pytest.raises(TypeError, match="expected numbers as bounds, not burtorch"):
        bt.clamp(x, x, 1.0)  # type: ignore[call-overload]


def test_elements_between_bounds_come_back_from_a_file(tmp_path: Path) -> None:
    with bt.Tape() as tape:
        root = bt.clamp(bt.vector([-2.0, 0.5, 3.0]), 0, 1).sum()
        tape.save_graph(tmp_path / "graph.btg")
    again = bt.load_graph(tmp_path / "graph.btg")
    assert again.value(-1).data == root.data == 1.5
    again.value(-1).backward()
    assert again.grads[:3].tolist() == [0, 1, 0]


def test_powers_negation_and_reflected_operands() -> None:
    x = bt.vector([1.0, 2.0])
    assert [(x**n)[0].op for n in (2, 3, -1, 0.5)] == ["sqr", "pow3", "inv", "pow"]
    assert (-x).data.tolist() == [-1, -2]
    assert abs(-x).data.tolist() == [1, 2]
    assert (2 * x).data.tolist() == [2, 4]
    assert (2 - x).data.tolist() == [1, 0]
    assert (bt.Value(3.0) * x).data.tolist() == [3, 6]
    assert (np.array([3.0, 5.0]) - x).data.tolist() == [2, 3]
    assert (np.float64(3.0) - x).data.tolist() == [2, 1]


UNARY = [n for n in dir(bt.View) if n in dir(bt.Value) and not n.startswith("_")]
UNARY = [n for n in UNARY if callable(getattr(bt.Value, n)) and n not in {"backward", "detach"}]


@pytest.mark.parametrize("name", UNARY)
def test_every_function_of_one_number_takes_a_view(name: str) -> None:
    numbers = [0.25, 0.5, 0.75]
    x = bt.vector(numbers)
    y = getattr(bt, name)(x)
    assert getattr(x, name)().data.tolist() == y.data.tolist()
    y.sum().backward()
    for number, got, slope in zip(numbers, y.data, x.grad):
        one = bt.Value(number)
        z = getattr(bt, name)(one)
        z.backward()
        assert got == pytest.approx(z.data, rel=1e-13)
        assert slope == pytest.approx(one.grad, rel=1e-12)


def test_functions_of_two_take_views() -> None:
    x = bt.vector([3.0, 8.0])
    assert bt.hypot(x, 4.0)[0].data == 5
    assert bt.hypot(6.0, x)[1].data == 10
    assert bt.max(x, bt.Value(5.0)).data.tolist() == [5, 8]
    assert bt.max(bt.Value(5.0), x).data.tolist() == [5, 8]
    with pytest.raises(TypeError, match="expected Values or numbers, not str"):
        bt.hypot("a", 1.0)  # type: ignore[call-overload]


def test_products_of_vectors_and_matrices() -> None:
    rng = np.random.default_rng(1)
    a, b, u, v = (
        rng.normal(size=(3, 4)),
        rng.normal(size=(4, 2)),
        rng.normal(size=3),
        rng.normal(size=4),
    )
    matrices = bt.matrix(a), bt.matrix(b), bt.vector(u), bt.vector(v)
    m, n, x, y = matrices
    np.testing.assert_allclose((m @ n).data, a @ b)
    np.testing.assert_allclose((m @ y).data, a @ v)
    np.testing.assert_allclose((x @ m).data, u @ a)
    np.testing.assert_allclose((y @ y).data, v @ v)
    np.testing.assert_allclose((m @ b).data, a @ b)
    np.testing.assert_allclose((a @ y).data, a @ v)
    assert [(m @ n).shape, (m @ y).shape, (x @ m).shape] == [(3, 2), (3,), (4,)]
    assert isinstance(y @ y, bt.Value)
    np.testing.assert_allclose(bt.affine(m, [y[:1], y[1:]], x).data, a @ v + u)
    np.testing.assert_allclose(bt.affine(m, n.reshape(2, 4)).data, b.reshape(2, 4) @ a.T)


def test_sums_means_and_reductions_of_the_table() -> None:
    m = bt.matrix([[1, 2], [3, 6]])
    assert (m.sum().data, m.mean().data) == (12, 3)
    assert bt.reduce_sum(m[0]).data == 3
    assert bt.inner_product(m[0], m[1]).data == 15
    m.mean().backward()
    assert m.grad.tolist() == [[0.25, 0.25], [0.25, 0.25]]
    assert bt.vector([]).sum().data == 0


def test_concat_gather_and_cross_entropy() -> None:
    m = bt.matrix([[1, 2], [3, 4]])
    v = bt.vector([5, 6])
    assert bt.concat([v, v[:1]]).data.tolist() == [5, 6, 5]
    assert bt.concat([m, m]).shape == (4, 2)
    side = bt.concat([m, m], axis=-1)
    assert side.data.tolist() == [[1, 2, 1, 2], [3, 4, 3, 4]]
    (side * np.array([[1, 2, 3, 4], [5, 6, 7, 8]])).sum().backward()
    assert m.grad.tolist() == [[4, 6], [12, 14]]
    assert bt.gather(m, [1, 0, 1]).data.tolist() == [[3, 4], [1, 2], [3, 4]]
    assert bt.gather(m, [[1, 0]]).data.tolist() == [[3, 4, 1, 2]]
    assert bt.gather(m, 1).shape == (2,)
    assert bt.gather(m, []).shape == (0, 2)
    one = bt.cross_entropy(v, 1)
    assert isinstance(one, bt.Value)
    assert one.data == pytest.approx(np.log1p(np.exp(-1)))
    assert bt.cross_entropy(m, np.array([0, 1]), reduction="none").shape == (2,)


def test_one_number_goes_backward() -> None:
    x = bt.vector([2.0])
    y = x**2
    y.backward()
    assert x.grad.tolist() == [4]
    assert y[0].op == "sqr"


# ---- life on a tape -------------------------------------------------------------------------------


def test_what_is_not_named_any_more_is_dropped(tape: bt.Tape) -> None:
    x = bt.vector([1, 2, 3])
    y = bt.tanh(x)
    part = y[:2]  # keeps the block
    one = y[0]
    assert len(tape) == 6
    del y
    assert len(tape) == 6
    assert part.data[1] == np.tanh(2.0)
    del one
    del part
    assert len(tape) == 3
    z = (x * 2).sum()
    assert len(tape) == 7
    del z
    assert len(tape) == 3
    constant = x[0] * 5.0
    del x
    assert len(tape) == 4  # its element lives on in the operation
    constant.backward()


def test_collect_moves_views_and_keeps_their_graph(tape: bt.Tape) -> None:
    junk = bt.vector(np.arange(100.0))
    w = bt.matrix([[1.0, 2.0], [3.0, 4.0]])
    more = junk * 2
    y = bt.softmax(w @ w)
    row = y[1]
    empty = bt.vector([])
    loss = row[0] * 3.0
    loss.backward()
    grad, data = w.grad, y.data
    del junk, more
    tape.collect()
    assert len(tape) == 4 + 4 + 4 + 1
    assert (w.grad == grad).all()
    assert (y.data == data).all()
    assert (row.data == data[1]).all()
    assert empty.shape == (0,)
    w.zero_grad()
    loss.backward()
    assert (w.grad == grad).all()


def test_a_long_loop_takes_no_more_memory(tape: bt.Tape) -> None:
    w = bt.matrix(np.eye(4))
    x = bt.vector([1.0, 2.0, 3.0, 4.0])
    sizes = []
    for _ in range(300):
        h = bt.tanh(w @ x)
        loss = (h * h).mean()
        w.zero_grad()
        loss.backward()
        w.data -= 0.1 * w.grad
        sizes.append(len(tape))
    assert max(sizes) < 300  # what rebinding names leaves behind is squeezed out in time
    assert loss.data < 0.1


def test_rewound_views_raise(tape: bt.Tape) -> None:
    x = bt.vector([1, 2])
    with tape.scope():
        y = x * 2
        inner = y[0]
    for use in (lambda: y.data, lambda: y + 1, lambda: y[0], lambda: y.shape, lambda: len(y)):
        with pytest.raises(bt.StaleHandleError, match="rewound"):
            use()
    with pytest.raises(bt.StaleHandleError):
        inner.backward()
    assert repr(y) == "<a View whose nodes were rewound>"
    bt.vector([5, 6])
    with pytest.raises(bt.StaleHandleError):
        y.data  # noqa: B018
    y = x * 3  # the stale one goes, and takes nothing along
    assert y.data.tolist() == [3, 6]


def test_args_of_results_of_blocks_are_values() -> None:
    x = bt.vector([1.0, 2.0])
    y = bt.tanh(x)
    first, last = x[0], x[1]
    args = y[0].args
    assert len(args) == 2
    assert args[0] is first
    assert args[1] is last
    del first, last, args
    assert [a.data for a in y[1].args] == [1.0, 2.0]  # only the View names them now


def test_random_programs_of_views_and_values_never_confuse_nodes(tape: bt.Tape) -> None:
    chance = random.Random(1)
    held: list[tuple[Any, Any]] = []  # what lives, with the numbers it must show
    for _ in range(3000):
        choice = chance.random()
        if choice < 0.2 or not held:
            numbers = np.array([chance.uniform(-1, 1) for _ in range(chance.randint(1, 5))])
            held.append((bt.vector(numbers), numbers))
        elif choice < 0.5:
            x, numbers = chance.choice(held)
            held.append((bt.tanh(x), np.tanh(numbers)))
        elif choice < 0.6:
            x, numbers = chance.choice(held)
            if isinstance(x, bt.View):
                i = chance.randrange(len(x))
                held.append((x[i:], numbers[i:]) if chance.random() < 0.5 else (x[i], numbers[i]))
        elif choice < 0.65:
            tape.collect()
        else:
            held.pop(chance.randrange(len(held)))
        if held:
            x, numbers = chance.choice(held)
            np.testing.assert_allclose(x.data, numbers, rtol=1e-13)
    held.clear()
    del x
    tape.collect()
    assert len(tape) == 0


# ---- random numbers -------------------------------------------------------------------------------


def test_the_generator_is_the_same_everywhere() -> None:
    r = bt.Random(42)
    assert r.bits() == 0x15780B2E0C2EC716
    assert r.uniform() == float.fromhex("0x1.84136619b444ep-2")
    state = r.state
    numbers = [r.normal(), r.uniform(-1, 1), r.below(10)]
    r.state = state
    assert [r.normal(), r.uniform(-1, 1), r.below(10)] == numbers


def test_schemes_by_name() -> None:
    m = bt.matrix(np.zeros((40, 60)))
    for scheme, largest in (
        ("linear", 60**-0.5),
        ("xavier_uniform", (6 / 100) ** 0.5),
        ("glorot_uniform", (6 / 100) ** 0.5),
        ("he_uniform", (6 / 60) ** 0.5),
    ):
        m.initialize(scheme, bt.Random(1))
        assert 0.98 * largest < np.abs(m.data).max() <= largest
    m.initialize("kaiming_normal", bt.Random(1), inputs=8)
    assert m.data.std() == pytest.approx(0.5, rel=0.05)


def test_views_are_of_the_dtypes_that_the_kernels_are_made_for() -> None:
    wrong = pytest.raises(ValueError, match="need a tape of dtype float64 or float32")
    with bt.Tape("float16"), wrong:
        bt.vector([1.0])


def test_arrays_are_data_beside_views() -> None:
    x = np.arange(6.0).reshape(2, 3)
    w, b = bt.matrix([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), bt.vector([1.0, -1.0])
    for made in (lambda x: bt.affine(w, x, b), lambda x: bt.affine(w, [x], b), lambda x: w * x):
        gradients = []
        for given in (bt.matrix(x), x):
            w.zero_grad()
            (made(given) ** 2).sum().backward()
            gradients.append(w.grad)
        np.testing.assert_array_equal(*gradients)  # type: ignore[arg-type]
    node = (w * x)[0, 1]
    node.backward()
    data = node.args[6:]  # a block's elements have all of its operands
    assert [v.data for v in data] == x.ravel().tolist()
    assert {v.grad for v in data} == {0.0}  # nobody asked for it, and nothing was spent on it
    with pytest.raises(ValueError, match="columns"):
        bt.affine(w, np.zeros((2, 4)), b)  # type: ignore[arg-type]
