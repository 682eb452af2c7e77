// cpp_tests/nn_fixed_test.cpp — layers of fixed sizes: of numbers, Values and Symbols, against those on views
// SPDX-License-Identifier: MIT
#include <burtorch/backward.hpp>
#include <burtorch/nn/fixed.hpp>
#include <burtorch/nn/models.hpp>
#include <burtorch/run/program.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <string>
#include <vector>

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

// A fixed layer of Values and a layer on views, with the same parameters: values and gradients.
template <class Fixed, class Input, class OnViews>
void checkAgainstViews(const Input& input, const OnViews& layer, bt::Tape<double>& tape,
                       const bt::View<double>& want) {
  bt::Random random(8);
  bt::Tape<double> other;
  std::array<double, Fixed::parameters> plain{};
  std::size_t next = 0;
  layer.parameters([&](const std::string&, const auto& view) {
    for (const double& each : view.data()) plain[next++] = each;
  });
  REQUIRE(next == Fixed::parameters);
  std::array<bt::Value<double>, Fixed::parameters> p;
  for (std::size_t i = 0; i < p.size(); ++i) p[i] = bt::Value<double>(other, plain[i]);
  std::vector<bt::Value<double>> terms, wanted;
  const auto compare = [&](const auto& got) {
    const std::size_t i = terms.size();
    const double weight = random.uniform(-1, 1);
    CHECK(got.dataCopy() == doctest::Approx(want[i].dataCopy()).epsilon(1e-12));
    terms.push_back(got * weight);
    wanted.push_back(want[i] * weight);
  };
  const auto visit = [&](const auto& self, const auto& some) -> void {
    if constexpr (requires { some.dataCopy(); }) compare(some);
    else
      for (const auto& each : some) self(self, each);
  };
  visit(visit, Fixed::apply(p, input(other)));
  REQUIRE(terms.size() == want.size());
  bt::backward(bt::reduceSum(terms));
  tape.zeroGrad();
  bt::backward(bt::reduceSum(wanted));
  next = 0;
  layer.parameters([&](const std::string&, const auto& view) {
    for (const double& each : view.grads())
      CHECK(p[next++].gradCopy() == doctest::Approx(each).epsilon(1e-11));
  });
}

TEST_CASE("fixed layers: attention, transformer block and CharMLP as on views") {
  constexpr std::size_t size = 4, heads = 2, positions = 3;
  bt::Tape<double> tape;
  bt::Random random(5);
  const bt::nn::SelfAttention<bt::View<double>> attention(tape, size, heads, random);
  const bt::nn::TransformerBlock<bt::View<double>> block(tape, size, heads, random);
  const bt::View<double> x(tape, positions, size);
  for (double& each : x.data()) each = random.uniform(-2, 2);
  using Attention = fixed::SelfAttention<size, heads, positions>;
  using Block = fixed::TransformerBlock<size, heads, positions>;
  const auto rows = [&](bt::Tape<double>& on) {
    Attention::Rows<bt::Value<double>> out;
    for (std::size_t i = 0; i < positions; ++i)
      for (std::size_t j = 0; j < size; ++j) out[i][j] = bt::Value<double>(on, x(i, j).dataCopy());
    return out;
  };
  checkAgainstViews<Attention>(rows, attention, tape, attention(x, positions));
  checkAgainstViews<Block>(rows, block, tape, block(x, positions));

  bt::nn::CharMLP<double> model({.hidden = 3, .vocab = 5, .embed = 2, .context = 4});
  const std::array<std::size_t, 4> ids{4, 0, 2, 2};
  checkAgainstViews<fixed::CharMLP<3, 5, 2, 4>>([&](auto&) { return ids; }, model, model.tape(),
                                                model.logits(ids));
}

using OneHead = fixed::SelfAttention<2, 1, 2>;

// Of its parameters and two rows.
template <class X, std::size_t n> constexpr auto attended(const std::array<X, n>& in) {
  const auto p = fixed::detail::each<OneHead::parameters>([&](std::size_t i) { return in[i]; });
  const OneHead::Rows<X> x{{{in[n - 4], in[n - 3]}, {in[n - 2], in[n - 1]}}};
  const auto y = OneHead::apply(p, x);
  return y[0][0] * y[1][1] + y[0][1] * y[1][0];
}

TEST_CASE("fixed layers: attention of numbers and of Symbols") {
  constexpr std::size_t n = OneHead::parameters + 4;
  std::array<double, n> x{}, gradient{};
  for (std::size_t i = 0; i < n; ++i) x[i] = 0.1 * static_cast<double>(i * i % 11) - 0.4;
  using P = bt::Program<[](const std::array<bt::Symbol, n>& in) { return attended(in); }, n>;
  CHECK(P::valueAndGradient(x, gradient) == doctest::Approx(attended(x)).epsilon(1e-14));
  bt::Tape<double> tape;
  std::array<bt::Value<double>, n> values;
  for (std::size_t i = 0; i < n; ++i) values[i] = bt::Value<double>(tape, x[i]);
  bt::backward(attended(values));
  for (std::size_t i = 0; i < n; ++i)
    CHECK(gradient[i] == doctest::Approx(values[i].gradCopy()).epsilon(1e-12));
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
