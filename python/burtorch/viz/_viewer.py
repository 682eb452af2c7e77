# python/burtorch/viz/_viewer.py — the process that draws a training run; `_live.py` feeds it
# SPDX-License-Identifier: MIT
"""Reads lines of merged numbers from standard input, keeps a window or a file up to date.

It is polite: it runs at the lowest priority and spends at most a twentieth of its time drawing
files. A file is replaced as a whole, so that nobody ever sees half of one. When standard input
ends, so does the run: the last picture is drawn; a window stays until it is closed.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import threading
from html import escape
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from ._live import History, Row, use_logarithm

SECONDS = 1.0  # between two pictures, at least
SHARE = 20  # of its time it draws one part in so many
COLOURS = ["#3b5bdb", "#e8590c", "#0c9f8d", "#b13fb8", "#d9880f", "#5b6bd6"]
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>{reload}
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>body {{ margin: 0; background: #fff }} svg {{ width: 100%; height: auto }}</style></head>
<body>{svg}</body></html>
"""


class Numbers:
    """What has come through the pipe; a thread of its own reads it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._histories: dict[str, History] = {}
        self.version = 0
        self.ended = False
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in sys.stdin:
            if not line.endswith("\n"):
                break  # the run was killed while it wrote
            with self._lock:
                for name, row in json.loads(line).items():
                    self._histories.setdefault(name, History()).add(Row(*row))
                self.version += 1
        self.ended = True

    def snapshot(self) -> dict[str, list[Row]]:
        with self._lock:
            return {name: list(history.rows) for name, history in self._histories.items()}


def draw(figure: Any, curves: dict[str, list[Row]], title: str) -> None:
    """Draw one panel per number: the mean as a line, the extremes as a band, the last in the corner."""
    figure.clear()
    figure.suptitle(title, parse_math=False)  # a name with a dollar sign is no formula
    panels = figure.subplots(max(1, len(curves)), 1, sharex=True, squeeze=False)[:, 0]
    for at, (panel, (name, rows)) in enumerate(zip(panels, curves.items())):
        colour = COLOURS[at % len(COLOURS)]
        steps = [row.step for row in rows]
        panel.plot(steps, [row.mean for row in rows], color=colour, linewidth=1.5)
        low, high = [row.low for row in rows], [row.high for row in rows]
        panel.fill_between(steps, low, high, color=colour, alpha=0.2, linewidth=0)
        if len(rows) == 1:
            panel.plot(steps, [rows[0].mean], "o", color=colour)
        if use_logarithm(low + high):
            panel.set_yscale("log")
        panel.set_ylabel(name, parse_math=False)
        panel.set_title(f"{rows[-1].last:.4g}", loc="right", fontsize="medium", color=colour)
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xlabel("step")


def save(figure: Any, path: Path, title: str, ended: bool) -> None:
    part = path.with_name(f".{path.name}.part")
    if path.suffix.lower() == ".html":
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg")
        svg = buffer.getvalue()
        reload = "" if ended else '<meta http-equiv="refresh" content="2">'
        page = PAGE.format(title=escape(title), reload=reload, svg=svg[svg.index("<svg") :])
        part.write_text(page, encoding="utf-8")
    else:
        figure.savefig(part, format=path.suffix[1:].lower(), dpi=110)
    os.replace(part, path)


def keep_file(numbers: Numbers, path: Path, title: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 6), layout="constrained")
    drawn, next_time = -1, 0.0
    while True:
        ended = numbers.ended  # before the numbers: whoever says so has no more of them
        if ended or (numbers.version != drawn and monotonic() >= next_time):
            drawn, begin = numbers.version, monotonic()
            draw(figure, numbers.snapshot(), title)
            save(figure, path, title, ended)
            next_time = monotonic() + max(SECONDS, SHARE * (monotonic() - begin))
        if ended:
            return
        sleep(0.05)


def keep_window(numbers: Numbers, title: str) -> None:
    import matplotlib
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(8, 6), layout="constrained")
    if not getattr(figure.canvas, "required_interactive_framework", None):
        sys.exit(f"Matplotlib's backend {matplotlib.get_backend()} has no windows")
    plt.show(block=False)
    drawn, next_time = -1, 0.0
    while plt.fignum_exists(figure.number):
        ended = numbers.ended
        if ended or (numbers.version != drawn and monotonic() >= next_time):
            drawn = numbers.version
            draw(figure, numbers.snapshot(), f"{title} (finished)" if ended else title)
            figure.canvas.draw_idle()
            next_time = monotonic() + SECONDS / 2
        if ended:
            plt.show(block=True)
            return
        figure.canvas.start_event_loop(0.1)


def main(wish: str) -> None:
    options = json.loads(wish)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "nice"):
        os.nice(19)
    numbers = Numbers()
    if options["out"] is None:
        keep_window(numbers, options["title"])
    else:
        keep_file(numbers, Path(options["out"]), options["title"])
