# tests/test_fuzz.py — the fuzzers are built, and run for a moment from what is kept for them
# SPDX-License-Identifier: MIT
from __future__ import annotations

import importlib.util
import sys

import pytest
import setup
from conftest import ROOT, Run

CORPUS = ROOT / "cpp_tests" / "fuzz" / "corpus"


def fuzz(run: Run, *names: str) -> None:
    said = run(
        [sys.executable, ROOT / "scripts" / "fuzz.py", "--seconds", "2", "--seed", "1", *names]
    )
    for name in names:
        assert f"{name}: fine" in said
        assert len([*(CORPUS / name).iterdir()]) > 1


def test_the_loaders_withstand_the_fuzzer(run: Run) -> None:
    if not setup.has_fuzzer():
        pytest.skip("no clang with libFuzzer; `python3 scripts/setup.py --clang` installs one")
    fuzz(run, "graph", "range")


def test_checkpoints_withstand_the_fuzzer(run: Run) -> None:
    if importlib.util.find_spec("atheris") is None:
        pytest.skip("no atheris; `make fuzz` installs it where there is a wheel of it")
    fuzz(run, "checkpoint")
