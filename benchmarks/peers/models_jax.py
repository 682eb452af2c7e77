# benchmarks/peers/models_jax.py — CharMLP and GPT in JAX, jitted; prints seconds
# SPDX-License-Identifier: MIT
"""Run with an interpreter that has jax: python models_jax.py mlp 64 1 [out_in]

Weights are [in, out], or [out, in] when told so: which is faster depends on the size.
"""

from __future__ import annotations

import os
import sys

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import jax
import jax.numpy as jnp
import numpy as np
from timing import report


def linear(w, x, b, out_in):
    return (x @ w.T if out_in else x @ w) + b


def cross_entropy(logits, y):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), y[..., None], -1).mean()


def mlp_loss(p, x, y, out_in):
    h = p["wte"][x].reshape(x.shape[0], -1)
    h = jnp.tanh(linear(p["w1"], h, p["b1"], out_in))
    return cross_entropy(linear(p["w2"], h, p["b2"], out_in), y)


def norm(p, x):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * p["g"] + p["b"]


def gpt_loss(p, x, y, out_in):
    b, t = x.shape
    h = p["tokens"][x] + p["positions"]
    mask = jnp.tril(jnp.ones((t, t), bool))
    for layer in p["layers"]:
        qkv = linear(layer["qkv"], norm(layer["ln1"], h), 0.0, out_in)
        q, k, v = jnp.moveaxis(qkv.reshape(b, t, 3, 6, 4), 2, 0)
        a = jnp.einsum("bthc,bshc->bhts", q, k) * 0.5
        a = jax.nn.softmax(jnp.where(mask, a, -jnp.inf))
        out = jnp.einsum("bhts,bshc->bthc", a, v).reshape(b, t, 24)
        h = h + linear(layer["proj"], out, layer["pb"], out_in)
        f = jax.nn.relu(linear(layer["up"], norm(layer["ln2"], h), layer["ub"], out_in))
        h = h + linear(layer["down"], f, layer["db"], out_in)
    return cross_entropy(linear(p["head"], h, p["hb"], out_in), y)


def main(kind: str, size: str, batch: str, *how: str) -> None:
    rng = np.random.default_rng(0)
    b, out_in = int(batch), "out_in" in how

    def weights(i: int, o: int) -> jax.Array:
        shape = (o, i) if out_in else (i, o)
        return jnp.asarray(rng.normal(size=shape) / i**0.5, jnp.float32)

    def ln() -> dict[str, jax.Array]:
        return {"g": jnp.ones(24), "b": jnp.zeros(24)}

    if kind == "mlp":
        e = int(size)
        p = {"wte": weights(64, 27).reshape(27, 64), "w1": weights(1024, e), "b1": jnp.zeros(e)}
        p |= {"w2": weights(e, 27), "b2": jnp.zeros(27)}
        x, y, loss = rng.integers(27, size=(b, 16)), rng.integers(27, size=b), mlp_loss
    else:
        layers = [
            {"qkv": weights(24, 72), "proj": weights(24, 24), "pb": jnp.zeros(24), "ln1": ln()}
            | {"up": weights(24, 96), "ub": jnp.zeros(96), "down": weights(96, 24)}
            | {"db": jnp.zeros(24), "ln2": ln()}
            for _ in range(6)
        ]
        p = {"tokens": weights(24, 65).reshape(65, 24), "positions": jnp.zeros((8, 24))}
        p |= {"layers": layers, "head": weights(24, 65), "hb": jnp.zeros(65)}
        x, y, loss = rng.integers(65, size=(b, 8)), rng.integers(65, size=(b, 8)), gpt_loss
    run = jax.jit(jax.value_and_grad(lambda p, x, y: loss(p, x, y, out_in)))
    x, y = jnp.asarray(x), jnp.asarray(y)
    report(lambda: jax.block_until_ready(run(p, x, y)))


if __name__ == "__main__":
    main(*sys.argv[1:])
