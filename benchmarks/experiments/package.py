# benchmarks/experiments/package.py — what the package costs before it computes: import, living Values, live view
# SPDX-License-Identifier: MIT
from __future__ import annotations

from benchmarks.registry import Case, Job, Peer, cross
from benchmarks.report import Column, Table, median, megabytes, per_gradient
from benchmarks.runner import Result

TITLE = "The Python package: import, living Values, live view"
ORDER = 24
COUNT = 1_000_000
STEP = 0.001  # seconds of a training step that updates a view


def jobs(peers: list[Peer], quick: bool) -> list[Job]:
    once = [Case("import", "import"), Case("values", "values", {"n": COUNT})]
    return cross(peers, once, only_once=True) + cross(peers, [Case("live", "live", {"step": STEP})])


def tables(results: list[Result]) -> list[Table]:
    columns = [
        Column("import, ms", per_gradient(1e3), "import", beside=median(1e3)),
        Column("resident MB", megabytes("VmHWM"), "import"),
        Column("with a million Values, MB", megabytes("VmHWM"), "values"),
        Column("live update, µs", per_gradient(1e6), "live", beside=median(1e6)),
    ]
    return [Table("", columns, f"A view is updated every {STEP * 1e3:g} ms of its clock.")]


def notes(results: list[Result]) -> list[str]:
    def of(row: str, case: str, key: str) -> float | None:
        found = [r[key] for r in results if (r["row"], r["case"]) == (row, case) and key in r]
        return float(found[0]) if found else None

    said = []
    package, numpy = (
        (of(f"burtorch Python import {name}", "import", "min"), of(f"burtorch Python import {name}", "import", "VmHWM"))
        for name in ("burtorch", "numpy")
    )  # fmt: skip
    if None not in (*package, *numpy):
        time, size = (a - b for a, b in zip(package, numpy) if a is not None and b is not None)
        said.append(f"import burtorch beyond NumPy's: {time * 1e3:.0f} ms, {size / 1024:.1f} MB")
    living = of("burtorch Python", "values", "VmHWM")
    if living is not None and package[1] is not None:
        said.append(f"{(living - package[1]) * 1024 / COUNT:.0f} bytes for each living Value")
    update = of("burtorch Python viz.live", "live", "min")
    if update is not None:
        said.append(f"an update takes {update / STEP:.2%} of a step of {STEP * 1e3:g} ms")
    return said
