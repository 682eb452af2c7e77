# benchmarks/peers/adolc.py — ADOL-C from Debian
# SPDX-License-Identifier: MIT
from benchmarks.environment import debian_flags
from benchmarks.registry import Peer

PEER = Peer(
    "ADOL-C",
    debian=["libadolc-dev", "libcolpack-dev"],
    libraries=lambda: [*debian_flags("", "libadolc.a", "libColPack.a"), "-fopenmp"],
)
PEER.program("C++ eager", "adolc", "tiny", "small", argument="eager")
PEER.program("C++ recorded once", "adolc", "tiny", "small", argument="recorded once")
