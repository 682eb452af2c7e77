# benchmarks/check.py — compares ratios of a run with benchmarks/expected.toml
# SPDX-License-Identifier: MIT
"""Ratios of two rows of one run, not times.

A ratio must not exceed what is asked for (`at_most`). It must not exceed what a good run on the same processor
reached by more than the noise of this run, either. What another processor reached is shown and never judged. The
noise is measured on both rows: how far the figures of the passes are apart, and the rounds of a pass.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.runner import Result

EXPECTED = Path(__file__).with_name("expected.toml")
REACHED = (
    "[reached."  # from here to its end the file is written by --reached, a table per processor
)
LEAST_NOISE = 0.05  # two builds of one source differ by so much: where their code lies in memory
PASSES = 3  # whose figures are compared


@dataclass(frozen=True)
class Ratio:
    experiment: str
    case: str
    row: str
    to: tuple[str, ...]  # the best of these rows that ran
    at_most: float
    of: str = "min"  # the figure: seconds, or VmHWM
    to_case: str = ""  # another case of the same experiment
    called: str = ""  # what the rows of `to` are together
    reached: Mapping[str, float] = field(default_factory=dict)  # by processor

    def reached_elsewhere(self, processor: str) -> float | None:
        """Return what the newest entry of another processor reached, where this one has none."""
        others = [] if processor in self.reached else list(self.reached.values())
        return others[-1] if others else None

    @property
    def what(self) -> str:
        other = self.called or ", ".join(self.to)
        other = self.to_case if self.to_case and self.to == (self.row,) else other
        return f"{self.row} / {other}" + (", peak memory" if self.of == "VmHWM" else "")

    @property
    def name(self) -> str:
        return f"{self.experiment}, {self.case}: {self.what}"


@dataclass(frozen=True)
class Verdict:
    ratio: Ratio
    measured: float | None  # None: the text says why
    text: str
    is_good: bool = True
    processor: str = ""

    @property
    def before(self) -> str:
        """Return what was reached before, and whether that was elsewhere; empty where nothing is known."""
        here = self.ratio.reached.get(self.processor)
        elsewhere = self.ratio.reached_elsewhere(self.processor)
        if here is None:
            return "" if elsewhere is None else f"{elsewhere:.3g} on another processor"
        return f"{here:.3g}"

    def __str__(self) -> str:
        if self.measured is None:
            return f"{self.text}: {self.ratio.name}"
        before = f", reached before {self.before}" if self.before else ""
        asked = f"{self.measured:.3g}, asked at most {self.ratio.at_most:.3g}"
        return f"{self.text}: {self.ratio.name}: {asked}{before}"


def read(path: Path = EXPECTED) -> list[Ratio]:
    """Return a ratio for every case of the file's entries."""
    try:
        import tomllib
    except ImportError:
        raise SystemExit("--check needs Python 3.11 or newer") from None
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    found = []
    for entry in content["ratio"]:
        to = entry["to"]
        shared = {key: entry[key] for key in ("experiment", "row", "of", "called") if key in entry}
        shared["to"] = (to,) if isinstance(to, str) else tuple(to)
        for case, at_most in entry["at_most"].items():
            case, _, to_case = case.partition(" / ")
            ratio = Ratio(case=case, to_case=to_case, at_most=at_most, **shared)
            tables = content.get("reached", {}).items()
            reached = {name: table[ratio.name] for name, table in tables if ratio.name in table}
            found.append(replace(ratio, reached=reached))
    return found


def write_reached(
    results: list[Result], expected: list[Ratio], processor: str, path: Path = EXPECTED
) -> None:
    """Write what this run reached into the file; other processors' figures and what it did not measure stay."""
    tables: dict[str, dict[str, float]] = {}
    for ratio in expected:
        for name, figure in ratio.reached.items():
            tables.setdefault(name, {})[ratio.name] = figure
    for verdict in compare(results, expected, processor):
        if verdict.measured is not None:
            tables.setdefault(processor, {})[verdict.ratio.name] = verdict.measured
    text = path.read_text(encoding="utf-8").partition(REACHED)[0].rstrip() + "\n"
    for name, figures in tables.items():
        lines = [f'"{ratio.name}" = {figures[ratio.name]:.3g}\n' for ratio in expected if ratio.name in figures]  # fmt: skip
        text += f"\n{REACHED}{json.dumps(name, ensure_ascii=False)}]\n" + "".join(lines)
    path.write_text(text, encoding="utf-8")


def noise(result: Result, of: str = "min") -> float | None:
    """Return by how much figures of this run differ that should be the same; None if there is one only.

    That is the worst pass beside the best, and for times the first quartile of a pass's rounds beside its minimum.
    """
    figures = [each[of] for each in result.get("passes", []) if of in each]
    found = [max(figures) / min(figures) - 1] if len(figures) > 1 else []
    if of == "min" and "quartile" in result:
        found.append(result["quartile"] / result["min"] - 1)
    return max(found) if found else None


def compare(results: list[Result], expected: list[Ratio], processor: str) -> list[Verdict]:
    return [replace(judge(results, ratio, processor), processor=processor) for ratio in expected]


def judge(results: list[Result], ratio: Ratio, processor: str) -> Verdict:
    def rows(case: str, names: tuple[str, ...]) -> list[Result]:
        return [
            r
            for r in results
            if r["experiment"] == ratio.experiment and r["case"] == case and r["row"] in names
        ]

    mine, others = rows(ratio.case, (ratio.row,)), rows(ratio.to_case or ratio.case, ratio.to)
    able = [r for r in others if ratio.of in r]
    if not mine or ratio.of not in mine[0] or not able:
        reasons = [r["error"] for r in (*mine, *others) if "error" in r]
        # A peer may be missing; this project's own way must work when it was asked for.
        failed = mine and "error" in mine[0] and not is_excuse(mine[0]["error"])
        reason = reasons[0] if reasons else "not in this run"
        return Verdict(ratio, None, f"skipped ({reason})", not failed)
    other = min(able, key=lambda r: float(r[ratio.of]))
    measured = float(mine[0][ratio.of] / other[ratio.of])
    if measured > ratio.at_most:
        return Verdict(ratio, measured, "SLOWER than asked", False)
    before, noises = ratio.reached.get(processor), [noise(r, ratio.of) for r in (mine[0], other)]
    if before is None:
        return Verdict(ratio, measured, "good")
    known = [x for x in noises if x is not None]
    if len(known) < len(noises):
        return Verdict(ratio, measured, "good as asked; noise unknown, not compared with before")
    if measured > before * (1 + max(LEAST_NOISE, sum(known))):
        return Verdict(ratio, measured, f"SLOWER than before (noise {sum(known):.1%})", False)
    return Verdict(ratio, measured, "good")


def is_excuse(error: str) -> bool:
    return any(word in error for word in ("not available", "no time left", "left out"))


def is_good(verdicts: list[Verdict]) -> bool:
    """Whether something was compared and nothing is too slow."""
    return any(v.measured is not None for v in verdicts) and all(v.is_good for v in verdicts)
