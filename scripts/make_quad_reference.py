# scripts/make_quad_reference.py — writes cpp_tests/data/quad_reference.inc: true values of functions, to 113 bits
# SPDX-License-Identifier: MIT
"""Reference numbers for float128, computed with mpmath.

Every number is three doubles whose sum it is. Run: python scripts/make_quad_reference.py (needs
mpmath; the tests do not).
"""

from __future__ import annotations

from pathlib import Path

from mpmath import mp, mpf

mp.dps = 120
TARGET = Path(__file__).resolve().parents[1] / "cpp_tests/data/quad_reference.inc"
ANY = [1e-30, 1e-9, 0.01, 0.3, 0.49, 0.51, 0.7, 0.99, 1.0, 1.01, 1.5, 1.6, 2.5, 3.14159, 7.1, 20.3]
BOTH = [sign * x for x in ANY for sign in (1, -1)]
WIDE = [*BOTH, 100.7, -100.7, 5000.5, -5000.5, 11000.0, -11000.0]
TURNS = [*BOTH, 100.7, 12345.678, 1e6, 6381956970095103.0 * 2.0**-20, 1e15]
POSITIVE = [*ANY, 1e-300, 1e300, 1 + 2.0**-40, 1 - 2.0**-40]
UNIT = [s * x for x in (1e-20, 1e-3, 0.1, 0.5, 0.7, 0.9, 0.999, 1 - 2.0**-40) for s in (1, -1)]
ONE = {
    "exp": (mp.exp, WIDE),
    "expm1": (mp.expm1, WIDE),
    "log": (mp.log, POSITIVE),
    "log1p": (mp.log1p, [x for x in BOTH if x > -1] + [1e300]),
    "sqrt": (mp.sqrt, POSITIVE),
    "sin": (mp.sin, TURNS),
    "cos": (mp.cos, TURNS),
    "tan": (mp.tan, TURNS),
    "asin": (mp.asin, UNIT),
    "acos": (mp.acos, UNIT),
    "atan": (mp.atan, [*BOTH, 1e10, -1e30]),
    "sinh": (mp.sinh, WIDE),
    "cosh": (mp.cosh, WIDE),
    "tanh": (mp.tanh, WIDE),
    "erf": (mp.erf, BOTH),
    "erfc": (mp.erfc, [*BOTH, 50.5]),
}
PAIRS = [(2.0, 0.5), (1.5, 3.0), (1.5, -7.0), (0.3, 2.7), (-2.5, 5.0), (10.1, -3.3), (3.0, 4.0)]
PAIRS += [(-0.7, -2.0), (1e-5, 1.5), (-1.0, -1e-3)]
TWO = {
    "pow": (mp.power, [(x, y) for x, y in PAIRS if x > 0 or y == int(y)]),
    "atan2": (mp.atan2, PAIRS),
    "hypot": (mp.hypot, PAIRS),
}


def three(x):
    """Return three doubles that add up to x."""
    parts = []
    for _ in range(3):
        parts.append(float(x))
        x -= mpf(parts[-1])
    return parts


def rows():
    """Yield the lines of the file."""
    yield "// cpp_tests/data/quad_reference.inc — made by scripts/make_quad_reference.py"
    yield "// ONE(function, x, the sum of three) and TWO(function, x, y, the sum of three)"
    for name, (f, points) in ONE.items():
        for x in points:
            y = f(mpf(x))
            scale = 0  # what does not fit a double is given divided by a power of two
            while abs(y) > mpf(2) ** 900 or (y != 0 and abs(y) < mpf(2) ** -800):
                step = 800 if abs(y) > 1 else -800
                scale, y = scale + step, y / mpf(2) ** step
            a, b, c = (v.hex() for v in three(y))
            yield f"ONE({name}, {float(x).hex()}, {a}, {b}, {c}, {scale})"
    for name, (g, pairs) in TWO.items():
        for x, y in pairs:
            a, b, c = (v.hex() for v in three(g(mpf(x), mpf(y))))
            yield f"TWO({name}, {float(x).hex()}, {float(y).hex()}, {a}, {b}, {c})"


if __name__ == "__main__":
    TARGET.write_text("\n".join(rows()) + "\n", encoding="utf-8")
