// burtorch/block/attention.hpp — causal self-attention of all heads at once
// SPDX-License-Identifier: MIT
//
// Shapes: n sequences of t positions, one below the other; h heads of size s; d = h·s. The input is
// n·t × 3d: for each head its keys, its queries, its values, s columns each. The result is n·t × d,
// the heads side by side, as a projection wants them.
#pragma once

#include <burtorch/block/describe.hpp>
#include <burtorch/block/softmax.hpp>
#include <burtorch/kernel/attention.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

BURTORCH_BEGIN_NAMESPACE

namespace block {

// Parameters: heads, positions. Keeps the scale, then the weights: sequences × heads × t × t.
struct Attention {
  static constexpr const char* name = "attention";
  static constexpr const char* symbol = "attention";
  static constexpr const char* meaning =
      "causal self-attention; x holds for each head its keys, queries and values side by side, its "
      "rows are sequences of so many positions";

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

  template <class Frame>
  static bool keepsSamples(const Frame& f, std::size_t view, std::size_t samples) {
    return f.value(view).rows % (samples * f.parameter(1)) == 0;
  }

  // One head at one position, which attends to `count` positions; key(j) and value(j) are rows.
  template <class Positions, class Columns, class Query, class Key, class Values, class Scale>
  static constexpr auto atPosition(Positions count, Columns size, const Query& query,
                                   const Key& key, const Values& value, const Scale& scale) {
    const auto weights =
        Softmax::ofRow(rowOf(count, [&](std::size_t j) { return dot(query, key(j)) * scale; }));
    return rowOf(size, [&](std::size_t k) {
      return dot(weights, rowOf(count, [&](std::size_t j) { return value(j)[k]; }));
    });
  }
  static constexpr double scaleOf(std::size_t size) { // of the products of keys and queries
    return op::InvSqrt::forward(static_cast<double>(size));
  }

  template <class Parts> static auto expanded(const Parts& p) {
    const auto& x = p.views[0];
    const std::size_t heads = p.parameters[0], positions = p.parameters[1];
    const std::size_t size = x.cols() / (3 * heads), d = heads * size;
    std::vector<typename Parts::V::Element> y(x.rows() * d);
    for (std::size_t first = 0; first < x.rows(); first += positions)
      for (std::size_t h = 0; h < heads; ++h)
        for (std::size_t i = 0; i < positions; ++i) {
          const auto part = [&](std::size_t which) { // 0 keys, 1 queries, 2 values
            return [&x, first, at = (3 * h + which) * size, size](std::size_t j) {
              return x.row(first + j).segment(at, size);
            };
          };
          std::ranges::copy(atPosition(i + 1, size, part(1)(i), part(0), part(2), p.kept[0]),
                            &y[(first + i) * d + h * size]);
        }
    return y;
  }
  template <class Parts> static void record(const Parts& p) {
    p.demandOperands(1, 2);
    const auto& x = p.views[0];
    const std::size_t weights =
        detail::sizeProduct(detail::sizeProduct(x.rows(), p.parameters[0]), p.parameters[1]);
    p.demand(weights < detail::tooLarge);
    p.demandSizes(x.size() / 3, 1 + weights);
    attention(x, p.parameters[0], p.parameters[1]);
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
  const T scale = T(block::Attention::scaleOf(x.cols() / (3 * heads)));
  const std::array parameters{heads, positions};
  return applyBlock<block::Attention>(
      x.rows(), x.cols() / 3, 1 + detail::demandProduct(x.rows(), heads * positions),
      std::span<const V>(&x, 1), std::span<const std::size_t>(parameters), std::span(&scale, 1));
}

BURTORCH_END_NAMESPACE
