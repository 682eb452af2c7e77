// burtorch/block/affine.hpp — x·wᵀ + b over one view or a sequence of views, and a·b
// SPDX-License-Identifier: MIT
//
// Shapes: x is rows × k, w is n × k (a row per result, as linear layers store it), b has n numbers,
// the result is rows × n.
#pragma once

#include <burtorch/kernel/affine.hpp>
#include <burtorch/block/describe.hpp>
#include <burtorch/kernel/multiply.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

BURTORCH_BEGIN_NAMESPACE

// What a block does with the gradients of its parameters (weights and biases). `assign` is for the
// first use after the gradients were declared void: it saves clearing and reading them.
enum class ParameterGradients { accumulate, assign };

namespace block {

template <class Frame> kernel::Store storeOf(const Frame& f, std::size_t parameter) {
  return static_cast<ParameterGradients>(f.parameter(parameter)) == ParameterGradients::assign
             ? kernel::Store::assign
             : kernel::Store::add;
}
template <class Parts>
ParameterGradients parameterGradients(const Parts& p, std::size_t parameter) {
  p.demand(p.parameters[parameter] <= 1);
  return static_cast<ParameterGradients>(p.parameters[parameter]);
}

// Columns [first, first + count) of a matrix.
template <class T>
kernel::Matrix<T> columns(const kernel::Matrix<T>& m, std::size_t first, std::size_t count) {
  return {m.first + first, m.rows, count, m.stride};
}

// Views: w, b (or none), then x, or several x side by side. Parameters: has it a bias; what becomes of
// the gradients of w and b.
struct Affine {
  static constexpr const char* name = "affine";
  static constexpr const char* symbol = "affine";
  static constexpr std::size_t gradients = 1;
  template <class Frame> static bool isAssigned(const Frame& f, std::size_t view) {
    return view <= f.parameter(0);
  }
  static constexpr const char* meaning =
      "W x + b, for each row of x; x may be several views that stand for their concatenation";
  template <class Frame> static bool assigns(const Frame& f) {
    return storeOf(f, gradients) == kernel::Store::assign;
  }

  template <class Frame> static void forward(const Frame& f) {
    const bool hasBias = f.parameter(0) != 0;
    const auto w = f.value(0);
    std::size_t column = 0;
    for (std::size_t v = 1 + hasBias; v < f.views(); ++v) {
      const auto x = f.value(v);
      const bool isFirst = v == std::size_t{1} + hasBias;
      kernel::affineForward(x, columns(w, column, x.cols),
                            isFirst && hasBias ? f.value(1).first : nullptr, f.result(x.rows),
                            isFirst ? kernel::Store::assign : kernel::Store::add);
      column += x.cols;
    }
  }

  template <class Frame> static void pullback(const Frame& f) {
    const bool hasBias = f.parameter(0) != 0;
    const auto w = f.value(0);
    auto dw = f.grad(0);
    if (!f.wants(0)) dw.first = nullptr;
    std::size_t column = 0;
    for (std::size_t v = 1 + hasBias; v < f.views(); ++v) {
      const auto x = f.value(v);
      auto dx = f.grad(v);
      if (!f.wants(v)) dx.first = nullptr;
      const bool givesBias = v == 2 && hasBias && f.wants(1); // once, with the first x
      auto part = dw;
      if (part.first != nullptr) part.first += column;
      part.cols = x.cols;
      kernel::affineBackward(x, columns(w, column, x.cols), f.adjoint(x.rows), dx, part,
                             givesBias ? f.grad(1).first : nullptr, storeOf(f, 1));
      column += x.cols;
    }
  }

  template <class Frame>
  static bool keepsSamples(const Frame& f, std::size_t view, std::size_t samples) {
    if (view == 0) // the rows of a matrix times one vector
      return f.views() == 2 && f.parameter(0) == 0 && f.value(1).rows == 1 &&
             hasWholeRows(f, view, samples);
    return view > f.parameter(0) && hasWholeRows(f, view, samples);
  }

  template <class Parts> static auto expanded(const Parts& p) {
    const auto x = inputs(p);
    std::vector<typename Parts::V::Element> y;
    for (std::size_t i = 0; i < x.front().rows(); ++i) {
      decltype(y) row; // of all inputs, side by side
      for (const auto& part : x)
        for (const auto& each : part.row(i)) row.push_back(each);
      appendProducts(y, row, p.views[0], bias(p));
    }
    return y;
  }
  // What a linear layer makes of a row of inputs; an empty b stands for no bias.
  template <class Values, class Row, AnyView V>
  static void appendProducts(Values& y, const Row& x, const V& w, const V& b) {
    for (std::size_t j = 0; j < w.rows(); ++j)
      y.push_back(b.isEmpty() ? dot(x, w.row(j)) : dotWithBias(x, w.row(j), b[j]));
  }

  template <class Parts> static void record(const Parts& p) {
    p.demand(p.parameters.size() == 2 && p.parameters[0] <= 1);
    p.demand(p.views.size() > 1 + p.parameters[0]);
    p.demandSizes(detail::sizeProduct(inputs(p)[0].rows(), p.views[0].rows()));
    affine(p.views[0], inputs(p), bias(p), parameterGradients(p, 1));
  }

private:
  template <class Parts> static auto bias(const Parts& p) {
    return p.parameters[0] != 0 ? p.views[1] : typename Parts::V{};
  }
  template <class Parts> static auto inputs(const Parts& p) {
    return p.viewsFrom(1 + p.parameters[0]);
  }
};

// Views: a (m × k), b (k × n).
struct MatMul {
  static constexpr const char* name = "matmul";
  static constexpr const char* symbol = "@";
  static constexpr const char* meaning = "the product of two matrices";

  template <class Frame> static void forward(const Frame& f) {
    kernel::multiplyNN(f.value(0), f.value(1), f.result(f.value(0).rows), kernel::Store::assign);
  }
  template <class Frame> static void pullback(const Frame& f) {
    const auto dy = f.adjoint(f.value(0).rows);
    if (f.wants(0)) kernel::multiplyNT(dy, f.value(1), f.grad(0), kernel::Store::add);
    if (f.wants(1)) kernel::multiplyTN(f.value(0), dy, f.grad(1), kernel::Store::add);
  }

  template <class Frame>
  static bool keepsSamples(const Frame& f, std::size_t view, std::size_t samples) {
    return view == 0 && hasWholeRows(f, view, samples);
  }

  template <class Parts> static auto expanded(const Parts& p) {
    const auto &a = p.views[0], &b = p.views[1];
    std::vector<typename Parts::V::Element> y;
    for (std::size_t i = 0; i < a.rows(); ++i)
      for (std::size_t j = 0; j < b.cols(); ++j)
        y.push_back(dot(a.row(i), rowOf(b.rows(), [&](std::size_t k) { return b(k, j); })));
    return y;
  }
  template <class Parts> static void record(const Parts& p) {
    p.demandOperands(2);
    p.demandSizes(detail::sizeProduct(p.views[0].rows(), p.views[1].cols()));
    matmul(p.views[0], p.views[1]);
  }
};

} // namespace block

// x·wᵀ + b for x side by side in several views: what a concatenation would give, without making
// it. An empty b stands for no bias.
template <AnyView V, ContiguousRangeOf<V> Inputs>
V affine(const V& w, const Inputs& inputs, const V& b = {},
         ParameterGradients gradients = ParameterGradients::accumulate) {
  const std::span<const V> x(inputs);
  const bool hasBias = !b.isEmpty();
  if (x.empty()) detail::fail(ErrorKind::badArgument, "affine: no input");
  std::size_t k = 0;
  for (const auto& part : x) {
    k += part.cols();
    if (part.rows() != x.front().rows())
      detail::fail(ErrorKind::badArgument,
                   "affine: inputs side by side have as many rows, not " +
                       detail::shapeText(x.front().rows(), x.front().cols()) + " and " +
                       detail::shapeText(part.rows(), part.cols()));
  }
  if (k != w.cols())
    detail::fail(ErrorKind::badArgument, "affine: the input has " + std::to_string(k) +
                                             " columns, the weights are " +
                                             detail::shapeText(w.rows(), w.cols()));
  if (hasBias && b.size() != w.rows())
    detail::fail(ErrorKind::badArgument, "affine: " + std::to_string(b.size()) +
                                             " biases for weights of " +
                                             detail::shapeText(w.rows(), w.cols()));
  const std::array parameters{std::size_t{hasBias}, static_cast<std::size_t>(gradients)};
  const auto apply = [&](std::span<const V> operands) {
    return applyBlock<block::Affine>(x.front().rows(), w.rows(), 0, operands,
                                     std::span<const std::size_t>(parameters));
  };
  if (x.size() == 1) { // the usual case allocates nothing
    const std::array<V, 3> all{w, hasBias ? b : x[0], x[0]};
    return apply(std::span(all.data(), hasBias ? 3 : 2));
  }
  std::vector<V> all{w};
  if (hasBias) all.push_back(b);
  all.insert(all.end(), x.begin(), x.end());
  return apply(all);
}

template <AnyView V>
V affine(const V& w, const V& x, const V& b = {},
         ParameterGradients gradients = ParameterGradients::accumulate) {
  return affine(w, std::span(&x, 1), b, gradients);
}

// a·b, a m × k and b k × n.
template <class T, class... O>
View<T, O...> matmul(const View<T, O...>& a, const View<T, O...>& b) {
  if (a.cols() != b.rows())
    detail::fail(ErrorKind::badArgument, "matmul: " + detail::shapeText(a.rows(), a.cols()) +
                                             " times " + detail::shapeText(b.rows(), b.cols()));
  const std::array both{a, b};
  return applyBlock<block::MatMul>(a.rows(), b.cols(), 0, std::span<const View<T, O...>>(both));
}

BURTORCH_END_NAMESPACE
