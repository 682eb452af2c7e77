# benchmarks/compiled.py — recorded functions from Python: calls, bound calls, batches, against peers
# SPDX-License-Identifier: MIT
"""Contenders take turns; the minimum counts. Run: .venv/bin/python benchmarks/compiled.py

CasADi is a peer, not a dependency: `pip install casadi`, else it is shown as missing.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Callable

import burtorch as bt
import numpy as np
from burtorch import _native

try:
    import casadi
except ImportError:
    casadi = None

ROUNDS, SAMPLES = 15, 100_000


def tiny(x: Any, relu: Any = None) -> Any:
    a, b = x[0], x[1]
    e = (a + b) - (a * b + b * b * b)
    return e * e / 2


def small(x: Any, relu: Any = bt.relu) -> Any:
    a, b = x[0], x[1]
    c = a + b
    d = a * b + b * b * b
    c = c + (c + 1)
    c = c + (1 + c - a)
    d = d + (d * 2 + relu(b + a))
    d = d + (3 * d + relu(b - a))
    e = c - d
    f = e * e
    return f / 2 + 10.0 / f


def casadi_buffer(graph: Callable[..., Any], x: np.ndarray, out: np.ndarray) -> Callable[[], Any]:
    """CasADi's generated C, compiled, through its buffer call: memory given once, then no arguments."""
    symbol = casadi.SX.sym("x", 2)
    value = graph(symbol, lambda y: casadi.fmax(y, 0))
    gradient = casadi.gradient(value, symbol)
    function = casadi.Function("f", [symbol], [value, gradient])
    folder = Path(tempfile.mkdtemp())
    before = os.getcwd()
    os.chdir(folder)
    function.generate("f.c")
    command = [*(_native.compiler() or ["cc"]), "-O3", "-march=native", "-fPIC", "-shared"]
    subprocess.run([*command, "-o", "f.so", "f.c", "-lm"], check=True)
    os.chdir(before)
    loaded = casadi.external("f", str(folder / "f.so"))
    buffer, trigger = loaded.buffer()
    buffer.set_arg(0, memoryview(x))
    buffer.set_res(0, memoryview(out[:1]))
    buffer.set_res(1, memoryview(out[1:]))
    _kept.append((loaded, buffer))
    return trigger


_kept: list[Any] = []


def race(contenders: dict[str, tuple[Callable[[], Any], int, int]]) -> dict[str, float]:
    """Return nanoseconds per item: of each contender its call, calls per round, items per call."""
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(ROUNDS):
        for name, (call, calls, items) in contenders.items():
            repeat = [None] * calls
            start = time.perf_counter()
            for _ in repeat:
                call()
            passed = time.perf_counter() - start
            best[name] = min(best[name], passed / calls / items * 1e9)
    return best


def measure(graph: Callable[..., Any], xla: float) -> None:
    x, out, grad = np.array([-4.0, 2.0]), np.empty(3), np.empty(2)
    rows = np.random.default_rng(0).normal(size=(SAMPLES, 2))
    room = np.empty(SAMPLES), np.empty((SAMPLES, 2))
    native, replay = bt.compile(graph), bt.compile(graph, backend="replay")
    native.value_and_grad(x), replay.value_and_grad(x)
    contenders: dict[str, tuple[Callable[[], Any], int, int]] = {
        "np.empty(2)": (lambda: np.empty(2), 20000, 1),
        "an empty call": (lambda: None, 20000, 1),
        "native: run() of bind(x, out)": (native.bind(x, out), 20000, 1),
        "replay: run() of bind(x, out)": (replay.bind(x, np.empty(3)), 20000, 1),
        "native: value_and_grad(x, out=)": (
            lambda: native.value_and_grad(x, out=grad),
            20000,
            1,
        ),
        "native: value_and_grad(x)": (lambda: native.value_and_grad(x), 20000, 1),
        "replay: value_and_grad(x)": (lambda: replay.value_and_grad(x), 20000, 1),
        "native: c(x)": (lambda: native(x), 5000, 1),
        "native: batch, per sample": (lambda: native.batch(rows, out=room), 3, SAMPLES),
        "native: batch into new arrays": (lambda: native.batch(rows), 3, SAMPLES),
        "native: batch on 2 threads": (
            lambda: native.batch(rows, threads=2, out=room),
            3,
            SAMPLES,
        ),
        "replay: batch, per sample": (lambda: replay.batch(rows, out=room), 1, SAMPLES),
    }
    peer = np.empty(3)
    if casadi is not None:
        contenders["CasADi's C: its buffer call"] = (casadi_buffer(graph, x, peer), 20000, 1)
    best = race(contenders)
    print(f"\n{graph.__name__} graph")
    for name, ns in best.items():
        print(f"  {name:36} {ns:10.1f}")
    if casadi is None:
        print("  CasADi is not installed")
    else:
        assert np.allclose(peer, out, rtol=1e-12)
        ratio = best["native: run() of bind(x, out)"] / best["CasADi's C: its buffer call"]
        print(f"  asked: bound call / CasADi's below 1; reached {ratio:.2f}")
    print(f"  asked: batch per sample at most {xla} (XLA's loop, elsewhere); reached", end=" ")
    print(f"{best['native: batch, per sample']:.1f}")
    call = best["native: value_and_grad(x)"] - best["an empty call"]
    made = best["np.empty(2)"] - best["an empty call"]
    print(f"  asked: value_and_grad(x) below 5 np.empty(2); reached {call / made:.2f}")


def main() -> None:
    print(f"compiler: {' '.join(_native.compiler() or ['none'])}; nanoseconds, minimum of {ROUNDS}")
    for graph, xla in ((tiny, 4.1), (small, 11.5)):
        measure(graph, xla)


if __name__ == "__main__":
    main()
