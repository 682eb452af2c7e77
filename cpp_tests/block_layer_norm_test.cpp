// cpp_tests/block_layer_norm_test.cpp — layer norm against its expansion
// SPDX-License-Identifier: MIT
#include "block_support.hpp"
#include "support.hpp"

#include <burtorch/block/layer_norm.hpp>

using namespace burtorch;
using namespace block_support;

TEST_CASE_TEMPLATE("layerNorm: rows against the expansion", T, double, float) {
  for (const std::size_t rows : {1u, 2u, 8u})
    for (const std::size_t cols : {2u, 5u, 24u, 33u})
      checkDefinition<T, block::LayerNorm>({{rows, cols}, {1, cols}, {1, cols}}, [](const auto& v) {
        return layerNorm(v[0], v[1], v[2]);
      });
  checkDefinition<T, block::LayerNorm>(
      {{4, 6}, {1, 6}}, [](const auto& v) { return layerNorm(v[0], v[1], v[1], T(0.5)); });
}

TEST_CASE("layerNorm: equal numbers in a row give the shift") {
  Tape<double> tape;
  const View<double> x(tape, 1, 4), scale(tape, 1, 4), shift(tape, 1, 4);
  for (auto& each : x.data()) each = 3;
  for (auto& each : scale.data()) each = 2;
  shift.data()[2] = 7;
  const View<double> y = layerNorm(x, scale, shift);
  CHECK(y.data()[1] == 0);
  CHECK(y.data()[2] == 7);
}

TEST_CASE("layerNorm: gradients of scale and shift are assigned on demand") {
  Tape<double> tape;
  const auto v = leaves<double>(tape, {{3, 4}, {1, 4}, {1, 4}}, -1, 1);
  const auto run = [&](ParameterGradients how) {
    const auto mark = tape.mark();
    backward(reduceSumOfSquares(layerNorm(v[0], v[1], v[2], 1e-5, how)));
    tape.rewind(mark);
  };
  run(ParameterGradients::accumulate);
  const auto once = gradientsOf(tape);
  for (const auto& parameter : {v[1], v[2]})
    for (auto& g : parameter.grads()) g = std::numeric_limits<double>::quiet_NaN();
  run(ParameterGradients::assign);
  CHECK(distance(std::vector(v[1].gradCopy().begin(), v[1].gradCopy().end()),
                 std::vector(once.begin() + 12, once.begin() + 16)) < 1e-15);
  CHECK(v[2].gradCopy()[3] == once[19]);
  CHECK(v[0].gradCopy()[0] == 2 * once[0]);
}

TEST_CASE("layerNorm: shapes that do not fit are named") {
  Tape<double> tape;
  const View<double> x(tape, 3, 4), scale(tape, 1, 4), shift(tape, 1, 3);
  CHECK(errorOf([&] { layerNorm(x, scale, shift); }).what() ==
        std::string("layerNorm: 4 weights and 3 biases for rows of 3×4"));
}
