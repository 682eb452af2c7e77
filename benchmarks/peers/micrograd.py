# benchmarks/peers/micrograd.py — micrograd
# SPDX-License-Identifier: MIT
from benchmarks.registry import Loop, Parameters, Peer
from benchmarks.works import eager

PEER = Peer("micrograd", pip=["micrograd"])


@PEER.offers("", "tiny", "small")
def values(work: str, parameters: Parameters) -> Loop:
    from micrograd.engine import Value

    return eager(work, Value, Value.relu)
