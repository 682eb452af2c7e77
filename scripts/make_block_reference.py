# scripts/make_block_reference.py — writes tests/data/block_reference.json: PyTorch's values and gradients of blocks
# SPDX-License-Identifier: MIT
"""What PyTorch computes for each block of burtorch, in double precision, so that the tests need no PyTorch.

Inputs and the adjoints of the results are multiples of 1/64: the same numbers in every precision. Run:
python scripts/make_block_reference.py (needs torch==2.13.0; the tests do not).
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from torch.nn import functional

OUT = Path(__file__).resolve().parents[1] / "tests" / "data" / "block_reference.json"
torch.manual_seed(1)
torch.set_default_dtype(torch.float64)


def some(*shape, low=-2.0, high=2.0):
    return torch.round((torch.rand(shape) * (high - low) + low) * 64) / 64


def attention(x, heads, positions):
    size = x.shape[1] // (3 * heads)
    mask = torch.tril(torch.ones(positions, positions)) == 0
    sequences = []
    for rows in x.split(positions):
        out = []
        for part in rows.split(3 * size, dim=1):
            k, q, v = part.split(size, dim=1)
            scores = (q @ k.T * size**-0.5).masked_fill(mask, float("-inf"))
            out.append(functional.softmax(scores, dim=-1) @ v)
        sequences.append(torch.cat(out, dim=1))
    return torch.cat(sequences)


def attention_layer(heads, positions, x, kqv, weight, bias):
    return functional.linear(attention(x @ kqv.T, heads, positions), weight, bias)


def transformer(x, heads, positions, sa, up, down, ln1, ln2):
    """Pre-norm: each of sa … ln2 is a tuple of parameters."""
    size = x.shape[1:]
    x = x + attention_layer(heads, positions, functional.layer_norm(x, size, *ln1), *sa)
    hidden = functional.relu(functional.linear(functional.layer_norm(x, size, *ln2), *up))
    return x + functional.linear(hidden, *down)


def case(block, f, arguments=None, **inputs):
    """Run f(**inputs) and its gradient for a random adjoint."""
    for each in inputs.values():
        each.requires_grad_()
    y = f(**inputs)
    adjoint = some(*y.shape)
    y.backward(adjoint)
    return {
        "block": block,
        "arguments": arguments or {},
        "inputs": {name: x.tolist() for name, x in inputs.items()},
        "adjoint": adjoint.tolist(),
        "result": y.tolist(),
        "gradients": {name: x.grad.tolist() for name, x in inputs.items()},
    }


def cases():
    for rows, k, n in ((1, 3, 5), (4, 7, 6), (5, 17, 9)):
        yield case(
            "affine",
            lambda x, w, b: functional.linear(x, w, b),
            x=some(rows, k),
            w=some(n, k),
            b=some(n),
        )
        yield case("matmul", lambda a, b: a @ b, a=some(rows, k), b=some(k, n))
    yield case("matmul", lambda a, b: a @ b, a=some(5, 7), b=some(7))
    yield case("matmul", lambda a, b: a @ b, a=some(5), b=some(5, 7))
    for shape in ((5,), (3, 2), (4, 9), (2, 27)):
        yield case("softmax", lambda x: functional.softmax(x, -1), x=some(*shape, low=-8, high=8))
        yield case("log_softmax", lambda x: functional.log_softmax(x, -1), x=some(*shape, high=9))
    for rows, columns in ((1, 2), (5, 9), (3, 27)):
        targets = torch.randint(columns, (rows,))
        for reduction in ("mean", "sum", "none"):
            yield case(
                "cross_entropy",
                lambda x, t=targets, r=reduction: functional.cross_entropy(x, t, reduction=r),
                {"targets": targets.tolist(), "reduction": reduction},
                x=some(rows, columns, low=-5, high=5),
            )
    for rows, columns, eps in ((1, 4, 1e-5), (5, 24, 1e-5), (3, 11, 0.5)):
        yield case(
            "layer_norm",
            lambda x, weight, bias, e=eps: functional.layer_norm(x, x.shape[1:], weight, bias, e),
            {"eps": eps},
            x=some(rows, columns),
            weight=some(columns),
            bias=some(columns),
        )
    for heads, size, positions, sequences in ((1, 3, 5, 1), (3, 4, 8, 1), (2, 5, 3, 3)):
        yield case(
            "attention",
            lambda x, h=heads, p=positions: attention(x, h, p),
            {"heads": heads, "positions": positions},
            x=some(sequences * positions, 3 * heads * size),
        )
    for function in ("gelu", "tanh", "sigmoid", "relu", "silu", "softplus"):
        f = getattr(functional, function)
        yield case(function, lambda x, f=f: f(x), x=some(3, 13, low=-6, high=6))
    ids = torch.randint(6, (9,))
    yield case(
        "gather",
        lambda table: functional.embedding(ids, table),
        {"ids": ids.tolist()},
        table=some(6, 5),
    )
    pairs = torch.randint(6, (4, 3))
    yield case(
        "gather",
        lambda table: functional.embedding(pairs, table).reshape(4, -1),
        {"ids": pairs.tolist()},
        table=some(6, 5),
    )
    yield case(
        "affine_parts",
        lambda w, b, x1, x2, x3: functional.linear(torch.cat([x1, x2, x3], 1), w, b),
        w=some(6, 11),
        b=some(6),
        x1=some(4, 3),
        x2=some(4, 1),
        x3=some(4, 7),
    )
    for axis, shapes in ((0, ((2, 4), (3, 4), (1, 4))), (1, ((3, 2), (3, 5)))):
        yield case(
            "concat",
            lambda a=axis, **parts: torch.cat(list(parts.values()), a),
            {"axis": axis},
            **{f"x{i}": some(*shape) for i, shape in enumerate(shapes)},
        )
    for name in ("add", "sub", "mul", "div", "maximum", "minimum", "hypot", "pow"):
        f = getattr(torch, name)
        for left, right in (((3, 5), (3, 5)), ((3, 5), (5,)), ((3, 1), (3, 5))):
            yield case(
                {"maximum": "max", "minimum": "min"}.get(name, name),
                lambda x, y, f=f: f(x, y),
                x=some(*left, low=0.25),
                y=some(*right, low=0.25),
            )
    for name in ("sum", "mean"):
        yield case(name, lambda x, n=name: getattr(x, n)(), x=some(4, 9))
    size, heads, positions = 6, 2, 4
    arguments = {"size": size, "heads": heads, "positions": positions}
    sa = {"kqv": (3 * size, size), "weight": (size, size), "bias": (size,)}
    yield case(
        "SelfAttention",
        lambda x, **p: attention_layer(heads, positions, x, *p.values()),
        arguments,
        x=some(2 * positions, size),
        **{name: some(*shape, low=-0.5, high=0.5) for name, shape in sa.items()},
    )
    rest = {
        "up": (4 * size, size),
        "up_bias": (4 * size,),
        "down": (size, 4 * size),
        "down_bias": (size,),
        "ln1": (size,),
        "ln1_bias": (size,),
        "ln2": (size,),
        "ln2_bias": (size,),
    }

    def block(x, kqv, weight, bias, **p):
        pairs = list(zip(list(p.values())[::2], list(p.values())[1::2]))
        return transformer(x, heads, positions, (kqv, weight, bias), *pairs)

    yield case(
        "TransformerBlock",
        block,
        arguments,
        x=some(2 * positions, size),
        **{name: some(*shape, low=-0.5, high=0.5) for name, shape in (sa | rest).items()},
    )


if __name__ == "__main__":
    body = ",\n".join(json.dumps(each) for each in cases())
    OUT.write_text(f'{{"torch": "{torch.__version__}", "cases": [\n{body}\n]}}\n', encoding="utf-8")
