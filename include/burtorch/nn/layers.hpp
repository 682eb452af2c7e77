// burtorch/nn/layers.hpp — layers: parameters on a tape, and a function of views
// SPDX-License-Identifier: MIT
//
// A layer is its parameters (views of leaves) and operator(). parameters(visit, prefix) calls
// visit(name, view) for each of them, in the order in which they stand on the tape: names and
// shapes are those that state dictionaries have.
#pragma once

#include <burtorch/block/blocks.hpp>
#include <burtorch/nn/activation.hpp>
#include <burtorch/nn/init.hpp>
#include <burtorch/base/random.hpp>
#include <burtorch/value.hpp>
#include <burtorch/view.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

BURTORCH_BEGIN_NAMESPACE

namespace nn {

// x·wᵀ + b.
template <AnyView V> struct Linear {
  V weight, bias; // out × in, out (empty: none)

  Linear() = default;
  Linear(typename V::TapeType& tape, std::size_t in, std::size_t out, Random& random,
         bool hasBias = true, Init init = Init::linear)
      : weight(tape, out, in) {
    initialize(weight, init, random, in, out);
    if (!hasBias) return;
    bias = V(tape, 1, out);
    initialize(bias, init == Init::linear ? init : Init::zeros, random, in, out);
  }

  V operator()(const V& x, ParameterGradients gradients = ParameterGradients::accumulate) const {
    return affine(weight, x, bias, gradients);
  }
  // Inputs side by side in several views.
  template <ContiguousRangeOf<V> Inputs>
  V operator()(const Inputs& x,
               ParameterGradients gradients = ParameterGradients::accumulate) const {
    return affine(weight, x, bias, gradients);
  }
  template <class F> void parameters(const F& visit, const std::string& prefix = "") const {
    visit(prefix + "weight", weight);
    if (!bias.isEmpty()) visit(prefix + "bias", bias);
  }
};

// One neuron, as a scalar: activation(⟨w, x⟩ + b).
template <AnyView V> struct Neuron {
  V weight, bias;
  Activation activation = Activation::relu;

  Neuron() = default;
  Neuron(typename V::TapeType& tape, std::size_t in, Random& random,
         Activation how = Activation::relu, Init init = Init::uniform)
      : weight(tape, 1, in), bias(tape, 1, 1), activation(how) {
    initialize(weight, init, random, in, 1);
  }

  template <RangeOfValues X> typename V::Element operator()(const X& x) const {
    return activate(innerProductWithBias(weight, x, bias[0]), activation);
  }
  template <class F> void parameters(const F& visit, const std::string& prefix = "") const {
    visit(prefix + "weight", weight);
    visit(prefix + "bias", bias);
  }
};

// Linear layers with an activation between them.
template <AnyView V> struct MLP {
  std::vector<Linear<V>> layers;
  Activation activation = Activation::relu;

  MLP() = default;
  // sizes: inputs, then the outputs of each layer.
  MLP(typename V::TapeType& tape, std::span<const std::size_t> sizes, Random& random,
      Activation how = Activation::relu, Init init = Init::linear)
      : activation(how) {
    for (std::size_t i = 0; i + 1 < sizes.size(); ++i)
      layers.emplace_back(tape, sizes[i], sizes[i + 1], random, true, init);
  }

  V operator()(V x, ParameterGradients gradients = ParameterGradients::accumulate) const {
    for (std::size_t i = 0; i < layers.size(); ++i) {
      x = layers[i](x, gradients);
      if (i + 1 < layers.size()) x = activate(x, activation);
    }
    return x;
  }
  template <class F> void parameters(const F& visit, const std::string& prefix = "") const {
    for (std::size_t i = 0; i < layers.size(); ++i)
      layers[i].parameters(visit, prefix + "layers." + std::to_string(i) + ".");
  }
};

// Rows of a table by index.
template <AnyView V> struct Embedding {
  V weight; // entries × size

  Embedding() = default;
  Embedding(typename V::TapeType& tape, std::size_t entries, std::size_t size, Random& random,
            Init init = Init::normal)
      : weight(tape, entries, size) {
    initialize(weight, init, random, entries, size);
  }

  template <ContiguousIntegers Ids> V operator()(const Ids& ids, std::size_t perRow = 1) const {
    return gather(weight, ids, perRow);
  }
  template <class F> void parameters(const F& visit, const std::string& prefix = "") const {
    visit(prefix + "weight", weight);
  }
};

template <AnyView V> struct LayerNorm {
  V weight, bias;

  LayerNorm() = default;
  LayerNorm(typename V::TapeType& tape, std::size_t size)
      : weight(tape, 1, size), bias(tape, 1, size) {
    for (auto& x : weight.data()) x = typename V::Scalar(1);
  }

  V operator()(const V& x, ParameterGradients gradients = ParameterGradients::accumulate) const {
    return layerNorm(x, weight, bias, typename V::Scalar(1e-5), gradients);
  }
  template <class F> void parameters(const F& visit, const std::string& prefix = "") const {
    visit(prefix + "weight", weight);
    visit(prefix + "bias", bias);
  }
};

// Causal self-attention with a projection. The keys, queries and values of all heads are one matrix on
// the tape, head by head, so that one multiplication makes them all.
template <AnyView V> struct SelfAttention {
  std::size_t heads = 0;
  V keysQueriesValues; // 3·size × size
  Linear<V> projection;

  SelfAttention() = default;
  SelfAttention(typename V::TapeType& tape, std::size_t size, std::size_t heads_, Random& random)
      : heads(heads_) {
    if (heads == 0 || size % heads != 0)
      detail::fail(ErrorKind::badArgument, std::to_string(size) + " columns can't be shared by " +
                                               std::to_string(heads) + " heads");
    keysQueriesValues = V(tape, 3 * size, size);
    initialize(keysQueriesValues, Init::linear, random, size, size);
    projection = Linear<V>(tape, size, size, random);
  }

  V operator()(const V& x, std::size_t positions,
               ParameterGradients gradients = ParameterGradients::accumulate) const {
    const V all = affine(keysQueriesValues, x, {}, gradients);
    return projection(attention(all, heads, positions), gradients);
  }
  template <class F> void parameters(const F& visit, const std::string& prefix = "") const {
    const std::size_t size = keysQueriesValues.cols() / heads;
    std::size_t row = 0;
    for (std::size_t h = 0; h < heads; ++h)
      for (const char* part : {"key", "query", "value"}) {
        visit(prefix + "heads." + std::to_string(h) + "." + part + ".weight",
              keysQueriesValues.slice(row, size));
        row += size;
      }
    projection.parameters(visit, prefix + "proj.");
  }
};

// x + attention(norm(x)), then x + feed-forward(norm(x)).
template <AnyView V> struct TransformerBlock {
  SelfAttention<V> attention;
  Linear<V> up, down;
  LayerNorm<V> norm1, norm2;

  TransformerBlock() = default;
  TransformerBlock(typename V::TapeType& tape, std::size_t size, std::size_t heads, Random& random)
      : attention(tape, size, heads, random), up(tape, size, 4 * size, random),
        down(tape, 4 * size, size, random), norm1(tape, size), norm2(tape, size) {}

  V operator()(const V& x, std::size_t positions,
               ParameterGradients gradients = ParameterGradients::accumulate) const {
    const V y = x + attention(norm1(x, gradients), positions, gradients);
    return y + down(relu(up(norm2(y, gradients), gradients)), gradients);
  }
  template <class F> void parameters(const F& visit, const std::string& prefix = "") const {
    attention.parameters(visit, prefix + "sa.");
    up.parameters(visit, prefix + "ffwd.net.0.");
    down.parameters(visit, prefix + "ffwd.net.2.");
    norm1.parameters(visit, prefix + "ln1.");
    norm2.parameters(visit, prefix + "ln2.");
  }
};

} // namespace nn

BURTORCH_END_NAMESPACE
