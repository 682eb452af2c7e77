# benchmarks/peers/sacado.py — Sacado of Trilinos from Debian
# SPDX-License-Identifier: MIT
from benchmarks.environment import debian_flags
from benchmarks.registry import Peer

PEER = Peer(
    "Sacado",
    debian=["libtrilinos-sacado-dev"],
    libraries=lambda: debian_flags("trilinos"),
)
PEER.program("C++ eager", "sacado", "tiny", "small", argument="eager")
