// cpp_tests/block_strided_test.cpp — transposes, repetitions, slices and places, against the Values themselves
// SPDX-License-Identifier: MIT
#include "block_support.hpp"
#include "support.hpp"

#include <burtorch/block/strided.hpp>

using namespace burtorch;
using namespace block_support;

namespace {

using Sizes = std::vector<std::size_t>;

bool stridedKeeps(const View<double>& y, std::size_t samples) {
  auto& tape = y.tape();
  const auto frame = tape.frame(tape.records()[tape.recordOf(y.sysGetRawNodeIndex())]);
  return frame.description.methods().traits->keepsSamples(frame, 0, samples);
}

} // namespace

TEST_CASE_TEMPLATE("strided: the Values of x, where they should be", T, double, float) {
  const std::vector<Shape> shapes{{40, 19}};
  const auto check = [&](std::size_t offset, const Sizes& sizes, const Sizes& strides) {
    checkDefinition<T, block::Strided>(
        shapes, [&](const auto& v) { return strided(v[0], offset, sizes, strides); });
  };
  check(0, {19, 40}, {1, 19});               // rows for columns
  check(0, {3, 40, 19}, {0, 19, 1});         // three times
  check(5, {40, 7}, {19, 0});                // a column, as often
  check(20, {13, 3}, {57, 4});               // every third row, some columns
  check(0, {2, 19, 4, 5}, {380, 1, 95, 19}); // four axes
  check(7, {5}, {19});
  checkDefinition<T, block::Strided>(shapes, [&](const auto& v) { return transpose(v[0]); });
}

TEST_CASE_TEMPLATE("take: numbers and rows, some of them twice", T, double, float) {
  const std::vector<Shape> shapes{{6, 3}};
  const std::vector<int> rows{5, 0, 5, 2}, numbers{17, 0, 3, 3, 3};
  checkDefinition<T, block::Take>(shapes, [&](const auto& v) { return take(v[0], spanOf(rows)); });
  checkDefinition<T, block::Take>(
      shapes, [&](const auto& v) { return take(v[0].reshape(18, 1), spanOf(numbers)); });
}

TEST_CASE("strided: a transpose holds what a transpose holds") {
  Tape<double> tape;
  const std::vector<double> numbers{1, 2, 3, 4, 5, 6};
  const View<double> y = transpose(matrix(tape, 2, 3, spanOf(numbers)));
  CHECK(y.rows() == 3);
  CHECK(std::ranges::equal(y.data(), std::vector<double>{1, 4, 2, 5, 3, 6}));
}

TEST_CASE("strided, take: which of them keep samples apart") {
  Tape<double> tape;
  const View<double> x(tape, 6, 4);
  CHECK(stridedKeeps(strided(x, 1, Sizes{6, 2}, Sizes{4, 2}), 3));
  CHECK(stridedKeeps(strided(x, 0, Sizes{3, 4, 2}, Sizes{8, 1, 4}), 3));
  CHECK_FALSE(stridedKeeps(strided(x, 0, Sizes{4, 6}, Sizes{1, 4}), 2));
  CHECK_FALSE(stridedKeeps(strided(x, 0, Sizes{3, 4}, Sizes{4, 1}), 3));
  CHECK_FALSE(stridedKeeps(strided(x, 0, Sizes{5, 8}, Sizes{4, 1}), 5)); // windows overlap
  const std::vector<int> apart{1, 0, 3, 3, 4, 5}, mixed{1, 2, 3, 3, 4, 5};
  CHECK(stridedKeeps(take(x, spanOf(apart)), 3));
  CHECK_FALSE(stridedKeeps(take(x, spanOf(mixed)), 3));
}

TEST_CASE("strided, take: places outside are named") {
  Tape<double> tape;
  const View<double> x(tape, 2, 3);
  CHECK(errorOf([&] {
          strided(x, 1, Sizes{2, 3}, Sizes{3, 1});
        }).what() == std::string("strided: 6 numbers do not lie in a view of 2×3"));
  const std::vector<int> outside{0, 2};
  CHECK(errorOf([&] { take(x, spanOf(outside)); }).what() ==
        std::string("take: place 2 at position 1 is not between 0 and 2 - 1"));
  CHECK(tape.size() == 6);
}
