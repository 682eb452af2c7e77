# python/burtorch/_demo.py — `burtorch demo`: the paper's graphs, pictures of them, and its GPT for a minute
# SPDX-License-Identifier: MIT
"""Gradients of the tiny and the small graph, checked, and what one costs; a model that learns."""

from __future__ import annotations

import math
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any, Callable

from ._core import Value, inner_product_with_bias, tanh


class PlainValue:
    """What a graph of objects in pure Python costs: each node knows how to push its gradient on."""

    def __init__(self, data: float, operands: tuple[PlainValue, ...] = ()) -> None:
        self.data, self.grad, self.operands = data, 0.0, operands
        self.push: Callable[[], None] = lambda: None

    @staticmethod
    def _lift(x: Any) -> PlainValue:
        return x if isinstance(x, PlainValue) else PlainValue(x)

    def _make(self, data: float, other: PlainValue, mine: float, others: float) -> PlainValue:
        out = PlainValue(data, (self, other))

        def push() -> None:
            self.grad += mine * out.grad
            other.grad += others * out.grad

        out.push = push
        return out

    def __add__(self, other: Any) -> PlainValue:
        other = self._lift(other)
        return self._make(self.data + other.data, other, 1, 1)

    def __mul__(self, other: Any) -> PlainValue:
        other = self._lift(other)
        return self._make(self.data * other.data, other, other.data, self.data)

    def __pow__(self, power: float) -> PlainValue:
        slope = power * self.data ** (power - 1)
        return self._make(self.data**power, PlainValue(0.0), slope, 0.0)

    def relu(self) -> PlainValue:
        return self._make(max(self.data, 0.0), PlainValue(0.0), float(self.data > 0), 0.0)

    def __sub__(self, other: Any) -> PlainValue:
        return self.__add__(self._lift(other).__mul__(-1))

    def __truediv__(self, other: Any) -> PlainValue:
        return self.__mul__(self._lift(other).__pow__(-1))

    def __radd__(self, other: Any) -> PlainValue:
        return self.__add__(other)

    def __rmul__(self, other: Any) -> PlainValue:
        return self.__mul__(other)

    def __rtruediv__(self, other: Any) -> PlainValue:
        return self._lift(other) / self

    def backward(self) -> None:
        order: list[PlainValue] = []
        seen: set[int] = set()
        stack: list[tuple[PlainValue, bool]] = [(self, False)]
        while stack:
            node, done = stack.pop()
            if done:
                order.append(node)
            elif id(node) not in seen:
                seen.add(id(node))
                stack.append((node, True))
                stack.extend((operand, False) for operand in node.operands)
        self.grad = 1.0
        for node in reversed(order):
            node.push()


def tiny(a: Any, b: Any) -> Any:
    c = a + b
    d = a * b + b**3
    e = c - d
    return e**2 / 2


def small(a: Any, b: Any) -> Any:
    c = a + b
    d = a * b + b**3
    c = c + (c + 1)
    c = c + (1 + c - a)
    d = d + (d * 2 + (b + a).relu())
    d = d + (3 * d + (b - a).relu())
    f = (c - d) ** 2
    return f / 2 + 10 / f


GRAPHS = [
    ("tiny", tiny, (-41.0, 2.0), (612.5, -35.0, 1050.0)),
    ("small", small, (-4.0, 2.0), (24.70408163265306, 138.83381924198252, 645.5772594752186)),
]


def gradient(kind: Any, graph: Callable[[Any, Any], Any], x: float, y: float) -> tuple[float, ...]:
    a, b = kind(x), kind(y)
    g = graph(a, b)
    g.backward()
    return g.data, a.grad, b.grad


def microseconds(work: Callable[[], object], seconds: float = 0.5) -> float:
    """The least time of several runs."""
    count, best = 1, math.inf
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(count):
            work()
        passed = time.perf_counter() - start
        best = min(best, passed / count)
        if passed < seconds / 50:
            count *= 2
    return best * 1e6


def draw(root: Value, what: str, picture: str) -> str:
    """Draw a graph, or write its DOT text where nothing can draw; say what was done."""
    from . import viz

    try:
        return f"a picture of {what}: {viz.save(root, picture)}"
    except viz.MissingToolError:
        path = viz.save(root, f"{picture}.dot")
        return f"{what} as DOT text: {path} (Graphviz, which would draw it, is not here)"


def draw_graphs(picture: str) -> None:
    a, b = Value(-41.0, "a"), Value(2.0, "b")
    g = tiny(a, b)
    g.name = "g"
    g.backward()
    print(draw(g, "the tiny graph", picture))
    inputs = [Value(x, f"x{i}") for i, x in enumerate((1.0, -2.0, 3.0))]
    weights = [Value(w, f"w{i}") for i, w in enumerate((0.5, 0.25, 0.1))]
    neuron = tanh(inner_product_with_bias(weights, inputs, Value(0.1, "b")))
    neuron.name = "neuron"
    neuron.backward()
    print(draw(neuron, "one neuron", str(Path(picture).with_name("burtorch-neuron.svg"))))


def draw_losses(train: list[float], every: int, title: str, picture: Path) -> str:
    """Draw the losses, averaged over a few steps each, or write the script that would."""
    from . import viz

    parts = [train[i : i + every] for i in range(0, len(train), every)]
    script = viz.loss_curve(
        {"training": [sum(part) / len(part) for part in parts]},
        title=title,
        x_label=f"{every} steps",
    )
    try:
        return f"the loss curve: {viz.run_script(script, picture)}"
    except viz.MissingToolError:
        path = picture.with_suffix(".py")
        path.write_text(script, encoding="utf-8")
        return f"a script that draws the loss curve: {path} (Matplotlib is not here)"


def train_gpt(seconds: float, picture: Path) -> bool:
    """Train the paper's GPT on Python's manual; true if the loss fell."""
    from .train import Settings, Training

    run = Training(Settings("gpt", {}, steps=10**9, every=250))
    before = run.validate()
    print(
        f"\n{run.model!r}, {run.model.num_parameters:,} parameters, on Python's reference manual "
        f"({len(run.corpus.train):,} characters) for {seconds:g} seconds; Ctrl-C ends it"
    )
    print(f"step      0  validation loss {before:.3f}")
    shown = time.perf_counter()

    def report(run: Training, speed: float) -> None:
        nonlocal shown
        if time.perf_counter() - shown > seconds / 12:
            shown = time.perf_counter()
            step, loss = run.history.valid[-1]
            print(
                f"step {step:>6}  validation loss {loss:.3f}  {speed:,.0f} gradients/s", flush=True
            )

    run.fit(report, seconds=seconds, quiet=True)
    step, after = run.history.valid[-1]
    print(f"step {step:>6}  validation loss {after:.3f}; what it writes now:\n")
    print("\n".join(f"    {line}" for line in run.sample(300, temperature=0.8).splitlines()))
    title = f"GPT, {run.model.num_parameters:,} parameters"
    print(f"\n{draw_losses(run.history.train, max(1, step // 200), title, picture)}")
    folder = picture.with_name("burtorch-demo")
    print(f"the model: {run.save(folder)} (burtorch generate {folder})")
    return after < before


def run(picture: str, seconds: float) -> int:
    right = True
    print("graph      value          dg/da          dg/db              burtorch   pure Python")
    for name, graph, at, expected in GRAPHS:
        got = gradient(Value, graph, *at)
        good = all(math.isclose(x, y, rel_tol=1e-12) for x, y in zip(got, expected))
        right = right and good
        ours = microseconds(partial(gradient, Value, graph, *at))
        plain = microseconds(partial(gradient, PlainValue, graph, *at))
        print(
            f"{name:<8} {got[0]:<14.10g} {got[1]:<14.10g} {got[2]:<14.10g} "
            f"{'right' if good else 'WRONG'}  {ours:6.2f} µs  {plain:8.2f} µs  ({plain / ours:.0f} times)"
        )
    from .viz import DrawingError

    try:
        draw_graphs(picture)
        if seconds > 0:
            right = train_gpt(seconds, Path(picture).with_name("burtorch-loss.svg")) and right
    except BrokenPipeError:
        raise
    except (OSError, DrawingError) as error:
        print(f"burtorch demo: {error}", file=sys.stderr)
        return 1
    return 0 if right else 1
