# python/burtorch/__main__.py — the command line: python -m burtorch
# SPDX-License-Identifier: MIT
"""Command line of burtorch."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

import burtorch

from . import __version__, get_cmake_dir, get_include
from ._draw import add_parser as add_draw
from ._draw import run as run_draw

EXAMPLES = """
in Python:
  import burtorch as bt
  a, b = bt.Value(-41.0), bt.Value(2.0)
  g = (a + b - (a * b + b**3)) ** 2 / 2
  g.backward()                                  a.grad is -35.0, b.grad is 1050.0
  bt.grad(lambda x: (x * x).sum())([1.0, 2.0])  array([2., 4.])
  bt.compile(f).minimize([0.0, 3.0])            recorded once, run again as machine code

on the command line:
  burtorch demo                                 gradients, pictures, and a GPT that learns
  burtorch draw model.py:loss 1.5 -2            the graph of a function, to loss.svg
  burtorch train gpt --data book.txt            any text in UTF-8; Ctrl-C saves
  burtorch train gpt --resume --steps 9000      goes on bit for bit
  burtorch generate burtorch-gpt                text from what was learnt

in C++:
  c++ -std=c++20 -I$(python -m burtorch --includes) main.cpp
  cmake -Dburtorch_DIR=$(python -m burtorch --cmakedir) -B build

The best instruction set that this processor can run is chosen when the package is imported;
BURTORCH_ISA=baseline (avx2, avx512) in the environment chooses another. `burtorch info` says which.
"""

# Sizes of the models: what each is, and what it is unless one says so.
SIZES = {
    "mlp": {
        "hidden": ("units of the hidden layer", 64),
        "embed": ("numbers that stand for a character", 64),
        "context": ("characters seen at a time", 16),
    },
    "gpt": {
        "context": ("characters seen at a time", 8),
        "d_model": ("numbers that stand for a character", 24),
        "layers": ("blocks of attention and feed-forward", 6),
        "heads": ("heads of attention in a block, which share d-model", 6),
    },
}


def _add_training(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    train = commands.add_parser(
        "train",
        help="train a model of text",
        description="Train a model on a text, with checkpoints; Ctrl-C saves and stops.",
    )
    models = train.add_subparsers(dest="model", metavar="mlp|gpt", required=True)
    meanings = {"mlp": "the next character of words, one per line", "gpt": "a small transformer"}
    for model, sizes in SIZES.items():
        parser = models.add_parser(
            model,
            help=meanings[model],
            argument_default=argparse.SUPPRESS,
        )
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
        for name, (meaning, usual) in sizes.items():
            option = f"--{name.replace('_', '-')}"
            add(option, type=int, metavar="N", help=f"{meaning} (default: {usual})")
        add("--out", metavar="FOLDER", default=None, help=f"default: burtorch-{model}")
        earlier = parser.add_mutually_exclusive_group()
        for option, meaning in (("--resume", "go on with"), ("--overwrite", "forget")):
            earlier.add_argument(
                option, action="store_true", default=False, help=f"{meaning} the run in --out"
            )
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
    add = generate.add_argument
    add("--length", type=int, default=500, metavar="N", help="characters (default: %(default)s)")
    add("--seed", type=int, default=0, help="another one, another text (default: %(default)s)")
    add("--prompt", default="", help="how the text starts")
    add("--temperature", type=float, default=1.0, help="below 1: more careful (default: 1)")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="burtorch",
        description="Gradients of scalar programs, fast.",
        epilog=EXAMPLES,
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
    commands.add_parser("info", help="version, instruction sets, compiler")
    return parser


def _info() -> int:
    import platform

    from . import _core, _cpu

    print(f"burtorch {__version__}")
    print(f"instruction set: {_core._isa} (this processor can run {', '.join(_cpu.supported())})")
    print(f"builds: {', '.join(_core._builds())}")
    print(f"compiler: {_core._compiler}")
    print(f"Python: {platform.python_version()}, headers: {get_include()}")
    return 0


def _complain(error: object) -> int:
    print(f"burtorch: {error}", file=sys.stderr)
    return 1


def _run_command(options: argparse.Namespace) -> int:
    if wrong := getattr(burtorch, "_missing", None):
        return _complain(wrong)
    if options.command == "info":
        return _info()
    if options.command == "demo":
        from ._demo import run

        return run(options.picture, options.seconds)
    if options.command == "draw":
        return run_draw(options)
    from . import train

    try:
        return (
            train.run_train(options) if options.command == "train" else train.run_generate(options)
        )
    except train.TrainingError as error:
        return _complain(error)


def _run(arguments: Sequence[str] | None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command:
        return _run_command(options)
    if not (options.includes or options.cmakedir):
        parser.print_help()
        return 0
    try:
        if options.includes:
            print(get_include())
        if options.cmakedir:
            print(get_cmake_dir())
    except FileNotFoundError as error:
        return _complain(error)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    try:
        try:
            return _run(arguments)
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        _complain("interrupted")
        return 130
    except BrokenPipeError:
        # Python will flush what is left when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _complain("nobody reads what is printed")


if __name__ == "__main__":
    sys.exit(main())
