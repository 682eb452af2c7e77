# benchmarks/peers/casadi.py — CasADi: called, through its buffers, and as generated C
# SPDX-License-Identifier: MIT
import ctypes
import os
import subprocess
from pathlib import Path

from benchmarks.registry import Loop, Parameters, Peer
from benchmarks.works import GRAPHS, INPUTS

PEER = Peer("CasADi", pip=["casadi", "numpy"])


def function_of(work: str):
    import casadi as ca

    a, b = ca.SX.sym("a"), ca.SX.sym("b")
    g = GRAPHS[work](a, b, lambda v: ca.fmax(v, 0))
    gradient = ca.gradient(g, ca.vertcat(a, b))
    return ca.Function("f", [a, b], [g, gradient[0], gradient[1]], {"cse": True})


def generated(work: str, parameters: Parameters) -> Path:
    """Return a library with CasADi's C code of the function, and a loop over it."""
    folder = Path(parameters["path"]).parent
    os.chdir(folder)  # it writes nowhere else
    function_of(work).generate("f.c")
    with open("f.c", "a") as file:
        file.write(
            "void loop(const double** arg, double** res, long n) {"
            ' while (n--) { f(arg, res, 0, 0, 0); __asm__ volatile("" ::: "memory"); } }\n'
        )
    command = "gcc -O3 -march=native -fPIC -shared f.c -o f.so -lm"
    subprocess.run(command.split(), check=True)
    return folder / "f.so"


@PEER.offers("called", "tiny", "small")
def called(work: str, parameters: Parameters) -> Loop:
    function, inputs = function_of(work), INPUTS[work]

    def loop(count: int) -> list[float]:
        for _ in range(count):
            outputs = function(*inputs)
        return [float(x) for x in outputs]

    return loop


def buffered(function, work: str) -> Loop:
    import numpy as np

    buffer, run = function.buffer()
    inputs, outputs = [np.array(x) for x in INPUTS[work]], [np.empty(()) for _ in range(3)]
    for i, x in enumerate(inputs):
        buffer.set_arg(i, memoryview(x))
    for i, x in enumerate(outputs):
        buffer.set_res(i, memoryview(x))

    def loop(count: int) -> list[float]:
        for _ in range(count):
            run()
        return [float(x) for x in outputs]

    loop.keeps = inputs, buffer  # the buffer only points to the inputs
    return loop


@PEER.offers("interpreted, buffers", "tiny", "small")
def interpreted(work: str, parameters: Parameters) -> Loop:
    return buffered(function_of(work), work)


@PEER.offers("generated C, buffers", "tiny", "small")
def compiled(work: str, parameters: Parameters) -> Loop:
    import casadi as ca

    return buffered(ca.external("f", str(generated(work, parameters))), work)


@PEER.offers("generated C, loop in C", "tiny", "small")
def loop_in_c(work: str, parameters: Parameters) -> Loop:
    library = ctypes.CDLL(str(generated(work, parameters)))
    pointer = ctypes.POINTER(ctypes.c_double)
    inputs, outputs = [[ctypes.c_double(x) for x in row] for row in (INPUTS[work], (0, 0, 0))]
    arg = (pointer * 2)(*map(ctypes.pointer, inputs))
    res = (pointer * 3)(*map(ctypes.pointer, outputs))

    def loop(count: int) -> list[float]:
        library.loop(arg, res, ctypes.c_long(count))
        return [x.value for x in outputs]

    return loop
