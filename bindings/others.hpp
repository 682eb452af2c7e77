// bindings/others.hpp — operations on the dtypes that are compiled once for all
// SPDX-License-Identifier: MIT
#pragma once

#include "tape.hpp"

#include <cstdint>
#include <vector>

namespace burtorch_python {

// The operation is an argument here, not a type; defined in others.cpp for BURTORCH_OTHER_DTYPES.
template <class T> struct Others {
  using V = typename TapeOf<T>::Value;
  using Values = std::vector<V>;
  using Indices = std::vector<std::uint32_t>;

  static V apply(bt::Op op, const V& x);
  static V apply(bt::Op op, const V& x, const V& y);
  static V apply(bt::Op op, const V& x, const T& y);
  static V apply(bt::Op op, const T& x, const V& y);
  static V apply(bt::Op op, const V& x, const T& lo, const T& hi);
  static V apply(bt::Op op, const Values& x);
  static V apply(bt::Op op, const Values& x, const Values& y);
  static V apply(bt::Op op, const Values& x, const Values& y, const V& bias);

  static bool backward(const V& root, bool (*stop)(), std::size_t every);
  static void backwardWithScratch(const V& root, Indices& order, Indices& leaves, Indices& stack,
                                  bool reuse);
};

// bt::apply for any dtype.
template <class O, class T, class... X>
typename TapeOf<T>::Value applied(TapeOf<T>&, const X&... x) {
  if constexpr (isOther<T>) return Others<T>::apply(bt::op::Entry<O>::code, x...);
  else return bt::apply<O>(x...);
}

} // namespace burtorch_python
