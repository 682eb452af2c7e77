# python/burtorch/viz/_script.py — plots and heat maps as Matplotlib scripts, and running them
# SPDX-License-Identifier: MIT
"""Every function but run_script returns the text of a complete Python script.

The script needs Matplotlib, this module does not: scripts run in a Python process of their own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Callable

from .._core import Tape, Value, _viz
from ._errors import DrawingError, MissingToolError

_windows: list[subprocess.Popen[str]] = []


def run_script(
    script: str, out: str | os.PathLike[str] | None = None, *, timeout: float = 120
) -> Path | None:
    """Draw to a file and return its path; without one open a window and do not wait for it."""
    command = [sys.executable, "-"]
    if out is None:
        _windows[:] = [window for window in _windows if window.poll() is None]
        window = subprocess.Popen(command, stdin=subprocess.PIPE, text=True, encoding="utf-8")
        assert window.stdin is not None
        with window.stdin as pipe:
            pipe.write(script)
        _windows.append(window)
        return None
    try:
        done = subprocess.run(
            [*command, os.fspath(out)],
            input=script,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise DrawingError(f"the script did not end within {timeout:g} seconds", script) from error
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        if "No module named 'matplotlib'" in last:
            raise MissingToolError(
                "drawing needs Matplotlib: pip install matplotlib (or burtorch[viz]); "
                "the script is in this exception's .text and runs wherever that is installed",
                script,
            )
        raise DrawingError(f"the script failed: {last}", script)
    return Path(out)


def plot_script(
    f: Callable[[Any], Any],
    x_start: float,
    x_end: float,
    *,
    points: int = 201,
    title: str = "",
    x_label: str = "",
    y_label: str = "",
) -> str:
    """Plot f over an interval and, if it computes with Values, its derivative beside it."""
    if points < 2:
        raise ValueError(f"fewer than 2 points make no curve: {points}")
    xs = [x_start + (x_end - x_start) * i / (points - 1) for i in range(points)]
    ys: list[float] = []
    slopes: list[float] = []
    with Tape():
        for number in xs:
            x = Value(number)
            try:
                y = f(x)
            except TypeError:
                y = f(number)  # a function of plain numbers
            ys.append(_number(y))
            if isinstance(y, Value):
                y.backward()
                slopes.append(x.grad)
    if len(slopes) < points:
        curves = [("", xs, ys)]
    else:
        curves = [("value", xs, ys), ("derivative", xs, slopes)]
    return _viz.curves_script(curves, title, x_label, y_label, False)


def heatmap_basic_script(
    matrix: Iterable[Iterable[Any]],
    *,
    title: str = "",
    x_label: str = "",
    y_label: str = "",
    row_labels: Iterable[str] = (),
    column_labels: Iterable[str] = (),
) -> str:
    """Show a matrix of numbers or Values as colours."""
    numbers = [[_number(x) for x in row] for row in matrix]
    labels = [str(label) for label in row_labels], [str(label) for label in column_labels]
    return _viz.heatmap_basic_script(numbers, title, x_label, y_label, *labels)


def heatmap_script(
    rows: int,
    cols: int,
    item: Callable[[int, int], object],
    counter: Callable[[int, int], Any],
    *,
    title: str = "",
    x_label: str = "",
    y_label: str = "",
    row_labels: Iterable[str] = (),
    column_labels: Iterable[str] = (),
) -> str:
    """Show item(row, column), a text, in cells coloured by counter(row, column), a number."""
    labels = [str(label) for label in row_labels], [str(label) for label in column_labels]
    return _viz.heatmap_script(
        rows, cols, item, lambda i, j: _number(counter(i, j)), title, x_label, y_label, *labels
    )


def loss_curve(
    losses: Iterable[Any] | Mapping[str, Iterable[Any]],
    *,
    log: bool = False,
    title: str = "",
    x_label: str = "step",
    y_label: str = "loss",
) -> str:
    """Plot losses over steps; a mapping of names to losses gives one curve each."""
    named = losses if isinstance(losses, Mapping) else {"": losses}
    curves = []
    for name, series in named.items():
        ys = [_number(y) for y in series]
        curves.append((str(name), [float(step) for step in range(len(ys))], ys))
    return _viz.curves_script(curves, title, x_label, y_label, log)


def gradient_histogram(
    parameters: Any,
    *,
    bins: int = 50,
    log: bool = True,
    title: str = "",
    x_label: str = "gradient",
    y_label: str = "parameters",
) -> str:
    """Show how gradients are distributed: of Values, of a model or a tape, or an array of them."""
    if hasattr(parameters, "grads"):
        numbers = [_number(x) for x in parameters.grads]
    else:
        values = parameters.parameters() if hasattr(parameters, "parameters") else parameters
        numbers = [x.grad if isinstance(x, Value) else _number(x) for x in values]
    return _viz.histogram_script(numbers, title, x_label, y_label, bins, log)


def parameter_heatmap(
    parameters: Any,
    shape: Sequence[int] | None = None,
    *,
    gradients: bool = False,
    title: str = "",
    x_label: str = "",
    y_label: str = "",
) -> str:
    """Show the parameters of a layer, or their gradients, as a heat map.

    parameters are rows of Values or numbers, or a layer: its neurons are the rows. A flat sequence,
    or anything else with .parameters(), needs a shape (rows, columns).
    """

    def read(x: Any) -> float:
        return x.grad if gradients and isinstance(x, Value) else _number(x)

    if shape is not None:
        flat = parameters.parameters() if hasattr(parameters, "parameters") else parameters
        numbers = [read(x) for x in flat]
        rows, columns = shape
        if rows * columns != len(numbers):
            raise ValueError(f"{len(numbers)} parameters don't fill {rows} rows of {columns}")
        matrix = [numbers[i * columns : (i + 1) * columns] for i in range(rows)]
    else:
        rows_of = getattr(parameters, "neurons", parameters)
        matrix = [
            [read(x) for x in (row.parameters() if hasattr(row, "parameters") else row)]
            for row in rows_of
        ]
    return heatmap_basic_script(matrix, title=title, x_label=x_label, y_label=y_label)


def _number(x: Any) -> float:
    return x.data if isinstance(x, Value) else float(x)
