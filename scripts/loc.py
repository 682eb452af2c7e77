# scripts/loc.py — counts lines of code, without blank lines and comments, and holds the engine to its budget
# SPDX-License-Identifier: MIT
"""Print the code lines of each folder of include/, and of the engine: what burtorch.hpp includes.

Exits with 1 if the engine exceeds its budget.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
INCLUDE = ROOT / "include"
ENGINE = "burtorch/burtorch.hpp"
BUDGET = 3000  # lines of code that ENGINE includes, with all that those headers include
INCLUDED = re.compile(r"^\s*#\s*include\s*<(burtorch/[^>]+)>", re.MULTILINE)
# A string is matched first, so that "//" inside one is not taken for a comment.
TOKENS = re.compile(
    r'R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?P<comment>//[^\n]*|/\*.*?\*/)',
    re.DOTALL,
)


def code_lines(text: str) -> int:
    """Count the lines that hold something besides space and comments."""

    def blank(token: re.Match[str]) -> str:
        return "\n" * token[0].count("\n") if token["comment"] else token[0]

    return sum(1 for line in TOKENS.sub(blank, text).splitlines() if line.strip())


def included(header: str, include: Path = INCLUDE) -> list[str]:
    """Return a header and those that it includes, each once, however deep."""
    found: list[str] = []
    waiting = [header]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.append(name)
            waiting += INCLUDED.findall((include / name).read_text(encoding="utf-8"))
    return sorted(found)


def lines_of(headers: list[str], include: Path = INCLUDE) -> int:
    return sum(code_lines((include / name).read_text(encoding="utf-8")) for name in headers)


def main(include: Path = INCLUDE, budget: int = BUDGET) -> int:
    folders: dict[str, list[str]] = {}
    for path in sorted(include.rglob("*.h*")):
        name = path.relative_to(include)
        folders.setdefault(name.parent.as_posix(), []).append(name.as_posix())
    engine = included(ENGINE, include)
    lines = lines_of(engine, include)
    print(f"{'folder of include':<30} {'files':>6} {'lines':>7}")
    for folder, headers in sorted(folders.items()):
        print(f"{folder:<30} {len(headers):>6} {lines_of(headers, include):>7}")
    print(f"{ENGINE + ' includes':<30} {len(engine):>6} {lines:>7} of at most {budget}")
    if lines > budget:
        print(f"{ENGINE} includes {lines - budget} lines too many: what can the new ones replace?")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
