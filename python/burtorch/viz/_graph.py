# python/burtorch/viz/_graph.py — graphs as DOT text, as pictures, and in notebooks
# SPDX-License-Identifier: MIT
"""The graph of a Value or a View, or everything on a tape."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from html import escape
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
    takes as one operand; expand_blocks draws each of their nodes. A View of leaves, such as a parameter of
    a layer, is drawn as a table of its numbers.
    """
    wanted = list(fields)
    if isinstance(root, View) and _is_of_leaves(root):
        return _table(root, title, wanted, digits)
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
        if isinstance(root, View) and _is_of_leaves(root):
            return dot(root)
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


FEW_ROWS, FEW_COLUMNS = 10, 8  # of a table; more are left out of the middle


def _is_of_leaves(view: View) -> bool:
    """Tell whether nothing was computed for a View: then there is no graph to draw."""
    values = view.reshape(view.size)
    return view.size != 0 and all(values[i].op == "leaf" for i in (0, view.size - 1))


def _table(view: View, title: str, fields: list[str], digits: int) -> str:
    """Return a View of leaves as DOT text: one box with its name, its shape and its numbers."""
    if unknown := set(fields) - {*FIELDS, "derivatives"}:
        raise ValueError(f"fields are {', '.join(FIELDS)} or derivatives, not {min(unknown)!r}")
    kinds = [("value", view.data)] if "value" in fields else []
    if "gradient" in fields and (grads := view.grad).any():  # where there are none yet: no zeros
        kinds.append(("grad", grads))
    rows = []
    columns = _some(view.shape[-1], FEW_COLUMNS)
    for kind, numbers in kinds:
        matrix = numbers.reshape(-1, numbers.shape[-1])
        for i in _some(len(matrix), FEW_ROWS):
            head = f'<FONT COLOR="#6b7686">{kind}</FONT>' if i == 0 else ""
            cells = [
                "…" if i is None or j is None else f"{matrix[i, j]:.{digits}g}" for j in columns
            ]
            rows.append(
                f'<TR><TD ALIGN="LEFT">{head}</TD>'
                + "".join(f'<TD ALIGN="RIGHT">{cell}</TD>' for cell in cells)
                + "</TR>"
            )
    name = f"<B>{escape(view.name)}</B> " if view.name and "label" in fields else ""
    shape = " × ".join(map(str, view.shape)) + ("" if view.ndim == 2 else " numbers")
    head = f'<TR><TD ALIGN="LEFT" COLSPAN="{len(columns) + 1}">{name}{shape}</TD></TR>'
    box = f'<TABLE BORDER="0" CELLSPACING="3" CELLPADDING="1">{head}{"".join(rows)}</TABLE>'
    lines = [
        "digraph burtorch {",
        *([f"  label={quoted(title)} labelloc=t"] if title else []),
        '  graph [bgcolor=transparent fontname="Helvetica,Arial,sans-serif"]',
        '  node [fontname="Helvetica,Arial,sans-serif" fontsize=11 shape=box style="rounded,filled"'
        ' fillcolor="#e8f1fc" color="#5b8fd0" fontcolor="#1f2933"]',
        f"  view [label=<{box}>]",
        "}",
        "",
    ]
    return "\n".join(lines)


def _some(count: int, few: int) -> list[int | None]:
    """Return all places, or the first and the last ones around a None."""
    if count <= few:
        return list(range(count))
    return [*range(few - 2), None, count - 1]


def quoted(text: str) -> str:
    """Return a text as a string of the DOT language."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _last(root: Value | View | Tape) -> Value | Tape:
    """Return the root itself, or the newest element of a View: its block is drawn as one box."""
    while isinstance(root, View):
        root = root[len(root) - 1]
    return root


def _drawable(
    root: Value | View | Tape, title: str, limit: int | None, options: dict[str, Any]
) -> str:
    text = dot(root, title, **options)
    root = _last(root)
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
