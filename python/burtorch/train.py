# python/burtorch/train.py — `burtorch train` and `burtorch generate`: training that can be stopped and resumed
# SPDX-License-Identifier: MIT
"""Trains CharMLP or GPT on a text, with checkpoints from which it goes on bit for bit."""

from __future__ import annotations

import argparse
import inspect
import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Callable

import numpy as np

from . import data, io, optim
from ._core import Error
from .nn import GPT, CharMLP

CHECKPOINT = "checkpoint.safetensors"
_VALIDATION_SAMPLES = 2048


class TrainingError(Error):
    """Something the person at the keyboard has to decide; the message says what."""


@dataclass(frozen=True)
class Settings:
    """Everything a run depends on; saved with it."""

    model: str  # mlp or gpt
    config: dict[str, int]  # of the model, without its vocabulary
    data: str | None = None
    steps: int = 1000
    batch: int = 64
    lr: float = 3e-3
    schedule: str = "constant"
    seed: int = 0
    micro_batch: int = 32
    threads: int = 1
    every: int = 100  # steps between validations, each followed by a checkpoint


@dataclass
class History:
    """Losses so far: of each step, and (step, loss) of each validation."""

    train: list[float] = field(default_factory=list)
    valid: list[tuple[int, float]] = field(default_factory=list)


class _CtrlC:
    """Ctrl-C while a run goes on: the first asks it to stop, the next breaks the step at hand, if one is.

    It breaks nothing else, so that what is saved is saved whole.
    """

    def __init__(self) -> None:
        self.asked = False
        self._depth = 0
        self._breaks = False

    def _handle(self, number: int, frame: Any) -> None:
        breaks = self.asked and self._breaks
        self.asked = True
        if breaks:
            self._breaks = False
            raise KeyboardInterrupt

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Listen, where a thread can: in the main one. May be nested."""
        if self._depth == 0:
            self.asked = False
        listens = self._depth == 0 and threading.current_thread() is threading.main_thread()
        before = signal.signal(signal.SIGINT, self._handle) if listens else None
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if listens:
                signal.signal(signal.SIGINT, before or signal.SIG_DFL)

    @contextmanager
    def breaking(self) -> Iterator[None]:
        """What is done inside may end with a KeyboardInterrupt."""
        self._breaks = True
        try:
            yield
        finally:
            self._breaks = False


def _demand_count(name: str, count: int, least: int = 1) -> None:
    if count < least:
        raise TrainingError(f"{name} must be at least {least}: {count}")
    if count >= 2**31:
        raise TrainingError(f"{name} must be less than 2**31: {count}")


class Training:
    """A run: model, optimizer, random numbers, and what came out so far."""

    def __init__(self, settings: Settings) -> None:
        for name in ("steps", "batch", "micro_batch", "threads", "every"):
            _demand_count(name, getattr(settings, name))
        for name, size in settings.config.items():
            _demand_count(name, size)
        if not math.isfinite(settings.lr):
            raise TrainingError(f"lr must be a number: {settings.lr}")
        self.settings = settings
        self.history = History()
        is_gpt = settings.model == "gpt"
        if settings.data is not None:
            text = data.read_text(settings.data)
        else:
            text = data.default_text() if is_gpt else data.default_words()
        self.corpus = data.corpus(text, shuffle_lines=not is_gpt)
        kind, cut = (GPT, data.Windows) if is_gpt else (CharMLP, data.Words)
        usual = inspect.signature(kind).parameters["context"].default
        context = settings.config.get("context", usual)
        self._train = cut(self.corpus.train, context)
        valid = cut(self.corpus.valid, context)
        config: dict[str, Any] = {
            "vocab": len(self.corpus.characters),
            "seed": settings.seed,
            **settings.config,
        }
        try:
            self.model: GPT | CharMLP = kind(**config)
        except MemoryError as error:
            sizes = ", ".join(f"{name} {size}" for name, size in settings.config.items())
            raise TrainingError(f"a model of these sizes is too large: {sizes}") from error
        count = min(_VALIDATION_SAMPLES, len(valid))
        self._valid = valid[np.linspace(0, len(valid) - 1, count).astype(np.int64)]
        rates: dict[str, Any] = {
            "constant": lambda: optim.Constant(settings.lr),
            "linear": lambda: optim.Linear(settings.lr, 0.0, settings.steps),
            "cosine": lambda: optim.Cosine(
                settings.lr, settings.steps, warm_up=settings.steps // 20
            ),
        }
        self.optimizer = optim.AdamW(self.model, lr=rates[settings.schedule]())
        self._random = np.random.Generator(np.random.PCG64(settings.seed))
        self._ctrl_c = _CtrlC()

    @property
    def steps_made(self) -> int:
        return self.optimizer.steps

    def step(self) -> float:
        """One step on a random batch; returns the batch's loss before it."""
        before = self._random.bit_generator.state
        try:
            with self._ctrl_c.breaking():
                at = self._random.integers(0, len(self._train), self.settings.batch)
                x, y = self._train[at]
                loss = self.model.loss_and_grad(
                    x, y, self.settings.micro_batch, self.settings.threads
                )
        except KeyboardInterrupt:
            self._random.bit_generator.state = before  # as if it had not begun
            raise
        self._demand_finite(loss)
        self.optimizer.step()
        self.history.train.append(loss)
        return loss

    def _demand_finite(self, loss: float) -> None:
        if not math.isfinite(loss):
            raise TrainingError(
                f"the loss is {loss} after step {self.steps_made}; a learning rate below "
                f"{self.settings.lr:g} may help"
            )

    def validate(self) -> float:
        """The loss on text that is not trained on."""
        loss = self.model.loss(*self._valid, micro_batch=self.settings.micro_batch)
        self._demand_finite(loss)
        self.history.valid.append((self.steps_made, loss))
        return loss

    def sample(self, n: int, seed: int = 0, prompt: str = "", temperature: float = 1.0) -> str:
        return sample(self.model, self.corpus.characters, n, seed, prompt, temperature)

    def stop(self) -> None:
        """End fit after the step that is going on."""
        self._ctrl_c.asked = True

    def stoppable(self) -> AbstractContextManager[None]:
        """Ctrl-C ends fit inside of this, or the next fit, and breaks nothing else: with run.stoppable(): …"""
        return self._ctrl_c.heard()

    def fit(
        self,
        at_validation: Callable[[Training, float], None] = lambda run, loss: None,
        seconds: float | None = None,
        quiet: bool = False,
    ) -> bool:
        """Make the steps that are left, or as many as fit into so many seconds.

        at_validation(run, gradients per second) is called after each validation. Returns whether the run is
        complete: Ctrl-C ends it after the step that is going on, twice Ctrl-C breaks that step. A loss that
        is not finite is a TrainingError.
        """
        from tqdm import tqdm  # type: ignore[import-untyped]

        end = self.settings.steps
        smooth, busy, count = None, 0.0, 0
        start = time.perf_counter()
        bar = tqdm(total=end, initial=self.steps_made, unit="step", disable=True if quiet else None)
        with self.stoppable(), bar:
            while self.steps_made < end and not self._ctrl_c.asked:
                begin = time.perf_counter()
                try:
                    loss = self.step()
                except KeyboardInterrupt:
                    break
                busy += time.perf_counter() - begin
                count += self.settings.batch
                smooth = loss if smooth is None else 0.95 * smooth + 0.05 * loss
                if not bar.disable:
                    bar.set_postfix_str(
                        f"loss {smooth:.3f}, {count / busy:,.0f} gradients/s", False
                    )
                    bar.update()
                late = seconds is not None and time.perf_counter() - start > seconds
                if self.steps_made % self.settings.every == 0 or self.steps_made == end or late:
                    self.validate()
                    with tqdm.external_write_mode():
                        at_validation(self, count / busy)
                if late:
                    break
        return self.steps_made == end

    # ---- checkpoints -----------------------------------------------------------------------

    def save(self, folder: Path) -> Path:
        """Write everything the run needs to go on, as one file."""
        about = {
            "training": asdict(self.settings),
            "characters": self.corpus.characters,
            "digest": self.corpus.digest,
        }
        arrays = {
            "train": np.array(self.history.train, np.float64),
            "valid": np.array(self.history.valid, np.float64).reshape(-1, 2),
        }
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / CHECKPOINT
        io.save(
            self.model,
            path,
            optimizer=self.optimizer,
            random=self._random,
            arrays=arrays,
            about=about,
        )
        return path

    @classmethod
    def resume(cls, folder: Path, **changes: Any) -> Training:
        """Go on where a saved run was; changes replace some of its settings."""
        checkpoint = _read(folder)
        about = checkpoint.about
        run = cls(replace(Settings(**about["training"]), **changes))
        if run.corpus.digest != about["digest"]:
            raise TrainingError(
                f"{folder} was trained on another text than {run.settings.data or 'the default'}"
            )
        checkpoint.restore(model=run.model, optimizer=run.optimizer, random=run._random)
        run.history = History(
            checkpoint.arrays["train"].tolist(),
            [(int(step), loss) for step, loss in checkpoint.arrays["valid"].tolist()],
        )
        if run.steps_made > run.settings.steps:
            raise TrainingError(
                f"{folder} has made {run.steps_made} steps already, more than {run.settings.steps}"
            )
        return run


def _read(folder: Path) -> io.Checkpoint:
    path = folder / CHECKPOINT if folder.is_dir() else folder
    if not path.is_file():
        raise TrainingError(f"there is no checkpoint {path}; `burtorch train` makes one")
    try:
        checkpoint = io.load_checkpoint(path)
    except (OSError, ValueError) as error:
        raise TrainingError(str(error)) from error
    if not checkpoint.about.keys() >= {"training", "characters", "digest"}:
        raise TrainingError(f"{path} is not a checkpoint of burtorch train")
    return checkpoint


def load(folder: Path) -> tuple[GPT | CharMLP, str]:
    """The model of a saved run and its characters."""
    checkpoint = _read(folder)
    model: GPT | CharMLP = checkpoint.model()
    return model, checkpoint.about["characters"]


def sample(
    model: GPT | CharMLP,
    characters: str,
    n: int,
    seed: int = 0,
    prompt: str = "",
    temperature: float = 1.0,
) -> str:
    """A text of n characters that continues the prompt."""
    ids = model.generate(n, seed, data.encode(prompt, characters).tolist(), temperature)
    return prompt + data.decode(ids, characters)


# ---- command line --------------------------------------------------------------------------------


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    """What was said on the command line, and nothing else."""
    names = Settings.__dataclass_fields__.keys() - {"model", "config"}
    given = {name: getattr(options, name) for name in names if hasattr(options, name)}
    if "data" in given:
        given["data"] = str(Path(given["data"]).resolve())  # to resume from any folder
    return given


@contextmanager
def _mistakes_in_one_line() -> Iterator[None]:
    """Turn what a person at the keyboard can mend into a TrainingError of one line."""
    try:
        yield
    except BrokenPipeError:
        raise
    except (OSError, ValueError, TypeError, OverflowError, MemoryError) as error:
        wrong = str(error).partition("\n")[0] or "there is not enough memory"
        raise TrainingError(wrong) from error


def _begin(options: argparse.Namespace, out: Path) -> Training:
    """The run that the options describe, and a folder for it."""
    sizes = {
        name: getattr(options, name)
        for name in ("hidden", "embed", "context", "d_model", "layers", "heads")
        if hasattr(options, name)
    }
    changes = _settings(options)
    if options.resume:
        if sizes or "seed" in changes:
            raise TrainingError("a run that is resumed keeps its sizes and its seed")
        run = Training.resume(out, **changes)
        if run.settings.model != options.model:
            raise TrainingError(f"{out} holds a run of {run.settings.model}")
    else:
        if (out / CHECKPOINT).exists() and not options.overwrite:
            raise TrainingError(
                f"{out} holds a run already: --resume goes on with it, --overwrite forgets it, "
                "--out FOLDER leaves it alone"
            )
        run = Training(Settings(options.model, sizes, **changes))
    out.mkdir(parents=True, exist_ok=True)
    if not os.access(out, os.W_OK):
        raise TrainingError(f"{out} can't be written to")
    return run


def run_train(options: argparse.Namespace) -> int:
    """`burtorch train`"""
    out = Path(options.out or f"burtorch-{options.model}")
    go_on = f"go on with: burtorch train {options.model} --out {out} --resume --steps N"

    def report(run: Training, speed: float) -> None:
        run.save(out)
        step, valid = run.history.valid[-1]
        recent = run.history.train[-run.settings.every :]
        print(
            f"step {step:>6}  loss {sum(recent) / len(recent):.4f}  validation {valid:.4f}  "
            f"{speed:,.0f} gradients/s",
            flush=True,
        )

    with _mistakes_in_one_line():
        run = _begin(options, out)
        if run.steps_made == run.settings.steps:
            print(f"nothing is left to do: all {run.steps_made} steps are made\n{go_on}")
            return 0
        with run.stoppable():
            print(
                f"{run.model!r}: {run.model.num_parameters:,} parameters, "
                f"{len(run.corpus.train):,} characters to train on, "
                f"{len(run.corpus.characters)} different",
                flush=True,
            )
            complete = run.fit(report, quiet=options.quiet)
            path = run.save(out)
            ended = "saved" if complete else f"stopped after step {run.steps_made}, saved"
            print(f"{ended}: {path}\n{go_on}")
            print(f"read what it says with: burtorch generate {out}", flush=True)
    return 0 if complete else 130


def run_generate(options: argparse.Namespace) -> int:
    """`burtorch generate`"""
    _demand_count("length", options.length, least=0)
    with _mistakes_in_one_line():
        model, characters = load(Path(options.folder))
        text = sample(
            model, characters, options.length, options.seed, options.prompt, options.temperature
        )
    print(text)
    return 0
