# benchmarks/peers/yardstick.py — derivatives by hand, and the tape one writes in twenty minutes
# SPDX-License-Identifier: MIT
from benchmarks.registry import Peer

PEER = Peer("")
PEER.program("derived by hand in C++", "yardstick", "tiny", "small", argument="by hand")
PEER.program("a plain tape in C++", "yardstick", "tiny", "small", argument="plain tape")
