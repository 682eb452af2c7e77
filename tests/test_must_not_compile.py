# tests/test_must_not_compile.py — mistakes that the compiler must refuse, saying why
# SPDX-License-Identifier: MIT
from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, Run

SNIPPETS = sorted((ROOT / "cpp_tests" / "must_not_compile").glob("*.cpp"))


@pytest.mark.parametrize("which", ["compiler", "clang"])
@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda path: path.stem)
def test_snippet(
    snippet: Path, which: str, run: Run, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    compiler = request.getfixturevalue(which)
    command = [compiler, "-std=c++20", "-fsyntax-only", f"-I{ROOT / 'include'}", str(snippet)]
    expected = snippet.read_text(encoding="utf-8").splitlines()[0].removeprefix("// expect: ")

    run(command)  # without the mistake it compiles, so the mistake is the only reason to fail
    failed = subprocess.run(
        [*command, "-DBURTORCH_THE_ERROR"], stderr=subprocess.PIPE, text=True, check=False
    )
    assert failed.returncode != 0, "this compiled"
    assert re.search(expected, failed.stderr), failed.stderr
