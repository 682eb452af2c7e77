// burtorch/op/contribute.hpp — what an operation of few operands gives to their gradients, in which order
// SPDX-License-Identifier: MIT
//
// For runs over anything but a tape (replay.hpp, emit.hpp): the order is that of the sweep over a tape
// (detail::Pull in backward.hpp), so that sums of contributions round alike.
#pragma once

#include <burtorch/base/config.hpp>
#include <burtorch/op/table.hpp>

#include <cstddef>
#include <type_traits>

BURTORCH_BEGIN_NAMESPACE

namespace detail {

template <bool is> using Newest = std::bool_constant<is>;

// record: its fields a and b. x(), y(): the operands, y() also where it is a number; number(place): a
// constant. z is the result, g its adjoint. give(node, contribution, Newest): the newer operand last, of
// which Newest says so. isBNewer, of two nodes, is a bool or a constant.
template <class O, Form F, class Record, class X, class Y, class Number, class C, class Give>
BURTORCH_INLINE void contribute(const Record& record, const auto& isBNewer, const X& x, const Y& y,
                                const Number& number, const C& z, const C& g, const Give& give) {
  static_assert(op::is<op::Unary, O> || op::is<op::Clipped, O> || op::is<op::Binary, O>);
  if constexpr (op::is<op::Unary, O>) {
    give(record.a, O::pullback(x(), z, g), Newest<true>{});
  } else if constexpr (op::is<op::Clipped, O>) {
    give(record.a, O::pullback(x(), number(record.b), number(record.b + std::size_t{1}), g),
         Newest<true>{});
  } else if constexpr (F == Form::nodeNumber) {
    give(record.a, O::pullbackX(x(), y(), z, g), Newest<true>{});
  } else if constexpr (F == Form::numberNode) {
    give(record.b, O::pullbackY(x(), y(), z, g), Newest<true>{});
  } else {
    const C toX = O::pullbackX(x(), y(), z, g), toY = O::pullbackY(x(), y(), z, g);
    if (isBNewer) {
      give(record.a, toX, Newest<false>{});
      give(record.b, toY, Newest<true>{});
    } else {
      give(record.b, toY, Newest<false>{});
      give(record.a, toX, Newest<true>{});
    }
  }
}

} // namespace detail

BURTORCH_END_NAMESPACE
