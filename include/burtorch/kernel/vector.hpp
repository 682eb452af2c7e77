// burtorch/kernel/vector.hpp — dot product and sums of vectors of n numbers
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/kernel/lanes.hpp>

#include <cstddef>

BURTORCH_BEGIN_NAMESPACE

namespace kernel {

// Calls f(i, read, write) for i = 0, L, …: read(p) and write(p, x) are for the lanes of p that lie
// within n.
template <class T, std::size_t L = lanes<T>, class F>
BURTORCH_INLINE void eachPack(std::size_t n, const F& f) {
  std::size_t i = 0;
  for (; i + L <= n; i += L)
    f(
        i, [](const T* from) BURTORCH_INLINE_LAMBDA { return load<L>(from); },
        [](T* to, const Pack<T, L>& x) BURTORCH_INLINE_LAMBDA { store(to, x); });
  if constexpr (L > 1) {
    const std::size_t rest = n - i;
    if (rest != 0)
      f(
          i, [rest](const T* from) BURTORCH_INLINE_LAMBDA { return load<L>(from, rest); },
          [rest](T* to, const Pack<T, L>& x) BURTORCH_INLINE_LAMBDA { store(to, x, rest); });
  }
}

// The sum of what f gives, called like above, over all lanes that lie within n.
template <class T, class F> BURTORCH_INLINE T sumOfEach(std::size_t n, const F& f) {
  constexpr std::size_t L = lanes<T>;
  const std::size_t whole = n - n % L;
  Pack<T> sum = fill(T(0));
  eachPack<T>(whole, [&](std::size_t i, const auto& read, const auto& write)
                         BURTORCH_INLINE_LAMBDA { sum = sum + f(i, read, write); });
  T total = sumOf<T>(sum);
  if constexpr (L > 1) {
    const std::size_t rest = n - whole;
    if (rest != 0) {
      T last[L];
      const auto read = [rest](const T* from) BURTORCH_INLINE_LAMBDA { return load(from, rest); };
      const auto write = [rest](T* to, const Pack<T>& x)
                             BURTORCH_INLINE_LAMBDA { store(to, x, rest); };
      store(last, f(whole, read, write));
      for (std::size_t i = 0; i < rest; ++i) total += last[i];
    }
  }
  return total;
}

// Σ xᵢ·yᵢ
template <class T> BURTORCH_NOINLINE T dot(const T* x, const T* y, std::size_t n) {
  constexpr std::size_t L = lanes<T>, chains = 4; // enough sums to hide their latency
  Pack<T> sums[chains];
  unroll<chains>([&](auto c) BURTORCH_INLINE_LAMBDA { sums[c] = fill(T(0)); });
  for (; n >= chains * L; n -= chains * L, x += chains * L, y += chains * L)
    unroll<chains>([&](auto c) BURTORCH_INLINE_LAMBDA {
      sums[c] = multiplyAdd<T>(load(x + c * L), load(y + c * L), sums[c]);
    });
  eachPack<T>(n, [&](std::size_t i, const auto& read, const auto&) BURTORCH_INLINE_LAMBDA {
    sums[0] = multiplyAdd<T>(read(x + i), read(y + i), sums[0]);
  });
  return sumOf<T>((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

// y += a·x
template <class T>
BURTORCH_NOINLINE void axpy(const std::type_identity_t<T>& a, const T* x, T* y, std::size_t n) {
  const Pack<T> factor = fill(a);
  eachPack<T>(n, [&](std::size_t i, const auto& read, const auto& write) BURTORCH_INLINE_LAMBDA {
    write(y + i, multiplyAdd<T>(factor, read(x + i), read(y + i)));
  });
}

// y += x
template <class T> BURTORCH_NOINLINE void add(const T* x, T* y, std::size_t n) {
  eachPack<T>(n, [&](std::size_t i, const auto& read, const auto& write)
                     BURTORCH_INLINE_LAMBDA { write(y + i, read(y + i) + read(x + i)); });
}

} // namespace kernel

BURTORCH_END_NAMESPACE
