# benchmarks/works.py — the computations, the same numbers for every peer; cpp/loop.hpp is the C++ twin
# SPDX-License-Identifier: MIT
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.registry import Loop, Outputs, Parameters

INPUTS = {"tiny": (-41.0, 2.0), "small": (-4.0, 2.0)}
WANT = {
    "tiny": (612.5, -35.0, 1050.0),
    "small": (24.70408163265306, 138.83381924198252, 645.5772594752186),
}
FUNCTIONS = ("exp", "log", "tanh")
PRODUCTS = ("NT", "NN", "TN", "fused backward")  # of a linear layer: m samples, k inputs, n outputs
KERNELS = (  # beside them; with the sizes of the GPT
    "attention",
    "attention backward",
    "layer norm",
    "layer norm backward",
    "cross-entropy",
    "cross-entropy backward",
    "softmax",
    "relu",
    "relu backward",
    "tanh of 768",
    "tanh of 768 backward",
)
LARGE = 1_079_003  # parameters of a CharMLP with 1 024 hidden units
BATCH = 100_000  # samples of a graph in one call
ACTIVATIONS = (-4.0, 2.0, -1.0, 6.0, -7.0, 49.0, WANT["small"][0])  # a … g of the small graph


def tiny(a: Any, b: Any, relu: Any = None) -> Any:
    c = a + b
    d = a * b + b**3
    e = c - d
    f = e**2
    return f / 2


def small(a: Any, b: Any, relu: Any) -> Any:
    c = a + b
    d = a * b + b**3
    c = c + (c + 1)
    c = c + (1 + c - a)
    d = d + (d * 2 + relu(b + a))
    d = d + (3 * d + relu(b - a))
    e = c - d
    f = e**2
    g = f / 2
    return g + 10.0 / f


GRAPHS = {"tiny": tiny, "small": small}
BODIES, STEPS = 50, 100


def gravity(x: Any, functions: Any) -> Any:
    """Return the potential energy of bodies; x holds their coordinates, softened near 0."""
    energy: Any = 0.0
    for i in range(BODIES):
        for j in range(i):
            dx, dy, dz = (x[3 * i + k] - x[3 * j + k] for k in range(3))
            energy = energy - 1.0 / functions.sqrt(dx * dx + dy * dy + dz * dz + 0.01)
    return energy


def pendulum(x: Any, functions: Any) -> Any:
    """Return the squared distance from rest after some time; x is angle, speed, gravity."""
    q, p, h = x[0], x[1], 0.01

    def slope(q: Any, p: Any) -> Any:
        return -x[2] * functions.sin(q) - 0.1 * p

    for _ in range(STEPS):
        k1, l1 = p, slope(q, p)
        k2, l2 = p + l1 * (h / 2), slope(q + k1 * (h / 2), p + l1 * (h / 2))
        k3, l3 = p + l2 * (h / 2), slope(q + k2 * (h / 2), p + l2 * (h / 2))
        k4, l4 = p + l3 * h, slope(q + k3 * h, p + l3 * h)
        q, p = q + (k1 + 2 * k2 + 2 * k3 + k4) * (h / 6), p + (l1 + 2 * l2 + 2 * l3 + l4) * (h / 6)
    return q * q + p * p


# Programs of plain loops, and where their gradients are taken; `functions` has sqrt and sin.
LOOPS = {"gravity": gravity, "pendulum": pendulum}
POINTS = {
    **INPUTS,
    "gravity": tuple((i * 7919 % 1000) / 300 for i in range(3 * BODIES)),
    "pendulum": (1.0, 0.5, 9.81),
}


def function_of(work: str, functions: Any, relu: Any) -> Callable[[Any], Any]:
    """Return a graph or a loop as a function of one vector."""
    if work in LOOPS:
        return lambda x: LOOPS[work](x, functions)
    return lambda x: GRAPHS[work](x[0], x[1], relu)


def eager(work: str, value: Any, relu: Any) -> Loop:
    """Return the loop over Values that are made anew for each gradient."""
    graph, (x, y) = GRAPHS[work], INPUTS[work]

    def loop(count: int) -> tuple[float, ...]:
        for _ in range(count):
            a, b = value(x), value(y)
            g = graph(a, b, relu)
            g.backward()
        return g.data, a.grad, b.grad

    return loop


def files(work: str, save: Callable[[], object], load: Callable[[], Any]) -> Loop:
    """Return the loop over one of two functions; the numbers are compared as they come back."""
    if work == "load":
        save()
    step = save if work == "save" else load

    def loop(count: int) -> Outputs:
        for _ in range(count):
            step()
        return lambda: list(load())

    return loop


def numbers(count: int, seed: int) -> Any:
    """Return numbers in [0, 1) that are the same everywhere: a multiplicative hash of 0, 1, 2, …"""
    import numpy as np

    x = (np.arange(count, dtype=np.uint32) + np.uint32(seed)) * np.uint32(2654435761)
    x ^= x >> np.uint32(15)
    return ((x * np.uint32(2246822519)) >> np.uint32(8)).astype(np.float64) / 2**24


def shapes(work: str, parameters: dict[str, Any]) -> list[tuple[str, tuple[int, ...]]]:
    """Return the models' parameters in order; qkv: key, query, value of each head, head by head."""
    if work == "mlp":
        e = parameters["e"]
        first = [("wte", (27, 64)), ("w1", (e, 1024)), ("b1", (e,))]
        return [*first, ("w2", (27, e)), ("b2", (27,))]
    found: list[tuple[str, tuple[int, ...]]] = [("tokens", (65, 24)), ("positions", (8, 24))]
    for i in range(6):
        block = [
            ("qkv", (72, 24)),
            ("proj", (24, 24)),
            ("pb", (24,)),
            ("up", (96, 24)),
            ("ub", (96,)),
        ]
        block += [
            ("down", (24, 96)),
            ("db", (24,)),
            ("g1", (24,)),
            ("h1", (24,)),
            ("g2", (24,)),
            ("h2", (24,)),
        ]
        found += [(f"{i}.{name}", shape) for name, shape in block]
    return [*found, ("head", (65, 24)), ("hb", (65,))]


def pieces(array: Any) -> list[Any]:
    """Return views of an array, which together are all of it: memory for one is nothing to measure."""
    flat, most = array.reshape(-1), 1 << 14
    return [flat[at : at + most] for at in range(0, flat.size, most)]


def model(work: str, parameters: dict[str, Any]) -> tuple[dict[str, Any], Any, Any]:
    """Return the weights (float32, [out, in]) and a batch of inputs and targets."""
    import numpy as np

    weights, at = {}, 0
    for name, shape in shapes(work, parameters):
        weights[name] = np.empty(shape, np.float32)
        for part in pieces(weights[name]):
            part[:] = 0.2 * numbers(part.size, 1 + at) - 0.1
            at += part.size
    b = parameters["b"]
    vocab, context, targets = (27, 16, 1) if work == "mlp" else (65, 8, 8)
    x = (numbers(b * context, 2) * vocab).astype(np.int64).reshape(b, context)
    y = (numbers(b * targets, 3) * vocab).astype(np.int64).reshape(b, targets)
    return weights, x, y.ravel() if work == "mlp" else y


def network(parameters: Parameters) -> tuple[Any, Any, list[tuple[Any, Any]]]:
    """Return inputs, targets (classes, or numbers for one output) and weights [out, in] with their biases."""
    import numpy as np

    sizes, batch = parameters["sizes"], parameters["b"]
    x = (2 * numbers(batch * sizes[0], 1) - 1).astype(np.float32).reshape(batch, sizes[0])
    classes = (numbers(batch, 2) * sizes[-1]).astype(np.int64)
    y = classes if sizes[-1] > 1 else numbers(batch, 3).astype(np.float32).reshape(batch, 1)
    layers = [
        (2 * numbers(n * k, 4 + i) - 1).astype(np.float32).reshape(n, k) / np.float32(k**0.5)
        for i, (k, n) in enumerate(zip(sizes, sizes[1:]))
    ]
    return x, y, [(w, np.zeros(len(w), np.float32)) for w in layers]


def summary(loss: float, gradients: Any) -> list[float]:
    """Return what is compared: the loss, and the sum and the norm of all gradients."""
    import numpy as np

    total = squares = 0.0
    for gradient in gradients:
        for part in pieces(np.asarray(gradient)):
            wide = part.astype(np.float64)
            total += float(np.abs(wide).sum())
            squares += float(wide @ wide)
    return [float(loss), total, squares**0.5]


def layered(work: str, parameters: Parameters) -> tuple[dict[str, Any], Any, Any]:
    """Return the weights of a network of images or of sequences by PyTorch's names, inputs and targets.

    conv: 1 channel of 28×28, 8 filters of 3×3, relu, pool 2, 16 filters, relu, pool 2, 10 classes. lstm: 20 steps of 8
    numbers, 32 units, one number from the last state.
    """
    import numpy as np

    b = parameters["b"]
    if work == "conv":
        shapes: dict[str, tuple[int, ...]] = {
            "first.weight": (8, 1, 3, 3),
            "first.bias": (8,),
            "second.weight": (16, 8, 3, 3),
            "second.bias": (16,),
        }
        x_shape: tuple[int, ...] = (b, 1, 28, 28)
        last, y = (10, 400), (numbers(b, 2) * 10).astype(np.int64)
    else:
        shapes = {
            "lstm.weight_ih_l0": (128, 8),
            "lstm.weight_hh_l0": (128, 32),
            "lstm.bias_ih_l0": (128,),
            "lstm.bias_hh_l0": (128,),
        }
        x_shape = (b, 20, 8)
        last, y = (1, 32), numbers(b, 2).astype(np.float32).reshape(b, 1)
    shapes.update({"out.weight": last, "out.bias": last[:1]})
    weights = {}
    for at, (name, shape) in enumerate(shapes.items()):
        fan = int(np.prod(shape[1:])) or 1
        drawn = (2 * numbers(int(np.prod(shape)), 5 + at) - 1) / fan**0.5
        weights[name] = drawn.astype(np.float32).reshape(shape)
    x = (2 * numbers(int(np.prod(x_shape)), 1) - 1).astype(np.float32).reshape(x_shape)
    return weights, x, y
