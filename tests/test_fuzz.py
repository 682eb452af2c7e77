# tests/test_fuzz.py — the fuzzers are built, and run for a moment from what is kept for them
# SPDX-License-Identifier: MIT
from __future__ import annotations

import sys

import pytest
import setup
from conftest import ROOT, Run


def test_the_loaders_withstand_the_fuzzer(run: Run) -> None:
    if not setup.has_fuzzer():
        pytest.skip("no clang with libFuzzer; `python3 scripts/setup.py --clang` installs one")
    said = run([sys.executable, ROOT / "scripts" / "fuzz.py", "--seconds", "2"])
    for name in ("graph", "range"):
        assert f"{name}: fine" in said
        assert list((ROOT / "cpp_tests" / "fuzz" / "corpus" / name).iterdir())
