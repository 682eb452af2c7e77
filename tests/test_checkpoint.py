# tests/test_checkpoint.py — checkpoints: what they hold, what they survive, what they refuse
# SPDX-License-Identifier: MIT
from __future__ import annotations

import io
import json
import math
import os
import random as rand
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import burtorch as bt
import numpy as np
import pytest
import setup
from burtorch.io import read_tensors, write_tensors
from burtorch.nn import LAYERS, MODELS
from conftest import Run
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

SIZES: dict[str, dict[str, Any]] = {
    "CharMLP": {"hidden": 3, "vocab": 5, "embed": 2, "context": 4},
    "GPT": {"vocab": 7, "context": 4, "d_model": 6, "layers": 2, "heads": 3},
    "Linear": {"inputs": 3, "outputs": 2, "bias": False},
    "Neuron": {"inputs": 3, "activation": "tanh"},
    "MLP": {"sizes": [3, 4, 2], "activation": "gelu"},
    "Embedding": {"entries": 5, "size": 2},
    "LayerNorm": {"size": 4, "eps": 1e-3},
    "SelfAttention": {"size": 4, "heads": 2},
    "TransformerBlock": {"size": 4, "heads": 2},
    "Conv1d": {"in_channels": 2, "out_channels": 4, "kernel_size": 3, "groups": 2},
    "Conv2d": {"in_channels": 2, "out_channels": 3, "kernel_size": [2, 1], "bias": False},
    "LSTM": {"input_size": 2, "hidden_size": 3, "num_layers": 2},
    "GRU": {"input_size": 2, "hidden_size": 3, "bias": False},
    "LSTMCell": {"input_size": 2, "hidden_size": 3},
    "GRUCell": {"input_size": 2, "hidden_size": 3},
}
KINDS = pytest.mark.parametrize("kind", [each.__name__ for each in (*MODELS, *LAYERS)])


def make(kind: str) -> Any:
    return getattr(bt.nn, kind)(**SIZES[kind])


def tiny() -> Any:
    return make("CharMLP")


def batch(rng: np.random.Generator) -> tuple[Any, Any]:
    return rng.integers(0, 5, (6, 4)), rng.integers(0, 5, 6)


# ---- what comes back -----------------------------------------------------------------------------


@KINDS
def test_every_model_and_layer_comes_back(kind: str, tmp_path: Path) -> None:
    model = make(kind)
    assert type(model).count_parameters(**model.config) == model.num_parameters
    path = tmp_path / "model.safetensors"
    bt.save(model, path)
    bt.nn.seed(3)
    before = bt.Random(3).state
    again = bt.load(path)
    assert type(again) is type(model)
    assert again.config == model.config
    state = model.state_dict()
    assert {n: x.tobytes() for n, x in again.state_dict().items()} == {
        n: x.tobytes() for n, x in state.items()
    }
    # Others read it, and drawing goes on where it was.
    theirs = load_file(path)
    assert theirs.keys() == state.keys()
    assert all((theirs[name] == x).all() for name, x in state.items())
    assert bt.nn.Linear(2, 2).weight.data.tolist() == (
        bt.nn.Linear(2, 2, random=bt.Random(3)).weight.data.tolist()
    ), before


def test_loading_draws_no_parameters() -> None:
    for model in (bt.nn.CharMLP(hidden=3, seed=5), bt.nn.GPT(layers=1, seed=5)):
        blank = type(model)._blank(model.dtype, model.config)
        assert blank.config == model.config
        assert {*np.unique(blank.values)} <= {0, 1}  # normalizations begin with 1
        assert blank.values.size == model.values.size


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dtypes_are_kept(dtype: str) -> None:
    model = bt.nn.GPT(**SIZES["GPT"], dtype=dtype, seed=4)
    file = io.BytesIO()
    bt.save(model, file)
    assert bt.load(file.getvalue()).dtype == dtype
    with bt.Tape(dtype):
        layer = bt.nn.Linear(3, 2)
        file = io.BytesIO()
        bt.save(layer, file)
        assert bt.load(file.getvalue()).weight.tape.dtype == dtype
    other = "float32" if dtype == "float64" else "float64"
    with bt.Tape(other), pytest.raises(ValueError, match=f"a layer of {dtype}, the current tape"):
        bt.load(file.getvalue())


def test_paths_streams_and_bytes(tmp_path: Path) -> None:
    model = tiny()
    file = io.BytesIO()
    bt.save(model, file)
    content = file.getvalue()
    for path in (tmp_path / "a", str(tmp_path / "b")):
        bt.save(model, path, durable=False)
        assert Path(path).read_bytes() == content
        assert (bt.load(path).values == model.values).all()
    with (tmp_path / "a").open("rb") as opened:
        assert (bt.load(opened).values == model.values).all()
    for source in (content, bytearray(content), memoryview(content)):
        assert (bt.load(source).values == model.values).all()


class Pieces(io.RawIOBase):
    """Takes some bytes at a time; at last, maybe, nothing more."""

    def __init__(self, most: int, room: int = 10**9, full: int | None = None) -> None:
        self.content, self._most, self._room, self._full = b"", most, room, full

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int | None:
        taken = bytes(data[: min(self._most, self._room - len(self.content))])
        self.content += taken
        return len(taken) or self._full


def test_files_that_take_only_a_part_get_the_rest_too() -> None:
    file = io.BytesIO()
    bt.save(tiny(), file)
    with bt.Tape() as tape:
        kept = [bt.Value(float(i)) for i in range(100)]
        savers: list[Any] = [lambda x: bt.save(tiny(), x), tape.save, tape.save_graph]
        for save in savers:
            file, part = io.BytesIO(), Pieces(7)
            save(file)
            save(part)
            assert part.content == file.getvalue()
            with pytest.raises(BlockingIOError) as caught:
                save(Pieces(7, 20))
            assert caught.value.characters_written in (20, 12)  # of this part of the file
            with pytest.raises(OSError, match="the file took 0 of"):
                save(Pieces(7, 20, 0))
            with pytest.raises(OSError, match=r"the file took \d+ of"):
                save(Pieces(7, 20, 10**6))
            with pytest.raises(OSError, match="the file took -1 of"):
                save(Pieces(7, 20, -1))

            class Silent:  # as many wrappers are: it says nothing and takes everything
                content = b""

                def write(self, data: Any) -> None:
                    self.content += bytes(data)

            silent = Silent()
            save(silent)
            assert silent.content == file.getvalue()
    assert len(kept) == 100


# What is refused is not read to its end.
COPY = """
import pathlib, sys
try:
    pathlib.Path(sys.argv[2]).write_bytes(pathlib.Path(sys.argv[1]).read_bytes())
except BrokenPipeError:
    pass
"""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_pipes_are_read(tmp_path: Path) -> None:
    model = tiny()
    file, graph = io.BytesIO(), io.BytesIO()
    bt.save(model, file, optimizer=bt.optim.Adam(model), arrays={"big": np.arange(100_000)})
    with bt.Tape() as tape:
        kept = bt.Value(3.0)
        tape.save_graph(graph)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def through(content: bytes, load: Any) -> Any:
        (tmp_path / "content").write_bytes(content)
        command = [sys.executable, "-c", COPY, str(tmp_path / "content"), str(pipe)]
        writer = subprocess.Popen(command)
        try:
            return load(pipe)
        finally:
            writer.wait(timeout=60)

    assert (through(file.getvalue(), bt.load).values == model.values).all()
    checkpoint = through(file.getvalue(), bt.load_checkpoint)
    assert checkpoint.arrays["big"].tolist() == list(range(100_000))
    for wrong in (b"", file.getvalue()[:-1], file.getvalue() + b"x"):
        with pytest.raises(ValueError, match="pipe can't be read"):
            through(wrong, bt.load)
    with tape:
        assert through(np.array([5.0]).tobytes(), tape.load) == 1
        assert kept.data == 5.0
    assert through(graph.getvalue(), bt.load_graph).values.tolist() == [3.0]
    savers: list[Any] = [lambda path: bt.save(model, path), tape.save_graph]
    for save in savers:
        reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
        save(pipe)
        assert reader.communicate()[0]
        assert pipe.is_fifo()


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no /dev/zero")
def test_what_has_no_end_is_not_read_to_its_end() -> None:
    with pytest.raises(ValueError, match="its header is no JSON"):
        bt.load("/dev/zero")
    with pytest.raises(ValueError, match="does not begin as graphs do"):
        bt.load_graph("/dev/zero")
    with bt.Tape() as tape:
        kept = bt.Value(3.0)
        with pytest.raises(ValueError, match="16 bytes are 2 nodes; from 0 on the tape holds 1"):
            tape.load("/dev/zero")
        assert kept.data == 3.0


def test_a_path_that_can_write_is_a_path(tmp_path: Path) -> None:
    class Own:
        def __fspath__(self) -> str:
            return str(tmp_path / "own")

        def read(self, how: str = "r") -> str:
            raise AssertionError("py.path.local reads texts")

        write = read

    model = tiny()
    bt.save(model, Own())
    assert (bt.load(Own()).values == model.values).all()
    with bt.Tape() as tape:
        tape.save_graph(Own())
        assert len(bt.load_graph(Own())) == 0


def test_arguments_that_make_no_sense(tmp_path: Path) -> None:
    path = tmp_path / "x"
    bt.save(tiny(), path, step=np.int64(3))  # type: ignore[arg-type]
    assert bt.load_checkpoint(path).step == 3
    with pytest.raises(ValueError, match="can't be -1"):
        bt.save(tiny(), path, step=-1)
    with pytest.raises(TypeError):
        bt.save(tiny(), path, step=1.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no array can be called __metadata__"):
        write_tensors(path, {"__metadata__": np.zeros(3)})
    with bt.Tape() as tape:
        attempts: list[Any] = [
            lambda x: bt.save(tiny(), x),
            bt.load,
            tape.save,
            tape.load,
            tape.save_graph,
            bt.load_graph,
        ]
        for attempt in attempts:
            with pytest.raises(ValueError, match="null"):
                attempt(f"{path}\0y")
    assert [each.name for each in tmp_path.iterdir()] == ["x"]


def test_options_of_an_optimizer_come_back(tmp_path: Path) -> None:
    def step(model: Any, optimizer: Any) -> None:
        model.loss_and_grad(*batch(np.random.default_rng(3)))
        optimizer.step()

    model = tiny()
    optimizer = bt.optim.Adam(model, lr=0.1, betas=(0.5, 0.6), eps=1e-4, weight_decay=0.1)
    step(model, optimizer)
    bt.save(model, tmp_path / "x", optimizer=optimizer)
    checkpoint = bt.load_checkpoint(tmp_path / "x")
    again = checkpoint.model()
    other = bt.optim.Adam(again)
    checkpoint.restore(optimizer=other)
    assert other.state_dict()["options"] == optimizer.state_dict()["options"]
    for _ in range(3):
        step(model, optimizer)
        step(again, other)
    assert again.values.tobytes() == model.values.tobytes()


def test_checkpoints_without_options_are_read() -> None:
    content = saved()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    text = json.loads(header["__metadata__"]["burtorch"])
    del text["optimizer"]["options"], text["optimizer"]["schedule"]
    header["__metadata__"]["burtorch"] = json.dumps(text)
    new = json.dumps(header).encode()
    checkpoint = bt.load_checkpoint(len(new).to_bytes(8, "little") + new + content[8 + length :])
    optimizer = bt.optim.SGD(checkpoint.model(), momentum=0.25)
    checkpoint.restore(optimizer=optimizer)
    assert optimizer.state_dict()["options"]["momentum"] == 0.25


@pytest.mark.parametrize("kind", ["GD", "SGD", "Adam", "AdamW"])
@pytest.mark.parametrize("generator", ["PCG64", "MT19937", "Philox", "Random"])
def test_training_goes_on_as_if_it_had_never_stopped(
    kind: str, generator: str, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"momentum": 0.9} if kind == "SGD" else {}

    def rng() -> Any:
        return (
            bt.Random(5)
            if generator == "Random"
            else np.random.Generator(getattr(np.random, generator)(5))
        )

    def optimizer(model: Any) -> Any:
        return getattr(bt.optim, kind)(model, lr=bt.optim.Cosine(0.1, 20), **options)

    def train(model: Any, optimizer: Any, random: Any, steps: int) -> None:
        for _ in range(steps):
            seed = random.bits() if generator == "Random" else int(random.integers(2**32))
            model.loss_and_grad(*batch(np.random.default_rng(seed)))
            optimizer.step()

    whole = tiny()
    its, numbers = optimizer(whole), rng()
    train(whole, its, numbers, 12)

    part = tiny()
    mine, random = optimizer(part), rng()
    train(part, mine, random, 5)
    bt.save(part, tmp_path / "part", optimizer=mine, random=random, about={"note": "√"})

    checkpoint = bt.load_checkpoint(tmp_path / "part")
    assert checkpoint.step == 5
    assert checkpoint.about == {"note": "√"}
    rest = checkpoint.model()
    mine, random = optimizer(rest), rng()
    checkpoint.restore(optimizer=mine, random=random)
    train(rest, mine, random, 7)
    assert rest.values.tobytes() == whole.values.tobytes()
    assert mine.lr == its.lr
    assert mine.steps == its.steps == 12


def test_a_layer_and_its_optimizer_go_on(tmp_path: Path) -> None:
    def step(layer: Any, optimizer: Any) -> None:
        optimizer.zero_grad()
        with bt.current_tape().scope():
            (layer([[1.0, 2.0, 3.0]]) * layer([[0.5, 0.5, 0.5]])).sum().backward()
            optimizer.step()

    layer = bt.nn.MLP([3, 4, 2], "tanh", random=bt.Random(1))
    optimizer = bt.optim.Adam(layer, lr=0.1)
    step(layer, optimizer)
    bt.save(layer, tmp_path / "layer", optimizer=optimizer, step=77)
    step(layer, optimizer)
    checkpoint = bt.load_checkpoint(tmp_path / "layer")
    assert checkpoint.step == 77
    again = checkpoint.model()
    other = bt.optim.Adam(again, lr=0.5)
    checkpoint.restore(optimizer=other)
    step(again, other)
    for mine, its in zip(again.parameters(), layer.parameters()):
        assert mine.data.tobytes() == its.data.tobytes()


def test_the_callers_arrays_are_kept(tmp_path: Path) -> None:
    arrays: dict[str, Any] = {
        "loss": np.arange(3.0),
        "turned": np.arange(6).reshape(2, 3).T,
        "big-endian": np.arange(3, dtype=">i4"),
        "nothing": np.zeros((0, 4), np.float32),
        "one": np.float64(7),
        "flags": np.array([True, False]),
    }
    bt.save(tiny(), tmp_path / "file", arrays=arrays)
    found = bt.load_checkpoint(tmp_path / "file").arrays
    assert found.keys() == arrays.keys()
    for name, x in arrays.items():
        assert found[name].shape == np.shape(x)
        assert (found[name] == x).all()
    with pytest.raises(TypeError, match="words: arrays of <U1 can't be stored"):
        bt.save(tiny(), tmp_path / "file", arrays={"words": np.array(["a"])})
    assert bt.load_checkpoint(tmp_path / "file").arrays.keys() == arrays.keys()


def test_files_of_other_libraries_are_read(tmp_path: Path) -> None:
    model = tiny()
    state = {name: x + 1 for name, x in model.state_dict().items()}
    save_file(state, tmp_path / "theirs", {"format": "pt"})
    checkpoint = bt.load_checkpoint(tmp_path / "theirs")
    checkpoint.restore(model=model)
    assert (model.state_dict()["wte.weight"] == state["wte.weight"]).all()
    with pytest.raises(ValueError, match="does not say how its model is made"):
        checkpoint.model()
    halves = {"x": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}
    text = json.dumps(halves).encode()
    content = len(text).to_bytes(8, "little") + text + b"\xc0\x3f\x00\xc0"
    assert read_tensors(content)[0]["x"].tolist() == [1.5, -2.0]


def test_what_is_written_is_the_format_of_the_library(tmp_path: Path) -> None:
    from safetensors import safe_open

    tensors = {"a": np.arange(4.0), "b": np.arange(3, dtype=np.float32).reshape(3, 1)}
    write_tensors(tmp_path / "x", tensors, {"note": "√"})
    with safe_open(tmp_path / "x", "numpy") as file:
        assert file.metadata() == {"note": "√"}
        for name, x in tensors.items():
            assert (file.get_tensor(name) == x).all()
    found, metadata = read_tensors(tmp_path / "x")
    assert metadata == {"note": "√"}
    assert (found["b"] == tensors["b"]).all()


# ---- what does not fit ---------------------------------------------------------------------------


@KINDS
def test_a_state_that_does_not_fit_is_named(kind: str) -> None:
    model = make(kind)
    state = model.state_dict()
    before = {name: x.tobytes() for name, x in state.items()}
    first, last = next(iter(state)), list(state)[-1]
    wrong = {name: x + 1 for name, x in state.items()}
    wrong["other"] = np.zeros(1)
    message = f"the state does not fit {kind}: unexpected: other"
    with pytest.raises(ValueError, match=message):
        model.load_state_dict(wrong)
    del wrong["other"], wrong[last]
    with pytest.raises(ValueError, match=f"missing: {last}$"):
        model.load_state_dict(wrong)
    wrong = {**state, first: np.zeros((9, 9))}
    with pytest.raises(ValueError, match=rf"{first} has shape .*, not \(9, 9\)"):
        model.load_state_dict(wrong, strict=False)
    with pytest.raises(ValueError, match=f"{first} is of complex"):
        model.load_state_dict({**state, first: state[first] * 1j})
    assert {name: x.tobytes() for name, x in model.state_dict().items()} == before
    model.load_state_dict({first: state[first] + 1}, strict=False)
    assert (model.state_dict()[first] == state[first] + 1).all()


def test_parts_that_do_not_fit_a_checkpoint(tmp_path: Path) -> None:
    model = tiny()
    optimizer = bt.optim.Adam(model)
    bt.save(model, tmp_path / "bare")
    bt.save(model, tmp_path / "full", optimizer=optimizer, random=bt.Random(1))
    bare, full = (bt.load_checkpoint(tmp_path / name) for name in ("bare", "full"))
    with pytest.raises(ValueError, match="bare has no optimizer"):
        bare.restore(optimizer=optimizer)
    with pytest.raises(ValueError, match="bare has no generator of random numbers"):
        bare.restore(random=bt.Random(1))
    with pytest.raises(ValueError, match="an optimizer Adam, not SGD"):
        full.restore(optimizer=bt.optim.SGD(model))
    with pytest.raises(ValueError, match="random numbers of Random, not of PCG64"):
        full.restore(random=np.random.default_rng())
    with pytest.raises(TypeError, match=r"a bt\.Random or a numpy\.random\.Generator, not int"):
        bt.save(model, tmp_path / "x", random=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="does not fit GPT: missing: token_embedding_table"):
        full.restore(model=make("GPT"))


class OwnLayer(bt.nn.Module):
    def __init__(self) -> None:
        self.inner = bt.nn.Linear(2, 2)

    def parts(self) -> Any:
        yield "inner", self.inner


def test_a_layer_of_ones_own_is_restored_into(tmp_path: Path) -> None:
    one, other = OwnLayer(), OwnLayer()
    bt.save(one, tmp_path / "own")
    checkpoint = bt.load_checkpoint(tmp_path / "own")
    with pytest.raises(ValueError, match=r"does not say how its model is made \(OwnLayer\)"):
        checkpoint.model()
    checkpoint.restore(model=other)
    assert (one.inner.weight.data == other.inner.weight.data).all()


# ---- hostile input -------------------------------------------------------------------------------


def saved() -> bytes:
    model = tiny()
    file = io.BytesIO()
    bt.save(model, file, optimizer=bt.optim.SGD(model, momentum=0.5), random=bt.Random(2))
    return file.getvalue()


def changed(**changes: Any) -> bytes:
    """A checkpoint whose text says something else; a dot in a name leads into what it says."""
    content = saved()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    text = json.loads(header["__metadata__"]["burtorch"])
    for name, value in changes.items():
        at, *rest = name.split("__")
        place = text
        while rest:
            place, at, rest = place[at], rest[0], rest[1:]
        place[at] = value
    header["__metadata__"]["burtorch"] = json.dumps(text)
    new = json.dumps(header).encode()
    return len(new).to_bytes(8, "little") + new + content[8 + length :]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "burtorch checkpoint 2"}, "it is 'burtorch checkpoint 2', known is"),
        ({"model__kind": "os.system"}, r"does not say how its model is made \(os.system\)"),
        ({"model__kind": "Module"}, "does not say how its model is made"),
        ({"model__kind": ["CharMLP"]}, "does not say how its model is made"),
        ({"model": 3}, "does not say how its model is made"),
        ({"model__arguments": {"hidden": 10**12}}, "the arguments of CharMLP"),
        ({"model__arguments__hidden": 10**12}, "parameters, the file"),
        ({"model__arguments__hidden": "x"}, "the arguments of CharMLP"),
        ({"model__arguments__hidden": 3.0}, "the arguments of CharMLP"),
        ({"model__arguments__seed": -1}, "the arguments of CharMLP: seed can't be negative"),
        ({"model__dtype": "float16"}, "the arguments of CharMLP: dtype 'float16'"),
        ({"model__dtype": " floa, 2)"}, "the arguments of CharMLP: dtype"),
        ({"model__kind": "MLP", "model__arguments": {"sizes": [], "activation": "relu"}}, "file"),
    ],
)
def test_what_a_file_says_is_not_believed(changes: dict[str, Any], message: str) -> None:
    assert bt.load(changed()).config == tiny().config
    with pytest.raises(ValueError, match=message):
        bt.load(changed(**changes))


def test_states_that_make_no_sense_are_refused() -> None:
    model = tiny()
    wrong: list[dict[str, Any]] = [
        {"optimizer__pieces": 10**12},
        {"optimizer__steps": -1},
        {"optimizer": []},
        *({"optimizer__lr": lr} for lr in ("fast", 10**400, math.nan, math.inf, -1, True, None)),
        {"optimizer__options": 3},
        {"optimizer__options": {"momentum": 0.5}},
        *({"optimizer__options__momentum": x} for x in ("x", True, math.nan, -1.0, 10**400, None)),
        {"optimizer__options__nesterov": 1},
        {"optimizer__schedule": "Cosine"},
        {"optimizer__schedule": 3},
    ]
    optimizer = bt.optim.SGD(model, lr=0.25)
    for changes in wrong:
        with pytest.raises(ValueError, match=r"has no optimizer|can't be read: its optimizer"):
            bt.load_checkpoint(changed(**changes)).restore(optimizer=optimizer)
        assert (optimizer.lr, optimizer.steps) == (0.25, 0)
    for state in ([], [1, 2, 3, -4], "abcd", [1, 2, 3, 2**64], [0, 0, 0, 0], [1, 2, 3, 4.0], None):
        with pytest.raises(ValueError, match="can't be read: the state of Random"):
            bt.load_checkpoint(changed(random__state=state)).restore(random=bt.Random())
    assert bt.load_checkpoint(changed(step="x", about=3)).step is None


def generator(kind: str) -> np.random.Generator:
    return np.random.Generator(getattr(np.random, kind)(5))


@pytest.mark.parametrize(
    ("kind", "place", "wrong"),
    [
        ("MT19937", "state/pos", [10**9, 625, -1, 3.0, True, None, "3", [3], 2**80]),
        ("MT19937", "state/key", [[], [1] * 623, [1] * 625, [1.0] * 624, [2**32] * 624, "x" * 624]),
        ("MT19937", "state", [{}, [], {"key": [1] * 624}]),
        ("Philox", "buffer_pos", [-1, -(10**9), 5, 1.0]),
        ("Philox", "buffer", [[1, 2, 3], [1, 2, 3, -1], [1, 2, 3, 2**64]]),
        ("Philox", "state/key", [[1], [1, 2, 3], [0.5, 1]]),
        ("PCG64", "state/state", [-1, 2**128, 1.0, [1]]),
        ("PCG64", "state/inc", [2**128, "1"]),
        ("PCG64", "has_uint32", [2, -1, True, 0.0]),
        ("PCG64DXSM", "uinteger", [2**32, -1]),
        ("PCG64", "bit_generator", ["PCG64DXSM", 3]),
        ("SFC64", "state/state", [[1, 2, 3], [1, 2, 3, 2**64], 1]),
        ("SFC64", "more", [1]),
    ],
)
def test_generators_are_told_only_what_they_can_be(kind: str, place: str, wrong: list[Any]) -> None:
    """They believe everything, and would read behind the ends of their arrays."""
    model, file = tiny(), io.BytesIO()
    bt.save(model, file, random=generator(kind))
    text = json.loads(read_tensors(file.getvalue())[1]["burtorch"])
    for value in wrong:
        state = json.loads(json.dumps(text["random"]))
        at, *names = reversed(["state", *place.split("/")])
        inside = state
        for name in reversed(names):
            inside = inside[name]
        inside[at] = value
        random, same = generator(kind), generator(kind)
        with pytest.raises(ValueError, match=f"can't be read: the state of {kind}"):
            bt.load_checkpoint(changed(random=state)).restore(random=random)
        assert random.integers(2**60, size=700).tolist() == same.integers(2**60, size=700).tolist()


def test_other_generators_are_not_stored() -> None:
    class Own(np.random.PCG64):
        pass

    with pytest.raises(TypeError, match=r"states of MT19937, .* are known, not of Own"):
        bt.save(tiny(), io.BytesIO(), random=np.random.Generator(Own(1)))


def test_headers_of_nothing_but_pieces_are_not_parsed(tmp_path: Path) -> None:
    for piece in (b"[],", b"{},", b'"aa":0,'):
        text = b"[" + piece * 100_000 + b"0]"
        with pytest.raises(ValueError, match="its header consists of too many pieces"):
            read_tensors(len(text).to_bytes(8, "little") + text)
    with pytest.raises(ValueError, match="make an array of them"):
        bt.save(tiny(), tmp_path / "x", about={"lists": [[]] * 100_000})
    many = {f"{i:x}": np.float32(i) for i in range(20_000)}
    write_tensors(tmp_path / "x", many)
    assert read_tensors(tmp_path / "x")[0].keys() == many.keys()
    bt.save(tiny(), tmp_path / "x", about={"lists": [[]] * 5000})
    assert len(bt.load_checkpoint(tmp_path / "x").about["lists"]) == 5000


def test_truncated_files_are_refused(tmp_path: Path) -> None:
    whole = saved()
    for n in range(0, len(whole), 13):
        with pytest.raises(ValueError, match="the checkpoint can't be read"):
            bt.load(whole[:n])
    path = tmp_path / "part"
    path.write_bytes(whole[:100])
    with pytest.raises(ValueError, match=r"part can't be read: its header is cut off"):
        bt.load(path)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="it is too short"):
        bt.load(path)
    with pytest.raises(IsADirectoryError):
        bt.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        bt.load(tmp_path / "none")
    with pytest.raises(OSError, match="Is a directory"):
        bt.save(tiny(), tmp_path)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("[]", "no JSON object"),
        ("{", "no JSON"),
        ("[" * 9_000, "no JSON"),
        ("[" * 100_000, "too many pieces"),
        ('{"x": 3}', "x is not described"),
        ('{"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 8]}}', "not the size"),
        ('{"x": {"dtype": "F32", "shape": [-1, -1], "data_offsets": [0, 4]}}', "no shape"),
        ('{"x": {"dtype": "F32", "shape": [true], "data_offsets": [0, 4]}}', "no shape"),
        ('{"x": {"dtype": "F9", "shape": [1], "data_offsets": [0, 4]}}', "unknown type"),
        ('{"x": {"dtype": [], "shape": [1], "data_offsets": [0, 4]}}', "unknown type"),
        ('{"x": {"dtype": "F32", "shape": [9], "data_offsets": [0, 36]}}', "does not lie in it"),
        ('{"x": {"dtype": "F32", "shape": [1], "data_offsets": [8, 4]}}', "does not lie in it"),
        ('{"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}', "do not fill it"),
        ('{"__metadata__": {"a": 1}}', "metadata are no texts"),
        (
            '{"x": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]},'
            '"x": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}}',
            "a name occurs twice",
        ),
        (
            '{"x": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]},'
            '"y": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}}',
            "do not fill it",
        ),
    ],
)
def test_headers_that_make_no_sense(header: str, message: str) -> None:
    content = len(header).to_bytes(8, "little") + header.encode() + bytes(8)
    with pytest.raises(ValueError, match=message):
        read_tensors(content)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_changed_bytes_are_read_or_refused(data: Any) -> None:
    content = bytearray(saved())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))
    try:
        checkpoint = bt.load_checkpoint(content)
        model = checkpoint.model()
        checkpoint.restore(optimizer=bt.optim.SGD(model, momentum=0.5), random=bt.Random())
    except ValueError:
        return


# ---- crashes -------------------------------------------------------------------------------------

SAVER = """
import sys
import numpy as np
from burtorch.io import write_tensors
from burtorch import Tape, Value
path, graph, range_ = sys.argv[1:]
with Tape() as tape:
    values = [Value(0.0) for _ in range(2000)]
    round = 0
    print("ready", flush=True)
    while True:
        round += 1
        write_tensors(path, {"x": np.full(20_000, float(round)), "y": np.full(7, float(round))})
        tape.values[:] = round
        tape.save_graph(graph, durable=round % 2 == 0)
        tape.save(range_, durable=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="kills a process with a signal")
def test_a_save_that_is_killed_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    path, graph, range_ = (tmp_path / name for name in ("checkpoint", "graph", "range"))
    write_tensors(path, {"x": np.zeros(20_000), "y": np.zeros(7)})
    with bt.Tape() as tape:
        kept = [bt.Value(0.0) for _ in range(2000)]
        tape.save_graph(graph)
        tape.save(range_)
    random = rand.Random(7)
    kills = 0
    seen = set()
    # Forking costs less than starting Python: one process forks savers, which are killed.
    code = FORKER.replace("SAVER", repr(SAVER))
    server = subprocess.Popen(
        [sys.executable, "-c", code, str(path), str(graph), str(range_)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        while kills < 200:
            print("fork", file=server.stdin, flush=True)
            child = int(server.stdout.readline())
            time.sleep(random.uniform(0, 0.02))
            os.kill(child, signal.SIGKILL)
            print("wait", file=server.stdin, flush=True)
            assert server.stdout.readline() == "ended\n"
            kills += 1
            found = read_tensors(path)[0]
            rounds = {*found["x"].tolist(), *found["y"].tolist()}
            assert len(rounds) == 1, "a mixture of two saves"
            seen |= rounds
            assert len(set(bt.load_graph(graph).values.tolist())) == 1
            numbers = np.fromfile(range_)
            assert (len(numbers), len({*numbers.tolist()})) == (2000, 1)
    finally:
        server.stdin.close()
        server.wait()
        server.stdout.close()
    assert len(seen) > 1, "no save was ever finished"
    assert len(kept) == 2000
    # What the killed left behind disturbs nobody, and goes.
    save_until(path, {path, graph, range_})
    assert read_tensors(path)[0]["x"].tolist() == [0]


def save_until(path: Path, files: set[Path]) -> None:
    """Save until there are only these files: a folder is looked through now and then, not each time."""
    end = time.monotonic() + 60
    while True:
        write_tensors(path, {"x": np.zeros(1)})
        if {*path.parent.iterdir()} == files or time.monotonic() > end:
            assert {*path.parent.iterdir()} == files
            return


@pytest.mark.skipif(os.name != "posix", reason="locks files as POSIX does")
def test_only_what_nobody_has_locked_is_removed(tmp_path: Path) -> None:
    import fcntl

    left, held = (tmp_path / f".burtorch.{name}.tmp" for name in ("1.2.3", "4.5.6"))
    other = tmp_path / ".burtorch.notes"
    for file in (left, held, other):
        file.write_bytes(bytes(100))
    with held.open("r+b") as living:
        fcntl.flock(living, fcntl.LOCK_EX)
        save_until(tmp_path / "file", {held, other, tmp_path / "file"})
    save_until(tmp_path / "file", {other, tmp_path / "file"})


def test_a_range_is_replaced_as_a_whole_unless_told_otherwise(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    path = tmp_path / "range"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with bt.Tape() as tape:
        kept = [bt.Value(1.0) for _ in range(2000)]
        tape.save(path)
        tape.values[:] = 2.0
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))  # as on a full disk
            with pytest.raises(OSError, match="File too large"):
                tape.save(path)
            assert (np.fromfile(path) == 1.0).sum() == len(kept)
            assert [file.name for file in tmp_path.iterdir()] == ["range"]
            with pytest.raises(OSError, match="File too large"):
                tape.save(path, in_place=True)
            assert (np.fromfile(path) == 1.0).sum() < len(kept)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            signal.signal(signal.SIGXFSZ, old)
        inode = path.stat().st_ino
        tape.save(path, in_place=True)
        assert path.stat().st_ino == inode
        with pytest.raises(ValueError, match="not both"):
            tape.save(path, durable=True, in_place=True)


FORKER = """
import os, sys
import numpy as np
import burtorch.io
from burtorch import Tape, Value
saver = compile(SAVER.replace('print("ready", flush=True)', ""), "saver", "exec")
child = 0
for line in sys.stdin:
    if line == "fork\\n":
        child = os.fork()
        if child == 0:
            exec(saver)
        print(child, flush=True)
    else:
        os.waitpid(child, 0)
        print("ended", flush=True)
"""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_is_reported() -> None:
    with pytest.raises(OSError, match="No space left"):
        bt.save(tiny(), "/dev/full")
    assert Path("/dev/full").is_char_device()


def as_nobody(folder: Path, f: Any) -> int:
    """How f ends in a process of its own, which is nobody if this one is root, who may everything."""
    child = os.fork()
    if child == 0:
        try:
            os.chdir(folder)  # while it may: the folders above can be anybody's
            if os.geteuid() == 0:
                os.setuid(65534)
            f()
            os._exit(0)
        except PermissionError:
            os._exit(3)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


NEEDS_FORK = pytest.mark.skipif(not hasattr(os, "fork"), reason="permissions of another kind")


@NEEDS_FORK
def test_a_folder_that_may_not_be_written_to(tmp_path: Path) -> None:
    tape = bt.Tape()
    savers = (lambda: bt.save(tiny(), "x"), lambda: tape.save_graph("x"), lambda: tape.save("x"))
    for save in savers:
        tmp_path.chmod(0o555)
        assert as_nobody(tmp_path, save) == 3
        tmp_path.chmod(0o700)
        assert [*tmp_path.iterdir()] == []


@NEEDS_FORK
def test_a_folder_that_may_not_be_read_is_refused_before_anything_changes(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("old")
    for save in (lambda: bt.save(tiny(), "x"), lambda: bt.Tape().save_graph("x")):
        tmp_path.chmod(0o333)
        assert as_nobody(tmp_path, save) == 3
        tmp_path.chmod(0o700)
        assert (tmp_path / "x").read_text() == "old"
        assert [each.name for each in tmp_path.iterdir()] == ["x"]
    tmp_path.chmod(0o333)
    assert as_nobody(tmp_path, lambda: bt.save(tiny(), "x", durable=False)) == 0
    tmp_path.chmod(0o700)
    assert bt.load(tmp_path / "x").config == tiny().config


@NEEDS_FORK
def test_files_that_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(saved())
    (tmp_path / "x").chmod(0)
    tmp_path.chmod(0o755)
    tape = bt.Tape()
    for load in (bt.load, bt.load_graph, tape.load, tape.save):
        assert as_nobody(tmp_path, lambda load=load: load("x")) == 3
    (tmp_path / "x").chmod(0o600)


# Says which files are flushed, in place of flushing them.
FLUSHES = """
#include <cstdio>
#include <unistd.h>
extern "C" int fsync(int file) {
  char link[64], path[4096];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const auto n = readlink(link, path, sizeof path);
  std::printf("%.*s\\n", static_cast<int>(n), path);
  std::fflush(stdout);
  return 0;
}
"""
SAVES = """
import os, sys
import burtorch as bt
durable = sys.argv[1] == "True"
model = bt.nn.CharMLP(hidden=2)
bt.save(model, "checkpoint", durable=durable)
tape = bt.Tape()
tape.save_graph("graph", durable=durable)
tape.save("range", durable=durable)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="replaces a function of the system's library")
def test_file_and_folder_are_flushed(tmp_path: Path, run: Run) -> None:
    compiler = setup.find_compiler()
    if compiler is None:
        pytest.skip("no compiler for the library that replaces fsync")
    (tmp_path / "shim.cpp").write_text(FLUSHES)
    shim, folder = tmp_path / "shim.so", tmp_path / "folder"
    run([compiler.path, "-shared", "-fPIC", tmp_path / "shim.cpp", "-o", shim])
    folder.mkdir()
    for durable in (True, False):
        command = [sys.executable, "-c", SAVES, durable]
        said = run(command, cwd=folder, LD_PRELOAD=str(shim)).splitlines()
        if not durable:
            assert said == []
            continue
        assert len(said) == 6
        for file, place in zip(said[::2], said[1::2]):
            assert re.fullmatch(r"\.burtorch\..*\.tmp", Path(file).name)
            assert Path(file).parent == Path(place) == folder.resolve()


def test_a_save_that_fails_leaves_the_old_content_and_nothing_else(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    path = tmp_path / "file"
    write_tensors(path, {"x": np.zeros(3)})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
        with pytest.raises(OSError, match="File too large"):
            write_tensors(path, {"x": np.zeros(10_000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, old)
    assert read_tensors(path)[0]["x"].tolist() == [0, 0, 0]
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
