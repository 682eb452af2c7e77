# tests/test_optim.py — optimizers against torch.optim's stored numbers, clipping, schedules
# SPDX-License-Identifier: MIT
from __future__ import annotations

import json
import math
from typing import Any

import burtorch as bt
import numpy as np
import pytest
from conftest import ROOT
from make_optim_reference import START, STEPS, gradient

CASES = json.loads((ROOT / "tests" / "data" / "optim_reference.json").read_text(encoding="utf-8"))


class Arrays:
    """A model as far as an optimizer cares."""

    def __init__(self, start: Any, dtype: str = "float64") -> None:
        self.values = np.array(start, dtype)
        self.grads = np.zeros_like(self.values)


def make(case: dict[str, Any], parameters: Any) -> Any:
    return getattr(bt.optim, case["optimizer"])(parameters, **case["options"])


@pytest.mark.parametrize(
    "case", CASES, ids=lambda case: "{optimizer}-{name}-{dtype}".format(**case)
)
def test_a_hundred_steps_lead_where_torch_goes(case: dict[str, Any]) -> None:
    model = Arrays(START, case["dtype"])
    optimizer = make(case, model)
    close = 1e-13 if case["dtype"] == "float64" else 2e-6
    for step in range(1, STEPS + 1):
        model.grads[:] = gradient(model.values.tolist(), step)
        optimizer.step()
        if str(step) in case["values"]:
            np.testing.assert_allclose(
                model.values, case["values"][str(step)], rtol=close, atol=close
            )
    assert optimizer.steps == STEPS


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_values_views_and_arrays_together_go_the_same_way(name: str) -> None:
    case = next(c for c in CASES if c["optimizer"] == name and c["dtype"] == "float64")
    whole = Arrays(START)
    scalars, view = [bt.Value(x) for x in START[:2]], bt.vector(START[2:4])
    parameter = bt.nn.Parameter("rest", np.array(START[4:]), np.zeros(len(START) - 4))
    one, two = make(case, whole), make(case, [*scalars, view, parameter])
    for step in range(1, 11):
        now = gradient(whole.values.tolist(), step)
        whole.grads[:] = now
        for v, g in zip(scalars, now):
            v.grad = g
        view.grad = now[2:4]
        parameter.grad[:] = now[4:]
        one.step()
        two.step()
    together = [*(v.data for v in scalars), *view.data, *parameter.data]
    assert together == whole.values.tolist()
    two.zero_grad()
    assert {v.grad for v in scalars} == {0.0}
    assert not view.grad.any()
    assert not parameter.grad.any()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_layer_learns(dtype: str) -> None:
    with bt.Tape(dtype) as tape:
        layer = bt.nn.MLP([2, 8, 2], activation="tanh", random=bt.Random(1))
        optimizer = bt.optim.Adam(layer, lr=0.05)
        x, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]  # either, but not both
        losses = []
        for _ in range(100):
            optimizer.zero_grad()
            with tape.scope():
                loss = bt.cross_entropy(layer(bt.matrix(x)), y)
                loss.backward()
                losses.append(loss.data)
            optimizer.step()
        assert losses[-1] < 0.1 < losses[0]


@pytest.mark.parametrize("n", [1, 3, 8, 17, 100])
def test_every_number_counts_whatever_their_number(n: int) -> None:
    model = Arrays(np.zeros(n), "float32")
    model.grads[:] = np.arange(n) + 1
    bt.optim.GD(model, lr=0.5).step()
    assert model.values.tolist() == (-0.5 * (np.arange(n) + 1)).tolist()


def test_a_state_goes_on_bit_for_bit() -> None:
    def go(model: Arrays, optimizer: Any, first: int, last: int) -> None:
        for step in range(first, last):
            model.grads[:] = gradient(model.values.tolist(), step)
            optimizer.step()

    for case in CASES:
        whole, parts = Arrays(START, case["dtype"]), Arrays(START, case["dtype"])
        go(whole, make(case, whole), 0, 20)
        first = make(case, parts)
        go(parts, first, 0, 10)
        second = make(case, parts)
        second.load_state_dict(first.state_dict())
        go(parts, second, 10, 20)
        assert parts.values.tolist() == whole.values.tolist(), case


def test_a_state_that_does_not_fit_is_refused_and_changes_nothing() -> None:
    three, four = Arrays([1, 2, 3]), Arrays([1, 2, 3, 4])
    one, other = bt.optim.Adam(three), bt.optim.Adam(four)
    one.step()
    with pytest.raises(ValueError, match="does not fit 4 parameters"):
        other.load_state_dict(one.state_dict())
    with pytest.raises(ValueError, match="does not fit"):
        bt.optim.SGD(three, momentum=0.9).load_state_dict(one.state_dict())
    assert other.steps == 0


def test_a_state_brings_its_options_but_not_its_schedule() -> None:
    model = Arrays([1.0, 2.0])
    options: dict[str, Any] = {"lr": np.float32(0.5), "nesterov": np.bool_(1)}
    one = bt.optim.SGD(model, momentum=np.float64(0.5), **options)
    state = one.state_dict()
    assert state["options"] == {
        "momentum": 0.5,
        "dampening": 0.0,
        "weight_decay": 0.0,
        "nesterov": True,
    }
    json.dumps({**state, "state": None})
    other = bt.optim.SGD(model)
    other.load_state_dict(state)
    assert other.state_dict()["options"] == state["options"]
    scheduled = bt.optim.SGD(model, lr=bt.optim.Linear(1.0, 0.0, steps=4))
    assert scheduled.state_dict()["schedule"] == "Linear"
    with pytest.raises(ValueError, match="learning rates of Linear needs an optimizer whose lr"):
        other.load_state_dict(scheduled.state_dict())
    scheduled.load_state_dict({**state, "steps": 2})
    assert scheduled.lr == 0.5
    scheduled.load_state_dict({**state, "steps": 3})
    assert scheduled.lr == 0.25
    old = {name: state[name] for name in ("lr", "steps", "state")}
    fresh = bt.optim.SGD(model, momentum=0.75)
    fresh.load_state_dict(old)
    assert fresh.state_dict()["options"]["momentum"] == 0.75


def test_wrong_options_and_parameters_are_refused() -> None:
    model = Arrays([1.0])
    for wrong in (
        lambda: bt.optim.GD(model, lr=-1),
        lambda: bt.optim.SGD(model, nesterov=True),
        lambda: bt.optim.Adam(model, betas=(1.0, 0.9)),
        lambda: bt.optim.AdamW(model, weight_decay=-1),
        lambda: bt.optim.Adam([]),
    ):
        with pytest.raises(ValueError):  # noqa: PT011  each has its own words
            wrong()
    with pytest.raises(TypeError, match="needs a model or parameters, not 3"):
        bt.optim.Adam([3])
    with pytest.raises(TypeError, match="of float32 or float64, not int64"):
        bt.optim.Adam(Arrays([1], "int64"))


def test_arrays_that_cannot_be_changed_in_place_are_refused() -> None:
    model = Arrays(np.ones(8))
    model.values = model.values[::2]
    with pytest.raises(TypeError, match="values must be contiguous and hold float64"):
        bt.optim.GD(model, lr=1.0).step()
    model.values = np.ones(4)
    optimizer = bt.optim.GD(model, lr=1.0)
    with pytest.raises(ValueError, match="4 values and 8 gradients"):
        optimizer.step()


def test_clipping() -> None:
    model = Arrays([0.0, 0.0])
    model.grads[:] = 3, 4
    assert bt.optim.clip_by_norm(model, 10) == 5
    assert model.grads.tolist() == [3, 4]
    assert bt.optim.clip_by_norm(model, 1) == 5
    np.testing.assert_allclose(model.grads, [0.6, 0.8], rtol=1e-6)
    bt.optim.clip_by_value(model, 0.7)
    np.testing.assert_allclose(model.grads, [0.6, 0.7], rtol=1e-6)
    a, b = bt.Value(0.0), bt.nn.Parameter("b", np.zeros(1), np.full(1, 4.0))
    a.grad = 3.0
    assert bt.optim.clip_by_norm([a, b], 1) == 5
    assert (a.grad, b.grad[0]) == pytest.approx((0.6, 0.8), rel=1e-6)
    with pytest.raises(ValueError, match="can't be negative"):
        bt.optim.clip_by_norm(model, -1)


def test_schedules() -> None:
    assert [bt.optim.Constant(0.5)(n) for n in (0, 7)] == [0.5, 0.5]
    assert [bt.optim.StepDecay(1.0, every=2, factor=0.5)(n) for n in range(5)] == [
        1,
        1,
        0.5,
        0.5,
        0.25,
    ]
    assert [bt.optim.Linear(1.0, 0.0, steps=4)(n) for n in range(6)] == [1, 0.75, 0.5, 0.25, 0, 0]
    cosine = bt.optim.Cosine(1.0, steps=12, warm_up=2, least=0.1)
    assert [cosine(n) for n in (0, 1, 2, 12, 99)] == [0.5, 1, 1, 0.1, 0.1]
    assert cosine(7) == pytest.approx(0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi / 2)))


def test_a_schedule_gives_the_rate_of_each_step() -> None:
    model = Arrays([0.0])
    model.grads[:] = 1
    optimizer = bt.optim.GD(model, lr=bt.optim.Linear(1.0, 0.0, steps=2))
    seen = []
    for _ in range(3):
        before = model.values[0]
        optimizer.step()
        seen.append(before - model.values[0])
    assert seen == [1, 0.5, 0]


def test_neighbours_on_a_tape_are_one_step_whatever_their_order() -> None:
    case = next(c for c in CASES if c["optimizer"] == "AdamW" and c["dtype"] == "float64")
    whole = Arrays(START)
    a, b = bt.vector(START[:2]), bt.vector(START[2:4])
    bt.Value(1.0)  # between them and the last
    between = bt.Value(2.0)
    c = bt.vector(START[4:])
    one, two = make(case, whole), make(case, [c, b, a])
    for step in range(1, 6):
        now = gradient(whole.values.tolist(), step)
        whole.grads[:] = now
        a.grad, b.grad, c.grad = now[:2], now[2:4], now[4:]
        one.step()
        two.step()
    assert [*a.data, *b.data, *c.data] == whole.values.tolist()
    assert between.data == 2.0
    # The state is told parameter by parameter, in the order they were given.
    state = two.state_dict()["state"]
    assert [kept["exp_avg"].size for kept in state] == [len(START) - 4, 2, 2]
    joined = np.concatenate([state[2]["exp_avg"], state[1]["exp_avg"], state[0]["exp_avg"]])
    np.testing.assert_array_equal(joined, one.state_dict()["state"][0]["exp_avg"])
    other = make(case, [c, b, a])
    other.load_state_dict(two.state_dict())
    assert [kept["exp_avg"].tolist() for kept in other.state_dict()["state"]] == [
        kept["exp_avg"].tolist() for kept in state
    ]
    two.zero_grad()
    assert not np.concatenate([a.grad, b.grad, c.grad]).any()


def test_clipping_goes_over_all_pieces() -> None:
    view, value = bt.vector([1.0, 1.0]), bt.Value(1.0)
    apart = bt.vector([1.0])
    view.grad, value.grad, apart.grad = [2.0, 4.0], 5.0, [6.0]
    assert bt.optim.clip_by_norm([view, value, apart], 4.5) == pytest.approx(9)
    np.testing.assert_allclose([*view.grad, value.grad, *apart.grad], [1, 2, 2.5, 3], rtol=1e-6)
    bt.optim.clip_by_value([view, value, apart], 2.25)
    np.testing.assert_allclose([*view.grad, value.grad, *apart.grad], [1, 2, 2.25, 2.25], rtol=1e-6)


def test_a_step_of_nodes_that_are_gone_is_an_error() -> None:
    with bt.Tape() as tape:
        mark = tape.mark()
        view = bt.vector([1.0, 2.0])
        optimizer = bt.optim.GD([view], lr=0.1)
        tape.rewind(mark)
        with pytest.raises(RuntimeError, match="rewound"):
            optimizer.step()
