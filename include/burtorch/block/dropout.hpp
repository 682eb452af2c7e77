// burtorch/block/dropout.hpp — elements that are dropped at random; the others grow, so that the mean stays
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/block/describe.hpp>
#include <burtorch/kernel/dropout.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

BURTORCH_BEGIN_NAMESPACE

namespace block {

// Views: x. Parameters: the key, 32 bits at a time, low ones first; who writes another one there draws anew.
// Keeps the probability to be dropped.
struct Dropout {
  static constexpr const char* name = "dropout";
  static constexpr const char* symbol = "dropout";
  static constexpr std::size_t key = 0; // the place of its low half among the parameters

  template <class Frame> static void forward(const Frame& f) {
    kernel::dropout(maskOf(f.description.parameters(), f.kept[0]), f.value(0).first,
                    f.result(1).first, f.count, kernel::Store::assign);
  }
  template <class Frame> static void pullback(const Frame& f) {
    if (f.wants(0))
      kernel::dropout(maskOf(f.description.parameters(), f.kept[0]), f.adjoint(1).first,
                      f.grad(0).first, f.count, kernel::Store::add);
  }

  template <class Frame> static bool keepsSamples(const Frame&, std::size_t, std::size_t) {
    return true;
  }

  template <class Parts> static auto expanded(const Parts& p) {
    const kernel::DropoutMask mask = maskOf(p.parameters, p.kept[0]);
    using T = typename Parts::V::Scalar;
    return rowOf(p.results, [&](std::size_t i) {
      return mulByConstant(p.views[0][i], T(mask.drops(i) ? 0 : mask.scale()));
    });
  }
  template <class Parts> static void record(const Parts& p) {
    p.demandOperands(1, 2);
    p.demandSizes(p.views[0].size(), 1);
    p.demand(isProbability(p.kept[0]) && (p.parameters[key] | p.parameters[key + 1]) >> 32 == 0);
    dropout(p.views[0], p.kept[0], keyOf(p.parameters));
  }
  template <class T> static bool isProbability(const T& p) { return T(0) <= p && p <= T(1); }

private:
  template <class Words> static std::uint64_t keyOf(const Words& w) {
    return std::uint64_t{w[key]} | std::uint64_t{w[key + 1]} << 32;
  }
  template <class Words, class T>
  static kernel::DropoutMask maskOf(const Words& words, const T& probability) {
    return {keyOf(words), static_cast<double>(probability)};
  }
};

} // namespace block

// Each element is 0 with this probability, else divided by 1 − probability; the key says which.
template <AnyView V>
V dropout(const V& x, std::type_identity_t<typename V::Scalar> probability, std::uint64_t key) {
  if (!block::Dropout::isProbability(probability))
    detail::fail(ErrorKind::badArgument, "dropout: a probability lies between 0 and 1");
  const std::array parameters{static_cast<std::size_t>(key & 0xffffffffu),
                              static_cast<std::size_t>(key >> 32)};
  return applyBlock<block::Dropout>(x.rows(), x.cols(), 1, std::span<const V>(&x, 1),
                                    std::span<const std::size_t>(parameters),
                                    std::span(&probability, 1));
}

BURTORCH_END_NAMESPACE
