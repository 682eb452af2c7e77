# benchmarks/peers/xad.py — XAD for Python
# SPDX-License-Identifier: MIT
from benchmarks.registry import Loop, Parameters, Peer
from benchmarks.works import GRAPHS, INPUTS

PEER = Peer("XAD", pip=["xad"])


@PEER.offers("Python", "tiny", "small")
def eager(work: str, parameters: Parameters) -> Loop:
    import xad.adj_1st as xad
    from xad import math

    graph, (x, y) = GRAPHS[work], INPUTS[work]

    def loop(count: int) -> tuple[float, ...]:
        with xad.Tape() as tape:
            a, b = xad.Real(x), xad.Real(y)
            tape.registerInput(a)
            tape.registerInput(b)
            for _ in range(count):
                tape.newRecording()
                g = graph(a, b, lambda v: math.max(v, 0.0))
                tape.registerOutput(g)
                g.setDerivative(1.0)
                tape.computeAdjoints()
            return g.getValue(), a.getDerivative(), b.getDerivative()

    return loop
