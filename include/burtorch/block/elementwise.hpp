// burtorch/block/elementwise.hpp — the operations of the table on every element of a view
// SPDX-License-Identifier: MIT
//
// tanh(x), x + y, 2 * x, clamp(x, 0, 1), … of views. Two views have equal shapes, or a single row
// goes with every row of the other, a single column with every column, a single number with every
// element; that may also be a Value or a plain number.
#pragma once

#include <burtorch/kernel/map.hpp>
#include <burtorch/view.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <string>

BURTORCH_BEGIN_NAMESPACE

namespace block {

template <class O> struct Map {
  static constexpr const char* name = op::Entry<O>::name;
  static constexpr const char* symbol = O::symbol;

  template <class Frame> static void forward(const Frame& f) {
    kernel::mapForward<O>(f.value(0).first, f.result(1).first, f.count);
  }
  template <class Frame> static void pullback(const Frame& f) {
    if (f.wants(0))
      kernel::mapBackward<O>(f.value(0).first, f.result(1).first, f.adjoint(1).first,
                             f.grad(0).first, f.count);
  }
};

// Views: x, y. Parameters: rows of the result. The gradients of x are given first, then those of y:
// both may be the same nodes.
template <class O> struct Map2 {
  static constexpr const char* name = op::Entry<O>::name;
  static constexpr const char* symbol = O::symbol;

  template <class Frame> static void forward(const Frame& f) {
    each(f,
         [z = f.result(1).first](std::size_t i, const auto& x, const auto& y, std::size_t,
                                 std::size_t) BURTORCH_INLINE_LAMBDA { z[i] = O::forward(x, y); });
  }
  template <class Frame> static void pullback(const Frame& f) {
    const auto* const z = f.result(1).first;
    const auto* const dz = f.adjoint(1).first;
    if (f.wants(0))
      each(f, [z, dz, dx = f.grad(0).first](std::size_t i, const auto& x, const auto& y,
                                            std::size_t atX, std::size_t)
                  BURTORCH_INLINE_LAMBDA { dx[atX] = dx[atX] + O::pullbackX(x, y, z[i], dz[i]); });
    if (f.wants(1))
      each(f, [z, dz, dy = f.grad(1).first](std::size_t i, const auto& x, const auto& y,
                                            std::size_t, std::size_t atY)
                  BURTORCH_INLINE_LAMBDA { dy[atY] = dy[atY] + O::pullbackY(x, y, z[i], dz[i]); });
  }

private:
  // visit(element, x, y, where x is, where y is) for all elements of the result.
  template <class Frame, class F> BURTORCH_INLINE static void each(const Frame& f, const F& visit) {
    const auto x = f.value(0), y = f.value(1);
    const auto row = [&](std::size_t first, std::size_t n, std::size_t atX, std::size_t atY,
                         auto stepX, auto stepY) BURTORCH_INLINE_LAMBDA {
      for (std::size_t j = 0; j < n; ++j)
        visit(first + j, x.first[atX + j * stepX], y.first[atY + j * stepY], atX + j * stepX,
              atY + j * stepY);
    };
    constexpr std::integral_constant<std::size_t, 1> one{};
    if (x.rows == y.rows && x.cols == y.cols) return row(0, f.count, 0, 0, one, one);
    const std::size_t rows = f.parameter(0), cols = f.count / rows;
    for (std::size_t i = 0; i < rows; ++i) {
      const std::size_t atX = x.rows == 1 ? 0 : i * x.stride, atY = y.rows == 1 ? 0 : i * y.stride;
      if (x.cols == y.cols) row(i * cols, cols, atX, atY, one, one);
      else row(i * cols, cols, atX, atY, std::size_t{x.cols != 1}, std::size_t{y.cols != 1});
    }
  }
};

// One operand is a plain number, kept by the block.
template <class O, Form form> struct MapNumber {
  static constexpr const char* name = op::Entry<O>::name;
  static constexpr const char* symbol = O::symbol;

  template <class Frame> static void forward(const Frame& f) {
    const auto* const x = f.value(0).first;
    auto* const z = f.result(1).first;
    const auto c = f.kept[0];
    for (std::size_t i = 0; i < f.count; ++i)
      z[i] = form == Form::nodeNumber ? O::forward(x[i], c) : O::forward(c, x[i]);
  }
  template <class Frame> static void pullback(const Frame& f) {
    if (!f.wants(0)) return;
    const auto* const x = f.value(0).first;
    const auto* const z = f.result(1).first;
    const auto* const dz = f.adjoint(1).first;
    auto* const dx = f.grad(0).first;
    const auto c = f.kept[0];
    for (std::size_t i = 0; i < f.count; ++i)
      dx[i] = dx[i] + (form == Form::nodeNumber ? O::pullbackX(x[i], c, z[i], dz[i])
                                                : O::pullbackY(c, x[i], z[i], dz[i]));
  }
};

// Keeps the bounds.
template <class O> struct MapBounded {
  static constexpr const char* name = op::Entry<O>::name;
  static constexpr const char* symbol = O::symbol;

  template <class Frame> static void forward(const Frame& f) {
    const auto* const x = f.value(0).first;
    auto* const z = f.result(1).first;
    const auto lo = f.kept[0], hi = f.kept[1];
    for (std::size_t i = 0; i < f.count; ++i) z[i] = O::forward(x[i], lo, hi);
  }
  template <class Frame> static void pullback(const Frame& f) {
    if (!f.wants(0)) return;
    const auto* const x = f.value(0).first;
    const auto* const dz = f.adjoint(1).first;
    auto* const dx = f.grad(0).first;
    const auto lo = f.kept[0], hi = f.kept[1];
    for (std::size_t i = 0; i < f.count; ++i) dx[i] = dx[i] + O::pullback(x[i], lo, hi, dz[i]);
  }
};

} // namespace block

template <class O, AnyView V>
  requires op::is<op::Unary, O>
V mapElements(const V& x) {
  return applyBlock<block::Map<O>>(x.rows(), x.cols(), 0, std::span<const V>(&x, 1));
}

namespace detail {

// Two views, for whatever operation the block makes of them.
template <class T, class... O, class Index>
View<T, O...> mapTwo(const BlockMethods<T, Index>& methods, const View<T, O...>& x,
                     const View<T, O...>& y) {
  const auto goWith = [](std::size_t n, std::size_t m) { return n == m || n == 1 || m == 1; };
  if (!goWith(x.rows(), y.rows()) || !goWith(x.cols(), y.cols()))
    fail(ErrorKind::badArgument, std::string(methods.name) + ": " + shapeText(x.rows(), x.cols()) +
                                     " does not go with " + shapeText(y.rows(), y.cols()));
  const std::array both{x, y};
  const std::array rows{x.rows() == 1 ? y.rows() : x.rows()};
  const std::size_t cols = x.cols() == 1 ? y.cols() : x.cols();
  return appendBlock(methods, rows[0], cols, 0, std::span<const View<T, O...>>(both),
                     std::span<const std::size_t>(rows));
}

} // namespace detail

template <class O, Form form, AnyView V>
V mapElementsWithNumber(const V& x, typename V::Scalar number) { // by value: it may lie on the tape
  return applyBlock<block::MapNumber<O, form>>(x.rows(), x.cols(), 1, std::span<const V>(&x, 1), {},
                                               std::span(&number, 1));
}

template <class O, AnyView V>
  requires op::is<op::Clipped, O>
V mapElements(const V& x, typename V::Scalar lo, typename V::Scalar hi) {
  const std::array bounds{lo, hi};
  return applyBlock<block::MapBounded<O>>(x.rows(), x.cols(), 2, std::span<const V>(&x, 1), {},
                                          std::span<const typename V::Scalar>(bounds));
}

// Two operands, at least one of them a view; the other may be a view, a Value or a number.
template <class Y, class V>
concept OperandBesideView =
    AnyView<V> && (std::same_as<Y, V> || std::same_as<Y, typename V::Element> ||
                   std::convertible_to<Y, typename V::Scalar>);
template <class X, class Y>
concept ViewBeside = OperandBesideView<Y, X> || OperandBesideView<X, Y>;

template <class O, class X, class Y>
  requires op::is<op::Binary, O> && ViewBeside<X, Y>
auto mapElements(const X& x, const Y& y) {
  if constexpr (AnyValue<X>)
    return mapElements<O>(Y::at(x.tape(), x.sysGetRawNodeIndex(), 1, 1), y);
  else if constexpr (AnyValue<Y>)
    return mapElements<O>(x, X::at(y.tape(), y.sysGetRawNodeIndex(), 1, 1));
  else if constexpr (!AnyView<Y>) return mapElementsWithNumber<O, Form::nodeNumber>(x, y);
  else if constexpr (!AnyView<X>) return mapElementsWithNumber<O, Form::numberNode>(y, x);
  else
    return detail::mapTwo(blockMethods<block::Map2<O>, typename X::Scalar, typename X::Index>, x,
                          y);
}

#define BURTORCH_FUNCTION(Name, function)                                                          \
  template <AnyView V> V function(const V& x) { return mapElements<op::Name>(x); }
BURTORCH_UNARY_OPERATIONS(BURTORCH_FUNCTION)
#undef BURTORCH_FUNCTION

#define BURTORCH_FUNCTION(Name, function)                                                          \
  template <class X, class Y>                                                                      \
    requires ViewBeside<X, Y>                                                                      \
  auto function(const X& x, const Y& y) {                                                          \
    return mapElements<op::Name>(x, y);                                                            \
  }
BURTORCH_BINARY_OPERATIONS(BURTORCH_FUNCTION)
#undef BURTORCH_FUNCTION

#define BURTORCH_FUNCTION(Name, function)                                                          \
  template <AnyView V>                                                                             \
  V function(const V& x, const std::type_identity_t<typename V::Scalar>& lo,                       \
             const std::type_identity_t<typename V::Scalar>& hi) {                                 \
    return mapElements<op::Name>(x, lo, hi);                                                       \
  }
BURTORCH_CLIPPED_OPERATIONS(BURTORCH_FUNCTION)
#undef BURTORCH_FUNCTION

template <AnyView V> V log(const V& x) { return logarithm(x); }
template <AnyView V> V operator-(const V& x) { return negative(x); }

template <class X, class Y>
  requires ViewBeside<X, Y>
auto operator+(const X& x, const Y& y) {
  return add(x, y);
}
template <class X, class Y>
  requires ViewBeside<X, Y>
auto operator-(const X& x, const Y& y) {
  return sub(x, y);
}
template <class X, class Y>
  requires ViewBeside<X, Y>
auto operator*(const X& x, const Y& y) {
  return mul(x, y);
}
template <class X, class Y>
  requires ViewBeside<X, Y>
auto operator/(const X& x, const Y& y) {
  return div(x, y);
}

BURTORCH_END_NAMESPACE
