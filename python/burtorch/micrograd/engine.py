# python/burtorch/micrograd/engine.py — micrograd's module of that name
# SPDX-License-Identifier: MIT
"""`from burtorch.micrograd.engine import Value`."""

from __future__ import annotations

from .. import Value

__all__ = ["Value"]
