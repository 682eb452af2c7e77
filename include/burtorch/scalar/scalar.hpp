// burtorch/scalar/scalar.hpp — what a node may hold
// SPDX-License-Identifier: MIT
//
// The engine never branches on a scalar's value with `if`; it asks select() and isZero(), so that a
// scalar with lanes can answer per lane. A new scalar type overloads both beside its own
// definition.
#pragma once

#include <burtorch/config.hpp>

#include <cmath>
#include <concepts>
#include <type_traits>

BURTORCH_BEGIN_NAMESPACE

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

// 1/(1+e^−x) of any scalar: exp only of what is not positive, so that nothing overflows and the
// left tail keeps its digits.
template <class T> BURTORCH_INLINE constexpr T logistic(const T& x) {
  using std::exp, std::fabs;
  const T e = exp(-fabs(x));
  return select(x < T(0), e, T(1)) / (T(1) + e);
}

BURTORCH_END_NAMESPACE
