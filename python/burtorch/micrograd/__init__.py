# python/burtorch/micrograd/__init__.py — programs written for micrograd run with the import changed
# SPDX-License-Identifier: MIT
"""The names of micrograd's engine: `from burtorch.micrograd import Value`.

Graphs can be walked by `_prev` and `_op`. Three things differ: plain numbers are no nodes; a second
`backward()` adds to the gradients of leaves only, so that what they hold is a sum of gradients; and
operations of one's own, made as `Value(x, (a,), 'tanh')` with a `_backward`, are refused, because the
engine knows only its own (`tanh` among them).
"""

from __future__ import annotations

from .. import Value
from . import nn

__all__ = ["Value", "nn"]
