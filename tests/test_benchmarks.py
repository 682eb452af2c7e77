# tests/test_benchmarks.py — the benchmarks' registry, worker, report and check, without any peer
# SPDX-License-Identifier: MIT
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT))

from benchmarks import __main__ as command
from benchmarks import check, environment, registry, report, runner, worker, works
from benchmarks.registry import Case, Job, MissingError, Peer, Program, Way

DATA = ROOT / "tests" / "data" / "benchmarks"
STORED = json.loads((DATA / "results.json").read_text(encoding="utf-8"))


def own_ways(work: str) -> list[Way]:
    return [way for way in registry.peers(["burtorch"])[0].ways if work in way.works]


# The registry


def test_every_experiment_has_this_projects_ways_as_rows() -> None:
    peers = registry.peers()
    assert [peer.name for peer in peers[:2]] == ["burtorch", "yardstick"]
    for name, module in registry.experiments().items():
        for quick in (True, False):
            jobs = module.jobs(peers, quick)
            rows = {job.way.row for job in jobs if job.way.peer.name == "burtorch"}
            assert rows, name
            works_asked = {job.case.work for job in jobs} - {"chain"}
            if name not in ("ablations", "memory", "scaling"):
                assert rows == {way.row for work in works_asked for way in own_ways(work)}
        assert module.TITLE


def test_experiments_are_the_files_of_their_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from benchmarks import experiments

    known = list(registry.experiments())
    files = {path.stem for path in (ROOT / "benchmarks" / "experiments").glob("*.py")}
    assert set(known) == files - {"__init__"}
    assert known[:2] == ["tiny", "small"]
    (tmp_path / "one_more.py").write_text('TITLE = "One more"\nORDER = 1.5\n', encoding="utf-8")
    monkeypatch.setattr(experiments, "__path__", [*experiments.__path__, str(tmp_path)])
    assert list(registry.experiments())[:3] == ["tiny", "one_more", "small"]
    assert list(registry.experiments(["one_more"])) == ["one_more"]


def test_only_the_harness_and_the_worker_are_started() -> None:
    """A benchmark with a main of its own would be one that no report shows."""
    folder = ROOT / "benchmarks"
    mains = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.py")
        if "__main__" in path.read_text(encoding="utf-8")
    }
    # LiteRT's peer converts a model when it is installed.
    assert mains == {"__main__.py", "worker.py", "peers/litert.py"}
    assert not list(folder.glob("*.cpp"))


def test_the_papers_graphs_are_written_once_per_language() -> None:
    folder = ROOT / "benchmarks"
    sources = [path for path in folder.rglob("*") if path.suffix in (".py", ".hpp", ".cpp")]
    found = [p.name for p in sources if "relu(b - a)" in p.read_text(encoding="utf-8")]
    assert sorted(found) == ["graphs.hpp", "works.py"]


def test_default_compilation_is_measured_when_its_background_work_is_done() -> None:
    result = run_worker("Python compiled, auto, bound", "pendulum", seconds=0, rounds=1)
    if "error" in result:  # no C compiler
        assert "no native code" in result["error"]
        return
    replayed = run_worker("Python compiled, replay, bound", "pendulum", seconds=0, rounds=1)
    assert result["outputs"] == pytest.approx(replayed["outputs"], rel=1e-12)


def test_every_peer_offers_something_that_an_experiment_asks_for() -> None:
    peers = registry.peers()
    experiments = registry.experiments().values()
    asked = {job.way.row for module in experiments for job in module.jobs(peers, False)}
    for peer in peers:
        assert peer.ways
        assert {way.row for way in peer.ways} <= asked
        for way in peer.ways:
            assert (way.make is None) != (way.program is None)
            if way.program is not None:
                assert (environment.CPP / f"{way.program.source}.cpp").is_file()


def test_each_row_stands_for_one_way_of_a_work() -> None:
    rows = [(way.row, work) for peer in registry.peers() for way in peer.ways for work in way.works]
    assert len(rows) == len(set(rows))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--only", "tiny,big"], "no experiment is called 'big'; there are tiny, small"),
        (["--only", "tiny", "--peers", "torch,flow"], "no peer is called 'flow'; there are adolc"),
    ],
)
def test_a_wrong_name_is_told(arguments: list[str], text: str) -> None:
    with pytest.raises(SystemExit, match=text):
        command.main(arguments)


# The worker


def run_worker(way: str, work: str, **parameters: object) -> Any:
    words = [sys.executable, "-m", "benchmarks.worker", "burtorch", way, work]
    done = subprocess.run(
        [*words, json.dumps(parameters)], cwd=ROOT, capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    return json.loads(done.stdout)


@pytest.mark.parametrize("work", ["tiny", "small"])
def test_the_worker_times_own_rows_and_prints_one_line(work: str) -> None:
    result = run_worker("Python eager", work, seconds=0.01, rounds=3)
    assert result["outputs"] == pytest.approx(works.WANT[work], rel=1e-12)
    assert len(result["times"]) >= 3
    assert min(result["times"]) > 0
    assert result["gradients"] > len(result["times"])
    if sys.platform == "linux":
        assert result["VmPeak"] >= result["VmHWM"] >= result["private"] > 0


def test_the_worker_runs_models_once() -> None:
    result = run_worker("Python", "mlp", e=4, b=2, seconds=0, rounds=1)
    assert len(result["times"]) == 1
    assert result["gradients"] == 1
    assert result["outputs"] == pytest.approx([3.3171, 17.7, 0.66], rel=0.2)


def test_what_this_build_lacks_is_said() -> None:
    import burtorch as bt

    result = run_worker("Python compiled, replay", "tiny", seconds=0, rounds=1)
    assert ("error" in result) == (not hasattr(bt, "compile"))
    assert result.get("error", registry.NOT_HERE) == registry.NOT_HERE


def test_a_cpp_program_speaks_as_the_worker_does() -> None:
    peer = registry.peers(["yardstick"])[0]
    program = Program("yardstick", ("-O0",))
    for way in peer.ways:
        job = Job(Way(peer, way.name, ("small",), program=program, argument=way.argument), SMALL)
        result = runner.run(job, 0.01, 3, 60, None)
        assert result["outputs"] == pytest.approx(works.WANT["small"], rel=1e-12)
        assert 0 < result["min"] <= result["median"]
        assert result["wall"] > 0
        if sys.platform == "linux":
            assert result["VmPeak"] >= result["VmHWM"] >= result["private"] > 0


@pytest.mark.parametrize("work", ["save", "load"])
def test_own_files_come_back(work: str, tmp_path: Path) -> None:
    found = run_worker("Python", work, seconds=0, rounds=1, path=str(tmp_path / "saved"))
    assert found["outputs"] == list(works.ACTIVATIONS)


@pytest.mark.parametrize("work", ["save", "load"])
def test_files_are_compared_with_what_came_from_them(work: str, tmp_path: Path) -> None:
    kept: list[float] = []
    store, path = list(works.ACTIVATIONS), tmp_path / "saved"

    def save() -> None:
        kept[:] = store

    outputs = works.files(work, save, lambda: kept)(1)
    assert callable(outputs)
    assert outputs() == store
    nothing = works.files("save", lambda: None, lambda: path.read_text())(1)
    assert callable(nothing)
    with pytest.raises(FileNotFoundError):
        nothing()


def test_a_batch_counts_as_many_gradients() -> None:
    def loop(count: int) -> list[float]:
        time.sleep(0.001)
        return [1.0]

    found = worker.measure(loop, {"seconds": 0.001, "rounds": 2}, samples=100)
    assert found["gradients"] % 100 == 0
    assert worker.measure(loop, {"seconds": 0}, samples=100)["gradients"] == 100


# The runner

SMALL = Case("small", "small", want=works.WANT["small"])


def job_printing(text: str, want: tuple[float, ...] = (1.0,)) -> tuple[Job, list[str]]:
    peer = Peer("somebody")
    way = Way(peer, "eager", ("small",), make=lambda work, parameters: lambda count: [])
    return Job(way, Case("small", "small", want=want)), [sys.executable, "-c", text]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('print(\'{"outputs": [2.0], "times": [1.0]}\')', "wrong result: 2"),
        ('print(\'{"outputs": [1.0, 1.0], "times": [1.0]}\')', "wrong result: 1, 1"),
        ('print(\'{"error": "not today"}\')', "not today"),
        ("raise RuntimeError('error 42')", "ended with status 1: RuntimeError: error 42"),
        ("import time; time.sleep(999)", "took longer than 2 s"),
    ],
)
def test_a_failing_row_says_why(text: str, error: str, monkeypatch: pytest.MonkeyPatch) -> None:
    job, words = job_printing(text)
    monkeypatch.setattr(runner, "command_of", lambda job, parameters: words)
    result = runner.run(job, 0.01, 3, 2, None)
    assert result == {"row": "somebody eager", "case": "small", "error": error}


def test_outputs_are_compared_with_the_first_row_where_nothing_else_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job, words = job_printing('print(\'{"outputs": [2.0], "times": [3.0, 1.0, 2.0]}\')', ())
    monkeypatch.setattr(runner, "command_of", lambda job, parameters: words)
    result = runner.run(job, 0.01, 3, 20, None)
    assert (result["min"], result["median"]) == (1.0, 2.0)
    assert "error" in runner.run(job, 0.01, 3, 20, {"outputs": [2.1]})
    assert "error" not in runner.run(job, 0.01, 3, 20, {"outputs": [2.0]})


def test_a_process_with_one_gradient_is_started_five_times(monkeypatch: pytest.MonkeyPatch) -> None:
    job, words = job_printing('print(\'{"outputs": [1.0], "times": [1.0], "VmHWM": 7}\')')
    monkeypatch.setattr(runner, "command_of", lambda job, parameters: words)
    result = runner.run(replace(job, only_once=True), 0.01, 3, 20, None)
    assert result["rounds"] == 5
    assert 0 < result["wall"] <= result["wall_median"]
    assert result["VmHWM"] == result["VmHWM_median"] == 7


def test_instructions_are_counted_or_it_is_said_why_not(monkeypatch: pytest.MonkeyPatch) -> None:
    way = registry.peers(["yardstick"])[0].ways[0]
    job = Job(way, SMALL, count_instructions=True)
    monkeypatch.setattr(runner, "command_of", lambda job, parameters: [str(parameters["count"])])

    def start(command: list[str], cores: int, timeout: float) -> runner.Result:
        if command[0] == "perf":
            raise MissingError("no counter")
        return {"said": f"Collected : {7 * int(command[-1]) + 1000}"}

    monkeypatch.setattr(runner, "start", start)
    monkeypatch.setattr(shutil, "which", lambda name: name)
    found = runner.instructions(job, {})
    assert found["instructions"] == 7
    assert found["instructions_by"].startswith("callgrind")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    reason = "perf is not installed; valgrind is not installed"
    assert runner.instructions(job, {}) == {"no_instructions": reason}


def test_a_peer_that_cannot_be_installed_is_a_row(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(peer: Peer) -> None:
        raise MissingError("no network")

    def measured(job: Job, *rest: object) -> runner.Result:
        figures = {"min": 1e-6, "median": 2e-6, "outputs": [], "VmHWM": 1024, "private": 1024}
        return {"row": job.way.row, "case": job.case.title, **figures}

    monkeypatch.setattr(environment, "install", refuse)
    monkeypatch.setattr(environment, "compile_program", lambda program, peer: Path("program"))
    monkeypatch.setattr(runner, "run", measured)
    monkeypatch.setattr(report, "plots", lambda data, folder: [])
    assert command.main(["--only", "tiny", "--peers", "micrograd", "--out", str(tmp_path)]) == 0
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "| micrograd | *could not be installed: no network* |" in text
    assert "| **burtorch C++ eager** | 1.00 | 2.00 |" in text


def test_ctrl_c_keeps_what_is_finished(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupted(job: Job, *rest: object) -> runner.Result:
        if job.way.name != "C++ eager":
            raise KeyboardInterrupt
        return {"row": job.way.row, "case": job.case.title, "min": 1e-6, "median": 1e-6}

    monkeypatch.setattr(environment, "compile_program", lambda program, peer: Path("program"))
    monkeypatch.setattr(runner, "run", interrupted)
    monkeypatch.setattr(report, "plots", lambda data, folder: [])
    assert command.main(["--only", "small", "--no-peers", "--out", str(tmp_path)]) == 130
    stored = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert [r["row"] for r in stored["results"]] == ["burtorch C++ eager"]
    assert "interrupted" in (tmp_path / "report.md").read_text(encoding="utf-8")


# The report


def test_a_report_is_made_from_stored_results() -> None:
    text = report.markdown(STORED)
    golden = DATA / "report.md"
    if os.environ.get("BURTORCH_GOLDEN") == "update":
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def test_plots_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    few = [r for r in STORED["results"] if r["experiment"] in ("tiny", "gpt")]
    drawn = report.plots({**STORED, "results": few}, tmp_path)
    assert drawn == ["tiny-0", "gpt-0"]
    for name in drawn:
        assert "<svg" in (tmp_path / f"{name}.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("x", "text"),
    [(0.0123456, "0.0123"), (1.0, "1.00"), (612.5, "612"), (1234567.0, "1.23e+06"), (4e-5, "4.00e-05")],
)  # fmt: skip
def test_numbers_have_three_digits(x: float, text: str) -> None:
    assert report.number(x) == text


# The check


RATIO = check.Ratio("small", "small", "a", ("b",), at_most=1.0)


def result(row: str, **what: Any) -> runner.Result:
    return {"experiment": "small", "case": "small", "row": row, **what}


def judge(results: list[runner.Result], ratio: check.Ratio) -> check.Verdict:
    return check.compare(results, [ratio], "this processor")[0]


def test_a_ratio_above_what_is_asked_fails() -> None:
    verdict = judge([result("a", min=0.9), result("b", min=1.0)], RATIO)
    assert verdict.is_good
    assert verdict.measured == 0.9
    assert str(verdict) == "good: small, small: a / b: 0.9, asked at most 1"
    verdict = judge([result("a", min=1.1), result("b", min=1.0)], RATIO)
    assert not verdict.is_good
    assert verdict.text == "SLOWER than asked"


def passes(row: str, *figures: float, of: str = "min", **more: Any) -> runner.Result:
    return result(row, **{of: min(figures)}, passes=[{of: x} for x in figures], **more)


def test_a_ratio_above_what_was_reached_fails_unless_the_passes_differ_as_much() -> None:
    ratio = replace(RATIO, reached={"this processor": 0.5})
    steady = [passes("a", 0.6, 0.606), passes("b", 1.0, 1.0)]
    assert judge(steady, ratio).text == "SLOWER than before (noise 1.0%)"
    assert judge([passes("a", 0.6, 0.7), passes("b", 1.1, 1.0)], ratio).text == "good"
    assert judge(steady, replace(ratio, reached={"this processor": 0.59})).text == "good"


def test_rounds_of_a_pass_are_noise_too() -> None:
    ratio = replace(RATIO, reached={"this processor": 0.5})
    one = [result("a", min=0.6, quartile=0.606), result("b", min=1.0, quartile=1.02)]
    assert judge(one, ratio).text == "SLOWER than before (noise 3.0%)"
    one[1]["quartile"] = 1.3
    assert judge(one, ratio).text == "good"


def test_peak_memory_has_a_noise_of_its_own() -> None:
    ratio = replace(RATIO, reached={"this processor": 0.5}, of="VmHWM")
    steady = [passes("a", 60, 60, of="VmHWM"), passes("b", 100, 102, of="VmHWM")]
    assert judge(steady, ratio).text == "SLOWER than before (noise 2.0%)"


def test_without_a_noise_nothing_is_slower_than_before() -> None:
    verdict = judge(
        [result("a", min=0.6), result("b", min=1.0)],
        replace(RATIO, reached={"this processor": 0.5}),
    )
    assert verdict.is_good
    assert verdict.text == "good as asked; noise unknown, not compared with before"


def test_what_another_processor_reached_is_shown_and_not_judged() -> None:
    steady = [passes("a", 0.6, 0.6), passes("b", 1.0, 1.0)]
    verdict = judge(steady, replace(RATIO, reached={"another": 0.1}))
    assert verdict.is_good
    assert str(verdict).endswith("asked at most 1, reached before 0.1 on another processor")
    lines = report.verdict_lines([verdict])
    assert lines[-1] == "| small | small | a / b | 0.6 | 1 | 0.1 on another processor | good |"
    both = replace(RATIO, reached={"this processor": 0.5, "another": 0.1})
    assert judge(steady, both).text == "SLOWER than before (noise 0.0%)"
    assert judge(steady, both).before == "0.5"


def test_a_processors_name_has_the_numbers_of_its_model(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Many virtual machines with different processors only say "Intel(R) Xeon(R) Processor"."""
    text = "processor : 0\ncpu family : 6\nmodel : 143\nmodel name : A Processor\nstepping : 8\n"
    monkeypatch.setattr(Path, "read_text", lambda path: f"{text}\n{text}")
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    wanted = "A Processor, family 6, model 143, stepping 8, 2 cores"
    assert environment.processor() == wanted


def test_of_several_rows_the_fastest_that_ran_counts() -> None:
    ratio = replace(RATIO, to=("b", "c", "d"), called="the best")
    rows = [
        result("a", min=1.0),
        result("b", min=4.0),
        result("c", min=2.0),
        result("d", error="x"),
    ]
    verdict = judge(rows, ratio)
    assert verdict.measured == 0.5
    assert verdict.ratio.what == "a / the best"


def test_other_figures_and_other_cases_are_compared() -> None:
    ratio = replace(RATIO, to=("a",), to_case="big", of="VmHWM")
    rows = [result("a", min=9.0, VmHWM=50), {**result("a", min=1.0, VmHWM=100), "case": "big"}]
    assert judge(rows, ratio).measured == 0.5
    assert ratio.what == "a / big, peak memory"


def test_a_missing_peer_is_skipped_but_a_failure_of_ones_own_is_not() -> None:
    missing, good = {"error": "could not be installed"}, {"min": 1.0}
    verdict = judge([result("a", **good), result("b", **missing)], RATIO)
    assert verdict.is_good
    assert str(verdict) == "skipped (could not be installed): small, small: a / b"
    assert not check.is_good([verdict]), "nothing was compared"
    wrong = {"error": "wrong result: 1"}
    assert not judge([result("a", **wrong), result("b", **good)], RATIO).is_good


@pytest.mark.skipif(sys.version_info < (3, 11), reason="reads TOML")
def test_expected_ratios_name_rows_that_exist_even_in_a_quick_run() -> None:
    peers = registry.peers()
    known = {
        (name, job.case.title, job.way.row)
        for name, module in registry.experiments().items()
        for job in module.jobs(peers, True)
    }
    expected = check.read()
    assert len({ratio.name for ratio in expected}) == len(expected)
    for ratio in expected:
        assert (ratio.experiment, ratio.case, ratio.row) in known
        for row in ratio.to:
            assert (ratio.experiment, ratio.to_case or ratio.case, row) in known


@pytest.mark.skipif(sys.version_info < (3, 11), reason="reads TOML")
def test_what_a_run_reached_is_written_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "expected.toml"
    text = """[[ratio]]
experiment = "small"
row = "a"
to = "b"
at_most = { "small" = 1.0, "big / small" = 2.0 }

[reached."this processor"]
"small, big: a / b" = 0.25

[reached."another"]
"small, small: a / b" = 0.125
"""
    path.write_text(text, encoding="utf-8")
    here, there = "this processor", "another"
    assert [ratio.reached for ratio in check.read(path)] == [{there: 0.125}, {here: 0.25}]
    rows = [result("a", min=1.0), result("b", min=3.0)]
    check.write_reached(rows, check.read(path), here, path)
    found = [ratio.reached for ratio in check.read(path)]
    assert found == [{here: 0.333, there: 0.125}, {here: 0.25}]
    assert path.read_text(encoding="utf-8").startswith(text.partition("[reached.")[0])
    check.write_reached(rows, check.read(path), 'a "third"', path)
    assert check.read(path)[0].reached['a "third"'] == 0.333


def test_check_reads_stored_results_and_sets_the_status(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(report, "plots", lambda data, folder: [])
    ratio = check.Ratio("gpt", "b=1", "burtorch Python", ("PyTorch eager",), at_most=0.1)
    arguments = ["--report", str(DATA / "results.json"), "--out", str(tmp_path), "--check"]
    monkeypatch.setattr(check, "read", lambda: [ratio])
    assert command.main(arguments) == 0
    monkeypatch.setattr(check, "read", lambda: [replace(ratio, at_most=0.001)])
    assert command.main(arguments) == 1
    line = "SLOWER than asked: gpt, b=1: burtorch Python / PyTorch eager: 0.0196"
    assert line in capsys.readouterr().out
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "| gpt | b=1 | burtorch Python / PyTorch eager | 0.0196 | 0.001 | – | SLOWER" in text
    monkeypatch.setattr(check, "read", list)
    assert command.main(arguments) == 1  # nothing was compared


def test_docs_are_the_report_with_pictures_in_a_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def draw(data: object, folder: Path) -> list[str]:
        (folder / "tiny-0.svg").write_text("<svg/>", encoding="utf-8")
        return ["tiny-0"]

    monkeypatch.setattr(report, "plots", draw)
    monkeypatch.setattr(command, "DOCS", tmp_path / "docs")
    stored = ["--report", str(DATA / "results.json"), "--out", str(tmp_path / "out")]
    assert command.main([*stored, "--docs"]) == 0
    text = (tmp_path / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert text.startswith("<!-- docs/benchmarks.md — ")
    assert "](benchmarks/tiny-0.svg)" in text
    assert (tmp_path / "docs" / "benchmarks" / "tiny-0.svg").is_file()


def test_of_several_passes_the_best_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    order: list[str] = []

    def measured(job: Job, *rest: object) -> runner.Result:
        is_better = (job.way.row in order) != (job.way.name == "C++ eager")
        order.append(job.way.row)
        figures = {"min": 1.0 if is_better else 2.0, "median": 9.0, "VmHWM": 1024, "private": 1024}
        return {"row": job.way.row, "case": job.case.title, **figures}

    monkeypatch.setattr(environment, "compile_program", lambda program, peer: Path("program"))
    monkeypatch.setattr(runner, "run", measured)
    monkeypatch.setattr(report, "plots", lambda data, folder: [])
    command.main(["--only", "tiny", "--no-peers", "--passes", "2", "--out", str(tmp_path)])
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))["results"]
    rows = [r["row"] for r in results]
    assert order == rows * 2
    assert {r["min"] for r in results} == {1.0}
    assert {tuple(sorted(p["min"] for p in r["passes"])) for r in results} == {(1.0, 2.0)}
    assert all(p["VmHWM"] == 1024 for r in results for p in r["passes"])
