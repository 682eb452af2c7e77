# benchmarks/peers/torch.py — PyTorch: eager, torch.compile, TorchScript
# SPDX-License-Identifier: MIT
from benchmarks.registry import Loop, Outputs, Parameters, Peer
from benchmarks.works import ACTIVATIONS, GRAPHS, INPUTS, files, model, summary

PEER = Peer("PyTorch", pip=["torch==2.13.0", "numpy"])


def mlp(p, x, y):
    from torch.nn import functional as nn

    h = nn.embedding(x, p["wte"]).flatten(1)
    h = nn.linear(nn.linear(h, p["w1"], p["b1"]).tanh(), p["w2"], p["b2"])
    return nn.cross_entropy(h, y)


def gpt(p, x, y):
    from torch.nn import functional as nn

    b, t = x.shape
    h = nn.embedding(x, p["tokens"]) + p["positions"]
    for i in range(6):
        layer = {name.partition(".")[2]: w for name, w in p.items() if name.startswith(f"{i}.")}
        n = nn.layer_norm(h, (24,), layer["g1"], layer["h1"])
        k, q, v = nn.linear(n, layer["qkv"]).view(b, t, 6, 3, 4).permute(3, 0, 2, 1, 4)
        out = nn.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = h + nn.linear(out.transpose(1, 2).reshape(b, t, 24), layer["proj"], layer["pb"])
        n = nn.layer_norm(h, (24,), layer["g2"], layer["h2"])
        h = h + nn.linear(nn.linear(n, layer["up"], layer["ub"]).relu(), layer["down"], layer["db"])
    return nn.cross_entropy(nn.linear(h, p["head"], p["hb"]).flatten(0, 1), y.flatten())


def way(transform):
    """Return how to make the loops of a function that `transform` is applied to, with its arguments."""

    def make(work: str, parameters: Parameters) -> Loop:
        import torch

        torch.set_num_threads(1)
        if work in GRAPHS:
            x, y = INPUTS[work]

            def leaves():
                return [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (x, y)]

            function = transform(lambda a, b: GRAPHS[work](a, b, torch.relu), leaves())

            def loop(count: int) -> list[float]:
                for _ in range(count):
                    a, b = leaves()
                    g = function(a, b)
                    g.backward()
                return [g.item(), a.grad.item(), b.grad.item()]

            return loop
        weights, x, y = model(work, parameters)
        names, loss_of = list(weights), {"mlp": mlp, "gpt": gpt}[work]
        p = [torch.tensor(w, requires_grad=True) for w in weights.values()]
        x, y = torch.tensor(x), torch.tensor(y)
        function = transform(lambda x, y, *p: loss_of(dict(zip(names, p)), x, y), [x, y, *p])

        def steps(count: int) -> Outputs:
            for _ in range(count):
                loss = function(x, y, *p)
                gradients = torch.autograd.grad(loss, p)
            return lambda: summary(loss.item(), gradients)

        return steps

    return make


def compiled(function, arguments):
    import torch

    return torch.compile(function)


def scripted(function, arguments):
    import torch

    return torch.jit.trace(function, tuple(arguments), check_trace=False)


WORKS = "tiny", "small", "mlp", "gpt"
PEER.offers("eager", *WORKS, tolerance=1e-4)(way(lambda function, arguments: function))
PEER.offers("torch.compile", *WORKS, tolerance=1e-4, is_slow=True)(way(compiled))
PEER.offers("TorchScript", *WORKS, tolerance=1e-4)(way(scripted))


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
