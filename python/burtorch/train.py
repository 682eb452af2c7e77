# python/burtorch/train.py — `burtorch train` and `burtorch generate`: training that can be stopped and resumed
# SPDX-License-Identifier: MIT
"""Trains CharMLP or GPT on a text, with checkpoints from which it goes on bit for bit."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Callable

import numpy as np

from . import data, io, optim
from .nn import GPT, CharMLP

CHECKPOINT = "checkpoint.safetensors"
_VALIDATION_SAMPLES = 2048


class TrainingError(Exception):
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


@contextmanager
def _finishing_the_step(stop: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C calls stop instead of breaking a step; a second one breaks it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def handle(number: int, frame: Any) -> None:
        signal.signal(signal.SIGINT, before)
        stop()

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class Training:
    """A run: model, optimizer, random numbers, and what came out so far."""

    def __init__(self, settings: Settings) -> None:
        for name in ("steps", "batch", "micro_batch", "threads", "every"):
            if getattr(settings, name) < 1:
                raise TrainingError(f"{name} must be at least 1: {getattr(settings, name)}")
        self.settings = settings
        self.history = History()
        is_gpt = settings.model == "gpt"
        if settings.data is not None:
            text = data.read_text(settings.data)
        else:
            text = data.default_text() if is_gpt else data.default_words()
        self.corpus = data.corpus(text, shuffle_lines=not is_gpt)
        config: dict[str, Any] = {
            "vocab": len(self.corpus.characters),
            "seed": settings.seed,
            **settings.config,
        }
        self.model: GPT | CharMLP = GPT(**config) if is_gpt else CharMLP(**config)
        cut = data.Windows if is_gpt else data.Words
        context = self.model.config["context"]
        self._train = cut(self.corpus.train, context)
        valid = cut(self.corpus.valid, context)
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
        self._stop = False

    @property
    def steps_made(self) -> int:
        return self.optimizer.steps

    def step(self) -> float:
        """One step on a random batch; returns the batch's loss before it."""
        at = self._random.integers(0, len(self._train), self.settings.batch)
        x, y = self._train[at]
        loss = self.model.loss_and_grad(x, y, self.settings.micro_batch, self.settings.threads)
        self.optimizer.step()
        self.history.train.append(loss)
        return loss

    def validate(self) -> float:
        """The loss on text that is not trained on."""
        loss = self.model.loss(*self._valid, micro_batch=self.settings.micro_batch)
        self.history.valid.append((self.steps_made, loss))
        return loss

    def sample(self, n: int, seed: int = 0, prompt: str = "", temperature: float = 1.0) -> str:
        return sample(self.model, self.corpus.characters, n, seed, prompt, temperature)

    def stop(self) -> None:
        """End fit after the step that is going on."""
        self._stop = True

    def fit(
        self,
        at_validation: Callable[[Training, float], None] = lambda run, loss: None,
        seconds: float | None = None,
        quiet: bool = False,
    ) -> bool:
        """Make the steps that are left, or as many as fit into so many seconds.

        at_validation(run, gradients per second) is called after each validation. Returns whether the run is
        complete: Ctrl-C ends it after the step that is going on.
        """
        from tqdm import tqdm  # type: ignore[import-untyped]

        end = self.settings.steps
        smooth, busy, count = None, 0.0, 0
        start = time.perf_counter()
        self._stop = False
        bar = tqdm(total=end, initial=self.steps_made, unit="step", disable=True if quiet else None)
        with _finishing_the_step(self.stop), bar:
            while self.steps_made < end and not self._stop:
                begin = time.perf_counter()
                loss = self.step()
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
    return {name: value for name, value in given.items() if value is not None}


def run_train(options: argparse.Namespace) -> int:
    """`burtorch train`"""
    out = Path(options.out or f"burtorch-{options.model}")
    sizes = {
        name: getattr(options, name)
        for name in ("hidden", "embed", "context", "d_model", "layers", "heads")
        if getattr(options, name, None) is not None
    }
    changes = _settings(options)
    try:
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
    except (TrainingError, ValueError, TypeError) as error:
        print(f"burtorch: {error}", file=sys.stderr)
        return 1

    def report(run: Training, speed: float) -> None:
        step, valid = run.history.valid[-1]
        recent = run.history.train[-run.settings.every :]
        print(
            f"step {step:>6}  loss {sum(recent) / len(recent):.4f}  validation {valid:.4f}  "
            f"{speed:,.0f} gradients/s",
            flush=True,
        )
        run.save(out)

    print(
        f"{run.model!r}: {run.model.num_parameters:,} parameters, "
        f"{len(run.corpus.train):,} characters to train on, {len(run.corpus.characters)} different"
    )
    complete = run.fit(report, quiet=options.quiet)
    path = run.save(out)
    print(f"{'saved' if complete else f'stopped after step {run.steps_made}, saved'}: {path}")
    print(f"go on with: burtorch train {options.model} --out {out} --resume --steps N")
    print(f"read what it says with: burtorch generate {out}")
    return 0 if complete else 130


def run_generate(options: argparse.Namespace) -> int:
    """`burtorch generate`"""
    try:
        model, characters = load(Path(options.folder))
        text = sample(
            model, characters, options.length, options.seed, options.prompt, options.temperature
        )
    except (TrainingError, ValueError, TypeError) as error:
        print(f"burtorch: {error}", file=sys.stderr)
        return 1
    print(text)
    return 0
