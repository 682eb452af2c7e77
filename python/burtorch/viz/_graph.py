# python/burtorch/viz/_graph.py — graphs as DOT text, as pictures, and in notebooks
# SPDX-License-Identifier: MIT
"""The graph of a Value or a View, or everything on a tape."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import graphviz  # type: ignore[import-untyped]

from .._core import Error, Tape, Value, View, _viz
from ._errors import DrawingError, MissingToolError, TooLargeError

FIELDS = ("label", "operation", "value", "gradient", "index")
# The layout takes more than linear time: seconds here, hours for ten times as many.
LIMIT = 2000
IN_NOTEBOOKS = 150


def dot(
    root: Value | View | Tape,
    title: str = "",
    *,
    depth: int | None = None,
    max_nodes: int | None = None,
    parameters_below: int | None = None,
    direction: str = "LR",
    fields: Iterable[str] = FIELDS,
    digits: int = 6,
    expand_blocks: bool = False,
) -> str:
    """Return the graph as text in the DOT language.

    depth and max_nodes keep what is nearest to the root; one node then says how many more there are.
    Leaves with an index below parameters_below are drawn as parameters, by default those with a name.
    fields are label, operation, value, gradient, index and derivatives (written at the edges).
    The results of a block (an affine layer, a softmax, …) are one box, and so are the leaves it
    takes as one operand; expand_blocks draws each of their nodes.
    """
    wanted = list(fields)
    return _viz.dot(
        _last(root),
        title,
        depth,
        max_nodes,
        parameters_below,
        direction,
        wanted,
        digits,
        expand_blocks,
    )


def graph(
    root: Value | View | Tape, title: str = "", *, limit: int | None = LIMIT, **options: Any
) -> graphviz.Source:
    """Return the graph as a graphviz.Source, which notebooks show and `.view()` opens.

    More than `limit` nodes are refused; the other options are those of dot().
    """
    return graphviz.Source(_drawable(root, title, limit, options))


def save(
    root: Value | View | Tape,
    path: str | os.PathLike[str],
    title: str = "",
    *,
    limit: int | None = LIMIT,
    **options: Any,
) -> Path:
    """Write the graph to a file: .svg, .png, .pdf, … by its ending, or .dot for the text alone."""
    path = Path(path)
    kind = path.suffix[1:].lower()
    if kind in ("dot", "gv"):
        path.write_text(dot(root, title, **options), encoding="utf-8")
    else:
        text = _drawable(root, title, limit, options)
        if not kind:
            raise DrawingError(
                f"{path}: the ending says what to write, and there is none; for example {path}.svg",
                text,
            )
        path.write_bytes(_render(text, kind))
    return path


def mimebundle(
    root: Value | View | Tape,
    include: Iterable[str] | None = None,
    exclude: Iterable[str] | None = None,
) -> dict[str, str]:
    """Return what a notebook shows: text, and a picture if one can be drawn."""

    def draw() -> str:
        shown = _last(root)
        few = bool(_viz.node_count(shown, None, IN_NOTEBOOKS))
        return dot(shown, max_nodes=IN_NOTEBOOKS) if few else ""

    return bundle_of(repr(root), draw, include, exclude)


def bundle_of(
    text: str,
    draw: Callable[[], str],
    include: Iterable[str] | None,
    exclude: Iterable[str] | None,
) -> dict[str, str]:
    """Return text and, if draw() gives DOT text and Graphviz is there, the picture of it."""
    bundle = {"text/plain": text}
    try:
        if drawn := draw():
            bundle["image/svg+xml"] = _render(drawn, "svg").decode("utf-8")
    except (DrawingError, Error, IndexError):
        pass  # no Graphviz, or what was rewound or is empty: the text says what there is to say
    wanted = set(bundle if include is None else include) - set(exclude or ())
    return {kind: data for kind, data in bundle.items() if kind in wanted}


def _last(root: Value | View | Tape) -> Value | Tape:
    """Return the root itself, or the newest element of a View: its block is drawn as one box."""
    while isinstance(root, View):
        root = root[len(root) - 1]
    return root


def _drawable(
    root: Value | View | Tape, title: str, limit: int | None, options: dict[str, Any]
) -> str:
    root = _last(root)
    text = dot(root, title, **options)
    limits = (options.get("depth"), options.get("max_nodes"), options.get("expand_blocks", False))
    count = _viz.node_count(root, *limits)
    if limit is not None and count > limit:
        raise TooLargeError(
            f"a picture of {count} nodes would take very long to lay out and could not be read; "
            f"show less of it with max_nodes={min(limit, 200)} or depth=5, or insist with limit=None",
            text,
        )
    return text


def _render(text: str, kind: str) -> bytes:
    try:
        return bytes(graphviz.Source(text).pipe(format=kind))
    except graphviz.ExecutableNotFound as error:
        raise MissingToolError(
            "drawing needs the program `dot` of Graphviz: apt install graphviz, "
            "brew install graphviz, or https://graphviz.org/download; the DOT text is in this "
            "exception's .text, and .dot files can be saved without it",
            text,
        ) from error
    except ValueError as error:
        raise DrawingError(f"Graphviz draws no .{kind} files", text) from error
    except graphviz.CalledProcessError as error:
        said = (error.stderr or b"").decode("utf-8", "replace").strip()
        raise DrawingError(f"the program `dot` failed: {said}", text) from error
