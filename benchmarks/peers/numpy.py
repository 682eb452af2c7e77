# benchmarks/peers/numpy.py — NumPy: derivatives by hand on its scalars, and its raw files
# SPDX-License-Identifier: MIT
from typing import Any

from benchmarks.registry import Loop, Parameters, Peer
from benchmarks.works import ACTIVATIONS, INPUTS, files

PEER = Peer("NumPy", pip=["numpy"])


def tiny(a: Any, b: Any) -> Any:
    square = b * b
    e = a + b - (a + square) * b
    return 0.5 * (e * e), e * (1 - b), e * (1 - a - 3 * square)


def small(a: Any, b: Any) -> Any:
    s, t = 4.0 if a + b > 0 else 0.0, 1.0 if b - a > 0 else 0.0
    square = b * b
    e = 3 * a + 4 * b + 3 - (12 * (a + square) * b + s * (a + b) + t * (b - a))
    f = e * e
    de = e - 20 / (f * e)
    da, db = 12 * b + s - t, 12 * (a + 3 * square) + s + t
    return 0.5 * f + 10 / f, de * (3 - da), de * (4 - db)


@PEER.offers("by hand", "tiny", "small")
def by_hand(work: str, parameters: Parameters) -> Loop:
    import numpy as np

    function, (x, y) = {"tiny": tiny, "small": small}[work], map(np.float64, INPUTS[work])

    def loop(count: int) -> Any:
        for _ in range(count):
            result = function(x, y)
        return result

    return loop


@PEER.offers("tofile, fromfile", "save", "load")
def raw_files(work: str, parameters: Parameters) -> Loop:
    import numpy as np

    values, path = np.array(ACTIVATIONS), parameters["path"]
    return files(work, lambda: values.tofile(path), lambda: np.fromfile(path))
