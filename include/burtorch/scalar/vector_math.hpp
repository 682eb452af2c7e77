// burtorch/scalar/vector_math.hpp — exp, log, tanh, sigmoid, sin, cos, erf of all lanes at once
// SPDX-License-Identifier: MIT
//
// Every function here is at most 2 ulp from the correctly rounded result, for every float and
// double, with the special values of the C standard (cpp_tests/vector_math_test.cpp samples,
// cpp_tests/slow/ tries all floats). Written once for float and double: what differs is in
// vector_constants.hpp. What branches does so for all lanes together: log where a lane is no normal
// positive number, sin and cos where one is larger than many thousand turns and the standard
// library is asked.
//
// The results depend on whether the target has fused multiply-add, within those 2 ulp.
#pragma once

#include <burtorch/scalar/simd.hpp>
#include <burtorch/scalar/vector_constants.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>
#include <type_traits>
#include <utility>

BURTORCH_BEGIN_NAMESPACE

namespace detail {

template <class T> struct VectorMath : VectorConstants<T> {
  using Limits = std::numeric_limits<T>;
  using Bits = std::make_unsigned_t<BitsOf<T>>;
  static constexpr bool isFloat = std::same_as<T, float>;
  static constexpr int mantissaBits = Limits::digits - 1;
  static constexpr T bias = Limits::max_exponent - 1;
  static constexpr T two = T(Bits(1) << mantissaBits); // 2^mantissaBits
  // Adding and subtracting this rounds to a whole number, which meanwhile stands in the low bits.
  static constexpr T rounder = T(1.5) * two;
  static constexpr T expHi = isFloat ? T(89) : T(710);     // e^x is ∞ from here on
  static constexpr T expLo = isFloat ? T(-104) : T(-746);  // and 0 up to here
  static constexpr T tanhHi = isFloat ? T(10) : T(20);     // tanh x is 1 from here on
  static constexpr T erfHi = isFloat ? T(4) : T(6);        // and erf x from here on
  static constexpr T sinHi = isFloat ? T(6000) : T(1.6e6); // quadrants of at most 12 or 20 bits
};

template <class T, std::size_t N, std::size_t n>
BURTORCH_INLINE simd<T, N> polynomial(const T (&c)[n], const simd<T, N>& x) {
  simd<T, N> p(c[n - 1]);
  [&]<std::size_t... k>(std::index_sequence<k...>) BURTORCH_INLINE_LAMBDA {
    ((p = fma(p, x, simd<T, N>(c[n - 2 - k]))), ...);
  }(std::make_index_sequence<n - 1>{});
  return p;
}

template <class T, std::size_t N> BURTORCH_INLINE simd<T, N> rounded(const simd<T, N>& x) {
  using M = VectorMath<T>;
  return (x + M::rounder) - M::rounder;
}

// 2^n for whole n of the range of normal numbers.
template <class T, std::size_t N> BURTORCH_INLINE simd<T, N> twoTo(const simd<T, N>& n) {
  using M = VectorMath<T>;
  return bitCast<T>(bitCast<typename M::Bits>(n + (M::rounder + M::bias)) << M::mantissaBits);
}

// x = n·log 2 + r with whole n and |r| ≤ log(2)/2; q = e^r − 1.
template <class T, std::size_t N> struct ExpParts {
  simd<T, N> n, q;
};
template <class T, std::size_t N> BURTORCH_INLINE ExpParts<T, N> expParts(const simd<T, N>& x) {
  using M = VectorMath<T>;
  using V = simd<T, N>;
  const V n = rounded(x * V(std::numbers::log2e_v<T>));
  const V r = fma(n, V(-M::ln2[1]), fma(n, V(-M::ln2[0]), x));
  return {n, fma(r * r, polynomial(M::exp, r), r)};
}

// e^x − 1 where 2^n and its inverse are normal numbers.
template <class T, std::size_t N> BURTORCH_INLINE simd<T, N> expm1Near(const simd<T, N>& x) {
  const auto [n, q] = expParts(x);
  const simd<T, N> scale = twoTo(n);
  return fma(q, scale, scale - T(1));
}

// log(x) − down·log 2 for normal positive x = 2^k·m with m between √½ and √2.
template <class T, std::size_t N>
BURTORCH_INLINE simd<T, N> logOfNormal(const simd<T, N>& x, const simd<T, N>& down) {
  using M = VectorMath<T>;
  using V = simd<T, N>;
  using Bits = typename M::Bits;
  using BitLanes = simd<Bits, N>;
  constexpr Bits one = std::bit_cast<Bits>(T(1));
  constexpr Bits low = std::bit_cast<Bits>(T(1) / std::numbers::sqrt2_v<T>);
  const BitLanes shifted = bitCast<Bits>(x) + Bits(one - low);
  const V biased = bitCast<T>((shifted >> M::mantissaBits) | BitLanes(std::bit_cast<Bits>(M::two)));
  const V k = (biased - (M::two + M::bias)) - down;
  const V m = bitCast<T>((shifted & BitLanes((Bits(1) << M::mantissaBits) - 1)) + low);

  const V f = m - T(1), s = f / (f + T(2)), z = s * s;
  const V halfSquare = T(0.5) * f * f;
  const V r = z * polynomial(M::log, z);
  return k * M::ln2[0] - ((halfSquare - fma(s, halfSquare + r, k * M::ln2[1])) - f);
}

// The exact sum of x and y as a rounded sum and what rounding lost.
template <class T, std::size_t N> struct Pair {
  simd<T, N> hi, lo;
};
template <class T, std::size_t N>
BURTORCH_INLINE Pair<T, N> twoSum(const simd<T, N>& x, const simd<T, N>& y) {
  const auto s = x + y, other = s - x;
  return {s, (x - (s - other)) + (y - other)};
}

// sin(x + quarter turns): with n the nearest whole number to x/(π/2) and x = n·π/2 + r, the sine or
// cosine of r with a sign. r is a pair, because x may be very near to n·π/2: products of n with the
// parts of π/2 are exact, and so are their sums.
template <int quarters, class T, std::size_t N>
BURTORCH_INLINE simd<T, N> sine(const simd<T, N>& x) {
  using M = VectorMath<T>;
  using V = simd<T, N>;
  using Bits = typename M::Bits;
  using BitLanes = simd<Bits, N>;
  constexpr std::size_t parts = std::size(M::halfPi);
  const V shifted = x * V(T(2) / std::numbers::pi_v<T>) + M::rounder;
  const V n = shifted - M::rounder;
  Pair<T, N> r{x - n * M::halfPi[0], V(T(0))}; // exact: the two are near, or n is 0
  for (std::size_t k = 1; k + 1 < parts; ++k) {
    const auto [hi, lo] = twoSum(r.hi, -(n * M::halfPi[k]));
    r = {hi, r.lo + lo};
  }
  const V rest = r.lo - n * M::halfPi[parts - 1];
  const V hi = r.hi + rest;
  const V lo = (r.hi - hi) + rest;

  const V z = hi * hi;
  const V sinus = hi + fma(hi * z, polynomial(M::sin, z), lo);
  const V halfZ = z * T(0.5), w = T(1) - halfZ;
  const V cosinus = w + (((T(1) - w) - halfZ) + fma(z * z, polynomial(M::cos, z), -(hi * lo)));

  const BitLanes quadrant = bitCast<Bits>(shifted) + Bits(quarters);
  const auto odd = (quadrant & BitLanes(Bits(1))) == BitLanes(Bits(1));
  const BitLanes sign = (quadrant & BitLanes(Bits(2))) << (int(sizeof(T)) * 8 - 2);
  return bitCast<T>(bitCast<Bits>(select(mask<T, N>{odd.bits}, cosinus, sinus)) ^ sign);
}

// vector where the argument is in range (or the answer is the same), else ask for each lane.
template <class T, std::size_t N, class F>
BURTORCH_INLINE simd<T, N> orEachLane(const simd<T, N>& x, const simd<T, N>& result, T limit,
                                      const F& f) {
  const auto outside = !(fabs(x) <= simd<T, N>(limit));
  if (!any(outside)) [[likely]]
    return result;
  return select(outside, eachLane(f, x), result);
}

} // namespace detail

template <class T, std::size_t N> BURTORCH_INLINE simd<T, N> exp(const simd<T, N>& x) {
  using M = detail::VectorMath<T>;
  using V = simd<T, N>;
  const auto [n, q] = detail::expParts(min(V(M::expHi), max(V(M::expLo), x))); // NaN stays NaN
  const V half = detail::rounded(n * T(0.5)); // 2^n in two steps: it may be denormal, or too large
  return (q + T(1)) * detail::twoTo(half) * detail::twoTo(n - half);
}

// e^x − 1
template <class T, std::size_t N> BURTORCH_INLINE simd<T, N> expm1(const simd<T, N>& x) {
  using M = detail::VectorMath<T>;
  using V = simd<T, N>;
  const auto [n, q] = detail::expParts(min(V(M::expHi), max(V(-T(2) * M::tanhHi), x)));
  const V half = detail::twoTo(n - T(1)); // 2^n may be too large a number
  return copysign(fma(q, half, half - T(0.5)) * T(2), x);
}

template <class T, std::size_t N> BURTORCH_INLINE simd<T, N> log(const simd<T, N>& x) {
  using M = detail::VectorMath<T>;
  using V = simd<T, N>;
  constexpr T infinity = M::Limits::infinity();
  if (all((x >= V(M::Limits::min())) & (x < V(infinity)))) [[likely]]
    return detail::logOfNormal(x, V(T(0)));
  const auto denormal = x < V(M::Limits::min());
  const V result = detail::logOfNormal(select(denormal, x * (M::two * T(4)), x),
                                       select(denormal, V(T(M::mantissaBits + 2)), V(T(0))));
  const V orSpecial = select(x < V(infinity), result, x); // ∞ and NaN stay what they are
  const V orNegative = select(x < V(T(0)), V(M::Limits::quiet_NaN()), orSpecial);
  return select(x == V(T(0)), V(-infinity), orNegative);
}

template <class T, std::size_t N> BURTORCH_INLINE simd<T, N> tanh(const simd<T, N>& x) {
  using M = detail::VectorMath<T>;
  const auto e = detail::expm1Near(T(2) * min(simd<T, N>(M::tanhHi), fabs(x)));
  return copysign(e / (e + T(2)), x);
}

template <class T, std::size_t N> BURTORCH_INLINE simd<T, N> sigmoid(const simd<T, N>& x) {
  return logistic(x);
}

template <class T, std::size_t N> BURTORCH_INLINE simd<T, N> inverseSqrt(const simd<T, N>& x) {
  return T(1) / sqrt(x);
}

template <class T, std::size_t N> BURTORCH_INLINE simd<T, N> sin(const simd<T, N>& x) {
  const auto result = select(x == simd<T, N>(T(0)), x, detail::sine<0>(x)); // the sign of 0
  return detail::orEachLane(x, result, detail::VectorMath<T>::sinHi,
                            [](T t) { return std::sin(t); });
}

template <class T, std::size_t N> BURTORCH_INLINE simd<T, N> cos(const simd<T, N>& x) {
  return detail::orEachLane(x, detail::sine<1>(x), detail::VectorMath<T>::sinHi,
                            [](T t) { return std::cos(t); });
}

template <class T, std::size_t N> BURTORCH_INLINE simd<T, N> erf(const simd<T, N>& x) {
  using M = detail::VectorMath<T>;
  using V = simd<T, N>;
  const V a = min(V(M::erfHi), fabs(x)); // NaN stays NaN
  const V near = fma(a, detail::polynomial(M::erfNear, a * a), a);
  const V far = -detail::expm1Near(-detail::polynomial(M::erfFar, a));
  return copysign(select(a < V(T(1)), near, far), x);
}

// Not (yet) vector code: the standard library's functions, lane by lane.
#define BURTORCH_EACH_LANE(function)                                                               \
  template <class T, std::size_t N> BURTORCH_INLINE simd<T, N> function(const simd<T, N>& x) {     \
    return eachLane([](T t) { return std::function(t); }, x);                                      \
  }
BURTORCH_EACH_LANE(tan)
BURTORCH_EACH_LANE(asin)
BURTORCH_EACH_LANE(acos)
BURTORCH_EACH_LANE(atan)
BURTORCH_EACH_LANE(sinh)
BURTORCH_EACH_LANE(cosh)
BURTORCH_EACH_LANE(erfc)
BURTORCH_EACH_LANE(log1p)
#undef BURTORCH_EACH_LANE
#define BURTORCH_EACH_LANE(function)                                                               \
  template <class T, std::size_t N>                                                                \
  BURTORCH_INLINE simd<T, N> function(const simd<T, N>& x, const simd<T, N>& y) {                  \
    return eachLane([](T s, T t) { return std::function(s, t); }, x, y);                           \
  }
BURTORCH_EACH_LANE(pow)
BURTORCH_EACH_LANE(atan2)
BURTORCH_EACH_LANE(hypot)
#undef BURTORCH_EACH_LANE

BURTORCH_END_NAMESPACE
