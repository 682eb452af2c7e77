# benchmarks/peers/numpy.py — NumPy: derivatives by hand on its scalars, and its raw files
# SPDX-License-Identifier: MIT
from benchmarks.registry import Loop, Parameters, Peer
from benchmarks.works import ACTIVATIONS, INPUTS, files

PEER = Peer("NumPy", pip=["numpy"])


def tiny(a, b):
    e = a + b - (a * b + b**3)
    return e**2 / 2, e * (1 - b), e * (1 - a - 3 * b**2)


def small(a, b):
    s, t = float(a + b > 0), float(b - a > 0)
    e = 3 * a + 4 * b + 3 - (12 * (a * b + b**3) + 4 * s * (a + b) + t * (b - a))
    f = e**2
    de = e - 20 / (f * e)
    return f / 2 + 10 / f, de * (3 - 12 * b - 4 * s + t), de * (4 - 12 * (a + 3 * b**2) - 4 * s - t)


@PEER.offers("by hand", "tiny", "small")
def by_hand(work: str, parameters: Parameters) -> Loop:
    import numpy as np

    function, (x, y) = {"tiny": tiny, "small": small}[work], map(np.float64, INPUTS[work])

    def loop(count: int) -> tuple[float, ...]:
        for _ in range(count):
            result = function(x, y)
        return result

    return loop


@PEER.offers("tofile, fromfile", "save", "load")
def raw_files(work: str, parameters: Parameters) -> Loop:
    import numpy as np

    values, path = np.array(ACTIVATIONS), parameters["path"]
    return files(work, lambda: values.tofile(path), lambda: np.fromfile(path))
