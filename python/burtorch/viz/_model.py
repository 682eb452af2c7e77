# python/burtorch/viz/_model.py — a model or layer as a picture: its parts and their parameters
# SPDX-License-Identifier: MIT
"""One box for each part that has parameters, in the order in which they stand in the model."""

from __future__ import annotations

from html import escape
from typing import Any

from ._graph import bundle_of, quoted

FEW = 40  # parts; more are left out of the middle


def model_dot(model: Any, title: str | None = None) -> str:
    """Return the parts of a model or layer, with the shapes of their parameters, as DOT text."""
    parts: dict[str, list[tuple[str, tuple[int, ...]]]] = {}
    for name, numbers in model.state_dict().items():
        part, _, parameter = name.rpartition(".")
        parts.setdefault(part, []).append((parameter, numbers.shape))
    boxes = [_box(part, parameters) for part, parameters in parts.items()]
    if len(boxes) > FEW:
        left_out = len(boxes) - FEW
        boxes[FEW // 2 : -(FEW // 2)] = [f'label="… {left_out} more" shape=plain style=solid']
    lines = [
        "digraph model {",
        "  rankdir=TB",
        f"  label={quoted(repr(model) if title is None else title)} labelloc=t",
        '  graph [bgcolor=transparent fontname="Helvetica,Arial,sans-serif" ranksep=0.2]',
        '  node [fontname="Helvetica,Arial,sans-serif" fontsize=11 shape=box'
        ' style="rounded,filled" fillcolor="#e6f5ea" color="#4f9e68"]',
        '  edge [color="#8a94a6" arrowsize=0.6]',
    ]
    lines += [f"  p{i} [{box}]" for i, box in enumerate(boxes)]
    lines += [f"  p{i} -> p{i + 1}" for i in range(len(boxes) - 1)]
    return "\n".join([*lines, "}", ""])


def model_mimebundle(model: Any, include: Any = None, exclude: Any = None) -> dict[str, str]:
    """Return what a notebook shows of a model: text, and a picture if one can be drawn."""
    return bundle_of(repr(model), lambda: model_dot(model), include, exclude)


def _box(part: str, parameters: list[tuple[str, tuple[int, ...]]]) -> str:
    rows = "".join(
        f'<TR><TD ALIGN="LEFT">{escape(name)}</TD>'
        f'<TD ALIGN="RIGHT">{" × ".join(map(str, shape))}</TD></TR>'
        for name, shape in parameters
    )
    head = f'<TR><TD ALIGN="LEFT" COLSPAN="2"><B>{escape(part)}</B></TD></TR>' if part else ""
    return f'label=<<TABLE BORDER="0" CELLSPACING="1" CELLPADDING="1">{head}{rows}</TABLE>>'
