// cpp_tests/block_concat_test.cpp — views side by side and below each other, against their Values
// SPDX-License-Identifier: MIT
#include "block_support.hpp"
#include "support.hpp"

#include <burtorch/block/concat.hpp>

using namespace burtorch;
using namespace block_support;

TEST_CASE_TEMPLATE("concat: columns and rows, one part twice, one of nothing", T, double, float) {
  for (const std::size_t rows : {1u, 4u}) {
    const std::vector<Shape> wide{{rows, 3}, {rows, 0}, {rows, 5}};
    const auto parts = [](const Views<T>& v) { return Views<T>{v[0], v[1], v[2], v[0]}; };
    checkDefinition<T, block::Concat>(wide, [&](const auto& v) { return concatColumns(parts(v)); });
    const std::vector<Shape> tall{{rows, 3}, {0, 3}, {2, 3}};
    checkDefinition<T, block::Concat>(tall, [&](const auto& v) { return concatRows(parts(v)); });
  }
}

TEST_CASE("concat: shapes that do not fit are named") {
  Tape<double> tape;
  const std::vector<View<double>> parts{View<double>(tape, 2, 3), View<double>(tape, 3, 2)};
  CHECK(errorOf([&] { concatColumns(parts); }).what() ==
        std::string("concat: views side by side have as many rows, not 2×3 and 3×2"));
  CHECK(errorOf([&] { concatRows(parts); }).what() ==
        std::string("concat: views one below the other have as many columns, not 2×3 and 3×2"));
  CHECK(errorOf([&] { concatRows(std::span<const View<double>>()); }).what() ==
        std::string("concat: no views"));
}
