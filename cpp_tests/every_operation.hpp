// cpp_tests/every_operation.hpp — every operation of the table in every form, and random graphs of them
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/burtorch.hpp>

#include <array>
#include <cstddef>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace every {

template <class V> struct Case {
  std::string name;
  V root;
};

// x: five Values. They need not be neighbours; where they are, reductions take the form of runs.
template <class V> std::vector<Case<V>> operation(std::span<const V> x) {
  using namespace burtorch;
  std::vector<Case<V>> all;
  const auto add = [&](const char* name, const V& root) { all.push_back({name, root}); };
  const std::array scattered{x[3], x[0], x[1], x[0], x[4]};
  const std::array some{x[1], x[4], x[2], x[0], x[3]};
#define BURTORCH_CASE(Name, function) add(#function, apply<op::Name>(x[0]));
  BURTORCH_UNARY_OPERATIONS(BURTORCH_CASE)
#undef BURTORCH_CASE
#define BURTORCH_CASE(Name, function)                                                              \
  add(#function, apply<op::Name>(x[0], x[1]));                                                     \
  add(#function " with itself", apply<op::Name>(x[0], x[0]));                                      \
  add(#function " backwards", apply<op::Name>(x[1], x[0]));                                        \
  add(#function " with a number", apply<op::Name>(x[0], 1.5));                                     \
  add(#function " of a number", apply<op::Name>(1.5, x[0]));
  BURTORCH_BINARY_OPERATIONS(BURTORCH_CASE)
#undef BURTORCH_CASE
#define BURTORCH_CASE(Name, function)                                                              \
  add(#function " inside", function(x[0], -9.0, 9.0));                                             \
  add(#function " outside", function(x[0], -0.1, 0.1));
  BURTORCH_CLIPPED_OPERATIONS(BURTORCH_CASE)
#undef BURTORCH_CASE
#define BURTORCH_CASE(Name, function)                                                              \
  add(#function, apply<op::Name>(x));                                                              \
  add(#function " of a list", apply<op::Name>(std::span<const V>(scattered)));
  BURTORCH_REDUCTIONS(BURTORCH_CASE)
#undef BURTORCH_CASE
#define BURTORCH_CASE(Name, function)                                                              \
  add(#function, apply<op::Name>(x.first(2), x.subspan(2, 2), x[4]));                              \
  add(#function " of lists",                                                                       \
      apply<op::Name>(std::span<const V>(scattered), std::span<const V>(some), x[4]));
  BURTORCH_PRODUCTS(BURTORCH_CASE)
#undef BURTORCH_CASE
  return all;
}

// The last of n operations, each of operands chosen among all before, with plain numbers in between.
// Operands are tamed by tanh, so that nothing overflows and domains are kept as often as possible.
template <class V> V graph(std::span<const V> inputs, std::size_t n, unsigned seed) {
  using namespace burtorch;
  std::mt19937 random(seed);
  std::vector<V> nodes(inputs.begin(), inputs.end());
  const auto any = [&] { return nodes[random() % nodes.size()]; };
  const auto five = [&] {
    std::vector<V> x;
    if (random() % 2 == 0) // neighbours
      for (int i = 0; i < 5; ++i) x.push_back(tanh(any()) + 1.25);
    else
      for (int i = 0; i < 5; ++i) x.push_back(any());
    if (random() % 2 == 0)
      for (auto& each : x) each = sigmoid(each);
    return x;
  };
  for (std::size_t i = 0; i < n; ++i) {
    const auto x = five();
    const auto cases = operation(std::span<const V>(x));
    V y = cases[random() % cases.size()].root;
    if (!(y.dataCopy() > -1e6 && y.dataCopy() < 1e6)) y = any(); // not a number, or far away
    nodes.push_back(y);
    if (random() % 4 == 0) nodes.push_back(y * 0.5 + any());
  }
  return reduceSum(nodes);
}

} // namespace every
