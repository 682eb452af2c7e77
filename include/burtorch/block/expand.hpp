// burtorch/block/expand.hpp — what each block computes, written with the operations on single Values
// SPDX-License-Identifier: MIT
//
// A function per block, with the arguments of the block, giving one Value per result, row by row. They
// define the blocks: tests hold the kernels against them, and a picture can show either.
#pragma once

#include <burtorch/op/table.hpp>
#include <burtorch/value.hpp>
#include <burtorch/view.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

BURTORCH_BEGIN_NAMESPACE

namespace expand {

template <AnyView V> using Values = std::vector<typename V::Element>;

// ⟨x, y⟩ + b, or without b where it is an empty view.
template <AnyView V>
typename V::Element productWithBias(const Values<V>& x, const V& y, const V& b, std::size_t i) {
  return b.isEmpty() ? innerProduct(x, y) : innerProductWithBias(x, y, b[i]);
}

template <class T, class... O>
Values<View<T, O...>> affine(const View<T, O...>& w, std::span<const View<T, O...>> x,
                             const View<T, O...>& b = {}) {
  Values<View<T, O...>> y;
  for (std::size_t i = 0; i < x.front().rows(); ++i) {
    Values<View<T, O...>> row; // of all inputs, side by side
    for (const auto& part : x)
      for (const auto& each : part.row(i)) row.push_back(each);
    for (std::size_t j = 0; j < w.rows(); ++j) y.push_back(productWithBias(row, w.row(j), b, j));
  }
  return y;
}
template <class T, class... O>
Values<View<T, O...>> affine(const View<T, O...>& w, const View<T, O...>& x,
                             const View<T, O...>& b = {}) {
  return expand::affine(w, std::span<const View<T, O...>>(&x, 1), b);
}

template <AnyView V> Values<V> matmul(const V& a, const V& b) {
  Values<V> y;
  for (std::size_t i = 0; i < a.rows(); ++i)
    for (std::size_t j = 0; j < b.cols(); ++j) {
      Values<V> column;
      for (std::size_t k = 0; k < b.rows(); ++k) column.push_back(b(k, j));
      y.push_back(innerProduct(a.row(i), column));
    }
  return y;
}

template <class O, AnyView V>
  requires op::is<op::Unary, O>
Values<V> mapElements(const V& x) {
  Values<V> y;
  for (const auto& each : x) y.push_back(apply<O>(each));
  return y;
}

template <class O, AnyView V>
  requires op::is<op::Binary, O>
Values<V> mapElements(const V& x, const V& y) {
  Values<V> z;
  const auto at = [](const V& v, std::size_t i, std::size_t j) {
    return v(v.rows() == 1 ? 0 : i, v.cols() == 1 ? 0 : j);
  };
  for (std::size_t i = 0; i < std::max(x.rows(), y.rows()); ++i)
    for (std::size_t j = 0; j < std::max(x.cols(), y.cols()); ++j)
      z.push_back(apply<O>(at(x, i, j), at(y, i, j)));
  return z;
}

template <class O, AnyView V>
  requires op::is<op::Clipped, O>
Values<V> mapElements(const V& x, typename V::Scalar lo, typename V::Scalar hi) {
  Values<V> y;
  for (const auto& each : x) y.push_back(apply<O>(each, lo, hi));
  return y;
}

template <class O, Form form, AnyView V>
Values<V> mapElementsWithNumber(const V& x, const typename V::Scalar& number) {
  Values<V> y;
  for (const auto& each : x)
    if constexpr (form == Form::nodeNumber) y.push_back(apply<O>(each, number));
    else y.push_back(apply<O>(number, each));
  return y;
}

// e to the power of each of the row's Values minus the largest of them; that one is a plain number,
// because the results below do not depend on it.
template <class Row> auto exponentials(const Row& row) {
  using Value = std::remove_cvref_t<decltype(row[0])>;
  typename Value::Scalar largest = row[0].dataCopy();
  for (const auto& each : row) largest = std::max(largest, each.dataCopy());
  std::vector<Value> shifted, exponentials;
  for (const auto& each : row) shifted.push_back(each - largest);
  for (const auto& each : shifted) exponentials.push_back(exp(each));
  return std::pair{shifted, exponentials};
}
template <class Row> auto softmaxOfRow(const Row& row) {
  auto [shifted, y] = exponentials(row);
  const auto sum = reduceSum(y);
  for (auto& each : y) each /= sum;
  return y;
}
template <class Row> auto logSoftmaxOfRow(const Row& row) {
  auto [y, powers] = exponentials(row);
  const auto logSum = logarithm(reduceSum(powers));
  for (auto& each : y) each -= logSum;
  return y;
}

template <AnyView V, class F> Values<V> eachRow(const V& x, const F& of) {
  Values<V> y;
  for (std::size_t i = 0; i < x.rows(); ++i)
    for (const auto& each : of(x.row(i))) y.push_back(each);
  return y;
}

template <AnyView V> Values<V> softmax(const V& x) {
  return eachRow(x, [](const V& row) { return softmaxOfRow(row); });
}
template <AnyView V> Values<V> logSoftmax(const V& x) {
  return eachRow(x, [](const V& row) { return logSoftmaxOfRow(row); });
}
template <AnyView V, std::integral Target>
Values<V> crossEntropy(const V& x, std::span<const Target> targets) {
  Values<V> y;
  for (std::size_t i = 0; i < x.rows(); ++i)
    y.push_back(-logSoftmaxOfRow(x.row(i))[static_cast<std::size_t>(targets[i])]);
  return y;
}

template <AnyView V>
Values<V> layerNorm(const V& x, const V& weight, const V& bias,
                    std::type_identity_t<typename V::Scalar> eps = typename V::Scalar(1e-5)) {
  return eachRow(x, [&](const V& row) {
    const auto mean = reduceMean(row);
    const auto inverse = invSqrt(varianceBiased(row) + eps);
    Values<V> y;
    for (std::size_t j = 0; j < row.size(); ++j)
      y.push_back((row[j] - mean) * inverse * weight[j] + bias[j]);
    return y;
  });
}

// No operation at all: the Values of the parts.
template <AnyView V> Values<V> concatColumns(std::span<const V> parts) {
  Values<V> y;
  for (std::size_t i = 0; i < parts.front().rows(); ++i)
    for (const V& part : parts)
      for (const auto& each : part.row(i)) y.push_back(each);
  return y;
}
template <AnyView V> Values<V> concatRows(std::span<const V> parts) {
  Values<V> y;
  for (const V& part : parts)
    for (const auto& each : part) y.push_back(each);
  return y;
}

// Nor here: the Values of the table.
template <AnyView V, std::integral Id>
Values<V> gather(const V& table, std::span<const Id> ids, std::size_t /*perRow*/ = 1) {
  Values<V> y;
  for (const Id id : ids)
    for (const auto& each : table.row(static_cast<std::size_t>(id))) y.push_back(each);
  return y;
}

template <AnyView V, std::integral Id>
Values<V> gatherAffine(const V& table, std::span<const Id> ids, const V& w, const V& b = {}) {
  const std::size_t positions = w.cols() / table.cols();
  Values<V> y;
  for (std::size_t i = 0; i < ids.size(); i += positions) {
    const auto x = expand::gather(table, ids.subspan(i, positions));
    for (std::size_t j = 0; j < w.rows(); ++j) y.push_back(productWithBias(x, w.row(j), b, j));
  }
  return y;
}

template <AnyView V>
Values<V> attention(const V& keysQueriesValues, std::size_t heads, std::size_t positions) {
  const V& x = keysQueriesValues;
  const std::size_t size = x.cols() / (3 * heads), d = heads * size;
  const auto scale = static_cast<typename V::Scalar>(1.0 / std::sqrt(static_cast<double>(size)));
  const auto part = [&](std::size_t row, std::size_t head, std::size_t which) {
    return x.row(row).segment((3 * head + which) * size, size); // 0 keys, 1 queries, 2 values
  };
  Values<V> y(x.rows() * d);
  for (std::size_t first = 0; first < x.rows(); first += positions)
    for (std::size_t h = 0; h < heads; ++h)
      for (std::size_t i = first; i < first + positions; ++i) {
        Values<V> scores;
        for (std::size_t j = first; j <= i; ++j)
          scores.push_back(innerProduct(part(i, h, 1), part(j, h, 0)) * scale);
        const auto weights = softmaxOfRow(scores);
        for (std::size_t k = 0; k < size; ++k) {
          Values<V> column;
          for (std::size_t j = first; j <= i; ++j) column.push_back(part(j, h, 2)[k]);
          y[i * d + h * size + k] = innerProduct(weights, column);
        }
      }
  return y;
}

} // namespace expand

BURTORCH_END_NAMESPACE
