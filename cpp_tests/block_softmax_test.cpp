// cpp_tests/block_softmax_test.cpp — softmax, log-softmax and cross-entropy against their expansions
// SPDX-License-Identifier: MIT
#include "block_support.hpp"
#include "support.hpp"

#include <burtorch/block/softmax.hpp>

using namespace burtorch;
using namespace block_support;

TEST_CASE_TEMPLATE("softmax: rows against the expansion", T, double, float) {
  for (const std::size_t rows : {1u, 2u, 9u})
    for (const std::size_t cols : {2u, 5u, 27u, 65u}) {
      CAPTURE(rows);
      CAPTURE(cols);
      const std::vector<Shape> shapes{{rows, cols}};
      checkDefinition<T, block::Softmax>(
          shapes, [](const auto& v) { return softmax(v[0]); }, -4, 4);
      checkDefinition<T, block::LogSoftmax>(
          shapes, [](const auto& v) { return logSoftmax(v[0]); }, -4, 4);
      std::vector<int> targets;
      for (std::size_t i = 0; i < rows; ++i) targets.push_back(static_cast<int>(i * 7 % cols));
      checkDefinition<T, block::CrossEntropy>(
          shapes, [&](const auto& v) { return crossEntropy(v[0], spanOf(targets)); }, -4, 4);
    }
}

TEST_CASE_TEMPLATE("softmax: far from 0, nothing overflows or vanishes", T, double, float) {
  Tape<T> tape;
  const std::vector<T> numbers{T(1000), T(999), T(-1000)};
  const View<T> x = vector(tape, spanOf(numbers));
  const View<T> p = softmax(x), l = logSoftmax(x);
  const std::vector<int> target{2};
  const View<T> loss = crossEntropy(x, spanOf(target));
  CHECK(double(p.data()[0]) == doctest::Approx(0.7310585786300049));
  CHECK(double(l.data()[2]) == doctest::Approx(-2000.3132616875182));
  CHECK(double(loss.data()[0]) == doctest::Approx(2000.3132616875182));
  backward(loss[0]);
  CHECK(double(x.gradCopy()[2]) == doctest::Approx(-1));
}

TEST_CASE("softmax: one column is 1, whatever it holds, and has gradient 0") {
  Tape<double> tape;
  const std::vector<double> numbers{3, -5};
  const View<double> x = matrix(tape, 2, 1, spanOf(numbers));
  const View<double> p = softmax(x);
  CHECK(p.data()[1] == 1);
  CHECK(logSoftmax(x).data()[0] == 0);
  backward(p[0] + p[1] * 2.0);
  CHECK(x.gradCopy()[0] == 0);
}

TEST_CASE("crossEntropy: targets that do not fit are named") {
  Tape<double> tape;
  const View<double> x(tape, 2, 3);
  const std::vector<int> tooFew{1}, tooLarge{1, 3}, negative{-1, 0};
  CHECK(errorOf([&] { crossEntropy(x, spanOf(tooFew)); }).what() ==
        std::string("crossEntropy: 1 targets for logits of 2×3"));
  CHECK(errorOf([&] { crossEntropy(x, spanOf(tooLarge)); }).what() ==
        std::string("crossEntropy: target 3 at position 1 is not between 0 and 3 - 1"));
  CHECK(errorOf([&] { crossEntropy(x, spanOf(negative)); }).what() ==
        std::string("crossEntropy: target -1 at position 0 is not between 0 and 3 - 1"));
  CHECK(tape.size() == 6);
}
