# python/burtorch/_fit.py — fit: a module trained on arrays, with progress, shuffling, validation and Ctrl-C
# SPDX-License-Identifier: MIT
"""fit: train a module with a loss."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Callable, Literal

import numpy as np
from numpy.typing import ArrayLike

from . import optim
from ._core import Error
from .train import _CtrlC

__all__ = ["History", "fit"]


@dataclass
class History:
    """What came out: the mean loss of each epoch, the validation's after each, and how many steps were made."""

    loss: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)
    steps: int = 0
    complete: bool = False  #: False if Ctrl-C or the callback ended it


def fit(
    net: Any,
    *data: ArrayLike,
    epochs: int = 1,
    batch: int = 32,
    optimizer: Any = None,
    validation: tuple[ArrayLike, ...] | None = None,
    callback: Callable[[History], Any] | None = None,
    shuffle: bool = True,
    seed: int = 0,
    micro_batch: int | Literal["auto"] = "auto",
    threads: int = 1,
    quiet: bool = False,
) -> History:
    """Train a module on arrays with a row for each sample; optimizer is AdamW(net) unless given.

    callback(history) is called after each epoch and may return True to end. Ctrl-C ends after the step that is going
    on. A loss that is not finite is an error, and the step is not made.

    >>> import burtorch as bt
    >>> class Line(bt.nn.Module):
    ...     def __init__(self):
    ...         self.slope = bt.vector([0.0])
    ...     def loss(self, x, y):
    ...         return ((self.slope * x - y) ** 2).mean()
    >>> x = np.linspace(-1, 1, 64).reshape(64, 1)
    >>> net = Line()
    >>> history = bt.fit(net, x, 3 * x, epochs=40, optimizer=bt.optim.SGD(net, lr=0.5), quiet=True)
    >>> bool(abs(net.slope.data[0] - 3) < 1e-3)
    True
    """
    from tqdm import tqdm  # type: ignore[import-untyped]

    for name, number in (("epochs", epochs), ("batch", batch), ("threads", threads)):
        if number < 1:
            raise ValueError(f"{name} must be at least 1: {number}")
    arrays = [np.asarray(x) for x in data]
    if not arrays or any(a.ndim == 0 or len(a) != len(arrays[0]) for a in arrays):
        shapes = ", ".join(str(a.shape) for a in arrays)
        raise ValueError(
            f"fit takes arrays with as many rows each, at least one: {shapes or 'none'}"
        )
    samples = len(arrays[0])
    optimizer = optim.AdamW(net) if optimizer is None else optimizer
    random = np.random.Generator(np.random.PCG64(seed))
    history = History()
    ctrl_c = _CtrlC()
    total = epochs * math.ceil(samples / batch)
    bar = tqdm(total=total, unit="step", disable=True if quiet else None)
    mode = getattr(net, "train", lambda *_: None)
    with ctrl_c.heard(), bar:
        for _ in range(epochs):
            order = random.permutation(samples) if shuffle else np.arange(samples)
            sum_of_losses = 0.0
            done = 0
            for first in range(0, samples, batch):
                at = order[first : first + batch]
                loss = net.loss_and_grad(
                    *(a[at] for a in arrays), micro_batch=micro_batch, threads=threads
                )
                if not math.isfinite(loss):
                    raise Error(
                        f"the loss is {loss} after {history.steps} steps; a smaller learning rate may help"
                    )
                optimizer.step()
                history.steps += 1
                sum_of_losses += loss * len(at)
                done += len(at)
                if not bar.disable:
                    bar.set_postfix_str(f"loss {sum_of_losses / done:.4g}", False)
                    bar.update()
                if ctrl_c.asked:
                    break
            history.loss.append(sum_of_losses / done)
            if ctrl_c.asked:
                return history
            if validation is not None:
                was = getattr(net, "training", True)
                mode(False)
                try:
                    history.validation.append(net.loss(*validation))
                finally:
                    mode(was)
            if callback is not None and callback(history):
                return history
    history.complete = True
    return history
