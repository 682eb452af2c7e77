# tests/test_cli.py — python -m burtorch, as installed and from the source tree; test_packaging.py has the rest
# SPDX-License-Identifier: MIT
from __future__ import annotations

import importlib.util
import inspect
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import burtorch as bt
import pytest
from burtorch.__main__ import SIZES
from conftest import ROOT, Run

VERSION = ".".join(
    re.findall(
        r"#define BURTORCH_VERSION_\w+\s+(\d+)",
        (ROOT / "include" / "burtorch" / "base" / "config.hpp").read_text(encoding="utf-8"),
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


def complaint(site: Path, *arguments: str, cwd: Path, status: int = 1, **environment: str) -> str:
    """The one line that a command ends with."""
    done = subprocess.run(
        [sys.executable, "-m", "burtorch", *arguments],
        cwd=cwd,
        env={"PYTHONPATH": str(site), "PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr.count("\n")) == (status, 1), done.stderr
    return done.stderr


def test_version(run: Run, site: Path, tmp_path: Path) -> None:
    assert burtorch(run, site, "--version", cwd=tmp_path) == VERSION


def test_help_names_every_option(run: Run, site: Path, tmp_path: Path) -> None:
    text = burtorch(run, site, "--help", cwd=tmp_path)
    assert text == burtorch(run, site, cwd=tmp_path)
    for option in ("--version", "--includes", "--cmakedir"):
        assert option in text
    for taught in ("g.backward()", "draw model.py:loss", "train gpt --data", "BURTORCH_ISA="):
        assert taught in text


@pytest.mark.parametrize(("model", "kind"), [("mlp", bt.nn.CharMLP), ("gpt", bt.nn.GPT)])
def test_help_says_what_each_size_is(
    model: str, kind: type, run: Run, site: Path, tmp_path: Path
) -> None:
    text = burtorch(run, site, "train", model, "--help", cwd=tmp_path)
    usual = {name: p.default for name, p in inspect.signature(kind).parameters.items()}
    sizes = usual.keys() - {"vocab", "dtype", "seed"}
    assert SIZES[model].keys() == sizes
    for name in sizes:
        option = re.escape(f"--{name.replace('_', '-')} N")
        found = re.search(rf"^  {option} +\w[^(]+\(default:\s+(\d+)\)", text, re.M)
        assert found is not None, text
        assert int(found[1]) == usual[name]


def test_info_says_what_was_chosen(run: Run, site: Path, tmp_path: Path) -> None:
    text = burtorch(run, site, "info", cwd=tmp_path)
    assert f"burtorch {VERSION}" in text
    assert "instruction set: " in text
    assert re.search(r"^builds: (\w+, )*\w+$", text, re.M)
    assert re.search(r"^compiler: .*[A-Za-z]", text, re.M)


def test_demo_checks_its_gradients(run: Run, site: Path, tmp_path: Path) -> None:
    text = burtorch(run, site, "demo", "--seconds=0", cwd=tmp_path)
    assert text.count("right") == 2
    assert "WRONG" not in text


def test_demo_trains_the_gpt(run: Run, site: Path, tmp_path: Path) -> None:
    text = burtorch(run, site, "demo", "--seconds=2", cwd=tmp_path)
    losses = [float(x) for x in re.findall(r"validation loss (\d+\.\d+)", text)]
    assert losses[-1] < losses[0] - 0.5
    assert "what it writes now:" in text
    assert list(tmp_path.glob("burtorch-loss.*"))
    written = burtorch(run, site, "generate", "burtorch-demo", "--length=50", cwd=tmp_path)
    assert written


def test_demo_draws_the_tiny_graph(run: Run, site: Path, tmp_path: Path) -> None:
    said = burtorch(run, site, "demo", "--seconds=0", "--picture", "g.svg", cwd=tmp_path)
    suffix = "" if shutil.which("dot") else ".dot"
    for name, content in (("g.svg", "612.5"), ("burtorch-neuron.svg", "neuron")):
        assert name + suffix in said
        assert content in (tmp_path / (name + suffix)).read_text(encoding="utf-8")


def test_demo_says_where_it_cannot_draw(site: Path, tmp_path: Path) -> None:
    picture = str(tmp_path / "missing" / "x.svg")
    said = complaint(site, "demo", "--seconds=0", "--picture", picture, cwd=tmp_path)
    assert said.startswith("burtorch demo: ")
    assert picture in said


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_ctrl_c_in_the_demo_is_one_line(site: Path, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "burtorch", "demo", "--seconds=0"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(site)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()  # now it computes
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "burtorch: interrupted\n")


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
@pytest.mark.parametrize("command", ["--help", "info"])
def test_a_pipe_that_is_closed_is_one_line(command: str, site: Path, tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "burtorch", command],
        cwd=tmp_path,
        env={"PYTHONPATH": str(site)},
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (1, "burtorch: nobody reads what is printed\n")


MODEL = """
from __future__ import annotations
from dataclasses import dataclass

@dataclass
class Point:  # needs the module to be known by its name
    x: float

def loss(a=1.0, b=2.0):
    return (a * b - 3) ** 2

def product(a, /, b, *, c=2):
    return a * b * c

def constant(a=1.0):
    return 3.0
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    return path


def test_draw_with_defaults(run: Run, site: Path, model: Path) -> None:
    said = burtorch(run, site, "draw", "model.py:loss", "--out", "l.dot", cwd=model.parent)
    assert said == "l.dot: loss = 1"
    text = (model.parent / "l.dot").read_text(encoding="utf-8")
    assert "<B>a</B>" in text
    assert "<B>loss</B>" in text
    assert ">-4<" in text  # d loss / d a = 2 (ab - 3) b: backward was run


def test_draw_with_numbers_and_options(run: Run, site: Path, model: Path) -> None:
    options = ["--out", "p.dot", "--title", "t", "--derivatives", "--depth", "1"]
    command = ["draw", "model.py:product", "b=-2", "1.5", *options]
    assert burtorch(run, site, *command, cwd=model.parent) == "p.dot: product = -6"
    text = (model.parent / "p.dot").read_text(encoding="utf-8")
    assert 'label="t"' in text
    assert "… 2 more" in text
    assert '-> n4 [label="2"]' in text


@pytest.mark.skipif(shutil.which("dot") is None, reason="no Graphviz")
def test_draw_to_a_picture_named_after_the_function(run: Run, site: Path, model: Path) -> None:
    assert burtorch(run, site, "draw", "model.py:loss", cwd=model.parent).startswith("loss.svg")
    assert "</svg>" in (model.parent / "loss.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["model.py"], "'model.py' names no function; write FILE.py:function"),
        (["other.py:f"], "there is no file other.py"),
        (["model.py:gain"], "model.py has no function gain; it has loss, product, constant"),
        (["model.py:product", "1"], "product(a, b, c) needs a number for b; for example b=1.5"),
        (["model.py:loss", "1", "2", "3"], "loss(a, b) takes 2 numbers, not 3"),
        (["model.py:loss", "c=1"], "loss(a, b) has no parameter c"),
        (["model.py:loss", "one"], "'one' for a is not a number"),
        (["model.py:constant"], "constant returned float, not a Value"),
        (["model.py:loss", "--depth", "-1"], "--depth can't be negative: -1"),
        (["model.py:loss", "--max-nodes", "-1"], "--max-nodes can't be negative: -1"),
    ],
)
def test_draw_says_what_is_wrong(
    arguments: list[str], message: str, site: Path, model: Path
) -> None:
    said = complaint(site, "draw", *arguments, cwd=model.parent, status=2)
    assert said.startswith(f"burtorch draw: {message}")


def test_draw_takes_every_way_to_write_a_number(run: Run, site: Path, model: Path) -> None:
    for a, b in (("-.5e3", "-2"), ("-5E+2", "b=-2"), ("-5.e2", "-2.0")):
        said = burtorch(run, site, "draw", "model.py:loss", a, b, "--out=l.dot", cwd=model.parent)
        assert said == "l.dot: loss = 994009"


def test_draw_says_where_it_cannot_write(site: Path, model: Path) -> None:
    for out in ("missing/l.svg", "missing/l.nonsense"):
        said = complaint(site, "draw", "model.py:loss", "--out", out, cwd=model.parent)
        assert "missing" in said


def test_draw_without_graphviz_leaves_the_text(site: Path, model: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "burtorch", "draw", "model.py:loss"],
        cwd=model.parent,
        env={"PYTHONPATH": str(site), "PATH": str(model.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "apt install graphviz" in done.stderr
    assert "The DOT text is in loss.dot" in done.stderr
    assert (model.parent / "loss.dot").read_text(encoding="utf-8").startswith("digraph")


def test_draw_help_teaches_with_examples(run: Run, site: Path, tmp_path: Path) -> None:
    text = burtorch(run, site, "draw", "--help", cwd=tmp_path)
    assert text.count("burtorch draw model.py:loss") >= 4


def test_an_unknown_instruction_set_is_refused(run: Run, site: Path, tmp_path: Path) -> None:
    wrong = "BURTORCH_ISA=z80: there is no such build; there are "
    said = complaint(site, "info", cwd=tmp_path, BURTORCH_ISA="z80")
    assert said.startswith(f"burtorch: {wrong}")
    command = [sys.executable, "-m", "burtorch", "--help"]
    helped = run(command, cwd=tmp_path, PYTHONPATH=str(site), BURTORCH_ISA="z80")
    assert "BURTORCH_ISA" in helped
    done = subprocess.run(
        [sys.executable, "-c", "from burtorch import Value"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(site), "BURTORCH_ISA": "z80"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert f"burtorch.Value: {wrong}" in done.stderr


def test_a_processor_that_can_run_no_build_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from burtorch import _core, _cpu

    monkeypatch.delenv("BURTORCH_ISA", raising=False)
    monkeypatch.setattr(_cpu, "supported", list)
    with pytest.raises(ImportError, match=r"can run none of burtorch's builds: \w+"):
        vars(_core)["_choose"]()


def test_source_tree(run: Run, tmp_path: Path) -> None:
    source = ROOT / "python"
    assert burtorch(run, source, "--version", cwd=tmp_path) == VERSION
    assert Path(burtorch(run, source, "--includes", cwd=tmp_path)) == ROOT / "include"


def test_source_tree_says_that_nothing_is_compiled(tmp_path: Path) -> None:
    said = complaint(ROOT / "python", "train", "gpt", cwd=tmp_path)
    assert said == "burtorch: the extension is not compiled; use `pip install .`\n"


def test_source_tree_has_no_cmake_package(tmp_path: Path) -> None:
    assert "burtorchConfig.cmake" in complaint(ROOT / "python", "--cmakedir", cwd=tmp_path)
