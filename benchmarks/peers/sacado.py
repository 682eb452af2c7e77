# benchmarks/peers/sacado.py — Sacado of Trilinos from Debian
# SPDX-License-Identifier: MIT
from benchmarks.environment import debian_flags
from benchmarks.registry import Peer

PEER = Peer(
    "Sacado",
    debian=["libtrilinos-sacado-dev", "libtrilinos-sacado-13.2"],
    libraries=lambda: debian_flags("trilinos", "trilinos_sacado"),
)
PEER.program("C++ eager", "sacado", "tiny", "small", argument="eager")
