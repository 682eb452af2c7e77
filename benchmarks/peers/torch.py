# benchmarks/peers/torch.py — PyTorch: eager, torch.compile, TorchScript
# SPDX-License-Identifier: MIT
from typing import Any

from benchmarks.registry import Loop, Outputs, Parameters, Peer
from benchmarks.works import ACTIVATIONS, GRAPHS, INPUTS, files, layered, model, summary

PEER = Peer("PyTorch", pip=["torch==2.13.0", "numpy"])


def mlp(p: Any, x: Any, y: Any) -> Any:
    from torch.nn import functional as nn

    wte, w1, b1, w2, b2 = p
    h = nn.embedding(x, wte).flatten(1)
    return nn.cross_entropy(nn.linear(nn.linear(h, w1, b1).tanh(), w2, b2), y)


def gpt(p: Any, x: Any, y: Any) -> Any:
    from torch.nn import functional as nn

    b, t = x.shape
    tokens, positions, *blocks, head, hb = p
    h = nn.embedding(x, tokens) + positions
    for at in range(0, len(blocks), 11):
        qkv, proj, pb, up, ub, down, db, g1, h1, g2, h2 = blocks[at : at + 11]
        n = nn.layer_norm(h, (24,), g1, h1)
        k, q, v = nn.linear(n, qkv).view(b, t, 6, 3, 4).permute(3, 0, 2, 1, 4)
        out = nn.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = h + nn.linear(out.transpose(1, 2).reshape(b, t, 24), proj, pb)
        n = nn.layer_norm(h, (24,), g2, h2)
        h = h + nn.linear(nn.linear(n, up, ub).relu(), down, db)
    return nn.cross_entropy(nn.linear(h, head, hb).flatten(0, 1), y.flatten())


def problem(work: str, parameters: Parameters) -> Any:
    """Return a function of its parameters, then of the data; the parameters; the data."""
    import torch

    torch.set_num_threads(1)
    if work in GRAPHS:
        p = [torch.tensor(v, dtype=torch.float64) for v in INPUTS[work]]
        return (lambda a, b: GRAPHS[work](a, b, torch.relu)), p, []
    weights, x, y = model(work, parameters)
    p, loss_of = [torch.tensor(w) for w in weights.values()], {"mlp": mlp, "gpt": gpt}[work]
    return (lambda *all: loss_of(all[:-2], *all[-2:])), p, [torch.tensor(x), torch.tensor(y)]


def looped(work: str, step: Any) -> Loop:
    """Return the loop over a step that returns the gradients and the value."""

    def loop(count: int) -> Outputs:
        for _ in range(count):
            gradients, value = step()
        if work in GRAPHS:
            return lambda: [value.item(), *(g.item() for g in gradients)]
        return lambda: summary(value.item(), gradients)

    return loop


def recorded(transform: Any) -> Any:
    """Return how to make the loops of a function that autograd records anew in each step."""

    def make(work: str, parameters: Parameters) -> Loop:
        import torch

        function, p, data = problem(work, parameters)
        arguments = [*(w.requires_grad_() for w in p), *data]
        function = transform(function, arguments)

        def step() -> Any:
            value = function(*arguments)
            return torch.autograd.grad(value, p), value

        return looped(work, step)

    return make


def scripted(function: Any, arguments: Any) -> Any:
    import torch

    return torch.jit.trace(function, tuple(arguments), check_trace=False)


WORKS = "tiny", "small", "mlp", "gpt"
PEER.offers("eager", *WORKS, tolerance=1e-4)(recorded(lambda function, arguments: function))
PEER.offers("TorchScript", *WORKS, tolerance=1e-4)(recorded(scripted))


@PEER.offers("torch.compile", *WORKS, tolerance=1e-4, is_slow=True)
def compiled(work: str, parameters: Parameters) -> Loop:
    """The whole step is compiled: faster than forward and backward each on its own."""
    import torch

    function, p, data = problem(work, parameters)
    whole = torch.compile(torch.func.grad_and_value(function, argnums=tuple(range(len(p)))))
    arguments = [*p, *data]
    return looped(work, lambda: whole(*arguments))


@PEER.offers("torch.save", "save", "load")
def torch_files(work: str, parameters: Parameters) -> Loop:
    import torch

    values, path = torch.tensor(ACTIVATIONS, dtype=torch.float64), parameters["path"]
    return files(
        work, lambda: torch.save(values, path), lambda: torch.load(path, weights_only=True)
    )


@PEER.offers("NumPy's bytes", "save", "load")
def raw_files(work: str, parameters: Parameters) -> Loop:
    import numpy as np
    import torch

    values, path = torch.tensor(ACTIVATIONS, dtype=torch.float64), parameters["path"]
    return files(
        work,
        lambda: values.numpy().tofile(path),
        lambda: torch.from_numpy(np.fromfile(path)),
    )


@PEER.offers("torch.load", "load model")
def large_file(work: str, parameters: Parameters) -> Loop:
    import torch

    weights, _, _ = model("mlp", {"e": 1024, "b": 1})
    torch.save({name: torch.from_numpy(w) for name, w in weights.items()}, parameters["path"])

    def loop(count: int) -> list[float]:
        for _ in range(count):
            state = torch.load(parameters["path"], weights_only=True)
        return [sum(w.numel() for w in state.values())]

    return loop


@PEER.offers("eager", "conv", "lstm", tolerance=1e-3)
def networks(work: str, parameters: Parameters) -> Loop:
    import torch
    from torch.nn import functional as nn

    torch.set_num_threads(1)
    weights, x, y = layered(work, parameters)
    p = {name: torch.tensor(w, requires_grad=True) for name, w in weights.items()}
    x, y = torch.tensor(x), torch.tensor(y)
    lstm = torch.nn.LSTM(8, 32, batch_first=True)
    if work == "lstm":
        lstm.load_state_dict({n[5:]: torch.tensor(w) for n, w in weights.items() if "lstm" in n})
        p.update({f"lstm.{name}": w for name, w in lstm.named_parameters()})

    def loss_of() -> Any:
        if work == "lstm":
            return nn.mse_loss(nn.linear(lstm(x)[1][0][0], p["out.weight"], p["out.bias"]), y)
        h = x
        for name in ("first", "second"):
            h = nn.max_pool2d(nn.conv2d(h, p[f"{name}.weight"], p[f"{name}.bias"]).relu(), 2)
        return nn.cross_entropy(nn.linear(h.flatten(1), p["out.weight"], p["out.bias"]), y)

    def loop(count: int) -> Outputs:
        for _ in range(count):
            for w in p.values():
                w.grad = None
            loss = loss_of()
            loss.backward()
        return lambda: summary(loss.item(), [w.grad for w in p.values()])

    return loop
