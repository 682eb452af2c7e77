# tests/test_viz_live.py — the live view shows the numbers and never disturbs the training
# SPDX-License-Identifier: MIT
from __future__ import annotations

import doctest
import importlib.util
import io
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import burtorch as bt
import pytest
from burtorch.viz import _live
from burtorch.viz._live import History, Live, Row, merge, sparkline
from matplotlib.image import imread

SECONDS = 60.0  # after which something that should happen is taken not to


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A viewer at the lowest priority may be slow to start where many tests run at once."""
    monkeypatch.setattr(_live, "PATIENCE", SECONDS)


def wait_for(happens: Callable[[], Any]) -> Any:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        result = happens()
        if result:
            return result
        time.sleep(0.02)
    pytest.fail("it did not happen")


def row_of(x: float, step: int = 1) -> Row:
    return Row(step, 1, x, x, x, x)


def test_the_examples_in_the_documentation() -> None:
    assert doctest.testmod(_live) == (0, 2)


# Merging


@pytest.mark.parametrize("mode", ["lines", "terminal"])
def test_what_is_written_is_the_last_number(mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    with bt.viz.live(mode=mode, every=1e9) as view:  # all of it is merged
        for loss in (1.0, 2.0, 4.0):
            view.update(loss=loss)
            view._look()
    written = capsys.readouterr().err
    assert "step 3" in written
    assert re.search(r"loss [^a-z]*\b4(\s|\x1b|$)", written)
    assert "2.333" not in written


def test_merged_numbers_keep_mean_and_extremes() -> None:
    rows = [row_of(float(x), step) for step, x in enumerate([3, 1, 4, 1, 5, 9], 1)]
    whole = rows[0]
    for row in rows[1:]:
        whole = merge(whole, row)
    assert (whole.step, whole.weight, whole.low, whole.high) == (6, 6, 1.0, 9.0)
    assert whole.mean == pytest.approx(23 / 6)


def test_one_nan_is_not_averaged_away() -> None:
    nan, inf = float("nan"), float("inf")
    assert math.isnan(merge(row_of(1.0), row_of(nan)).mean)
    assert math.isnan(merge(merge(row_of(1.0), row_of(nan)), row_of(2.0)).mean)
    assert merge(row_of(inf), row_of(inf)).mean == inf
    assert merge(row_of(1.0), row_of(inf)).mean == inf


def test_a_history_is_bounded_and_even() -> None:
    history = History(room=16)
    for step in range(1, 1001):
        history.add(row_of(float(step), step))
        assert len(history.rows) <= 16
    assert sum(row.weight for row in history.rows) == 1000
    assert sum(row.weight * row.mean for row in history.rows) == pytest.approx(500500)
    assert (history.rows[0].low, history.rows[-1].high) == (1.0, 1000.0)
    assert len({row.weight for row in history.rows[:-1]}) == 1  # early steps as fine as late ones


@pytest.mark.parametrize(
    ("numbers", "width", "expected"),
    [
        ([], 5, ""),
        ([1.0], 0, ""),
        ([2.0, 2.0], 5, "▁▁"),
        ([0.0, 7.0], 5, "▁█"),
        ([0.0, 0.0, 7.0, 7.0], 2, "▁█"),
        ([float("nan"), 1.0, float("inf"), -1.0], 9, "!█!▁"),
        ([float("inf"), float("-inf")], 1, "!"),
        ([1e308, 1e308, 0.0], 1, "!"),  # their sum is not finite; no error either
        ([1e-8, 1e-4, 1.0], 3, "▁▄█"),  # orders of magnitude
    ],
)
def test_sparkline(numbers: list[float], width: int, expected: str) -> None:
    assert sparkline(numbers, width).replace("▅", "▄") == expected


# The training's side, with a clock that the test moves


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(_live, "monotonic", lambda: self.now)


class Sink:
    """Takes what a viewer would, or refuses as a full pipe does."""

    mode = "test"

    def __init__(self) -> None:
        self.sent: list[dict[str, Row]] = []
        self.full = False

    def send(self, rows: dict[str, Row]) -> bool:
        if not self.full:
            self.sent.append(rows)
        return not self.full

    def close(self, end: float) -> str:
        return ""

    def forget(self) -> None:
        pass


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def make_view(every: float = 0.25) -> tuple[Live, Sink]:
    sink = Sink()
    return Live(sink, every), sink  # type: ignore[arg-type]


def test_every_number_of_slow_steps_is_counted(clock: Clock) -> None:
    view, sink = make_view()
    for step in range(1000):
        clock.now += 0.0625
        view.update(loss=float(step))
    view.close()
    rows = [rows["loss"] for rows in sink.sent]
    assert sum(row.weight for row in rows) == 1000
    assert rows[-1].step == 1000
    assert max(row.high for row in rows) == 999.0
    assert 250 <= len(rows) <= 252  # 62.5 seconds, four times a second


def test_of_fast_steps_few_are_looked_at(clock: Clock) -> None:
    """This bounds the cost: a step that is not looked at costs one call and one comparison."""
    view, sink = make_view()
    looks = 0

    def norm() -> float:
        nonlocal looks
        looks += 1
        return 1.0

    for _ in range(100_000):
        clock.now += 20e-6  # 2 seconds in all, 8 intervals
        view.update(loss=1.0, grad_norm=norm)
    assert len(sink.sent) in (8, 9)
    assert 7 * _live.LOOKS < looks < 9 * _live.LOOKS
    clock.now += 5.0  # the steps become slow: soon every one is looked at again
    view.update(loss=1.0, grad_norm=norm)
    while view._stride > 1:
        clock.now += 1.0
        view.update(loss=1.0, grad_norm=norm)
    assert view._step < 101_000
    before = looks
    for _ in range(10):
        clock.now += 1.0
        view.update(loss=1.0, grad_norm=norm)
    assert looks == before + 10


def test_the_last_step_is_always_shown(clock: Clock) -> None:
    view, sink = make_view()
    for step in range(12_345):
        clock.now += 20e-6
        view.update(loss=float(step))
    view.close()
    assert sink.sent[-1]["loss"].step == 12_345
    assert sink.sent[-1]["loss"].high == 12_344.0


def test_a_full_pipe_makes_the_picture_coarser_and_loses_nothing(clock: Clock) -> None:
    view, sink = make_view()
    for step in range(100):
        sink.full = 10 <= step < 90
        clock.now += 1.0
        view.update(loss=float(step))
    assert [rows["loss"].weight for rows in sink.sent] == [1] * 10 + [81] + [1] * 9
    assert max(rows["loss"].high for rows in sink.sent) == 99.0


def test_values_numbers_and_functions_are_taken(clock: Clock) -> None:
    import numpy as np

    view, sink = make_view()
    view.update(
        a=bt.Value(2.5), b=np.float32(0.5), c=3, d=lambda: bt.Value(4.0).data, e=np.ones(())
    )
    assert {name: row.mean for name, row in sink.sent[0].items()} == {
        "a": 2.5,
        "b": 0.5,
        "c": 3.0,
        "d": 4.0,
        "e": 1.0,
    }
    wrong, _ = make_view()
    with pytest.raises((TypeError, ValueError)):
        wrong.update(loss="high")  # type: ignore[arg-type]


def test_what_cannot_be_is_refused_before_the_training(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"must end in \.html, \.pdf, \.png, \.svg"):
        bt.viz.live(tmp_path / "x.txt")
    with pytest.raises(FileNotFoundError, match="no folder"):
        bt.viz.live(tmp_path / "none" / "x.png")
    with pytest.raises(ValueError, match="positive number of seconds"):
        bt.viz.live(every=0)
    with pytest.raises(ValueError, match="mode is"):
        bt.viz.live(mode="loud")
    with pytest.raises(ValueError, match="not both"):
        bt.viz.live(tmp_path / "x.png", mode="window")


def test_without_matplotlib_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match="pip install"):
        bt.viz.live(tmp_path / "x.png")
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(_live, "_is_terminal", lambda: False)
    with bt.viz.live() as view:
        assert view.mode == "lines"


# Text


def test_where_there_is_no_terminal_a_line_every_ten_seconds(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with bt.viz.live(mode="lines") as view:
        for step in range(25):
            clock.now += 1.0
            view.update(loss=1.0 / (1 + step), grad_norm=2.0)
    assert capsys.readouterr().err.splitlines() == [
        "step 10  loss 0.1  grad_norm 2",
        "step 20  loss 0.05  grad_norm 2",
        "step 25  loss 0.04  grad_norm 2",
    ]


def test_nothing_shown_nothing_said(capsys: pytest.CaptureFixture[str]) -> None:
    with bt.viz.live(mode="lines"):
        pass
    with bt.viz.live(mode="off") as view:
        view.update(loss=1.0)
        assert view.mode == "off"
    assert capsys.readouterr().err == ""


def test_a_closed_standard_error_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    for stream in (closed, None):
        monkeypatch.setattr(sys, "stderr", stream)
        for mode in ("terminal", "lines", None):
            with bt.viz.live(mode=mode, every=1e-9) as view:
                view.update(loss=1.0)


LOOP = f"""
import math, os, sys, time
import burtorch as bt
bt.viz._live.PATIENCE = {SECONDS}
def train(view, steps=400, pause=0.001):
    for step in range(steps):
        time.sleep(pause)
        view.update(loss=math.exp(-step / 100), grad_norm=1.0)
"""


def start(script: str, *arguments: object, **options: Any) -> subprocess.Popen[bytes]:
    code = LOOP + textwrap.dedent(script)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "TERM"):
        environment.pop(name, None)
    environment.update(options.pop("env", {}))
    command = [sys.executable, "-W", "error", "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, env=environment, **options)


def finish(script: str, *arguments: object, **options: Any) -> tuple[int, str]:
    process = start(script, *arguments, stderr=subprocess.PIPE, **options)
    said = process.communicate(timeout=SECONDS)[1].decode()
    return process.returncode, said


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_in_a_terminal_a_sparkline_redrawn_in_place(encoding: str) -> None:
    import fcntl
    import struct
    import termios

    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    process = start(
        "with bt.viz.live(every=0.05) as view:\n  assert view.mode == 'terminal'\n  train(view)",
        stderr=theirs,
        env={"PYTHONIOENCODING": encoding},
    )
    os.close(theirs)
    text = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # Linux's way to say that the other side is closed
            break
        if not piece:
            break
        text += piece
    os.close(ours)
    assert process.wait(SECONDS) == 0
    frames = text.decode(encoding).rstrip("\r\n").split("\r")
    assert frames[0] == ""
    assert len(frames) > 3
    assert all(frame.endswith("\x1b[K") and len(frame) - 3 < 60 for frame in frames[1:])
    assert text.endswith(b"\r\n")
    assert text.count(b"\n") == 1
    last = frames[-1]
    levels = _live.BLOCKS if encoding == "utf-8" else _live.ASCII
    found = re.match(r"step 400  loss (\S+) \S+  grad_norm (\S+) 1\x1b", last)
    assert found is not None, last
    assert found[1][0] == levels[-1]
    assert found[1][-1] == levels[0]


# Another process


def train_until(view: Live, happens: Callable[[], bool]) -> None:
    def step() -> bool:
        view.update(loss=0.5)
        return happens()

    wait_for(step)


@pytest.mark.parametrize("suffix", [".png", ".html"])
def test_a_file_is_kept_up_to_date(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"run{suffix}"
    with bt.viz.live(path, title="a <b> & $c", every=0.05) as view:
        assert view.mode == "file"
        view.update(**{"loss": 1.0, "</svg><script>": 2.0, "$\\bad{$": float("nan")})
        wait_for(path.exists)
        early = path.read_bytes()
        for step in range(50):
            time.sleep(0.002)
            view.update(loss=math.exp(-step))
    late = path.read_bytes()
    assert late != early
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    if suffix == ".png":
        picture = imread(io.BytesIO(late))[:, :, :3]
        assert picture.shape[0] > 300
        assert (picture.min(axis=2) < 0.9).sum() > 2000
    if suffix == ".html":
        assert b'http-equiv="refresh"' in early
        assert b'http-equiv="refresh"' not in late
        assert b"<title>a &lt;b&gt; &amp; $c</title>" in late
        assert b"<script" not in late


def test_an_exception_goes_through_and_the_file_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "run.html"
    view = bt.viz.live(path)
    with pytest.raises(ZeroDivisionError), view:
        view.update(loss=1 / 0)
    assert b'http-equiv="refresh"' not in path.read_bytes()
    assert view.mode == "off"
    view.update(loss=1.0)
    view.close()


def test_a_viewer_that_does_not_read_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_live, "LAUNCH", "import time; time.sleep(600)")
    monkeypatch.setattr(_live, "PATIENCE", 0.3)
    view = bt.viz.live(tmp_path / "run.png", every=1e-6)
    try:
        for step in range(5000):  # far more than a pipe holds
            view.update(loss=1.0 / (1 + step), **{f"weight {k}": 1.0 for k in range(20)})
        assert isinstance(view._sink, _live._Viewer)
        assert view._sink._process.poll() is None
        assert view._merged["loss"].weight > 1000  # merged here, not queued
        process = view._sink._process
        view.close()
    finally:
        os.kill(process.pid, signal.SIGKILL)
        os.waitpid(process.pid, 0)
    assert "does not answer" in capsys.readouterr().err


COPY = """
import json, sys, time
time.sleep(0.3)
with open(json.loads(sys.argv[2])["out"], "w") as file:
    file.write(sys.stdin.read())
"""


def test_lines_longer_than_the_pipe_arrive_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_live, "LAUNCH", COPY)
    numbers = {f"a weight with a long name {k}": float(k) for k in range(3000)}
    with bt.viz.live(tmp_path / "run.svg", every=1e-6) as view:
        for _ in range(20):
            view.update(**numbers)
            time.sleep(0.01)
    rows = [json.loads(line) for line in (tmp_path / "run.svg").read_text().splitlines()]
    assert all(list(row) == list(numbers) for row in rows)
    name, x = list(numbers.items())[-1]
    assert sum(row[name][1] for row in rows) == 20
    assert rows[-1][name] == [20, rows[-1][name][1], x, x, x, x]


def test_a_viewer_that_crashes_is_replaced_by_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_live, "LAUNCH", "import sys; sys.stdin.readline(); sys.exit('no paint')")
    with bt.viz.live(tmp_path / "run.png", every=1e-6) as view:
        train_until(view, lambda: view.mode != "file")
        assert view.mode == "lines"
    said = capsys.readouterr().err.splitlines()
    assert said[0] == ("burtorch: the live view goes on as text, for its viewer ended: no paint")
    assert re.fullmatch(r"step \d+  loss 0\.5", said[1])
    assert len(said) == 2


def test_a_viewer_that_is_killed_at_the_end_is_mentioned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_live, "LAUNCH", "import sys; sys.stdin.read(); sys.exit('no paint')")
    with bt.viz.live(tmp_path / "run.png") as view:
        view.update(loss=0.5)
    assert "for its viewer failed: no paint" in capsys.readouterr().err


def test_a_viewer_closed_by_its_user_is_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_live, "LAUNCH", "import sys; sys.stdin.readline()")
    with bt.viz.live(mode="window", every=1e-6) as view:
        train_until(view, lambda: view.mode == "off")
        view.update(loss=0.5)
    assert capsys.readouterr().err == ""


def test_a_window_without_windows_becomes_text(monkeypatch: pytest.MonkeyPatch) -> None:
    status, said = finish(
        """
        with bt.viz.live(mode="window", every=0.01) as view:
            while view.mode == "window":
                train(view, 10)
            train(view, 10)
        """,
        env={"MPLBACKEND": "agg"},
    )
    assert status == 0, said
    assert "backend agg has no windows" in said
    assert said.splitlines()[-1].startswith("step ")


def ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    state = Path(f"/proc/{pid}/stat")
    return state.exists() and state.read_text().rsplit(")", 1)[1].split()[0] == "Z"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_ctrl_c_and_worse_leave_a_complete_file(number: signal.Signals, tmp_path: Path) -> None:
    path = tmp_path / "run.html"
    process = start(
        """
        with bt.viz.live(sys.argv[1], every=0.01) as view:
            print(view._sink._process.pid, flush=True)
            train(view, 10**9)
        """,
        path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    viewer = int(process.stdout.readline())
    wait_for(path.exists)
    os.killpg(process.pid, number)  # a terminal sends Ctrl-C to the whole group, too
    said = process.communicate(timeout=SECONDS)[1].decode()
    assert process.returncode == -number
    assert ("KeyboardInterrupt" in said) == (number == signal.SIGINT)
    wait_for(lambda: ended(viewer))
    assert b'http-equiv="refresh"' not in path.read_bytes()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_after_a_fork_only_the_parent_feeds_the_view(tmp_path: Path) -> None:
    status, said = finish(
        """
        view = bt.viz.live(sys.argv[1], every=0.01)
        train(view, 10)
        stay, go = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(go)
            train(view, 10)
            os._exit(0 if view.mode == "off" and os.read(stay, 1) == b"" else 1)
        train(view, 10)
        view.close()  # the child lives, but does not hold the pipe: the viewer can end
        assert view.mode == "off" and os.path.exists(sys.argv[1])
        os.close(go)
        assert os.waitpid(child, 0)[1] == 0
        """,
        tmp_path / "run.png",
    )
    assert (status, said) == (0, "")


def test_a_view_that_is_never_closed_is_closed_at_exit(tmp_path: Path) -> None:
    status, said = finish("view = bt.viz.live(sys.argv[1]); train(view, 10)", tmp_path / "run.svg")
    assert (status, said) == (0, "")
    assert (tmp_path / "run.svg").read_bytes().rstrip().endswith(b"</svg>")


def test_a_view_that_is_lost_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "run.pdf"
    view = bt.viz.live(path)
    view.update(loss=1.0)
    del view
    assert path.read_bytes().startswith(b"%PDF")


# A window


@pytest.fixture
def display(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """An X server without a screen: its name, and the file that holds its pixels."""
    server = shutil.which("Xvfb")
    if server is None or importlib.util.find_spec("tkinter") is None:
        pytest.skip("no Xvfb or no tkinter; the Debian packages are xvfb and python3-tk")
    ours, theirs = os.pipe()
    # Without -noreset it starts anew, with a new file, whenever its last client leaves.
    options = ["-noreset", "-fbdir", str(tmp_path), "-screen", "0", "900x700x24"]
    process = subprocess.Popen(
        [server, "-displayfd", str(theirs), *options],
        pass_fds=[theirs],
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs)
    with os.fdopen(ours) as answer:
        number = answer.readline().strip()  # to the end of the line, or its writing fails
    yield f":{number}", tmp_path / "Xvfb_screen0"
    process.terminate()
    process.wait()


def test_a_window_shows_the_numbers_and_outlives_the_run(
    display: tuple[str, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name, screen = display
    monkeypatch.setenv("DISPLAY", name)
    monkeypatch.setenv("MPLBACKEND", "tkagg")
    with bt.viz.live(every=0.02) as view:
        assert view.mode == "window"
        assert isinstance(view._sink, _live._Viewer)
        process = view._sink._process
        for step in range(20):
            view.update(loss=math.exp(-step))
            time.sleep(0.01)
        blue = bytes([0xDB, 0x5B, 0x3B])  # the colour of the first curve, as the screen stores it
        wait_for(lambda: screen.exists() and screen.read_bytes().count(blue) > 100)
    assert not ended(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    os.waitpid(process.pid, 0)
    assert capsys.readouterr().err == ""
