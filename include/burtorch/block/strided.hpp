// burtorch/block/strided.hpp — numbers of a view in another order: transposed, repeated, chosen
// SPDX-License-Identifier: MIT
//
// strided: place (i, j, …) of the result is number offset + i·stride₀ + j·stride₁ + … of x. That is every
// transpose, every slice, and with a stride of 0 every repetition. take: any places.
#pragma once

#include <burtorch/block/describe.hpp>
#include <burtorch/block/gather.hpp>
#include <burtorch/kernel/vector.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

BURTORCH_BEGIN_NAMESPACE

namespace block {

// Views: x. Parameters: offset, then the sizes of the axes, then their strides.
struct Strided {
  static constexpr const char* name = "strided";
  static constexpr const char* symbol = "strided";

  template <class Frame> static void forward(const Frame& f) {
    const auto* const x = f.value(0).first;
    auto* const y = f.result(1).first;
    eachRun(axesOf(f), [&](std::size_t to, std::size_t from, std::size_t n, std::size_t stride) {
      if (stride == 1) std::copy_n(x + from, n, y + to);
      else if (stride == 0) std::fill_n(y + to, n, x[from]);
      else
        for (std::size_t i = 0; i < n; ++i) y[to + i] = x[from + i * stride];
    });
  }
  template <class Frame> static void pullback(const Frame& f) {
    if (!f.wants(0)) return;
    const auto* const dy = f.adjoint(1).first;
    auto* const dx = f.grad(0).first;
    eachRun(axesOf(f), [&](std::size_t to, std::size_t from, std::size_t n, std::size_t stride) {
      if (stride == 1) return kernel::add(dy + to, dx + from, n);
      for (std::size_t i = 0; i < n; ++i)
        dx[from + i * stride] = dx[from + i * stride] + dy[to + i];
    });
  }

  // The first axis goes over samples, and none of the others leaves its sample.
  template <class Frame>
  static bool keepsSamples(const Frame& f, std::size_t view, std::size_t samples) {
    const auto a = axesOf(f);
    std::size_t last = a.offset;
    for (std::size_t i = 1; i < a.count; ++i) last += (a.size(i) - 1) * a.stride(i);
    return a.size(0) % samples == 0 && a.size(0) * a.stride(0) == f.description.viewSize(view) &&
           last < a.stride(0);
  }

  // No operation at all: the Values of x.
  template <class Parts> static auto expanded(const Parts& p) {
    auto y = std::vector<typename Parts::V::Element>(p.results);
    eachRun(axesOf(p), [&](std::size_t to, std::size_t from, std::size_t n, std::size_t stride) {
      for (std::size_t i = 0; i < n; ++i) y[to + i] = p.views[0][from + i * stride];
    });
    return y;
  }
  template <class Parts> static void record(const Parts& p) {
    p.demand(p.views.size() == 1 && p.parameters.size() % 2 == 1 && p.parameters.size() > 1);
    const std::size_t axes = p.parameters.size() / 2;
    std::size_t results = 1;
    for (std::size_t i = 0; i < axes; ++i)
      results = detail::sizeProduct(results, p.parameters[1 + i]);
    p.demandSizes(results);
    strided(p.views[0], p.parameters[0], p.parametersFrom(1).first(axes),
            p.parametersFrom(1 + axes));
  }

private:
  template <class Index> struct Axes {
    std::size_t offset, count;
    const Index* sizes;
    std::size_t size(std::size_t i) const { return sizes[i]; }
    std::size_t stride(std::size_t i) const { return sizes[count + i]; }
  };
  template <class Frame>
    requires requires(const Frame& f) { f.description; }
  static auto axesOf(const Frame& f) {
    using Index = std::remove_pointer_t<decltype(f.description.parameters())>;
    return Axes<Index>{f.parameter(0), f.description.parameterCount() / 2,
                       f.description.parameters() + 1};
  }
  template <class Parts> static auto axesOf(const Parts& p) {
    return Axes<std::size_t>{p.parameters[0], p.parameters.size() / 2, p.parameters.data() + 1};
  }

  // visit(result, x, how many, stride): runs of results. Where the numbers of x that are neighbours lie
  // in a column of the results, some columns at a time go down all rows: their cache lines stay.
  template <class A, class F> static void eachRun(const A& a, const F& visit) {
    constexpr std::size_t few = 16;
    const std::size_t cols = a.size(a.count - 1), stride = a.stride(a.count - 1);
    const bool isMatrix = a.count > 1;
    const std::size_t rows = isMatrix ? a.size(a.count - 2) : 1;
    const std::size_t down = isMatrix ? a.stride(a.count - 2) : 0;
    const std::size_t width = isMatrix && down < stride ? few : cols;
    const std::size_t outer = a.count - (isMatrix ? 2 : 1);
    std::size_t others = 1;
    for (std::size_t i = 0; i < outer; ++i) others *= a.size(i);
    for (std::size_t k = 0; k < others; ++k) {
      std::size_t from = a.offset, rest = k;
      for (std::size_t i = outer; i-- > 0; rest /= a.size(i))
        from += rest % a.size(i) * a.stride(i);
      for (std::size_t c = 0; c < cols; c += width)
        for (std::size_t r = 0; r < rows; ++r)
          visit((k * rows + r) * cols + c, from + r * down + c * stride, std::min(width, cols - c),
                stride);
    }
  }
};

// Numbers, or rows of numbers, by their places. Unlike gather, whose ids are data, the places say how
// samples lie.
struct Take : Gather {
  static constexpr const char* name = "take";
  static constexpr const char* symbol = "take";
  static constexpr const char* meaning = "the rows of a view at given places";

  template <class Frame>
  static bool keepsSamples(const Frame& f, std::size_t view, std::size_t samples) {
    const std::size_t places = f.description.parameterCount(), rows = f.value(view).rows;
    if (places % samples != 0 || rows % samples != 0) return false;
    for (std::size_t i = 0; i < places; ++i)
      if (f.parameter(i) / (rows / samples) != i / (places / samples)) return false;
    return true;
  }
  template <class Parts> static void record(const Parts& p) {
    p.demandOperands(1, 1);
    p.demandSizes(detail::sizeProduct(p.parameters.size(), p.views[0].cols()));
    take(p.views[0], p.parameters);
  }
};

} // namespace block

// The numbers of x at offset + Σ indexₖ·strideₖ, for all indices below the sizes, as one row.
template <AnyView V>
V strided(const V& x, std::size_t offset, std::span<const std::size_t> sizes,
          std::span<const std::size_t> strides) {
  std::size_t n = 1, last = offset;
  bool fits = !sizes.empty() && sizes.size() == strides.size();
  for (std::size_t i = 0; fits && i < sizes.size(); ++i) {
    n = detail::demandProduct(n, sizes[i]);
    if (sizes[i] != 0) last += detail::sizeProduct(sizes[i] - 1, strides[i]);
    fits = last < detail::tooLarge / 2;
  }
  if (!fits || (n != 0 && last >= x.size()))
    detail::fail(ErrorKind::badArgument, "strided: " + std::to_string(n) +
                                             " numbers do not lie in a view of " +
                                             detail::shapeText(x.rows(), x.cols()));
  std::vector<std::size_t> parameters{offset};
  parameters.insert(parameters.end(), sizes.begin(), sizes.end());
  parameters.insert(parameters.end(), strides.begin(), strides.end());
  return applyBlock<block::Strided>(1, n, 0, std::span<const V>(&x, 1),
                                    std::span<const std::size_t>(parameters));
}

// Rows for columns.
template <AnyView V> V transpose(const V& x) {
  const std::size_t sizes[] = {x.cols(), x.rows()}, strides[] = {1, x.cols()};
  return strided(x, 0, sizes, strides).reshape(x.cols(), x.rows());
}

// The rows of x at these places; where x is one column, its numbers.
template <AnyView V, ContiguousIntegers Places> V take(const V& x, const Places& places) {
  const auto rows = detail::spanOf(places);
  detail::demandBelow(rows, x.rows(), "take: place");
  return applyBlock<block::Take>(rows.size(), x.cols(), 0, std::span<const V>(&x, 1), {}, {}, rows);
}

BURTORCH_END_NAMESPACE
