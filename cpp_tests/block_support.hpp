// cpp_tests/block_support.hpp — a block and its scalar expansion, on the same random leaves
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/backward.hpp>
#include <burtorch/block/describe.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace block_support {

struct Shape {
  std::size_t rows, cols;
};

template <class T> using V = burtorch::View<T>;
template <class T> using Views = std::vector<V<T>>;

template <class T> struct Outcome {
  std::vector<T> values;    // of the results
  std::vector<T> gradients; // of all leaves
};

template <class T> std::span<const T> spanOf(const std::vector<T>& x) { return x; }

// Leaves with random numbers.
template <class T>
Views<T> leaves(burtorch::Tape<T>& tape, const std::vector<Shape>& shapes, double low,
                double high) {
  std::mt19937 generator(20240607);
  std::uniform_real_distribution<double> number(low, high);
  Views<T> views;
  for (const Shape& shape : shapes) {
    views.emplace_back(tape, shape.rows, shape.cols);
    for (T& x : views.back().data()) x = static_cast<T>(number(generator));
  }
  return views;
}

// A function of views of leaves: type-erased, so that what follows is compiled once per scalar.
template <class T> using Program = std::function<std::vector<burtorch::Value<T>>(const Views<T>&)>;

// The results, each with a weight of its own in the root.
template <class T>
Outcome<T> outcome(const std::vector<Shape>& shapes, const Program<T>& program, double low,
                   double high) {
  burtorch::Tape<T> tape;
  const Views<T> x = leaves(tape, shapes, low, high);
  const std::size_t count = tape.size();
  Outcome<T> out;
  std::vector<burtorch::Value<T>> terms;
  T weight(0.75);
  for (const burtorch::Value<T>& each : program(x)) {
    out.values.push_back(each.dataCopy());
    terms.push_back(each * weight);
    weight = weight > T(0) ? -weight - T(0.125) : -weight;
  }
  burtorch::backward(burtorch::reduceSum(terms));
  const auto gradients = std::as_const(tape).grads().first(count);
  out.gradients.assign(gradients.begin(), gradients.end());
  return out;
}

// The largest difference, relative to 1 or to the largest number of all, whichever is more.
template <class T> double distance(const std::vector<T>& x, const std::vector<T>& y) {
  if (x.size() != y.size()) return std::numeric_limits<double>::infinity();
  double largest = 0, scale = 1;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double difference = std::fabs(double(x[i]) - double(y[i]));
    if (!(difference <= largest)) largest = difference; // NaN stays
    scale = std::max(scale, std::fabs(double(y[i])));
  }
  return largest / scale;
}

template <class T> constexpr double tolerance = std::is_same_v<T, float> ? 2e-5 : 1e-12;

template <class T>
void checkSamePrograms(const std::vector<Shape>& shapes, const Program<T>& block,
                       const Program<T>& expansion, double low, double high) {
  const auto got = outcome<T>(shapes, block, low, high);
  const auto want = outcome<T>(shapes, expansion, low, high);
  CHECK(distance(got.values, want.values) < tolerance<T>);
  CHECK(distance(got.gradients, want.gradients) < tolerance<T>);
  CHECK_FALSE(want.values.empty());
}

// Both give the same values, and the same gradients of all leaves.
template <class T, class Block, class Expansion>
void checkSame(const std::vector<Shape>& shapes, const Block& block, const Expansion& expansion,
               double low = -1, double high = 1) {
  const auto listing = [](const auto& f) {
    return [&f](const Views<T>& v) {
      const auto y = f(v);
      return std::vector<burtorch::Value<T>>(y.begin(), y.end());
    };
  };
  checkSamePrograms<T>(shapes, listing(block), listing(expansion), low, high);
}

// The results of a block, which is a B, as its definition makes them.
template <class B, class T>
std::vector<burtorch::Value<T>> definitionOf(const burtorch::View<T>& results) {
  auto& tape = results.tape();
  const auto record = tape.records()[tape.recordOf(results.sysGetRawNodeIndex())];
  REQUIRE(record.isBlock());
  using Index = typename burtorch::Tape<T>::Index;
  REQUIRE(&tape.frame(record).description.methods() == &burtorch::blockMethods<B, T, Index>);
  return burtorch::block::expandedAs<B>(tape, record);
}

// A block gives the values and the gradients of its definition.
template <class T, class B, class Block>
void checkDefinition(const std::vector<Shape>& shapes, const Block& block, double low = -1,
                     double high = 1) {
  checkSame<T>(
      shapes, block, [&](const auto& v) { return definitionOf<B>(block(v)); }, low, high);
}

} // namespace block_support
