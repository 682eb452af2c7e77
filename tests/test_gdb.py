# tests/test_gdb.py — what a debugger shows and calls at a breakpoint; the natvis file
# SPDX-License-Identifier: MIT
from __future__ import annotations

import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from conftest import ROOT, Run

PRINTERS = ROOT / "share" / "burtorch" / "gdb" / "burtorch_gdb.py"
NATVIS = ROOT / "share" / "burtorch" / "burtorch.natvis"


def gdb_says(program: Path, commands: list[str]) -> list[str]:
    """Run commands at the breakpoint and return what each of them printed after its `$n = `."""
    gdb = shutil.which("gdb")
    if gdb is None:
        pytest.skip("no gdb; `python3 scripts/setup.py` installs it on Debian and Ubuntu")
    setup = ["set width 0", "set confirm off", "set startup-with-shell off"]
    setup += [f"source {PRINTERS}", "break stop", "run", "up"]
    words = [word for command in setup + commands for word in ("-ex", command)]
    done = subprocess.run(
        [gdb, "-q", "-nx", "-batch", *words, program],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    said = done.stdout + done.stderr
    if re.search("ptrace: Operation not permitted|Cannot PTRACE|warning: Error disabling", said):
        pytest.skip("gdb may not run programs here")
    if "Python scripting is not supported" in said:
        pytest.skip("this gdb is built without Python")
    printed = re.findall(r"^\$\d+ = (.*)$", said, re.MULTILINE)
    assert len(printed) == len(commands), said
    return printed


@pytest.fixture(scope="module")
def program(compiler: str, run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gdb") / "program"
    source = ROOT / "cpp_tests" / "debugger" / "main.cpp"
    run([compiler, "-std=c++20", "-g", "-O0", f"-I{ROOT / 'include'}", source, "-o", path])
    return path


def test_values_and_tapes_are_printed_for_people(program: Path) -> None:
    names = ["g", "a", "gone", "empty", "tape", "half", "shared", "x", "y", "y1"]
    said = dict(zip(names, gdb_says(program, [f"print {name}" for name in names])))
    assert said["g"] == 'Value(612.5, grad 1, BinaryDiv, node 8, "g")'
    assert said["a"] == 'Value(-41, grad -35, leaf, node 0, "a")'
    assert said["gone"] == "Value(stale, node 9)"
    assert said["empty"] == "Value()"
    assert said["tape"].startswith(
        'Tape(9 nodes, 7 operations) = {[0] = -41 (grad -35) leaf "a", [1] = 2 (grad 1050) leaf "b", '
    )
    assert said["half"] == "Value(1.5, grad 0, BinaryMult, node 1)"
    assert said["shared"].startswith("Tape(2 nodes, 1 operations) = {[0] = 3 (grad 0) leaf, ")
    numbers = "{[0] = 1 (grad 0), [1] = 2 (grad 0)}"
    assert said["x"] == f"View(1×2, leaf, from node 0) = {numbers}"
    assert said["y"].startswith("View(1×2, sqr, from node 2) = {[0] = 1 (grad 0), [1] = 4 ")
    assert said["y1"] == "Value(4, grad 0, sqr, node 3)"


def test_a_picture_is_written_at_a_breakpoint(program: Path, tmp_path: Path) -> None:
    kind = "svg" if shutil.which("dot") else "dot"
    wanted = tmp_path / f"g.{kind}"
    text, named, unnamed = gdb_says(
        program,
        [
            "call burtorch::debugString(g)",
            f'call burtorch::debugDot(g, "{wanted}")',
            "call burtorch::debugDot(g)",
        ],
    )
    assert "Value(data=612.5, grad=1" in text
    assert str(wanted) in named
    found = re.search(r'"(.*)"$', unnamed)
    assert found is not None
    own = Path(found[1])
    try:
        for path in (wanted, own):
            assert "612.5" in path.read_text(encoding="utf-8")
        if kind == "svg":
            classes = [e.get("class") for e in ET.parse(wanted).iter()]
            assert classes.count("node") == 10
    finally:
        own.unlink(missing_ok=True)


def test_the_functions_for_debuggers_survive_the_optimizer(
    compiler: str, run: Run, tmp_path: Path
) -> None:
    source = tmp_path / "main.cpp"
    source.write_text("#include <burtorch/viz/debug.hpp>\nint main() {}\n")
    flags = ["-std=c++20", "-O2", "-DNDEBUG", "-ffunction-sections", "-Wl,--gc-sections"]
    run([compiler, *flags, f"-I{ROOT / 'include'}", source, "-o", tmp_path / "program"])
    nm = shutil.which("nm")
    if nm is None:
        pytest.skip("no nm")
    names = run([nm, "-C", tmp_path / "program"])
    for scalar in ("double", "float"):
        assert re.search(rf"burtorch::debugDot\(\S+Value<{scalar}> const&\)$", names, re.MULTILINE)
        assert re.search(
            rf"burtorch::debugString\(\S+Value<{scalar}> const&\)$", names, re.MULTILINE
        )


def test_natvis_names_members_that_exist() -> None:
    members: set[str] = set()
    for element in ET.parse(NATVIS).iter():
        for text in (element.text or "", element.get("Condition", "")):
            members |= set(re.findall(r"\b[a-zA-Z]+_\b", text))
    assert {"tape_", "values_", "nodes_"} <= members
    headers = ROOT / "include" / "burtorch"
    source = "".join(
        (headers / f"{name}.hpp").read_text("utf-8")
        for name in ("tape/tape", "tape/cursor", "value", "view")
    )
    for member in members:
        assert re.search(rf"\b{member}( =|;|,)", source), member
