# scripts/make_quad_reference.py — writes the numbers that float128 is tested against, and the digits of 2/π it needs
# SPDX-License-Identifier: MIT
"""Numbers for float128, computed with mpmath.

cpp_tests/data/quad_reference.inc holds true values of functions to 113 bits. Every number is three
doubles whose sum it is. include/burtorch/scalar/two_over_pi.hpp holds so many binary digits of 2/π
that a whole number of quarter turns can be taken off any float128. Run:
python scripts/make_quad_reference.py (needs mpmath; neither the library nor the tests do).
"""

from __future__ import annotations

from pathlib import Path

from mpmath import mp, mpf

mp.dps = 120
ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "cpp_tests/data/quad_reference.inc"
DIGITS = ROOT / "include/burtorch/scalar/two_over_pi.hpp"
DIGITS_BITS = 16704  # 16271, the largest exponent of a last digit, and 384 more, in words of 64
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


def quad(x):
    """Return the number of 113 bits next to x, as one between 1 and 2 and a power of two."""
    with mp.workdps(5200):
        power = int(mp.floor(mp.log(abs(x), 2)))
        return mpf(int(mp.nint(x / mpf(2) ** (power - 112)))) / mpf(2) ** 112, power


def far():
    """Yield arguments with many turns: round ones, the ends of the range, and some close to π/2·n."""
    with mp.workdps(5200):
        points = [mpf(10) ** n for n in (15, 16, 20, 25, 33, 34, 60, 308, 1000, 4000, 4932)]
        points += [mpf(2) ** n for n in (50, 51, 112, 113, 114, 128, 1024, 10000, 16383)]
        points += [(2 - mpf(2) ** -112) * mpf(2) ** 16383, mpf(2) ** 50 - mpf(2) ** -62]
        points += [mp.pi / 2 * mpf(n) for n in (10**15, 2**51 + 1, 10**20 + 1, 3**40, 3**41)]
        points += [mp.pi / 2 * (mpf(7) ** n) for n in (60, 61, 100, 1000, 5000)]
        points += [-(mpf(10) ** 20), -(mpf(3) ** 5000)]
    for x in points:
        yield quad(x)


def digits():
    """Yield the lines of the header with the digits of 2/π."""
    with mp.workprec(DIGITS_BITS + 64):
        bits = int(mp.floor(2 / mp.pi * mpf(2) ** DIGITS_BITS))
    words = [(bits >> (DIGITS_BITS - 64 * (i + 1))) & (2**64 - 1) for i in range(DIGITS_BITS // 64)]
    yield "// burtorch/scalar/two_over_pi.hpp — the binary digits of 2/π, made by scripts/make_quad_reference.py"
    yield "// SPDX-License-Identifier: MIT"
    yield "#pragma once"
    yield ""
    yield "#include <burtorch/base/config.hpp>"
    yield ""
    yield "#include <cstdint>"
    yield ""
    yield "BURTORCH_BEGIN_NAMESPACE"
    yield ""
    yield "namespace detail::quad {"
    yield ""
    yield "// The digits after the point, 64 to a word."
    yield "// clang-format off"
    yield "inline constexpr std::uint64_t twoOverPi[] = {"
    for i in range(0, len(words), 4):
        yield "  " + " ".join(f"0x{word:016x}," for word in words[i : i + 4])
    yield "};"
    yield "// clang-format on"
    yield ""
    yield "} // namespace detail::quad"
    yield ""
    yield "BURTORCH_END_NAMESPACE"


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
    yield "// FAR(function, n, the sum of three that times 2^n is x, the sum of three)"
    for x, power in far():
        for name in ("sin", "cos", "tan"):
            with mp.workdps(5200):
                y = +ONE[name][0](x * mpf(2) ** power)
                numbers = ", ".join(v.hex() for v in (*three(x), *three(y)))
            yield f"FAR({name}, {power}, {numbers})"
    for name, (g, pairs) in TWO.items():
        for x, y in pairs:
            a, b, c = (v.hex() for v in three(g(mpf(x), mpf(y))))
            yield f"TWO({name}, {float(x).hex()}, {float(y).hex()}, {a}, {b}, {c})"


if __name__ == "__main__":
    TARGET.write_text("\n".join(rows()) + "\n", encoding="utf-8")
    DIGITS.write_text("\n".join(digits()) + "\n", encoding="utf-8")
