// cpp_tests/finite_sum_test.cpp — sums over samples: lanes, blocks, threads, index, clip; roles of inputs
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <burtorch/block/elementwise.hpp>
#include <burtorch/run/finite_sum.hpp>
#include <burtorch/view.hpp>

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace finite_sum_test { // names of its own where tests are compiled together

namespace {

using namespace burtorch;

constexpr std::size_t d = 3;

// (w·x − y)² with data x and y.
template <class T> Recording<T> squaredError() {
  Tape<T> tape;
  std::vector<Value<T>> w, data;
  for (std::size_t i = 0; i < d; ++i) w.emplace_back(tape, T(1));
  for (std::size_t i = 0; i < d + 1; ++i) data.emplace_back(tape, T(1));
  Value<T> sum = w[0] * data[0];
  for (std::size_t i = 1; i < d; ++i) sum = sum + w[i] * data[i];
  return Recording<T>(w, data, sqr(sum - data[d] * data[d]));
}

struct Samples {
  std::vector<double> w{0.5, -1.0, 2.0}, x, y;
  explicit Samples(std::size_t n) {
    for (std::size_t k = 0; k < n * d; ++k) x.push_back(std::sin(static_cast<double>(k)));
    for (std::size_t k = 0; k < n; ++k) y.push_back(std::cos(static_cast<double>(k)));
  }
  double residual(std::size_t k) const {
    double r = -y[k] * y[k];
    for (std::size_t i = 0; i < d; ++i) r += w[i] * x[k * d + i];
    return r;
  }
  double slope(std::size_t k, std::size_t i) const { return 2 * residual(k) * x[k * d + i]; }
  std::vector<Given<double>> given() const { return {shared(w), rows(x, d), rows(y, 1)}; }
};

} // namespace

TEST_CASE("gradients of a recording are by its variables") {
  const auto f = squaredError<double>();
  CHECK(f.inputs() == 2 * d + 1);
  CHECK(f.variables() == d);
  auto w = f.workspace();
  const Samples s(1);
  const std::vector<double> x{s.w[0], s.w[1], s.w[2], s.x[0], s.x[1], s.x[2], s.y[0]};
  std::vector<double> g(d + 1, 77);
  for (int again = 0; again < 2; ++again) {
    CHECK(f.valueAndGradient(w, x, g) == doctest::Approx(s.residual(0) * s.residual(0)));
    for (std::size_t i = 0; i < d; ++i) CHECK(g[i] == doctest::Approx(s.slope(0, i)));
  }
  CHECK(g[d] == 77);
}

TEST_CASE("what leads to data alone takes no part in a sweep, whatever the passes") {
  for (const Passes passes : {Passes::none, Passes::exact, Passes::all}) {
    Tape<double> tape;
    const std::vector<Value<double>> v{Value(tape, 2.0)}, data{Value(tape, 3.0), Value(tape, 4.0)};
    const auto onlyData = exp(data[0]) * data[1];
    const std::vector<Value<double>> outputs{v[0] * onlyData + pow(v[0], data[0]), onlyData, v[0]};
    using Values = std::span<const Value<double>>;
    const Recording<double> f(Values(v), Values(data), Values(outputs), passes);
    auto w = f.workspace();
    std::vector<double> values(3), rows(3);
    const std::vector<double> x{-2.0, 2.0, 0.5};
    f.jacobian(w, x, std::span(values), std::span(rows));
    CHECK(values[0] == doctest::Approx(-std::exp(2.0) + 4));
    CHECK(rows[0] == doctest::Approx(0.5 * std::exp(2.0) - 4)); // no log of a negative number
    CHECK(rows[1] == 0);
    CHECK(rows[2] == 1);
  }
}

TEST_CASE("sums, means and rows of samples") {
  const auto f = squaredError<double>();
  FiniteSum sum(f);
  for (const std::size_t n : {1u, 3u, 4u, 9u, 700u}) {
    const Samples s(n);
    double value = 0;
    std::vector<double> expected(d), g(d), values(n), each(n * d);
    for (std::size_t k = 0; k < n; ++k) {
      value += s.residual(k) * s.residual(k);
      for (std::size_t i = 0; i < d; ++i) expected[i] += s.slope(k, i);
    }
    for (const std::size_t threads : {1u, 2u, 3u})
      for (const std::size_t microBatch : {0u, 1u, 7u}) {
        CHECK(sum.sum(s.given(), n, g, {.microBatch = microBatch, .threads = threads}) ==
              doctest::Approx(value));
        for (std::size_t i = 0; i < d; ++i) CHECK(g[i] == doctest::Approx(expected[i]));
        sum.perSample(s.given(), n, values, each, {.microBatch = microBatch, .threads = threads});
        for (std::size_t k = 0; k < n; ++k) {
          CHECK(values[k] == doctest::Approx(s.residual(k) * s.residual(k)));
          for (std::size_t i = 0; i < d; ++i)
            CHECK(each[k * d + i] == doctest::Approx(s.slope(k, i)));
        }
      }
    CHECK(sum.mean(s.given(), n, g) == doctest::Approx(value / static_cast<double>(n)));
    const std::vector<double> once = g;
    sum.mean(s.given(), n, g);
    CHECK(g == once);
  }
}

TEST_CASE("an index picks samples, clip bounds their gradients") {
  const auto f = squaredError<double>();
  FiniteSum sum(f);
  const Samples s(10);
  const std::vector<std::int64_t> index{7, 0, 7, 9, 2};
  const double clip = 0.5;
  std::vector<double> g(d), expected(d), values(5), each(5 * d);
  for (const std::int64_t one : index) {
    const auto k = static_cast<std::size_t>(one);
    double norm = 0;
    for (std::size_t i = 0; i < d; ++i) norm += s.slope(k, i) * s.slope(k, i);
    const double scale = std::min(1.0, clip / std::sqrt(norm));
    for (std::size_t i = 0; i < d; ++i) expected[i] += scale * s.slope(k, i);
  }
  sum.sum(s.given(), 10, g, {.index = index, .clip = clip});
  for (std::size_t i = 0; i < d; ++i) CHECK(g[i] == doctest::Approx(expected[i]));
  sum.perSample(s.given(), 10, values, each, {.index = index});
  CHECK(values[3] == doctest::Approx(s.residual(9) * s.residual(9)));
  const std::vector<std::int64_t> wrong{1, 10};
  CHECK_THROWS_WITH_AS(sum.sum(s.given(), 10, g, {.index = wrong}),
                       "index[1] is 10, but there are 10 samples", std::exception);
}

TEST_CASE("floats, integers as data, and what does not fit") {
  const auto f = squaredError<float>();
  FiniteSum sum(f);
  const std::vector<float> w{1, 2, 3};
  const std::vector<std::int64_t> x{1, 0, 2, 0, 1, 1}, y{1, 2};
  const std::vector<Given<float>> given{shared(w),
                                        {.integers = x.data(), .width = 3, .rows = 2},
                                        {.integers = y.data(), .width = 1, .rows = 2}};
  std::vector<float> g(d);
  CHECK(sum.sum(given, 2, g) == 36 + 1); // (7 − 1)² + (5 − 4)²
  CHECK(g == std::vector<float>{12, 2, 26});
  CHECK_THROWS_WITH_AS(sum.sum(std::span(given).first(2), 2, g),
                       "the function has 7 inputs and was given 6", std::exception);
  CHECK_THROWS_AS(sum.sum(given, 3, g), std::exception);
  const std::vector<float> many(6);
  const std::vector<Given<float>> apart{rows(many, 3), given[1], given[2]};
  CHECK_THROWS_WITH_AS(sum.mean(apart, 2, g), "a sum is by variables that its samples share",
                       std::exception);
}

TEST_CASE("recordings with blocks run sample by sample") {
  Tape<double> tape;
  std::vector<Value<double>> w, x;
  for (int i = 0; i < 4; ++i) w.emplace_back(tape, 1.0);
  for (int i = 0; i < 4; ++i) x.emplace_back(tape, 1.0);
  const auto left = View<double>::at(tape, w[0].sysGetRawNodeIndex(), 1, 4);
  const auto right = View<double>::at(tape, x[0].sysGetRawNodeIndex(), 1, 4);
  const Recording<double> f(w, x, reduceSum(left * right));
  REQUIRE(f.hasBlocks());
  FiniteSum sum(f);
  const std::vector<double> at{1, 2, 3, 4}, data{1, 1, 1, 1, 0, 1, 0, 2};
  const std::vector<Given<double>> given{shared(at), rows(data, 4)};
  std::vector<double> g(4);
  for (int again = 0; again < 2; ++again) {
    CHECK(sum.sum(given, 2, g, {.threads = 2}) == 20);
    CHECK(g == std::vector<double>{1, 2, 1, 3});
  }
}

} // namespace finite_sum_test
