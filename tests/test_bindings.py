# tests/test_bindings.py — the sources of the extension: no switch is set in a file, and none of them is long
# SPDX-License-Identifier: MIT
from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import ROOT

FILES = sorted((ROOT / "bindings").glob("*.?pp"))
# Switches of the engine, and what follows from them: the same for all files of a target.
SWITCHES = r"^\s*#\s*(?:define|undef)\s+BURTORCH_(?:CHECKS|LABELS|EXCEPTIONS|INSTRUMENTED|INLINE\w*|LAYOUT)\b"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_file_sets_no_switch_and_is_of_one_topic(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert re.findall(SWITCHES, text, re.MULTILINE) == []
    assert len(text.splitlines()) <= 500


def test_every_file_is_compiled_once() -> None:
    text = (ROOT / "bindings" / "CMakeLists.txt").read_text(encoding="utf-8")
    listed = re.findall(r"\b\w+\.cpp\b", text)
    assert sorted(listed) == sorted(file.name for file in FILES if file.suffix == ".cpp")


def test_what_a_file_calls_its_own_is_so_when_files_are_joined() -> None:
    """Compilers that join files (unity builds) see the names of all anonymous namespaces at once."""
    homes: dict[str, set[str]] = {}
    for file in FILES:
        if file.suffix != ".cpp":
            continue
        inside = False
        for line in file.read_text(encoding="utf-8").splitlines():
            if line == "namespace {":
                inside = True
            elif line == "} // namespace":
                inside = False
            elif inside and (found := re.match(r"(?:class|struct|enum class) (\w+)\b.*{$", line)):
                homes.setdefault(found[1], set()).add(file.name)
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}
