# benchmarks/__init__.py — every experiment of the paper against real peers: python -m benchmarks
# SPDX-License-Identifier: MIT
