# python/burtorch/viz/__init__.py — bt.viz: graphs and training runs as pictures
# SPDX-License-Identifier: MIT
"""Seeing the graph.

>>> import burtorch as bt
>>> a, b = bt.Value(-41.0, "a"), bt.Value(2.0, "b")
>>> g = (a + b - (a * b + b**3)) ** 2 / 2
>>> g.backward()
>>> bt.viz.save(g, "g.svg")  # doctest: +SKIP
>>> bt.viz.run_script(bt.viz.plot_script(bt.tanh, -3, 3), "tanh.png")  # doctest: +SKIP

In a notebook Values, Views, tapes, layers and models show themselves.
"""

from __future__ import annotations

from .._core import _viz
from ._errors import DrawingError, MissingToolError, TooLargeError
from ._graph import FIELDS, dot, graph, mimebundle, save
from ._html import html, save_html
from ._live import Live, live
from ._model import model_dot, model_mimebundle
from ._script import (
    gradient_histogram,
    heatmap_basic_script,
    heatmap_script,
    loss_curve,
    parameter_heatmap,
    plot_script,
    run_script,
)

__all__ = [
    "FIELDS",
    "DrawingError",
    "Live",
    "MissingToolError",
    "TooLargeError",
    "as_string",
    "dot",
    "gradient_histogram",
    "graph",
    "graph_json",
    "heatmap_basic_script",
    "heatmap_script",
    "html",
    "live",
    "loss_curve",
    "mimebundle",
    "model_dot",
    "model_mimebundle",
    "parameter_heatmap",
    "plot_script",
    "run_script",
    "save",
    "save_html",
]

as_string = _viz.as_string
graph_json = _viz.graph_json
