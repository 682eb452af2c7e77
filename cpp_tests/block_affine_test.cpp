// cpp_tests/block_affine_test.cpp — affine and matmul against their expansions
// SPDX-License-Identifier: MIT
#include "block_support.hpp"
#include "support.hpp"

#include <burtorch/block/affine.hpp>

#include <array>

using namespace burtorch;
using namespace block_support;

TEST_CASE_TEMPLATE("affine: values and gradients are those of inner products", T, double, float) {
  for (const std::size_t rows : {1u, 2u, 7u, 33u})
    for (const std::size_t k : {1u, 3u, 17u})
      for (const std::size_t n : {1u, 5u, 16u}) {
        CAPTURE(rows);
        CAPTURE(k);
        CAPTURE(n);
        const std::vector<Shape> shapes{{n, k}, {rows, k}, {1, n}};
        checkDefinition<T, block::Affine>(shapes,
                                          [](const auto& v) { return affine(v[0], v[1], v[2]); });
        checkDefinition<T, block::Affine>(shapes, [](const auto& v) { return affine(v[0], v[1]); });
      }
}

TEST_CASE_TEMPLATE("affine: views side by side stand for their concatenation", T, double, float) {
  for (const std::size_t rows : {1u, 6u}) {
    // The last two are the same view twice; one has no columns.
    const std::vector<Shape> shapes{
        {4, 3 + 0 + 5 + 2 + 2}, {rows, 3}, {rows, 0}, {rows, 5}, {rows, 2}, {1, 4}};
    const auto inputs = [](const Views<T>& v) { return Views<T>{v[1], v[2], v[3], v[4], v[4]}; };
    checkDefinition<T, block::Affine>(
        shapes, [&](const auto& v) { return affine(v[0], spanOf(inputs(v)), v[5]); });
    const auto emptyFirst = [](const Views<T>& v) {
      return Views<T>{v[2], v[1], v[3], v[4], v[4]};
    };
    checkDefinition<T, block::Affine>(
        shapes, [&](const auto& v) { return affine(v[0], spanOf(emptyFirst(v)), v[5]); });
  }
}

TEST_CASE_TEMPLATE("affine: operands may be the same nodes", T, double, float) {
  checkDefinition<T, block::Affine>({{5, 5}},
                                    [](const auto& v) { return affine(v[0], v[0], v[0].row(2)); });
  checkDefinition<T, block::Affine>(
      {{9, 9}}, [](const auto& v) { return affine(v[0], v[0].row(4), v[0].row(2)); });
}

TEST_CASE("affine: gradients of parameters are assigned, not added, on demand") {
  Tape<double> tape;
  const auto v = leaves<double>(tape, {{3, 4}, {2, 4}, {1, 3}}, -1, 1);
  const auto run = [&](ParameterGradients how) {
    const auto mark = tape.mark();
    backward(reduceSum(affine(v[0], v[1], v[2], how)));
    tape.rewind(mark);
  };
  run(ParameterGradients::accumulate);
  const auto once = gradientsOf(tape);
  run(ParameterGradients::accumulate);
  for (std::size_t i = 0; i < once.size(); ++i) CHECK(gradientsOf(tape)[i] == 2 * once[i]);
  tape.zeroGrad();
  for (auto& g : v[0].grads()) g = std::numeric_limits<double>::quiet_NaN();
  for (auto& g : v[2].grads()) g = std::numeric_limits<double>::quiet_NaN();
  run(ParameterGradients::assign); // what stood there is not even read
  CHECK(gradientsOf(tape) == once);
  run(ParameterGradients::assign); // the input's gradient accumulates, the parameters' do not
  CHECK(v[0].gradCopy()[0] == once[0]);
  CHECK(v[1].gradCopy()[0] == 2 * once[12]);
}

TEST_CASE("affine: an unused layer still assigns: its parameters have gradient 0") {
  Tape<double> tape;
  const auto v = leaves<double>(tape, {{3, 4}, {2, 4}, {1, 3}}, -1, 1);
  for (auto& g : v[0].grads()) g = 7;
  affine(v[0], v[1], v[2], ParameterGradients::assign);
  backward(reduceSum(v[1]) * 2.0);
  CHECK(v[0].gradCopy()[5] == 0);
  CHECK(v[1].gradCopy()[5] == 2);
}

TEST_CASE("affine: shapes that do not fit are named") {
  Tape<double> tape;
  const auto v = leaves<double>(tape, {{3, 4}, {2, 5}, {1, 2}, {6, 4}}, -1, 1);
  const std::size_t before = tape.size();
  const Error columns = errorOf([&] { affine(v[0], v[1]); });
  CHECK(columns.kind() == ErrorKind::badArgument);
  CHECK(columns.what() == std::string("affine: the input has 5 columns, the weights are 3×4"));
  CHECK(errorOf([&] { affine(v[0], v[3], v[2]); }).what() ==
        std::string("affine: 2 biases for weights of 3×4"));
  const std::array both{v[1], v[3]};
  CHECK(errorOf([&] { affine(v[0], both); }).what() ==
        std::string("affine: inputs side by side have as many rows, not 2×5 and 6×4"));
  CHECK(errorOf([&] { affine(v[0], std::span<const View<double>>()); }).what() ==
        std::string("affine: no input"));
  CHECK(errorOf([&] { matmul(v[0], v[1]); }).what() == std::string("matmul: 3×4 times 2×5"));
  CHECK(tape.size() == before);
}

TEST_CASE("affine: operands of two tapes are refused") {
  Tape<double> one, other;
  const View<double> w(one, 2, 3), x(other, 1, 3);
  CHECK(errorOf([&] { affine(w, x); }).kind() == ErrorKind::differentTapes);
  CHECK(errorOf([&] { matmul(x, View<double>(one, 3, 1)); }).kind() == ErrorKind::differentTapes);
}

TEST_CASE("affine: no rows, no columns, no outputs") {
  Tape<double> tape;
  const View<double> w(tape, 3, 4), none(tape, 0, 4), b(tape, 1, 3), thin(tape, 3, 0);
  CHECK(affine(w, none, b).rows() == 0);
  CHECK(affine(w, none, b).cols() == 3);
  b.data()[1] = 5;
  const View<double> y = affine(thin, View<double>(tape, 2, 0), b); // the bias alone
  CHECK(std::vector(y.data().begin(), y.data().end()) == std::vector<double>{0, 5, 0, 0, 5, 0});
  backward(reduceSum(y));
  CHECK(b.gradCopy()[1] == 2);
}

TEST_CASE_TEMPLATE("matmul: values and gradients are those of inner products", T, double, float) {
  for (const std::size_t m : {1u, 2u, 9u})
    for (const std::size_t k : {1u, 4u, 19u})
      for (const std::size_t n : {1u, 3u, 16u})
        checkDefinition<T, block::MatMul>({{m, k}, {k, n}},
                                          [](const auto& v) { return matmul(v[0], v[1]); });
  checkDefinition<T, block::MatMul>({{6, 6}}, [](const auto& v) { return matmul(v[0], v[0]); });
  // Overlapping, but not the same.
  checkDefinition<T, block::MatMul>(
      {{6, 3}}, [](const auto& v) { return matmul(v[0].slice(0, 3), v[0].slice(2, 3)); });
}

TEST_CASE("affine and matmul: by hand") {
  Tape<double> tape;
  const View<double> w = matrix(tape, 2, 2, std::vector<double>{1, 2, 3, 4}),
                     x = matrix(tape, 2, 2, std::vector<double>{5, 6, 7, 8}),
                     b = vector(tape, std::vector<double>{10, 20});
  const auto is = [](const View<double>& y, const std::vector<double>& want) {
    return std::ranges::equal(y.data(), want);
  };
  CHECK(is(affine(w, x, b), {27, 59, 33, 73}));
  CHECK(is(matmul(w, x), {19, 22, 43, 50}));
}
