# tests/test_setup.py — setup.py reads compiler versions right and gives up with one sentence
# SPDX-License-Identifier: MIT
from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import setup
from conftest import ROOT

GNU = "{}\nCopyright (C) 2022 Free Software Foundation, Inc.\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (GNU.format("g++ (Debian 12.2.0-14+deb12u1) 12.2.0"), ("g++", 12)),
        (GNU.format("g++-11 (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0"), ("g++", 11)),
        (GNU.format("g++ (GCC) 14.2.1 20240912 (Red Hat 14.2.1-3)"), ("g++", 14)),
        (GNU.format("c++ (SUSE Linux) 7.5.0"), ("g++", 7)),
        ("Debian clang version 16.0.6 (15~deb12u1)\nTarget: x86_64\n", ("clang++", 16)),
        ("Apple clang version 15.0.0 (clang-1500.3.9.4)\n", ("Apple clang++", 15)),
        ("", None),
        ("something else 12.0\n", None),
    ],
)
def test_compiler_version(text: str, expected: tuple[str, int] | None) -> None:
    assert setup.parse_compiler(text) == expected


def fake_compiler(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(f"#!/bin/sh\necho '{text}'\necho 'Free Software Foundation'\n")
    program.chmod(0o755)


def test_an_old_compiler_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    fake_compiler(tmp_path, "g++", "g++ (x) 11.3.0")
    assert setup.find_compiler() is None
    fake_compiler(tmp_path, "g++-12", "g++-12 (x) 12.1.0")
    found = setup.find_compiler()
    assert found is not None
    assert (Path(found.path).name, found.major) == ("g++-12", 12)


def checkout(folder: Path) -> Path:
    """Copy what setup.py reads, so that it has a .venv of its own to think about."""
    (folder / "scripts").mkdir(parents=True)
    shutil.copy(ROOT / "pyproject.toml", folder)
    return Path(shutil.copy(ROOT / "scripts" / "setup.py", folder / "scripts"))


def test_without_compiler_and_apt_it_says_one_sentence(tmp_path: Path) -> None:
    script = checkout(tmp_path / "copy")
    done = subprocess.run(
        [sys.executable, str(script)],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == (
        "setup: please install a C++20 compiler (g++ 12 or newer, or clang++ 16 or newer), "
        "because there is no apt-get on this machine.\n"
    )
    assert not (tmp_path / "copy" / ".venv").exists()


def test_without_rights_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_compiler(tmp_path, "apt-get", "never called")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(setup.SetupError, match="not root and may not use sudo") as caught:
        setup.need_compiler()
    assert str(caught.value).count(".") == 1


def test_optional_packages_never_stop_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    setup.offer(setup.Nicety("graphviz", "draws graphs", lambda: False, "pictures stay DOT text"))
    assert capsys.readouterr().out == (
        "setup: no graphviz (draws graphs), because there is no apt-get on this machine; "
        "pictures stay DOT text\n"
    )


def test_requirements_come_from_pyproject() -> None:
    assert "ninja" in setup.requirements("test")
    assert any(item.startswith("ruff") for item in setup.requirements("dev"))
    with pytest.raises(setup.SetupError, match="no extra called nonsense"):
        setup.requirements("nonsense")


def test_a_second_run_does_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    checkout(tmp_path)
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").touch()
    monkeypatch.setattr(setup, "ROOT", tmp_path)
    monkeypatch.setattr(setup, "VENV", tmp_path / ".venv")
    stamps = {"test": setup.stamp_of("test")}
    (tmp_path / ".venv" / "burtorch-test.stamp").write_text(stamps["test"])
    begin = time.monotonic()
    setup.prepare(stamps, with_clang=False)
    assert time.monotonic() - begin < 1.0
    assert capsys.readouterr().out == ""
    with (tmp_path / "pyproject.toml").open("a") as file:
        file.write("\n# changed\n")
    assert setup.stamp_of("test") != stamps["test"]
