// cpp_tests/nn_fixed_test.cpp — layers of fixed sizes: of numbers, Values and Symbols, against those on views
// SPDX-License-Identifier: MIT
#include <burtorch/backward.hpp>
#include <burtorch/nn/fixed.hpp>
#include <burtorch/program.hpp>

#include <doctest/doctest.h>

#include <array>
#include <string>

namespace bt = burtorch;
namespace fixed = bt::nn::fixed;
using bt::nn::Activation;

namespace {

using Net = fixed::MLP<Activation::tanh, 2, 4, 3>;
constexpr std::size_t all = Net::parameters + Net::inputs;

// The network as a function of parameters and inputs together: the sum of squared outputs.
template <class X> constexpr auto loss(const std::array<X, all>& given) {
  std::array<X, Net::parameters> p =
      fixed::detail::each<Net::parameters>([&](std::size_t i) { return given[i]; });
  std::array<X, 2> x{given[all - 2], given[all - 1]};
  const auto y = Net::apply(p, x);
  return y[0] * y[0] + y[1] * y[1] + y[2] * y[2];
}

std::array<double, all> numbers() {
  bt::Random random(4);
  std::array<double, all> out{};
  for (double& x : out) x = random.uniform(-1, 1);
  return out;
}

TEST_CASE("fixed layers: numbers, Values, Symbols and views agree, gradients too") {
  const auto x = numbers();
  const double plain = loss(x);

  bt::Tape<double> tape;
  std::array<bt::Value<double>, all> values;
  for (std::size_t i = 0; i < all; ++i) values[i] = bt::Value<double>(tape, x[i]);
  const auto root = loss(values);
  bt::backward(root);
  CHECK(root.dataCopy() == doctest::Approx(plain).epsilon(1e-14));

  using P = bt::Program<[](const std::array<bt::Symbol, all>& in) { return loss(in); }, all>;
  std::array<double, all> gradient{};
  CHECK(P::valueAndGradient(x, gradient) == doctest::Approx(plain).epsilon(1e-14));
  for (std::size_t i = 0; i < all; ++i)
    CHECK(gradient[i] == doctest::Approx(values[i].gradCopy()).epsilon(1e-13));

  // The layer on views, with the same parameters in the same order.
  bt::Tape<double> other;
  bt::Random random(1);
  const std::array<std::size_t, 3> sizes{2, 4, 3};
  const bt::nn::MLP<bt::View<double>> mlp(other, sizes, random, Activation::tanh);
  std::size_t next = 0;
  mlp.parameters([&](const std::string&, const auto& view) {
    for (double& each : view.data()) each = x[next++];
  });
  CHECK(next == Net::parameters);
  const auto y = mlp(bt::vector(other, std::array{x[all - 2], x[all - 1]}));
  bt::backward(bt::reduceSumOfSquares(y));
  next = 0;
  mlp.parameters([&](const std::string&, const auto& view) {
    for (const double& each : view.grads())
      CHECK(each == doctest::Approx(gradient[next++]).epsilon(1e-13));
  });
}

TEST_CASE("fixed layers: sizes and constants") {
  static_assert(fixed::Linear<3, 2>::parameters == 8 && Net::parameters == 12 + 15);
  static_assert(fixed::Linear<2, 1>::apply(std::array{2.0, 3.0, 0.5}, std::array{1.0, -1.0})[0] ==
                -0.5);
  static_assert(fixed::Neuron<2>::apply(std::array{2.0, 3.0, 0.5}, std::array{1.0, -1.0}) == 0);
  static_assert(fixed::Embedding<3, 2>::apply(std::array{0, 1, 2, 3, 4, 5}, 1) == std::array{2, 3});
}

TEST_CASE("fixed layers: activations and LayerNorm as on views") {
  bt::Tape<double> tape;
  const std::array p{1.5, -0.5, 2.0, 0.1, 0.2, 0.3};
  const std::array x{0.3, -1.2, 0.8};
  const auto want =
      bt::layerNorm(bt::vector(tape, x), bt::vector(tape, std::array{p[0], p[1], p[2]}),
                    bt::vector(tape, std::array{p[3], p[4], p[5]}), 1e-5);
  const auto got = fixed::LayerNorm<3>::apply(p, x);
  std::array<bt::Value<double>, 6> pv;
  std::array<bt::Value<double>, 3> xv;
  for (std::size_t i = 0; i < 6; ++i) pv[i] = bt::Value<double>(tape, p[i]);
  for (std::size_t i = 0; i < 3; ++i) xv[i] = bt::Value<double>(tape, x[i]);
  const auto onTape = fixed::LayerNorm<3>::apply(pv, xv);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(got[i] == doctest::Approx(want[i].dataCopy()).epsilon(1e-12));
    CHECK(onTape[i].dataCopy() == doctest::Approx(want[i].dataCopy()).epsilon(1e-12));
  }
  const std::array w{0.7, -0.4, 0.2};
  const std::array in{0.9, 1.1};
  const auto sum = 0.7 * 0.9 - 0.4 * 1.1 + 0.2;
  CHECK(fixed::Neuron<2, Activation::identity>::apply(w, in) == doctest::Approx(sum));
  CHECK(fixed::Neuron<2, Activation::gelu>::apply(w, in) ==
        doctest::Approx(bt::op::Gelu::forward(sum)));
  CHECK(fixed::Neuron<2, Activation::sigmoid>::apply(w, in) ==
        doctest::Approx(bt::op::Sigmoid::forward(sum)));
}

} // namespace
