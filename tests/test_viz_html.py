# tests/test_viz_html.py — the interactive view: its text, and what it does in a real browser
# SPDX-License-Identifier: MIT
from __future__ import annotations

import doctest
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import burtorch as bt
import pytest
from browser import Page, find_browser
from burtorch.__main__ import main
from burtorch._demo import small, tiny
from burtorch.viz import _html
from matplotlib.image import imread

HOSTILE = [
    "</script><script>document.title = 'broken'</script>",
    "<!--<script>",
    "<img src=x onerror=\"document.title = 'broken'\">",
    "\"quotes' and \\ backslash",
    "line\u2028and\u2029paragraph\nand newline\x01",
    "ünïcödé 漢字 🦎",
    "{{data}} {{title}}",
    "&lt;b&gt;",
]


@pytest.fixture(autouse=True)
def tape() -> Iterator[Any]:
    with bt.Tape() as tape:
        yield tape


def paper_graph(graph: Callable[[Any, Any], Any], x: float, y: float) -> Any:
    a, b = bt.Value(x, name="a"), bt.Value(y, name="b")
    root = graph(a, b)
    root.backward()
    return root


def data_of(page: str) -> Any:
    found = re.search(r'<script type="application/json" id="graph">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_the_examples_in_the_documentation() -> None:
    assert doctest.testmod(_html) == (0, 4)


# The text


def test_the_page_holds_the_graph_and_asks_for_nothing_else() -> None:
    root = paper_graph(tiny, -41.0, 2.0)
    page = bt.viz.html(root, title="tiny")
    assert data_of(page) == json.loads(bt.viz.graph_json(root))
    assert "default-src 'none'" in page
    assert not re.search(r"https?:|\bsrc=|\bhref=|@import|url\(|fetch\(|XMLHttp|WebSocket", page)


def test_hostile_names_and_titles_stay_text() -> None:
    for text in HOSTILE:
        root = bt.sin(bt.Value(1.0, name=text))
        page = bt.viz.html(root, title=text)
        assert data_of(page)["nodes"][0]["name"] == text
        assert page.count("<script") == 2
        assert page.count("</script>") == 2
        assert "<img" not in page


def test_the_title_is_the_roots_name_unless_given() -> None:
    root = bt.Value(1.0, name="x")
    assert "<title>x</title>" in bt.viz.html(root)
    assert "<title>y &amp; z</title>" in bt.viz.html(root, title="y & z")
    assert "<title>Computation graph</title>" in bt.viz.html(bt.Value(1.0))


def test_limits_are_passed_on() -> None:
    root = paper_graph(small, -4.0, 2.0)
    assert len(data_of(bt.viz.html(root, depth=1))["nodes"]) == 3
    some = data_of(bt.viz.html(root, max_nodes=5))
    assert (len(some["nodes"]), some["more"]) == (5, len(data_of(bt.viz.html(root))["nodes"]) - 5)


def test_of_a_very_large_graph_the_nearest_nodes_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_html, "LIMIT", 10)
    root = paper_graph(small, -4.0, 2.0)
    assert len(data_of(bt.viz.html(root))["nodes"]) == 10
    assert len(data_of(bt.viz.html(root, max_nodes=100))["nodes"]) == 26


def test_parameters_are_those_below_an_index() -> None:
    root = paper_graph(tiny, -41.0, 2.0)
    kinds = [node["kind"] for node in data_of(bt.viz.html(root, parameters_below=1))["nodes"]]
    assert kinds[:3] == ["parameter", "leaf", "inner"]


MODEL = """
def loss(a=1.0, b=2.0):
    return (a * b - 3) ** 2
"""


def test_burtorch_draw_writes_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(MODEL)
    draw = ["draw", "model.py:loss", "2.5", "--html", "loss.html"]
    assert main(draw) == 0
    assert capsys.readouterr().out == "loss.html: loss = 4\n"
    page = (tmp_path / "loss.html").read_text(encoding="utf-8")
    leaf = data_of(page)["nodes"][0]
    assert (leaf["name"], leaf["value"], leaf["grad"]) == ("a", 2.5, 8.0)
    assert "<title>loss</title>" in page
    assert not (tmp_path / "loss.svg").exists()
    assert main([*draw, "--title", "mine", "--depth", "1", "--out", "loss.dot"]) == 0
    page = (tmp_path / "loss.html").read_text(encoding="utf-8")
    assert "<title>mine</title>" in page
    assert len(data_of(page)["nodes"]) == 2
    assert "digraph" in (tmp_path / "loss.dot").read_text(encoding="utf-8")
    assert main([*draw[:-1], "no/such/folder.html"]) == 1
    assert "no/such/folder.html" in capsys.readouterr().err


def test_a_file_is_written_in_utf8(tmp_path: Path) -> None:
    root = bt.exp(bt.Value(1.0, name=HOSTILE[5]))
    bt.viz.save_html(root, tmp_path / "g.html", title="half \ud83e")
    text = (tmp_path / "g.html").read_text(encoding="utf-8")
    assert HOSTILE[5] in text
    assert "<title>half ?</title>" in text


# In a browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    program = find_browser()
    if program is None:
        pytest.skip("no chromium; `python3 scripts/setup.py` installs it")
    with Page(program, tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture
def page(browser: Page) -> Iterator[Page]:
    """A page that must have complained about nothing when the test is over."""
    browser.resize(1280, 800)
    browser.prefer(color_scheme="light")
    browser.complaints.clear()
    yield browser
    assert browser.complaints == []


def show(page: Page, path: Path, root: Any, fragment: str = "", **options: Any) -> None:
    bt.viz.save_html(root, path / "graph.html", **options)
    page.open(path / "graph.html", fragment)


def click_node(page: Page, index: int) -> None:
    where = page.run(f"burtorchView.screenPosition({index})")
    page.click(where["x"], where["y"])


def text_of(page: Page, name: str) -> str:
    return str(page.run(f"document.getElementById('node-{name}').textContent"))


def pixels_of(page: Page, colour: tuple[int, int, int]) -> int:
    picture = imread(io.BytesIO(page.screenshot()))[:, :, :3] * 255
    return int((abs(picture - colour).max(axis=2) < 12).sum())


def colours_in(page: Page) -> int:
    picture = (imread(io.BytesIO(page.screenshot()))[:, :, :3] * 255).astype(int)
    return len({tuple(pixel) for row in picture[::2, ::2] for pixel in row.tolist()})


PATH = (0xE8, 0x59, 0x0C)


def test_a_click_shows_value_gradient_and_local_derivatives(page: Page, tmp_path: Path) -> None:
    root = paper_graph(tiny, -41.0, 2.0)
    show(page, tmp_path, root, title="tiny")
    nodes = json.loads(bt.viz.graph_json(root))["nodes"]
    assert page.run("burtorchView.nodes.length") == len(nodes)
    assert page.run("document.title") == "tiny"
    assert page.run("burtorchView.selected") is None
    product = next(node for node in nodes if node["op"] == "mul")
    click_node(page, product["i"])
    assert page.run("burtorchView.selected") == product["i"]
    assert not page.run("document.getElementById('panel').hidden")
    assert [text_of(page, what) for what in ("value", "gradient", "operation", "index")] == [
        "−82",
        "−35",
        "mul",
        str(product["i"]),
    ]
    entries = page.run("[...document.querySelectorAll('#panel li')].map(x => x.innerText)")
    assert entries[0].split("\n") == ["a #0", "value −41 · local derivative 2"]
    assert entries[1].split("\n") == ["b #1", "value 2 · local derivative −41"]
    assert entries[2].split("\n")[1] == "gives −35 = −35 × 1"


def test_operands_and_users_can_be_followed(page: Page, tmp_path: Path) -> None:
    root = paper_graph(tiny, -41.0, 2.0)
    show(page, tmp_path, root)
    click_node(page, root.index)
    for _ in range(20):  # operand by operand down to a leaf
        if not page.run("document.querySelector('#panel li button') !== null"):
            break
        heading = page.run("document.querySelector('#panel h2').textContent")
        if heading != "Operands":
            break
        page.run("document.querySelector('#panel li button').click()")
    assert page.run("burtorchView.selected") == 0
    assert text_of(page, "gradient") == "−35"
    gives = page.run("[...document.querySelectorAll('#panel small')].map(x => x.textContent)")
    parts = [float(re.match(r"gives (\S+)", text)[1].replace("−", "-")) for text in gives]  # type: ignore[index]
    assert sum(parts) == -35.0  # the chain rule: what the users give adds up to the gradient


def test_all_paths_to_the_root_light_up(page: Page, tmp_path: Path) -> None:
    root = paper_graph(small, -4.0, 2.0)
    show(page, tmp_path, root)
    nodes = json.loads(bt.viz.graph_json(root))["nodes"]
    assert pixels_of(page, PATH) == 0
    for start in (nodes[2]["i"], nodes[0]["i"], root.index):
        page.press("Escape")
        click_node(page, start)
        page.rest()
        on = {start}
        for node in nodes:
            if any(arg.get("node") in on for arg in node["args"]):
                on.add(node["i"])
        assert page.run("burtorchView.path") == sorted(on)
    where = page.run(f"burtorchView.screenPosition({root.index})")
    panel = page.run("document.getElementById('panel').getBoundingClientRect().left")
    assert where["x"] < panel  # the root moved out from behind the panel that its click opened
    page.run(f"burtorchView.select({nodes[2]['i']})")
    page.rest()
    assert pixels_of(page, PATH) > 300
    page.press("Escape")
    assert page.run("burtorchView.path") == []
    page.rest()
    assert pixels_of(page, PATH) == 0


def test_search_by_name_index_and_operation(page: Page, tmp_path: Path) -> None:
    a, b = bt.Value(3.0, name="alpha"), bt.Value(0.0, name="beta")
    root = bt.tanh(a * b) + bt.tanh(a) + bt.log(b)  # log 0 = −∞, its derivative ∞
    root.backward()
    show(page, tmp_path, root)
    find = page.run
    tanh = [node["i"] for node in find("burtorchView.nodes") if node["op"] == "tanh"]
    assert len(tanh) == 2
    assert find("burtorchView.search('ALPHA')") == [a.index]
    assert find("burtorchView.search('tanh')") == tanh
    assert find(f"burtorchView.search('#{b.index}')") == [b.index]
    assert find("burtorchView.search('×')") == find("burtorchView.search('*')") != []
    assert find("burtorchView.search('nothing like it')") == []
    bad = find("burtorchView.search('nan')")
    assert b.index in bad
    assert root.index in bad
    assert a.index not in bad
    page.press("/", "/")
    page.type("tanh")
    assert find("document.getElementById('count').textContent") == "2 found"
    seen = []
    for _ in range(3):
        page.press("Enter", "\r")
        seen.append(find("burtorchView.selected"))
    assert seen == [tanh[0], tanh[1], tanh[0]]
    page.press("Enter", "\r", shift=True)
    assert find("burtorchView.selected") == tanh[1]
    assert find("document.getElementById('count').textContent") == "2 / 2"


def test_keys_walk_through_the_graph(page: Page, tmp_path: Path) -> None:
    root = paper_graph(tiny, -41.0, 2.0)
    show(page, tmp_path, root)
    page.run("document.querySelector('canvas').focus()")
    page.press("ArrowRight")
    assert page.run("burtorchView.selected") == root.index
    page.press("ArrowLeft")
    assert page.run("burtorchView.selected") == root.args[0].index
    page.press("ArrowRight")
    assert page.run("burtorchView.selected") == root.index
    assert f"node {root.index}" in page.run("document.getElementById('said').textContent")
    before = page.run("burtorchView.scale")
    page.press("+", "+")
    assert page.run("burtorchView.scale") == pytest.approx(before * 1.3)
    page.press("0", "0")
    page.rest()
    position = page.run(f"burtorchView.screenPosition({root.index})")
    page.press("ArrowRight", shift=True)
    moved = page.run(f"burtorchView.screenPosition({root.index})")
    assert (moved["x"] - position["x"], moved["y"] - position["y"]) == pytest.approx((-60, 0))


def test_mouse_and_fingers_move_the_view(page: Page, tmp_path: Path) -> None:
    show(page, tmp_path, paper_graph(tiny, -41.0, 2.0))
    where = page.run("burtorchView.screenPosition(2)")
    page.drag(640, 650, 100, -40)
    moved = page.run("burtorchView.screenPosition(2)")
    assert (moved["x"] - where["x"], moved["y"] - where["y"]) == pytest.approx((100, -40))
    assert page.run("burtorchView.selected") is None  # a drag is no click
    scale = page.run("burtorchView.scale")
    page.wheel(moved["x"], moved["y"], -200)
    page.rest()
    after = page.run("burtorchView.screenPosition(2)")
    assert page.run("burtorchView.scale") > scale
    assert after["x"] == pytest.approx(moved["x"], abs=1)  # it stays under the pointer
    assert after["y"] == pytest.approx(moved["y"], abs=1)
    scale = page.run("burtorchView.scale")
    page.touch("touchStart", [(500, 500), (700, 500)])
    page.touch("touchMove", [(550, 500), (650, 500)])
    page.touch("touchEnd", [])
    assert page.run("burtorchView.scale") == pytest.approx(scale / 2, rel=0.01)


def test_the_address_keeps_the_chosen_node(page: Page, tmp_path: Path) -> None:
    root = paper_graph(tiny, -41.0, 2.0)
    show(page, tmp_path, root, "#3")
    assert page.run("burtorchView.selected") == 3
    click_node(page, 4)
    assert page.run("location.hash") == "#4"
    page.run("location.hash = '#1'")
    page.rest()
    assert page.run("burtorchView.selected") == 1
    page.run("burtorchView.select(null)")
    assert page.run("location.hash") == ""
    show(page, tmp_path, root, "#nonsense")
    assert page.run("burtorchView.selected") is None


def test_hostile_names_are_shown_and_do_nothing(page: Page, tmp_path: Path) -> None:
    leaves = [bt.Value(1.0, name=text) for text in HOSTILE]
    root = bt.reduce_sum(leaves)
    show(page, tmp_path, root, title=HOSTILE[0])
    assert page.run("document.title") == HOSTILE[0]
    assert page.run("burtorchView.nodes.length") == len(HOSTILE) + 1
    for leaf, text in zip(leaves, HOSTILE):
        assert page.run(f"burtorchView.search({json.dumps(text)})") == [leaf.index]
        page.run(f"burtorchView.select({leaf.index})")
        heading = page.run("document.querySelector('#panel h1').lastChild.data")
        assert heading == text
    assert page.run("document.querySelectorAll('img').length") == 0


def test_nodes_left_out_are_named(page: Page, tmp_path: Path) -> None:
    root = paper_graph(small, -4.0, 2.0)
    show(page, tmp_path, root, depth=1)
    assert "left out" in page.run("document.getElementById('facts').textContent")
    page.run("burtorchView.select(burtorchView.nodes[0].i)")
    assert "(not shown)" in page.run("document.getElementById('panel').textContent")


def test_a_single_leaf_is_a_graph(page: Page, tmp_path: Path) -> None:
    leaf = bt.Value(float("nan"), name="lonely")
    show(page, tmp_path, leaf)
    click_node(page, leaf.index)
    assert text_of(page, "value") == "NaN"


def test_light_dark_and_small_screens(page: Page, tmp_path: Path) -> None:
    root = paper_graph(small, -4.0, 2.0)
    show(page, tmp_path, root)
    assert colours_in(page) > 30
    assert pixels_of(page, (0xF6, 0xF7, 0xFA)) > 500_000
    page.prefer(color_scheme="dark", reduced_motion="reduce")
    page.rest()
    assert pixels_of(page, (0x11, 0x14, 0x1B)) > 500_000
    page.resize(390, 780)
    show(page, tmp_path, root, f"#{root.index}")
    panel = page.run("document.getElementById('panel').getBoundingClientRect().toJSON()")
    assert (panel["left"], panel["width"], panel["bottom"]) == (0, 390, 780)
    assert page.run("document.documentElement.scrollWidth") == 390
    where = page.run(f"burtorchView.screenPosition({root.index})")
    assert 0 < where["y"] < panel["top"]  # the chosen node is not behind the panel


def overlaps(places: list[dict[str, float]]) -> int:
    by_layer: dict[float, list[float]] = {}
    for place in places:
        by_layer.setdefault(place["layer"], []).append(place["y"])
    count = 0
    for row in by_layer.values():
        row.sort()
        count += sum(b - a < 66 for a, b in zip(row, row[1:]))  # 66: the height of a card
    return count


def test_a_tree_is_drawn_without_crossings(page: Page, tmp_path: Path) -> None:
    row = [bt.Value(float(k)) for k in range(64)]
    while len(row) > 1:
        row = [a * b for a, b in zip(row[::2], row[1::2])]
    show(page, tmp_path, row[0])
    assert page.run("burtorchView.crossings()") == 0
    assert overlaps(page.run("burtorchView.layout()")) == 0


def wide_graph(count: int) -> Any:
    """Layers of 50 nodes, each made of two of the layer before."""
    row = [bt.Value(0.01 * k, name=f"p{k}") for k in range(50)]
    made = 50
    while made + 51 <= count:
        row = [bt.sin(a) if k % 3 else a * row[k * 7 % 50] for k, a in enumerate(row)]
        made += 50
    for k in range(count - made - 1):
        row[k % 50] = bt.tanh(row[k % 50])
    return bt.reduce_sum(row)


def long_graph(count: int) -> Any:
    """A chain, each link of which uses the first leaf: every edge from that leaf is long."""
    x = bt.Value(0.5, name="x")
    link = x
    for _ in range((count - 1) // 2):
        link = bt.sin(link) * x
    return link


@pytest.mark.parametrize("graph", [wide_graph, long_graph])
def test_five_thousand_nodes(
    page: Page,
    tmp_path: Path,
    graph: Callable[[int], Any],
    record_property: Callable[[str, object], None],
) -> None:
    root = graph(5000)
    root.backward()
    show(page, tmp_path, root)
    nodes = json.loads(bt.viz.graph_json(root))["nodes"]
    assert abs(len(nodes) - 5000) <= 1
    assert page.run("burtorchView.nodes.length") == len(nodes)
    page.run("burtorchView.fit()")
    page.rest()
    size = (tmp_path / "graph.html").stat().st_size
    timing = page.run("burtorchView.timing()")
    print(f"{graph.__name__}: {len(nodes)} nodes, {size} bytes, {timing}")
    record_property("timing", timing)
    places = page.run("burtorchView.layout()")
    layer = {place["i"]: place["layer"] for place in places}
    assert all(layer[arg["node"]] < layer[node["i"]] for node in nodes for arg in node["args"])
    assert overlaps(places) == 0
    middle = nodes[len(nodes) // 2]
    click_node(page, middle["i"])
    chosen = page.run("burtorchView.selected")  # cards are a pixel here: it or one beside it
    assert abs(chosen - middle["i"]) < 120
    page.run(f"burtorchView.select({middle['i']})")
    page.rest()
    assert page.run("burtorchView.scale") > 0.4
    click_node(page, middle["i"])
    assert text_of(page, "index") == str(middle["i"])
    page.drag(640, 700, 300, 10)
    page.wheel(640, 400, 400)
    page.rest()
    assert colours_in(page) > 10
