# tests/test_stubs.py — the stubs say what the compiled module offers, and nothing else
# SPDX-License-Identifier: MIT
from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import burtorch as bt
import make_table
import pytest
from conftest import ROOT, Run

SOURCE = ROOT / "python" / "burtorch"

# What mypy.stubtest finds in every pybind11 class, lists that only exist while running, what is optional.
EXPECTED = [
    "is inconsistent, metaclass differs",
    '.__init__ is inconsistent, stub does not have *args parameter "args"',
    ".__all__ is not present in stub",
    "No module named 'torch'",
]


def test_the_stubs_differ_from_the_module_only_where_a_mistake_is_made(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="mypy is not installed; `make venv` does that")
    shutil.copytree(SOURCE, tmp_path / "stubs" / "burtorch")
    core = tmp_path / "stubs" / "burtorch" / "_core.pyi"
    text = core.read_text(encoding="utf-8")
    core.write_text(
        text.replace("    def tanh(self)", "    def tangens(self)").replace(
            "def add_squares(", "def squares("
        ),
        encoding="utf-8",
    )
    # burtorch.interop.torch is left out: its classes get their methods from PyTorch, if that is there.
    absent = tmp_path / "absent"
    absent.mkdir()
    (absent / "torch.py").write_text("raise ImportError(\"No module named 'torch'\")\n")
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\n[mypy-torch.*]\nfollow_imports = skip\n")
    command = [sys.executable, "-m", "mypy.stubtest", f"--mypy-config-file={config}"]
    done = subprocess.run(
        [*command, "--concise", "burtorch"],
        cwd=tmp_path,
        env={"MYPYPATH": str(tmp_path / "stubs"), "PYTHONPATH": str(absent)},
        capture_output=True,
        text=True,
        check=False,
    )
    found = [line for line in done.stdout.splitlines() if not line.endswith(tuple(EXPECTED))]
    assert sorted(found) == [
        "burtorch._core.Value.tangens is not present at runtime",
        "burtorch._core.Value.tanh is not present in stub",
        "burtorch._core.View.tangens is not present at runtime",
        "burtorch._core.View.tanh is not present in stub",
        "burtorch._core.add_squares is not present in stub",
        "burtorch._core.squares is not present at runtime",
        "burtorch.add_squares is not present in stub",
    ], done.stderr


def test_the_public_names_of_the_package() -> None:
    for name in vars(bt)["__all__"]:
        assert hasattr(bt, name)
    code = "import burtorch, sys; print(*dir(burtorch)); assert 'burtorch.viz' not in sys.modules"
    listed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert set(listed.stdout.split()) >= {*vars(bt)["__all__"], "nn", "optim", "viz"}
    assert vars(bt)["__all__"][-3:] == ["nn", "optim", "viz"]


def test_an_import_waits_only_for_what_every_program_needs(run: Run) -> None:
    heavy = {
        "ctypes.util",
        "hashlib",
        "importlib.metadata",
        "numpy.random",
        "subprocess",
        "tempfile",
    }
    code = "import numpy, sys; before = set(sys.modules); import burtorch; "
    code += "print(*(set(sys.modules) - before))"
    assert heavy & set(run([sys.executable, "-c", code]).split()) == set()


def test_what_repeats_the_table_of_operations_is_up_to_date() -> None:
    operations = make_table.table()
    for file in make_table.FILES:
        text = file.read_text(encoding="utf-8")
        assert text == make_table.updated(text, operations), "run python3 scripts/make_table.py"
        more = make_table.Operation("unary", "cubeRoot", "CubeRoot", "cbrt", "∛x")
        after = make_table.updated(text, [*operations, more])
        assert after.count("cube_root") == (1 if file.suffix == ".md" else 6), file
    for operation in operations:
        if operation.kind == "block":
            continue
        help_text = getattr(bt, operation.name).__doc__
        assert help_text.startswith(f"{operation.meaning}; of "), operation.name


def test_blocks_say_what_they_mean() -> None:
    blocks = [o for o in make_table.table() if o.kind == "block"]
    assert {"softmax", "affine", "layer_norm"} <= {block.name for block in blocks}
    for block in blocks:
        if function := getattr(bt, block.name, None):
            meaning = block.meaning[0].upper() + block.meaning[1:]
            assert f"{meaning}." in function.__doc__, block.name
        row = f"| `{block.function}` | {block.meaning} |"
        assert row in (make_table.ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
