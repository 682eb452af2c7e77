# python/burtorch/viz/_live.py — numbers of a training run while it runs; the training's side
# SPDX-License-Identifier: MIT
"""A view of a training run while it runs, which the run does not notice.

Drawing takes a thousand times longer than a training step, so another process does it
(`_viewer.py`). This side only merges numbers and, a few times per second, writes one line to a
pipe. The rules that follow from "never disturb the training":

- The pipe is never waited for. When it is full, the numbers stay here and are merged with the next
  ones: the picture gets coarser, nothing queues up.
- Of very fast steps only some are looked at, about 32 per interval; the others cost one comparison.
- The viewer may be closed by the user, crash, or hang; the training goes on. After a crash one line
  says why, and the view continues as text.
- The viewer is not in the terminal's process group: Ctrl-C stops the training, not the picture of
  it. It ends when the pipe does, so it outlives no run that was killed, except for a window, which
  stays until it is closed.
- After a fork only the parent feeds the view: the child lets go of the pipe at once.
"""

from __future__ import annotations

import atexit
import importlib.util
import json
import math
import os
import subprocess
import sys
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from types import TracebackType
from typing import Any, Callable, NamedTuple, SupportsFloat, Union

from .._core import Value

Number = Union[SupportsFloat, Value, Callable[[], Any]]
FORMATS = (".html", ".pdf", ".png", ".svg")
LOOKS = 32  # at numbers, per interval
LINE_SECONDS = 10.0  # between lines where there is no terminal
PATIENCE = 10.0  # seconds that close() grants the viewer for the last picture
BLOCKS, ASCII = "▁▂▃▄▅▆▇█", "_.-=+*%#"


class Row(NamedTuple):
    """What became of some consecutive numbers; `step` is that of the last, which was `last`."""

    step: int
    weight: int
    mean: float
    low: float
    high: float
    last: float


def merge(a: Row, b: Row) -> Row:
    """Join two rows. A mean keeps a NaN, so that one bad number is never averaged away."""
    weight = a.weight + b.weight
    mean = a.mean + (b.mean - a.mean) * (b.weight / weight) if a.mean != b.mean else a.mean
    return Row(b.step, weight, mean, min(a.low, b.low), max(a.high, b.high), b.last)


class History:
    """All numbers of a run in bounded room: once it is full, neighbours are merged two by two."""

    def __init__(self, room: int = 1024) -> None:
        self.rows: list[Row] = []
        self._room = room
        self._grain = 1  # how many of the rows that come in make one of those that are kept
        self._filled = 0

    def add(self, row: Row) -> None:
        if self.rows and self._filled < self._grain:
            self.rows[-1] = merge(self.rows[-1], row)
            self._filled += 1
        else:
            self.rows.append(row)
            self._filled = 1
        if len(self.rows) == self._room and self._filled == self._grain:
            self.rows = [merge(*pair) for pair in zip(self.rows[::2], self.rows[1::2])]
            self._grain *= 2
            self._filled = self._grain


def use_logarithm(numbers: list[float]) -> bool:
    """Tell whether a curve spans so much that only its orders of magnitude can be seen."""
    finite = [x for x in numbers if math.isfinite(x)]
    return bool(finite) and min(finite) > 0 and max(finite) > 100 * min(finite)


def sparkline(numbers: list[float], width: int, levels: str = BLOCKS) -> str:
    """Draw numbers as blocks; what is not finite is a "!".

    >>> sparkline([0, 1, 2, 3, float("nan"), 7], 6)
    '▁▂▃▄!█'
    """
    columns = min(width, len(numbers))
    cuts = [len(numbers) * k // columns for k in range(columns + 1)] if columns > 0 else []
    means = [sum(numbers[a:b]) / (b - a) for a, b in zip(cuts, cuts[1:])]
    if use_logarithm(means):
        means = [math.log(x) if math.isfinite(x) else x for x in means]
    finite = [x for x in means if math.isfinite(x)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 0.0)
    scale = (len(levels) - 1) / (high - low) if high > low else 0.0
    return "".join(levels[round((x - low) * scale)] if math.isfinite(x) else "!" for x in means)


class _Text:
    """Numbers on standard error: a sparkline redrawn in place, or a line every ten seconds."""

    def __init__(self, in_place: bool) -> None:
        self.mode = "terminal" if in_place else "lines"
        self._in_place = in_place
        self._histories: dict[str, History] = {}
        self._wrote_at = monotonic() if not in_place else -math.inf
        self._changed = False
        try:
            BLOCKS.encode(getattr(sys.stderr, "encoding", None) or "ascii")
            self._levels = BLOCKS
        except (UnicodeEncodeError, LookupError):
            self._levels = ASCII

    def send(self, rows: dict[str, Row]) -> bool:
        for name, row in rows.items():
            self._histories.setdefault(name, History(256)).add(row)
        self._changed = True
        if self._in_place or monotonic() - self._wrote_at >= LINE_SECONDS:
            self._write("")
        return True

    def _write(self, end: str) -> None:
        step = max((history.rows[-1].step for history in self._histories.values()), default=0)
        # A number that was given, at that step: a mean of several would be none that ever was.
        latest = {name: history.rows[-1].last for name, history in self._histories.items()}
        parts = [f"step {step}", *(f"{name} {number:.4g}" for name, number in latest.items())]
        text = "  ".join(parts) + "\n"
        if self._in_place:
            columns = _terminal_columns() - 1
            free = columns - len(text) - len(latest)
            width = min(40, free // max(1, len(latest)))
            for at, (name, history) in enumerate(self._histories.items(), 1):
                curve = sparkline([row.mean for row in history.rows], width, self._levels)
                parts[at] = f"{name} {curve}{' ' if curve else ''}{latest[name]:.4g}"
            text = "\r" + "  ".join(parts)[:columns] + "\x1b[K" + end
        _write(text)
        self._wrote_at = monotonic()
        self._changed = False

    def close(self, end: float) -> str:
        if self._histories and (self._in_place or self._changed):
            self._write("\n")
        return ""

    def forget(self) -> None:
        self._histories.clear()


# Runs the viewer with this process's module path, however that came about.
LAUNCH = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from burtorch.viz._viewer import main; main(sys.argv[2])"
)


class _Viewer:
    """Another process that draws, and the pipe to it."""

    def __init__(self, out: Path | None, title: str) -> None:
        self.mode = "file" if out else "window"
        self._complaint = tempfile.TemporaryFile()  # noqa: SIM115
        wish = json.dumps({"out": os.fspath(out.resolve()) if out else None, "title": title})
        self._process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, json.dumps(sys.path), wish],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._complaint,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        self._pipe = self._process.stdin
        os.set_blocking(self._pipe.fileno(), False)
        self._rest = b""  # of a line that went only partly into the pipe
        self.broken = False

    def send(self, rows: dict[str, Row]) -> bool:
        """Write one line; return False, at once, if the pipe is full or nobody reads it."""
        if not self._push() or self.broken:
            return False
        self._rest = json.dumps(rows).encode() + b"\n"
        self._push()
        return True

    def _push(self) -> bool:
        """Write what is left of a line; tell whether all of it went."""
        try:
            while self._rest:
                self._rest = self._rest[os.write(self._pipe.fileno(), self._rest) :]
        except BlockingIOError:
            return False
        except OSError:
            self.broken = True
        return not self.broken

    def why_it_ended(self) -> str | None:
        """Return None while it runs or ends, "" if the user closed it, else its last words."""
        status = self._process.poll()
        if status is None:
            return None
        if status == 0:
            return ""
        self._complaint.seek(0)
        words = self._complaint.read().decode(errors="replace").strip().splitlines()
        return words[-1] if words else f"it ended with status {status}"

    def close(self, end: float) -> str:
        """Wait for the last picture of a file, but not beyond `end`; return why there is none."""
        while not self._push() and not self.broken and monotonic() < end:
            sleep(0.01)
        self._pipe.close()
        try:
            if self.mode == "file":
                self._process.wait(max(0.0, end - monotonic()))
        except subprocess.TimeoutExpired:
            return "it does not answer"
        else:
            return self.why_it_ended() or ""
        finally:
            self._let_go()

    def forget(self) -> None:
        self._pipe.close()
        self._let_go()

    def _let_go(self) -> None:
        self._complaint.close()
        if self._process.poll() is None:
            self._process.returncode = 0  # nobody waits for it: it ends when its user wants


class Live:
    """What `live` returns: call `update` in the loop, `close` at the end or use it in a `with`."""

    def __init__(self, sink: _Text | _Viewer | None, every: float) -> None:
        self._sink = sink
        self._every = every
        self._step = 0
        self._due = 1  # the step to look at next
        self._stride = 1
        self._last: dict[str, Number] = {}
        self._merged: dict[str, Row] = {}
        self._looked_at = self._sent_at = monotonic() - every
        if sink is None:
            self._due = sys.maxsize
        else:
            _open.add(self)

    @property
    def mode(self) -> str:
        """What is shown where: "window", "file", "terminal", "lines", or "off"."""
        return self._sink.mode if self._sink else "off"

    def update(self, **numbers: Number) -> None:
        """Show the numbers of one more step.

        A number may be a function without arguments: it is called only for steps that are looked
        at, so that a norm over all parameters is not computed in vain:

            view.update(loss=loss, grad_norm=lambda: np.linalg.norm(model.grads))

        Raises only for what is not a number, and then already at the first step.
        """
        self._step += 1
        self._last = numbers
        if self._step >= self._due:
            self._look()

    def _look(self) -> None:
        now = monotonic()
        # So many steps until the next look that there are LOOKS of them per interval. Growing at
        # most twofold, it forgets a burst of fast steps; one slow step brings it down at once.
        wish = self._stride * self._every / LOOKS / max(now - self._looked_at, 1e-9)
        self._stride = max(1, min(int(wish), 2 * self._stride))
        self._looked_at = now
        self._due = self._step + self._stride
        self._take()
        if now - self._sent_at >= self._every:
            self._send(now)

    def _take(self) -> None:
        """Merge the latest numbers."""
        numbers, self._last = self._last, {}
        for name, number in numbers.items():
            if isinstance(number, Value):
                number = number.data
            x = float(number() if callable(number) else number)
            row = Row(self._step, 1, x, x, x, x)
            earlier = self._merged.get(name)
            self._merged[name] = merge(earlier, row) if earlier else row

    def _send(self, now: float) -> None:
        self._sent_at = now
        sink = self._sink
        if sink is None or not self._merged:
            return
        if sink.send(self._merged):
            self._merged = {}
        elif isinstance(sink, _Viewer) and sink.broken:
            words = sink.why_it_ended()
            if words is None:
                return
            sink.close(now)
            self._sink = _Text(_is_terminal()) if words else None
            if words:
                _write(f"burtorch: the live view goes on as text, for its viewer ended: {words}\n")
                self._send(now)
            else:
                self._due = sys.maxsize

    def close(self) -> None:
        """Show the last numbers, and let the viewer finish its file; a window stays open."""
        if self._sink is None:
            return
        end = monotonic() + PATIENCE
        try:
            self._take()
            self._send(monotonic())
            while self._merged and isinstance(self._sink, _Viewer) and monotonic() < end:
                sleep(0.01)
                self._send(monotonic())
        finally:
            sink, self._sink = self._sink, None
            self._due = sys.maxsize
            _open.discard(self)
            words = sink.close(end) if sink else ""
            if words:
                _write(f"burtorch: the live view is incomplete, for its viewer failed: {words}\n")

    __del__ = close

    def _forget(self) -> None:
        """Let go in a forked child: the parent goes on."""
        sink, self._sink = self._sink, None
        self._due = sys.maxsize
        if sink:
            sink.forget()

    def __enter__(self) -> Live:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


_open: weakref.WeakSet[Live] = weakref.WeakSet()


def _each_open(action: Callable[[Live], None]) -> None:
    for view in list(_open):
        action(view)
    _open.clear()


atexit.register(_each_open, Live.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _each_open(Live._forget))


def _write(text: str) -> None:
    # Standard error may be closed, or missing; the training need not know.
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(text)
        sys.stderr.flush()


def _is_terminal() -> bool:
    try:
        return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    except (AttributeError, ValueError):
        return False  # there is no standard error, or it is closed


def _terminal_columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError, AttributeError):
        return 80


def _has_display() -> bool:
    return sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )


def _can_feed_a_viewer() -> bool:
    # On Windows pipes can be told not to wait only since Python 3.12.
    pipes = sys.platform != "win32" or sys.version_info >= (3, 12)
    return pipes and importlib.util.find_spec("matplotlib") is not None


def live(
    out: str | os.PathLike[str] | None = None,
    *,
    title: str = "Training",
    every: float = 0.25,
    mode: str | None = None,
) -> Live:
    """Show loss, gradient norm, or whatever is given, while a program trains.

    >>> with live(mode="off") as view:
    ...     for step in range(100):
    ...         view.update(loss=1 / (1 + step), grad_norm=0.5)

    With `out`, another process keeps a picture up to date: .png, .svg, .pdf, or .html, a page that
    reloads itself. Without: a Matplotlib window where there is a display, a sparkline redrawn in
    place where standard error is a terminal, and else, say in a log file, a line every ten seconds
    and one at the end. `mode` chooses among "window", "terminal", "lines" and "off" instead.

    Numbers are sent every `every` seconds; those of the steps between are merged into their mean,
    shown as a line, and their extremes, shown as a band. Written as a number is the last that was
    looked at, that of the step shown with it. An update costs about a thousandth of a
    step of one millisecond (benchmarks/live.py), and never waits for the viewer.
    """
    if not every > 0:
        raise ValueError(f"every must be a positive number of seconds, not {every!r}")
    if mode not in (None, "window", "terminal", "lines", "off"):
        raise ValueError(f'mode is "window", "terminal", "lines" or "off", not {mode!r}')
    if out is not None:
        path = Path(out)
        if mode is not None:
            raise ValueError("give out or mode, not both: a file is a mode of its own")
        if path.suffix.lower() not in FORMATS:
            raise ValueError(f"{path.name!r}: the file's name must end in {', '.join(FORMATS)}")
        if not path.parent.is_dir():
            raise FileNotFoundError(f"there is no folder {str(path.parent)!r} for {path.name!r}")
        if not _can_feed_a_viewer():
            raise ImportError("live(out=…) draws with Matplotlib: pip install 'burtorch[viz]'")
        return Live(_Viewer(path, title), every)
    if mode is None:
        can_show = _has_display() and _can_feed_a_viewer()
        mode = "window" if can_show else "terminal" if _is_terminal() else "lines"
    if mode == "off":
        return Live(None, every)
    if mode == "window" and not _can_feed_a_viewer():
        raise ImportError("a window is drawn by Matplotlib: pip install 'burtorch[viz]'")
    return Live(_Viewer(None, title) if mode == "window" else _Text(mode == "terminal"), every)
