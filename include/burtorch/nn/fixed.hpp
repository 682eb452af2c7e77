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

#include <burtorch/nn/layers.hpp>
#include <burtorch/op/table.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

BURTORCH_BEGIN_NAMESPACE

struct Symbol; // program.hpp

namespace nn::fixed {

namespace detail {

template <class X>
inline constexpr bool isRecorded = AnyValue<X> || std::same_as<X, Symbol>; // else a number

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
  else if constexpr (isRecorded<X>) return activate(x, how);
  else return OperationOf<how>::type::forward(x);
}

template <class X, std::size_t n>
constexpr X dotWithBias(std::span<const X, n> w, const std::array<X, n>& x, const X& bias) {
  if constexpr (isRecorded<X>) {
    return innerProductWithBias(w, std::span<const X>(x), bias);
  } else {
    X sum = bias;
    for (std::size_t i = 0; i < n; ++i) sum = sum + w[i] * x[i];
    return sum;
  }
}

template <class X> constexpr X dot(std::span<const X> w, std::span<const X> x) { // of at least one
  if constexpr (isRecorded<X>) {
    return innerProduct(w, x);
  } else {
    X sum = w[0] * x[0];
    for (std::size_t i = 1; i < w.size(); ++i) sum = sum + w[i] * x[i];
    return sum;
  }
}

// Values and Symbols take plain numbers as they are.
template <class X> constexpr auto number(double x) {
  if constexpr (AnyValue<X>) return static_cast<typename X::Scalar>(x);
  else if constexpr (isRecorded<X>) return x;
  else return X(x);
}
template <class X> constexpr X exponential(const X& x) {
  if constexpr (isRecorded<X>) return exp(x);
  else return op::Exp::forward(x);
}
template <class X> constexpr X larger(const X& x, const X& y) {
  if constexpr (isRecorded<X>) return max(x, y);
  else return op::BinaryMax::forward(x, y);
}

// What f(i) gives for i = 0 … n − 1.
template <std::size_t n, class F> constexpr auto each(const F& f) {
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    return std::array<decltype(f(std::size_t{0})), n>{f(i)...};
  }(std::make_index_sequence<n>{});
}

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
      return detail::dotWithBias(std::span<const X, in>(p.subspan(i * in, in)), x, p[out * in + i]);
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
    using detail::number;
    const X mean = sum(x) * number<X>(1.0 / size);
    const auto centred = detail::each<size>([&](std::size_t i) { return x[i] - mean; });
    const auto squares = detail::each<size>([&](std::size_t i) { return centred[i] * centred[i]; });
    const X variance = sum(squares) * number<X>(1.0 / size) + number<X>(eps);
    X scale = variance;
    if constexpr (detail::isRecorded<X>) scale = invSqrt(variance);
    else scale = op::InvSqrt::forward(variance);
    return detail::each<size>(
        [&](std::size_t i) { return centred[i] * scale * p[i] + p[size + i]; });
  }

private:
  template <class X> static constexpr X sum(const std::array<X, size>& x) {
    X all = x[0];
    for (std::size_t i = 1; i < size; ++i) all = all + x[i];
    return all;
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
          [&](std::size_t row) { return detail::dot<X>(p.subspan(row * size, size), x[i]); });
    });
    return detail::each<positions>([&](std::size_t i) {
      const auto weights =
          detail::each<heads>([&](std::size_t head) { return weightsOf(all, head, i); });
      const auto mixed = detail::each<size>([&](std::size_t k) {
        const std::size_t head = k / headSize;
        const auto values = detail::each<positions>([&](std::size_t j) {
          return all[j][3 * head * headSize + 2 * headSize + k % headSize];
        });
        return detail::dot<X>(std::span(weights[head]).first(i + 1),
                              std::span(values).first(i + 1));
      });
      return Projection::apply(p.template last<Projection::parameters>(), mixed);
    });
  }

private:
  static constexpr std::size_t headSize = size / heads;

  // How much position i attends to positions 0 … i, the first of the array: a softmax.
  template <class All>
  static constexpr auto weightsOf(const All& all, std::size_t head, std::size_t i) {
    using X = typename All::value_type::value_type;
    const double scale = static_cast<double>(op::InvSqrt::forward(static_cast<double>(headSize)));
    const auto part = [&](std::size_t position, std::size_t which) {
      return std::span<const X>(all[position]).subspan((3 * head + which) * headSize, headSize);
    };
    auto weights = detail::each<positions>([&](std::size_t j) {
      if (j > i) return all[i][0]; // not used
      return detail::dot<X>(part(i, 1), part(j, 0)) * detail::number<X>(scale);
    });
    X most = weights[0];
    for (std::size_t j = 1; j <= i; ++j) most = detail::larger(most, weights[j]);
    for (std::size_t j = 0; j <= i; ++j) weights[j] = detail::exponential(weights[j] - most);
    X sum = weights[0];
    for (std::size_t j = 1; j <= i; ++j) sum = sum + weights[j];
    for (std::size_t j = 0; j <= i; ++j) weights[j] = weights[j] / sum;
    return weights;
  }
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
