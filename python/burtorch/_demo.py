# python/burtorch/_demo.py — `burtorch demo`: the paper's graphs, beside a tape in pure Python
# SPDX-License-Identifier: MIT
"""Gradients of the tiny and the small graph, checked, and what one costs."""

from __future__ import annotations

import math
import time
from functools import partial
from typing import Any, Callable

from ._core import Value


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


def draw(picture: str) -> str:
    """Draw the tiny graph, or write its DOT text where nothing can draw; say what was done."""
    from . import viz

    a, b = Value(-41.0, "a"), Value(2.0, "b")
    g = tiny(a, b)
    g.name = "g"
    g.backward()
    try:
        return f"a picture of the tiny graph: {viz.save(g, picture)}"
    except viz.MissingToolError:
        path = viz.save(g, f"{picture}.dot")
        return f"the tiny graph as DOT text: {path} (Graphviz, which would draw it, is not here)"


def run(picture: str) -> int:
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
    print(draw(picture))
    return 0 if right else 1
