# benchmarks/check.py — compares ratios of a run with benchmarks/expected.toml
# SPDX-License-Identifier: MIT
"""Ratios of two rows of one run, not times: they hold on other machines, too.

A ratio must not exceed what is asked for (`at_most`), nor what a good run reached by more than the noise
that this run measured itself: how far the minima of its passes are apart, for both rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.runner import Result

EXPECTED = Path(__file__).with_name("expected.toml")
REACHED = "[reached]\n"  # from here to its end the file is written by --reached
LEAST_NOISE = 0.05  # two runs of one build differ by so much
PASSES = 3  # that noise takes


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
    reached: float | None = None

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

    def __str__(self) -> str:
        if self.measured is None:
            return f"{self.text}: {self.ratio.name}"
        before = "" if self.ratio.reached is None else f", reached before {self.ratio.reached:.3g}"
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
            reached = content.get("reached", {}).get(ratio.name)
            found.append(Ratio(**{**vars(ratio), "reached": reached}))
    return found


def write_reached(results: list[Result], expected: list[Ratio], path: Path = EXPECTED) -> None:
    """Write what this run reached into the file; what it did not measure stays."""
    reached = {ratio.name: ratio.reached for ratio in expected}
    for verdict in compare(results, expected):
        if verdict.measured is not None:
            reached[verdict.ratio.name] = verdict.measured
    head = path.read_text(encoding="utf-8").partition(REACHED)[0]
    lines = [f'"{name}" = {value:.3g}\n' for name, value in reached.items() if value is not None]
    path.write_text(head + REACHED + "".join(lines), encoding="utf-8")


def noise(result: Result) -> float:
    """Return how much slower the worst pass was than the best."""
    minima = result.get("minima") or [1.0]
    return float(max(minima) / min(minima) - 1)


def compare(results: list[Result], expected: list[Ratio]) -> list[Verdict]:
    return [judge(results, ratio) for ratio in expected]


def judge(results: list[Result], ratio: Ratio) -> Verdict:
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
    both = noise(mine[0]) + noise(other) if ratio.of == "min" else 0.0
    if ratio.reached is not None and measured > ratio.reached * (1 + max(LEAST_NOISE, both)):
        return Verdict(ratio, measured, f"SLOWER than before (noise {both:.0%})", False)
    return Verdict(ratio, measured, "good")


def is_excuse(error: str) -> bool:
    return any(word in error for word in ("not available", "no time left", "left out"))


def is_good(verdicts: list[Verdict]) -> bool:
    """Whether something was compared and nothing is too slow."""
    return any(v.measured is not None for v in verdicts) and all(v.is_good for v in verdicts)
