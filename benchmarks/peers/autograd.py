# benchmarks/peers/autograd.py — HIPS autograd
# SPDX-License-Identifier: MIT
from benchmarks.registry import Loop, Parameters, Peer
from benchmarks.works import GRAPHS, INPUTS

PEER = Peer("autograd", pip=["autograd"])


@PEER.offers("", "tiny", "small")
def eager(work: str, parameters: Parameters) -> Loop:
    import autograd
    import autograd.numpy as np

    graph, (x, y) = GRAPHS[work], INPUTS[work]
    function = autograd.value_and_grad(
        lambda a, b: graph(a, b, lambda v: np.maximum(v, 0.0)), argnum=(0, 1)
    )

    def loop(count: int) -> tuple[float, ...]:
        for _ in range(count):
            value, gradient = function(x, y)
        return value, *gradient

    return loop
