# scripts/make_reference.py — writes cpp_tests/data/op_reference.inc: true values and derivatives of operations
# SPDX-License-Identifier: MIT
"""Reference numbers for the operations of the table, computed with mpmath to a thousand digits.

The derivatives are difference quotients of the functions below, not formulas, so that a wrong formula in the
library can't be repeated here. Run: python scripts/make_reference.py (needs mpmath; the tests do not).
"""

from __future__ import annotations

import math
from pathlib import Path

from mpmath import mp, mpf

mp.dps = 1000

UNARY = {
    "relu": lambda x: x if x > 0 else mpf(0),
    "tanh": mp.tanh,
    "exp": mp.exp,
    "negativeLog": lambda x: -mp.log(x),
    "sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
    "inv": lambda x: 1 / x,
    "sqr": lambda x: x**2,
    "pow3": lambda x: x**3,
    "logarithm": mp.log,
    "sqrt": mp.sqrt,
    "invSqrt": lambda x: 1 / mp.sqrt(x),
    "negative": lambda x: -x,
    "abs": abs,
    "sin": mp.sin,
    "cos": mp.cos,
    "tan": mp.tan,
    "asin": mp.asin,
    "acos": mp.acos,
    "atan": mp.atan,
    "sinh": mp.sinh,
    "cosh": mp.cosh,
    "erf": mp.erf,
    "log1p": lambda x: mp.log(1 + x),
    "expm1": lambda x: mp.exp(x) - 1,
    "softplus": lambda x: mp.log(1 + mp.exp(x)),
    "gelu": lambda x: x * mp.erfc(-x / mp.sqrt(2)) / 2,
    "silu": lambda x: x / (1 + mp.exp(-x)),
}

BINARY = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "mean": lambda x, y: (x + y) / 2,
    "addSquares": lambda x, y: x**2 + y**2,
    "meanSquares": lambda x, y: (x**2 + y**2) / 2,
    "negativeMean": lambda x, y: -(x + y) / 2,
    "pow": lambda x, y: mp.exp(y * mp.log(x)),
    "min": lambda x, y: min(x, y),
    "max": lambda x, y: max(x, y),
    "atan2": lambda x, y: mp.atan2(x, y),
    "hypot": lambda x, y: mp.sqrt(x**2 + y**2),
}

MAGNITUDES = [1e-300, 1e-160, 1e-20, 1e-8, 1e-3, 0.1, 0.25, 0.7, 0.99, 1.5, 2.0, 3.3, 6.0, 12.0, 20.0,
              36.0, 100.0, 300.0, 1e4, 1e8, 1e20, 1e160, 1e300]  # fmt: skip
POSITIVE_ONLY = {"negativeLog", "logarithm", "sqrt", "invSqrt"}
UP_TO_ONE = {"asin", "acos"}
PAIR_POINTS = [1e-200, 1e-9, 0.3, 1.7, 5.0, 1e9, 1e200]


def to_double(x) -> float:
    if mp.isnan(x):
        return math.nan
    try:
        return float(x)
    except OverflowError:
        return math.copysign(math.inf, x)


def literal(x: float) -> str:
    if math.isnan(x):
        return "NAN"
    if math.isinf(x):
        return "INFINITY" if x > 0 else "-INFINITY"
    return repr(x)  # the shortest text that reads back as x


def slope(f, x):
    """A central difference with a step so small that its error is far below a double's last place."""
    h = min(abs(x), 1) * mpf(10) ** -60
    return (f(x + h) - f(x - h)) / (2 * h)


def unary_rows():
    for name, f in UNARY.items():
        for magnitude in MAGNITUDES:
            for x in (magnitude, -magnitude):
                if name in POSITIVE_ONLY and x < 0 or name in UP_TO_ONE and magnitude > 1:
                    continue
                if name == "log1p" and x <= -1:
                    continue
                if magnitude > 400 and name in {"exp", "sinh", "cosh", "expm1", "sigmoid", "softplus", "silu", "gelu",
                                                "erf", "tanh"}:  # fmt: skip
                    continue  # over- and underflow are tested by hand
                value, derivative = f(mpf(x)), slope(f, mpf(x))
                yield name, x, 0.0, to_double(value), to_double(derivative), 0.0


def binary_rows():
    for name, f in BINARY.items():
        for mx in PAIR_POINTS:
            for my in PAIR_POINTS:
                for x, y in ((mx, my), (-mx, my), (mx, -my), (-mx, -my)):
                    if name == "pow" and (x < 0 or not 1e-2 < abs(y) < 100):
                        continue
                    if x == y and name in {"min", "max"}:
                        continue
                    bx, by = mpf(x), mpf(y)
                    dx = slope(lambda t, by=by: f(t, by), bx)
                    dy = slope(lambda t, bx=bx: f(bx, t), by)
                    yield name, x, y, to_double(f(bx, by)), to_double(dx), to_double(dy)


def main() -> None:
    target = Path(__file__).resolve().parent.parent / "cpp_tests" / "data" / "op_reference.inc"
    lines = [
        "// cpp_tests/data/op_reference.inc — made by scripts/make_reference.py; do not edit",
        "// SPDX-License-Identifier: MIT",
        "// {function, x, y, value, derivative by x, derivative by y}",
    ]
    for name, *numbers in [*unary_rows(), *binary_rows()]:
        lines.append(f'{{"{name}", {", ".join(literal(n) for n in numbers)}}},')
    target.write_text("\n".join(lines) + "\n")
    print(f"{len(lines) - 3} rows in {target.name}")


if __name__ == "__main__":
    main()
