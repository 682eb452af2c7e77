# benchmarks/peers/casadi.py — CasADi: called, through its buffers, and as generated C
# SPDX-License-Identifier: MIT
from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from benchmarks.environment import HOME, processor
from benchmarks.registry import Loop, Parameters, Peer
from benchmarks.works import POINTS, function_of

PEER = Peer("CasADi", pip=["casadi", "numpy"])
ALL = "tiny", "small", "gravity", "pendulum"


def recorded(work: str) -> Any:
    """Return CasADi's function of a vector: the value and the gradient."""
    import casadi as ca

    x = ca.SX.sym("x", len(POINTS[work]))
    value = function_of(work, ca, lambda v: ca.fmax(v, 0))(x)
    gradient = ca.densify(ca.gradient(value, x))
    return ca.Function("f", [x], [value, gradient], {"cse": True})


def generated(work: str, parameters: Parameters) -> Path:
    """Return a library with CasADi's C code of the function, and a loop over it.

    It is kept: the compiler takes half a minute for gravity.
    """
    os.chdir(Path(parameters["path"]).parent)  # it writes nowhere else
    recorded(work).generate("f.c")
    with open("f.c", "a") as file:
        file.write(
            "void loop(const double** arg, double** res, long n) {"
            ' while (n--) { f(arg, res, 0, 0, 0); __asm__ volatile("" ::: "memory"); } }\n'
        )
    command = "gcc -O3 -march=native -fPIC -shared f.c -o f.so -lm"
    key = hashlib.sha256(f"{command} {processor()} {Path('f.c').read_text()}".encode())
    library = HOME / "casadi" / f"{work}-{key.hexdigest()[:8]}.so"
    if not library.is_file():
        subprocess.run(command.split(), check=True)
        library.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy("f.so", library.with_suffix(".new"))  # one that is interrupted is not found
        library.with_suffix(".new").replace(library)
    return library


@PEER.offers("called", "tiny", "small")
def called(work: str, parameters: Parameters) -> Loop:
    import numpy as np

    function, x = recorded(work), np.array(POINTS[work])

    def loop(count: int) -> list[float]:
        for _ in range(count):
            value, gradient = function(x)
        return [float(value), *(float(g) for g in gradient.elements())]

    return loop


def buffered(function: Any, work: str) -> Loop:
    import numpy as np

    buffer, run = function.buffer()
    x, value, gradient = np.array(POINTS[work]), np.empty(1), np.empty(len(POINTS[work]))
    buffer.set_arg(0, x.data)
    buffer.set_res(0, value.data)
    buffer.set_res(1, gradient.data)
    kept = x, buffer  # the buffer only points to the input

    def loop(count: int) -> list[float]:
        for _ in range(count):
            run()
        assert kept
        return [float(value[0]), *gradient]

    return loop


@PEER.offers("interpreted, buffers", *ALL)
def interpreted(work: str, parameters: Parameters) -> Loop:
    return buffered(recorded(work), work)


@PEER.offers("generated C, buffers", *ALL)
def compiled(work: str, parameters: Parameters) -> Loop:
    import casadi as ca

    return buffered(ca.external("f", str(generated(work, parameters))), work)


@PEER.offers("generated C, loop in C", *ALL)
def loop_in_c(work: str, parameters: Parameters) -> Loop:
    library = ctypes.CDLL(str(generated(work, parameters)))
    pointer, n = ctypes.POINTER(ctypes.c_double), len(POINTS[work])
    x, value, gradient = (ctypes.c_double * n)(*POINTS[work]), ctypes.c_double(), (ctypes.c_double * n)()  # fmt: skip
    arg = (pointer * 1)(ctypes.cast(x, pointer))
    res = (pointer * 2)(ctypes.pointer(value), ctypes.cast(gradient, pointer))

    def loop(count: int) -> list[float]:
        library.loop(arg, res, ctypes.c_long(count))
        return [value.value, *gradient]

    return loop
