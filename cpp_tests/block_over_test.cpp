// cpp_tests/block_over_test.cpp — reductions along an axis, against the table's reductions
// SPDX-License-Identifier: MIT
#include "block_support.hpp"
#include "support.hpp"

#include <burtorch/block/over.hpp>

#include <cmath>

using namespace burtorch;
using namespace block_support;

TEST_CASE_TEMPLATE("over: rows, columns and what lies between, against the table", T, double,
                   float) {
  for (const std::size_t n : {1u, 2u, 5u, 19u, 300u})
    for (const std::size_t inner : {1u, 3u, 4u, 17u}) {
      CAPTURE(n);
      CAPTURE(inner);
      const std::vector<Shape> shapes{{3 * n, inner}};
      const auto check = [&]<class R>(R) {
        checkDefinition<T, block::Over<R>>(
            shapes, [&](const auto& v) { return reduceOver<R>(v[0], n, inner); });
      };
      check(op::AddVarying());
      check(op::MeanVarying());
      check(op::VarianceBiasedVarying());
      check(op::MaxVarying());
      check(op::MinVarying());
      checkDefinition<T, block::LogSumExp>(
          shapes, [&](const auto& v) { return logSumExp(v[0], n, inner); }, -4, 4);
    }
}

TEST_CASE("over: the first of equal numbers takes the gradient of the largest") {
  Tape<double> tape;
  const std::vector<double> numbers{1, 3, 3, 5, 4, 5};
  const View<double> x = matrix(tape, 2, 3, spanOf(numbers));
  const View<double> rows = reduceOver<op::MaxVarying>(x, 3);
  backward(rows[0] + rows[1] * 2.0);
  CHECK(std::ranges::equal(x.gradCopy(), std::vector<double>{0, 1, 0, 2, 0, 0}));
}

TEST_CASE("logSumExp: far from 0 and at infinity") {
  Tape<double> tape;
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> numbers{1000, 1000, -infinity, -infinity, infinity, 1, -infinity, 2};
  const View<double> x = matrix(tape, 4, 2, spanOf(numbers));
  const View<double> y = logSumExp(x, 2);
  CHECK(y.data()[0] == doctest::Approx(1000 + std::log(2)));
  CHECK(y.data()[1] == -infinity);
  CHECK(y.data()[2] == infinity);
  CHECK(y.data()[3] == 2);
  backward(y[0] + y[3]);
  CHECK(x.gradCopy()[0] == doctest::Approx(0.5));
  CHECK(std::ranges::equal(x.gradCopy().subspan(2), std::vector<double>{0, 0, 0, 0, 0, 1}));
}

TEST_CASE("over: samples stay apart where the axis lies inside them") {
  Tape<double> tape;
  const View<double> x(tape, 6, 4);
  const auto keeps = [&](const View<double>& y, std::size_t samples) {
    const auto frame = tape.frame(tape.records()[tape.recordOf(y.sysGetRawNodeIndex())]);
    return frame.description.methods().traits->keepsSamples(frame, 0, samples);
  };
  CHECK(keeps(reduceOver<op::AddVarying>(x, 4), 3));
  CHECK(keeps(reduceOver<op::AddVarying>(x, 2, 4), 3));
  CHECK_FALSE(keeps(reduceOver<op::AddVarying>(x, 6, 4), 3));
  CHECK_FALSE(keeps(logSumExp(x, 3, 4), 3));
  CHECK(errorOf([&] { reduceOver<op::AddVarying>(x, 5); }).what() ==
        std::string("reduceSum: 6×4 numbers are not parts of 5×1"));
}
