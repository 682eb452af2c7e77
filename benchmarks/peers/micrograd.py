# benchmarks/peers/micrograd.py — micrograd
# SPDX-License-Identifier: MIT
from benchmarks.registry import Loop, Parameters, Peer
from benchmarks.works import GRAPHS, INPUTS

PEER = Peer("micrograd", pip=["micrograd"])


@PEER.offers("", "tiny", "small")
def eager(work: str, parameters: Parameters) -> Loop:
    from micrograd.engine import Value

    graph, (x, y) = GRAPHS[work], INPUTS[work]

    def loop(count: int) -> tuple[float, ...]:
        for _ in range(count):
            a, b = Value(x), Value(y)
            g = graph(a, b, Value.relu)
            g.backward()
        return g.data, a.grad, b.grad

    return loop
