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

import numpy as np
from numpy.typing import NDArray

from .._core import Tape, Value, View, _viz
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
    """Show how gradients are distributed: of Values or Views, of a layer, a model or a tape.

    An array or a sequence of numbers is taken for gradients.
    """
    if hasattr(parameters, "grads"):
        parameters = parameters.grads
    elif hasattr(parameters, "parameters"):
        parameters = parameters.parameters()
    numbers = _numbers_of(parameters, gradients=True)
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

    parameters are rows of Values or numbers, a View, or a layer: its neurons are the rows, weights and
    then the bias. A flat sequence, or a layer with parameters of shapes that do not fit side by side, needs a
    shape (rows, columns).
    """
    if shape is not None:
        flat = parameters.parameters() if hasattr(parameters, "parameters") else parameters
        numbers = _numbers_of(flat, gradients)
        rows, columns = shape
        if rows * columns != len(numbers):
            raise ValueError(f"{len(numbers)} parameters don't fill {rows} rows of {columns}")
        matrix = [numbers[i * columns : (i + 1) * columns] for i in range(rows)]
    elif isinstance(parameters, View) or hasattr(parameters, "named_parameters"):
        matrix = _side_by_side(parameters, gradients).tolist()
    else:
        rows_of = getattr(parameters, "neurons", parameters)
        matrix = [
            _numbers_of(row.parameters() if hasattr(row, "parameters") else row, gradients)
            for row in rows_of
        ]
    return heatmap_basic_script(matrix, title=title, x_label=x_label, y_label=y_label)


def _side_by_side(layer: Any, gradients: bool) -> NDArray[Any]:
    """Return a View, or the parameters of a layer, as one matrix: vectors are columns beside a matrix."""
    views = {"": layer} if isinstance(layer, View) else dict(layer.named_parameters())
    arrays = {name: np.asarray(v.grad if gradients else v.data) for name, v in views.items()}
    if all(array.ndim == 1 for array in arrays.values()):
        columns = [array.reshape(1, -1) for array in arrays.values()]
        if len({array.size for array in columns}) == 1:
            return np.concatenate(columns)  # such as a scale and a shift: a row each
    else:
        columns = [array.reshape(len(array), -1) for array in arrays.values()]
    if len({len(array) for array in columns}) != 1:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ValueError(
            f"these parameters do not fit side by side: {shapes}; choose one of them, or give a shape"
        )
    return np.concatenate(columns, axis=1)


def _numbers_of(things: Any, gradients: bool) -> list[float]:
    """Return the numbers, or the gradients, of Values, Views and numbers, one after the other."""
    if isinstance(things, View):
        return [float(x) for x in np.ravel(things.grad if gradients else things.data)]
    if isinstance(things, np.ndarray) and things.dtype != object:
        return [float(x) for x in things.ravel()]
    numbers: list[float] = []
    for thing in things.ravel() if isinstance(things, np.ndarray) else things:
        if isinstance(thing, View):
            numbers += _numbers_of(thing, gradients)
        elif isinstance(thing, Value):
            numbers.append(thing.grad if gradients else thing.data)
        else:
            numbers.append(float(thing))
    return numbers


def _number(x: Any) -> float:
    return x.data if isinstance(x, Value) else float(x)
