# tests/test_style.py — how files begin, and what they must not mention
# SPDX-License-Identifier: MIT
from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT

SPDX = "SPDX-License-Identifier: MIT"
# Pieces, so that this file does not contain what it looks for.
MACHINE_PATHS = re.compile("|".join("/" + name + "/" for name in ("work", "root", "home", "Users")))
TEXT = {".c", ".cfg", ".cmake", ".cpp", ".h", ".hpp", ".in", ".json", ".md", ".py", ".toml", ".txt"}
WITH_HEAD = {".cpp", ".h", ".hpp", ".py", ".toml", ".cmake"}


def project_files() -> list[Path]:
    """Return the files that belong to the project, with or without git."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        paths = [ROOT / name for name in listed.splitlines()]
    except (OSError, subprocess.CalledProcessError):
        made = {"build", "dist", "__pycache__"}
        paths = [
            path
            for path in ROOT.rglob("*")
            if not any(
                part in made or (part.startswith(".") and part != ".ci")
                for part in path.relative_to(ROOT).parts[:-1]
            )
        ]
    return sorted(path for path in paths if path.is_file())


def is_text(path: Path) -> bool:
    return path.suffix in TEXT or path.name in {"Makefile", "run", "LICENSE"} or path.name[0] == "."


FILES = [path for path in project_files() if is_text(path)]
HEADS = [path for path in FILES if path.suffix in WITH_HEAD or path.name == "CMakeLists.txt"]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", HEADS, ids=name_of)
def test_file_opens_with_path_and_license(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    if lines and lines[0].startswith(("// expect:", "#!")):
        lines = lines[1:]
    base = ROOT / "include" if path.is_relative_to(ROOT / "include") else ROOT
    mark = "//" if path.suffix in {".cpp", ".h", ".hpp"} else "#"
    assert len(lines) >= 2
    assert re.match(rf"{mark} {re.escape(path.relative_to(base).as_posix())} — \S", lines[0]), (
        f"the first line should be '{mark} {path.relative_to(base).as_posix()} — purpose'"
    )
    assert lines[1] == f"{mark} {SPDX}"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_file_is_tidy(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not MACHINE_PATHS.search(text), "a path of somebody's machine"
    assert "\r" not in text
    assert "\t" not in text or path.name == "Makefile"
    assert not text or text.endswith("\n")
    assert not [n for n, line in enumerate(text.splitlines(), 1) if line != line.rstrip()]
