# tests/test_cli.py — python -m burtorch, from an installed wheel and from the source tree
# SPDX-License-Identifier: MIT
from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import LISTING, LISTING_PRINTS, ROOT, Run

VERSION = ".".join(
    re.findall(
        r"#define BURTORCH_VERSION_\w+\s+(\d+)",
        (ROOT / "include" / "burtorch" / "config.hpp").read_text(encoding="utf-8"),
    )
)


@pytest.fixture(scope="module")
def site() -> Path:
    """The folder in which pip has installed the package."""
    spec = importlib.util.find_spec("burtorch")
    if spec is None or spec.origin is None:
        pytest.fail("the package is not installed; `make test` does that, or `pip install .`")
    return Path(spec.origin).parents[1]


def burtorch(run: Run, site: Path, *arguments: str, cwd: Path) -> str:
    command = [sys.executable, "-m", "burtorch", *arguments]
    return run(command, cwd=cwd, PYTHONPATH=str(site)).strip()


def test_version(run: Run, site: Path, tmp_path: Path) -> None:
    assert burtorch(run, site, "--version", cwd=tmp_path) == VERSION


def test_includes_compile_the_listing(run: Run, site: Path, compiler: str, tmp_path: Path) -> None:
    include = burtorch(run, site, "--includes", cwd=tmp_path)
    assert Path(include).is_relative_to(site)
    run([compiler, "-std=c++20", f"-I{include}", LISTING, "-o", tmp_path / "listing"])
    assert run([tmp_path / "listing"]) == LISTING_PRINTS


def test_cmakedir_is_found_by_find_package(
    run: Run, site: Path, cmake: str, compiler: str, generator: list[str], tmp_path: Path
) -> None:
    folder = burtorch(run, site, "--cmakedir", cwd=tmp_path)
    options = [*generator, f"-Dburtorch_DIR={folder}", f"-DCMAKE_CXX_COMPILER={compiler}"]
    run([cmake, "-S", ROOT / "cpp_tests" / "consumer", "-B", tmp_path / "build", *options])


def test_help_names_every_option(run: Run, site: Path, tmp_path: Path) -> None:
    text = burtorch(run, site, "--help", cwd=tmp_path)
    assert text == burtorch(run, site, cwd=tmp_path)
    for option in ("--version", "--includes", "--cmakedir"):
        assert option in text


def test_info_says_what_was_chosen(run: Run, site: Path, tmp_path: Path) -> None:
    text = burtorch(run, site, "info", cwd=tmp_path)
    assert f"burtorch {VERSION}" in text
    assert "instruction set: " in text


def test_demo_checks_its_gradients(run: Run, site: Path, tmp_path: Path) -> None:
    text = burtorch(run, site, "demo", cwd=tmp_path)
    assert text.count("right") == 2
    assert "WRONG" not in text


def test_the_instruction_set_can_be_chosen(run: Run, site: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "burtorch", "info"]
    text = run(command, cwd=tmp_path, PYTHONPATH=str(site), BURTORCH_ISA="baseline")
    assert "instruction set: baseline" in text


def test_an_unknown_instruction_set_is_refused(site: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import burtorch"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(site), "BURTORCH_ISA": "z80"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "BURTORCH_ISA=z80: there is no such build" in done.stderr


def test_source_tree(run: Run, tmp_path: Path) -> None:
    source = ROOT / "python"
    assert burtorch(run, source, "--version", cwd=tmp_path) == VERSION
    assert Path(burtorch(run, source, "--includes", cwd=tmp_path)) == ROOT / "include"


def test_source_tree_has_no_cmake_package(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "burtorch", "--cmakedir"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "burtorchConfig.cmake" in done.stderr
