# python/burtorch/_draw.py — `burtorch draw`: calls a function with Values and draws what it did
# SPDX-License-Identifier: MIT
"""The graph of a function in a file, with its values and gradients."""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Callable

if TYPE_CHECKING:
    from ._core import Value

EXAMPLES = """
FILE.py:function is called with one Value for each of its parameters; what it returns is the root
of the graph. Its gradients are computed, and the graph is drawn with all values in it.

examples:
  burtorch draw model.py:loss                      with the function's defaults, to loss.svg
  burtorch draw model.py:loss 1.5 -2               numbers in the order of the parameters
  burtorch draw model.py:loss b=-2 --out loss.png  or by name; .svg .png .pdf .dot …
  burtorch draw model.py:loss --html loss.html     a page to click through
  burtorch draw model.py:loss --depth 3            only what is near the root
  burtorch draw model.py:loss --derivatives        the derivative of each step at its edge

where model.py holds
  def loss(a=1.0, b=2.0):
      return (a * b - 3) ** 2
"""


class UsageError(Exception):
    """A mistake on the command line; the message says what to do about it."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "draw",
        help="a picture of the graph of a function",
        description="Draw the graph of a function.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_arguments(parser)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    # Numbers that argparse would take for options: older versions know no exponents.
    parser._negative_number_matcher = re.compile(r"-((\d+\.?\d*|\.\d+)(e[-+]?\d+)?|inf)$", re.I)
    parser.add_argument("function", metavar="FILE.py:function", help="what to call")
    parser.add_argument(
        "numbers", nargs="*", metavar="NUMBER", help="its arguments: 1.5 or name=1.5"
    )
    parser.add_argument("--out", metavar="FILE", help="where to draw (default: function.svg)")
    parser.add_argument("--html", metavar="FILE", help="an interactive page, instead or as well")
    parser.add_argument("--title", help="a title (default: the function's name)")
    parser.add_argument("--depth", type=int, help="at most so many operations from the root")
    parser.add_argument("--max-nodes", type=int, help="at most so many nodes")
    parser.add_argument("--direction", choices=["LR", "TB"], default="LR", help="default: LR")
    parser.add_argument("--derivatives", action="store_true", help="write derivatives at the edges")


def run(options: argparse.Namespace) -> int:
    try:
        limits = {key: limit(options, key) for key in ("depth", "max_nodes")}
        root, name = call(options.function, options.numbers)
    except UsageError as error:
        print(f"burtorch draw: {error}", file=sys.stderr)
        return 2
    try:
        return draw(options, root, name, limits)
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        print(f"burtorch draw: {error}", file=sys.stderr)
        return 1


def limit(options: argparse.Namespace, key: str) -> int | None:
    number: int | None = getattr(options, key)
    if number is not None and number < 0:
        raise UsageError(f"--{key.replace('_', '-')} can't be negative: {number}")
    return None if number is None else min(number, 2**31)  # which is as good as none


def draw(options: argparse.Namespace, root: Value, name: str, limits: dict[str, int | None]) -> int:
    from . import viz

    title = name if options.title is None else options.title
    fields = [*viz.FIELDS, *(["derivatives"] if options.derivatives else [])]
    picture = Path(options.out or f"{name}.svg")
    try:
        if options.html:
            viz.save_html(root, options.html, title, **limits)
            print(f"{options.html}: {name} = {root.data:g}")
            if not options.out:
                return 0
        path = viz.save(root, picture, title, direction=options.direction, fields=fields, **limits)
    except viz.DrawingError as error:
        text = (picture if picture.name else Path(name)).with_suffix(".dot")
        text.write_text(error.text, encoding="utf-8")
        print(f"burtorch draw: {error}\nThe DOT text is in {text}", file=sys.stderr)
        return 1
    print(f"{path}: {name} = {root.data:g}")
    return 0


def call(where: str, numbers: Sequence[str]) -> tuple[Value, str]:
    """Call the function with Values, and return its root, with gradients, and its name."""
    from ._core import Value

    function, name = load(where)
    bound = inspect.signature(function).bind_partial()
    for key, number in arguments_of(function, name, numbers).items():
        bound.arguments[key] = Value(number, key)
    root = function(*bound.args, **bound.kwargs)
    if not isinstance(root, Value):
        raise UsageError(
            f"{name} returned {type(root).__name__}, not a Value: its root is not a result of "
            "operations on its arguments"
        )
    if root.name is None:
        root.name = name
    root.backward()
    return root, name


def load(where: str) -> tuple[Callable[..., Any], str]:
    file, colon, name = where.rpartition(":")
    if not colon or not name:
        raise UsageError(f"'{where}' names no function; write FILE.py:function")
    path = Path(file)
    if not path.is_file():
        raise UsageError(f"there is no file {file}")
    spec = importlib.util.spec_from_file_location(f"burtorch_draw_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # as an import would: dataclasses, for one, look it up there
    sys.path.insert(0, str(path.resolve().parent))  # and it may import what lies beside it
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        raise UsageError(f"{file} has no function {name}; it has {functions_of(module)}")
    return function, name


def functions_of(module: ModuleType) -> str:
    found = {key: f for key, f in vars(module).items() if inspect.isfunction(f)}
    return ", ".join(key for key, f in found.items() if f.__module__ == module.__name__) or "none"


def arguments_of(
    function: Callable[..., Any], name: str, numbers: Sequence[str]
) -> dict[str, float]:
    """Return a number for each parameter: by position, by name, or its default."""
    parameters = inspect.signature(function).parameters
    known = [
        key for key, p in parameters.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    usage = f"{name}({', '.join(known)})"
    given: dict[str, float] = {}
    unnamed = iter(known)
    for text in numbers:
        key, equals, number = text.rpartition("=")
        if not equals:
            found = next((key for key in unnamed if key not in given), None)
            if found is None:
                raise UsageError(f"{usage} takes {len(known)} numbers, not {len(numbers)}")
            key = found
        if key not in known:
            raise UsageError(f"{usage} has no parameter {key}")
        try:
            given[key] = float(number)
        except ValueError:
            raise UsageError(f"'{number}' for {key} is not a number") from None
    for key in known:
        default = given.get(key, parameters[key].default)
        if not isinstance(default, (int, float)):
            raise UsageError(f"{usage} needs a number for {key}; for example {key}=1.5")
        given[key] = float(default)
    return {key: given[key] for key in known}
