# benchmarks/loops.py — programs of plain loops, recorded: replayed, as native code, and as CasADi's C
# SPDX-License-Identifier: MIT
"""Gravity of 50 bodies and 100 Runge-Kutta steps of a pendulum, milliseconds per gradient.

All are compiled functions of C called in the same loop; contenders take turns, and the minimum counts.
CasADi is installed below build/peers if it is not there. Its C of gravity alone compiles for half a
minute. Run: .venv/bin/python -m benchmarks.loops
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable

ROUNDS, CALLS = 100, 20
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


# Program, where its gradient is taken, what it may cost in parts of CasADi's C.
WORKS: dict[str, tuple[Callable[[Any, Any], Any], list[float], float]] = {
    "gravity": (gravity, [(i * 7919 % 1000) / 300 for i in range(3 * BODIES)], 0.7),
    "pendulum": (pendulum, [1.0, 0.5, 9.81], 1.1),
}


def write_peers(folder: Path) -> None:
    """Write CasADi's C of all works, each with a function f(x, gradient) that returns the value."""
    import os

    import casadi

    os.chdir(folder)  # it writes nowhere else
    for name, (program, at, _) in WORKS.items():
        x = casadi.SX.sym("x", len(at))
        value = program(x, casadi)
        casadi.Function("peer", [x], [value, casadi.gradient(value, x)]).generate(f"{name}.c")
        with open(f"{name}.c", "a") as file:
            file.write(
                "double f(const double* x, double* gradient) { double value; const double* in[] ="
                " {x}; double* out[] = {&value, gradient}; peer(in, out, 0, 0, 0); return value; }"
            )


def peers(folder: Path) -> dict[str, Path]:
    """Return CasADi's compiled C; empty if it can't be had here."""
    from benchmarks import environment
    from benchmarks.peers import casadi
    from benchmarks.registry import MissingError

    try:
        environment.install(casadi.PEER)
        environment.run([str(environment.PYTHON), "-m", "benchmarks.loops", "--write", str(folder)])
        for name in WORKS:
            command = f"gcc -O3 -march=native -fPIC -shared -w {name}.c -o {name}.so -lm"
            subprocess.run(command.split(), cwd=folder, check=True)
    except (MissingError, OSError, subprocess.SubprocessError) as error:
        print(f"CasADi is missing: {error}")
        return {}
    return {name: folder / f"{name}.so" for name in WORKS}


def measure(name: str, peer: Path | None) -> None:
    import burtorch as bt
    import numpy as np

    program, at, limit = WORKS[name]
    x = np.array(at)
    results, calls = {}, {}
    for backend in ("replay", "native"):
        start = time.perf_counter()
        compiled = bt.compile(lambda x: program(x, bt), backend=backend)
        results[backend] = np.empty(len(x) + 1)
        calls[backend] = compiled.bind(x, results[backend])
        print(f"{name}: {backend} is ready after {time.perf_counter() - start:.1f} s")
    if peer is not None:
        f = ctypes.CDLL(str(peer)).f
        f.restype, f.argtypes = ctypes.c_double, [ctypes.c_void_p, ctypes.c_void_p]
        out = results["CasADi's C"] = np.empty(len(x) + 1)
        places = x.ctypes.data, out.ctypes.data + 8
        calls["CasADi's C"] = lambda: out.__setitem__(0, f(*places))
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(ROUNDS):
        for each, call in calls.items():
            start = time.perf_counter()
            for _ in range(CALLS):
                call()
            best[each] = min(best[each], (time.perf_counter() - start) / CALLS * 1e3)
    for each, ms in best.items():
        assert np.allclose(results[each], results["replay"], rtol=1e-9), each
        print(f"  {each:12} {ms:8.4f} ms")
    if peer is not None:
        ratio = best["native"] / best["CasADi's C"]
        print(f"  asked: native / CasADi's C at most {limit}; reached {ratio:.2f}")


def main() -> None:
    if sys.argv[1:2] == ["--write"]:
        write_peers(Path(sys.argv[2]))
        return
    with tempfile.TemporaryDirectory() as folder:
        libraries = peers(Path(folder))
        for name in WORKS:
            measure(name, libraries.get(name))


if __name__ == "__main__":
    main()
