// burtorch/block/elementwise.hpp — the operations of the table on every element of a view
// SPDX-License-Identifier: MIT
//
// tanh(x), x + y, 2 * x, clamp(x, 0, 1), … of views. Two views have equal shapes, or a single row
// goes with every row of the other, a single column with every column, a single number with every
// element; that may also be a Value or a plain number.
#pragma once

#include <burtorch/block/describe.hpp>
#include <burtorch/kernel/map.hpp>

#include <algorithm>
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

  template <class Frame> static bool keepsSamples(const Frame&, std::size_t, std::size_t) {
    return true;
  }

  template <class Parts> static auto expanded(const Parts& p) {
    return rowOf(p.results, [&](std::size_t i) { return apply<O>(p.views[0][i]); });
  }
  template <class Parts> static void record(const Parts& p) {
    p.demandOperands(1);
    p.demandSizes(p.views[0].size());
    mapElements<O>(p.views[0]);
  }
};

// Views: x, y. Parameters: rows of the result. The gradients of x are given first, then those of y:
// both may be the same nodes.
template <class O> struct Map2 {
  static constexpr const char* name = op::Entry<O>::name;
  static constexpr const char* symbol = O::symbol;

  template <class Frame> static void forward(const Frame& f) {
    forward2(f, f.value(0), f.value(1), f.parameter(0));
  }
  template <class Frame> static void pullback(const Frame& f) {
    if (f.wants(0)) pullback2<kernel::Side::x>(f, f.value(0), f.value(1), f.parameter(0), 0);
    if (f.wants(1)) pullback2<kernel::Side::y>(f, f.value(0), f.value(1), f.parameter(0), 1);
  }

  template <class Frame>
  static bool keepsSamples(const Frame& f, std::size_t view, std::size_t samples) {
    return f.description.viewSize(view) == f.count ||
           (f.value(view).rows == f.parameter(0) && hasWholeRows(f, view, samples));
  }

  template <class Parts> static auto expanded(const Parts& p) {
    const std::size_t cols = p.results / p.parameters[0];
    const auto at = [&](std::size_t v, std::size_t i) {
      const auto& x = p.views[v];
      return x(x.rows() == 1 ? 0 : i / cols, x.cols() == 1 ? 0 : i % cols);
    };
    return rowOf(p.results, [&](std::size_t i) { return apply<O>(at(0, i), at(1, i)); });
  }
  template <class Parts> static void record(const Parts& p) {
    p.demandOperands(2);
    const auto &x = p.views[0], &y = p.views[1];
    p.demandSizes(detail::sizeProduct(std::max(x.rows(), y.rows()), std::max(x.cols(), y.cols())));
    mapElements<O>(x, y);
  }

  // The same for operands that need not be views; the gradient is that of view v.
  template <class Frame, class Operand>
  static void forward2(const Frame& f, const Operand& x, const Operand& y, std::size_t rows) {
    kernel::broadcastForward(kernel::mapForward2<O, typename Frame::Scalar>, x, y, f.result(rows));
  }
  template <kernel::Side side, class Frame, class Operand>
  static void pullback2(const Frame& f, const Operand& x, const Operand& y, std::size_t rows,
                        std::size_t v) {
    kernel::broadcastBackward<side>(kernel::mapBackward2<O, side, typename Frame::Scalar>, x, y,
                                    f.result(rows), f.adjoint(rows), f.grad(v).first);
  }
};

// One operand is a plain number, kept by the block.
template <class O, Form form> struct MapNumber {
  static constexpr const char* name = op::Entry<O>::name;
  static constexpr const char* symbol = O::symbol;

  template <class Frame> static void forward(const Frame& f) {
    if constexpr (form == Form::nodeNumber) Map2<O>::forward2(f, view(f), number(f), 1);
    else Map2<O>::forward2(f, number(f), view(f), 1);
  }
  template <class Frame> static void pullback(const Frame& f) {
    if (!f.wants(0)) return;
    if constexpr (form == Form::nodeNumber)
      Map2<O>::template pullback2<kernel::Side::x>(f, view(f), number(f), 1, 0);
    else Map2<O>::template pullback2<kernel::Side::y>(f, number(f), view(f), 1, 0);
  }

  template <class Frame> static bool keepsSamples(const Frame&, std::size_t, std::size_t) {
    return true;
  }

  template <class Parts> static auto expanded(const Parts& p) {
    return rowOf(p.results, [&](std::size_t i) {
      if constexpr (form == Form::nodeNumber) return apply<O>(p.views[0][i], p.kept[0]);
      else return apply<O>(p.kept[0], p.views[0][i]);
    });
  }
  template <class Parts> static void record(const Parts& p) {
    p.demandOperands(1);
    p.demandSizes(p.views[0].size(), 1);
    mapElementsWithNumber<O, form>(p.views[0], p.kept[0]);
  }

private:
  template <class Frame> static auto view(const Frame& f) { // as one row
    auto x = f.value(0);
    x = {x.first, 1, f.count, f.count};
    return x;
  }
  template <class Frame> static auto number(const Frame& f) {
    return kernel::Matrix<const typename Frame::Scalar>{f.kept, 1, 1, 1};
  }
};

// Keeps the bounds.
template <class O> struct MapBounded {
  static constexpr const char* name = op::Entry<O>::name;
  static constexpr const char* symbol = O::symbol;

  template <class Frame> static void forward(const Frame& f) {
    kernel::mapBoundedForward<O>(f.value(0).first, f.kept[0], f.kept[1], f.result(1).first,
                                 f.count);
  }
  template <class Frame> static void pullback(const Frame& f) {
    if (f.wants(0))
      kernel::mapBoundedBackward<O>(f.value(0).first, f.kept[0], f.kept[1], f.adjoint(1).first,
                                    f.grad(0).first, f.count);
  }

  template <class Frame> static bool keepsSamples(const Frame&, std::size_t, std::size_t) {
    return true;
  }

  template <class Parts> static auto expanded(const Parts& p) {
    return rowOf(p.results,
                 [&](std::size_t i) { return apply<O>(p.views[0][i], p.kept[0], p.kept[1]); });
  }
  template <class Parts> static void record(const Parts& p) {
    p.demandOperands(1);
    p.demandSizes(p.views[0].size(), 2);
    mapElements<O>(p.views[0], p.kept[0], p.kept[1]);
  }
};

// All of them.
#define BURTORCH_ALONE(Name, function) +List<Map<op::Name>>()
#define BURTORCH_BESIDE(Name, function)                                                            \
  +List<Map2<op::Name>, MapNumber<op::Name, Form::nodeNumber>,                                     \
        MapNumber<op::Name, Form::numberNode>>()
#define BURTORCH_BOUNDED(Name, function) +List<MapBounded<op::Name>>()
using Elementwise = decltype(List<>() BURTORCH_UNARY_OPERATIONS(BURTORCH_ALONE)
                                 BURTORCH_BINARY_OPERATIONS(BURTORCH_BESIDE)
                                     BURTORCH_CLIPPED_OPERATIONS(BURTORCH_BOUNDED));
#undef BURTORCH_ALONE
#undef BURTORCH_BESIDE
#undef BURTORCH_BOUNDED

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
