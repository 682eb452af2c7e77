# benchmarks/peers/mlx.py — Apple MLX on the CPU
# SPDX-License-Identifier: MIT
from typing import Any

from benchmarks.registry import Loop, Parameters, Peer
from benchmarks.works import GRAPHS, INPUTS

PEER = Peer("MLX", pip=["mlx[cpu]"], packages=["mlx", "mlx-cpu"])


def way(is_compiled: bool) -> Any:
    def make(work: str, parameters: Parameters) -> Loop:
        import mlx.core as mx

        mx.set_default_device(mx.cpu)
        graph = GRAPHS[work]
        function = mx.value_and_grad(
            lambda a, b: graph(a, b, lambda v: mx.maximum(v, 0.0)), argnums=(0, 1)
        )
        if is_compiled:
            function = mx.compile(function)
        x, y = (mx.array(v, dtype=mx.float64) for v in INPUTS[work])

        def loop(count: int) -> tuple[float, ...]:
            for _ in range(count):
                value, gradient = function(x, y)
                mx.eval(value, *gradient)
            return value.item(), *(g.item() for g in gradient)

        return loop

    return make


PEER.offers("eager", "tiny", "small")(way(False))
PEER.offers("compiled", "tiny", "small")(way(True))
