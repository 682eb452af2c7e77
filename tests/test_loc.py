# tests/test_loc.py — what counts as a line of code
# SPDX-License-Identifier: MIT
from __future__ import annotations

import loc
import pytest


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", 0),
        ("\n  \n// only a comment\n", 0),
        ("int a; // counts\n", 1),
        ("/* one\n two */ int a;\n", 1),
        ('const char* url = "https://x"; /* a\n b */\nint b;\n', 2),
        ('auto raw = R"(// not\n\na comment)";\n', 2),
    ],
)
def test_code_lines(text: str, lines: int) -> None:
    assert loc.code_lines(text) == lines
