// burtorch/op/dual.hpp — a value and its derivative along one direction: forward mode
// SPDX-License-Identifier: MIT
//
// dual<T> is a + a'·ε with ε² = 0. Every function of the table works on duals, and none of its
// derivatives is written here: the pullback of an operation is linear in the adjoint, so with a
// tangent in the adjoint's place it gives the tangent of the result.
//
// T may be any scalar: dual<simd<float, 8>> has eight directions of eight samples, and
// dual<dual<T>> second derivatives. A tape of duals gives Hessian-vector products
// (run/derivatives.hpp). Comparisons look at values only, as everywhere in the library.
#pragma once

#include <burtorch/op/table.hpp>
#include <burtorch/scalar/scalar.hpp>

#include <compare>
#include <concepts>
#include <type_traits>

BURTORCH_BEGIN_NAMESPACE

template <class T> struct dual {
  T value, tangent;

  dual() = default;
  BURTORCH_INLINE constexpr dual(const T& x, const T& direction) : value(x), tangent(direction) {}
  template <class Number> // a constant
    requires std::constructible_from<T, const Number&>
  BURTORCH_INLINE constexpr explicit dual(const Number& x) : value(T(x)), tangent(T(0)) {}

  friend constexpr auto operator==(const dual& x, const dual& y) { return x.value == y.value; }
  friend constexpr auto operator!=(const dual& x, const dual& y) { return x.value != y.value; }
  friend constexpr auto operator<(const dual& x, const dual& y) { return x.value < y.value; }
  friend constexpr auto operator<=(const dual& x, const dual& y) { return x.value <= y.value; }
  friend constexpr auto operator>(const dual& x, const dual& y) { return x.value > y.value; }
  friend constexpr auto operator>=(const dual& x, const dual& y) { return x.value >= y.value; }
  friend constexpr auto operator<=>(const dual& x, const dual& y)
    requires requires { x.value <=> y.value; } // lanes have no one order
  {
    return x.value <=> y.value;
  }
};

template <class T> struct Constant<dual<T>> : Constant<T> {};

template <class T> inline constexpr bool hasTangent<dual<T>> = true;
template <class T> BURTORCH_INLINE constexpr dual<T> passive(const dual<T>& x) {
  return {passive(x.value), T(0)};
}

// Where both parts are 0, in all their parts.
template <class T> BURTORCH_INLINE constexpr auto whereZero(const dual<T>& x) {
  const auto value = whereZero(x.value), tangent = whereZero(x.tangent);
  if constexpr (std::same_as<decltype(value), const bool>) return value && tangent;
  else return value & tangent;
}
template <class T> BURTORCH_INLINE constexpr bool isZero(const dual<T>& x) {
  return isZero(x.value) && isZero(x.tangent);
}
template <class Mask, class T>
  requires(!std::is_arithmetic_v<Mask>)
BURTORCH_INLINE constexpr dual<T> select(const Mask& mask, const dual<T>& yes, const dual<T>& no) {
  return {select(mask, yes.value, no.value), select(mask, yes.tangent, no.tangent)};
}
template <class T>
BURTORCH_INLINE constexpr dual<T> unlessZero(const dual<T>& g, const dual<T>& x) {
  return select(whereZero(g), dual<T>(0), x);
}

namespace detail {

// A direction of exactly 0 stays 0, even where the derivative is infinite.
template <class T> BURTORCH_INLINE constexpr T alongDirection(const T& direction, const T& pushed) {
  return select(whereZero(direction), T(0), pushed);
}

template <class O, class T> BURTORCH_INLINE constexpr dual<T> onDual(const dual<T>& x) {
  const T z = O::forward(x.value);
  return {z, alongDirection(x.tangent, O::pullback(x.value, z, x.tangent))};
}

template <class O, class T>
BURTORCH_INLINE constexpr dual<T> onDuals(const dual<T>& x, const dual<T>& y) {
  const T z = O::forward(x.value, y.value);
  return {z, alongDirection(x.tangent, O::pullbackX(x.value, y.value, z, x.tangent)) +
                 alongDirection(y.tangent, O::pullbackY(x.value, y.value, z, y.tangent))};
}

} // namespace detail

// ---- the functions of the table, and the names under which operations call some of them ----------

#define BURTORCH_ON_DUAL(Name, function)                                                           \
  template <class T> BURTORCH_INLINE constexpr dual<T> function(const dual<T>& x) {                \
    return detail::onDual<op::Name>(x);                                                            \
  }
BURTORCH_UNARY_OPERATIONS(BURTORCH_ON_DUAL)
BURTORCH_ON_DUAL(Log, log)
BURTORCH_ON_DUAL(Abs, fabs)
BURTORCH_ON_DUAL(Sigmoid, logistic) // whose formula has a kink at 0, unlike the function
BURTORCH_ON_DUAL(Negative, operator-)
#undef BURTORCH_ON_DUAL

#define BURTORCH_ON_DUALS(Name, function)                                                          \
  template <class T>                                                                               \
  BURTORCH_INLINE constexpr dual<T> function(const dual<T>& x, const dual<T>& y) {                 \
    return detail::onDuals<op::Name>(x, y);                                                        \
  }
BURTORCH_BINARY_OPERATIONS(BURTORCH_ON_DUALS)
BURTORCH_ON_DUALS(BinaryAdd, operator+)
BURTORCH_ON_DUALS(BinarySub, operator-)
BURTORCH_ON_DUALS(BinaryMult, operator*)
BURTORCH_ON_DUALS(BinaryDiv, operator/)
#undef BURTORCH_ON_DUALS

template <class T> BURTORCH_INLINE constexpr dual<T> erfc(const dual<T>& x) { // 1 − erf
  using std::erfc;
  return {erfc(x.value), -detail::onDual<op::Erf>(x).tangent};
}

BURTORCH_END_NAMESPACE
