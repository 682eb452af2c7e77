# benchmarks/experiments/mlp.py — CharMLP on names: hidden layers of 4 to 1 024, batches of 1 and 64
# SPDX-License-Identifier: MIT
from __future__ import annotations

from benchmarks.registry import Case, Job, Peer, cross
from benchmarks.report import Column, Get, Table, median, megabytes, milliseconds, per_gradient
from benchmarks.runner import Result

TITLE = "CharMLP, FP32"
ORDER = 4
SIZES = (4, 16, 32, 64, 128, 512, 1024)
COUNTS = {4: 5_963, 16: 18_587, 32: 35_419, 64: 69_083, 128: 136_411, 512: 540_379, 1024: 1_079_003}
PAPER = {
    1: "PyTorch 1.54 1.54 1.56 1.67 1.88 2.37 3.23, BurTorch 0.075 0.150 0.242 0.378 0.724 2.38 6.19",
    64: "PyTorch 9.98 9.98 10.4 10.3 22.5 117 236, BurTorch 0.98 3.35 6.57 10.5 21.6 112 241",
}


def case(e: int, b: int, title: str = "") -> Case:
    is_main = (e, b, title) == (64, 1, "")
    return Case("mlp", title or f"e={e} b={b}", {"e": e, "b": b}, is_main=is_main)


def jobs(peers: list[Peer], quick: bool) -> list[Job]:
    cases = [case(e, b) for b in (1, 64) for e in SIZES]
    once = [case(e, 1, f"e={e} once") for e in ((64,) if quick else SIZES)]
    return cross(peers, cases) + cross(peers, once, only_once=True)


def tables(results: list[Result]) -> list[Table]:
    there = {r["case"] for r in results}
    found = []

    def add(
        title: str, text: str, template: str, get: Get, plot: str = "", beside: Get | None = None
    ) -> None:
        columns = [
            Column(
                f"e={e} ({COUNTS[e]:,})".replace(",", " "),
                get,
                template.format(e),
                x=COUNTS[e],
                beside=beside,
            )
            for e in SIZES
            if template.format(e) in there
        ]
        if columns:
            found.append(Table(title, columns, text, plot, "parameters"))

    for b in (1, 64):
        text = f"The paper's, Linux, ms for all seven sizes: {PAPER[b]}."
        add(
            f"b={b}: ms per gradient, e (parameters)",
            text,
            f"e={{}} b={b}",
            per_gradient(1e3),
            "line",
            median(1e3),
        )
        add(f"b={b}: peak resident memory, MB", "", f"e={{}} b={b}", megabytes("VmHWM"))
    text = "The paper's: PyTorch 4 469 to 5 081, BurTorch 8 to 47."
    wall, middle = milliseconds("wall"), milliseconds("wall_median")
    add("Whole process with one step, ms", text, "e={} once", wall, beside=middle)
    return found
