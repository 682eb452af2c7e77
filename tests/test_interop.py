# tests/test_interop.py — compiled functions inside PyTorch, where it is installed
# SPDX-License-Identifier: MIT
from __future__ import annotations

import burtorch as bt
import numpy as np
import pytest


def test_a_compiled_function_inside_torch() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from burtorch.interop.torch import wrap

    c = bt.compile(lambda x: bt.exp(x[0]) * x[1], backend="replay")
    x = torch.tensor([0.5, 2.0], requires_grad=True)
    y = wrap(c)(x)
    assert y.dtype == x.dtype
    (3 * y).backward()
    assert x.grad.numpy() == pytest.approx(3 * np.array([np.exp(0.5) * 2, np.exp(0.5)]))
    point = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(wrap(c), point)
    rows = torch.randn(7, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(wrap(c, rows=True), rows)
    two = wrap(bt.compile(lambda a, b: a * b[0], backend="replay"))
    a = torch.tensor(2.0, requires_grad=True)
    b = torch.tensor([3.0], requires_grad=True)
    two(a, b).backward()
    assert (a.grad.item(), b.grad.item()) == (3.0, 2.0)


def test_dtypes_of_tensors_and_plain_numbers() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from burtorch.interop.torch import wrap

    f = wrap(bt.compile(lambda a, b: a * b[0], backend="replay"))
    count = torch.tensor(3)
    x = torch.tensor([2.0], dtype=torch.float64, requires_grad=True)
    y = f(count, x)
    y.backward()
    assert (y.dtype, x.grad.tolist()) == (torch.float64, [3.0])
    half = torch.tensor([2.0], dtype=torch.float32, requires_grad=True)
    y = f(torch.tensor(0.5, dtype=torch.float64), half)
    assert y.dtype == torch.float32
    y.backward()
    assert half.grad.dtype == torch.float32
    assert f(1.5, half).item() == 3.0
    assert f(count, torch.tensor([2])).dtype == torch.get_default_dtype()
    assert wrap(bt.compile(lambda x: x[0], backend="replay"), rows=True)(
        torch.tensor([[1, 2], [3, 4]])
    ).tolist() == [1.0, 3.0]
