# python/burtorch/viz/__init__.py — bt.viz: graphs and training runs as pictures
# SPDX-License-Identifier: MIT
"""Seeing the graph."""

from __future__ import annotations

from .._core import _viz

__all__ = ["graph_json"]

graph_json = _viz.graph_json
