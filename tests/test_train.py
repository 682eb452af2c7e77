# tests/test_train.py — data, training that goes on bit for bit, checkpoints, the command line
# SPDX-License-Identifier: MIT
from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from burtorch import data, train
from burtorch.__main__ import main as command

TINY = {
    "mlp": {"hidden": 8, "embed": 4, "context": 4},
    "gpt": {"context": 4, "d_model": 8, "layers": 1, "heads": 2},
}


def settings(model: str, **changes: Any) -> train.Settings:
    base: dict[str, Any] = {"steps": 20, "batch": 8, "micro_batch": 4, "every": 10}
    return train.Settings(model, TINY[model], **{**base, **changes})


POSIX = pytest.mark.skipif(os.name != "posix", reason="signals and pipes of POSIX")
MODELS = pytest.mark.parametrize("model", ["mlp", "gpt"])


# ---- data ----------------------------------------------------------------------------------------


def test_default_texts_need_no_download() -> None:
    words = data.default_words()
    assert set(words) == set("abcdefghijklmnopqrstuvwxyz\n")
    assert len(words.split()) > 3000
    assert len(data.vocabulary(words)) == 27
    assert len(data.default_text()) > 100_000


def test_characters_become_indices_and_come_back() -> None:
    text = "añb\nc€𝄞\n"
    characters = data.vocabulary(text)
    assert characters[0] == "\n"
    assert sorted(characters) == sorted(set(text))
    assert data.decode(data.encode(text, characters), characters) == text
    with pytest.raises(data.DataError, match="the vocabulary has no 'z'"):
        data.encode("az", characters)


def test_windows_are_a_text_and_its_next_characters() -> None:
    x, y = data.Windows(np.arange(10), 4)[np.array([0, 5])]
    assert x.tolist() == [[0, 1, 2, 3], [5, 6, 7, 8]]
    assert y.tolist() == [[1, 2, 3, 4], [6, 7, 8, 9]]
    assert len(data.Windows(np.arange(10), 4)) == 6
    with pytest.raises(data.DataError, match="4 characters are too few for a context of 4"):
        data.Windows(np.arange(4), 4)


def test_words_do_not_look_behind_their_line() -> None:
    words = data.Words(np.array([1, 2, 3, 0, 4, 5, 0]), 2)
    x, y = words[np.arange(len(words))]
    assert x.tolist() == [[0, 0], [0, 1], [1, 2], [2, 3], [0, 0], [0, 4], [4, 5]]
    assert y.tolist() == [1, 2, 3, 0, 4, 5, 0]


def test_a_corpus_loses_nothing() -> None:
    text = data.default_words()
    for shuffled in (False, True):
        corpus = data.corpus(text, shuffle_lines=shuffled)
        both = data.decode([*corpus.train, *corpus.valid], corpus.characters)
        assert sorted(both.splitlines()) == sorted(text.splitlines())
        assert len(corpus.valid) == pytest.approx(len(text) / 10, rel=0.1)


def test_files_that_are_no_text(tmp_path: Path) -> None:
    with pytest.raises(data.DataError, match="can't be read"):
        data.read_text(tmp_path / "missing.txt")
    (tmp_path / "binary").write_bytes(b"ab\xff")
    with pytest.raises(data.DataError, match="no text in UTF-8: byte 2 is wrong"):
        data.read_text(tmp_path / "binary")


# ---- training ------------------------------------------------------------------------------------


@MODELS
@pytest.mark.parametrize("schedule", ["constant", "cosine", "linear"])
@pytest.mark.parametrize("threads", [1, 2])
def test_resumed_runs_go_on_bit_for_bit(
    model: str, schedule: str, threads: int, tmp_path: Path
) -> None:
    whole = train.Training(settings(model, schedule=schedule, threads=threads))
    assert whole.fit(quiet=True)
    assert whole.steps_made == 20

    part = train.Training(settings(model, schedule=schedule, threads=threads))
    part.fit(lambda run, speed: run.stop(), quiet=True)  # at the first validation, after 10 steps
    assert part.steps_made == 10
    part.save(tmp_path)
    rest = train.Training.resume(tmp_path)
    assert rest.fit(quiet=True)

    assert rest.model.values.tobytes() == whole.model.values.tobytes()
    assert rest.history.train == whole.history.train
    assert rest.history.valid == whole.history.valid
    one, other = rest.optimizer.state_dict(), whole.optimizer.state_dict()
    assert one["lr"] == other["lr"]
    for name, numbers in one["state"][0].items():
        assert numbers.tobytes() == other["state"][0][name].tobytes()


@MODELS
def test_training_learns(model: str) -> None:
    run = train.Training(settings(model, steps=300, every=300, lr=0.01))
    before = run.validate()
    run.fit(quiet=True)
    assert run.history.valid[-1][1] < before - 0.3


def test_a_run_of_so_many_seconds_ends(tmp_path: Path) -> None:
    run = train.Training(settings("mlp", steps=10**9, every=10**9))
    assert not run.fit(seconds=0.05, quiet=True)
    assert 0 < run.steps_made < 10**9
    assert len(run.history.valid) == 1


def test_checkpoints_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    with pytest.raises(train.TrainingError, match="there is no checkpoint"):
        train.load(tmp_path)
    path = train.Training(settings("mlp")).save(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(train.TrainingError, match="can't be read"):
        train.load(tmp_path)
    from safetensors.numpy import save_file

    save_file({"x": np.zeros(3)}, path)
    with pytest.raises(train.TrainingError, match="is not a checkpoint of burtorch train"):
        train.Training.resume(tmp_path)


def test_a_run_is_not_resumed_on_another_text(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("one two three\n" * 30)
    train.Training(settings("gpt", data=str(text))).save(tmp_path)
    text.write_text("one two four\n" * 30)
    with pytest.raises(train.TrainingError, match="was trained on another text"):
        train.Training.resume(tmp_path)


# ---- the command line ----------------------------------------------------------------------------


def flags(model: str, *more: str) -> list[str]:
    sizes = [f"--{name.replace('_', '-')}={size}" for name, size in TINY[model].items()]
    return ["train", model, *sizes, "--batch=8", "--micro-batch=4", "--every=10", *more]


@MODELS
def test_train_resume_and_generate(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the cat sat\non the mat\n" * 40)
    out, whole = str(tmp_path / "out"), str(tmp_path / "whole")
    common = [f"--data={text}", "--seed=3"]
    assert command(flags(model, *common, "--steps=20", f"--out={whole}")) == 0
    assert command(flags(model, *common, "--steps=10", f"--out={out}")) == 0
    said = capsys.readouterr().out
    assert re.search(r"step     10  loss \d\.\d+  validation \d\.\d+  [\d,]+ gradients/s", said)

    assert command(["train", model, "--steps=20", f"--out={out}"]) == 1
    assert "holds a run already" in capsys.readouterr().err
    assert command(["train", model, "--resume", "--seed=4", f"--out={out}"]) == 1
    assert "keeps its sizes and its seed" in capsys.readouterr().err
    assert command(["train", model, "--resume", "--steps=20", f"--out={out}"]) == 0
    one, other = train.load(Path(out))[0], train.load(Path(whole))[0]
    assert one.values.tobytes() == other.values.tobytes()
    capsys.readouterr()

    assert command(["generate", out, "--length=40", "--seed=1", "--prompt=the"]) == 0
    written = capsys.readouterr().out
    assert written.startswith("the")
    assert len(written) == len("the") + 40 + 1
    assert set(written) <= set(text.read_text())
    assert command(["generate", out, "--prompt=Ω"]) == 1
    assert "the vocabulary has no 'Ω'" in capsys.readouterr().err
    assert command(["generate", str(tmp_path / "nowhere")]) == 1
    assert "there is no checkpoint" in capsys.readouterr().err


def test_mistakes_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    huge = 10**23
    (tmp_path / "short.txt").write_text("one two\n" * 9)
    for arguments, words in [
        (["--data=missing.txt"], "missing.txt can't be read"),
        (["--heads=3"], "8 columns can't be shared by 3 heads"),
        (["--layers=0"], "layers must be at least 1: 0"),
        ([f"--layers={huge}"], "layers must be less than 2**31"),
        (["--batch=0"], "batch must be at least 1: 0"),
        (["--batch=99999999999"], "batch must be less than 2**31"),
        ([f"--micro-batch={huge}"], "micro_batch must be less than 2**31"),
        (["--seed=-1"], "seed can't be negative: -1"),
        ([f"--seed={huge}"], "seed must be less than 2**64"),
        (["--lr=-1"], "lr can't be negative"),
        (["--lr=nan"], "lr must be a number: nan"),
        (["--d-model=2000000000"], "a model of these sizes is too large: context 4, d_model 2000"),
        (["--context=50", f"--data={tmp_path / 'short.txt'}"], "too few for a context of 50"),
    ]:
        assert command(flags("gpt", f"--out={tmp_path / 'new'}", *arguments)) == 1
        said = capsys.readouterr()
        assert words in said.err
        assert (said.err.count("\n"), said.out) == (1, "")
    assert not (tmp_path / "new").exists()


def test_a_folder_that_cannot_be_made_is_known_before_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        assert command(flags("mlp", f"--out={out}")) == 1
        said = capsys.readouterr()
        assert str(out) in said.err
        assert (said.err.count("\n"), said.out) == (1, "")


def test_a_checkpoint_that_cannot_be_written_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: Any, **options: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("burtorch.io.save", full)
    assert command(flags("mlp", "--steps=20", f"--out={tmp_path}")) == 1
    assert capsys.readouterr().err == "burtorch: [Errno 28] No space left on device\n"


def test_a_loss_that_is_not_finite_ends_the_run_and_spares_the_checkpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = f"--out={tmp_path}"
    assert command(flags("gpt", "--steps=10", out)) == 0
    good = (tmp_path / train.CHECKPOINT).read_bytes()
    assert command(["train", "gpt", "--resume", "--steps=1000", "--lr=1e20", out]) == 1
    error = capsys.readouterr().err
    assert re.match(r"burtorch: the loss is (nan|inf) after step 1\d; a learning rate below", error)
    assert error.count("\n") == 1
    assert (tmp_path / train.CHECKPOINT).read_bytes() == good


def test_how_many_steps_are_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = f"--out={tmp_path}"
    assert command(flags("mlp", "--steps=10", out)) == 0
    capsys.readouterr()
    assert command(["train", "mlp", "--resume", out]) == 0
    assert capsys.readouterr().out.startswith("nothing is left to do: all 10 steps are made\n")
    assert command(["train", "mlp", "--resume", "--steps=9", out]) == 1
    assert "has made 10 steps already, more than 9" in capsys.readouterr().err


def test_a_run_is_resumed_from_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "text.txt").write_text("one two three\n" * 30)
    monkeypatch.chdir(tmp_path)
    assert command(flags("gpt", "--steps=10", "--data=text.txt", "--out=run")) == 0
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert command(["train", "gpt", "--resume", "--steps=20", "--out=../run"]) == 0


def test_a_run_is_resumed_or_forgotten_not_both(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command(["train", "gpt", "--resume", "--overwrite"])
    assert "not allowed with" in capsys.readouterr().err


def test_mistakes_of_generate_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train.Training(settings("mlp")).save(tmp_path)
    for option, words in [
        ("--seed=-1", "seed can't be negative: -1"),
        (f"--seed={2**64}", "seed must be less than 2**64"),
        ("--length=-1", "length must be at least 0: -1"),
        (f"--length={2**64}", "length must be less than 2**31"),
        ("--temperature=nan", "the temperature must be positive"),
    ]:
        assert command(["generate", str(tmp_path), option]) == 1
        error = capsys.readouterr().err
        assert words in error
        assert error.count("\n") == 1


# ---- Ctrl-C and pipes ----------------------------------------------------------------------------


def start(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "burtorch", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
    )


def steps_when_stopped(process: subprocess.Popen[str], folder: Path) -> int:
    """How many steps a run has made that Ctrl-C ended; its checkpoint is whole."""
    said, error = process.communicate(timeout=60)
    # The second may come when all is saved and said, while Python ends.
    assert process.returncode in (130, -signal.SIGINT)
    assert error in ("", "burtorch: interrupted\n")
    found = re.search(r"stopped after step (\d+), saved", said)
    assert found is not None, said
    run = train.Training.resume(folder)
    assert run.steps_made == int(found[1]) == len(run.history.train)
    return run.steps_made


@POSIX
def test_ctrl_c_saves(tmp_path: Path) -> None:
    process = start(*flags("gpt", "--steps=100000000", f"--out={tmp_path}"), cwd=tmp_path)
    assert process.stdout is not None
    while "step" not in process.stdout.readline():
        pass
    process.send_signal(signal.SIGINT)
    assert steps_when_stopped(process, tmp_path) >= 10


@POSIX
@pytest.mark.parametrize("pause", [0.0, 0.001, 0.003, 0.01])
@pytest.mark.parametrize("batch", [8, 200_000])  # steps of less than a millisecond, and of seconds
def test_ctrl_c_twice_saves(batch: int, pause: float, tmp_path: Path) -> None:
    options = ["--steps=100000000", f"--out={tmp_path}", "--every=1000000", f"--batch={batch}"]
    process = start(*flags("gpt", *options), cwd=tmp_path)
    assert process.stdout is not None
    assert "parameters" in process.stdout.readline()
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(pause)
    steps_when_stopped(process, tmp_path)


def test_a_step_that_is_broken_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    run, other = (train.Training(settings("mlp")) for _ in range(2))
    compute = run.model.loss_and_grad

    def interrupted(*arguments: Any) -> float:
        compute(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(run.model, "loss_and_grad", interrupted)
        assert not run.fit(quiet=True)
    for each in (run, other):
        assert each.fit(quiet=True)
    assert run.model.values.tobytes() == other.model.values.tobytes()
    assert run.history == other.history


@POSIX
def test_ctrl_c_while_a_text_is_read_is_one_line(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "text")
    process = start("train", "gpt", "--data=text", cwd=tmp_path)
    with (tmp_path / "text").open("w"):  # when somebody reads
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (130, "burtorch: interrupted\n")
    assert not (tmp_path / "burtorch-gpt").exists()


def test_ctrl_c_while_text_is_written_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: Any) -> str:
        raise KeyboardInterrupt

    train.Training(settings("gpt")).save(tmp_path)
    monkeypatch.setattr(train, "sample", interrupted)
    assert command(["generate", str(tmp_path)]) == 130
    assert capsys.readouterr().err == "burtorch: interrupted\n"


@POSIX
def test_a_run_nobody_listens_to_is_one_line_and_saved(tmp_path: Path) -> None:
    with start(*flags("gpt", "--steps=100000000", f"--out={tmp_path}"), cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == "burtorch: nobody reads what is printed\n"
    assert process.returncode == 1
    assert train.Training.resume(tmp_path).steps_made >= 10
