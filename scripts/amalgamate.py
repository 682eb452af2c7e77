# scripts/amalgamate.py — makes a one-file header: include/burtorch.h, or all headers
# SPDX-License-Identifier: MIT
"""Inline each burtorch header that is needed once, in the order of dependence, into one file."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
CONDITION = re.compile(r"^\s*#\s*(if|ifdef|ifndef|endif)\b")
DROPPED = re.compile(r"^\s*#\s*pragma\s+once\b|^// SPDX-License-Identifier:")


class AmalgamationError(Exception):
    """A header that cannot be inlined; the message says which line and why."""


class Amalgamation:
    """Collects the text of the headers and, apart from it, the standard headers they need."""

    def __init__(self, include: Path) -> None:
        self.include = include
        self.seen: set[Path] = set()
        self.standard: set[str] = set()
        self.lines: list[str] = []

    def find(self, spelling: str, quoted: bool, includer: Path) -> Path | None:
        folders = [includer.parent] if quoted else []
        for folder in [*folders, self.include]:
            path = (folder / spelling).resolve()
            if path.is_file() and path.is_relative_to(self.include):
                return path
        return None

    def add(self, path: Path) -> None:
        if path in self.seen:
            return
        self.seen.add(path)
        text = path.read_text(encoding="utf-8")
        if "#pragma once" not in text:
            raise AmalgamationError(f"{path.name}: no #pragma once, so once may be wrong")
        body: list[str] = []
        depth = 0
        for number, line in enumerate(text.splitlines(), 1):
            condition = CONDITION.match(line)
            if condition:
                depth += -1 if condition[1] == "endif" else 1
            found = INCLUDE.match(line)
            if found:
                header = self.find(found[2], found[1] == '"', path)
                if header is not None:
                    if depth:
                        raise AmalgamationError(
                            f"{path.name}:{number}: a burtorch header included under a condition"
                        )
                    self.add(header)
                    continue
                if not depth:
                    self.standard.add(found[2])
                    continue
            if not DROPPED.match(line):
                body.append(line)
        self.lines += ["", *collapse_blank_lines(body)]


def collapse_blank_lines(lines: list[str]) -> list[str]:
    """Drop the blank lines at both ends and all but one in a row, which removed includes leave."""
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines).strip("\n")).split("\n")


def version(include: Path) -> str:
    config = (include / "burtorch" / "base" / "config.hpp").read_text(encoding="utf-8")
    return ".".join(re.findall(r"#define BURTORCH_VERSION_(?:MAJOR|MINOR|PATCH)\s+(\d+)", config))


def amalgamate(entry: Path, include: Path, every: bool = False) -> str:
    include = include.resolve()
    result = Amalgamation(include)
    if every:  # before the entry, which may end with `using namespace`
        for path in sorted((include / "burtorch").rglob("*.hpp")):
            result.add(path)
    result.add(entry.resolve())
    what = f"{'all of ' if every else ''}burtorch {version(include)}"
    head = [
        f"// {entry.name} — {what} in one file, made by scripts/amalgamate.py",
        "// SPDX-License-Identifier: MIT",
        "#pragma once",
        "",
        *(f"#include <{name}>" for name in sorted(result.standard)),
    ]
    return "\n".join(head + result.lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--entry",
        type=Path,
        default=ROOT / "include" / "burtorch.h",
        help="the header to start from (default: include/burtorch.h)",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=ROOT / "build" / "burtorch.h",
        help="where to write the result (default: build/burtorch.h)",
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="also the headers that the entry leaves to be included: views, blocks, nn, optim, "
        "io, programs, …; such a file takes longer to compile",
    )
    options = parser.parse_args()
    try:
        text = amalgamate(options.entry, ROOT / "include", options.all)
    except (AmalgamationError, OSError) as error:
        print(f"amalgamate: {error}", file=sys.stderr)
        return 1
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(text, encoding="utf-8")
    print(f"{options.output}: {text.count(chr(10))} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
