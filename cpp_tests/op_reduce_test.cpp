// cpp_tests/op_reduce_test.cpp — reductions where they are known to go wrong: few operands, zeros, many operands
// SPDX-License-Identifier: MIT
#include <burtorch/burtorch.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace burtorch;

namespace {

template <class T> std::vector<Value<T>> leaves(Tape<T>& tape, const std::vector<double>& xs) {
  std::vector<Value<T>> out;
  for (const double x : xs) out.emplace_back(tape, x);
  return out;
}

std::vector<double> gradients(const std::vector<Value<double>>& xs) {
  std::vector<double> out;
  for (const auto& x : xs) out.push_back(x.gradCopy());
  return out;
}

} // namespace

TEST_CASE("no operands: sums are 0, products 1, means NaN; a gradient is no accident") {
  Tape<double> tape;
  const TapeScope scope(tape);
  const std::vector<Value<double>> none;
  CHECK(reduceSum(none).dataCopy() == 0);
  CHECK(reduceSub(none).dataCopy() == 0);
  CHECK(reduceMul(none).dataCopy() == 1);
  CHECK(reduceSumOfSquares(none).dataCopy() == 0);
  CHECK(innerProduct(none, none).dataCopy() == 0);
  CHECK(std::isnan(reduceMean(none).dataCopy()));
  CHECK(std::isnan(reduceNegativeMean(none).dataCopy()));
  CHECK(std::isnan(reduceMeanSquares(none).dataCopy()));
  CHECK(std::isnan(variance(none).dataCopy()));
  CHECK(std::isnan(varianceBiased(none).dataCopy()));
  for (std::size_t i = 0; i < tape.size(); ++i) backward(Value<double>::at(tape, i));
#if BURTORCH_EXCEPTIONS
  CHECK_THROWS_AS(reduceMax(none), Error);
  CHECK_THROWS_AS(reduceMin(none), Error);
#endif
}

TEST_CASE("one operand") {
  Tape<double> tape;
  const auto x = leaves(tape, {-3});
  CHECK(reduceSum(x).dataCopy() == -3);
  CHECK(reduceSub(x).dataCopy() == -3);
  CHECK(reduceMul(x).dataCopy() == -3);
  CHECK(reduceMean(x).dataCopy() == -3);
  CHECK(reduceNegativeMean(x).dataCopy() == 3);
  CHECK(reduceMeanSquares(x).dataCopy() == 9);
  CHECK(reduceMax(x).dataCopy() == -3);
  CHECK(varianceBiased(x).dataCopy() == 0);
  CHECK(std::isnan(variance(x).dataCopy()));
  for (const auto& z : {reduceSum(x), reduceSub(x), reduceMul(x), reduceMean(x), reduceMax(x)}) {
    tape.zeroGrad();
    backward(z);
    CHECK(x[0].gradCopy() == 1);
  }
  tape.zeroGrad();
  backward(reduceNegativeMean(x));
  CHECK(x[0].gradCopy() == -1);
}

TEST_CASE("a mean is finite where the sum of its terms overflows") {
  const auto check = [](const std::vector<double>& numbers, double want) {
    Tape<double> tape;
    const auto x = leaves(tape, numbers);
    std::vector<Value<double>> list{x.rbegin(), x.rend()};
    for (const auto& each : {reduceMean(x), reduceMean(list), reduceMeanAndMeanSquares(x).first})
      CHECK(each.dataCopy() == want);
    CHECK(reduceNegativeMean(x).dataCopy() == -want);
    tape.zeroGrad();
    backward(reduceMean(x));
    CHECK(x[0].gradCopy() == 1.0 / static_cast<double>(numbers.size()));
  };
  const double huge = std::numeric_limits<double>::max(),
               inf = std::numeric_limits<double>::infinity();
  check({1.7e308, 1.7e308}, 1.7e308);
  check({huge, huge}, huge);
  check({huge, huge, -huge, -huge}, 0);
  check(std::vector<double>(512, -0x1p1023), -0x1p1023);
  check({inf, 1}, inf);
  Tape<double> tape;
  CHECK(std::isnan(reduceMean(leaves(tape, {inf, -inf})).dataCopy()));
  const auto x = leaves(tape, {1.2e154, 1.2e154});
  CHECK(reduceMeanSquares(x).dataCopy() == doctest::Approx(1.44e308));
  CHECK(reduceMeanAndMeanSquares(x).second.dataCopy() == reduceMeanSquares(x).dataCopy());
}

TEST_CASE("odd and even counts, against closed forms") {
  for (const std::size_t n : {2u, 3u, 7u, 8u, 9u, 255u, 256u, 257u, 511u, 513u, 1000u}) {
    Tape<double> tape;
    std::vector<double> values;
    for (std::size_t i = 0; i < n; ++i) values.push_back(static_cast<double>(i % 13) - 6);
    const auto x = leaves(tape, values);
    double sum = 0, squares = 0;
    for (const double v : values) sum += v, squares += v * v;
    const auto count = static_cast<double>(n);
    CHECK(reduceSum(x).dataCopy() == sum); // small integers: exact
    CHECK(reduceSub(x).dataCopy() == 2 * values[0] - sum);
    CHECK(reduceSumOfSquares(x).dataCopy() == squares);
    CHECK(reduceMean(x).dataCopy() == sum / count);
    CHECK(reduceNegativeMean(x).dataCopy() == -sum / count);
    CHECK(reduceMeanSquares(x).dataCopy() == squares / count);
    const auto [mean, meanSquares] = reduceMeanAndMeanSquares(x);
    CHECK(mean.dataCopy() == sum / count);
    CHECK(meanSquares.dataCopy() == squares / count);
    backward(mean + meanSquares);
    for (std::size_t i = 0; i < n; ++i)
      CHECK(x[i].gradCopy() == doctest::Approx((1 + 2 * values[i]) / count));
  }
}

TEST_CASE("a product is exact where factors are 0") {
  const auto gradientOf = [](const std::vector<double>& xs) {
    Tape<double> tape;
    const auto x = leaves(tape, xs);
    backward(reduceMul(x));
    return gradients(x);
  };
  CHECK(gradientOf({2, 0, 3}) == std::vector<double>{0, 6, 0});
  CHECK(gradientOf({0, 2, 3, 5, 7}) == std::vector<double>{210, 0, 0, 0, 0});
  CHECK(gradientOf({2, 3, 5, 7, 0}) == std::vector<double>{0, 0, 0, 0, 210});
  CHECK(gradientOf({2, 0, 3, 0}) == std::vector<double>{0, 0, 0, 0});
  CHECK(gradientOf({0}) == std::vector<double>{1});
  CHECK(gradientOf({2, 3, 5, 7, 11, 13}) ==
        std::vector<double>{15015, 10010, 6006, 4290, 2730, 2310});
  // The product overflows or underflows on the way; the product of all but one need not.
  CHECK(gradientOf({1e200, 1e200, 1e-300}) ==
        std::vector<double>{1e200 * 1e-300, 1e200 * 1e-300, HUGE_VAL});
  CHECK(gradientOf({1e-200, 1e-200, 4}) == std::vector<double>{4e-200, 4e-200, 0});
}

TEST_CASE("a product of many factors") {
  Tape<double> tape;
  std::vector<double> values(1000, 1);
  values[400] = 0;
  values[777] = 3;
  const auto x = leaves(tape, values);
  backward(reduceMul(x));
  for (std::size_t i = 0; i < values.size(); ++i) CHECK(x[i].gradCopy() == (i == 400 ? 3 : 0));
}

TEST_CASE_TEMPLATE("the variance of equal inputs is 0, never negative", T, float, double) {
  for (const double v : {0.1, 1e-8, 3.3e7, -12345.678}) {
    Tape<T> tape;
    const auto x = leaves(tape, std::vector<double>(1001, v));
    CHECK(varianceBiased(x).dataCopy() >= 0);
    CHECK(variance(x).dataCopy() >= 0);
    CHECK(static_cast<double>(variance(x).dataCopy()) <= 1e-12 * v * v + 1e-30);
  }
}

TEST_CASE("a variance far from 0 keeps its digits") {
  Tape<double> tape;
  const auto x = leaves(tape, {1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16});
  CHECK(variance(x).dataCopy() == doctest::Approx(30));
  CHECK(varianceBiased(x).dataCopy() == doctest::Approx(22.5));
}

TEST_CASE("sums of a million floats lose no more than pairwise summation") {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<float> uniform(0, 1);
  constexpr std::size_t n = 1000000;
  Tape<float> tape{reserve(n + 10)};
  std::vector<Value<float>> x;
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const float v = uniform(random);
    x.emplace_back(tape, v);
    sum += v, squares += static_cast<double>(v) * v;
  }
  // Pairwise summation errs by at most about log2(n)·eps; naive summation is off by 1e-3 here.
  const double bound = 20 * std::numeric_limits<float>::epsilon();
  CHECK(std::abs(reduceSum(x).dataCopy() / sum - 1) < bound);
  CHECK(std::abs(reduceMean(x).dataCopy() * n / sum - 1) < bound);
  CHECK(std::abs(reduceSumOfSquares(x).dataCopy() / squares - 1) < bound);
  CHECK(std::abs(reduceMeanSquares(x).dataCopy() * n / squares - 1) < bound);
  CHECK(std::abs(innerProduct(x, x).dataCopy() / squares - 1) < bound);
  CHECK(std::abs(reduceSub(x).dataCopy() / (2.0 * x[0].dataCopy() - sum) - 1) < bound);
  const auto [mean, meanSquares] = reduceMeanAndMeanSquares(x);
  CHECK(std::abs(mean.dataCopy() * n / sum - 1) < bound);
  CHECK(std::abs(meanSquares.dataCopy() * n / squares - 1) < bound);
}

TEST_CASE("an extremum over negatives; its gradient goes to the first that attains it") {
  Tape<double> tape;
  const auto x = leaves(tape, {-5, -2, -9, -2});
  const auto top = reduceMax(x), bottom = reduceMin(x);
  CHECK(top.dataCopy() == -2);
  CHECK(bottom.dataCopy() == -9);
  backward(top);
  CHECK(gradients(x) == std::vector<double>{0, 1, 0, 0});
  backward(bottom);
  CHECK(gradients(x) == std::vector<double>{0, 1, 1, 0});
}

TEST_CASE("one node many times in one reduction") {
  Tape<double> tape;
  const Value<double> x(tape, 3.0);
  const std::vector<Value<double>> many(5000, x);
  backward(reduceSum(many));
  CHECK(x.gradCopy() == 5000);
  tape.zeroGrad();
  backward(innerProduct(many, many));
  CHECK(x.gradCopy() == 30000);
  tape.zeroGrad();
  const auto two = std::vector{x, x};
  backward(reduceMul(two));
  CHECK(x.gradCopy() == 6);
}

TEST_CASE("braces, arrays and spans of Values") {
  Tape<double> tape;
  const Value<double> a(tape, 2.0), b(tape, 5.0);
  CHECK(reduceSum({a, b}).dataCopy() == 7);
  CHECK(reduceMean(std::array{a, b}).dataCopy() == 3.5);
  CHECK(innerProduct({a, b}, {b, a}).dataCopy() == 20);
  CHECK(innerProductWithBias({a, b}, {b, a}, a).dataCopy() == 22);
  CHECK(reduceMeanAndMeanSquares({a, b}).second.dataCopy() == 14.5);
#if BURTORCH_EXCEPTIONS
  CHECK_THROWS_WITH_AS(innerProduct({a, b}, {b}), "an inner product of 2 with 1 operands", Error);
#endif
}
