// burtorch/kernel/lanes.hpp — as many numbers as one instruction takes, or one where there is none
// SPDX-License-Identifier: MIT
//
// Pack<T> is a register of floats or doubles; for every other scalar it is T itself. Kernels are
// written once with it: its arithmetic and functions are those of its type, what differs is here.
//
// A wide register does not pay for a short row: most of its lanes would be empty, and where a row
// ends within a register it takes a detour. Kernels that work on squares or panels of lanes are
// therefore templates of L, the lanes in use: lanes<T>, or fewerLanes<T> where the shape says so.
#pragma once

#include <burtorch/scalar/scalar.hpp>
#include <burtorch/scalar/simd.hpp>
#include <burtorch/scalar/vector_math.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

// A function of its own, however often it is called, into which everything it calls is inlined.
#if defined(__GNUC__) && defined(__OPTIMIZE__) && !defined(BURTORCH_INSTRUMENTED)
#define BURTORCH_KERNEL __attribute__((noinline, flatten))
#else
#define BURTORCH_KERNEL BURTORCH_NOINLINE
#endif

BURTORCH_BEGIN_NAMESPACE

namespace kernel {

template <class T>
inline constexpr bool isPacked =
    (std::same_as<T, float> || std::same_as<T, double>)&&nativeLanes<T> != 1;
template <class T> inline constexpr std::size_t lanes = isPacked<T> ? nativeLanes<T> : 1;
// Half a register, if that is one, too: a vector of 16 bytes or more.
template <class T>
inline constexpr std::size_t fewerLanes =
    isPacked<T> && lanes<T> * sizeof(T) > 16 ? lanes<T> / 2 : lanes<T>;

template <class T, std::size_t L = lanes<T>>
using Pack = std::conditional_t<isPacked<T>, simd<T, L>, T>;

namespace detail {
template <std::size_t L, class T> inline constexpr std::size_t lanesOr = L != 0 ? L : lanes<T>;
} // namespace detail
template <std::size_t L, class T>
using PackOf = Pack<T, detail::lanesOr<L, T>>; // L: 0 for all lanes

template <std::size_t L = 0, class T> BURTORCH_INLINE PackOf<L, T> load(const T* from) {
  if constexpr (isPacked<T>) return PackOf<L, T>::load(from);
  else return *from;
}
template <class T, class P> BURTORCH_INLINE void store(T* to, const P& x) {
  if constexpr (isPacked<T>) x.store(to);
  else *to = x;
}

namespace detail {
// Masked stores cost some processors tens of cycles; halves of a register do not.
template <class T, std::size_t N>
BURTORCH_INLINE void storeHalves(T* to, const simd<T, N>& x, std::size_t n) {
  if constexpr (N > 1) {
    auto rest = half<0>(x);
    if (n & (N / 2)) {
      rest.store(to);
      to += N / 2;
      rest = half<N / 2>(x);
    }
    storeHalves(to, rest, n);
  }
}
} // namespace detail

// The first n lanes, fewer than there are; the others are 0, or left alone.
template <std::size_t L = 0, class T>
BURTORCH_INLINE PackOf<L, T> load(const T* from, std::size_t n) {
  if constexpr (isPacked<T>) return PackOf<L, T>::loadPartial(from, n);
  else return T(0);
}
template <class T, class P> BURTORCH_INLINE void store(T* to, const P& x, std::size_t n) {
  if constexpr (isPacked<T>) detail::storeHalves(to, x, n);
}

// x in every lane.
template <std::size_t L = 0, class T> BURTORCH_INLINE PackOf<L, T> fill(const T& x) {
  return PackOf<L, T>(x);
}

template <class T, class P>
BURTORCH_INLINE P multiplyAdd(const std::type_identity_t<P>& x, const std::type_identity_t<P>& y,
                              const P& z) {
  if constexpr (isPacked<T>) return fma(x, y, z);
  else return x * y + z;
}

template <class T> BURTORCH_INLINE T sumOf(const std::type_identity_t<Pack<T>>& x) {
  if constexpr (isPacked<T>) return sum(x);
  else return x;
}

// What lies some bytes ahead will soon be written. A hint: nothing has to be there.
template <class T>
BURTORCH_INLINE void prefetch([[maybe_unused]] const T* where,
                              [[maybe_unused]] std::size_t bytes = 0) {
#if defined(__GNUC__)
  __builtin_prefetch(reinterpret_cast<const char*>(where) + bytes, 1);
#endif
}

// f(0) … f(n-1) with constants, so that arrays indexed by them live in registers.
template <std::size_t n, class F> BURTORCH_INLINE void unroll(const F& f) {
  [&]<std::size_t... i>(std::index_sequence<i...>) BURTORCH_INLINE_LAMBDA {
    (f(std::integral_constant<std::size_t, i>{}), ...);
  }(std::make_index_sequence<n>{});
}

} // namespace kernel

BURTORCH_END_NAMESPACE
