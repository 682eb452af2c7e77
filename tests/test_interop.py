# tests/test_interop.py — compiled functions inside PyTorch, where it is installed
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any

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


def networks(torch: Any) -> Any:
    """PyTorch modules, and the shape of one sample of each; a negative one is a number of classes."""
    nn = torch.nn

    class Branch(nn.Module):  # type: ignore[misc, unused-ignore, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(4, 6), nn.Linear(4, 6)
            self.scale = nn.Parameter(torch.tensor([0.5, 1.5, 1.0]))

        def forward(self, x: Any) -> Any:
            y = torch.relu(self.a(x)) * torch.sigmoid(self.b(x)) - 0.25 * x.mean(1, keepdim=True)
            return y.view(-1, 2, 3) * self.scale

    class Sequence(nn.Module):  # type: ignore[misc, unused-ignore, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.table, self.rnn = nn.Embedding(9, 5), nn.GRU(5, 4, batch_first=True)
            self.norm, self.out = nn.LayerNorm(4), nn.Linear(4, 2)

        def forward(self, ids: Any) -> Any:
            return self.out(self.norm(self.rnn(self.table(ids))[0]))

    image = nn.Sequential(
        *(nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(4, 6, 2, stride=2, groups=2), nn.SiLU(), nn.Flatten(), nn.Linear(24, 3)),
    )
    mlp = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 1)).double()
    return (Branch(), (4,)), (image, (2, 8, 8)), (mlp, (4,)), (Sequence(), (-9, 6))


def test_a_torch_module_is_converted_with_its_weights() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from burtorch.interop.torch import convert

    torch.manual_seed(0)
    for module, shape in networks(torch):
        module.eval()
        if shape[0] < 0:
            x = torch.randint(0, -shape[0], (5, *shape[1:]))
        else:
            x = torch.randn(5, *shape, dtype=next(module.parameters()).dtype)
        net = convert(module)
        state = module.state_dict()
        assert set(net.state_dict()) == set(state)
        y = module(x)
        (y**2).sum().backward()
        wanted = y.detach().numpy()
        np.testing.assert_allclose(net.predict(x.numpy()).reshape(wanted.shape), wanted, 1e-4, 1e-5)
        tape = net.parameters()[0].tape
        with tape, tape.scope():
            out = net(x.numpy())
            (out**2).sum().backward()
            for name, p in net.named_parameters():
                torch_p = dict(module.named_parameters())[name]
                np.testing.assert_allclose(p.grad, torch_p.grad.numpy(), 2e-3, 1e-4, err_msg=name)


def test_what_can_not_be_converted_is_named() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from burtorch.interop.torch import convert

    with pytest.raises(TypeError, match="0 is a PReLU, which burtorch has no layer for"):
        convert(torch.nn.Sequential(torch.nn.PReLU()))
    with pytest.raises(TypeError, match="no dilation"):
        convert(torch.nn.Sequential(torch.nn.Conv2d(1, 1, 3, dilation=2)))

    class Sorts(torch.nn.Module):  # type: ignore[misc, unused-ignore, name-defined]
        def forward(self, x: Any) -> Any:
            return torch.sort(x)

    with pytest.raises(TypeError, match="no function for this"):
        convert(Sorts())
