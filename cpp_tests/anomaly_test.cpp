// cpp_tests/anomaly_test.cpp — the operation that made a NaN or an infinity is found
// SPDX-License-Identifier: MIT
#include <burtorch/run/anomaly.hpp>
#include <burtorch/burtorch.hpp>
#include <burtorch/op/types.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

using namespace burtorch;

TEST_CASE("anomalies: the first operation that made one, not those that passed it on") {
  Tape<double> tape;
  const Value<double> x(tape, -1.0), y(tape, 2.0);
  const auto product = x * y;
  CHECK(findAnomaly(tape) == 1);
  const auto root = logarithm(product);
  const auto passedOn = root + y;
  const auto another = y / 0.0;
  CHECK(std::isnan(passedOn.dataCopy()));
  CHECK(std::isinf(another.dataCopy()));
  CHECK(findAnomaly(tape) == tape.recordOf(root.sysGetRawNodeIndex()));
  CHECK(findAnomaly(tape, 2) == tape.recordOf(another.sysGetRawNodeIndex()));
  CHECK(findAnomaly(tape, 4) == 4);
}

TEST_CASE("anomalies: an infinite operand, node or number, is none") {
  Tape<double> tape;
  const double infinity = std::numeric_limits<double>::infinity();
  const Value<double> x(tape, 1.0), leaf(tape, infinity);
  const auto passedOn = reduceSum(std::vector{x, leaf}) * 2.0 + x * infinity;
  CHECK(std::isinf(passedOn.dataCopy()));
  CHECK(findAnomaly(tape) == tape.records().size());
}

TEST_CASE("anomalies: the pullback that made an infinite gradient") {
  Tape<double> tape;
  const Value<double> x(tape, 0.0), w(tape, 3.0);
  const auto root = sqrt(x);
  const auto y = root * w + x; // also gives x a gradient, which is finite
  CHECK(findAnomaly(tape) == tape.records().size());
  CHECK(backwardWatched(y) == tape.recordOf(root.sysGetRawNodeIndex()));
  CHECK(std::isinf(x.gradCopy()));

  const auto good = w * w;
  const auto more = good + x; // what x holds is no news
  CHECK(backwardWatched(more) == tape.records().size());
  tape.zeroGrad();
  CHECK(backwardWatched(w) == tape.records().size());
  CHECK(backwardWatched(good) == tape.records().size());
  CHECK(w.gradCopy() == 7.0); // the same as backward()
}

TEST_CASE_TEMPLATE("anomalies: in any lane of any type", T, float, float16, bfloat16, float128,
                   float32x8, dual64) {
  Tape<T> tape;
  const Value<T> x(tape, T(0)), one(tape, T(1));
  CHECK(isFinite(one.dataCopy()));
  const auto inverse = one / x;
  CHECK(findAnomaly(tape) == tape.recordOf(inverse.sysGetRawNodeIndex()));
}
