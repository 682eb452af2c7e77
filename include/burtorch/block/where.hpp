// burtorch/block/where.hpp — of each two numbers one, as conditions say
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/block/describe.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <string>

BURTORCH_BEGIN_NAMESPACE

namespace block {

// Views: condition, x, y; x and y may be one number each. The other number gets no gradient, and is not
// multiplied by 0: it may be infinite.
struct Where {
  static constexpr const char* name = "where";
  static constexpr const char* symbol = "where";

  template <class Frame> static void forward(const Frame& f) {
    const auto* const c = f.value(0).first;
    const auto *const x = f.value(1).first, *const y = f.value(2).first;
    auto* const z = f.result(1).first;
    const std::size_t stepX = step(f, 1), stepY = step(f, 2);
    for (std::size_t i = 0; i < f.count; ++i) z[i] = isZero(c[i]) ? y[i * stepY] : x[i * stepX];
  }
  template <class Frame> static void pullback(const Frame& f) {
    const auto* const c = f.value(0).first;
    const auto* const dz = f.adjoint(1).first;
    for (const std::size_t v : {std::size_t{1}, std::size_t{2}}) {
      if (!f.wants(v)) continue;
      auto* const to = f.grad(v).first;
      const std::size_t each = step(f, v);
      for (std::size_t i = 0; i < f.count; ++i)
        if (isZero(c[i]) == (v == 2)) to[i * each] = to[i * each] + dz[i];
    }
  }

  template <class Frame>
  static bool keepsSamples(const Frame& f, std::size_t view, std::size_t samples) {
    return f.description.viewSize(view) == f.count && f.count % samples == 0;
  }

  // No operation at all. The condition is data, so that the choice is the same at every call.
  template <class Parts> static auto expanded(const Parts& p) {
    return rowOf(p.results, [&](std::size_t i) {
      const auto& from = p.views[isZero(p.views[0][i].dataCopy()) ? 2 : 1];
      return from[from.size() == 1 ? 0 : i];
    });
  }
  template <class Parts> static void record(const Parts& p) {
    p.demandOperands(3);
    p.demandSizes(p.views[0].size());
    where(p.views[0], p.views[1], p.views[2]);
  }

private:
  template <class Frame> static std::size_t step(const Frame& f, std::size_t view) {
    return f.description.viewSize(view) == 1 ? 0 : 1;
  }
};

} // namespace block

// x where the condition is not 0, else y; x and y have as many numbers as it, or one.
template <AnyView V> V where(const V& condition, const V& x, const V& y) {
  for (const V& each : {x, y})
    if (each.size() != condition.size() && each.size() != 1)
      detail::fail(ErrorKind::badArgument,
                   "where: conditions of " + detail::shapeText(condition.rows(), condition.cols()) +
                       " for " + detail::shapeText(each.rows(), each.cols()));
  const std::array all{condition.constant(), x, y};
  return applyBlock<block::Where>(condition.rows(), condition.cols(), 0, std::span<const V>(all));
}

BURTORCH_END_NAMESPACE
