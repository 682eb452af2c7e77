// cpp_tests/kernel_attention_test.cpp — causal self-attention against its formula and central differences
// SPDX-License-Identifier: MIT
#include "kernel_support.hpp"

#include <burtorch/kernel/attention.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <vector>

namespace {

namespace bk = burtorch::kernel;
using kernel_support::Grid;
using kernel_support::inner;
using kernel_support::isGradient;
using kernel_support::worst;

struct Shape {
  std::size_t length, heads, size;
};

const std::vector<Shape> shapes{{1, 1, 1},  {2, 1, 3},  {8, 6, 4},  {7, 2, 4}, {5, 3, 5},
                                {16, 2, 8}, {17, 1, 9}, {33, 2, 1}, {9, 2, 17}};

// The weight of key u for query t of head h, by the definition.
template <class T>
long double weightOf(const Grid<T>& qkv, const Shape& shape, T scale, std::size_t h, std::size_t t,
                     std::size_t u) {
  const std::size_t s = shape.size, key = 3 * s * h, query = key + s;
  if (u > t) return 0;
  long double total = 0, own = 0;
  for (std::size_t v = 0; v <= t; ++v) {
    long double score = 0;
    for (std::size_t c = 0; c < s; ++c)
      score += static_cast<long double>(qkv.at(t, query + c)) * qkv.at(v, key + c);
    total += std::exp(score * scale);
    if (v == u) own = std::exp(score * scale);
  }
  return own / total;
}

TEST_CASE_TEMPLATE("values", T, float, double, long double) {
  for (const Shape& shape : shapes) {
    const auto [n, heads, s] = shape;
    CAPTURE(n);
    CAPTURE(s);
    const T scale = 1 / std::sqrt(static_cast<T>(s));
    Grid<T> qkv(n, 3 * heads * s), y(n, heads * s), weights(heads * n, n, 0);
    bk::attentionForward(qkv.view(), heads, scale, y.view(), weights.data());
    CHECK(worst(weights, 20, [&](std::size_t row, std::size_t t) {
            return weightOf(qkv, shape, scale, row / n, t, row % n);
          }) <= 1);
    CHECK(worst(y, 40, [&](std::size_t t, std::size_t column) {
            const std::size_t h = column / s;
            long double sum = 0;
            for (std::size_t u = 0; u <= t; ++u)
              sum +=
                  weightOf(qkv, shape, scale, h, t, u) * qkv.at(u, 3 * s * h + 2 * s + column % s);
            return sum;
          }) <= 1);
    for (std::size_t row = 0; row < heads * n; ++row)
      for (std::size_t t = 0; t < row % n; ++t) CHECK(weights.at(row, t) == 0);
  }
}

TEST_CASE("gradients are those of central differences") {
  for (const auto& [n, heads, s] : shapes) {
    CAPTURE(n);
    CAPTURE(s);
    Grid<double> qkv(n, 3 * heads * s), y(n, heads * s), weights(heads * n, n, 0), dy(n, heads * s),
        dqkv(n, 3 * heads * s);
    const Grid<double> before = dqkv;
    const auto loss = [&, count = heads] {
      bk::attentionForward(qkv.view(), count, 0.7, y.view(), weights.data());
      return inner(y, dy);
    };
    loss();
    bk::attentionBackward(qkv.view(), heads, 0.7, weights.data(), dy.view(), dqkv.view());
    CHECK(isGradient(dqkv, before, qkv, loss));
  }
}

// The same source with other lanes: floats against doubles.
TEST_CASE("gradients in single precision") {
  for (const auto& [n, heads, s] : shapes) {
    CAPTURE(n);
    CAPTURE(s);
    Grid<float> qkv(n, 3 * heads * s), y(n, heads * s), weights(heads * n, n, 0), dy(n, heads * s),
        dqkv(n, 3 * heads * s);
    auto qkv2 = kernel_support::as<double>(qkv), y2 = kernel_support::as<double>(y),
         dy2 = kernel_support::as<double>(dy), dqkv2 = kernel_support::as<double>(dqkv);
    Grid<double> weights2(heads * n, n, 0);
    bk::attentionForward(qkv.view(), heads, 0.5f, y.view(), weights.data());
    bk::attentionForward(qkv2.view(), heads, 0.5, y2.view(), weights2.data());
    bk::attentionBackward(qkv.view(), heads, 0.5f, weights.data(), dy.view(), dqkv.view());
    bk::attentionBackward(qkv2.view(), heads, 0.5, weights2.data(), dy2.view(), dqkv2.view());
    CHECK(worst(dqkv, 100, [&](std::size_t i, std::size_t j) { return dqkv2.at(i, j); }) <= 1);
  }
}

} // namespace
