# benchmarks/peers/__init__.py — one file per peer; each holds a PEER with its ways
# SPDX-License-Identifier: MIT
