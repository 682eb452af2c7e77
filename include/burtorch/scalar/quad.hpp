// burtorch/scalar/quad.hpp — float128: IEEE binary128, 113 binary digits, about 34 decimal ones
// SPDX-License-Identifier: MIT
//
// Arithmetic is the compiler's (std::float128_t, __float128, or a long double of that format), else
// that of soft_quad.hpp; both are correctly rounded, so that all results are the same. The functions are written here, because the standard library of most compilers
// has none for this type: a first guess in double is improved by an identity that triples its
// digits, or a series is summed after the argument was made small. Their relative error is below
// 1e-32 (cpp_tests/quad_test.cpp; a unit in the last place is 2e-34), with one limit: pow(x, y) loses as
// many digits as |y·log x| has.
// BURTORCH_SOFT_FLOAT128=1 chooses soft_quad.hpp where there was a choice.
#pragma once

#include <burtorch/scalar/scalar.hpp>
#include <burtorch/scalar/soft_quad.hpp>
#include <burtorch/scalar/two_over_pi.hpp>

#include <array>
#include <bit>
#include <cfloat>
#include <cmath>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#if defined(__has_include)
#if __has_include(<stdfloat>)
#include <stdfloat>
#endif
#endif

#ifndef BURTORCH_SOFT_FLOAT128
#define BURTORCH_SOFT_FLOAT128 0
#endif

BURTORCH_BEGIN_NAMESPACE

class float128 {
public:
#if BURTORCH_SOFT_FLOAT128
  using Native = detail::SoftQuad;
#elif defined(__STDCPP_FLOAT128_T__)
  using Native = std::float128_t;
#elif LDBL_MANT_DIG == 113
  using Native = long double;
#elif defined(__SIZEOF_FLOAT128__)
  __extension__ typedef __float128 Native;
#else
  using Native = detail::SoftQuad;
#endif

  float128() = default;
  template <class Number>
    requires std::is_arithmetic_v<Number>
  BURTORCH_INLINE constexpr explicit float128(Number x) : x_(static_cast<Native>(x)) {}
  template <class N>
    requires(std::same_as<N, Native> && !std::is_arithmetic_v<N>)
  BURTORCH_INLINE constexpr float128(N x) : x_(x) {}
  // The exact sum of doubles that do not overlap: how constants are written.
  constexpr float128(double hi, double mid, double lo)
      : x_(static_cast<Native>(hi) + (static_cast<Native>(mid) + static_cast<Native>(lo))) {}

  template <class Number>
    requires std::is_arithmetic_v<Number> || std::same_as<Number, Native>
  BURTORCH_INLINE constexpr explicit operator Number() const {
    return static_cast<Number>(x_);
  }

  friend constexpr float128 operator+(float128 x, float128 y) { return of(x.x_ + y.x_); }
  friend constexpr float128 operator-(float128 x, float128 y) { return of(x.x_ - y.x_); }
  friend constexpr float128 operator*(float128 x, float128 y) { return of(x.x_ * y.x_); }
  friend constexpr float128 operator/(float128 x, float128 y) { return of(x.x_ / y.x_); }
  friend constexpr float128 operator-(float128 x) { return of(-x.x_); }
  friend constexpr bool operator==(float128 x, float128 y) { return x.x_ == y.x_; }
  friend constexpr std::partial_ordering operator<=>(float128 x, float128 y) {
    return x.x_ < y.x_    ? std::partial_ordering::less
           : x.x_ > y.x_  ? std::partial_ordering::greater
           : x.x_ == y.x_ ? std::partial_ordering::equivalent
                          : std::partial_ordering::unordered;
  }

  // The words of its representation, the low one first.
  constexpr std::array<std::uint64_t, 2> words() const {
    return inOrder(std::bit_cast<std::array<std::uint64_t, 2>>(x_));
  }
  static constexpr float128 fromWords(const std::array<std::uint64_t, 2>& w) {
    return of(std::bit_cast<Native>(inOrder(w)));
  }

private:
  static constexpr std::array<std::uint64_t, 2> inOrder(const std::array<std::uint64_t, 2>& w) {
    if (std::is_class_v<Native> || std::endian::native == std::endian::big) return {w[1], w[0]};
    return w;
  }
  static BURTORCH_INLINE constexpr float128 of(Native x) {
    float128 q;
    q.x_ = x;
    return q;
  }
  Native x_;
};

BURTORCH_INLINE constexpr bool isZero(float128 x) { return x == float128(0); }

template <> struct Constant<float128> {
  static constexpr float128 twoOverSqrtPi{0x1.20dd750429b6dp+0, 0x1.1ae3a914fed8p-56,
                                          -0x1.3cbbebf65f145p-111};
  static constexpr float128 inverseSqrt2{0x1.6a09e667f3bcdp-1, -0x1.bdd3413b26456p-55,
                                         0x1.57d3e3adec175p-109};
};

namespace detail::quad {

using Q = float128;

inline constexpr Q ln2(0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56, 0x1.7b57a079a1934p-111);
// 48 and 48 bits, then the rest: the first two times a 16-bit whole number are exact.
inline constexpr Q ln2Hi(0x1.62e42fefa39ep-1, 0x1.e6af278ece6p-50, 0);
inline constexpr Q ln2Lo(0x1.f97b57a079ap-103, 0x1.93394c5b16c4p-151, 0);
// 52 bits each: their products with a 60-bit whole number are exact.
inline constexpr double halfPi[] = {0x1.921fb54442d18p+0,   0x1.1a62633145c06p-54,
                                    0x1.c1cd129024e08p-107, 0x1.14cf98e804176p-160,
                                    0x1.d4c76273644a2p-212, 0x1.2821e638d0136p-265};
inline constexpr Q piOverTwo(halfPi[0], halfPi[1], halfPi[2]);
inline constexpr Q twoOverSqrtPi = Constant<Q>::twoOverSqrtPi;
inline constexpr Q infinity = Q(std::numeric_limits<double>::infinity());
inline constexpr Q nan = Q(std::numeric_limits<double>::quiet_NaN());

inline bool isFinite(Q x) { return x - x == Q(0); }
inline Q magnitude(Q x) {
  auto w = x.words();
  w[1] &= ~(std::uint64_t{1} << 63);
  return Q::fromWords(w);
}
inline bool isNegative(Q x) { return (x.words()[1] >> 63) != 0; } // also for -0
inline Q withSign(Q x, Q sign) { return isNegative(x) == isNegative(sign) ? x : -x; }

constexpr Q powerOfTwo(int n) { // of a normal number
  return Q::fromWords({0, static_cast<std::uint64_t>(n + 16383) << 48});
}
// x·2^n, rounded once; x between ¼ and 4.
inline Q scaled(Q x, int n) { return x * powerOfTwo(n / 2) * powerOfTwo(n - n / 2); }

// The whole number nearest to x, |x| < 2^110.
inline Q nearest(Q x) {
  constexpr Q rounder = Q(1.5) * powerOfTwo(112);
  return (x + rounder) - rounder;
}

// Positive finite x = m·2^exponent, m between √½ and √2.
struct Parts {
  Q m;
  int exponent;
};
inline Parts partsOf(Q x) {
  int exponent = 0;
  if (x < powerOfTwo(-16382)) {
    x = x * powerOfTwo(120);
    exponent = -120;
  }
  const auto w = x.words();
  exponent += static_cast<int>(w[1] >> 48) - 16383;
  const std::uint64_t fraction = w[1] & 0xffffffffffffu;
  const Q m = Q::fromWords({w[0], fraction | (std::uint64_t{16383} << 48)});
  if (m > Q(1.4142135)) return {m * Q(0.5), exponent + 1};
  return {m, exponent};
}

// e^r − 1 for |r| ≤ ½: the series for r/32, then five doublings, (1+e)² − 1 = e·(2+e).
inline Q expm1Small(Q r) {
  const Q t = r * Q(1.0 / 32);
  Q e(0);
  for (int k = 16; k > 1; --k) e = (e + Q(1)) * t / Q(k);
  e = (e + Q(1)) * t;
  for (int k = 0; k < 5; ++k) e = e * (Q(2) + e);
  return e;
}

// log(1 + f) for 1 + f between √½ and √2: y + 2·(m − e^y)/(m + e^y) has three times y's digits.
inline Q log1pSmall(Q f) {
  const Q y(std::log1p(static_cast<double>(f)));
  const Q e = expm1Small(y);
  return y + Q(2) * (f - e) / (Q(2) + f + e);
}

// x − n·π/2 for the nearest whole n; the quadrant is n modulo 4.
struct Reduced {
  Q r;
  int quadrant;
};

// The same for |x| ≥ 2^50: x = m·2^e with a whole number m, so x/(π/2) is m times a shifted 2/π. The digits of
// 2/π that give multiples of 4 do not matter, nor those that are too small: 384 are left, from `skipped` on.
// The product is a number of 512 bits of which the lowest `point` stand after the point. As x comes no closer
// to a multiple of π/2 than 2^-135 or so, more than 113 of those are right.
inline Reduced reducedFar(Q x) {
  constexpr int limbs = 16;
  const auto w = magnitude(x).words();
  const int e = static_cast<int>(w[1] >> 48) - 16383 - 112;
  const std::uint64_t top = (w[1] & 0xffffffffffffu) | (std::uint64_t{1} << 48);
  const std::uint64_t m[4] = {w[0] & 0xffffffffu, w[0] >> 32, top & 0xffffffffu, top >> 32};
  const int skipped = e > 2 ? e - 2 : 0;
  const int point = 384 - (e - skipped);

  std::array<std::uint32_t, limbs> p{}; // the product, the lowest limb first
  for (int i = 0; i < 4; ++i) {
    std::uint64_t carry = 0;
    for (int j = 0; j < 12; ++j) {
      const int at = skipped + 32 * (11 - j);
      const std::uint64_t* const word = twoOverPi + at / 64;
      const int shift = at % 64;
      const std::uint64_t digits =
          shift == 0 ? word[0] : word[0] << shift | word[1] >> (64 - shift);
      const auto k = static_cast<std::size_t>(i + j);
      carry += m[i] * (digits >> 32) + p[k];
      p[k] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    p[static_cast<std::size_t>(i) + 12] = static_cast<std::uint32_t>(carry);
  }
  const auto bits = [&](int from, int count) { // at most 64 of them
    std::uint64_t all = 0;
    for (int i = count; i-- != 0;) {
      const auto at = static_cast<std::size_t>(from + i);
      all = all << 1 | (p[at / 32] >> (at % 32) & 1u);
    }
    return all;
  };

  int quadrant = static_cast<int>(bits(point, 2));
  const bool isUp = bits(point - 1, 1) != 0; // to the next whole number: what is left is negative
  if (isUp) {
    ++quadrant;
    std::uint64_t carry = 1;
    for (std::uint32_t& limb : p) {
      carry += ~limb;
      limb = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
  }
  int first = point - 1; // the first digit that is not 0
  while (first > 112 && bits(first, 1) == 0) --first;
  const auto exponent = static_cast<std::uint64_t>(first - point + 16383);
  const Q turns = Q::fromWords({bits(first - 112, 64), bits(first - 48, 48) | exponent << 48});
  const bool isMinus = isNegative(x);
  return {(isUp != isMinus ? -turns : turns) * piOverTwo, (isMinus ? -quadrant : quadrant) & 3};
}

inline Reduced reduced(Q x) {
  if (magnitude(x) >= powerOfTwo(50)) return reducedFar(x);
  const Q n = nearest(x / piOverTwo);
  Q r = x;
  for (const double part : halfPi) r = r - n * Q(part);
  return {r, static_cast<int>(static_cast<std::int64_t>(n) & 3)};
}

// sin(r) and cos(r) for |r| ≤ π/4, as Taylor series.
inline Q sinSmall(Q r) {
  const Q z = r * r;
  Q s(0);
  for (int k = 33; k > 1; k -= 2) s = (Q(1) - s) * z / Q(k * (k - 1));
  return r - r * s;
}
inline Q cosSmall(Q r) {
  const Q z = r * r;
  Q s(0);
  for (int k = 34; k > 2; k -= 2) s = (Q(1) - s) * z / Q(k * (k - 1));
  return Q(1) - (Q(1) - s) * z * Q(0.5);
}

inline Q sine(Q x, int quarters) {
  if (!isFinite(x)) return nan;
  if (x == Q(0) && quarters == 0) return x;
  const auto [r, quadrant] = reduced(x);
  const int q = (quadrant + quarters) & 3;
  const Q s = (q & 1) != 0 ? cosSmall(r) : sinSmall(r);
  return (q & 2) != 0 ? -s : s;
}

// erfc(x) for x ≥ 1 by its continued fraction e^−x²/√π · 1/(x + ½/(x + 1/(x + 1½/(x + …)))), from
// far enough inside.
inline Q erfcTail(Q x, Q expOfMinusSquare) {
  const double d = static_cast<double>(x);
  Q tail = x;
  for (int k = 60 + static_cast<int>(900 / (d * d)); k > 0; --k) tail = x + Q(0.5 * k) / tail;
  return expOfMinusSquare * twoOverSqrtPi * Q(0.5) / tail;
}

// erf(x) for |x| ≤ 3 or so: 2/√π·e^−x²·x·Σ (2x²)^k/(1·3·5…(2k+1)), all terms of one sign.
inline Q erfSeries(Q x, Q expOfMinusSquare) {
  const Q twice = Q(2) * x * x;
  Q term(1), sum(1);
  for (int k = 1; term > sum * powerOfTwo(-118); ++k) {
    term = term * twice / Q(2 * k + 1);
    sum = sum + term;
  }
  return twoOverSqrtPi * expOfMinusSquare * x * sum;
}

} // namespace detail::quad

inline float128 fabs(float128 x) { return detail::quad::magnitude(x); }

inline float128 sqrt(float128 x) {
  using namespace detail::quad;
  if (!(x > Q(0)) || !isFinite(x)) return x < Q(0) ? nan : x; // 0, -0, ∞, NaN stay
  const auto [m, exponent] = partsOf(x);
  const bool odd = (exponent & 1) != 0;
  const Q square = odd ? m * Q(2) : m;
  Q s(std::sqrt(static_cast<double>(square)));
  for (int i = 0; i < 2; ++i) s = Q(0.5) * (s + square / s); // 53, 106, all digits
  return scaled(s, (exponent - (odd ? 1 : 0)) / 2);
}

inline float128 exp(float128 x) {
  using namespace detail::quad;
  if (x > Q(11357)) return infinity;
  if (x < Q(-11434)) return Q(0);
  if (!(x == x)) return x;
  const Q n = nearest(x / ln2);
  return scaled(Q(1) + expm1Small((x - n * ln2Hi) - n * ln2Lo), static_cast<int>(n));
}

inline float128 expm1(float128 x) {
  using namespace detail::quad;
  if (fabs(x) <= Q(0.4)) return x == Q(0) ? x : expm1Small(x);
  return exp(x) - Q(1);
}

inline float128 log(float128 x) {
  using namespace detail::quad;
  if (x == Q(0)) return -infinity;
  if (!(x > Q(0)) || !isFinite(x)) return x < Q(0) ? nan : x;
  const auto [m, exponent] = partsOf(x);
  const Q k(exponent);
  return k * ln2Hi + (log1pSmall(m - Q(1)) + k * ln2Lo);
}

inline float128 log1p(float128 x) {
  using namespace detail::quad;
  if (fabs(x) < Q(0.25)) return x == Q(0) ? x : log1pSmall(x);
  return log(Q(1) + x);
}

inline float128 sin(float128 x) { return detail::quad::sine(x, 0); }
inline float128 cos(float128 x) { return detail::quad::sine(x, 1); }
inline float128 tan(float128 x) { return x == float128(0) ? x : sin(x) / cos(x); }

inline float128 atan(float128 x) {
  using namespace detail::quad;
  if (x == Q(0) || !(x == x)) return x;
  const Q a = fabs(x);
  if (a > Q(1)) return withSign(piOverTwo - atan(Q(1) / a), x);
  const Q y(std::atan(static_cast<double>(x)));
  const Q t = tan(y), d = (x - t) / (Q(1) + x * t); // atan x = y + atan d, and d is tiny
  return y + (d - d * d * d / Q(3));
}

inline float128 atan2(float128 y, float128 x) {
  using namespace detail::quad;
  if (!(x == x) || !(y == y)) return nan;
  const Q pi = Q(2) * piOverTwo;
  if (!isFinite(x) || !isFinite(y) || x == Q(0) || y == Q(0)) { // multiples of π/4
    const double quarters =
        std::nearbyint(std::atan2(static_cast<double>(y), static_cast<double>(x)) / 0.7853981634);
    return withSign(Q(std::fabs(quarters)) * pi * Q(0.25), y);
  }
  const Q angle = atan(fabs(y) / fabs(x)); // between 0 and π/2
  return withSign(isNegative(x) ? pi - angle : angle, y);
}

inline float128 asin(float128 x) {
  using Q = float128;
  return x == Q(0) ? x : atan(x / sqrt((Q(1) - x) * (Q(1) + x)));
}
inline float128 acos(float128 x) {
  using Q = float128;
  return Q(2) * atan(sqrt((Q(1) - x) / (Q(1) + x)));
}

inline float128 sinh(float128 x) {
  using namespace detail::quad;
  const Q a = fabs(x);
  if (a > Q(100)) { // where e^−x is nothing, and e^x might be too much
    const Q half = exp(a * Q(0.5));
    return withSign(half * Q(0.5) * half, x);
  }
  const Q e = expm1(a);
  return withSign(Q(0.5) * (e + e / (e + Q(1))), x);
}
inline float128 cosh(float128 x) {
  using namespace detail::quad;
  const Q half = exp(fabs(x) * Q(0.5)), e = half * half;
  return isFinite(e) ? Q(0.5) * (e + Q(1) / e) : half * Q(0.5) * half;
}
inline float128 tanh(float128 x) {
  using namespace detail::quad;
  const Q a = fabs(x);
  if (a > Q(50)) return withSign(Q(1), x);
  const Q e = expm1(Q(2) * a);
  return withSign(e / (e + Q(2)), x);
}

inline float128 erfc(float128 x) {
  using namespace detail::quad;
  if (!(x == x)) return x;
  if (fabs(x) < Q(1)) return Q(1) - erfSeries(x, exp(-(x * x)));
  if (x < Q(-10)) return Q(2);
  if (x > Q(110)) return Q(0);
  // e^−x² of a large x: the square has to be known to more digits than it has.
  const Q big = nearest(fabs(x) * Q(0x1p40)) * Q(0x1p-40), rest = fabs(x) - big;
  const Q power = exp(-(big * big)) * exp(-(rest * (big + fabs(x))));
  const Q tail = erfcTail(fabs(x), power);
  return isNegative(x) ? Q(2) - tail : tail;
}
inline float128 erf(float128 x) {
  using namespace detail::quad;
  if (!(x == x) || x == Q(0)) return x;
  if (fabs(x) < Q(1)) return erfSeries(x, exp(-(x * x)));
  return withSign(Q(1) - erfc(fabs(x)), x);
}

inline float128 hypot(float128 x, float128 y) {
  using namespace detail::quad;
  Q a = fabs(x), b = fabs(y);
  if (a == infinity || b == infinity) return infinity;
  if (a < b) {
    const Q c = a;
    a = b;
    b = c;
  }
  if (!(a > Q(0))) return a + b;
  const Q ratio = b / a;
  return a * sqrt(Q(1) + ratio * ratio);
}

inline float128 pow(float128 x, float128 y) {
  using namespace detail::quad;
  const bool whole = fabs(y) < powerOfTwo(112) ? nearest(y) == y : true;
  if (y == Q(0) || x == Q(1)) return Q(1);
  if (!(x == x) || !(y == y)) return nan;
  if (x == Q(0) || !isFinite(x) || !isFinite(y) || (x < Q(0) && !whole)) {
    // Only the class of the result matters, and the parity of y for its sign.
    const double parity = whole && fabs(y) < powerOfTwo(112)
                              ? static_cast<double>(y - Q(2) * nearest(y * Q(0.5)))
                              : 0;
    const double exponent = !isFinite(y)  ? static_cast<double>(y)
                            : !whole      ? static_cast<double>(withSign(Q(0.5), y))
                            : parity != 0 ? static_cast<double>(withSign(Q(1), y))
                                          : static_cast<double>(withSign(Q(2), y));
    const Q base = isFinite(x) && isFinite(y) ? x
                   : isFinite(x)              ? (fabs(x) < Q(1)   ? Q(0.5)
                                                 : fabs(x) > Q(1) ? Q(2)
                                                                  : Q(1))
                                              : x;
    return Q(std::pow(static_cast<double>(base), exponent));
  }
  if (whole && fabs(y) <= Q(64)) { // exact as long as it can be
    Q power(1), square = x;
    for (int n = static_cast<int>(fabs(y)); n != 0; n >>= 1) {
      if ((n & 1) != 0) power = power * square;
      square = square * square;
    }
    return isNegative(y) ? Q(1) / power : power;
  }
  const Q power = exp(y * log(fabs(x)));
  const bool odd = whole && Q(2) * nearest(y * Q(0.5)) != y;
  return x < Q(0) && odd ? -power : power;
}

BURTORCH_END_NAMESPACE

template <> struct std::numeric_limits<burtorch::float128> { // what the library and its users need
  using Q = burtorch::float128;
  static constexpr bool is_specialized = true, is_signed = true, is_iec559 = true,
                        has_infinity = true, has_quiet_NaN = true;
  static constexpr int digits = 113, digits10 = 33, max_exponent = 16384, min_exponent = -16381;
  static constexpr Q infinity() { return burtorch::detail::quad::infinity; }
  static constexpr Q quiet_NaN() { return burtorch::detail::quad::nan; }
  static constexpr Q epsilon() { return burtorch::detail::quad::powerOfTwo(-112); }
  static constexpr Q min() { return burtorch::detail::quad::powerOfTwo(-16382); }
  static constexpr Q max() { return Q::fromWords({~std::uint64_t{0}, 0x7ffeffffffffffffu}); }
  static constexpr Q lowest() { return -max(); }
  static constexpr Q denorm_min() { return Q::fromWords({1, 0}); }
};
