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

// What f(i) gives for i = 0 … n − 1.
template <std::size_t n, class F> constexpr auto each(const F& f) {
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    return std::array<decltype(f(std::size_t{0})), n>{f(i)...};
  }(std::make_index_sequence<n>{});
}

} // namespace detail

// x·wᵀ + b.
template <std::size_t in, std::size_t out> struct Linear {
  static constexpr std::size_t inputs = in, outputs = out, parameters = out * in + out;

  template <class X>
  static constexpr std::array<X, out> apply(std::span<const X, parameters> p,
                                            const std::array<X, in>& x) {
    return detail::each<out>([&](std::size_t i) {
      return detail::dotWithBias(std::span<const X, in>(p.subspan(i * in, in)), x, p[out * in + i]);
    });
  }
  template <class X>
  static constexpr auto apply(const std::array<X, parameters>& p, const std::array<X, in>& x) {
    return apply(std::span<const X, parameters>(p), x);
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
template <Activation how, std::size_t in, std::size_t out, std::size_t... more> struct MLP {
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
  template <class X>
  static constexpr auto apply(const std::array<X, parameters>& p, const std::array<X, in>& x) {
    return apply(std::span<const X, parameters>(p), x);
  }
};
template <Activation how, std::size_t in, std::size_t out>
struct MLP<how, in, out> : Linear<in, out> {};

// A row of a table.
template <std::size_t entries, std::size_t size> struct Embedding {
  static constexpr std::size_t outputs = size, parameters = entries * size;

  template <class X>
  static constexpr std::array<X, size> apply(const std::array<X, parameters>& p, std::size_t row) {
    return detail::each<size>([&](std::size_t i) { return p[row * size + i]; });
  }
};

// (x − mean)/√(variance + ε)·w + b.
template <std::size_t size> struct LayerNorm {
  static constexpr std::size_t inputs = size, outputs = size, parameters = 2 * size;

  template <class X>
  static constexpr std::array<X, size> apply(const std::array<X, parameters>& p,
                                             const std::array<X, size>& x, double epsilon = 1e-5) {
    const X mean = sum(x) * number<X>(1.0 / size);
    const auto centred = detail::each<size>([&](std::size_t i) { return x[i] - mean; });
    const auto squares = detail::each<size>([&](std::size_t i) { return centred[i] * centred[i]; });
    const X variance = sum(squares) * number<X>(1.0 / size) + number<X>(epsilon);
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
  // Values and Symbols take plain numbers as they are.
  template <class X> static constexpr auto number(double x) {
    if constexpr (AnyValue<X>) return static_cast<typename X::Scalar>(x);
    else if constexpr (detail::isRecorded<X>) return x;
    else return X(x);
  }
};

} // namespace nn::fixed

BURTORCH_END_NAMESPACE
