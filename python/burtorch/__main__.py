# python/burtorch/__main__.py — the command line: python -m burtorch
# SPDX-License-Identifier: MIT
"""Command line of burtorch."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from . import __version__, get_cmake_dir, get_include
from ._draw import add_parser as add_draw
from ._draw import run as run_draw


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="burtorch",
        description="Gradients of scalar programs, fast.",
        epilog="c++ -std=c++20 -I$(python -m burtorch --includes) main.cpp\n"
        "cmake -Dburtorch_DIR=$(python -m burtorch --cmakedir) -B build",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument("--includes", action="store_true", help="print the folder of the headers")
    parser.add_argument(
        "--cmakedir", action="store_true", help="print the folder of burtorchConfig.cmake"
    )
    commands = parser.add_subparsers(dest="command", metavar="command")
    demo = commands.add_parser("demo", help="gradients of the paper's graphs, checked and timed")
    demo.add_argument(
        "--picture",
        metavar="FILE",
        default="burtorch-tiny.svg",
        help="where to draw the tiny graph (default: %(default)s)",
    )
    add_draw(commands)
    commands.add_parser("info", help="version, instruction set chosen, compiler")
    return parser


def _info() -> None:
    import platform

    from . import _core, _cpu

    print(f"burtorch {__version__}")
    print(f"instruction set: {_core._isa} (this processor can run {', '.join(_cpu.supported())})")
    print(f"compiler: {_core._compiler}")
    print(f"Python: {platform.python_version()}, headers: {get_include()}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command == "info":
        _info()
        return 0
    if options.command == "demo":
        from ._demo import run

        return run(options.picture)
    if options.command == "draw":
        return run_draw(options)
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
