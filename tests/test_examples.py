# tests/test_examples.py — the Python examples print what is stored, and the installed stubs check them
# SPDX-License-Identifier: MIT
from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, Run

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PRINTED = ROOT / "tests" / "data" / "examples"

# Uses that a type checker must refuse.
MISUSES = [
    'bt.Value("1")',
    "bt.Value()",
    'x.data = "1"',
    "x.index = 3",
    "x.nonsense",
    'x + "1"',
    "x // 2",
    "number: float = x * 2",
    "text: str = bt.exp(1.0)",
    'bt.exp("1")',
    "bt.reduce_sum([1.0, 2.0])",
    "bt.clamp(x, 0.0)",
    'bt.Tape(capacity="big")',
    "bt.Tape().rewind(0)",
    "bt.value_and_grad(3)",
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_prints_what_is_stored(example: Path, run: Run, tmp_path: Path) -> None:
    text = example.read_text(encoding="utf-8")
    for package in ("scipy", "jax"):
        if f"import {package}" in text or f"from {package}" in text:
            pytest.importorskip(package, reason=f"{package} is not installed")
    expected = (PRINTED / f"{example.stem}.txt").read_text(encoding="utf-8")
    assert run([sys.executable, example], cwd=tmp_path) == expected


def check_types(folder: Path, *programs: Path) -> tuple[int, str]:
    """Check against the package as it is installed, with nothing that this repository configures."""
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed; `make venv` does that")
    config = folder / "mypy.ini"
    passed_over = "ignore_missing_imports = True\nfollow_imports = skip\n"  # installed or not
    optional = "".join(f"[mypy-{p}.*]\n{passed_over}" for p in ("scipy", "jax"))
    config.write_text(f"[mypy]\nstrict = True\n{optional}")
    command = [sys.executable, "-m", "mypy", "--no-error-summary", f"--config-file={config}"]
    command += [f"--cache-dir={folder / 'cache'}", *map(str, programs)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_types_right_and_wrong(tmp_path: Path) -> None:
    assert check_types(tmp_path, *EXAMPLES) == (0, "")

    # One line each after the import and x, so that line n + 3 is misuse n.
    wrong = tmp_path / "wrong.py"
    wrong.write_text("\n".join(["import burtorch as bt", "x = bt.Value(1.0)", *MISUSES]) + "\n")
    status, report = check_types(tmp_path, wrong)
    assert status == 1
    refused = {int(line.split(":")[1]) - 3 for line in report.splitlines() if ": error: " in line}
    assert [use for n, use in enumerate(MISUSES) if n not in refused] == []
