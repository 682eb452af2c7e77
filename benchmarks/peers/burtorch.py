# benchmarks/peers/burtorch.py — this project: its ways from C++ and from Python
# SPDX-License-Identifier: MIT
from benchmarks.registry import NOT_HERE, Loop, MissingError, Outputs, Parameters, Peer
from benchmarks.works import ACTIVATIONS, BATCH, GRAPHS, INPUTS, eager, files, model, summary

PEER = Peer("burtorch", pip=["burtorch"])
PEER.program("C++ eager", "burtorch", "tiny", "small", "chain", argument="eager")
for name, source in {
    "scratch": "burtorch",
    "order reused": "burtorch",
    "replay": "burtorch_compiled",
    "program": "burtorch",
    "native": "burtorch_compiled",
}.items():
    PEER.program(f"C++ {name}", source, "tiny", "small", argument=name)
PEER.program("C++", "burtorch_models", "mlp", "gpt", tolerance=1e-4)
PEER.program("C++", "burtorch_files", "save", "load")


@PEER.offers("Python eager", "tiny", "small")
def values(work: str, parameters: Parameters) -> Loop:
    import burtorch as bt

    return eager(work, bt.Value, bt.relu)


def compiled(work: str, backend: str):
    """Return the compiled function, its input, and a place for the gradient."""
    import burtorch as bt
    import numpy as np

    if not hasattr(bt, "compile"):
        raise MissingError(NOT_HERE)
    graph = GRAPHS[work]
    x = np.array(INPUTS[work])
    return bt.compile(lambda v: graph(v[0], v[1], bt.relu), backend=backend), x, np.empty(2)


def called(backend: str):
    def make(work: str, parameters: Parameters) -> Loop:
        function, x, out = compiled(work, backend)

        def loop(count: int) -> tuple[float, ...]:
            for _ in range(count):
                result = function.value_and_grad(x, out=out)
            return result[0], *out

        return loop

    return make


PEER.offers("Python compiled, replay", "tiny", "small")(called("replay"))
PEER.offers("Python compiled, native", "tiny", "small")(called("native"))


@PEER.offers("Python compiled, native, bound", "tiny", "small")
def bound(work: str, parameters: Parameters) -> Loop:
    import numpy as np

    function, x, _ = compiled(work, "native")
    out = np.empty(3)  # the value, then the gradient
    run = function.bind(x, out)

    def loop(count: int) -> list[float]:
        for _ in range(count):
            run()
        return list(out)

    return loop


@PEER.offers("Python compiled, native, batch", "tiny", "small", samples=BATCH)
def batch(work: str, parameters: Parameters) -> Loop:
    import numpy as np

    function, x, _ = compiled(work, "native")
    samples = np.tile(x, (BATCH, 1))
    room = np.empty(BATCH), np.empty(samples.shape)

    def loop(count: int) -> tuple[float, ...]:
        for _ in range(count):
            values, gradients = function.batch(samples, out=room)
        return values[-1], *gradients[-1]

    return loop


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

    def load():
        loaded.load(path)
        return (value.data for value in values)

    loop = files(work, lambda: saved.save(path), load)
    loop.keeps = kept  # a tape takes back the place of Values that are gone
    return loop
