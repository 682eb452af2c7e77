# benchmarks/views.py — models that users write themselves from layers, against JAX: gradients and steps
# SPDX-License-Identifier: MIT
"""Each side runs in a process of its own, pinned to one core; passes alternate, the minimum counts.

Run: .venv/bin/python benchmarks/views.py [--passes 3] [--seconds 0.3]. JAX is a peer, not a dependency:
where it is not installed it is shown as missing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any, Callable

import numpy as np

# Sizes of the layers, activation, batches, and what is asked of each: at most so much of JAX's time.
NETWORKS: dict[str, tuple[list[int], str, dict[int, float | None]]] = {
    "784-128-10 relu, cross-entropy": (
        [784, 128, 10],
        "relu",
        {1: 0.45, 8: None, 32: 1.2, 256: 1.3},
    ),
    "8-64-64-1 tanh, squares": ([8, 64, 64, 1], "tanh", {1: None, 32: None, 1024: 0.95}),
}
GPT = {"vocab": 65, "context": 8, "size": 24, "layers": 6, "heads": 6}

Work = tuple[str, Callable[[], Any]]


def numbers(sizes: list[int], batch: int) -> tuple[Any, Any, list[Any]]:
    """Inputs, targets (classes, or numbers for one output) and weights with their biases."""
    random = np.random.default_rng(0)
    x = random.normal(size=(batch, sizes[0])).astype("float32")
    classes = random.integers(0, sizes[-1], batch)
    y = classes if sizes[-1] > 1 else random.normal(size=(batch, 1)).astype("float32")
    weights = [
        (random.normal(size=(n, k)).astype("float32") / k**0.5, np.zeros(n, "float32"))
        for k, n in zip(sizes, sizes[1:])
    ]
    return x, y, weights


def with_jax() -> Iterator[Work]:
    import jax
    import jax.numpy as jnp

    for name, (sizes, activation, batches) in NETWORKS.items():
        act = {"relu": jax.nn.relu, "tanh": jnp.tanh}[activation]

        def loss(weights: Any, x: Any, y: Any, act: Any = act) -> Any:
            for w, b in weights[:-1]:
                x = act(x @ w + b)
            w, b = weights[-1]
            x = x @ w + b
            if x.shape[1] == 1:
                return jnp.mean((x - y) ** 2)
            return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(x), y[:, None], 1))

        gradient = jax.jit(jax.value_and_grad(loss))
        for batch in batches:
            x, y, weights = numbers(sizes, batch)
            device = [(jnp.asarray(w.T), jnp.asarray(b)) for w, b in weights]  # the faster layout
            inputs = jnp.asarray(x), jnp.asarray(y)

            def run(device: Any = device, inputs: Any = inputs, f: Any = gradient) -> Any:
                value, gradients = f(device, *inputs)
                jax.block_until_ready(gradients)
                return float(value)

            yield f"{name}, batch {batch}", run


def with_burtorch() -> Iterator[Work]:
    import burtorch as bt

    for name, (sizes, activation, batches) in NETWORKS.items():
        for batch in batches:
            x, y, weights = numbers(sizes, batch)
            tape = bt.Tape("float32")
            with tape:
                net = bt.nn.MLP(sizes, activation=activation)
            state = net.state_dict()
            flat = [array for pair in weights for array in pair]
            net.load_state_dict(dict(zip(state, flat)))

            def run(tape: Any = tape, net: Any = net, x: Any = x, y: Any = y) -> Any:
                net.zero_grad()
                with tape.scope():
                    out = net(x)
                    if out.shape[1] == 1:
                        loss = ((out - y) ** 2).mean()
                    else:
                        loss = bt.cross_entropy(out, y)
                    loss.backward()
                    return loss.data

            yield f"{name}, batch {batch}", run
    yield from steps(bt)


def steps(bt: Any) -> Iterator[Work]:
    """AdamW on the paper's GPT composed of layers, and on the built-in one."""
    size, random = GPT["size"], bt.Random(0)

    class Composed(bt.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            self.tokens = bt.nn.Embedding(GPT["vocab"], size, random=random)
            self.positions = bt.nn.Embedding(GPT["context"], size, random=random)
            self.blocks = [
                bt.nn.TransformerBlock(size, GPT["heads"], random) for _ in range(GPT["layers"])
            ]
            self.output = bt.nn.Linear(size, GPT["vocab"], random=random)

        def parts(self) -> Any:
            yield "tokens", self.tokens
            yield "positions", self.positions
            for i, block in enumerate(self.blocks):
                yield f"blocks.{i}", block
            yield "output", self.output

    with bt.Tape("float32"):
        own = Composed()
    builtin = bt.nn.GPT(
        GPT["vocab"], GPT["context"], GPT["size"], GPT["layers"], GPT["heads"], dtype="float32"
    )
    assert own.num_parameters == builtin.num_parameters
    optimizer, other = bt.optim.AdamW(own), bt.optim.AdamW(builtin)
    yield "AdamW, GPT of one's own", optimizer.step
    yield "AdamW, built-in GPT", other.step
    yield "zero_grad, GPT of one's own", own.zero_grad


SIDES: dict[str, Callable[[], Iterator[Work]]] = {"jax": with_jax, "burtorch": with_burtorch}


def measure(side: str, seconds: float) -> None:
    """In a process of its own: print microseconds and the value of each work as JSON."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    result = {}
    for name, run in SIDES[side]():
        value = run()
        best, until = float("inf"), time.perf_counter() + seconds
        while time.perf_counter() < until:
            start = time.perf_counter()
            run()
            best = min(best, time.perf_counter() - start)
        result[name] = (best * 1e6, value)
    print(json.dumps(result))


def pass_of(side: str, seconds: float) -> dict[str, tuple[float, float]]:
    command = [sys.executable, __file__, "--side", side, "--seconds", str(seconds)]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        print(f"{side} is missing: {(run.stderr.strip().splitlines() or ['no message'])[-1]}")
        return {}
    result: dict[str, tuple[float, float]] = json.loads(run.stdout.splitlines()[-1])
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", choices=SIDES)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.3)
    arguments = parser.parse_args()
    if arguments.side:
        return measure(arguments.side, arguments.seconds)
    best: dict[str, dict[str, float]] = {side: {} for side in SIDES}
    values: dict[str, float] = {}
    for _ in range(arguments.passes):
        for side in SIDES:
            for name, (us, value) in pass_of(side, arguments.seconds).items():
                best[side][name] = min(us, best[side].get(name, us))
                if value is not None:
                    assert abs(values.setdefault(name, value) - value) < 1e-4 * abs(value), name
    asked = {
        f"{name}, batch {batch}": limit
        for name, (_, _, batches) in NETWORKS.items()
        for batch, limit in batches.items()
    }
    print(f"{'microseconds':42} {'JAX jit':>10} {'burtorch':>10} {'ratio':>7} {'asked':>7}")
    for name, us in best["burtorch"].items():
        peer = best["jax"].get(name)
        limit = asked.get(name)
        print(
            f"{name:42} {f'{peer:10.1f}' if peer else '–':>10} {us:10.1f} "
            f"{f'{us / peer:7.2f}' if peer else '–':>7} {limit if limit else '–':>7}"
        )
    if not best["burtorch"]:
        return None
    own, other = (
        best["burtorch"][f"AdamW, {which}"] for which in ("GPT of one's own", "built-in GPT")
    )
    print(f"AdamW, own / built-in: {own / other:.2f}, asked: at most 3")
    return None


if __name__ == "__main__":
    main()
