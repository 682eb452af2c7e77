# examples/jax_callback.py — a compiled function inside a jitted JAX program, with its gradient
# SPDX-License-Identifier: MIT
"""JAX calls the compiled function through pure_callback; custom_vjp tells it the gradient, which comes
from the same call. Run: python examples/jax_callback.py (needs JAX)"""

from __future__ import annotations

from typing import Any

import burtorch as bt
import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)


def energy(x: Any) -> Any:
    """A function of Values, as a program that has nothing to do with JAX would write it."""
    return bt.exp(-x[0] * x[0]) * bt.sin(x[1]) + bt.sqr(x[0] - x[1])


compiled = bt.compile(energy)


def both(x: Any) -> Any:
    """The value and the gradient, computed outside of JAX."""
    shapes = (jax.ShapeDtypeStruct((), jnp.float64), jax.ShapeDtypeStruct(x.shape, jnp.float64))
    return jax.pure_callback(
        lambda at: tuple(np.asarray(y) for y in compiled.value_and_grad(np.asarray(at))), shapes, x
    )


f = jax.custom_vjp(lambda x: both(x)[0])
f.defvjp(both, lambda gradient, adjoint: (adjoint * gradient,))


def main() -> None:
    x = jnp.array([0.5, 1.5])
    value, gradient = jax.jit(jax.value_and_grad(lambda x: 2 * f(x) + x.sum()))(x)
    print(f"2 f + sum: {value:.6f}, gradient {np.round(np.asarray(gradient), 6)}")
    here = compiled.value_and_grad(np.asarray(x))
    print(f"the same without JAX: {2 * here[0] + 2.0:.6f}, {np.round(2 * here[1] + 1, 6)}")


if __name__ == "__main__":
    main()
