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


def _add_training(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    train = commands.add_parser(
        "train",
        help="train a model of text",
        description="Train a model on a text, with checkpoints; Ctrl-C saves and stops.",
    )
    models = train.add_subparsers(dest="model", metavar="mlp|gpt", required=True)
    sizes = {
        "mlp": ["hidden", "embed", "context"],
        "gpt": ["context", "d_model", "layers", "heads"],
    }
    meanings = {"mlp": "the next character of words, one per line", "gpt": "a small transformer"}
    for model, names in sizes.items():
        parser = models.add_parser(model, help=meanings[model], argument_default=argparse.SUPPRESS)
        add = parser.add_argument
        add("--data", metavar="FILE", help="a text in UTF-8 (default: one that comes with Python)")
        add("--steps", type=int, metavar="N", help="steps in all (default: 1000)")
        add("--batch", type=int, metavar="B", help="samples per step (default: 64)")
        add("--lr", type=float, help="learning rate of AdamW (default: 0.003)")
        add("--schedule", choices=["constant", "linear", "cosine"], help="default: constant")
        add("--seed", type=int, help="of the parameters and the batches (default: 0)")
        add("--micro-batch", type=int, metavar="M", help="samples at a time (default: 32)")
        add("--threads", type=int, metavar="T", help="default: 1")
        add("--every", type=int, metavar="N", help="steps between validations (default: 100)")
        for name in names:
            add(f"--{name.replace('_', '-')}", type=int, metavar="N", help="size of the model")
        add("--out", metavar="FOLDER", default=None, help=f"default: burtorch-{model}")
        add("--resume", action="store_true", default=False, help="go on with the run in --out")
        add("--overwrite", action="store_true", default=False, help="forget the run in --out")
        add("--quiet", action="store_true", default=False, help="no progress bar")
    generate = commands.add_parser(
        "generate", help="text from a trained model", description="Write text with a trained model."
    )
    generate.add_argument(
        "folder",
        nargs="?",
        default="burtorch-gpt",
        help="of `burtorch train` (default: %(default)s)",
    )
    generate.add_argument("--length", type=int, default=500, metavar="N", help="characters")
    generate.add_argument("--seed", type=int, default=0)
    generate.add_argument("--prompt", default="", help="how the text starts")
    generate.add_argument("--temperature", type=float, default=1.0, help="below 1: more careful")


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
    demo = commands.add_parser(
        "demo", help="the paper's graphs, checked and timed, and its GPT for a minute"
    )
    demo.add_argument(
        "--picture",
        metavar="FILE",
        default="burtorch-tiny.svg",
        help="where to draw the tiny graph (default: %(default)s)",
    )
    demo.add_argument(
        "--seconds", type=float, default=60, help="how long to train the GPT (default: %(default)s)"
    )
    add_draw(commands)
    _add_training(commands)
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

        return run(options.picture, options.seconds)
    if options.command in ("train", "generate"):
        from . import train

        return (
            train.run_train(options) if options.command == "train" else train.run_generate(options)
        )
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
