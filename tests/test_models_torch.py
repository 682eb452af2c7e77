# tests/test_models_torch.py — both models beside their PyTorch twins, through a safetensors file
# SPDX-License-Identifier: MIT
from __future__ import annotations

from pathlib import Path
from typing import Any

import burtorch as bt
import numpy as np
import pytest
from make_models_reference import CONFIGS, samples, torch_model

torch: Any = pytest.importorskip(
    "torch", reason="torch is not installed; tests/test_models.py has stored numbers of it"
)

PAPER = [
    ("CharMLP", {"hidden": 64, "vocab": 27, "embed": 64, "context": 16}),
    ("GPT", {"vocab": 65, "context": 8, "d_model": 24, "layers": 6, "heads": 6}),
]


@pytest.mark.parametrize("micro_batch", [1, 2, 64])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("kind", "config"), [*PAPER, *CONFIGS])
def test_loss_and_gradients_are_pytorchs(
    kind: str, config: dict[str, int], dtype: str, micro_batch: int, tmp_path: Path
) -> None:
    from safetensors.torch import save_file

    torch.manual_seed(7)
    twin = torch_model(kind, config).to(getattr(torch, dtype))
    save_file(twin.state_dict(), tmp_path / "weights.safetensors")
    model = getattr(bt.nn, kind)(**config, dtype=dtype)
    model.load_safetensors(tmp_path / "weights.safetensors")

    x, y = samples(kind, config)
    loss = twin(torch.tensor(x), torch.tensor(y))
    loss.backward()
    close = 1e-10 if dtype == "float64" else 2e-5
    assert model.loss_and_grad(x, y, micro_batch=micro_batch) == pytest.approx(
        loss.item(), rel=close
    )
    ours = {p.name: p.grad for p in model.parameters()}
    theirs = {name: p.grad.numpy() for name, p in twin.named_parameters()}
    assert ours.keys() == theirs.keys()
    for name, gradient in theirs.items():
        scale = np.abs(gradient).max()
        np.testing.assert_allclose(
            ours[name], gradient, rtol=close, atol=close * scale, err_msg=name
        )
