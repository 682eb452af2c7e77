// burtorch/scalar/scalar.hpp — what a node may hold
// SPDX-License-Identifier: MIT
//
// A scalar type brings, beside its own definition and found by argument-dependent lookup,
//   arithmetic, comparisons, T(number)   as the concept below says
//   the functions listed below           which operations call: exp, log, sin, …
//   select(x < y, a, b)                  the engine never branches on a scalar's value with `if`, so
//                                        that a scalar with lanes can answer for each lane
//   isZero(x)                            true only if nothing is lost by taking x for an exact 0
//   whereZero(x)                         the same for each lane; a bool if there are none
// and may say
//   Computed<T>                          that it is only stored: operations compute in another type
//                                        and round what is stored (halves: in float)
//   Constant<T>                          what its constants are, where double is too short
//   unlessZero(g, x)                     x, but 0 in the lanes where g is 0 (see tape/sweep.hpp)
//   hasTangent<T>, passive(x)            that it carries a derivative along (dual.hpp), and x without it
#pragma once

#include <burtorch/base/config.hpp>

#include <cmath>
#include <cstddef>
#include <numbers>
#include <type_traits>

BURTORCH_BEGIN_NAMESPACE

// X(name) for each standard function that operations call.
// clang-format off
#define BURTORCH_STANDARD_FUNCTIONS(X)                                                             \
  X(acos) X(asin) X(atan) X(cos) X(cosh) X(erf) X(erfc) X(exp) X(expm1)                            \
  X(fabs) X(log) X(log1p) X(sin) X(sinh) X(sqrt) X(tan) X(tanh)
// clang-format on
#define BURTORCH_STANDARD_FUNCTIONS_OF_TWO(X) X(atan2) X(hypot) X(pow)

// Trivially copyable, because tapes move their arrays with memcpy and hand them out as plain
// memory.
template <class T>
concept Scalar = std::is_trivially_copyable_v<T> && requires(const T& x, const T& y) {
  T(x + y - x * (y / -x));
  x < y;
  x == y;
  T(0);
  T(1);
};

template <class T> BURTORCH_INLINE constexpr T select(bool condition, const T& yes, const T& no) {
  return condition ? yes : no;
}

template <class T>
  requires std::is_arithmetic_v<T>
BURTORCH_INLINE constexpr bool isZero(T x) {
  return x == T(0);
}

template <class T>
  requires requires(const T& x) { static_cast<bool>(x == x); }
BURTORCH_INLINE constexpr bool whereZero(const T& x) {
  return isZero(x);
}

// What numbers of a type are computed in.
template <class T> struct Computed {
  using type = T;
};
template <class T> using ComputedIn = typename Computed<T>::type;

// A stored number, ready for computing.
template <class T> BURTORCH_INLINE constexpr decltype(auto) computed(const T& x) {
  if constexpr (std::is_same_v<T, ComputedIn<T>>) return (x);
  else return static_cast<ComputedIn<T>>(x);
}

// Eight neighbours from `first` on: what sequences of stored numbers also take as an index, where
// reading several at once is much faster than one by one. They answer with eight in lanes.
struct Eight {
  std::size_t first;
};

// Numbers that operations need to as many digits as T has.
template <class T> struct Constant {
  static constexpr double twoOverSqrtPi = 2 * std::numbers::inv_sqrtpi;
  static constexpr double inverseSqrt2 = 1 / std::numbers::sqrt2;
};

template <class T> BURTORCH_INLINE constexpr const T& unlessZero(const T&, const T& x) { return x; }

template <class T> inline constexpr bool hasTangent = false;
template <class T> BURTORCH_INLINE constexpr const T& passive(const T& x) { return x; }

// 1/(1+e^−x) of any scalar: exp only of what is not positive, so that nothing overflows and the
// left tail keeps its digits.
template <class T> BURTORCH_INLINE constexpr T logistic(const T& x) {
  using std::exp, std::fabs;
  const T e = exp(-fabs(x));
  return select(x < T(0), e, T(1)) / (T(1) + e);
}

BURTORCH_END_NAMESPACE
