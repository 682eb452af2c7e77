# benchmarks/__main__.py — the command line: installs, runs, reports
# SPDX-License-Identifier: MIT
"""Every experiment of the paper against real peers: python -m benchmarks (or make bench).

Peers are installed below build/peers, results written to benchmarks/results/<date>. Ctrl-C stops and reports
what is finished.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import re
import shutil
import sys
import time
from collections.abc import Callable, Container
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks import check, environment, registry, report, runner
from benchmarks.registry import Job, MissingError, Peer

LEFT_OUT = "left out by --quick"
DOCS = environment.ROOT / "docs"
PASS = ("min", "VmHWM")  # what every pass is remembered for, not only the best: noise


def parse(arguments: list[str] | None) -> argparse.Namespace:
    def names(text: str) -> list[str]:
        return [name.strip() for name in text.split(",") if name.strip()]

    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--only", type=names, default=[], metavar="NAMES", help=f"experiments, of {', '.join(registry.experiments())}")  # fmt: skip
    parser.add_argument("--peers", type=names, default=[], metavar="NAMES", help="peers beside this project's own rows (default: all)")  # fmt: skip
    parser.add_argument("--no-peers", action="store_true", help="only this project's own rows")
    parser.add_argument("--quick", action="store_true", help="fewer cases, shorter: minutes")
    parser.add_argument("--minutes", type=float, help="start nothing new after so long (with --quick: 12)")  # fmt: skip
    parser.add_argument("--passes", type=int, default=1, help="run every row so many times in turns, the best counts")  # fmt: skip
    parser.add_argument("--seconds", type=float, help="time each row for so long (2; with --quick: 0.3)")  # fmt: skip
    parser.add_argument("--check", action="store_true", help="fail if a ratio is above benchmarks/expected.toml; at least three passes")  # fmt: skip
    parser.add_argument("--reached", action="store_true", help="write the ratios into benchmarks/expected.toml as what was reached")  # fmt: skip
    parser.add_argument("--out", type=Path, help="folder for the results")
    parser.add_argument("--docs", action="store_true", help="also write docs/benchmarks.md")
    parser.add_argument("--report", type=Path, metavar="FILE", help="run nothing, report a results.json again")  # fmt: skip
    return parser.parse_args(arguments)


def say(text: str) -> None:
    print(text, flush=True)


def prepare(peers: list[Peer], jobs: list[Job]) -> dict[str, str]:
    """Install the peers while the own programs are compiled; return why some are missing."""

    def timed(what: str, name: str, function: Callable[..., object], *arguments: object) -> str:
        start, problem = time.perf_counter(), ""
        try:
            function(*arguments)
        except (MissingError, environment.setup.SetupError) as error:
            problem = str(error) or "failed"
        say(f"{what} {name:<20} {time.perf_counter() - start:5.0f} s  {problem}")
        return problem

    others = [peer for peer in peers if not peer.is_own]
    counted = [runner.portable(job)[0] for job in jobs if runner.is_counted(job)]
    programs = {job.way.program: job.way.peer for job in (*jobs, *counted) if job.way.program}
    with ThreadPoolExecutor(1) as installing, ThreadPoolExecutor(1) as compiling:

        def compile_those(is_own: bool, without: Container[str]) -> list[Future[str]]:
            return [
                compiling.submit(
                    timed, "compiled ", program.source, environment.compile_program, program, peer
                )
                for program, peer in programs.items()
                if program is not None and peer.is_own is is_own and peer.name not in without
            ]

        try:
            installed = {
                peer.name: installing.submit(
                    timed, "installed", peer.name, environment.install, peer
                )
                for peer in others
            }
            waiting = compile_those(True, ())
            problems = {name: each.result() for name, each in installed.items() if each.result()}
            waiting += compile_those(False, problems)
            for each in waiting:
                each.result()  # what does not compile is said where it is run
        except BaseException:
            for pool in (installing, compiling):
                pool.shutdown(wait=False, cancel_futures=True)
            raise
    return {name: f"could not be installed: {problem}" for name, problem in problems.items()}


def left_out(job: Job) -> bool:
    """Whether --quick omits the job: ways that are slow to start only have the main case of a model."""
    return job.way.is_slow and job.case.work in ("mlp", "gpt") and not job.case.is_main


def run_all(options: argparse.Namespace, data: dict[str, Any]) -> None:
    """Run the chosen experiments; data["results"] grows with every finished job."""
    end = time.monotonic() + 60 * (options.minutes or (12 if options.quick else 1e9))
    own = {"burtorch", "yardstick"}
    peers = registry.peers(
        own if options.no_peers else own | set(options.peers) if options.peers else ()
    )
    chosen = {
        name: module.jobs(peers, options.quick)
        for name, module in registry.experiments(options.only).items()
    }
    problems = prepare(peers, [job for jobs in chosen.values() for job in jobs])
    for peer in peers:
        data["versions"].update(environment.debian_versions(peer))
    done: dict[tuple[object, ...], runner.Result] = {}
    total, at = options.passes * sum(len(jobs) for jobs in chosen.values()), 0
    for name, jobs in chosen.items():
        references: dict[tuple[str, str], runner.Result] = {}
        first = len(data["results"])
        for i, job in enumerate(jobs * options.passes):
            at += 1
            error = problems.get(job.way.peer.name, "")
            if options.quick and left_out(job):
                error = error or LEFT_OUT
            is_reused = i < len(jobs) and job.key in done
            if is_reused:
                result = done[job.key]
            elif error or time.monotonic() > end:
                error = error or "no time left"
                result = {"row": job.way.row, "case": job.case.title, "error": error}
            else:
                result = run_one(job, options, references.get((job.case.work, job.case.title)))
            best: runner.Result = done.get(job.key, result)
            if "min" in result and not is_reused:
                passes = [*best.get("passes", []), {k: result[k] for k in PASS if k in result}]
                best = min(best, result, key=lambda r: float(r.get("min", math.inf)))
                best = {**best, "passes": passes}
            done[job.key] = best
            if "error" not in best:
                references.setdefault((job.case.work, job.case.title), best)
                data["versions"].update(best.get("versions", {}))
            place = first + i % len(jobs)
            data["results"][place : place + 1] = [{"experiment": name, **best}]
            shown = result.get("error") or f"{report.number(result['min'] * 1e6)} µs"
            say(f"[{at:>3}/{total}] {name:<9} {job.case.title:<12} {job.way.row:<42} {shown}")


def run_one(
    job: Job, options: argparse.Namespace, reference: runner.Result | None
) -> runner.Result:
    seconds = options.seconds or (0.3 if options.quick else 2.0)
    rounds, limit = (5, 120) if options.quick else (9, 600)
    return runner.run(job, seconds, rounds, limit, reference)


def write(data: dict[str, Any], folder: Path, to_docs: bool, expected: list[check.Ratio]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    data["plots"] = report.plots(data, folder)
    text = report.markdown(
        data, check.compare(data["results"], expected, data["machine"]["processor"])
    )
    head = "<!-- {} — how fast burtorch is beside others, measured by `make bench` -->\n<!-- SPDX-License-Identifier: MIT -->\n# Benchmarks\n\n"  # fmt: skip
    (folder / "report.md").write_text(head.format("report.md") + text, encoding="utf-8")
    say(f"\n{text}\nwritten to {folder}")
    if to_docs:
        pictures = DOCS / "benchmarks"
        shutil.rmtree(pictures, ignore_errors=True)
        pictures.mkdir(parents=True)
        for name in data["plots"]:
            shutil.copy(folder / f"{name}.svg", pictures)
        linked = head.format("docs/benchmarks.md") + text.replace("](", "](benchmarks/")
        (DOCS / "benchmarks.md").write_text(linked, encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    now = datetime.datetime.now()
    folder = options.out or environment.ROOT / "benchmarks" / "results" / f"{now:%Y-%m-%d-%H%M}"
    status = 0
    is_held = options.check or options.reached
    expected = check.read() if is_held or sys.version_info >= (3, 11) else []
    if options.check:
        options.passes = max(options.passes, check.PASSES)
    if options.report:
        data = json.loads(options.report.read_text(encoding="utf-8"))
    else:
        words = " ".join(sys.argv[1:] if arguments is None else arguments)
        words = re.sub(r"--out[ =]\S+ ?", "", words)
        data = {
            "date": f"{now:%Y-%m-%d}",
            "command": f"python -m benchmarks {words}".strip(),
            "note": "",
            "machine": environment.machine(),
            "versions": {},
            "results": [],
        }
        try:
            run_all(options, data)
        except KeyboardInterrupt:
            data["note"] = ", interrupted"
            status = 130
    if data["results"]:
        write(data, folder, options.docs, expected)
    if options.check:
        verdicts = check.compare(data["results"], expected, data["machine"]["processor"])
        say("\n".join(["", *map(str, verdicts)]))
        status = status or (0 if check.is_good(verdicts) else 1)
    if options.reached:
        check.write_reached(data["results"], expected, data["machine"]["processor"])
    return status


if __name__ == "__main__":
    sys.exit(main())
