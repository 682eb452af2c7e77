# tests/test_cli.py — python -m burtorch, as installed and from the source tree; test_packaging.py has the rest
# SPDX-License-Identifier: MIT
from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, Run

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


def test_a_processor_that_can_run_no_build_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from burtorch import _core, _cpu

    monkeypatch.delenv("BURTORCH_ISA", raising=False)
    monkeypatch.setattr(_cpu, "supported", list)
    with pytest.raises(ImportError, match=r"can run none of burtorch's builds: .*baseline"):
        vars(_core)["_choose"]()


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
