# benchmarks/peers/jax.py — JAX: eager, jit, jit with the loop inside XLA, jit of a batch
# SPDX-License-Identifier: MIT
from typing import Any

from benchmarks.registry import Loop, Outputs, Parameters, Peer
from benchmarks.works import BATCH, GRAPHS, INPUTS, layered, model, network, summary

PEER = Peer("JAX", pip=["jax", "numpy"], packages=["jax", "jaxlib"])


def graph(work: str) -> Any:
    import jax

    jax.config.update("jax_enable_x64", True)
    function = jax.value_and_grad(lambda a, b: GRAPHS[work](a, b, jax.nn.relu), argnums=(0, 1))
    return function, [jax.numpy.float64(x) for x in INPUTS[work]]


def way(is_jitted: bool) -> Any:
    def make(work: str, parameters: Parameters) -> Loop:
        import jax

        function, (x, y) = graph(work)
        if is_jitted:
            function = jax.jit(function)

        def loop(count: int) -> list[float]:
            for _ in range(count):
                value, gradient = function(x, y)
                value.block_until_ready()  # all outputs come from one executable
            return [float(value), *map(float, gradient)]

        return loop

    return make


PEER.offers("eager", "tiny", "small")(way(False))
PEER.offers("jit", "tiny", "small")(way(True))


@PEER.offers("jit, loop inside XLA", "tiny", "small")
def inside(work: str, parameters: Parameters) -> Loop:
    import jax

    function, inputs = graph(work)
    # All the same, but the compiler can't know.
    x, y = (jax.numpy.full(8, v) for v in inputs)

    @jax.jit  # type: ignore[untyped-decorator]
    def sums(x: Any, y: Any, count: Any) -> Any:
        def step(i: Any, sums: Any) -> Any:
            value, (a, b) = function(x[i % 8], y[i % 8])
            return sums[0] + value, sums[1] + a, sums[2] + b

        return jax.lax.fori_loop(0, count, step, (0.0, 0.0, 0.0))

    def loop(count: int) -> list[float]:
        return [float(v) / count for v in jax.block_until_ready(sums(x, y, count))]

    return loop


@PEER.offers("jit, vmap, batch", "tiny", "small", samples=BATCH)
def batch(work: str, parameters: Parameters) -> Loop:
    import jax

    function, inputs = graph(work)
    run = jax.jit(jax.vmap(lambda v: function(v[0], v[1])))
    samples = jax.numpy.tile(jax.numpy.stack(inputs), (BATCH, 1))

    def loop(count: int) -> list[float]:
        for _ in range(count):
            values, gradients = run(samples)
            values.block_until_ready()
        return [float(values[-1]), *(float(g[-1]) for g in gradients)]

    return loop


def cross_entropy(logits: Any, y: Any) -> Any:
    import jax

    picked = jax.numpy.take_along_axis(jax.nn.log_softmax(logits), y[..., None], -1)
    return -picked.mean()


def mlp(p: Any, x: Any, y: Any, times: Any) -> Any:
    import jax.numpy as jnp

    h = jnp.tanh(times(p["wte"][x].reshape(x.shape[0], -1), p["w1"]) + p["b1"])
    return cross_entropy(times(h, p["w2"]) + p["b2"], y)


def gpt(p: Any, x: Any, y: Any, times: Any) -> Any:
    import jax
    import jax.numpy as jnp

    def norm(x: Any, g: Any, h: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        return centred * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * g + h

    b, t = x.shape
    h = p["tokens"][x] + p["positions"]
    mask = jnp.tril(jnp.ones((t, t), bool))
    for i in range(6):
        layer = {name.partition(".")[2]: w for name, w in p.items() if name.startswith(f"{i}.")}
        qkv = times(norm(h, layer["g1"], layer["h1"]), layer["qkv"])
        k, q, v = jnp.moveaxis(qkv.reshape(b, t, 6, 3, 4), 3, 0)
        a = jnp.einsum("bthc,bshc->bhts", q, k) * 0.5
        a = jax.nn.softmax(jnp.where(mask, a, -jnp.inf))
        out = jnp.einsum("bhts,bshc->bthc", a, v).reshape(b, t, 24)
        h = h + times(out, layer["proj"]) + layer["pb"]
        f = jax.nn.relu(times(norm(h, layer["g2"], layer["h2"]), layer["up"]) + layer["ub"])
        h = h + times(f, layer["down"]) + layer["db"]
    return cross_entropy(times(h, p["head"]) + p["hb"], y)


def models(out_in: bool) -> Any:
    """Weights are [in, out], or [out, in]: which is faster depends on the size."""

    def make(work: str, parameters: Parameters) -> Loop:
        import jax
        import jax.numpy as jnp

        weights, x, y = model(work, parameters)
        tables = ("wte", "tokens", "positions")
        p = {
            name: jnp.asarray(w.T if w.ndim == 2 and name not in tables and not out_in else w)
            for name, w in weights.items()
        }
        loss_of = {"mlp": mlp, "gpt": gpt}[work]

        def times(x: Any, w: Any) -> Any:
            return x @ (w.T if out_in else w)

        run = jax.jit(jax.value_and_grad(lambda p, x, y: loss_of(p, x, y, times)))
        x, y = jnp.asarray(x), jnp.asarray(y)

        def loop(count: int) -> Outputs:
            for _ in range(count):
                loss, gradients = run(p, x, y)
                loss.block_until_ready()
            return lambda: summary(loss, gradients.values())

        return loop

    return make


PEER.offers("jit", "mlp", "gpt", tolerance=1e-4)(models(False))
PEER.offers("jit, weights [out, in]", "mlp", "gpt", tolerance=1e-4, is_slow=True)(models(True))


@PEER.offers("jit", "net", tolerance=1e-4)
def layers(work: str, parameters: Parameters) -> Loop:
    import jax
    import jax.numpy as jnp

    x, y, weights = network(parameters)
    act = {"relu": jax.nn.relu, "tanh": jnp.tanh}[parameters["activation"]]

    def loss_of(p: Any, x: Any, y: Any) -> Any:
        *hidden, last = p
        for w, b in hidden:
            x = act(x @ w + b)
        x = x @ last[0] + last[1]
        return cross_entropy(x, y) if y.ndim == 1 else jnp.mean((x - y) ** 2)

    run = jax.jit(jax.value_and_grad(loss_of))
    p = [(jnp.asarray(w.T), jnp.asarray(b)) for w, b in weights]  # the faster layout
    x, y = jnp.asarray(x), jnp.asarray(y)

    def loop(count: int) -> Outputs:
        for _ in range(count):
            loss, gradients = run(p, x, y)
            jax.block_until_ready(gradients)
        return lambda: summary(loss, [g for pair in gradients for g in pair])

    return loop


@PEER.offers("jit", "conv", "lstm", tolerance=1e-3)
def networks(work: str, parameters: Parameters) -> Loop:
    import jax
    import jax.numpy as jnp

    weights, x, y = layered(work, parameters)

    def convolved(p: Any, h: Any, name: str) -> Any:
        h = jax.lax.conv_general_dilated(h, p[f"{name}.weight"], (1, 1), "VALID")
        h = jax.nn.relu(h + p[f"{name}.bias"][:, None, None])
        windows = (1, 1, 2, 2)
        return jax.lax.reduce_window(h, -jnp.inf, jax.lax.max, windows, windows, "VALID")

    def last_state(p: Any, x: Any) -> Any:
        inputs = x @ p["lstm.weight_ih_l0"].T + p["lstm.bias_ih_l0"] + p["lstm.bias_hh_l0"]

        def step(state: Any, a: Any) -> Any:
            h, c = state
            i, f, g, o = jnp.split(a + h @ p["lstm.weight_hh_l0"].T, 4, axis=1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

        zeros = jnp.zeros((len(x), 32), jnp.float32)
        (h, _), _ = jax.lax.scan(step, (zeros, zeros), inputs.swapaxes(0, 1))
        return h

    def loss_of(p: Any, x: Any, y: Any) -> Any:
        if work == "lstm":
            return jnp.mean((last_state(p, x) @ p["out.weight"].T + p["out.bias"] - y) ** 2)
        for name in ("first", "second"):
            x = convolved(p, x, name)
        return cross_entropy(x.reshape(len(x), 400) @ p["out.weight"].T + p["out.bias"], y)

    run = jax.jit(jax.value_and_grad(loss_of))
    p = {name: jnp.asarray(w) for name, w in weights.items()}
    x, y = jnp.asarray(x), jnp.asarray(y)

    def loop(count: int) -> Outputs:
        for _ in range(count):
            loss, gradients = run(p, x, y)
            jax.block_until_ready(gradients)
        return lambda: summary(loss, gradients.values())

    return loop
