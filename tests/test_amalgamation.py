# tests/test_amalgamation.py — the one-file header is self-contained, warning-free and reproducible
# SPDX-License-Identifier: MIT
from __future__ import annotations

import sys
from pathlib import Path

import pytest
from conftest import LISTING, LISTING_PRINTS, ROOT, WARNINGS, Run


def amalgamate(run: Run, output: Path) -> bytes:
    run([sys.executable, ROOT / "scripts" / "amalgamate.py", "--output", output])
    return output.read_bytes()


@pytest.mark.parametrize("which", ["compiler", "clang"])
def test_the_listing_compiles_with_it(
    which: str, run: Run, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    compiler = request.getfixturevalue(which)
    amalgamate(run, tmp_path / "burtorch.h")
    # The listing is copied, so that the only burtorch.h in sight is the one beside it.
    source = tmp_path / "listing.cpp"
    source.write_bytes(LISTING.read_bytes())
    run([compiler, "-std=c++20", *WARNINGS, source, "-o", tmp_path / "listing"], cwd=tmp_path)
    assert run([tmp_path / "listing"]) == LISTING_PRINTS


def test_a_second_run_gives_the_same_bytes(run: Run, tmp_path: Path) -> None:
    assert amalgamate(run, tmp_path / "one.h") == amalgamate(run, tmp_path / "two.h")


def test_no_burtorch_header_is_still_included(run: Run, tmp_path: Path) -> None:
    text = amalgamate(run, tmp_path / "burtorch.h").decode()
    included = [line for line in text.splitlines() if line.lstrip().startswith("#include")]
    assert not [line for line in included if "burtorch" in line or '"' in line]
    assert text.count("#pragma once") == 1
