// benchmarks/graphs.hpp — the paper's tiny and small graph, once for all of benchmarks/cpp; GRAPHS of works.py in Python
// SPDX-License-Identifier: MIT
#pragma once

#include <type_traits>

namespace graphs {

// Two words are copied, a value that counts or registers its copies is not.
template <class V>
using Argument = std::conditional_t<std::is_trivially_copyable_v<V>, V, const V&>;

// number(x) is a plain number, or a leaf where the tape needs one.
template <class V, class Number> constexpr V tiny(Argument<V> a, Argument<V> b, Number number) {
  const V c = a + b;
  const V d = a * b + pow3(b);
  const V e = c - d;
  const V f = sqr(e);
  return f / number(2.0);
}

template <class V, class Number> constexpr V small(Argument<V> a, Argument<V> b, Number number) {
  V c = a + b;
  V d = a * b + pow3(b);
  c = c + (c + number(1.0));
  c = c + (number(1.0) + c - a);
  d = d + (d * number(2.0) + relu(b + a));
  d = d + (number(3.0) * d + relu(b - a));
  const V e = c - d;
  const V f = sqr(e);
  const V g = f / number(2.0);
  return g + number(10.0) / f;
}

} // namespace graphs
