// burtorch/kernel/dropout.hpp — numbers that are dropped at random, by a key
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/kernel/matrix.hpp>

#include <cstddef>
#include <cstdint>

BURTORCH_BEGIN_NAMESPACE

namespace kernel {

// Which numbers are dropped: the i-th number that SplitMix64 gives after `key` says it of element i, so
// any element can be asked at any time and nothing is stored.
struct DropoutMask {
  std::uint64_t key;
  double probability; // of being dropped

  bool drops(std::size_t i) const {
    std::uint64_t z = key + (std::uint64_t{i} + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return static_cast<double>(z >> 11) * 0x1p-53 < probability;
  }
  // What the others are multiplied by, so that the mean stays.
  double scale() const { return probability < 1 ? 1 / (1 - probability) : 0; }
};

// y (+)= x / (1 − p) where x is not dropped; 0 elsewhere.
template <class T>
BURTORCH_NOINLINE void dropout(const DropoutMask& mask, const T* x, T* y, std::size_t n,
                               Store how) {
  const T scale = T(mask.scale());
  for (std::size_t i = 0; i < n; ++i) {
    const T kept = mask.drops(i) ? T(0) : T(x[i] * scale);
    y[i] = how == Store::add ? T(y[i] + kept) : kept;
  }
}

} // namespace kernel

BURTORCH_END_NAMESPACE
