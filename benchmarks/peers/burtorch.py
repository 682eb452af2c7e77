# benchmarks/peers/burtorch.py — this project: its ways from C++ and from Python
# SPDX-License-Identifier: MIT
from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.registry import NOT_HERE, Loop, MissingError, Outputs, Parameters, Peer
from benchmarks.works import (
    ACTIVATIONS,
    BATCH,
    FUNCTIONS,
    KERNELS,
    LARGE,
    POINTS,
    PRODUCTS,
    eager,
    files,
    function_of,
    layered,
    model,
    network,
    summary,
)

PEER = Peer("burtorch", pip=["burtorch"])
PEER.program("C++ eager", "burtorch", "tiny", "small", "chain", argument="eager")
for name, source in {
    "scratch": "burtorch",
    "order reused": "burtorch",
    "replay": "burtorch_compiled",
    "program": "burtorch",
    "native": "burtorch_compiled",
    "leaves": "burtorch",
}.items():
    PEER.program(f"C++ {name}", source, "tiny", "small", argument=name)
PEER.program("C++ replay, batch", "burtorch_compiled", "tiny", "small", argument="batch")
PEER.program("C++ numbers", "burtorch", "distances", argument="eager")
PEER.program("C++ a leaf each", "burtorch", "distances", argument="leaves")
for name in ("float", "simd<float, 8>", "double", "simd<double, 4>"):
    PEER.program(f"C++ {name}", "burtorch_scalars", "lanes", argument=name, tolerance=1e-5)
for name, tolerance in {"float": 1e-5, "float16": 0.05, "bfloat16": 0.5}.items():
    PEER.program(
        f"C++ {name}", "burtorch_scalars", "affine tanh", argument=name, tolerance=tolerance
    )
for name in ("lanes", "std"):
    PEER.program(f"C++ {name}", "burtorch_scalars", *FUNCTIONS, argument=name, tolerance=1e-5)
PEER.program(
    "C++ kernel", "burtorch_kernels", *PRODUCTS, *KERNELS, argument="kernel", tolerance=1e-4
)
PEER.program("C++ plain loops", "burtorch_kernels", *PRODUCTS[:3], argument="plain", tolerance=1e-4)
PEER.program("C++", "burtorch_models", "mlp", "gpt", tolerance=1e-4)
PEER.program("C++", "burtorch_files", "save", "load")
for name in ("write and rename", "atomic", "durable"):
    PEER.program(f"C++ {name}", "burtorch_files", "save model", argument=name)
for name in ("mapped", "read"):
    PEER.program(f"C++ {name}", "burtorch_files", "load model", argument=name)


@PEER.offers("Python eager", "tiny", "small")
def values(work: str, parameters: Parameters) -> Loop:
    import burtorch as bt

    return eager(work, bt.Value, bt.relu)


def compiled(work: str, backend: str) -> tuple[Any, Any]:
    """Return the compiled function and its input. What "auto" compiles in the background is waited for."""
    import burtorch as bt
    import numpy as np

    if not hasattr(bt, "compile"):
        raise MissingError(NOT_HERE)
    x = np.array(POINTS[work])
    function = bt.compile(function_of(work, bt, bt.relu), backend=backend)
    function.value_and_grad(x)
    if backend == "auto" and not function.wait():
        raise MissingError("the background compilation gave no native code")
    return function, x


def called(backend: str, has_out: bool) -> Callable[[str, Parameters], Loop]:
    def make(work: str, parameters: Parameters) -> Loop:
        import numpy as np

        function, x = compiled(work, backend)
        options = {"out": np.empty(len(x))} if has_out else {}

        def loop(count: int) -> list[float]:
            for _ in range(count):
                value, gradient = function.value_and_grad(x, **options)
            return [value, *gradient]

        return loop

    return make


def bound(backend: str) -> Callable[[str, Parameters], Loop]:
    def make(work: str, parameters: Parameters) -> Loop:
        import numpy as np

        function, x = compiled(work, backend)
        out = np.empty(len(x) + 1)  # the value, then the gradient
        run = function.bind(x, out)

        def loop(count: int) -> list[float]:
            for _ in range(count):
                run()
            return list(out)

        return loop

    return make


def batch(backend: str) -> Callable[[str, Parameters], Loop]:
    def make(work: str, parameters: Parameters) -> Loop:
        import numpy as np

        function, x = compiled(work, backend)
        samples = np.tile(x, (BATCH, 1))
        room = np.empty(BATCH), np.empty(samples.shape)

        def loop(count: int) -> list[float]:
            for _ in range(count):
                values, gradients = function.batch(samples, out=room)
            return [values[-1], *gradients[-1]]

        return loop

    return make


for backend in ("replay", "native"):
    way = f"Python compiled, {backend}"
    PEER.offers(way, "tiny", "small")(called(backend, has_out=True))
    PEER.offers(f"{way}, new array", "tiny", "small")(called(backend, has_out=False))
    PEER.offers(f"{way}, batch", "tiny", "small", samples=BATCH)(batch(backend))
for backend in ("replay", "native", "auto"):
    PEER.offers(f"Python compiled, {backend}, bound", "tiny", "small", "gravity", "pendulum")(
        bound(backend)
    )


@PEER.offers("Python", "mlp", "gpt", tolerance=1e-4)
def models(work: str, parameters: Parameters) -> Loop:
    import burtorch as bt

    weights, x, y = model(work, parameters)
    network = bt.nn.CharMLP(hidden=parameters["e"]) if work == "mlp" else bt.nn.GPT()
    at = 0
    for w in weights.values():
        network.values[at : at + w.size] = w.ravel()
        at += w.size
    micro = min(len(x), parameters.get("micro", 64 if work == "mlp" else 8))
    threads = parameters.get("threads", 1)

    def loop(count: int) -> Outputs:
        for _ in range(count):
            loss = network.loss_and_grad(x, y, micro_batch=micro, threads=threads)
        return lambda: summary(loss, [network.grads])

    return loop


@PEER.offers("Python", "save", "load")
def raw_files(work: str, parameters: Parameters) -> Loop:
    import burtorch as bt

    if not hasattr(bt.Tape, "save"):
        raise MissingError(NOT_HERE)
    saved, loaded, path = bt.Tape(), bt.Tape(), parameters["path"]
    with saved:
        kept = [bt.Value(x) for x in ACTIVATIONS]
    with loaded:  # zeros: what is read in the end came from the file
        values = [bt.Value(0.0) for _ in kept]

    def load() -> Iterator[float]:
        loaded.load(path)
        return (value.data for value in values)

    loop = files(work, lambda: saved.save(path), load)

    def keeping(count: int) -> Outputs:  # a tape takes back the place of Values that are gone
        assert len(kept) == len(values)
        return loop(count)

    return keeping


@PEER.offers("Python layers", "net", tolerance=1e-4)
def layers(work: str, parameters: Parameters) -> Loop:
    import burtorch as bt

    x, y, weights = network(parameters)
    tape = bt.Tape("float32")
    with tape:
        net = bt.nn.MLP(parameters["sizes"], activation=parameters["activation"])
    flat = [array for pair in weights for array in pair]
    net.load_state_dict(dict(zip(net.state_dict(), flat)))

    def loop(count: int) -> Outputs:
        for _ in range(count):
            net.zero_grad()
            with tape.scope():
                out = net(x)
                loss = bt.cross_entropy(out, y) if y.ndim == 1 else ((out - y) ** 2).mean()
                loss.backward()
                value = loss.data
        return lambda: summary(value, [p.grad for p in net.parameters()])

    return loop


@PEER.offers("Python module", "net", tolerance=1e-4)
def network_module(work: str, parameters: Parameters) -> Loop:
    import burtorch as bt

    class Net(bt.nn.Module):
        def __init__(self) -> None:
            self.mlp = bt.nn.MLP(parameters["sizes"], activation=parameters["activation"])

        def loss(self, x: Any, y: Any) -> Any:
            out = self.mlp(x)
            return bt.cross_entropy(out, y) if y.ndim == 1 else ((out - y) ** 2).mean()

    x, y, weights = network(parameters)
    with bt.Tape("float32"):
        net = Net()
    flat = [array for pair in weights for array in pair]
    net.load_state_dict(dict(zip(net.state_dict(), flat)))
    return gradients(net, x, y)


def gradients(net: Any, x: Any, y: Any, **options: Any) -> Loop:
    def loop(count: int) -> Outputs:
        for _ in range(count):
            loss = net.loss_and_grad(x, y, **options)
        return lambda: summary(loss, [net.grads])

    return loop


@PEER.offers("Python module", "conv", "lstm", tolerance=1e-3)
def layered_module(work: str, parameters: Parameters) -> Loop:
    import burtorch as bt

    class Conv(bt.nn.Module):
        def __init__(self) -> None:
            self.first, self.second = bt.nn.Conv2d(1, 8, 3), bt.nn.Conv2d(8, 16, 3)
            self.pool, self.out = bt.nn.MaxPool2d(2), bt.nn.Linear(400, 10)

        def loss(self, x: Any, y: Any) -> Any:
            for layer in (self.first, self.second):
                x = self.pool(bt.relu(layer(x)))
            return bt.cross_entropy(self.out(x.reshape(len(x), 400)), y)

    class Lstm(bt.nn.Module):
        def __init__(self) -> None:
            self.lstm, self.out = bt.nn.LSTM(8, 32), bt.nn.Linear(32, 1)

        def loss(self, x: Any, y: Any) -> Any:
            _, (h, _) = self.lstm(x)
            return bt.mse_loss(self.out(h[0]), y)

    weights, x, y = layered(work, parameters)
    with bt.Tape("float32"):
        net = Conv() if work == "conv" else Lstm()
    net.load_state_dict(weights)
    return gradients(net, x, y)


def gpt_of_layers() -> Any:
    """Return the paper's GPT as a user would write it."""
    import burtorch as bt
    import numpy as np

    random = bt.Random(0)

    class Composed(bt.nn.Module):
        def __init__(self) -> None:
            self.tokens = bt.nn.Embedding(65, 24, random=random)
            self.positions = bt.nn.Embedding(8, 24, random=random)
            self.blocks = [bt.nn.TransformerBlock(24, 6, random) for _ in range(6)]
            self.output = bt.nn.Linear(24, 65, random=random)

        def loss(self, x: Any, y: Any) -> Any:
            at = self.positions(np.arange(8)).reshape(1, 8 * 24)
            h = (self.tokens(x.reshape(-1)).reshape(len(x), 8 * 24) + at).reshape(8 * len(x), 24)
            for block in self.blocks:
                h = block(h, 8)
            return bt.cross_entropy(self.output(h), y.reshape(-1))

    with bt.Tape("float32"):
        return Composed()


def char_mlp_of_layers(hidden: int) -> Any:
    """Return the paper's CharMLP as a user would write it."""
    import burtorch as bt

    class Composed(bt.nn.Module):
        def __init__(self) -> None:
            self.table = bt.nn.Embedding(27, 64)
            self.hidden, self.out = bt.nn.Linear(16 * 64, hidden), bt.nn.Linear(hidden, 27)

        def loss(self, x: Any, y: Any) -> Any:
            return bt.cross_entropy(self.out(bt.tanh(self.hidden(self.table(x)))), y)

    with bt.Tape("float32"):
        return Composed()


@PEER.offers("Python module", "mlp", "gpt", tolerance=1e-4)
def composed(work: str, parameters: Parameters) -> Loop:
    import numpy as np

    weights, x, y = model(work, parameters)
    net = gpt_of_layers() if work == "gpt" else char_mlp_of_layers(parameters["e"])
    net.values = np.concatenate([w.ravel() for w in weights.values()])
    return gradients(net, x, y, threads=parameters.get("threads", 1))


def step(make: Callable[[], Any], name: str) -> Callable[[str, Parameters], Loop]:
    def make_loop(work: str, parameters: Parameters) -> Loop:
        import burtorch as bt

        net = make()
        run = net.zero_grad if name == "zero_grad" else bt.optim.AdamW(net).step

        def loop(count: int) -> list[float]:
            for _ in range(count):
                run()
            return [net.num_parameters]

        return loop

    return make_loop


def built_in() -> Any:
    import burtorch as bt

    return bt.nn.GPT(dtype="float32")


PEER.offers("Python AdamW, GPT of layers", "step")(step(gpt_of_layers, "AdamW"))
PEER.offers("Python AdamW, built-in GPT", "step")(step(built_in, "AdamW"))
PEER.offers("Python zero_grad, GPT of layers", "step")(step(gpt_of_layers, "zero_grad"))


def writing(how: str) -> Callable[[str, Parameters], Loop]:
    def make(work: str, parameters: Parameters) -> Loop:
        import burtorch as bt

        model = bt.nn.CharMLP(hidden=1024)
        path, content = Path(parameters["path"]), memoryview(model.values.data).cast("B")

        def write_and_rename() -> None:
            beside = path.with_suffix(".tmp")
            file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
            os.write(file, content)
            os.close(file)
            os.rename(beside, path)

        save: Callable[[], object] = {
            "write and rename": write_and_rename,
            "save": lambda: bt.save(model, path),
            "save, durable=False": lambda: bt.save(model, path, durable=False),
        }[how]

        def loop(count: int) -> Outputs:
            for _ in range(count):
                save()
            return lambda: [min(path.stat().st_size // 4, LARGE)]  # a file may have a head

        return loop

    return make


def reading(how: str) -> Callable[[str, Parameters], Loop]:
    def make(work: str, parameters: Parameters) -> Loop:
        import burtorch as bt

        model, path = bt.nn.CharMLP(hidden=1024), parameters["path"]
        bt.save(model, path)
        load: Callable[[], object] = {
            "load_checkpoint, mapped": lambda: bt.load_checkpoint(path),
            "load_checkpoint, restore": lambda: bt.load_checkpoint(path).restore(model=model),
            "load, makes the model": lambda: bt.load(path),
        }[how]

        def loop(count: int) -> list[float]:
            for _ in range(count):
                load()
            return [model.num_parameters]

        return loop

    return make


for name in ("save, durable=False", "save", "write and rename"):
    PEER.offers(f"Python {name}", "save model")(writing(name))
for name in ("load_checkpoint, mapped", "load_checkpoint, restore", "load, makes the model"):
    PEER.offers(f"Python {name}", "load model")(reading(name))


def importing(name: str) -> Callable[[str, Parameters], Loop]:
    """Return how to make the loop that imports, which takes time only once."""

    def make(work: str, parameters: Parameters) -> Loop:
        def loop(count: int) -> list[float]:
            importlib.import_module(name)
            return []

        return loop

    return make


PEER.offers("Python import burtorch", "import")(importing("burtorch"))
PEER.offers("Python import numpy", "import")(importing("numpy"))


@PEER.offers("Python", "values")
def living(work: str, parameters: Parameters) -> Loop:
    import burtorch as bt

    tape = bt.Tape(capacity=parameters["n"])
    kept: list[bt.Value] = []

    def loop(count: int) -> list[float]:
        with tape:
            kept[:] = [bt.Value(0.5) for _ in range(parameters["n"])]
        return [len(kept)]

    return loop


@PEER.offers("Python viz.live", "live")
def live(work: str, parameters: Parameters) -> Loop:
    """An update of a view; its clock moves by a step's time with each, whatever they take."""
    import burtorch as bt
    from burtorch.viz import _live

    clock = 0.0
    vars(_live)["monotonic"] = lambda: clock
    view = bt.viz.live(Path(parameters["path"]).with_name("run.png"))

    def loop(count: int) -> list[float]:
        nonlocal clock
        for _ in range(count):
            clock += parameters["step"]
            view.update(loss=0.5, grad_norm=1.0)
        return []

    return loop
