# tests/test_layers.py — folders of include/burtorch are layers: an include goes down, never up
# SPDX-License-Identifier: MIT
"""CONTRIBUTING.md shows the same list."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEADERS = ROOT / "include/burtorch"

# Lowest first. A folder may include itself and what stands before it. "." is the handles: Values, Views and
# their gradients. Folders on one line know nothing of each other.
LAYERS = [
    ["base"],
    ["scalar"],
    ["op"],
    ["kernel"],
    ["tape"],
    ["."],
    ["block"],
    ["run"],
    ["nn", "optim"],
    ["io", "viz"],
]
LEVEL = {folder: level for level, folders in enumerate(LAYERS) for folder in folders}
CONTENTS = {"burtorch.hpp"}  # what lists everything, for reading order
INCLUDE = re.compile(r"^#include <burtorch/([^>]+)>", re.MULTILINE)


def moved(text: str) -> bool:
    """Whether a header only points to its new place."""
    return " — now " in text.split("\n", 1)[0]


def folder(header: str) -> str:
    return Path(header).parent.as_posix()


def test_every_folder_is_a_layer() -> None:
    assert {folder(p.relative_to(HEADERS).as_posix()) for p in HEADERS.rglob("*.hpp")} == set(LEVEL)


def test_includes_go_down() -> None:
    wrong = []
    for path in sorted(HEADERS.rglob("*.hpp")):
        name, text = path.relative_to(HEADERS).as_posix(), path.read_text(encoding="utf-8")
        if name in CONTENTS or moved(text):
            continue
        for other in INCLUDE.findall(text):
            up = LEVEL[folder(other)] > LEVEL[folder(name)]
            aside = LEVEL[folder(other)] == LEVEL[folder(name)] and folder(other) != folder(name)
            if up or aside or moved((HEADERS / other).read_text(encoding="utf-8")):
                wrong.append(f"{name} includes {other}")
    assert wrong == []


def test_a_header_that_moved_only_points_to_its_new_place() -> None:
    for path in HEADERS.rglob("*.hpp"):
        text = path.read_text(encoding="utf-8")
        if moved(text):
            lines = [line for line in text.splitlines() if line and not line.startswith("//")]
            assert len(lines) == 2, path
            assert lines[0] == "#pragma once", path
            assert f" — now {INCLUDE.findall(text)[0]};" in text, path


def test_contributing_shows_the_layers() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\d+\. `([^`]+)`:", text, re.MULTILINE)
    assert [name.split(" ") for name in shown] == LAYERS
