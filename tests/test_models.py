# tests/test_models.py — CharMLP and GPT: counts, the batch oracle, parameters, what is refused
# SPDX-License-Identifier: MIT
from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import burtorch as bt
import numpy as np
import pytest
from conftest import ROOT
from make_models_reference import probe, samples, weights

STORED = json.loads((ROOT / "tests" / "data" / "models_reference.json").read_text(encoding="utf-8"))


def small(kind: str = "GPT", dtype: str = "float64", **config: int) -> Any:
    if kind == "CharMLP":
        return bt.nn.CharMLP(dtype=dtype, **{"hidden": 8, "embed": 4, "context": 3, **config})
    return bt.nn.GPT(dtype=dtype, **{"vocab": 11, "d_model": 12, "layers": 2, "heads": 3, **config})


def batch(model: Any, b: int, seed: int = 1) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    vocab, context = model.config["vocab"], model.config["context"]
    x = random.integers(0, vocab, (b, context))
    y = random.integers(0, vocab, (b, context) if isinstance(model, bt.nn.GPT) else b)
    return x, y


KINDS = pytest.mark.parametrize("kind", ["CharMLP", "GPT"])
DTYPES = pytest.mark.parametrize("dtype", ["float32", "float64"])


@pytest.mark.parametrize(
    ("hidden", "count"),
    [
        (4, 5_963),
        (16, 18_587),
        (32, 35_419),
        (64, 69_083),
        (128, 136_411),
        (512, 540_379),
        (1024, 1_079_003),
    ],
)
def test_parameters_of_the_papers_mlp(hidden: int, count: int) -> None:
    model = bt.nn.CharMLP(hidden=hidden)
    assert model.num_parameters == count == sum(p.data.size for p in model.parameters())


def test_parameters_of_the_papers_gpt() -> None:
    model = bt.nn.GPT()
    assert model.num_parameters == 46_289 == sum(p.data.size for p in model.parameters())


def test_names_and_shapes_are_those_of_the_well_known_scripts() -> None:
    shapes = {name: x.shape for name, x in bt.nn.CharMLP(hidden=5).state_dict().items()}
    assert shapes == {
        "wte.weight": (27, 64),
        "mlp.0.weight": (5, 1024),
        "mlp.0.bias": (5,),
        "mlp.2.weight": (27, 5),
        "mlp.2.bias": (27,),
    }
    shapes = {name: x.shape for name, x in bt.nn.GPT(layers=2).state_dict().items()}
    assert len(shapes) == 2 + 2 * (3 * 6 + 2 + 4 + 4) + 2
    assert shapes["token_embedding_table.weight"] == (65, 24)
    assert shapes["position_embedding_table.weight"] == (8, 24)
    assert shapes["blocks.1.sa.heads.5.query.weight"] == (4, 24)
    assert shapes["blocks.1.sa.proj.bias"] == (24,)
    assert shapes["blocks.0.ffwd.net.2.weight"] == (24, 96)
    assert shapes["blocks.0.ln2.weight"] == (24,)
    assert shapes["lm_head.bias"] == (65,)


@pytest.mark.parametrize("micro_batch", [1, 3, 64])
@pytest.mark.parametrize("case", STORED, ids=lambda c: f"{c['model']}-{len(c['gradients'])}")
def test_loss_and_gradients_are_pytorchs_stored_ones(
    case: dict[str, Any], micro_batch: int
) -> None:
    model = getattr(bt.nn, case["model"])(**case["config"], dtype="float64")
    shapes = {p.name: p.data.shape for p in model.parameters()}
    assert list(shapes) == list(case["gradients"])
    model.load_state_dict(weights(shapes))
    x, y = samples(case["model"], case["config"])
    assert model.loss_and_grad(x, y, micro_batch=micro_batch) == pytest.approx(
        case["loss"], rel=1e-12
    )
    for parameter in model.parameters():
        expected = case["gradients"][parameter.name]
        assert probe(parameter.grad) == pytest.approx(expected, rel=1e-10, abs=1e-14)


@KINDS
def test_central_differences_agree(kind: str) -> None:
    model = small(kind)
    x, y = batch(model, 3)
    model.loss_and_grad(x, y)
    gradient = model.grads.copy()
    for i in np.random.default_rng(0).integers(0, model.num_parameters, 40):
        at, h = model.values[i], 1e-5
        model.values[i] = at + h
        above = model.loss(x, y)
        model.values[i] = at - h
        below = model.loss(x, y)
        model.values[i] = at
        assert gradient[i] == pytest.approx((above - below) / (2 * h), rel=1e-5, abs=1e-9)


@KINDS
@DTYPES
def test_micro_batches_change_nothing_but_rounding(kind: str, dtype: str) -> None:
    model = small(kind, dtype)
    x, y = batch(model, 37)
    close = 1e-12 if dtype == "float64" else 1e-5
    loss = model.loss_and_grad(x, y)
    gradient = model.grads.copy()
    assert model.loss(x, y) == pytest.approx(loss, rel=close)
    for micro_batch in (2, 5, 37, 300):
        assert model.loss_and_grad(x, y, micro_batch=micro_batch) == pytest.approx(loss, rel=close)
        np.testing.assert_allclose(
            model.grads, gradient, rtol=close, atol=close * np.abs(gradient).max()
        )


@KINDS
def test_threads_give_the_same_bits_every_time(kind: str) -> None:
    model = small(kind, "float32")
    x, y = batch(model, 29)
    loss = model.loss_and_grad(x, y)
    alone = model.grads.copy()
    for threads in (2, 3, 50):
        first = model.loss_and_grad(x, y, threads=threads)
        bits = model.grads.tobytes()
        assert first == pytest.approx(loss, rel=1e-5)
        np.testing.assert_allclose(model.grads, alone, rtol=1e-4, atol=1e-5 * np.abs(alone).max())
        for _ in range(20):
            assert model.loss_and_grad(x, y, threads=threads) == first
            assert model.grads.tobytes() == bits


@KINDS
@pytest.mark.parametrize("threads", [1, 2])
def test_gradients_accumulate_over_calls_when_asked(kind: str, threads: int) -> None:
    model = small(kind)
    x, y = batch(model, 6)
    model.loss_and_grad(x, y, threads=threads)
    once = model.grads.copy()
    model.loss_and_grad(x, y, threads=threads)
    assert (model.grads == once).all()
    model.loss_and_grad(x, y, threads=threads, accumulate=True)
    np.testing.assert_allclose(model.grads, 2 * once, rtol=1e-12, atol=1e-15)
    model.zero_grad()
    assert not model.grads.any()


@KINDS
def test_gradients_of_each_sample(kind: str) -> None:
    model = small(kind)
    x, y = batch(model, 4)
    model.loss_and_grad(x, y)
    mean = model.grads.copy()
    each = model.per_sample_grads(x, y)
    assert (model.grads == mean).all()
    assert each.shape == (4, model.num_parameters)
    np.testing.assert_allclose(each.mean(0), mean, rtol=1e-12, atol=1e-15)
    for i in range(4):
        model.loss_and_grad(x[i : i + 1], y[i : i + 1])
        assert (model.grads == each[i]).all()


@KINDS
def test_logits_are_what_the_loss_is_made_of(kind: str) -> None:
    model = small(kind)
    x, y = batch(model, 5)
    logits = model.logits(x)
    assert logits.shape == (*y.shape, model.config["vocab"])
    rows, targets = logits.reshape(-1, logits.shape[-1]), y.ravel()
    losses = np.log(np.exp(rows).sum(1)) - rows[np.arange(len(rows)), targets]
    assert losses.mean() == pytest.approx(model.loss(x, y), rel=1e-12)


@DTYPES
def test_a_gpt_of_one_position_has_a_target_for_it(dtype: str) -> None:
    model = small("GPT", dtype, context=1)
    x, y = batch(model, 5)
    assert y.shape == (5, 1)
    assert model.logits(x).shape == (5, 1, 11)
    loss = model.loss(x, y)
    assert model.loss_and_grad(x, y, micro_batch=5) == pytest.approx(loss, rel=1e-5)
    assert model.per_sample_grads(x, y).shape == (5, model.num_parameters)
    with pytest.raises(ValueError, match=r"y \(5,\); expected \(b, 1\) and \(b, 1\)"):
        model.loss(x, y.ravel())
    words = small("CharMLP", dtype, context=1)
    assert words.logits(x).shape == (5, 27)
    assert words.loss(x, y.ravel()) > 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_threads_after_a_fork() -> None:
    # In a process of its own: pytest's may have threads that a fork leaves behind.
    program = (
        "import os, sys\n"
        "import numpy as np, burtorch as bt\n"
        "model = bt.nn.CharMLP(hidden=4, embed=2, context=2)\n"
        "x, y = np.arange(12).reshape(6, 2), np.arange(6)\n"
        "loss, grads = model.loss_and_grad(x, y, threads=3), model.grads.copy()\n"
        "pid = os.fork()\n"
        "assert model.loss_and_grad(x, y, threads=3) == loss\n"
        "assert (model.grads == grads).all()\n"
        "del model\n"
        "if pid: sys.exit(os.waitpid(pid, 0)[1] != 0)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


# ---- memory --------------------------------------------------------------------------------------


@KINDS
def test_views_stay_valid_whatever_the_model_does(kind: str) -> None:
    model = small(kind)
    values, grads = model.values, model.grads
    x, y = batch(model, 400)
    model.loss_and_grad(x, y, micro_batch=400)  # more than are taken at a time
    assert grads.any()
    before = model.loss(x, y)
    values -= 0.01 * grads
    assert model.loss(x, y) < before
    assert values is model.values
    model.values = values * 0
    assert not values.any()
    del model
    gc.collect()
    grads[:] = 1
    assert grads.sum() == grads.size


def test_memory_does_not_depend_on_the_batch(tmp_path: Path) -> None:
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("there is no /proc here")
    program = tmp_path / "peak.py"
    program.write_text(
        "import sys, numpy as np, burtorch as bt\n"
        "model, b = bt.nn.GPT(), int(sys.argv[1])\n"
        "x = np.zeros((b, 8), int)\n"
        "for _ in range(2): model.loss_and_grad(x, x, micro_batch=8)\n"
        "line = next(l for l in open('/proc/self/status') if l.startswith('VmHWM'))\n"
        "print(line.split()[1])\n"
    )

    def peak(b: int) -> int:
        done = subprocess.run(
            [sys.executable, program, str(b)], capture_output=True, text=True, check=True
        )
        return int(done.stdout)

    assert peak(4096) <= 1.05 * peak(8)


# ---- indices -------------------------------------------------------------------------------------


@KINDS
def test_any_integers_will_do(kind: str) -> None:
    model = small(kind)
    x, y = batch(model, 3)
    loss = model.loss(x, y)
    for kind_of_x in (np.int64, np.int32, np.int16, np.uint8, np.uint64):
        for kind_of_y in (np.int64, np.int32, np.uint8):
            assert model.loss(x.astype(kind_of_x), y.astype(kind_of_y)) == loss
    assert model.loss(x.tolist(), y.tolist()) == loss
    assert model.loss(np.asfortranarray(x), y) == loss
    wide = np.zeros((3, 2 * x.shape[1]), int)
    wide[:, ::2] = x
    assert model.loss(wide[:, ::2], y) == loss
    assert model.loss(x.astype(">i8"), y) == loss


def test_what_is_wrong_with_the_input_is_said() -> None:
    mlp, gpt = small("CharMLP"), small("GPT")
    zeros = np.zeros
    for model, x, y, error, words in [
        (
            mlp,
            zeros((2, 4), int),
            zeros(2, int),
            ValueError,
            r"x has shape \(2, 4\) and y \(2,\); ",
        ),
        (mlp, zeros((2, 3), int), zeros(3, int), ValueError, r"\(2, 3\) and y \(3,\)"),
        (mlp, zeros((2, 3), int), zeros((2, 1), int), ValueError, r"expected \(b, 3\) and \(b,\)"),
        (mlp, zeros((0, 3), int), zeros(0, int), ValueError, r"\(0, 3\)"),
        (gpt, zeros((2, 8), int), zeros(2, int), ValueError, r"expected \(b, 8\) and \(b, 8\)"),
        (gpt, zeros((2, 8), int), zeros((2, 7), int), ValueError, r"y \(2, 7\)"),
        (mlp, zeros((2, 3)), zeros(2, int), TypeError, "x holds float64 and not integers"),
        (mlp, zeros((2, 3), int), ["a", "b"], TypeError, "y holds .* and not integers"),
        (mlp, [[0, 1, 2], [3]], [0, 0], TypeError, "x is no array of integers"),
        (mlp, [[0, 1, 27]], [0], ValueError, r"input 27 \(number 2 of sample 0\) .* 0 and 26"),
        (mlp, [[0, 1, 2], [0, -1, 2]], [0, 0], ValueError, r"input -1 \(number 1 of sample 1\)"),
        (gpt, zeros((1, 8), int), [[0] * 7 + [11]], ValueError, r"target 11 \(number 7 of"),
    ]:
        with pytest.raises(error, match=words):
            model.loss_and_grad(x, y)
        with pytest.raises(error, match=words):
            model.per_sample_grads(x, y)
    with pytest.raises(ValueError, match=r"x has shape \(3,\); expected \(b, 3\)"):
        mlp.logits([1, 2, 3])
    for options in ({"micro_batch": 0}, {"threads": 0}, {"micro_batch": -1}):
        with pytest.raises(ValueError, match="must be at least 1"):
            mlp.loss_and_grad([[0, 1, 2]], [0], **options)


def test_bad_input_leaves_gradients_alone() -> None:
    model = small("CharMLP")
    x, y = batch(model, 3)
    model.loss_and_grad(x, y)
    before = model.grads.copy()
    x[2, 1] = 99
    with pytest.raises(ValueError, match="input 99"):
        model.loss_and_grad(x, y, accumulate=True)
    assert (model.grads == before).all()
    with pytest.raises(ValueError, match="input 99"):
        model.loss_and_grad(x, y, threads=3)
    assert (model.grads == before).all()


def test_configurations_that_make_no_sense() -> None:
    with pytest.raises(ValueError, match="dtype 'int8': a GPT can be of float32, float64"):
        bt.nn.GPT(dtype="int8")
    with pytest.raises(ValueError, match="hidden must be at least 1: 0"):
        bt.nn.CharMLP(hidden=0)
    with pytest.raises(ValueError, match="24 columns can't be shared by 5 heads"):
        bt.nn.GPT(heads=5)


# ---- parameters ----------------------------------------------------------------------------------


@KINDS
def test_seeds_name_models(kind: str) -> None:
    assert (small(kind, seed=3).values == small(kind, seed=3).values).all()
    assert (small(kind, seed=3).values != small(kind, seed=4).values).any()
    # A model of floats is the model of doubles, rounded.
    rounded = small(kind, "float64", seed=3).values.astype(np.float32)
    assert (small(kind, "float32", seed=3).values == rounded).all()


@KINDS
@DTYPES
def test_a_state_goes_from_model_to_model(kind: str, dtype: str, tmp_path: Path) -> None:
    one, two = small(kind, dtype, seed=1), small(kind, dtype, seed=2)
    state = one.state_dict()
    state_before = {name: x.copy() for name, x in state.items()}
    two.load_state_dict(state)
    assert (one.values == two.values).all()
    two.values = two.values + 1
    assert all((state[name] == state_before[name]).all() for name in state)
    one.save_safetensors(tmp_path / "model.safetensors")
    two.load_safetensors(tmp_path / "model.safetensors")
    assert (one.values == two.values).all()


def test_a_state_that_does_not_fit_is_refused_and_changes_nothing() -> None:
    model = small("CharMLP")
    before = model.values.copy()
    state = {name: x + 1 for name, x in model.state_dict().items()}
    state["extra.weight"] = state.pop("mlp.2.bias")
    state["mlp.0.bias"] = np.zeros(9)
    with pytest.raises(ValueError, match=r"missing: mlp\.2\.bias; unexpected: extra") as error:
        model.load_state_dict(state)
    assert "mlp.0.bias has shape (8,), not (9,)" in str(error.value)
    with pytest.raises(ValueError, match=r"mlp\.0\.bias has shape"):
        model.load_state_dict(state, strict=False)
    assert (model.values == before).all()
    state["mlp.0.bias"] = np.zeros(8)
    model.load_state_dict(state, strict=False)
    assert (model.state_dict()["wte.weight"] == state["wte.weight"]).all()


def test_masks_stored_beside_weights_are_passed_over() -> None:
    model = small("GPT")
    state = model.state_dict()
    state["blocks.0.sa.heads.0.tril"] = np.tril(np.ones((8, 8)))
    model.load_state_dict(state)


def test_parameters_are_views() -> None:
    model = small("GPT")
    x, y = batch(model, 2)
    parameter = model.parameters()[0]
    model.loss_and_grad(x, y)
    assert parameter.grad.any()
    parameter.data[:] = 5
    assert (model.values[: parameter.data.size] == 5).all()


@KINDS
def test_training_lowers_the_loss(kind: str) -> None:
    model = small(kind, "float32")
    x, y = batch(model, 8)
    optimizer = bt.optim.Adam(model, lr=0.02)
    first = model.loss(x, y)
    for _ in range(100):
        model.loss_and_grad(x, y, micro_batch=8)
        optimizer.step()
    assert model.loss(x, y) < 0.5 * first


# ---- text ----------------------------------------------------------------------------------------


@KINDS
def test_generated_text_depends_on_the_seed_only(kind: str) -> None:
    model = small(kind)
    text = model.generate(60, seed=5)
    assert text.shape == (60,)
    assert text.dtype == np.int64
    assert ((text >= 0) & (text < model.config["vocab"])).all()
    assert (model.generate(60, seed=5) == text).all()
    assert (model.generate(60, seed=6) != text).any()
    assert (model.generate(40, seed=5) == text[:40]).all()
    assert model.generate(0).shape == (0,)
    with pytest.raises(ValueError, match="n can't be negative"):
        model.generate(-1)
    with pytest.raises(ValueError, match="index 99"):
        model.generate(1, start=[99])
    with pytest.raises(ValueError, match="temperature must be positive"):
        model.generate(1, temperature=0.0)


@KINDS
def test_a_cold_model_says_what_is_likeliest(kind: str) -> None:
    """Follow generate step by step with the logits of the same contexts."""
    model = small(kind)
    context = model.config["context"]
    start = [1, 2, 3, 4, 5, 6, 7, 8][:context]
    text = list(start)
    for drawn in model.generate(20, start=start, temperature=1e-9):
        seen = text[-context:]
        if kind == "CharMLP":
            word = seen[len(seen) - seen[::-1].index(0) :] if 0 in seen else seen
            seen = [0] * (context - len(word)) + word
        logits = model.logits([seen])[0]
        assert drawn == np.argmax(logits if kind == "CharMLP" else logits[-1])
        text.append(int(drawn))


# ---- the interpreter's lock ----------------------------------------------------------------------


def test_long_calls_let_other_threads_run_and_refuse_them_the_model() -> None:
    model = bt.nn.GPT()
    x = np.zeros((1000, 8), int)
    ticks, refused = 0, []
    done = threading.Event()

    def work() -> None:
        model.loss_and_grad(x, x)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.is_set():
        ticks += 1
        try:
            model.loss(x[:1], x[:1])
        except bt.Error as error:
            refused.append(str(error))
        time.sleep(0.001)
    thread.join()
    assert ticks > 1
    assert set(refused) == {"this model is in use by a long call of another thread"}


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_ends_a_long_call(threads: int) -> None:
    model = bt.nn.GPT()
    x = np.zeros((1_000_000, 8), np.int32)
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        model.loss_and_grad(x, x, threads=threads)
    timer.join()
    assert model.loss_and_grad(x[:2], x[:2]) > 0


def test_micro_batch_is_chosen_by_sizes() -> None:
    model = bt.nn.CharMLP(hidden=8)
    x, y = np.arange(9 * 16).reshape(9, 16) % 27, np.arange(9)
    loss = model.loss_and_grad(x, y)
    grads = model.grads.copy()
    assert model.micro_batch_for(9) == 9
    assert 64 <= model.micro_batch_for(10_000) <= 256
    assert model.loss_and_grad(x, y, micro_batch=9) == loss
    np.testing.assert_array_equal(model.grads, grads)
    assert model.loss(x, y, micro_batch=1) == pytest.approx(loss)
    for wrong in ("Auto", 2.0, None):
        with pytest.raises(TypeError, match="micro_batch is a number of samples or 'auto'"):
            model.loss_and_grad(x, y, micro_batch=wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="samples must be at least 1"):
        model.micro_batch_for(0)
