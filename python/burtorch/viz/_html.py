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

from .._core import Value, _viz

LIMIT = 20_000


def html(
    root: Value,
    title: str | None = None,
    *,
    depth: int | None = None,
    max_nodes: int | None = None,
    parameters_below: int | None = None,
) -> str:
    """Return an HTML page that shows what root was computed from.

    Each node is a card with its operation, value and gradient (∂). A click, or the arrow keys,
    choose one: a panel lists its operands with the local derivatives, and its users with what each
    gives to the gradient, so that the chain rule can be followed by eye. All paths from the node to
    the root light up. The search box takes a name, an index or an operation; "nan" finds every
    value or gradient that is not finite. The address keeps the chosen node: `graph.html#12`.

    Call `root.backward()` first, or the gradients are those of an earlier call. `depth` and
    `max_nodes` keep what is nearest to the root, and the page says how many nodes it left out; by
    default it shows 20 000, which lay themselves out in a second or two. `parameters_below` is that
    of dot(). The title is the root's name unless one is given.

    >>> import burtorch as bt
    >>> a, b = bt.Value(-41.0, name="a"), bt.Value(2.0, name="b")
    >>> page = html(a * b, title="product")
    >>> page[:15], "<title>product</title>" in page
    ('<!doctype html>', True)
    """
    data = _viz.graph_json(
        root,
        depth=depth,
        max_nodes=LIMIT if max_nodes is None else max_nodes,
        parameters_below=parameters_below,
    )
    # Inside a script element nothing but "<" can end the data or change how it is read.
    fill = {
        "title": escape(title or root.name or "Computation graph"),
        "data": data.replace("<", "\\u003c"),
    }
    template = Path(__file__).with_name("graph.html").read_text(encoding="utf-8")
    # In one pass: a title that looks like a place to fill in stays as it is.
    return re.sub(r"\{\{(title|data)\}\}", lambda place: fill[place[1]], template)


def save_html(
    root: Value, path: str | os.PathLike[str], title: str | None = None, **options: int | None
) -> None:
    """Write the page that html() makes; the options are the same."""
    # A title may hold half of a surrogate pair, which has no UTF-8 form: "?" stands for it.
    Path(path).write_bytes(html(root, title, **options).encode("utf-8", errors="replace"))
