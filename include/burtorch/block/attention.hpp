// burtorch/block/attention.hpp — causal self-attention of all heads at once
// SPDX-License-Identifier: MIT
//
// Shapes: n sequences of t positions, one below the other; h heads of size s; d = h·s. The input is
// n·t × 3d: for each head its keys, its queries, its values, s columns each. The result is n·t × d,
// the heads side by side, as a projection wants them.
#pragma once

#include <burtorch/kernel/attention.hpp>
#include <burtorch/view.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>

BURTORCH_BEGIN_NAMESPACE

namespace block {

// Parameters: heads, positions. Keeps the scale, then the weights: sequences × heads × t × t.
struct Attention {
  static constexpr const char* name = "attention";
  static constexpr const char* symbol = "attention";

  template <class Frame> static void forward(const Frame& f) {
    each(f, [&](std::size_t sequence, std::size_t heads, auto* weights) {
      kernel::attentionForward(rows(f.value(0), f, sequence), heads, f.kept[0],
                               rows(f.result(f.value(0).rows), f, sequence), weights);
    });
  }
  template <class Frame> static void pullback(const Frame& f) {
    if (!f.wants(0)) return;
    using T = std::remove_reference_t<decltype(*f.values)>;
    each(f, [&](std::size_t sequence, std::size_t heads, const T* weights) {
      kernel::attentionBackward(rows(f.value(0), f, sequence), heads, f.kept[0], weights,
                                rows(f.adjoint(f.value(0).rows), f, sequence),
                                rows(f.grad(0), f, sequence));
    });
  }

private:
  template <class T, class Frame>
  static kernel::Matrix<T> rows(const kernel::Matrix<T>& all, const Frame& f,
                                std::size_t sequence) {
    return {all.row(sequence * f.parameter(1)), f.parameter(1), all.cols, all.stride};
  }
  template <class Frame, class F> static void each(const Frame& f, const F& visit) {
    const std::size_t heads = f.parameter(0), t = f.parameter(1);
    for (std::size_t i = 0; i < f.value(0).rows / t; ++i)
      visit(i, heads, f.kept + 1 + i * heads * t * t);
  }
};

} // namespace block

template <AnyView V>
V attention(const V& keysQueriesValues, std::size_t heads, std::size_t positions) {
  const V& x = keysQueriesValues;
  if (heads == 0 || (x.cols() != 0 && heads > x.cols() / 3) || x.cols() % (3 * heads) != 0)
    detail::fail(ErrorKind::badArgument, "attention: " + std::to_string(x.cols()) +
                                             " columns are not keys, queries and values of " +
                                             std::to_string(heads) + " heads");
  if (positions == 0 || x.rows() % positions != 0)
    detail::fail(ErrorKind::badArgument, "attention: " + std::to_string(x.rows()) +
                                             " rows are not sequences of " +
                                             std::to_string(positions) + " positions");
  using T = typename V::Scalar;
  const std::size_t size = x.cols() / (3 * heads);
  const T scale = T(1.0 / std::sqrt(static_cast<double>(size)));
  const std::array parameters{heads, positions};
  return applyBlock<block::Attention>(
      x.rows(), x.cols() / 3, 1 + detail::demandProduct(x.rows(), heads * positions),
      std::span<const V>(&x, 1), std::span<const std::size_t>(parameters), std::span(&scale, 1));
}

BURTORCH_END_NAMESPACE
