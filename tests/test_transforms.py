# tests/test_transforms.py — grad, value_and_grad, check_grad, and scipy on top of them
# SPDX-License-Identifier: MIT
from __future__ import annotations

import asyncio
from typing import Any

import burtorch as bt
import numpy as np
import pytest
from burtorch import _native, transforms
from conftest import operations


def rosenbrock(x: Any) -> object:
    return sum(100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2 for i in range(len(x) - 1))


def test_gradients_have_the_shape_of_their_argument() -> None:
    assert bt.grad(lambda x: x**3)(2.0) == 12.0
    value, gradient = bt.value_and_grad(lambda x: (x * x).sum())(np.arange(6.0).reshape(2, 3))
    assert value == 55.0
    assert gradient.tolist() == [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]
    value, (gx, gy) = bt.value_and_grad(lambda x, y: x * y[0] + y[1])(3.0, [4.0, 5.0])
    assert (value, gx, gy.tolist()) == (17.0, 4.0, [3.0, 1.0])


def test_nothing_stays_on_the_tape() -> None:
    with bt.Tape() as tape:
        bt.grad(rosenbrock)([1.0, 2.0, 3.0])
        assert len(tape) == 0


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float128"])
def test_gradients_of_values_from_outside_stay(dtype: str) -> None:
    with bt.Tape(dtype):
        w = bt.Value(3.0)
        twice = w * 2
        root = twice * w
        root.backward()
        assert bt.grad(lambda x: x * w * twice)(2.0) == 18.0
        assert bt.jacobian(lambda x: [x[0] * w, x[0] * twice], [2.0]).tolist() == [[3.0], [6.0]]
        assert (w.grad, twice.grad, root.grad) == (12.0, 3.0, 1.0)
        root.backward()  # what was given back is not added again
        assert (w.grad, twice.grad, root.grad) == (24.0, 3.0, 1.0)


def test_gradients_stay_where_a_function_fails() -> None:
    w = bt.Value(3.0)

    def fails(x: Any) -> object:
        (x * w).backward()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        bt.grad(fails)(1.0)
    assert w.grad == 0.0


def test_check_grad_sweeps_once(monkeypatch: pytest.MonkeyPatch) -> None:
    swept = []
    monkeypatch.setattr(transforms, "backward", lambda root: (swept.append(root), root.backward()))  # type: ignore[func-returns-value]
    w = bt.Value(3.0)
    assert bt.check_grad(lambda x, y: x * w + (y * y).sum(), 2.0, [1.0, 2.0]) < 1e-6
    assert (len(swept), w.grad) == (1, 0.0)


@pytest.mark.parametrize("x", [np.array([1.0 + 2.0j]), np.complex64(1.0 + 2.0j), [1j], 1j])
def test_complex_numbers_are_refused(x: Any) -> None:
    for call in (bt.grad(lambda x: x), lambda x: bt.check_grad(lambda x: x, x)):
        with pytest.raises(TypeError, match="not of complex ones"):
            call(x)
    with pytest.raises(TypeError, match="not of complex ones"):
        bt.jvp(lambda x: x, x, x)


def test_a_constant_function() -> None:
    value, gradient = bt.value_and_grad(lambda x: 3.0)([1.0, 2.0])
    assert (value, gradient.tolist()) == (3.0, [0.0, 0.0])


@pytest.mark.parametrize(
    ("f", "arguments", "message"),
    [
        (lambda x: [x], (1.0,), "must return one Value or number, not list"),
        (lambda: 1.0, (), "no arguments"),
    ],
)
def test_misuse(f: Any, arguments: tuple[float, ...], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        bt.grad(f)(*arguments)


def test_check_grad_accepts_and_refuses() -> None:
    assert bt.check_grad(rosenbrock, [0.3, -0.7, 1.1]) < 1e-6
    assert bt.check_grad(lambda x, y: bt.exp(x) * y.sum(), 1.0, [2.0, 3.0]) < 1e-6

    def cut(x: Any) -> object:  # takes the number out and so loses a part of the gradient
        return x[0] * x[1].data

    with pytest.raises(bt.GradientError, match=r"argument 0\[1\]: gradient 0, differences 2"):
        bt.check_grad(cut, [2.0, 3.0])


def test_scipy_minimizes_rosenbrock() -> None:
    optimize = pytest.importorskip("scipy.optimize")
    found = optimize.minimize(bt.value_and_grad(rosenbrock), [-1.2, 1.0, 0.5], jac=True)
    assert found.success
    assert np.allclose(found.x, 1.0, atol=1e-4)


# ---- transforms inside of transforms -----------------------------------------------------------------


def test_the_issue_of_nesting() -> None:
    assert bt.value_and_grad(lambda x: bt.grad(lambda z: z * z * x)(3.0))(2.0) == (12.0, 6.0)
    assert bt.grad(bt.grad(lambda x: x**3))(2.0) == 12.0


def test_three_levels_and_more() -> None:
    f: Any = bt.sin
    for expected in (np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x), np.sin, np.cos):
        f = bt.grad(f)
        assert f(0.7) == pytest.approx(expected(0.7), rel=1e-12)

    def outer(x: Any) -> Any:
        return bt.grad(lambda y: bt.grad(lambda z: bt.exp(x * y * z))(3.0) * y)(2.0)

    x, y, z = 0.1, 2.0, 3.0  # d/dy of x·y²·e^(xyz), and its derivative by x
    e = np.exp(x * y * z)
    value = (2 * x * y + x * y * y * x * z) * e
    slope = (2 * y + 2 * x * y * y * z) * e + value * y * z
    assert bt.value_and_grad(outer)(0.1) == pytest.approx((value, slope), rel=1e-12)


def test_perturbations_are_not_confused() -> None:
    assert bt.grad(lambda x: x * bt.grad(lambda z: x * z)(x))(3.0) == 6.0  # x·x
    assert bt.grad(lambda x: x * bt.grad(lambda z: x * z)(1.0))(3.0) == 6.0
    assert bt.grad(lambda x: bt.grad(lambda z: z * z * x)(x))(3.0) == 12.0  # 2x·x
    assert bt.grad(lambda x: bt.grad(lambda _: x * x)(x) + x)(3.0) == 1.0
    # The inner function uses its argument and the outer variable, which have the same number.
    assert bt.grad(lambda x: bt.grad(lambda z: (z - x) * (z + x))(x))(5.0) == 2.0


def test_an_adjoint_that_is_0_only_here_has_a_derivative() -> None:
    assert bt.value_and_grad(lambda x: bt.grad(lambda z: (x - 2) * z**2)(3.0))(2.0) == (0.0, 6.0)
    assert bt.grad(lambda x: bt.grad(lambda z: bt.exp(z) * (x - 2) ** 2)(0.0))(2.0) == 0.0


def test_a_factor_of_0_hides_what_is_not_finite() -> None:
    f = lambda x: bt.grad(lambda z: bt.sqrt(z) * 0.0 + z * x)(0.0) * x  # noqa: E731
    assert bt.value_and_grad(f)(3.0) == (9.0, 6.0)


def test_values_and_gradients_inside_are_values_of_the_outer() -> None:
    def f(x: Any) -> Any:
        value, (gy, gz) = bt.value_and_grad(lambda y, z: y * z[0] + z[1] * x)(x, [x * 2, 5.0])
        assert isinstance(value, bt.Value)
        assert isinstance(gy, bt.Value)
        assert gz.shape == (2,)
        return value + gy * 10 + gz[0] * 100 + gz[1] * 1000  # x·2x + 5x + 2x·10 + x·100 + x·1000

    assert bt.value_and_grad(f)(3.0) == (2 * 9 + 1125 * 3.0, 4 * 3 + 1125.0)


def test_inner_arguments_may_be_views_and_arrays() -> None:
    def f(x: Any) -> Any:
        view = bt.vector(x) if isinstance(x, np.ndarray) else x
        return (bt.grad(lambda z: (z * z * z).sum())(view) * np.array([1.0, 10.0, 100.0])).sum()

    value, gradient = bt.value_and_grad(f)([1.0, 2.0, 3.0])
    assert value == 3 * (1 + 40 + 900)
    assert gradient.tolist() == [6.0, 120.0, 1800.0]
    with pytest.raises(TypeError, match="numbers and Values, not of str"):
        bt.grad(lambda x: bt.grad(lambda z: z)("3"))(2.0)


def test_views_are_not_taken_for_their_numbers() -> None:
    assert bt.jacobian(lambda x: bt.vector(x) * 2.0, [1.0, 2.0]).tolist() == [[2, 0], [0, 2]]
    assert bt.jacobian(lambda x: [bt.vector(x), bt.vector(x) * x[0]], [3.0, 4.0]).tolist() == [
        [[1, 0], [0, 1]],
        [[6, 0], [4, 3]],
    ]

    def f(x: Any) -> Any:  # an argument that is a list of views: the sum of the squares' slopes
        views = [bt.vector(x), bt.vector(x) * 3.0]
        return bt.grad(lambda z: (z * z).sum())(views).sum()

    assert bt.value_and_grad(f)([1.0, 2.0])[1].tolist() == [8.0, 8.0]
    with pytest.raises(ValueError, match="different shapes"):
        bt.grad(lambda x: bt.grad(lambda z: z[0])([[x], [x, x]]))(1.0)


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float128", "dual64"])
def test_nesting_on_other_tapes(dtype: str) -> None:
    with bt.Tape(dtype) as tape:
        assert np.ravel(bt.grad(bt.grad(lambda x: x**3))(2.0))[0] == 12.0
        assert len(tape) == 0


def test_lanes_do_not_nest() -> None:
    with bt.Tape("float64x4"), pytest.raises(ValueError, match="without lanes"):
        bt.grad(bt.grad(lambda x: x**3))(2.0)


def test_nesting_forgets_and_gives_back() -> None:
    with bt.Tape() as tape:
        w = bt.Value(3.0)
        (w * 2).backward()
        before = len(tape)
        assert bt.grad(bt.grad(lambda x: x**3 * w))(2.0) == 36.0
        assert (len(tape), w.grad) == (before, 2.0)


def test_outside_of_transforms_numbers_come_out() -> None:
    x = bt.Value(2.0)
    assert bt.grad(lambda z: z * z * x)(3.0) == 12.0
    slopes = []
    with pytest.raises(ZeroDivisionError):
        bt.grad(lambda x: slopes.append(bt.grad(bt.sqr)(x)) or 1 / 0)(2.0)  # type: ignore[func-returns-value]
    assert isinstance(slopes[0], bt.Value)
    assert bt.grad(bt.sqr)(3.0) == 6.0  # what failed inside left nothing behind


def test_a_tape_of_its_own_inside() -> None:
    def f(x: Any) -> Any:
        with bt.Tape():
            slope = bt.grad(lambda z: z**3)(2.0)
        return x * slope

    assert bt.value_and_grad(f)(3.0) == (36.0, 12.0)


def test_threads_and_tasks_do_not_see_each_others_transforms() -> None:
    import threading

    found: list[Any] = []

    def f(x: Any) -> Any:
        thread = threading.Thread(target=lambda: found.append(bt.grad(bt.sqr)(3.0)))
        thread.start()
        thread.join()
        return x * found[-1]

    assert bt.value_and_grad(f)(2.0) == (12.0, 6.0)

    async def task(k: float) -> float:
        await asyncio.sleep(0)
        slope = bt.grad(lambda x: bt.grad(lambda z: z * z * x)(k))(1.0)
        await asyncio.sleep(0)
        return slope + bt.grad(bt.sqr)(k)  # type: ignore[no-any-return]

    async def tasks() -> list[float]:
        return await asyncio.gather(*(task(float(k)) for k in range(4)))

    assert asyncio.run(tasks()) == [0.0, 4.0, 8.0, 12.0]


UNARY, BINARY, REDUCTIONS = operations("x"), operations("x, y"), operations("x₁, …, xₙ")


def every_operation() -> dict[str, Any]:
    """Functions of two numbers that go through one operation of the table each."""
    all_: dict[str, Any] = {}
    for name in UNARY:
        f = getattr(bt, name)
        all_[name] = lambda x, f=f: f(x[0] * x[1])
    for name in BINARY:
        f = getattr(bt, name)
        all_[name] = lambda x, f=f: f(x[0] * x[1], x[1] * x[1])
        all_[name + " number"] = lambda x, f=f: f(x[0] * x[1], 0.75)
        all_["number " + name] = lambda x, f=f: f(0.75, x[0] * x[1])
    for name in REDUCTIONS:
        f = getattr(bt, name)
        all_[name] = lambda x, f=f: f([x[0] * x[1], x[1] * x[1], x[0]])
    all_["clamp"] = lambda x: bt.clamp(x[0] * x[1], -0.5, 0.5) * x[0]
    all_["inner_product"] = lambda x: bt.inner_product([x[0], x[1] * x[0]], [x[1], x[1]])
    all_["inner_product_with_bias"] = lambda x: bt.inner_product_with_bias(
        [x[0]], [x[1]], x[0] * x[1]
    )
    return all_


OPERATIONS = every_operation()
del OPERATIONS["mul_by_constant"]  # what it gives is no function's derivative: see below


@pytest.mark.parametrize("name", OPERATIONS)
def test_second_derivatives_of_every_operation(name: str) -> None:
    f = OPERATIONS[name]
    for x in ([0.3, 0.8], [0.9, 0.7]):
        expected = bt.hessian(f, x)
        nested = bt.jacobian(bt.grad(f), x)
        assert nested == pytest.approx(expected, rel=1e-11, abs=1e-12)
        compiled = bt.compile(bt.grad(f), backend="replay")
        compiled([0.61, 0.53])  # recorded elsewhere
        assert compiled(x) == pytest.approx(bt.grad(f)(x), rel=1e-12, abs=1e-15)
        assert compiled.jacobian(x) == pytest.approx(expected, rel=1e-11, abs=1e-12)
        assert bt.jvp(bt.grad(f), x, [1.0, 0.0])[1] == pytest.approx(
            expected[0], rel=1e-11, abs=1e-12
        )


def test_a_factor_that_is_not_differentiated() -> None:
    f = lambda x: bt.mul_by_constant(x[0] * x[1], x[1] * x[1])  # noqa: E731
    assert bt.jacobian(bt.grad(f), [0.5, 2.0]).tolist() == [[0.0, 4.0], [4.0, 0.0]]
    c = bt.compile(bt.grad(f), backend="replay")
    assert c.jacobian([0.5, 3.0]).tolist() == [[0.0, 9.0], [9.0, 0.0]]


KINKS: dict[str, tuple[Any, list[Any]]] = {
    "relu": (lambda x: bt.relu(x[0]) * x[1], [[-1.0, 2.0], [1.5, 2.0]]),
    "abs": (lambda x: bt.abs(x[0]) * x[0] * x[1], [[-1.0, 2.0], [1.5, 2.0]]),
    "max": (lambda x: bt.max(x[0] * x[0], x[1] * x[1] * x[1]), [[3.0, 1.0], [1.0, 3.0]]),
    "min": (lambda x: bt.min(x[0] * x[0], x[1] * x[1] * x[1]), [[3.0, 1.0], [1.0, 3.0]]),
    "clamp": (
        lambda x: bt.clamp(x[0] * x[1], -1.0, 1.0) * x[0],
        [[0.5, 0.5], [3.0, 1.0], [3.0, -1.0]],
    ),
    "reduce_max": (
        lambda x: bt.reduce_max([x[0] ** 2, x[1] ** 2, x[0] * x[1]]),
        [[3.0, 1.0], [1.0, 3.0], [-2.0, -1.0]],
    ),
    "pow": (lambda x: bt.pow(x[0], x[1]) * x[1], [[0.5, 2.0], [2.0, 0.5]]),
    "hypot": (lambda x: bt.hypot(x[0], x[1]) * x[1], [[0.5, 2.0], [-2.0, 0.5]]),
    "gelu": (lambda x: bt.gelu(x[0]) * x[1], [[-50.0, 2.0], [2.0, 0.5], [-1.0, 1.0]]),
}


@pytest.mark.parametrize("name", KINKS)
@pytest.mark.parametrize("backend", ["replay", "native"])
def test_a_compiled_gradient_takes_the_branch_of_its_point(name: str, backend: str) -> None:
    if backend == "native" and not _native.compiler():
        pytest.skip("there is no C compiler")
    f, points = KINKS[name]
    compiled = bt.compile(bt.grad(f), backend=backend)
    one = bt.compile(lambda x: bt.grad(f)(x) @ np.array([1.0, 2.0]), backend=backend)
    for x in points:
        assert compiled(x) == pytest.approx(bt.grad(f)(x), rel=1e-12, abs=1e-300)
        assert compiled.jacobian(x) == pytest.approx(bt.hessian(f, x), rel=1e-11, abs=1e-13)
    values, rows = one.batch(np.array(points * 5))
    for x, value, row in zip(points, values, rows):
        assert value == pytest.approx(bt.grad(f)(x) @ [1.0, 2.0], rel=1e-12, abs=1e-300)
        assert row == pytest.approx([1.0, 2.0] @ bt.hessian(f, x), rel=1e-11, abs=1e-13)


AT_KINKS: dict[str, tuple[Any, list[float]]] = {
    "relu": (lambda x: bt.relu(x[0]) * x[1], [0.0, 2.0]),
    "relu of the smallest": (lambda x: bt.relu(x[0]) * x[1], [5e-324, 2.0]),
    "abs": (lambda x: bt.abs(x[0]) * x[1], [0.0, 2.0]),
    "max": (lambda x: bt.max(x[0] * x[1], x[1] * x[1]), [2.0, 2.0]),
    "min": (lambda x: bt.min(x[0] * x[1], x[1] * x[1]), [2.0, 2.0]),
    "clamp": (lambda x: bt.clamp(x[0], -1.0, 1.0) * x[1], [1.0, 2.0]),
    "reduce_max": (lambda x: bt.reduce_max([x[0], x[1], x[0]]) * x[1], [2.0, 2.0]),
    "hypot": (lambda x: bt.hypot(x[0], x[1]), [0.0, 0.0]),
    "pow": (lambda x: bt.pow(x[0], x[1]), [0.0, 2.0]),
    "silu": (lambda x: bt.silu(x[0]) * x[1], [-800.0, 1.0]),
}


@pytest.mark.parametrize("name", AT_KINKS)
def test_a_compiled_gradient_at_the_kink_itself(name: str) -> None:
    f, x = AT_KINKS[name]
    compiled = bt.compile(bt.grad(f), backend="replay")
    compiled([0.61, 0.53])
    assert compiled(x).tolist() == bt.grad(f)(x).tolist()
    assert compiled.jacobian(x).tolist() == bt.jacobian(bt.grad(f), x).tolist()


def test_forward_mode_around_reverse_mode_and_back() -> None:
    f = lambda x: bt.exp(x[0]) * x[1] ** 3  # noqa: E731
    x = [0.5, 2.0]
    expected = bt.hessian(f, x)
    assert bt.jvp(bt.grad(f), x, [0.0, 1.0])[1] == pytest.approx(expected[1])
    assert bt.jacobian(bt.grad(f), x) == pytest.approx(expected)
    # by a variable outside: d/da of a·H·v, and the like
    for inner in (
        lambda a: bt.hvp(lambda z: f(z) * a, x, [1.0, 0.0])[1][1],  # type: ignore[no-untyped-call]
        lambda a: bt.hessian(lambda z: f(z) * a, x)[0, 1],  # type: ignore[no-untyped-call]
        lambda a: bt.jvp(lambda z: bt.grad(lambda y: f(y) * a)(z)[1], x, [1.0, 0.0])[1],  # type: ignore[no-untyped-call]
        lambda a: bt.jacobian(lambda z: bt.grad(lambda y: f(y) * a)(z), x)[0, 1],  # type: ignore[no-untyped-call]
        lambda a: bt.jvp(lambda z: [f(z) * a, z[0]], x, [0.0, 1.0])[1][0],  # type: ignore[no-untyped-call]
    ):
        value, slope = bt.value_and_grad(inner)(3.0)
        assert value == pytest.approx(3 * slope)
        assert bt.check_grad(inner, 3.0) < 1e-6
    assert bt.value_and_grad(lambda a: bt.jvp(bt.sqr, a, 1.0)[1])(3.0) == (6.0, 2.0)
    assert bt.value_and_grad(lambda a: bt.hvp(bt.pow3, a, 1.0)[1])(3.0) == (18.0, 6.0)
    assert bt.value_and_grad(lambda a: bt.hessian(bt.pow3, a))(3.0) == (18.0, 6.0)
    assert bt.value_and_grad(lambda a: bt.jacobian(bt.pow3, a))(3.0) == (27.0, 18.0)
    assert bt.hvp(lambda a: bt.grad(bt.pow3)(a), 3.0, 1.0) == (27.0, 6.0)
    assert bt.hessian(lambda a: bt.grad(lambda z: z**4)(a), 2.0) == pytest.approx(48.0)
    with pytest.raises(ValueError, match="x has shape"):
        bt.grad(lambda a: bt.jvp(lambda z: z[0], [a, a], [1.0])[1])(1.0)


def test_check_grad_of_a_gradient() -> None:
    f = lambda x: (bt.grad(lambda z: (z**3).sum() * z[0])(x) ** 2).sum()  # noqa: E731
    assert bt.check_grad(f, [0.5, 0.7]) < 1e-6
    with pytest.raises(bt.GradientError):
        bt.check_grad(lambda x: bt.grad(lambda z: bt.mul_by_constant(z, z))(x) * x, 1.5)


def test_compiled_gradients_follow_their_inputs() -> None:
    c = bt.compile(lambda x: bt.grad(lambda z: z * z * x)(x * 3), backend="replay")
    for x in (2.0, 3.0, -1.0):
        assert c(x) == 6 * x * x
        assert c.value_and_grad(x) == (6 * x * x, 12 * x)
        assert c.hvp(x, 1.0)[1] == 12.0
    newton = bt.compile(lambda x: x - bt.grad(bt.cosh)(x) / bt.grad(bt.grad(bt.cosh))(x))
    assert newton(0.5) == pytest.approx(0.5 - np.tanh(0.5))
    assert newton(0.25) == pytest.approx(0.25 - np.tanh(0.25))


def test_a_compiled_function_inside_does_not_cut_the_graph() -> None:
    square = bt.compile(lambda z: z * z)
    assert bt.value_and_grad(lambda x: x * square(3.0))(2.0) == (18.0, 9.0)
    for transform in (bt.grad, lambda f: bt.compile(f, backend="replay")):
        with pytest.raises(ValueError, match="which it would freeze"):
            transform(lambda x: bt.compile(lambda z: z * x)(3.0) * x)(2.0)


# ---- with views: blocks are expanded


def test_second_derivatives_through_views() -> None:
    rng = np.random.default_rng(3)
    w = rng.normal(size=(3, 2))
    cases: dict[str, Any] = {
        "affine": lambda x: bt.affine(bt.matrix(w), bt.vector(x)).tanh().sum(),
        "matmul": lambda x: (bt.matrix(w) @ bt.matrix([[*x], [x[1], x[0]]])).exp().sum(),
        "softmax": lambda x: (bt.softmax(bt.vector(x)) * bt.vector([1.0, 3.0])).sum(),
        "log_softmax": lambda x: bt.log_softmax(bt.vector(x))[0] * x[0],
        "cross_entropy": lambda x: bt.cross_entropy(bt.matrix([[*x], [*x]]), [0, 1]),
        "arithmetic": lambda x: ((bt.vector(x) * 2.0 + 1.0) / bt.vector(x)).sum(),
        "numbers": lambda x: (2.0 / bt.vector(x)).sqrt().mean(),
    }
    for name, f in cases.items():
        x = [0.4, 0.9]
        nested = bt.jacobian(bt.grad(f), x)
        step = 1e-5
        rows = [
            (bt.grad(f)(np.add(x, d)) - bt.grad(f)(np.subtract(x, d))) / (2 * step)
            for d in np.eye(2) * step
        ]
        assert nested == pytest.approx(np.array(rows), rel=1e-6, abs=1e-7), name


# ---- random nestings against central differences


def random_function(rng: np.random.Generator, depth: int) -> Any:
    """A smooth function of one argument and of the variables of the functions around it."""
    one = [bt.sin, bt.tanh, bt.exp, bt.sigmoid, bt.atan, bt.sqr, bt.softplus, bt.silu, bt.cos]
    steps = [(int(rng.integers(4)), one[rng.integers(len(one))]) for _ in range(rng.integers(2, 5))]
    inner = random_function(rng, depth - 1) if depth else None
    at = float(rng.normal())

    def f(x: Any, *outer: Any) -> Any:
        y = x
        for kind, g in steps:
            other = outer[kind % len(outer)] if outer else x
            y = (
                g(y)
                if kind == 0
                else y * other
                if kind == 1
                else y + g(other)
                if kind == 2
                else y * x
            )
        if inner is not None:
            y = y + bt.grad(lambda z: inner(z, x, *outer))(at) * x
            y = y * bt.tanh(bt.grad(lambda z: inner(z, x, *outer))(x))
        return bt.tanh(y) + x * 0.1

    return f


@pytest.mark.parametrize("seed", range(30))
def test_random_nestings(seed: int) -> None:
    rng = np.random.default_rng(seed)
    f = random_function(rng, 1 + seed % 3)
    x = float(rng.normal())
    assert bt.check_grad(f, x, tolerance=1e-5) < 1e-5
    value, slope = bt.value_and_grad(f)(x)
    assert bt.jvp(f, x, 1.0) == pytest.approx((value, slope), rel=1e-9)
    compiled = bt.compile(f, backend="replay")
    compiled(x + 0.5)
    assert compiled.value_and_grad(x) == pytest.approx((value, slope), rel=1e-9)
