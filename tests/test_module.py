# tests/test_module.py — modules of one's own: parameters found, losses replayed, changes noticed
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any

import burtorch as bt
import numpy as np
import pytest
from burtorch._core import _data

RANDOM = np.random.default_rng(0)


class Net(bt.nn.Module):
    """3-5-2 with tanh; its loss is a mean of squares."""

    def __init__(self) -> None:
        self.first = bt.nn.Linear(3, 5)
        self.more = [bt.nn.Linear(5, 5), bt.nn.Linear(5, 2)]
        self.alpha = 1.0

    def forward(self, x: Any) -> Any:
        return self.more[1](bt.tanh(self.more[0](bt.tanh(self.first(x))))) * self.alpha

    def loss(self, x: Any, y: Any) -> Any:
        return ((self(x) - y) ** 2).mean()


class Words(bt.nn.Module):
    """Three embeddings side by side, a linear layer, cross-entropy: integers in, integers out."""

    def __init__(self) -> None:
        self.table = bt.nn.Embedding(7, 4)
        self.out = bt.nn.Linear(12, 5)

    def loss(self, x: Any, y: Any) -> Any:
        return bt.cross_entropy(self.out(self.table(x)), y)


def data(n: int) -> tuple[np.ndarray, np.ndarray]:
    return RANDOM.normal(size=(n, 3)), RANDOM.normal(size=(n, 2))


def words(n: int) -> tuple[np.ndarray, np.ndarray]:
    return RANDOM.integers(0, 7, (n, 3)), RANDOM.integers(0, 5, n)


def eager(net: bt.nn.Module, *arguments: Any) -> tuple[float, np.ndarray]:
    tape = net.parameters()[0].tape
    with tape, tape.scope():
        net.zero_grad()
        floats = [_data(a, net.parameters()[0]) if a.dtype.kind == "f" else a for a in arguments]
        loss = getattr(type(net).loss, "__wrapped_loss__")(net, *floats)  # noqa: B009
        loss.backward()
        return loss.data, np.concatenate([np.ravel(p.grad) for p in net.parameters()])


@pytest.fixture(params=["float64", "float32"])
def tape(request: pytest.FixtureRequest) -> Any:
    with bt.Tape(request.param) as tape:
        bt.nn.seed(1)
        yield tape


def close(tape: Any) -> float:
    return 1e-12 if tape.dtype == "float64" else 1e-5


def test_parameters_are_found_in_attributes_lists_and_dicts(tape: Any) -> None:
    class Tree(bt.nn.Module):
        def __init__(self) -> None:
            self.w = bt.vector([1.0, 2.0])
            self.heads = {"a": bt.nn.Linear(2, 1), "b": [bt.nn.Linear(1, 1, bias=False)]}
            self.tied = self.w
            self.scale = bt.Value(3.0)
            self.number = 4.0

    tree = Tree()
    names = [name for name, _ in tree.named_parameters()]
    assert names == ["w", "heads.a.weight", "heads.a.bias", "heads.b.0.weight", "scale"]
    assert tree.num_parameters == 2 + 3 + 1 + 1
    assert set(tree.state_dict()) == {*names, "tied"}
    state = {name: x + 1 for name, x in tree.state_dict().items()}
    tree.load_state_dict(state)
    assert tree.scale.data == 4.0
    with pytest.raises(ValueError, match="missing: w"):
        tree.load_state_dict({})


@pytest.mark.parametrize("n", [1, 2, 5, 300])
def test_a_replayed_loss_is_the_eager_one(tape: Any, n: int) -> None:
    for net, batch in ((Net(), data(n)), (Words(), words(n))):
        for _ in range(3):
            batch = np.roll(batch[0], 1, axis=0), np.roll(batch[1], 1, axis=0)
            value, gradient = eager(net, *batch)
            net.grads = 99.0
            assert net.loss_and_grad(*batch) == pytest.approx(value, rel=close(tape))
            np.testing.assert_allclose(
                net.grads, gradient, rtol=100 * close(tape), atol=close(tape)
            )
            assert net.loss(*batch) == pytest.approx(value, rel=close(tape))
            for _, p in net.named_parameters():
                p.data = p.data * 0.9


def test_data_may_be_of_other_types(tape: Any) -> None:
    net = Net()
    x, y = data(4)
    value = eager(net, x, y)[0]
    for kind in (np.float64, np.float32, np.float16, ">f8"):
        got = net.loss_and_grad(x.astype(kind), np.asfortranarray(y.astype(kind)))
        assert got == pytest.approx(value, rel=2e-2 if kind == np.float16 else 1e-5)
    x, y = words(4)
    ids = Words()
    value = ids.loss_and_grad(x, y)
    assert ids.loss_and_grad(x.astype(np.int32), y.astype(np.uint8)) == value


@pytest.mark.parametrize("micro_batch", [1, 2, 3, 7, 64])
def test_micro_batches_and_threads_change_only_rounding(tape: Any, micro_batch: int) -> None:
    for net, batch in ((Net(), data(19)), (Words(), words(19))):
        value, gradient = eager(net, *batch)
        for threads in (1, 2, 3):
            got = net.loss_and_grad(*batch, micro_batch=micro_batch, threads=threads)
            assert got == pytest.approx(value, rel=1e3 * close(tape))
            np.testing.assert_allclose(
                net.grads, gradient, rtol=1e3 * close(tape), atol=10 * close(tape)
            )
            again = net.grads.copy()
            net.loss_and_grad(*batch, micro_batch=micro_batch, threads=threads)
            np.testing.assert_array_equal(net.grads, again)


def test_gradients_accumulate_if_asked(tape: Any) -> None:
    net, batch = Net(), data(6)
    net.loss_and_grad(*batch)
    once = net.grads.copy()
    net.loss_and_grad(*batch, accumulate=True, micro_batch=4)
    np.testing.assert_allclose(net.grads, 2 * once, rtol=1e-4)


def test_gradients_of_each_sample(tape: Any) -> None:
    for net, batch in ((Net(), data(5)), (Words(), words(5))):
        net.grads = 3.0
        rows = net.per_sample_grads(*batch)
        assert (net.grads == 3.0).all()
        for i, row in enumerate(rows):
            gradient = eager(net, *(x[i : i + 1] for x in batch))[1]
            np.testing.assert_allclose(row, gradient, rtol=1e-4, atol=1e-6)


def test_a_loss_that_mixes_samples_runs_as_a_whole(tape: Any) -> None:
    class Contrast(Net):
        def loss(self, x: Any, y: Any) -> Any:
            z = self(x)
            return bt.log(bt.exp(z).sum()) - (z * y).mean()

    net, batch = Contrast(), data(7)
    value, gradient = eager(net, *batch)
    assert net.loss_and_grad(*batch) == pytest.approx(value, rel=close(tape))
    np.testing.assert_allclose(net.grads, gradient, rtol=1e-4, atol=1e-6)
    with pytest.raises(ValueError, match="logarithm mixes the samples"):
        net.loss_and_grad(*batch, micro_batch=2)
    with pytest.raises(ValueError, match="mixes the samples"):
        net.per_sample_grads(*batch)


def test_a_sum_is_run_in_parts_and_a_penalty_with_a_mean(tape: Any) -> None:
    class Sum(Net):
        def loss(self, x: Any, y: Any) -> Any:
            return ((self(x) - y) ** 2).sum()

    class Penalty(Net):
        def loss(self, x: Any, y: Any) -> Any:
            return ((self(x) - y) ** 2).mean() + 0.1 * (self.first.weight**2).sum()

    for net in (Sum(), Penalty()):
        batch = data(9)
        value, gradient = eager(net, *batch)
        assert net.loss_and_grad(*batch, micro_batch=2) == pytest.approx(value, rel=1e-5)
        np.testing.assert_allclose(net.grads, gradient, rtol=1e-3, atol=1e-5)


def test_changes_are_noticed(tape: Any) -> None:
    net, batch = Net(), data(4)
    net.loss_and_grad(*batch)

    def agrees() -> None:
        value = eager(net, *batch)[0]
        assert net.loss_and_grad(*batch) == pytest.approx(value, rel=close(tape))

    net.alpha = 0.5
    agrees()
    net.more[1] = bt.nn.Linear(5, 2)
    agrees()
    net.first.weight = net.first.weight
    agrees()
    net.first = bt.nn.Linear(3, 5)
    agrees()
    bt.Value(1.0) + 2.0
    tape.collect()
    agrees()


def test_nodes_that_come_and_go_do_no_harm(tape: Any) -> None:
    net, batch = Net(), data(4)
    value, gradient = eager(net, *batch)
    for _ in range(3):
        kept = [bt.Value(float(i)) * 2 for i in range(50)]
        assert net.loss_and_grad(*batch) == pytest.approx(value, rel=close(tape))
        assert [v.data for v in kept] == [2.0 * i for i in range(50)]
        np.testing.assert_allclose(net.grads, gradient, rtol=1e-4, atol=1e-6)
        del kept


def test_training_with_an_optimizer(tape: Any) -> None:
    net, (x, y) = Net(), data(64)
    y = np.tanh(x[:, :2])
    optimizer = bt.optim.AdamW(net, lr=0.01)
    first = net.loss(x, y)
    for _ in range(200):
        net.loss_and_grad(x, y)
        optimizer.step()
    assert net.loss(x, y) < 0.1 * first


def test_fit(tape: Any) -> None:
    net, (x, _) = Net(), data(50)
    y = x[:, :2] * 0.5
    seen = []
    history = bt.fit(
        net,
        x,
        y,
        epochs=30,
        batch=8,
        validation=(x, y),
        quiet=True,
        optimizer=bt.optim.AdamW(net, lr=0.01),
        callback=lambda h: seen.append(h.steps),
    )
    assert history.complete
    assert history.steps == 30 * 7
    assert len(seen) == 30
    assert history.loss[-1] < 0.2 * history.loss[0]
    assert history.validation[-1] == pytest.approx(net.loss(x, y))
    with pytest.raises(ValueError, match="as many rows"):
        bt.fit(net, x, y[:3])


def test_branches_on_data_or_parameters_are_refused(tape: Any) -> None:
    class ByData(Net):
        def loss(self, x: Any, y: Any) -> Any:
            return (self(x) ** 2).mean() if x[0, 0] > 0 else (self(x) - y).mean()

    class ByParameter(Net):
        def loss(self, x: Any, y: Any) -> Any:
            return (self(x) ** 2).mean() if self.first.weight[0, 0] > 0 else (self(x) - y).mean()

    class ByInteger(Words):
        def loss(self, x: Any, y: Any) -> Any:
            return bt.cross_entropy(self.out(self.table(x)), y) if y[0] else super().loss(x, y)

    for net, batch in ((ByData(), data(4)), (ByParameter(), data(4)), (ByInteger(), words(4))):
        size = len(tape)
        with pytest.raises(bt.BranchError):
            net.loss_and_grad(*batch)
        assert len(tape) == size


def test_integers_can_be_cut_and_computed_with(tape: Any) -> None:
    class Cut(bt.nn.Module):
        def __init__(self) -> None:
            self.a, self.b = bt.nn.Embedding(7, 2), bt.nn.Embedding(7, 3)
            self.out = bt.nn.Linear(5, 1)

        def loss(self, x: Any, y: Any) -> Any:
            rows = bt.concat([self.a(x[:, 0]), self.b(x[:, 2])], axis=1)
            return ((self.out(rows) - y.reshape(-1, 1) / 2.0) ** 2).mean()

    net, batch = Cut(), words(6)
    value = net.loss_and_grad(*batch)
    gradient = net.grads.copy()
    rows = [(net.a.weight.data[i], net.b.weight.data[j]) for i, j in batch[0][:, [0, 2]]]
    assert net.out.bias is not None
    w, b = net.out.weight.data[0], net.out.bias.data[0]
    wanted = np.mean([(w @ np.concatenate(r) + b - t / 2) ** 2 for r, t in zip(rows, batch[1])])
    assert value == pytest.approx(wanted, rel=1e-5)
    net.loss_and_grad(*batch, micro_batch=4)
    np.testing.assert_allclose(net.grads, gradient, rtol=1e-4, atol=1e-6)


def test_predictions_are_replayed(tape: Any) -> None:
    net, (x, _) = Net(), data(9)
    with tape.scope():
        wanted = np.array(net(bt.matrix(x)).data)
    np.testing.assert_allclose(net.predict(x), wanted, rtol=1e-5)
    np.testing.assert_allclose(net.predict(x[:1]), wanted[:1], rtol=1e-5)


def test_verify_finds_what_changed_unseen(tape: Any) -> None:
    class Masked(Net):
        def __init__(self) -> None:
            super().__init__()
            self.mask = np.array([1.0, 0.0])

        def loss(self, x: Any, y: Any) -> Any:
            return ((self(x) * self.mask - y) ** 2).mean()

    net, batch = Masked(), data(4)
    net.loss_and_grad(*batch)
    net.verify(*batch)
    net.mask[1] = 1.0
    with pytest.raises(bt.VerifyError, match="takes from outside has changed"):
        net.verify(*batch)


def test_what_is_wrong_is_said(tape: Any) -> None:
    net, (x, y) = Net(), data(4)
    with pytest.raises(ValueError, match="argument 1 has 3 rows, the first 4"):
        net.loss_and_grad(x, y[:3])
    with pytest.raises(TypeError, match="argument 0 is a batch"):
        net.loss_and_grad("x", y)
    with pytest.raises(ValueError, match="micro_batch must be at least 1"):
        net.loss_and_grad(x, y, micro_batch=0)
    with pytest.raises(ValueError, match="threads must be at least 1"):
        net.loss_and_grad(x, y, threads=0)
    with pytest.raises(TypeError, match="does not define loss"):
        bt.nn.Linear(1, 1).loss_and_grad(x, y)
    ids, (i, t) = Words(), words(4)
    i[2, 1] = 7
    with pytest.raises(IndexError, match=r"argument 0: index 7 \(number 1 of sample 2\).* 0 and 6"):
        ids.loss_and_grad(i, t)

    class Vector(Net):
        def loss(self, x: Any, y: Any) -> Any:
            return self(x)

    with pytest.raises(
        TypeError, match=r"Vector.loss must return a Value .* View of shape \(2, 2\)"
    ):
        Vector().loss_and_grad(x, y)

    class Outside(Net):
        def __init__(self) -> None:
            super().__init__()
            self._scaled = self.first.weight * 2.0

        def loss(self, x: Any, y: Any) -> Any:
            return (bt.affine(self._scaled, x) ** 2).mean()

    with pytest.raises(ValueError, match="computed outside of it"):
        Outside().loss_and_grad(x, y)
