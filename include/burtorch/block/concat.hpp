// burtorch/block/concat.hpp — views side by side, or one below the other, copied into one
// SPDX-License-Identifier: MIT
//
// A linear layer needs no such copy: affine takes several views as they are.
#pragma once

#include <burtorch/block/describe.hpp>
#include <burtorch/kernel/vector.hpp>

#include <algorithm>
#include <cstddef>
#include <ranges>
#include <span>
#include <vector>

BURTORCH_BEGIN_NAMESPACE

namespace block {

// Views: the parts, all with as many rows.
struct Concat {
  static constexpr const char* name = "concat";
  static constexpr const char* symbol = "concat";
  static constexpr const char* meaning = "a copy of views one after the other along an axis";

  template <class Frame> static void forward(const Frame& f) {
    const auto y = f.result(f.value(0).rows);
    each(f, [&](std::size_t view, std::size_t column) {
      const auto x = f.value(view);
      for (std::size_t i = 0; i < x.rows; ++i) std::copy_n(x.row(i), x.cols, y.row(i) + column);
    });
  }
  template <class Frame> static void pullback(const Frame& f) {
    const auto dy = f.adjoint(f.value(0).rows);
    each(f, [&](std::size_t view, std::size_t column) {
      if (!f.wants(view)) return;
      const auto dx = f.grad(view);
      for (std::size_t i = 0; i < dx.rows; ++i) kernel::add(dy.row(i) + column, dx.row(i), dx.cols);
    });
  }

  template <class Frame>
  static bool keepsSamples(const Frame& f, std::size_t view, std::size_t samples) {
    return hasWholeRows(f, view, samples);
  }

  // No operation at all: the Values of the parts.
  template <class Parts> static auto expanded(const Parts& p) {
    std::vector<typename Parts::V::Element> y;
    for (std::size_t i = 0; i < p.views.front().rows(); ++i)
      for (const auto& part : p.views)
        for (const auto& each : part.row(i)) y.push_back(each);
    return y;
  }
  template <class Parts> static void record(const Parts& p) {
    p.demand(!p.views.empty());
    std::size_t nodes = 0;
    for (const auto& view : p.views) nodes += view.size();
    p.demandSizes(nodes);
    concatColumns(p.views);
  }

private:
  template <class Frame, class F> static void each(const Frame& f, const F& visit) {
    std::size_t column = 0;
    for (std::size_t view = 0; view < f.views(); ++view) {
      visit(view, column);
      column += f.value(view).cols;
    }
  }
};

} // namespace block

// Parts side by side: row i of the result is their rows i, one after the other.
template <ContiguousViews Views> auto concatColumns(const Views& views) {
  const auto parts = detail::spanOf(views);
  std::size_t cols = 0;
  if (parts.empty()) detail::fail(ErrorKind::badArgument, "concat: no views");
  for (const auto& part : parts) {
    cols += part.cols();
    if (part.rows() != parts.front().rows())
      detail::fail(ErrorKind::badArgument,
                   "concat: views side by side have as many rows, not " +
                       detail::shapeText(parts.front().rows(), parts.front().cols()) + " and " +
                       detail::shapeText(part.rows(), part.cols()));
  }
  return applyBlock<block::Concat>(parts.front().rows(), cols, 0, parts);
}

// Parts one below the other.
template <ContiguousViews Views> auto concatRows(const Views& views) {
  const auto parts = detail::spanOf(views);
  std::size_t rows = 0;
  if (parts.empty()) detail::fail(ErrorKind::badArgument, "concat: no views");
  std::vector<std::ranges::range_value_t<Views>> flat;
  for (const auto& part : parts) {
    rows += part.rows();
    if (part.cols() != parts.front().cols())
      detail::fail(ErrorKind::badArgument,
                   "concat: views one below the other have as many columns, not " +
                       detail::shapeText(parts.front().rows(), parts.front().cols()) + " and " +
                       detail::shapeText(part.rows(), part.cols()));
    flat.push_back(part.reshape(1, part.size()));
  }
  return concatColumns(flat).reshape(rows, parts.front().cols());
}

BURTORCH_END_NAMESPACE
