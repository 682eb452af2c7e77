# python/burtorch/viz/_errors.py — why there is no picture; the text it would be made from is kept
# SPDX-License-Identifier: MIT
"""Exceptions of burtorch.viz."""

from __future__ import annotations

from .._core import Error


class DrawingError(Error):
    """A picture could not be made. `text` is the DOT text or the script, to be drawn elsewhere."""

    def __init__(self, message: str, text: str) -> None:
        super().__init__(message)
        self.text = text


class MissingToolError(DrawingError):
    """A program or a package that draws is not installed; the message says how to get it."""


class TooLargeError(DrawingError, ValueError):
    """So many nodes that drawing would take very long and nobody could read the result."""
