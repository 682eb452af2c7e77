# scripts/make_polynomials.py — writes include/burtorch/scalar/vector_constants.hpp
# SPDX-License-Identifier: MIT
"""Minimax polynomials and split constants for the vector functions, found with mpmath.

Each polynomial minimizes the largest weighted error (the exchange algorithm of Remez), the weight
being chosen so that what is minimized is the relative error of the function. Run:
python scripts/make_polynomials.py (needs mpmath; nothing else does).
"""

from __future__ import annotations

from pathlib import Path

from mpmath import mp, mpf

mp.dps = 60
TARGET = Path(__file__).resolve().parents[1] / "include/burtorch/scalar/vector_constants.hpp"


def remez(f, weight, lo, hi, degree):
    """Return p[0…degree] with the least maximum of |weight(x)·(Σ p_k x^k − f(x))| on [lo, hi]."""
    n = degree + 2
    lo, hi = mpf(lo), mpf(hi)

    def node(k, of):  # Chebyshev points, from lo to hi
        return (lo + hi) / 2 - (hi - lo) / 2 * mp.cos(mp.pi * k / (of - 1))

    grid = [node(k, 40 * n) for k in range(40 * n)]
    values = [(f(x), weight(x)) for x in grid]
    places = [round(k * (len(grid) - 1) / (n - 1)) for k in range(n)]
    for _ in range(30):
        a, b = mp.matrix(n, n), mp.matrix(n, 1)
        for row, place in enumerate(places):
            value, w = values[place]
            for k in range(degree + 1):
                a[row, k] = grid[place] ** k
            a[row, degree + 1] = (-1) ** row / w
            b[row] = value
        solution = mp.lu_solve(a, b)
        p = list(solution[: degree + 1])
        error = [w * (mp.polyval(p[::-1], x) - v) for x, (v, w) in zip(grid, values)]
        runs: list[int] = []  # the worst place of every run of equal sign
        for i, e in enumerate(error):
            if runs and (e >= 0) == (error[runs[-1]] >= 0):
                if abs(e) > abs(error[runs[-1]]):
                    runs[-1] = i
            else:
                runs.append(i)
        while len(runs) > n:
            runs.pop(0 if abs(error[runs[0]]) < abs(error[runs[-1]]) else -1)
        worst = max(map(abs, error))
        if len(runs) < n or worst <= abs(solution[degree + 1]) * mpf("1.001"):
            break
        places = runs
    return p, worst


def truncated(x, bits):
    """Return x rounded towards zero to so many bits."""
    _, exponent = mp.frexp(x)
    unit = mp.ldexp(mpf(1), exponent - bits)
    return mp.floor(abs(x) / unit) * unit * mp.sign(x)


def split(x, bits):
    """Return parts of so many bits each that add up to x; the last one is as long as it can be."""
    parts = []
    for width in bits:
        parts.append(truncated(x, width))
        x -= parts[-1]
    return parts


def small(f, x, limit):
    """Return f(x), but limit where x is 0 (where f is 0/0)."""
    return mpf(limit) if abs(x) < mpf(10) ** -30 else f(x)


def polynomials(single):
    """Yield name, coefficients and worst weighted error for float or double."""
    ln2 = mp.log(2)
    r = ln2 / 2 * mpf("1.0001")
    # e^r = 1 + r + r²·p(r); the error matters relative to e^r − 1.
    yield (
        "exp",
        *remez(
            lambda x: small(lambda t: (mp.expm1(t) - t) / t**2, x, 0.5),
            lambda x: small(lambda t: abs(t**2 / mp.expm1(t)), x, 0) + mpf(10) ** -9,
            -r,
            r,
            5 if single else 10,
        ),
    )
    # log(m) = 2s + s·z·p(z), s = (m−1)/(m+1), z = s²; m between √½ and √2.
    s = (mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)
    yield (
        "log",
        *remez(
            lambda z: small(
                lambda t: (2 * mp.atanh(mp.sqrt(t)) / mp.sqrt(t) - 2) / t, z, mpf(2) / 3
            ),
            lambda z: z + mpf(10) ** -9,
            0,
            s**2,
            2 if single else 6,
        ),
    )
    # sin(r) = r + r·z·p(z), cos(r) = 1 − z/2 + z²·p(z), z = r²; |r| ≤ π/4.
    z1 = (mp.pi / 4 * mpf("1.001")) ** 2
    yield (
        "sin",
        *remez(
            lambda z: small(lambda t: (mp.sin(mp.sqrt(t)) / mp.sqrt(t) - 1) / t, z, -mpf(1) / 6),
            lambda z: z + mpf(10) ** -9,
            0,
            z1,
            2 if single else 5,
        ),
    )
    yield (
        "cos",
        *remez(
            lambda z: small(lambda t: (mp.cos(mp.sqrt(t)) - 1 + t / 2) / t**2, z, mpf(1) / 24),
            lambda z: z**2 + mpf(10) ** -9,
            0,
            z1,
            2 if single else 5,
        ),
    )
    # erf(x) = x + x·p(x²) for |x| ≤ 1.
    yield (
        "erfNear",
        *remez(
            lambda z: small(lambda t: mp.erf(mp.sqrt(t)) / mp.sqrt(t), z, 2 / mp.sqrt(mp.pi)) - 1,
            lambda z: mpf(1),
            0,
            mpf("1.001"),
            6 if single else 12,
        ),
    )
    # erf(x) = 1 − e^−p(x) from 1 to where it rounds to 1: what matters is the error of e^−p.
    yield (
        "erfFar",
        *remez(
            lambda x: -mp.log(mp.erfc(x)),
            mp.erfc,
            mpf("0.999"),
            mpf(4) if single else mpf(6),
            7 if single else 19,
        ),
    )


def literal(x, single):
    """Return the nearest float or double as an exact C++ literal."""
    bits = 24 if single else 53
    mantissa, exponent = mp.frexp(x)
    scaled = int(mp.nint(mp.ldexp(mantissa, bits)))
    if scaled == 0:
        return "0"
    exponent -= bits
    while scaled % 2 == 0:
        scaled, exponent = scaled // 2, exponent + 1
    return f"{'-' if scaled < 0 else ''}0x{abs(scaled):x}p{exponent}{'f' if single else ''}"


def table(single):
    """Return the struct of one type as text."""
    t = "float" if single else "double"
    lines = [f"template <> struct VectorConstants<{t}> {{"]

    def put(name, numbers, comment):
        body = ", ".join(literal(x, single) for x in numbers)
        lines.append(f"  // {comment}")
        lines.append(f"  static constexpr {t} {name}[] = {{{body}}};")

    # The products of these parts with the whole numbers they meet are exact: n of exp and log has
    # at most 8 bits (11 for double), the quadrant of sin and cos at most 12 (20).
    put("ln2", split(mp.log(2), [24 - 9, 24] if single else [53 - 12, 53]), "log 2 in parts")
    put(
        "halfPi",
        split(mp.pi / 2, [12, 12, 12, 12, 24] if single else [33, 33, 33, 53]),
        "π/2 in parts",
    )
    for name, p, worst in polynomials(single):
        put(name, p, f"lowest power first; error 2^{float(mp.log(worst, 2)):.1f}")
    return "\n".join([*lines, "};"])


HEAD = """\
// burtorch/scalar/vector_constants.hpp — polynomials of the vector functions; made by scripts/make_polynomials.py
// SPDX-License-Identifier: MIT
//
// What each polynomial approximates stands beside its use in vector_math.hpp and in the script.
#pragma once

#include <burtorch/base/config.hpp>

BURTORCH_BEGIN_NAMESPACE

namespace detail {

// clang-format off
template <class T> struct VectorConstants;
"""
TAIL = """
// clang-format on

} // namespace detail

BURTORCH_END_NAMESPACE
"""

if __name__ == "__main__":
    text = "\n".join([HEAD, table(single=True), "", table(single=False), TAIL])
    TARGET.write_text(text, encoding="utf-8")
