// bindings/others.hpp — operations on any dtype, compiled once for all
// SPDX-License-Identifier: MIT
#pragma once

#include "tape.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace burtorch_python {

// The operation is an argument here, not a type.
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
  static std::pair<V, V> meanAndMeanSquares(const Values& x);

  static bool backward(const V& root, bool (*stop)(), std::size_t every);
  static std::size_t backwardWatched(const V& root);
  static void backwardWithScratch(const V& root, Indices& order, Indices& leaves, Indices& stack,
                                  bool reuse);
};

} // namespace burtorch_python
