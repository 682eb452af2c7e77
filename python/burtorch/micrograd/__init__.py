# python/burtorch/micrograd/__init__.py — programs written for micrograd run with the import changed
# SPDX-License-Identifier: MIT
"""The names of micrograd's engine: `from burtorch.micrograd import Value`."""

from __future__ import annotations

from .. import Value
from . import nn

__all__ = ["Value", "nn"]
