// cpp_tests/block_attention_test.cpp — causal self-attention against its expansion
// SPDX-License-Identifier: MIT
#include "block_support.hpp"
#include "support.hpp"

#include <burtorch/block/attention.hpp>

using namespace burtorch;
using namespace block_support;

TEST_CASE_TEMPLATE("attention: heads, positions and sequences against the expansion", T, double,
                   float) {
  for (const std::size_t heads : {1u, 2u, 6u})
    for (const std::size_t size : {1u, 4u, 9u})
      for (const std::size_t positions : {1u, 3u, 8u})
        for (const std::size_t sequences : {1u, 3u}) {
          CAPTURE(heads);
          CAPTURE(size);
          CAPTURE(positions);
          checkDefinition<T, block::Attention>(
              {{sequences * positions, 3 * heads * size}},
              [&](const auto& v) { return attention(v[0], heads, positions); }, -2, 2);
        }
}

TEST_CASE("attention: what comes later has no influence on what comes before") {
  Tape<double> tape;
  const auto v = leaves<double>(tape, {{6, 6}}, -1, 1);
  const View<double> y = attention(v[0], 1, 3);
  backward(reduceSum(y.slice(0, 2)) + reduceSum(y.slice(3, 1)));
  for (const std::size_t row : {2u, 4u, 5u})
    for (const double g : v[0].row(row).gradCopy()) CHECK(g == 0);
  CHECK(v[0](1, 0).gradCopy() != 0);
}

TEST_CASE("attention: shapes that do not fit are named") {
  Tape<double> tape;
  const View<double> x(tape, 6, 12);
  CHECK(errorOf([&] { attention(x, 3, 3); }).what() ==
        std::string("attention: 12 columns are not keys, queries and values of 3 heads"));
  CHECK(errorOf([&] { attention(x, 0, 3); }).kind() == ErrorKind::badArgument);
  CHECK(errorOf([&] { attention(x, 2, 4); }).what() ==
        std::string("attention: 6 rows are not sequences of 4 positions"));
  CHECK(errorOf([&] { attention(x, 2, 0); }).kind() == ErrorKind::badArgument);
}
