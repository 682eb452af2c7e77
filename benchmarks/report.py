# benchmarks/report.py — results as Markdown tables and plots
# SPDX-License-Identifier: MIT
"""Everything here is made from results.json alone, so that a report can be made again: --report FILE."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Union

from benchmarks import check, registry
from benchmarks.runner import Result

BASE = "burtorch C++ eager"
Get = Callable[[Result], Union[float, str, None]]  # of a row's result; None: nothing to show


def number(x: float | str) -> str:
    """Return three digits, without an exponent where that can be read."""
    if isinstance(x, str):
        return x
    if x == 0 or 1e-3 <= abs(x) < 1e6:
        digits = 2 if x == 0 else max(0, 2 - math.floor(math.log10(abs(x))))
        return f"{x:.{digits}f}"
    return f"{x:.2e}"


@dataclass(frozen=True)
class Column:
    title: str
    get: Get
    case: str = ""  # of several cases, the one that is shown
    relative_to: str = ""  # a row whose figure the others are divided by
    x: float = 0  # where a line plot has it
    beside: Get | None = None  # stands in parentheses: the median


@dataclass(frozen=True)
class Table:
    title: str
    columns: Sequence[Column]
    text: str = ""
    plot: str = ""  # "bar" (of the first column) or "line" (of all)
    x_title: str = ""


def per_gradient(scale: float) -> Callable[[Result], float]:
    return lambda result: float(result["min"]) * scale


def median(scale: float) -> Callable[[Result], float]:
    return lambda result: float(result["median"]) * scale


def milliseconds(key: str) -> Callable[[Result], float | None]:
    return lambda result: result[key] * 1e3 if key in result else None


def megabytes(key: str) -> Callable[[Result], float | None]:
    return lambda result: result[key] / 1024 if key in result else None


def figure(results: list[Result], row: str, column: Column) -> float | str | None:
    """Return what stands in a row's column."""
    mine = [r for r in results if r["row"] == row and column.case in ("", r["case"])]
    if not mine or "error" in mine[0]:
        return None
    value = column.get(mine[0])
    if column.relative_to and isinstance(value, float):
        base = figure(results, column.relative_to, Column("", column.get, column.case))
        return value / base if isinstance(base, float) and base else None
    return value


def rows_of(results: list[Result], table: Table) -> list[str]:
    cases = {column.case for column in table.columns}
    found = [r["row"] for r in results if "" in cases or r["case"] in cases]
    return list(dict.fromkeys(found))


def table_lines(results: list[Result], table: Table) -> list[str]:
    """Return a table; a row without any figure says why."""
    lines = ["| | " + " | ".join(c.title for c in table.columns) + " |"]
    lines.append("|---|" + "---:|" * len(table.columns))
    for row in rows_of(results, table):
        figures = [figure(results, row, column) for column in table.columns]
        beside = [
            figure(results, row, replace(column, get=column.beside)) if column.beside else None
            for column in table.columns
        ]
        cells = [
            ("–" if x is None else number(x)) + (f" ({number(y)})" if y is not None else "")
            for x, y in zip(figures, beside)
        ]
        errors = [r["error"] for r in results if r["row"] == row and "error" in r]
        has_figure = any(isinstance(x, float) for x in figures)
        if errors and not has_figure:
            cells = [f"*{errors[0].replace('|', '/')}*"] + [""] * (len(cells) - 1)
        name = f"**{row}**" if row.startswith("burtorch") else row
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def verdict_lines(verdicts: list[check.Verdict]) -> list[str]:
    """Return the table of the ratios that were asked for."""

    def cell(x: float | None) -> str:
        return "–" if x is None else f"{x:.3g}"

    lines = ["", "## Asked and reached", ""]
    lines += ["| experiment | case | ratio | here | asked, at most | reached before | |"]
    lines += ["|---|---|---|---:|---:|---:|---|"]
    for v in verdicts:
        r = v.ratio
        cells = [r.experiment, r.case, r.what, cell(v.measured), cell(r.at_most), v.before or "–"]
        lines.append("| " + " | ".join([*cells, v.text.replace("|", "/")]) + " |")
    return lines


def markdown(data: dict[str, Any], verdicts: Sequence[check.Verdict] = ()) -> str:
    """Return the whole report."""
    machine = "; ".join(f"{key}: {value}" for key, value in data["machine"].items())
    versions = ", ".join(f"{key} {value}" for key, value in sorted(data["versions"].items()))
    lines = [
        f"Measured {data['date']} by `{data['command']}`{data['note']}.",
        f"Machine: {machine}. Peers: {versions or 'none'}.",
        "",
        "One pinned core unless said otherwise, every row in a process of its own, the same outputs checked "
        "first; the minimum of several rounds, in parentheses the median. A row without figures says why.",
    ]
    for name, experiment in registry.experiments().items():
        results = [r for r in data["results"] if r["experiment"] == name]
        if not results:
            continue
        lines += ["", f"## {experiment.TITLE}"]
        for i, table in enumerate(experiment.tables(results)):
            lines += ["", f"### {table.title}"] if table.title else []
            lines += ["", table.text] if table.text else []
            lines += ["", *table_lines(results, table)]
            if table.plot and f"{name}-{i}" in data.get("plots", []):
                lines += ["", f"![{table.title or experiment.TITLE}]({name}-{i}.svg)"]
        notes: list[str] = experiment.notes(results) if hasattr(experiment, "notes") else []
        lines += ["", *(f"- {note}" for note in notes)] if notes else []
    lines += verdict_lines(list(verdicts)) if verdicts else []
    return "\n".join(lines) + "\n"


def plots(data: dict[str, Any], folder: Path) -> list[str]:
    """Draw what can be drawn; return the names of the pictures."""
    try:
        import matplotlib
    except ImportError:
        return []
    matplotlib.use("svg")
    from matplotlib import pyplot

    made = []
    for name, experiment in registry.experiments().items():
        results = [r for r in data["results"] if r["experiment"] == name]
        for i, table in enumerate(experiment.tables(results) if results else []):
            drawn = {
                row: [figure(results, row, column) for column in table.columns]
                for row in rows_of(results, table)
            }
            drawn = {row: values for row, values in drawn.items() if isinstance(values[0], float)}
            if not (table.plot and drawn):
                continue
            size = (8, 0.28 * len(drawn) + 1) if table.plot == "bar" else (8, 5)
            plot, axes = pyplot.subplots(figsize=size)
            if table.plot == "bar":
                order = sorted(drawn, key=lambda row: -float(drawn[row][0] or 0))
                colours = ["C1" if row.startswith("burtorch") else "C0" for row in order]
                axes.barh(order, [float(drawn[row][0] or 0) for row in order], color=colours)
                axes.set_xscale("log")
                axes.set_xlabel(table.columns[0].title)
            else:
                for row, values in drawn.items():
                    points = [
                        (c.x, v) for c, v in zip(table.columns, values) if isinstance(v, float)
                    ]
                    is_own = row.startswith("burtorch")
                    axes.loglog(*zip(*points), marker="o", label=row, lw=2.5 if is_own else 1)
                axes.set_xlabel(table.x_title)
                axes.legend(fontsize=8)
            axes.set_title(f"{experiment.TITLE}. {table.title}".strip(". "))
            plot.tight_layout()
            plot.savefig(folder / f"{name}-{i}.svg", metadata={"Date": None})
            pyplot.close(plot)
            made.append(f"{name}-{i}")
    return made
