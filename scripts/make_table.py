# scripts/make_table.py — writes what repeats the table of operations: types for Python, documentation
# SPDX-License-Identifier: MIT
"""Bring the parts of the stub and of the documentation that follow from op/table.hpp up to date.

The blocks of block/blocks.hpp that have a meaning are in the documentation, too.

python3 scripts/make_table.py            write them into python/burtorch/_core.pyi and docs/operations.md
python3 scripts/make_table.py --check    write nothing; fail if a file is stale

A part stands between a line with "table: NAME" and a line with "end of the table".
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

import setup

ROOT = Path(__file__).resolve().parents[1]
FILES = [ROOT / "python" / "burtorch" / "_core.pyi", ROOT / "docs" / "operations.md"]
PART = re.compile(
    r"^(?P<open> *(?:#|<!--) table: (?P<name>\w+).*\n)(.*\n)*?(?P<close>.*end of the table)", re.M
)

PROGRAM = r"""
#include <burtorch/block/blocks.hpp>
#include <burtorch/op/table.hpp>
#include <cstdio>
#define ROW(Name, function) \
  std::printf("%s\t%s\t%s\t%s\t%s\n", kind, #function, #Name, op::Name::symbol, op::Name::meaning);
#define PRODUCT(Name, function) kind = op::Name::hasBias ? "biased" : "product"; ROW(Name, function)
template <class B> void printBlock() {
  if constexpr (requires { B::meaning; })
    std::printf("block\t%s\t\t%s\t%s\n", B::name, B::symbol, B::meaning);
}
template <class... B> void printBlocks(burtorch::block::List<B...>) { (printBlock<B>(), ...); }
int main() {
  namespace op = burtorch::op;
  const char* kind = "unary";
  BURTORCH_UNARY_OPERATIONS(ROW)
  kind = "binary";
  BURTORCH_BINARY_OPERATIONS(ROW)
  kind = "clipped";
  BURTORCH_CLIPPED_OPERATIONS(ROW)
  kind = "reduction";
  BURTORCH_REDUCTIONS(ROW)
  BURTORCH_PRODUCTS(PRODUCT)
  printBlocks(burtorch::block::All());
}
"""

# The types of a function NAME by its kind.
ONE = [("x: Value", "Value"), ("x: View", "View"), ("x: _Number", "float"), ("x: _Array", "_Array")]
SIGNATURES = {
    "unary": [(f"{x}, /", y) for x, y in ONE],
    "binary": [
        ("x: Value, y: Value | _Number, /", "Value"),
        ("x: _Number, y: Value, /", "Value"),
        ("x: View, y: _Beside, /", "View"),
        ("x: Value | _Number | NDArray[Any], y: View, /", "View"),
        ("x: _Number, y: _Number, /", "float"),
        ("x: _Array, y: Value | _Number | NDArray[Any], /", "_Array"),
        ("x: Value | _Number | NDArray[Any], y: _Array, /", "_Array"),
    ],
    "clipped": [(f"{x}, lo: _Number, hi: _Number, /", y) for x, y in ONE],
    "reduction": [("values: Iterable[Value], /", "Value"), ("*values: Value", "Value")],
    "product": [("x: Iterable[Value], y: Iterable[Value], /", "Value")],
    "biased": [("x: Iterable[Value], y: Iterable[Value], bias: Value, /", "Value")],
}
OPERANDS = {
    "unary": "x",
    "binary": "x, y",
    "clipped": "x, lo, hi",
    "reduction": "x₁, …, xₙ",
    "product": "x₁, …, xₙ, y₁, …, yₙ",
    "biased": "x₁, …, xₙ, y₁, …, yₙ, bias",
}


class Operation(NamedTuple):
    kind: str
    function: str  # in C++
    struct: str
    symbol: str
    meaning: str

    @property
    def name(self) -> str:  # in Python; snakeCase of the bindings
        name = re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", self.function)
        return {"logarithm": "log"}.get(name, name)


def table() -> list[Operation]:
    """Compile a program that prints the table, and read it."""
    compiler = setup.find_compiler()
    if compiler is None:
        raise SystemExit(f"make_table needs {setup.WANTED}")
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "table.cpp", Path(folder) / "table"
        source.write_text(PROGRAM, encoding="utf-8")
        include = f"-I{ROOT / 'include'}"
        subprocess.run([compiler.path, "-std=c++20", include, source, "-o", program], check=True)
        printed = subprocess.run([program], stdout=subprocess.PIPE, encoding="utf-8", check=True)
    return [Operation(*line.split("\t")) for line in printed.stdout.splitlines()]


def functions(operations: list[Operation]) -> list[str]:
    lines = []
    for operation in operations:
        if operation.kind == "block":
            continue
        signatures = SIGNATURES[operation.kind]
        for parameters, result in signatures:
            lines += ["@overload"] if len(signatures) > 1 else []
            lines.append(f"def {operation.name}({parameters}) -> {result}: ...")
    return [*lines, ""]


def methods(operations: list[Operation], result: str) -> list[str]:
    unary = [operation.name for operation in operations if operation.kind == "unary"]
    return [f"    def {name}(self) -> {result}: ..." for name in unary]


def rows(operations: list[Operation]) -> list[str]:
    lines = ["", "| C++ | Python | of | meaning | enumerator | in pictures |", "|" + "---|" * 6]
    for o in operations:
        if o.kind == "block":
            continue
        names = f"`{o.function}` | `{o.name}` | {OPERANDS[o.kind]}"
        meaning = o.meaning.replace("|", "\\|")
        lines.append(f"| {names} | {meaning} | `e{o.struct}` | `{o.symbol}` |")
    return [*lines, ""]


def blocks(operations: list[Operation]) -> list[str]:
    lines = ["", "| C++ | meaning | in pictures |", "|---|---|---|"]
    for o in operations:
        if o.kind == "block":
            lines.append(f"| `{o.function}` | {o.meaning} | `{o.symbol}` |")
    return [*lines, ""]


def updated(text: str, operations: list[Operation]) -> str:
    """The text with its parts as the table has them."""

    def part(found: re.Match[str]) -> str:
        name = found["name"]
        lines = (
            functions(operations)
            if name == "functions"
            else rows(operations)
            if name == "rows"
            else blocks(operations)
            if name == "blocks"
            else methods(operations, name)
        )
        return found["open"] + "\n".join([*lines, found["close"]])

    return PART.sub(part, text)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if a file is stale"
    )
    check = parser.parse_args(arguments).check
    operations = table()
    for file in FILES:
        before = file.read_text(encoding="utf-8")
        after = updated(before, operations)
        if check and after != before:
            raise SystemExit(
                f"{file.relative_to(ROOT)} is stale: run python3 scripts/make_table.py"
            )
        if after != before:
            file.write_text(after, encoding="utf-8")
            print(f"wrote {file.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
