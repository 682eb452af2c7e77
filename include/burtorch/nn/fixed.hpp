// burtorch/nn/fixed.hpp — layers whose sizes are template arguments
// SPDX-License-Identifier: MIT
//
// A layer here owns nothing: it is a function of its parameters, which come first, and of its inputs,
// all in std::arrays. What the arrays hold decides what happens:
//
//   numbers   the layer is evaluated, without a tape (also simd<T, N> and dual<T>, also constexpr)
//   Values    it is appended to their tape
//   Symbols   it becomes part of a Program, whose gradient is straight-line code
//
//   using Net = nn::fixed::MLP<nn::Activation::tanh, 2, 8, 1>;   // 33 parameters
//   using P = Program<[](const auto& all) { … Net::apply(weights, inputs) … }, Net::parameters + 2>;
//
// Parameters stand as those of the layers in layers.hpp do on their tape: weights row by row, then
// biases; so does what a state dictionary holds.
#pragma once

#include <burtorch/block/attention.hpp>
#include <burtorch/block/layer_norm.hpp>
#include <burtorch/nn/activation.hpp>
#include <burtorch/op/table.hpp>

#include <array>
#include <cstddef>
#include <span>

BURTORCH_BEGIN_NAMESPACE

namespace nn::fixed {

namespace detail {

template <Activation how> struct OperationOf;
template <> struct OperationOf<Activation::sigmoid> {
  using type = op::Sigmoid;
};
template <> struct OperationOf<Activation::relu> {
  using type = op::Relu;
};
template <> struct OperationOf<Activation::tanh> {
  using type = op::Tanh;
};
template <> struct OperationOf<Activation::gelu> {
  using type = op::Gelu;
};

template <Activation how, class X> constexpr X activated(const X& x) {
  if constexpr (how == Activation::identity) return x;
  else if constexpr (block::Recorded<X>) return activate(x, how);
  else return OperationOf<how>::type::forward(x);
}

// What f(i) gives for i = 0 … n − 1.
template <std::size_t n, class F> constexpr auto each(const F& f) { return block::rowOf<n>(f); }

// A layer's apply() takes its parameters as a span; this one takes them as an array.
template <class Layer> struct OfArrays {
  template <class X, std::size_t n, class Input>
  static constexpr auto apply(const std::array<X, n>& p, const Input& x) {
    return Layer::apply(std::span<const X, n>(p), x);
  }
};

} // namespace detail

// x·wᵀ + b.
template <std::size_t in, std::size_t out> struct Linear : detail::OfArrays<Linear<in, out>> {
  using detail::OfArrays<Linear>::apply;
  static constexpr std::size_t inputs = in, outputs = out, parameters = out * in + out;

  template <class X>
  static constexpr std::array<X, out> apply(std::span<const X, parameters> p,
                                            const std::array<X, in>& x) {
    return detail::each<out>([&](std::size_t i) {
      return block::dotWithBias(p.subspan(i * in, in), x, p[out * in + i]);
    });
  }
};

// activation(⟨w, x⟩ + b), one number.
template <std::size_t in, Activation how = Activation::relu> struct Neuron {
  static constexpr std::size_t inputs = in, outputs = 1, parameters = in + 1;

  template <class X>
  static constexpr X apply(const std::array<X, parameters>& p, const std::array<X, in>& x) {
    return detail::activated<how>(Linear<in, 1>::apply(p, x)[0]);
  }
};

// Linear layers of these sizes with an activation between them.
template <Activation how, std::size_t in, std::size_t out, std::size_t... more>
struct MLP : detail::OfArrays<MLP<how, in, out, more...>> {
  using detail::OfArrays<MLP>::apply;
  using First = Linear<in, out>;
  using Rest = MLP<how, out, more...>;
  static constexpr std::size_t inputs = in, outputs = Rest::outputs,
                               parameters = First::parameters + Rest::parameters;

  template <class X>
  static constexpr std::array<X, outputs> apply(std::span<const X, parameters> p,
                                                const std::array<X, in>& x) {
    auto y = First::apply(p.template first<First::parameters>(), x);
    for (X& each : y) each = detail::activated<how>(each);
    return Rest::apply(p.template last<Rest::parameters>(), y);
  }
};
template <Activation how, std::size_t in, std::size_t out>
struct MLP<how, in, out> : Linear<in, out> {};

// A row of a table.
template <std::size_t entries, std::size_t size>
struct Embedding : detail::OfArrays<Embedding<entries, size>> {
  using detail::OfArrays<Embedding>::apply;
  static constexpr std::size_t outputs = size, parameters = entries * size;

  template <class X>
  static constexpr std::array<X, size> apply(std::span<const X, parameters> p, std::size_t row) {
    return detail::each<size>([&](std::size_t i) { return p[row * size + i]; });
  }
};

// (x − mean)/√(variance + ε)·w + b.
template <std::size_t size> struct LayerNorm : detail::OfArrays<LayerNorm<size>> {
  using detail::OfArrays<LayerNorm>::apply;
  static constexpr std::size_t inputs = size, outputs = size, parameters = 2 * size;

  template <class X>
  static constexpr std::array<X, size> apply(std::span<const X, parameters> p,
                                             const std::array<X, size>& x, double eps = 1e-5) {
    return block::LayerNorm::ofRow(x, p.template first<size>(), p.template last<size>(),
                                   block::number<X>(eps));
  }
};

// Causal self-attention with a projection, of a row of `size` for each position.
template <std::size_t size, std::size_t heads, std::size_t positions>
struct SelfAttention : detail::OfArrays<SelfAttention<size, heads, positions>> {
  static_assert(heads > 0 && size % heads == 0, "the columns are shared by the heads");
  using detail::OfArrays<SelfAttention>::apply;
  using Projection = Linear<size, size>;
  static constexpr std::size_t inputs = positions * size, outputs = inputs,
                               parameters = 3 * size * size + Projection::parameters;
  template <class X> using Rows = std::array<std::array<X, size>, positions>;

  template <class X>
  static constexpr Rows<X> apply(std::span<const X, parameters> p, const Rows<X>& x) {
    // For each head its keys, its queries, its values.
    const auto all = detail::each<positions>([&](std::size_t i) {
      return detail::each<3 * size>(
          [&](std::size_t row) { return block::dot(p.subspan(row * size, size), x[i]); });
    });
    const auto scale = block::number<X>(block::Attention::scaleOf(headSize));
    return detail::each<positions>([&]<std::size_t i>(block::Count<i>) {
      const auto mixed = detail::each<heads>([&](std::size_t head) {
        const auto part = [&](std::size_t which) {
          return [&all, at = (3 * head + which) * headSize](std::size_t j) {
            return std::span<const X, 3 * size>(all[j]).subspan(at, headSize);
          };
        };
        return block::Attention::atPosition(block::Count<i + 1>{}, block::Count<headSize>{},
                                            part(1)(i), part(0), part(2), scale);
      });
      return Projection::apply(
          p.template last<Projection::parameters>(),
          detail::each<size>([&](std::size_t k) { return mixed[k / headSize][k % headSize]; }));
    });
  }

private:
  static constexpr std::size_t headSize = size / heads;
};

// x + attention(norm(x)), then x + feed-forward(norm(x)).
template <std::size_t size, std::size_t heads, std::size_t positions>
struct TransformerBlock : detail::OfArrays<TransformerBlock<size, heads, positions>> {
  using detail::OfArrays<TransformerBlock>::apply;
  using Attention = SelfAttention<size, heads, positions>;
  using FeedForward = MLP<Activation::relu, size, 4 * size, size>;
  using Norm = LayerNorm<size>;
  static constexpr std::size_t inputs = positions * size, outputs = inputs,
                               parameters = Attention::parameters + FeedForward::parameters +
                                            2 * Norm::parameters;
  template <class X> using Rows = typename Attention::template Rows<X>;

  template <class X>
  static constexpr Rows<X> apply(std::span<const X, parameters> p, const Rows<X>& x) {
    constexpr std::size_t forward = Attention::parameters,
                          norms = forward + FeedForward::parameters;
    const auto norm1 = p.template subspan<norms, Norm::parameters>();
    const auto norm2 = p.template last<Norm::parameters>();
    const auto normal =
        detail::each<positions>([&](std::size_t i) { return Norm::apply(norm1, x[i]); });
    const auto attended = Attention::apply(p.template first<forward>(), normal);
    return detail::each<positions>([&](std::size_t i) {
      const auto y = plus(x[i], attended[i]);
      return plus(y, FeedForward::apply(p.template subspan<forward, FeedForward::parameters>(),
                                        Norm::apply(norm2, y)));
    });
  }

private:
  template <class X>
  static constexpr auto plus(const std::array<X, size>& x, const std::array<X, size>& y) {
    return detail::each<size>([&](std::size_t i) { return x[i] + y[i]; });
  }
};

// The logits of the next of `vocab` characters from `context` of them: the model in models.hpp.
template <std::size_t hidden, std::size_t vocab, std::size_t embed, std::size_t context>
struct CharMLP : detail::OfArrays<CharMLP<hidden, vocab, embed, context>> {
  using detail::OfArrays<CharMLP>::apply;
  using Table = Embedding<vocab, embed>;
  using Layers = MLP<Activation::tanh, context * embed, hidden, vocab>;
  static constexpr std::size_t inputs = context, outputs = vocab,
                               parameters = Table::parameters + Layers::parameters;

  template <class X>
  static constexpr std::array<X, vocab> apply(std::span<const X, parameters> p,
                                              const std::array<std::size_t, context>& ids) {
    const auto x = detail::each<context * embed>(
        [&](std::size_t i) { return p[ids[i / embed] * embed + i % embed]; });
    return Layers::apply(p.template last<Layers::parameters>(), x);
  }
};

} // namespace nn::fixed

BURTORCH_END_NAMESPACE
