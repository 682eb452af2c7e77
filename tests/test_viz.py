# tests/test_viz.py — graphs and plots as texts, compared with golden files, and as real pictures
# SPDX-License-Identifier: MIT
from __future__ import annotations

import ast
import difflib
import json
import math
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import burtorch as bt
import numpy as np
import pytest
from burtorch import viz
from burtorch._demo import small, tiny
from burtorch.micrograd import nn
from conftest import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st

DATA = ROOT / "tests" / "data"
SVG = "{http://www.w3.org/2000/svg}"
needs_graphviz = pytest.mark.skipif(shutil.which("dot") is None, reason="no Graphviz")
needs_matplotlib = pytest.mark.skipif(
    subprocess.run([sys.executable, "-c", "import matplotlib"], capture_output=True).returncode
    != 0,
    reason="no Matplotlib",
)
# Any text that a str can hold and UTF-8 can write.
labels = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def graph_of(function: Any, *at: float) -> bt.Value:
    """The graph of f(a, b) on a tape of its own, after backward."""
    with bt.Tape():
        a, b = bt.Value(at[0], "a"), bt.Value(at[1], "b")
        g = function(a, b)
        g.name = "g"
        g.backward()
        return g  # type: ignore[no-any-return]


@pytest.fixture
def tiny_graph() -> bt.Value:
    return graph_of(tiny, -41.0, 2.0)


def check_golden(name: str, text: str) -> None:
    """Compare with a stored text; BURTORCH_GOLDEN=update stores the new one instead."""
    path = DATA / name
    if os.environ.get("BURTORCH_GOLDEN") == "update":
        path.write_text(text, encoding="utf-8")
    old = path.read_text(encoding="utf-8")
    lines = difflib.unified_diff(old.splitlines(), text.splitlines(), str(path), "now", lineterm="")
    assert old == text, "\n".join(lines)


def nodes_of(svg: str | bytes) -> list[ET.Element]:
    return [group for group in ET.fromstring(svg).iter(f"{SVG}g") if group.get("class") == "node"]


def words_of(element: ET.Element) -> str:
    """All text below an element, without space."""
    return "".join("".join(text.itertext()) for text in element.iter(f"{SVG}text"))


def without_space(text: str) -> str:
    return "".join(text.split())


def as_drawn(label: str) -> str:
    """What a picture shows for a label: symbols instead of control characters."""

    def shown(c: str) -> str:
        if c == "\n" or c in "\ufffe\uffff":
            return {"\n": " "}.get(c, "\ufffd")
        return chr(0x2400 + ord(c)) if ord(c) < 32 else "\u2421" if c == "\x7f" else c

    return without_space("".join(map(shown, label)))


# ---- texts


def test_dot_of_the_tiny_graph(tiny_graph: bt.Value) -> None:
    check_golden("tiny.dot", viz.dot(tiny_graph, "tiny"))


def test_dot_with_everything(tiny_graph: bt.Value) -> None:
    fields = [*viz.FIELDS, "derivatives"]
    text = viz.dot(tiny_graph, depth=3, direction="TB", fields=fields, digits=3, parameters_below=1)
    check_golden("tiny_limited.dot", text)


def test_dot_of_a_whole_tape(tiny_graph: bt.Value) -> None:
    other = tiny_graph.args[0].sqrt()  # type: ignore[union-attr]
    text = viz.dot(tiny_graph.tape)
    assert text.count("peripheries=2") == 2
    assert f"n{other.index} [" in text


def test_one_node_of_each_kind(tiny_graph: bt.Value) -> None:
    kinds = [node["kind"] for node in json.loads(viz.graph_json(tiny_graph))["nodes"]]
    assert kinds == ["parameter"] * 2 + ["inner"] * 6 + ["root"]


def test_json_of_the_tiny_graph(tiny_graph: bt.Value) -> None:
    graph = json.loads(viz.graph_json(tiny_graph, title="t"))
    assert (graph["title"], graph["root"], graph["more"], graph["dtype"]) == ("t", 8, 0, "float64")
    nodes = {node["i"]: node for node in graph["nodes"]}
    assert list(nodes) == list(range(9))
    for i, value in enumerate(tiny_graph.tape.values):
        assert (nodes[i]["value"], nodes[i]["grad"]) == (value, tiny_graph.tape.grads[i])
    # The chain rule, with the derivatives given: every gradient is what its users pass on.
    passed = dict.fromkeys(nodes, 0.0)
    for node in graph["nodes"]:
        operands = [arg["node"] for arg in node["args"] if "node" in arg]
        assert len(operands) == len(node["local"])
        for operand, derivative in zip(operands, node["local"]):
            passed[operand] += node["grad"] * derivative
    assert {i: node["grad"] for i, node in nodes.items() if i != 8} == {
        i: grad for i, grad in passed.items() if i != 8
    }


def test_json_limits() -> None:
    g = graph_of(small, -4.0, 2.0)
    full = json.loads(viz.graph_json(g))
    some = json.loads(viz.graph_json(g, max_nodes=5))
    assert len(some["nodes"]) == 5
    assert some["more"] == len(full["nodes"]) - 5
    assert len(json.loads(viz.graph_json(g, depth=0))["nodes"]) == 1


def test_numbers_that_json_lacks() -> None:
    with bt.Tape(dtype="float32"):
        graph = json.loads(viz.graph_json(bt.log(bt.Value(-1.0)) * math.inf))
    assert graph["dtype"] == "float32"
    assert [node["value"] for node in graph["nodes"]] == [-1, "nan", "nan"]
    assert graph["nodes"][2]["args"] == [{"node": 1}, {"const": "inf"}]


def test_as_string(tiny_graph: bt.Value) -> None:
    expected = 'Value(data=612.5, grad=1, op="/", index=8, label="g")'
    assert viz.as_string(tiny_graph) == expected


@given(name=labels, title=labels)
def test_any_text_comes_back_from_json(name: str, title: str) -> None:
    with bt.Tape():
        graph = json.loads(viz.graph_json(bt.Value(1.0, name), title=title))
    assert graph["title"] == title
    assert graph["nodes"][0]["name"] == (name or None)


@given(texts=st.lists(labels, min_size=7, max_size=7))
def test_any_text_comes_back_from_a_script(texts: list[str]) -> None:
    title, x, y, row, column, item, name = texts
    script = viz.heatmap_script(
        1,
        1,
        lambda i, j: item,
        lambda i, j: 3,
        title=title,
        x_label=x,
        y_label=y,
        row_labels=[row],
        column_labels=[column],
    )
    found = data_of(script)
    assert [found[key] for key in ("title", "x_label", "y_label")] == [title, x, y]
    assert (found["rows"], found["columns"]) == ([row], [column])
    assert found["items"] == [[f"{item}\n3"]]
    assert data_of(viz.loss_curve({name: [1.0]}))["curves"] == [(name, [0], [1])]


def data_of(script: str) -> dict[str, Any]:
    """The constants a script assigns."""
    found = {}
    for statement in ast.parse(script).body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            try:
                found[statement.targets[0].id] = ast.literal_eval(statement.value)
            except ValueError:
                continue
    return found


def test_golden_scripts() -> None:
    check_golden("viz_plot.txt", viz.plot_script(lambda x: x * x, -1, 1, points=5, title="x²"))
    rows = ["a", "b"]
    pairs = viz.heatmap_script(2, 2, lambda i, j: rows[i] + rows[j], lambda i, j: i + j)
    check_golden("viz_heatmap.txt", pairs)
    check_golden("viz_heatmap_basic.txt", viz.heatmap_basic_script([[1, 2.5], [math.nan, -1]]))
    check_golden("viz_histogram.txt", viz.gradient_histogram([0.5, 0.25], bins=4, title="t"))


def test_a_plot_of_a_function_of_values_has_its_derivative() -> None:
    before = len(bt.current_tape())
    curves = data_of(viz.plot_script(bt.tanh, 0.0, 1.0, points=2))["curves"]
    assert [name for name, _, _ in curves] == ["value", "derivative"]
    assert curves[0][2] == [0, math.tanh(1.0)]
    assert curves[1][2] == pytest.approx([1, 1 - math.tanh(1.0) ** 2])
    assert len(data_of(viz.plot_script(math.sin, 0, 1))["curves"]) == 1
    assert len(bt.current_tape()) == before


def test_helpers_read_values_models_and_tapes(tiny_graph: bt.Value) -> None:
    layer = nn.Layer(2, 3)
    for number, parameter in enumerate(layer.parameters()):
        parameter.data, parameter.grad = number, -number
    assert data_of(viz.parameter_heatmap(layer))["cells"] == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    shown = data_of(viz.parameter_heatmap(layer, shape=(1, 9), gradients=True))["cells"]
    assert shown == [[-x for x in range(9)]]
    assert data_of(viz.parameter_heatmap(np.eye(2)))["cells"] == [[1, 0], [0, 1]]
    numbers = data_of(viz.gradient_histogram(layer))["numbers"]
    assert numbers == [-x for x in range(9)]
    assert data_of(viz.gradient_histogram(tiny_graph.tape))["numbers"][:2] == [-35, 1050]
    assert data_of(viz.loss_curve([tiny_graph, 2]))["curves"] == [("", [0, 1], [612.5, 2])]
    with pytest.raises(ValueError, match="9 parameters don't fill 2 rows of 2"):
        viz.parameter_heatmap(layer, shape=(2, 2))


def test_plots_of_layers_made_of_views() -> None:
    with bt.Tape():
        model = bt.nn.MLP([2, 3, 1])
        for k, view in enumerate(model.parameters()):
            view.grad = float(k)
        numbers = data_of(viz.gradient_histogram(model))["numbers"]
        assert numbers == [0.0] * 6 + [1.0] * 3 + [2.0] * 3 + [3.0]
        assert data_of(viz.gradient_histogram(model.parameters()))["numbers"] == numbers
        layer = bt.nn.Linear(2, 3)
        layer.weight.data = np.arange(6.0).reshape(3, 2)
        layer.bias.data = np.array([10.0, 11.0, 12.0])  # type: ignore[union-attr]
        cells = [[0, 1, 10], [2, 3, 11], [4, 5, 12]]
        assert data_of(viz.parameter_heatmap(layer))["cells"] == cells
        assert data_of(viz.parameter_heatmap(layer.weight))["cells"] == [row[:2] for row in cells]
        assert data_of(viz.parameter_heatmap(layer.bias))["cells"] == [[10, 11, 12]]
        layer.weight.grad = 5.0
        shown = data_of(viz.parameter_heatmap(layer, gradients=True))["cells"]
        assert shown == [[5, 5, 0]] * 3
        shown = data_of(viz.parameter_heatmap(layer, shape=(1, 9)))["cells"]
        assert shown == [[0, 1, 2, 3, 4, 5, 10, 11, 12]]
        assert len(data_of(viz.parameter_heatmap(bt.nn.LayerNorm(4)))["cells"]) == 2
        with pytest.raises(ValueError, match="do not fit side by side"):
            viz.parameter_heatmap(model)


@needs_graphviz
def test_views_of_leaves_show_their_numbers() -> None:
    with bt.Tape():
        svg = bt.vector([1.5, -2.25, 3.0])._repr_mimebundle_()["image/svg+xml"]
        assert all(number in svg.replace("&#45;", "-") for number in ("1.5", "-2.25", "3 numbers"))
        layer = bt.nn.Linear(20, 30)
        svg = layer.weight._repr_mimebundle_()["image/svg+xml"]
        assert "30 × 20" in svg.replace("&#215;", "×")
        assert svg.count("…") + svg.count("&#8230;") == 8 + 10 - 1
        text = viz.dot(bt.matrix([[1.0, 2.0], [3.0, 4.0]]), title='a "title"')
        assert 'label="a \\"title\\""' in text
        assert "grad" not in text
        computed = bt.vector([1.0, 2.0]) * 2.0
        assert "digraph burtorch" in viz.dot(computed)
        assert "*" in viz.dot(computed)
        with pytest.raises(ValueError, match="fields are"):
            viz.dot(bt.vector([1.0]), fields=["colour"])


def test_mistakes_are_named(tiny_graph: bt.Value) -> None:
    with pytest.raises(TypeError, match="a picture needs a Value or a Tape, not int"):
        viz.dot(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a picture needs a Value, not"):
        viz.graph_json(tiny_graph.tape)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unknown field 'colour'; there are label, operation"):
        viz.dot(tiny_graph, fields=["colour"])
    with pytest.raises(ValueError, match="unknown direction 'up'; there are LR, TB"):
        viz.dot(tiny_graph, direction="up")
    with pytest.raises(ValueError, match="row 1 has 1 columns, the first has 2"):
        viz.heatmap_basic_script([[1, 2], [3]])
    with pytest.raises(ValueError, match="fewer than 2 points"):
        viz.plot_script(bt.tanh, 0, 1, points=1)


def test_a_rewound_value_is_not_drawn() -> None:
    tape = bt.Tape()
    with tape.scope():
        gone = bt.Value(1.0)
    with pytest.raises(bt.StaleHandleError):
        viz.dot(gone)
    assert list(gone._repr_mimebundle_()) == ["text/plain"]


# ---- pictures


@needs_graphviz
@pytest.mark.parametrize(
    ("function", "at", "boxes"), [(tiny, (-41.0, 2.0), 9 + 1), (small, (-4.0, 2.0), 26 + 6)]
)
def test_svg_has_a_box_for_every_node_and_number(
    function: Any, at: tuple[float, float], boxes: int, tmp_path: Path
) -> None:
    path = viz.save(graph_of(function, *at), tmp_path / "g.svg", "a title")
    svg = path.read_bytes()
    assert len(nodes_of(svg)) == boxes
    root = ET.fromstring(svg)
    assert "a title" in words_of(root)
    edges = [group for group in root.iter(f"{SVG}g") if group.get("class") == "edge"]
    assert len(edges) == svg.count(b"</title>") - boxes - 1


@needs_graphviz
def test_what_a_node_says(tiny_graph: bt.Value, tmp_path: Path) -> None:
    svg = viz.save(tiny_graph, tmp_path / "g.svg").read_bytes()
    said = {node.findtext(f"{SVG}title"): words_of(node) for node in nodes_of(svg)}
    assert said["n0"] == "a0value-41grad-35"
    assert without_space(said["n8"]) == "g/8value612.5grad1"
    assert said["c8_2"] == "2"


@needs_graphviz
@pytest.mark.parametrize(
    ("kind", "start"),
    [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("dot", b"digraph"), ("gv", b"digraph")],
)
def test_formats(kind: str, start: bytes, tiny_graph: bt.Value, tmp_path: Path) -> None:
    assert viz.save(tiny_graph, tmp_path / f"g.{kind}").read_bytes().startswith(start)


@needs_graphviz
def test_unknown_formats_are_refused(tiny_graph: bt.Value, tmp_path: Path) -> None:
    with pytest.raises(viz.DrawingError, match=r"Graphviz draws no \.xyz files") as caught:
        viz.save(tiny_graph, tmp_path / "g.xyz")
    assert caught.value.text == viz.dot(tiny_graph)
    with pytest.raises(viz.DrawingError, match=r"the ending says what to write"):
        viz.save(tiny_graph, tmp_path / "g")


@needs_graphviz
@settings(max_examples=25, deadline=None)
@given(
    names=st.lists(labels.filter(as_drawn), min_size=1, max_size=12), title=labels.filter(as_drawn)
)
def test_graphviz_shows_any_text(names: list[str], title: str) -> None:
    with bt.Tape():
        leaves = [bt.Value(0.0, name) for name in names]
        root = bt.reduce_sum(leaves)
        svg = viz.graph(root, title, fields=["label"]).pipe(format="svg")
    said = {node.findtext(f"{SVG}title"): words_of(node) for node in nodes_of(svg)}
    for i, name in enumerate(names):
        assert without_space(said[f"n{i}"]) == as_drawn(name)
    assert as_drawn(title) in without_space(words_of(ET.fromstring(svg)))


@needs_graphviz
def test_graph_is_a_graphviz_source(tiny_graph: bt.Value) -> None:
    import graphviz  # type: ignore[import-untyped]

    source = viz.graph(tiny_graph, "t")
    assert isinstance(source, graphviz.Source)
    assert source.source == viz.dot(tiny_graph, "t")


@needs_graphviz
def test_notebooks_get_a_picture_and_a_text(tiny_graph: bt.Value) -> None:
    bundle = tiny_graph._repr_mimebundle_()
    assert bundle["text/plain"] == repr(tiny_graph)
    assert len(nodes_of(bundle["image/svg+xml"])) == 10
    assert list(tiny_graph._repr_mimebundle_(include=["text/plain"])) == ["text/plain"]
    assert list(tiny_graph._repr_mimebundle_(exclude=["text/plain"])) == ["image/svg+xml"]
    assert len(nodes_of(tiny_graph.tape._repr_mimebundle_()["image/svg+xml"])) == 10
    assert list(bt.Tape()._repr_mimebundle_()) == ["text/plain"]


@needs_graphviz
def test_notebooks_show_part_of_a_large_graph() -> None:
    with bt.Tape():
        x = bt.Value(1.0)
        for _ in range(1000):
            x = x.sin()
        svg = x._repr_mimebundle_()["image/svg+xml"]
    assert len(nodes_of(svg)) == 151  # and one that says how many more there are
    assert "851" in svg


def test_large_graphs_are_refused_with_advice(tmp_path: Path) -> None:
    with bt.Tape():
        x = bt.Value(1.0)
        for _ in range(3000):
            x = x.sin()
        for draw in (lambda: viz.save(x, tmp_path / "x.svg"), lambda: viz.graph(x)):
            with pytest.raises(viz.TooLargeError, match=r"3001 nodes .* max_nodes=200") as caught:
                draw()
            assert caught.value.text == viz.dot(x)
        viz.save(x, tmp_path / "x.dot")  # the text is never refused
        assert viz.graph(x, max_nodes=100).source.count(" [label=") == 101
        assert viz.graph(x, limit=None).source == viz.dot(x)
    assert not (tmp_path / "x.svg").exists()


def test_a_hundred_thousand_nodes() -> None:
    with bt.Tape():
        a = bt.Value(0.5)
        x = a
        for _ in range(50_000):
            x = x.sin() + a
        text = viz.dot(x)
    assert len(re.findall(r"^  n\d+ \[", text, re.MULTILINE)) == 100_001
    assert len(re.findall(r"^  n\d+ -> ", text, re.MULTILINE)) == 150_000


def test_without_graphviz_the_text_is_kept(
    tiny_graph: bt.Value, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(viz.MissingToolError, match="apt install graphviz") as caught:
        viz.save(tiny_graph, tmp_path / "g.svg")
    assert caught.value.text == viz.dot(tiny_graph)
    assert list(tiny_graph._repr_mimebundle_()) == ["text/plain"]
    assert viz.save(tiny_graph, tmp_path / "g.dot").read_text(encoding="utf-8") == caught.value.text


# ---- Matplotlib

# What each script shows; labels that mean something to Matplotlib must not.
NASTY = 'a "b" \\ $x_$ _{ \n%s Ж 🔥 \\frac'
SCRIPTS = {
    "plot": lambda: viz.plot_script(bt.tanh, -3, 3, title=NASTY, x_label="$", y_label="_y"),
    "numbers": lambda: viz.plot_script(math.exp, -3, 3),
    "heatmap": lambda: viz.heatmap_script(
        3, 2, lambda i, j: NASTY, lambda i, j: i * j, row_labels=["$a$", "_", "\\"], title=NASTY
    ),
    "basic": lambda: viz.heatmap_basic_script(np.arange(12.0).reshape(3, 4)),
    "holes": lambda: viz.heatmap_basic_script([[math.nan, 1.0], [2.0, math.inf]]),
    "loss": lambda: viz.loss_curve({"_train": [3, 2, 1.0], "$t$": [4, 3, math.nan]}, log=True),
    "histogram": lambda: viz.gradient_histogram(np.linspace(-1, 1, 100) ** 3),
    "not finite": lambda: viz.gradient_histogram([1.0, 2.0, math.nan, -math.inf]),
}


@needs_matplotlib
@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_draw(name: str, tmp_path: Path) -> None:
    from matplotlib.image import imread

    out = viz.run_script(SCRIPTS[name](), tmp_path / "x.png")
    assert out == tmp_path / "x.png"
    picture = imread(out)[..., :3]
    assert picture.shape[0] >= 400
    colours = np.unique(picture.reshape(-1, 3), axis=0)
    assert len(colours) > 20, "a blank picture"


@needs_matplotlib
def test_a_script_without_an_argument_or_a_display_writes_a_file(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(viz.loss_curve([2, 1]), encoding="utf-8")
    quiet = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    subprocess.run([sys.executable, script], cwd=tmp_path, env=quiet, check=True)
    assert (tmp_path / "burtorch.png").stat().st_size > 1000


def test_showing_a_script_does_not_wait(tmp_path: Path) -> None:
    go, done = tmp_path / "go", tmp_path / "done"
    waits = (
        "import pathlib, time\n"
        f"while not pathlib.Path({str(go)!r}).exists(): time.sleep(0.01)\n"
        f"pathlib.Path({str(done)!r}).write_text('ok')\n"
    )
    assert viz.run_script(waits) is None
    assert not done.exists()
    go.touch()
    from burtorch.viz import _script

    assert _script._windows[-1].wait(timeout=60) == 0
    assert done.read_text() == "ok"


def test_without_matplotlib_the_script_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "matplotlib.py"
    fake.write_text("raise ModuleNotFoundError(\"No module named 'matplotlib'\")\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    script = viz.loss_curve([1])
    with pytest.raises(viz.MissingToolError, match="pip install matplotlib") as caught:
        viz.run_script(script, tmp_path / "x.png")
    assert caught.value.text == script


def test_failing_and_endless_scripts(tmp_path: Path) -> None:
    with pytest.raises(viz.DrawingError, match="the script failed: ZeroDivisionError"):
        viz.run_script("1 / 0", tmp_path / "x.png")
    with pytest.raises(viz.DrawingError, match=r"did not end within 0\.5 seconds"):
        viz.run_script("import time; time.sleep(60)", tmp_path / "x.png", timeout=0.5)


def test_importing_burtorch_imports_nothing_that_draws() -> None:
    code = (
        "import sys, burtorch; drawing = {'burtorch.viz', 'graphviz', 'matplotlib', 'subprocess'}; "
        "print(sorted(drawing & set(sys.modules))); burtorch.viz.dot; print('burtorch.viz' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[1] == "True"
    assert "viz" not in done.stdout.split("\n")[0]
    assert "graphviz" not in done.stdout.split("\n")[0]
    assert "matplotlib" not in done.stdout.split("\n")[0]


def test_the_pictures_of_the_readme_are_there() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"docs/(\w+)\.svg", readme)
    assert set(shown) == {"tiny", "small"}
    for name in shown:
        assert nodes_of((ROOT / "docs" / f"{name}.svg").read_bytes())


# ---- views, layers and models ---------------------------------------------------------------------


def boxes(svg: str) -> int:
    return [element.get("class") for element in ET.fromstring(svg).iter()].count("node")


@needs_graphviz
def test_a_view_is_drawn_with_its_block_as_one_box() -> None:
    with bt.Tape():
        w, x = bt.matrix([[1.0, 2.0], [3.0, 4.0]], "w"), bt.vector([1.0, -1.0])
        y = bt.tanh(w @ x)
        shown = y._repr_mimebundle_()
        assert boxes(shown["image/svg+xml"]) == 4  # w, x, the product, tanh
        assert "View" in shown["text/plain"]
        assert "affine" in bt.viz.dot(y)
        expanded = bt.viz.dot(y, expand_blocks=True)
        assert expanded.count(" [label=<") == 9  # the root alone of the last block
        assert bt.vector([])._repr_mimebundle_().keys() == {"text/plain"}


@needs_graphviz
@pytest.mark.parametrize("make", [lambda: bt.nn.MLP([2, 3, 1]), lambda: bt.nn.CharMLP(hidden=4)])
def test_layers_and_models_show_their_parts(make: Any) -> None:
    with bt.Tape():
        model = make()
        shown = model._repr_mimebundle_()
        parts = {name.rpartition(".")[0] for name in model.state_dict()}
        assert boxes(shown["image/svg+xml"]) == len(parts)
        assert shown["text/plain"] == repr(model)
        for part in parts:
            assert f"<B>{part}</B>" in bt.viz.model_dot(model)


def test_a_large_model_is_shown_in_part() -> None:
    text = bt.viz.model_dot(bt.nn.GPT())
    assert "more" in text
    assert text.count("label=<") == 40
