# python/burtorch/viz/_html.py — a graph as one interactive HTML file
# SPDX-License-Identifier: MIT
"""An interactive view of a graph: pan, zoom, search, click.

The file carries its data, its script and its style. It loads nothing, and its content security
policy forbids it to: it can be mailed, kept beside a paper, opened in ten years.
"""

from __future__ import annotations

import os
import re
from html import escape
from pathlib import Path
from typing import Any

from .._core import _viz

__all__ = ["html", "save_html"]


def _in_script(json: str) -> str:
    """Make JSON safe inside a script element, where nothing but "<" can end or change it."""
    return json.replace("<", "\\u003c")


def html(
    root: Any,
    title: str | None = None,
    depth: int | None = None,
    max_nodes: int | None = 20_000,
) -> str:
    """Return an HTML page that shows what root was computed from.

    Each node is a card with its operation, value and gradient (∂). A click, or the arrow keys,
    choose one: a panel lists its operands with the local derivatives, and its users with what each
    gives to the gradient, so that the chain rule can be followed by eye. All paths from the node to
    the root light up. The search box takes a name, an index or an operation; "nan" finds every
    value or gradient that is not finite. The address keeps the chosen node: `graph.html#12`.

    Call `root.backward()` first, or the gradients are those of an earlier call. `depth` keeps only
    nodes that many steps from the root. `max_nodes` bounds how many are drawn, those nearest to the
    root; the page says how many were left out. None draws all of them; 20 000 lay themselves out in
    a second or two. The title is the root's name unless one is given.

    >>> import burtorch as bt
    >>> a, b = bt.Value(-41.0, name="a"), bt.Value(2.0, name="b")
    >>> page = html(a * b, title="product")
    >>> page[:15], "<title>product</title>" in page
    ('<!doctype html>', True)
    """
    fill = {
        "title": escape(title or getattr(root, "name", None) or "Computation graph"),
        "data": _in_script(_viz.graph_json(root, depth=depth, max_nodes=max_nodes)),
    }
    template = Path(__file__).with_name("graph.html").read_text(encoding="utf-8")
    # In one pass: a title that looks like a place to fill in stays as it is.
    return re.sub(r"\{\{(title|data)\}\}", lambda place: fill[place[1]], template)


def save_html(
    root: Any,
    path: str | os.PathLike[str],
    title: str | None = None,
    depth: int | None = None,
    max_nodes: int | None = 20_000,
) -> None:
    """Write the page that `html` makes; see there."""
    # A name may hold half of a surrogate pair, which has no UTF-8 form: "?" stands for it.
    page = html(root, title, depth, max_nodes).encode("utf-8", errors="replace")
    Path(path).write_bytes(page)
