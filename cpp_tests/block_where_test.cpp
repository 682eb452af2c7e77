// cpp_tests/block_where_test.cpp — one of two numbers, and products of many matrices, against their Values
// SPDX-License-Identifier: MIT
#include "block_support.hpp"
#include "support.hpp"

#include <burtorch/block/batched.hpp>
#include <burtorch/block/where.hpp>

#include <limits>

using namespace burtorch;
using namespace block_support;

TEST_CASE_TEMPLATE("where: numbers beside numbers, and one beside many", T, double, float) {
  for (const Shape x : {Shape{3, 4}, Shape{1, 1}})
    for (const Shape y : {Shape{3, 4}, Shape{1, 1}})
      checkDefinition<T, block::Where>({{3, 4}, x, y}, [](const auto& v) {
        for (std::size_t i = 0; i < v[0].size(); ++i) v[0].data()[i] = T(i % 3 == 1);
        return where(v[0], v[1], v[2]);
      });
}

TEST_CASE("where: infinity that is not chosen gives no NaN") {
  Tape<double> tape;
  const std::vector<double> choose{1, 0}, numbers{2, std::numeric_limits<double>::infinity()};
  const View<double> c = vector(tape, spanOf(choose)), x = vector(tape, spanOf(numbers));
  const View<double> z = where(c, x, c);
  backward(z[0] + z[1]);
  CHECK(std::ranges::equal(z.data(), std::vector<double>{2, 0}));
  CHECK(std::ranges::equal(x.gradCopy(), std::vector<double>{1, 0}));
  CHECK(errorOf([&] { where(c, x, View<double>(tape, 1, 3)); }).what() ==
        std::string("where: conditions of 1×2 for 1×3"));
}

TEST_CASE_TEMPLATE("batchedMatmul: each pair of matrices", T, double, float) {
  for (const std::size_t batch : {1u, 4u})
    checkDefinition<T, block::BatchedMatMul>({{batch * 3, 5}, {batch * 5, 2}}, [&](const auto& v) {
      return batchedMatmul(v[0], v[1], batch);
    });
  Tape<double> tape;
  CHECK(errorOf([&] {
          batchedMatmul(View<double>(tape, 4, 3), View<double>(tape, 4, 3), 2);
        }).what() == std::string("matmul: 2 matrices in 4×3 times 4×3"));
}
