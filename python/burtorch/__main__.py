# python/burtorch/__main__.py — the command line: python -m burtorch
# SPDX-License-Identifier: MIT
"""Command line of burtorch."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from . import __version__, get_cmake_dir, get_include


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="burtorch",
        description="Tells a build where the burtorch headers are.",
        epilog="c++ -std=c++20 -I$(python -m burtorch --includes) main.cpp\n"
        "cmake -Dburtorch_DIR=$(python -m burtorch --cmakedir) -B build",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument("--includes", action="store_true", help="print the folder of the headers")
    parser.add_argument(
        "--cmakedir", action="store_true", help="print the folder of burtorchConfig.cmake"
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if not (options.includes or options.cmakedir):
        parser.print_help()
        return 0
    try:
        if options.includes:
            print(get_include())
        if options.cmakedir:
            print(get_cmake_dir())
    except FileNotFoundError as error:
        print(f"burtorch: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
