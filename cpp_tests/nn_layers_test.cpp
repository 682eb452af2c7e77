// cpp_tests/nn_layers_test.cpp — layers: shapes, names and order of parameters, and what they compute
// SPDX-License-Identifier: MIT
#include "block_support.hpp"
#include "support.hpp"

#include <burtorch/nn/layers.hpp>

#include <array>

using namespace burtorch;
using namespace block_support;

namespace {

using View64 = View<double>;

template <class Layer> std::vector<std::string> namesOf(const Layer& layer) {
  std::vector<std::string> names;
  layer.parameters([&](const std::string& name, const auto& view) {
    names.push_back(name + " " + std::to_string(view.rows()) + "x" + std::to_string(view.cols()));
  });
  return names;
}

// The views come one after the other and fill the tape from `first` on.
template <class Layer> std::size_t endOfParameters(const Layer& layer, std::size_t first) {
  layer.parameters([&](const std::string&, const auto& view) {
    CHECK(view.sysGetRawNodeIndex() == first);
    first += view.size();
  });
  return first;
}

using Names = std::vector<std::string>;

} // namespace

TEST_CASE("layers: names, shapes, and the order on the tape") {
  Tape<double> tape;
  Random random(1);
  CHECK(namesOf(nn::Linear<View64>(tape, 4, 3, random)) == Names{"weight 3x4", "bias 1x3"});
  CHECK(namesOf(nn::Linear<View64>(tape, 4, 3, random, false)) == Names{"weight 3x4"});
  CHECK(namesOf(nn::Neuron<View64>(tape, 4, random)) == Names{"weight 1x4", "bias 1x1"});
  const std::array<std::size_t, 3> sizes{2, 5, 1};
  CHECK(namesOf(nn::MLP<View64>(tape, sizes, random)) ==
        Names{"layers.0.weight 5x2", "layers.0.bias 1x5", "layers.1.weight 1x5",
              "layers.1.bias 1x1"});
  CHECK(namesOf(nn::Embedding<View64>(tape, 7, 3, random)) == Names{"weight 7x3"});
  CHECK(namesOf(nn::LayerNorm<View64>(tape, 6)) == Names{"weight 1x6", "bias 1x6"});
  const std::size_t before = tape.size();
  const nn::TransformerBlock<View64> block(tape, 6, 2, random);
  CHECK(namesOf(block) == Names{"sa.heads.0.key.weight 3x6", "sa.heads.0.query.weight 3x6",
                                "sa.heads.0.value.weight 3x6", "sa.heads.1.key.weight 3x6",
                                "sa.heads.1.query.weight 3x6", "sa.heads.1.value.weight 3x6",
                                "sa.proj.weight 6x6", "sa.proj.bias 1x6", "ffwd.net.0.weight 24x6",
                                "ffwd.net.0.bias 1x24", "ffwd.net.2.weight 6x24",
                                "ffwd.net.2.bias 1x6", "ln1.weight 1x6", "ln1.bias 1x6",
                                "ln2.weight 1x6", "ln2.bias 1x6"});
  CHECK(endOfParameters(block, before) == tape.size());
}

TEST_CASE("layers: Linear over one view and over several side by side") {
  Tape<double> tape;
  Random random(2);
  const nn::Linear<View64> layer(tape, 5, 3, random);
  const auto x = leaves<double>(tape, {{4, 2}, {4, 3}}, -1, 1);
  const auto want = definitionOf<block::Affine>(affine(layer.weight, x, layer.bias));
  const View64 got = layer(x);
  for (std::size_t i = 0; i < want.size(); ++i)
    CHECK(got[i].dataCopy() == doctest::Approx(want[i].dataCopy()));
}

TEST_CASE("layers: Neuron is a scalar, of any range of Values") {
  Tape<double> tape;
  Random random(3);
  for (const auto how : {nn::Activation::identity, nn::Activation::sigmoid, nn::Activation::relu,
                         nn::Activation::tanh, nn::Activation::gelu}) {
    const nn::Neuron<View64> neuron(tape, 3, random, how);
    const View64 x = leaves<double>(tape, {{1, 3}}, -1, 1)[0];
    const std::vector<Value<double>> list(x.begin(), x.end());
    const auto sum = innerProductWithBias(neuron.weight, x, neuron.bias[0]);
    CHECK(neuron(x).dataCopy() == nn::activate(sum, how).dataCopy());
    CHECK(neuron(list).dataCopy() == neuron(x).dataCopy());
  }
}

TEST_CASE("layers: every layer of weights takes a scheme") {
  Tape<double> tape;
  Random random(3);
  const auto check = [](const View64& weights, double in, double out) {
    double squares = 0;
    for (const double w : weights.data()) squares += w * w;
    CHECK(std::sqrt(squares / static_cast<double>(weights.size())) ==
          doctest::Approx(std::sqrt(2 / (in + out))).epsilon(0.05));
  };
  constexpr auto how = nn::Init::xavierNormal;
  check(nn::Neuron<View64>(tape, 2000, random, nn::Activation::relu, how).weight, 2000, 1);
  check(nn::Embedding<View64>(tape, 300, 20, random, how).weight, 300, 20);
  const std::array<std::size_t, 3> sizes{60, 80, 70};
  const nn::MLP<View64> mlp(tape, sizes, random, nn::Activation::relu, how);
  check(mlp.layers[0].weight, 60, 80);
  check(mlp.layers[1].weight, 80, 70);
  CHECK(std::ranges::all_of(mlp.layers[1].bias.data(), [](double b) { return b == 0; }));
}

TEST_CASE("layers: activations by name, on Values and on views") {
  Tape<double> tape;
  const View64 x = leaves<double>(tape, {{2, 5}}, -2, 2)[0];
  const auto check = [&](nn::Activation how, const auto& f) {
    const View64 y = nn::activate(x, how);
    for (std::size_t i = 0; i < x.size(); ++i) {
      CHECK(y[i].dataCopy() == doctest::Approx(f(x[i].dataCopy())).epsilon(1e-12));
      CHECK(nn::activate(x[i], how).dataCopy() == doctest::Approx(y[i].dataCopy()).epsilon(1e-12));
    }
  };
  check(nn::Activation::identity, [](double v) { return v; });
  check(nn::Activation::relu, [](double v) { return std::max(v, 0.0); });
  check(nn::Activation::tanh, [](double v) { return std::tanh(v); });
  check(nn::Activation::sigmoid, [](double v) { return 1 / (1 + std::exp(-v)); });
  check(nn::Activation::gelu, [](double v) { return v * 0.5 * std::erfc(-v / std::sqrt(2.0)); });
}

TEST_CASE("layers: MLP, with an activation between its layers and none behind the last") {
  Tape<double> tape;
  Random random(4);
  const std::array<std::size_t, 4> sizes{3, 5, 4, 2};
  const nn::MLP<View64> mlp(tape, sizes, random, nn::Activation::tanh);
  const View64 x = leaves<double>(tape, {{6, 3}}, -1, 1)[0];
  const View64 y = mlp(x);
  const auto& l = mlp.layers;
  const View64 want = l[2](tanh(l[1](tanh(l[0](x)))));
  CHECK(std::ranges::equal(y.data(), want.data()));
  CHECK(y.rows() == 6);
  CHECK(y.cols() == 2);
}

TEST_CASE("layers: SelfAttention is the heads, one by one, side by side into the projection") {
  Tape<double> tape;
  Random random(5);
  const nn::SelfAttention<View64> layer(tape, 6, 2, random);
  const View64 x = leaves<double>(tape, {{4, 6}}, -1, 1)[0];
  std::vector<View64> weights, heads;
  layer.parameters([&](const std::string&, const View64& w) { weights.push_back(w); });
  for (std::size_t h = 0; h < 2; ++h) { // by the textbook: queries times keys, causal, times values
    const View64 k = affine(weights[3 * h], x), q = affine(weights[3 * h + 1], x),
                 v = affine(weights[3 * h + 2], x);
    View64 all(tape, 4, 9);
    for (std::size_t i = 0; i < 4; ++i)
      for (std::size_t j = 0; j < 3; ++j) {
        all(i, j).setData(k(i, j).dataCopy());
        all(i, 3 + j).setData(q(i, j).dataCopy());
        all(i, 6 + j).setData(v(i, j).dataCopy());
      }
    const auto out = definitionOf<block::Attention>(attention(all, 1, 4));
    heads.emplace_back(tape, 4, 3);
    for (std::size_t i = 0; i < out.size(); ++i) heads.back()[i].setData(out[i].dataCopy());
  }
  const View64 want = layer.projection(spanOf(heads)); // the heads as views: no concatenation
  const View64 got = layer(x, 4);
  for (std::size_t i = 0; i < want.size(); ++i)
    CHECK(got[i].dataCopy() == doctest::Approx(want[i].dataCopy()));
  CHECK(errorOf([&] { nn::SelfAttention<View64>(tape, 6, 4, random); }).what() ==
        std::string("6 columns can't be shared by 4 heads"));
}

TEST_CASE("layers: a transformer block's gradient agrees with differences") {
  Tape<double> tape;
  Random random(6);
  const nn::TransformerBlock<View64> block(tape, 4, 2, random);
  const std::size_t parameters = tape.size();
  const View64 x = leaves<double>(tape, {{6, 4}}, -1, 1)[0];
  const auto mark = tape.mark();
  const auto loss = [&] { return reduceSumOfSquares(block(x, 3)); }; // two sequences
  backward(loss());
  tape.rewind(mark);
  const auto gradient = gradientsOf(tape);
  CHECK(gradient.size() == parameters + 24);
  for (std::size_t i = 0; i < gradient.size(); i += 5) {
    CAPTURE(i);
    double& v = tape.values()[i];
    const double was = v, h = 1e-5;
    const auto at = [&](double number) {
      tape.values()[i] = number;
      const double result = loss().dataCopy();
      tape.rewind(mark);
      return result;
    };
    const double slope = (at(was + h) - at(was - h)) / (2 * h);
    tape.values()[i] = was;
    CHECK(gradient[i] == doctest::Approx(slope).epsilon(1e-5));
  }
}

TEST_CASE("layers: assigned gradients of a whole block equal accumulated ones") {
  Tape<float> tape;
  Random random(7);
  const nn::TransformerBlock<View<float>> block(tape, 4, 2, random);
  const std::size_t parameters = tape.size();
  const View<float> x = leaves<float>(tape, {{6, 4}}, -1, 1)[0];
  const auto gradients = [&](ParameterGradients how) {
    const auto mark = tape.mark();
    backward(reduceSum(sqr(block(x, 3, how))));
    tape.rewind(mark);
    const auto all = std::as_const(tape).grads().first(parameters);
    return std::vector<float>(all.begin(), all.end());
  };
  const auto want = gradients(ParameterGradients::accumulate);
  for (float& g : tape.grads().first(parameters)) g = std::numeric_limits<float>::quiet_NaN();
  CHECK(distance(gradients(ParameterGradients::assign), want) < 1e-6);
}
