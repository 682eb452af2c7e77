# tests/test_amalgamation.py — the one-file header is self-contained, warning-free and reproducible
# SPDX-License-Identifier: MIT
from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from conftest import LISTING, LISTING_PRINTS, ROOT, WARNINGS, Run


def amalgamate(run: Run, output: Path, *options: str) -> bytes:
    run([sys.executable, ROOT / "scripts" / "amalgamate.py", "--output", output, *options])
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


EVERYTHING = """#include "burtorch.h"
#include <array>
#include <cstdio>
#include <vector>

int main() {
  nn::Oracle<nn::CharMLP<double>> oracle({.hidden = 4, .vocab = 5, .embed = 2, .context = 2});
  optim::Adam<double> optimizer;
  const std::vector<int> x{0, 1, 2, 3}, y{4, 0};
  const double before = oracle.lossAndGradient(x, y);
  optimizer.step(oracle.values(), oracle.gradients());
  const bool better = oracle.loss(x, y) < before;
  using Square = Program<[](auto a) { return a * a; }, 1>;
  Tape<float16> halves;
  const auto file = saveGraph(oracle.model().tape());
  const bool right = Square::value(std::array{3.0}) == 9 && halves.size() == 0 && file.size() > 0;
  std::puts(better && right ? "all" : "no");
}
"""


def test_all_of_it_is_in_one_file_when_asked(run: Run, tmp_path: Path, compiler: str) -> None:
    text = amalgamate(run, tmp_path / "burtorch.h", "--all").decode()
    for header in (ROOT / "include").rglob("*.hpp"):
        purpose = header.read_text(encoding="utf-8").splitlines()[0]
        assert text.count(f"\n{purpose}\n") == 1
    source = tmp_path / "everything.cpp"
    source.write_text(EVERYTHING, encoding="utf-8")
    program = tmp_path / "everything"
    run([compiler, "-std=c++20", *WARNINGS, source, "-o", program, "-pthread"], cwd=tmp_path)
    assert run([program]) == "all\n"


def test_the_table_of_contents_names_what_there_is() -> None:
    text = (ROOT / "include" / "burtorch" / "burtorch.hpp").read_text(encoding="utf-8")
    listed = re.findall(r"^//   (\S+\.hpp)", text, re.MULTILINE)
    assert listed
    assert not [name for name in listed if not (ROOT / "include" / "burtorch" / name).is_file()]
    top = {
        path.name
        for path in (ROOT / "include" / "burtorch").glob("*.hpp")
        if " — now " not in path.read_text(encoding="utf-8").split("\n", 1)[0]  # it moved
    }
    included = set(re.findall(r"<burtorch/(\w+\.hpp)>", text))
    assert top - included - set(listed) == {"burtorch.hpp"}


def test_a_second_run_gives_the_same_bytes(run: Run, tmp_path: Path) -> None:
    assert amalgamate(run, tmp_path / "one.h") == amalgamate(run, tmp_path / "two.h")


def test_no_burtorch_header_is_still_included(run: Run, tmp_path: Path) -> None:
    text = amalgamate(run, tmp_path / "burtorch.h").decode()
    included = [line for line in text.splitlines() if line.lstrip().startswith("#include")]
    assert not [line for line in included if "burtorch" in line or '"' in line]
    assert text.count("#pragma once") == 1
