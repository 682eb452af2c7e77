// cpp_tests/block_gather_test.cpp — rows by index, alone and into a linear layer, against expansions
// SPDX-License-Identifier: MIT
#include "block_support.hpp"
#include "support.hpp"

#include <burtorch/block/gather.hpp>

using namespace burtorch;
using namespace block_support;

namespace {

std::vector<int> someIds(std::size_t count, std::size_t below) { // with many repetitions
  std::vector<int> ids;
  for (std::size_t i = 0; i < count; ++i) ids.push_back(static_cast<int>((i * i + i / 3) % below));
  return ids;
}

} // namespace

TEST_CASE_TEMPLATE("gather: the table's rows, and their gradients added up", T, double, float) {
  const auto ids = someIds(12, 5);
  for (const std::size_t perRow : {1u, 3u})
    checkDefinition<T, block::Gather>(
        {{5, 4}}, [&](const auto& v) { return gather(v[0], spanOf(ids), perRow); });
  Tape<T> tape;
  const View<T> y = gather(View<T>(tape, 5, 4), spanOf(ids), 3);
  CHECK(y.rows() == 4);
  CHECK(y.cols() == 12);
  const View<T> table = leaves<T>(tape, {{5, 4}}, -1, 1)[0], rows = gather(table, ids);
  for (std::size_t i = 0; i < ids.size(); ++i)
    CHECK(rows(i, 2).dataCopy() == table(static_cast<std::size_t>(ids[i]), 2).dataCopy());
}

TEST_CASE_TEMPLATE("gatherAffine: against gathered rows and inner products", T, double, float) {
  for (const std::size_t samples : {1u, 2u, 9u, 40u})
    for (const std::size_t positions : {1u, 3u})
      for (const std::size_t n : {1u, 31u, 32u, 33u, 70u}) { // 32 rows of w are taken at a time
        CAPTURE(samples);
        CAPTURE(positions);
        CAPTURE(n);
        const auto ids = someIds(samples * positions, 7);
        const std::vector<Shape> shapes{{7, 4}, {n, positions * 4}, {1, n}};
        checkDefinition<T, block::GatherAffine>(
            shapes, [&](const auto& v) { return gatherAffine(v[0], spanOf(ids), v[1], v[2]); });
        checkDefinition<T, block::GatherAffine>(
            shapes, [&](const auto& v) { return gatherAffine(v[0], spanOf(ids), v[1]); });
      }
}

TEST_CASE("gatherAffine: equals affine of gather, also where gradients are assigned") {
  const auto ids = someIds(30, 6);
  for (const std::size_t samples : {1u, 10u}) {
    Tape<double> tape;
    const auto v = leaves<double>(tape, {{6, 4}, {5, 12}, {1, 5}}, -1, 1);
    const auto some = spanOf(ids).first(3 * samples);
    const auto mark = tape.mark();
    backward(reduceSumOfSquares(affine(v[1], gather(v[0], some, 3), v[2])));
    tape.rewind(mark);
    const auto want = gradientsOf(tape);
    std::ranges::fill(v[0].grads(), 0); // a table's rows that do not occur must be cleared
    for (const auto& parameter : {v[1], v[2]})
      for (auto& g : parameter.grads()) g = std::numeric_limits<double>::quiet_NaN();
    backward(reduceSumOfSquares(gatherAffine(v[0], some, v[1], v[2], ParameterGradients::assign)));
    tape.rewind(mark);
    CHECK(distance(gradientsOf(tape), want) < 1e-14);
    backward(reduceSumOfSquares(gatherAffine(v[0], some, v[1], v[2])));
    tape.rewind(mark);
    CHECK(tape.grads()[30] == doctest::Approx(2 * want[30]));
  }
}

TEST_CASE("gatherAffine: several sweeps over one record give the same") {
  Tape<double> tape;
  const auto ids = someIds(8, 5);
  const auto v = leaves<double>(tape, {{5, 3}, {4, 6}, {1, 4}}, -1, 1);
  const auto root = reduceSumOfSquares(gatherAffine(v[0], spanOf(ids), v[1], v[2]));
  backward(root);
  const auto once = gradientsOf(tape);
  tape.zeroGrad();
  backward(root);
  CHECK(gradientsOf(tape) == once);
}

TEST_CASE("gather: indices and shapes that do not fit are named") {
  Tape<double> tape;
  const View<double> table(tape, 5, 4), w(tape, 3, 8), odd(tape, 3, 9), b(tape, 1, 2);
  const std::vector<int> three{0, 1, 2}, large{0, 5}, negative{-1, 0};
  CHECK(errorOf([&] { gather(table, spanOf(three), 2); }).what() ==
        std::string("gather: 3 indices do not fill rows of 2"));
  CHECK(errorOf([&] { gather(table, spanOf(large)); }).what() ==
        std::string("gather: index 5 at position 1 is not between 0 and 5 - 1"));
  CHECK(errorOf([&] { gather(table, spanOf(negative)); }).kind() == ErrorKind::badArgument);
  CHECK(errorOf([&] { gatherAffine(table, spanOf(three), w); }).what() ==
        std::string("gatherAffine: 3 indices are not samples of 2"));
  CHECK(errorOf([&] { gatherAffine(table, spanOf(large), odd); }).what() ==
        std::string("gatherAffine: rows of 4 do not fill weights of 3×9"));
  CHECK(errorOf([&] { gatherAffine(table, spanOf(large), w, b); }).what() ==
        std::string("gatherAffine: 2 biases for weights of 3×8"));
  CHECK(errorOf([&] { gatherAffine(table, spanOf(large), w); }).what() ==
        std::string("gatherAffine: index 5 at position 1 is not between 0 and 5 - 1"));
}

TEST_CASE("gather: no indices, no rows") {
  Tape<double> tape;
  const View<double> table(tape, 5, 4), w(tape, 3, 4);
  const std::vector<int> none;
  CHECK(gather(table, spanOf(none)).rows() == 0);
  CHECK(gatherAffine(table, spanOf(none), w).cols() == 3);
}
