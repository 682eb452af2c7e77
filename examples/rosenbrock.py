# examples/rosenbrock.py — the valley of Rosenbrock, minimized by SciPy with exact gradients
# SPDX-License-Identifier: MIT
"""A Python function becomes a function of numbers that gives its value and gradient, as SciPy's
minimize(jac=True) wants it. Run: python examples/rosenbrock.py (needs SciPy)"""

from __future__ import annotations

from typing import Any

import burtorch as bt
import numpy as np
from scipy.optimize import minimize


def rosenbrock(x: Any) -> Any:
    """Sum of 100 (x[i+1] - x[i]^2)^2 + (1 - x[i])^2; least, 0, where all are 1."""
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def main() -> None:
    # The same function takes numbers and Values: NumPy's arithmetic works on arrays of both.
    start = np.array([-1.2, 1.0, -1.2, 1.0, -1.2])
    value, gradient = bt.value_and_grad(rosenbrock)(start)
    print(f"at the start: {value:.2f}, by numbers alone {rosenbrock(start):.2f}")  # 1016.40 twice
    print(f"gradient: {np.round(gradient, 2)}")  # [-215.6  792.  -655.6  792.  -440. ]

    # Central differences agree (check_grad raises if they don't), but take ten evaluations.
    worst = bt.check_grad(rosenbrock, start)
    print(f"differs from central differences by less than 1e-6: {worst < 1e-6}")

    found = minimize(bt.value_and_grad(rosenbrock), start, jac=True, method="BFGS")
    print(
        f"found: {np.round(found.x, 4)}, value below 1e-9: {found.fun < 1e-9}"
    )  # [1. 1. 1. 1. 1.]

    # SciPy can do without a gradient, by differences, but has to call the function far more often.
    without = minimize(rosenbrock, start, method="BFGS")
    print(f"with gradients less than a third of the calls: {3 * found.nfev < without.nfev}")


if __name__ == "__main__":
    main()
