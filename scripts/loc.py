# scripts/loc.py — counts the lines of code of the engine, without blank lines and comments
# SPDX-License-Identifier: MIT
"""Print a table of code lines per folder of include/."""

from __future__ import annotations

import re
from pathlib import Path

INCLUDE = Path(__file__).resolve().parents[1] / "include"
# These are used by programs, not by the engine; they do not count towards its size.
OUTSIDE_ENGINE = {"burtorch/kernel", "burtorch/nn", "burtorch/optim", "burtorch/io", "burtorch/viz"}
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


def main() -> None:
    folders: dict[str, list[int]] = {}
    for path in sorted(INCLUDE.rglob("*.h*")):
        folder = path.parent.relative_to(INCLUDE).as_posix()
        text = path.read_text(encoding="utf-8")
        folders.setdefault(folder, []).append(code_lines(text))
    print(f"{'folder':<20} {'files':>6} {'lines':>7}")
    for folder, counts in sorted(folders.items()):
        print(f"{folder:<20} {len(counts):>6} {sum(counts):>7}")
    engine = [counts for folder, counts in folders.items() if folder not in OUTSIDE_ENGINE]
    print(f"{'the engine':<20} {sum(map(len, engine)):>6} {sum(map(sum, engine)):>7}")


if __name__ == "__main__":
    main()
