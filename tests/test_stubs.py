# tests/test_stubs.py — the stubs name everything that the compiled module offers, and nothing else
# SPDX-License-Identifier: MIT
from __future__ import annotations

import ast

import burtorch as bt
from burtorch import _core
from conftest import ROOT

STUB = ast.parse((ROOT / "python" / "burtorch" / "_core.pyi").read_text(encoding="utf-8"))


def names(body: list[ast.stmt]) -> set[str]:
    found: set[str] = set()
    for item in body:
        if isinstance(item, (ast.FunctionDef, ast.ClassDef)):
            found.add(item.name)
        elif isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            found.add(item.target.id)
    return found


def test_functions_and_classes() -> None:
    assert names(STUB.body) - {"isa", "compiler", "__all__", "_viz"} == set(_core.__all__)


def test_attributes_of_value_and_tape() -> None:
    classes = {item.name: item for item in STUB.body if isinstance(item, ast.ClassDef)}
    for name in ("Value", "Tape", "Scratch", "_viz"):
        offered = {a for a in dir(getattr(_core, name)) if not a.startswith("_")}
        stubbed = {a for a in names(classes[name].body) if not a.startswith("_")}
        assert offered == stubbed


def test_the_public_names_of_the_package() -> None:
    for name in bt.__all__:
        assert hasattr(bt, name)
