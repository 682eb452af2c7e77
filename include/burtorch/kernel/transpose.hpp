// burtorch/kernel/transpose.hpp — a square of lanes, rows for columns
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/kernel/lanes.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

BURTORCH_BEGIN_NAMESPACE

namespace kernel {

namespace detail {

#if BURTORCH_VECTOR_EXTENSIONS && (defined(__clang__) || __GNUC__ >= 12)
inline constexpr bool hasShuffle = true;

// Lane i of the result is lane at(i) of x followed by y.
template <class At, class T, std::size_t N>
BURTORCH_INLINE simd<T, N> shuffle(const simd<T, N>& x, const simd<T, N>& y, At) {
  simd<T, N> r;
  r.part[0] = [&]<std::size_t... i>(std::index_sequence<i...>) BURTORCH_INLINE_LAMBDA {
    return __builtin_shufflevector(x.part[0], y.part[0], At{}(i)...);
  }(std::make_index_sequence<N>{});
  return r;
}

// One round over all rows: pairs of rows, `apart` from each other within blocks of twice as many,
// become low and high; `spread` puts these where the next round expects them.
template <std::size_t group, std::size_t N> struct Interleave { // within groups of 16 bytes
  template <bool high> struct At {
    constexpr std::size_t operator()(std::size_t i) const {
      const std::size_t inside = i % group + (high ? group : 0);
      return i / group * group + inside / 2 + inside % 2 * N;
    }
  };
};
template <std::size_t distance, std::size_t N> struct Swap { // whole groups
  template <bool high> struct At {
    constexpr std::size_t operator()(std::size_t i) const {
      const bool second = (i & distance) != 0;
      return second ? (high ? i + N : i - distance + N) : (high ? i + distance : i);
    }
  };
};

template <std::size_t distance, class V, std::size_t N>
BURTORCH_INLINE void swapGroups(V (&rows)[N]) {
  if constexpr (distance < N) {
    unroll<N>([&](auto i) BURTORCH_INLINE_LAMBDA {
      if constexpr ((i & distance) == 0) {
        using Round = Swap<distance, N>;
        const V x = rows[i], y = rows[i + distance];
        rows[i] = shuffle(x, y, typename Round::template At<false>{});
        rows[i + distance] = shuffle(x, y, typename Round::template At<true>{});
      }
    });
    swapGroups<2 * distance>(rows);
  }
}

template <class T, std::size_t N> BURTORCH_INLINE void transposeRows(simd<T, N> (&rows)[N]) {
  using V = simd<T, N>;
  constexpr std::size_t group = 16 / sizeof(T);
  using Round = Interleave<group, N>;
  for (std::size_t round = 1; round < group; round *= 2) {
    V next[N];
    unroll<N>([&](auto i) BURTORCH_INLINE_LAMBDA {
      constexpr std::size_t first = i / group * group, k = i % group / 2;
      const V x = rows[first + k], y = rows[first + k + group / 2];
      next[i] = shuffle(x, y, typename Round::template At<i % 2 != 0>{});
    });
    unroll<N>([&](auto i) BURTORCH_INLINE_LAMBDA { rows[i] = next[i]; });
  }
  swapGroups<group>(rows);
}
#else
inline constexpr bool hasShuffle = false;
template <class V, std::size_t N> void transposeRows(V (&rows)[N]); // never called
#endif

} // namespace detail

// to[j][i] = from[i][j] for i < rows, j < cols, both at most L; for the other i up to L to[j][i]
// becomes 0.
template <std::size_t L, class T>
BURTORCH_INLINE void transpose(const T* from, std::size_t stride, std::size_t rows,
                               std::size_t cols, T* to, std::size_t toStride) {
  if constexpr (isPacked<T> && detail::hasShuffle) {
    Pack<T, L> x[L];
    if (rows == L && cols == L) {
      unroll<L>([&](auto i) BURTORCH_INLINE_LAMBDA { x[i] = load<L>(from + i * stride); });
    } else {
      unroll<L>([&](auto i) BURTORCH_INLINE_LAMBDA {
        if (i >= rows) x[i] = fill<L>(T(0));
        else if (cols == L) x[i] = load<L>(from + i * stride);
        else x[i] = load<L>(from + i * stride, cols);
      });
    }
    detail::transposeRows(x);
    if (cols == L) {
      unroll<L>([&](auto j) BURTORCH_INLINE_LAMBDA { store(to + j * toStride, x[j]); });
    } else {
      unroll<L>([&](auto j) BURTORCH_INLINE_LAMBDA {
        if (j < cols) store(to + j * toStride, x[j]);
      });
    }
  } else {
    for (std::size_t j = 0; j < cols; ++j) {
      for (std::size_t i = 0; i < rows; ++i) to[j * toStride + i] = from[i * stride + j];
      std::fill(to + j * toStride + rows, to + j * toStride + L, T(0));
    }
  }
}

} // namespace kernel

BURTORCH_END_NAMESPACE
