# tests/test_loss_scale.py — overflow is seen, the step skipped, the scale adapted
# SPDX-License-Identifier: MIT
from __future__ import annotations

import burtorch as bt
import numpy as np
import pytest


def test_small_gradients_survive_in_float16() -> None:
    scale = bt.LossScale(initial=1024)
    with bt.Tape("float16") as tape:
        x = bt.Value(3.0)
        loss = x * 1e-4 * 1e-4
        loss.backward()
        assert x.grad == 0
        tape.zero_grad()
        (loss * scale.scale).backward()
        grads = scale.unscale(tape.grads[:1])
    assert grads is not None
    assert grads.dtype == np.float32
    assert grads[0] == pytest.approx(1e-8, rel=0.01)


def test_overflow_lowers_the_scale_and_patience_raises_it() -> None:
    scale = bt.LossScale(initial=1024, patience=2)
    assert scale.unscale(np.array([1, np.inf], dtype=np.float16)) is None
    assert scale.unscale([np.nan]) is None
    assert scale.scale == 256
    grads = scale.unscale(np.full((2, 3), 512.0))
    assert grads is not None
    assert grads.tolist() == [[2.0] * 3] * 2
    assert scale.good_steps == 1
    scale.update(True)
    assert scale.scale == 512
    assert scale.good_steps == 0


def test_misuse_is_told() -> None:
    with pytest.raises(ValueError, match="positive and finite"):
        bt.LossScale(initial=0)
