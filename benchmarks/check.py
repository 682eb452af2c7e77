# benchmarks/check.py — compares ratios of a run with benchmarks/expected.toml
# SPDX-License-Identifier: MIT
"""Ratios of two rows of one run, not times: they hold on other machines, too. A ratio may exceed what is
expected by the noise that the run measured itself: how far the medians of both rows are from their minima.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.runner import Result

EXPECTED = Path(__file__).with_name("expected.toml")
LEAST_NOISE = 0.05


def read(path: Path = EXPECTED) -> list[dict[str, Any]]:
    try:
        import tomllib
    except ImportError:
        raise SystemExit("--check needs Python 3.11 or newer") from None
    ratios: list[dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8"))["ratio"]
    return ratios


def noise(result: Result) -> float:
    return float(result["median"] / result["min"] - 1)


def compare(results: list[Result], expected: list[dict[str, Any]]) -> tuple[list[str], bool]:
    """Return a line for every ratio, and whether none is too large."""
    lines, is_good = [], True
    for ratio in expected:
        found = {
            r["row"]: r
            for r in results
            if r["experiment"] == ratio["experiment"] and r["case"] == ratio["case"]
        }
        name = f"{ratio['experiment']}, {ratio['case']}: {ratio['row']} / {ratio['to']}"
        mine, other = found.get(ratio["row"]), found.get(ratio["to"])
        if mine is None or other is None or "error" in mine or "error" in other:
            reasons = [r["error"] for r in (mine, other) if r is not None and "error" in r]
            lines.append(f"skipped  {name}: {reasons[0] if reasons else 'not in this run'}")
            # A peer may be missing; this project's own way must work when it was asked for.
            is_good &= not (
                mine is not None and "error" in mine and "not available" not in mine["error"]
            )
            continue
        reached = mine["min"] / other["min"]
        allowed = ratio["at_most"] * (1 + max(LEAST_NOISE, noise(mine) + noise(other)))
        is_good &= reached <= allowed
        verdict = "good   " if reached <= allowed else "SLOWER "
        lines.append(
            f"{verdict}  {name}: {reached:.3g}, at most {ratio['at_most']:.3g} (with noise {allowed:.3g})"
        )
    return lines, is_good
