// burtorch/run/derivatives.hpp — derivatives of functions: jvp, hvp, Jacobian, Hessian
// SPDX-License-Identifier: MIT
//
// f is a callable that takes a std::span of Values and returns a Value, or for jacobian a range of
// Values; it is written once, as a generic lambda, for all of them:
//
//   auto f = [](auto x) { return exp(x[0]) * sin(x[1]); };
//   auto [value, slope] = jvp(f, x, v);           f(x) and f'(x)·v: forward mode, one pass
//   auto [value, product] = hvp(f, x, v);         f(x) and ∇²f(x)·v: reverse over forward
//   hvp(f, x, v).gradient                         ∇f(x), which comes with it
//   jacobian(f, x), hessian(f, x)                 row after row in one vector
//
// x and v are ranges of numbers; the scalar is that of x. For small functions that are asked now and
// then: each call records f on a tape of its own.
#pragma once

#include <burtorch/backward.hpp>
#include <burtorch/op/dual.hpp>
#include <burtorch/tape/tape.hpp>
#include <burtorch/value.hpp>

#include <cstddef>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

BURTORCH_BEGIN_NAMESPACE

// A range of plain scalars that knows its size.
template <class R>
concept RangeOfScalars = std::ranges::random_access_range<R> && std::ranges::sized_range<R> &&
                         Scalar<std::ranges::range_value_t<R>>;

template <class T> struct JvpResult {
  T value, slope;
};
template <class T> struct HvpResult { // a pair (value, product), as in Python; gradient by its name
  T value;
  std::vector<T> gradient, product;
  template <std::size_t i> auto get() const {
    if constexpr (i == 0) return value;
    else return product;
  }
};

namespace detail {

template <class R> using ScalarIn = std::remove_cv_t<std::ranges::range_value_t<R>>;

// Leaves on a tape of duals: x with direction v.
template <RangeOfScalars X, RangeOfScalars V>
auto dualLeaves(Tape<dual<ScalarIn<X>>>& tape, const X& x, const V& v) {
  using T = ScalarIn<X>;
  const std::size_t n = std::ranges::size(x);
  if (std::ranges::size(v) != n)
    fail(ErrorKind::badArgument, "a direction of " + std::to_string(std::ranges::size(v)) +
                                     " numbers for " + std::to_string(n) + " arguments");
  std::vector<Value<dual<T>>> leaves;
  leaves.reserve(n);
  auto direction = std::ranges::begin(v);
  for (const T& each : x) leaves.emplace_back(tape, dual<T>(each, T(*direction++)));
  return leaves;
}

template <class V> std::span<const V> asSpan(const std::vector<V>& x) { return x; }

} // namespace detail

template <class F, RangeOfScalars X, RangeOfScalars V>
auto jvp(const F& f, const X& x, const V& v) {
  using T = detail::ScalarIn<X>;
  Tape<dual<T>> tape;
  const TapeScope scope(tape);
  const dual<T> y = f(detail::asSpan(detail::dualLeaves(tape, x, v))).dataCopy();
  return JvpResult<T>{y.value, y.tangent};
}

template <class F, RangeOfScalars X, RangeOfScalars V>
auto hvp(const F& f, const X& x, const V& v) {
  using T = detail::ScalarIn<X>;
  Tape<dual<T>> tape;
  const TapeScope scope(tape);
  const auto leaves = detail::dualLeaves(tape, x, v);
  const auto y = f(detail::asSpan(leaves));
  backward(y);
  HvpResult<T> result{y.dataCopy().value, {}, {}};
  for (const auto& leaf : leaves) {
    result.gradient.push_back(leaf.gradCopy().value);
    result.product.push_back(leaf.gradCopy().tangent);
  }
  return result;
}

template <class F, RangeOfScalars X> auto jacobian(const F& f, const X& x) {
  using T = detail::ScalarIn<X>;
  Tape<T> tape;
  const TapeScope scope(tape);
  std::vector<Value<T>> leaves;
  for (const T& each : x) leaves.emplace_back(tape, each);
  std::vector<T> rows;
  for (const Value<T>& y : f(detail::asSpan(leaves))) {
    tape.zeroGrad();
    backward(y);
    for (const auto& leaf : leaves) rows.push_back(leaf.gradCopy());
  }
  return rows;
}

template <class F, RangeOfScalars X> auto hessian(const F& f, const X& x) {
  using T = detail::ScalarIn<X>;
  const std::size_t n = std::ranges::size(x);
  std::vector<T> rows, direction(n, T(0));
  for (std::size_t i = 0; i < n; ++i) {
    direction[i] = T(1);
    const auto row = hvp(f, x, direction).product;
    rows.insert(rows.end(), row.begin(), row.end());
    direction[i] = T(0);
  }
  return rows;
}

BURTORCH_END_NAMESPACE

template <class T>
struct std::tuple_size<burtorch::HvpResult<T>> : std::integral_constant<std::size_t, 2> {};
template <std::size_t i, class T> struct std::tuple_element<i, burtorch::HvpResult<T>> {
  using type = std::conditional_t<i == 0, T, std::vector<T>>;
};
