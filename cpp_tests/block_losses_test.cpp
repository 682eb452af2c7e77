// cpp_tests/block_losses_test.cpp — losses of each number, against their definitions
// SPDX-License-Identifier: MIT
#include "block_support.hpp"
#include "support.hpp"

#include <burtorch/block/losses.hpp>

using namespace burtorch;
using namespace block_support;

TEST_CASE_TEMPLATE("losses: squared, Huber's and logistic, near and far", T, double, float) {
  const std::vector<Shape> shapes{{3, 7}, {3, 7}};
  checkDefinition<T, block::Loss<block::SquaredError>>(
      shapes, [](const auto& v) { return squaredError(v[0], v[1]); }, -4, 4);
  checkDefinition<T, block::Loss<block::HuberError>>(
      shapes, [](const auto& v) { return huberError(v[0], v[1], T(1.5)); }, -4, 4);
  checkDefinition<T, block::Loss<block::LogisticError>>(
      shapes, [](const auto& v) { return logisticError(v[0], v[1]); }, -4, 4);
}

TEST_CASE("losses: known numbers, and nothing overflows") {
  Tape<double> tape;
  const std::vector<double> x{2, -3, 1000}, t{1, 0, 1};
  const View<double> a = vector(tape, spanOf(x)), b = vector(tape, spanOf(t));
  const View<double> h = huberError(a, b, 2), l = logisticError(a, b);
  CHECK(h.data()[0] == 0.5);
  CHECK(h.data()[1] == 4); // 2·(3 − 1)
  CHECK(l.data()[2] == 0);
  CHECK(l.data()[0] == doctest::Approx(0.1269280110429726));
  backward(h[1] + l[2]);
  CHECK(a.gradCopy()[1] == -2);
  CHECK(a.gradCopy()[2] == 0);
  CHECK(b.gradCopy()[1] == 2);
  CHECK(errorOf([&] { squaredError(a, View<double>(tape, 2, 2)); }).what() ==
        std::string("squaredError: predictions of 1×3 and targets of 2×2"));
  CHECK(errorOf([&] { huberError(a, b, 0); }).what() ==
        std::string("huberError: delta is positive"));
}
