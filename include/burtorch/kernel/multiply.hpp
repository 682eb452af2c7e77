// burtorch/kernel/multiply.hpp — products of matrices, in the three forms that layers need
// SPDX-License-Identifier: MIT
//
//   multiplyNT   y[m,n] (+)= x[m,k] w[n,k]ᵀ    forward of a linear layer: w is [out, in]
//   multiplyNN   y[m,n] (+)= x[m,k] w[k,n]     what its input's gradient gains: dy · w
//   multiplyTN   y[m,n] (+)= x[k,m]ᵀ w[k,n]    what its weights' gradient gains: dyᵀ · x
//
// All of them walk over tiles of y that stay in registers while k passes by: some rows of y times
// one panel of 1…3 registers of columns. A step of k multiplies one number of x for each row with
// the panel's part of a row of w. Where the panel does not lie so in memory (NT), where its rows
// are far apart and it is used often, or where it ends within a register, it is copied to the
// stack, some hundred steps of k at a time. NT with few rows or few columns is made of dot products
// instead, in tiles of up to 3 × 4.
//
// Results differ from those of plain loops by rounding only. y must not overlap x or w.
#pragma once

#include <burtorch/kernel/lanes.hpp>
#include <burtorch/kernel/matrix.hpp>
#include <burtorch/kernel/transpose.hpp>

#include <algorithm>
#include <cstddef>

BURTORCH_BEGIN_NAMESPACE

namespace kernel {

namespace detail {

// Element (i, p) of the left factor is first[i * row + p * step].
template <class T> struct Left {
  const T* first;
  std::size_t row, step;
};

// What a tile does with its sums: y = sum + bias + what y held, the latter two where there are any.
template <class T> struct Target {
  T* first;
  std::size_t stride;
  const T* bias; // of the first column, or null
  bool adds;
};

// How many rows a tile of `vectors` registers per row may have: sums, one row of w and a number of
// x have to fit into 16 registers; without fused multiply-add also a product.
constexpr std::size_t tileRows(std::size_t vectors) {
#if defined(__FMA__) || defined(__AVX512F__) || defined(__aarch64__)
  return vectors == 3 ? 4 : vectors == 2 ? 6 : 8;
#else
  return vectors == 3 ? 3 : vectors == 2 ? 5 : 8;
#endif
}

constexpr std::size_t panelVectors = 3;
// What is copied of a panel fills most of the first cache; some rows of x need the rest.
template <class T>
inline constexpr std::size_t panelSteps =
    std::max<std::size_t>(24576 / (panelVectors * lanes<T> * sizeof(T)), lanes<T>);

// Where a panel ends within a register its sums pass through memory.
template <class T>
BURTORCH_NOINLINE void finishEdge(const T* sums, std::size_t stride, const Target<T>& y,
                                  std::size_t rows, std::size_t cols) {
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < cols; ++j) {
      T& to = y.first[i * y.stride + j];
      const T sum = y.bias ? sums[i * stride + j] + y.bias[j] : sums[i * stride + j];
      to = y.adds ? to + sum : sum;
    }
}

template <std::size_t L, std::size_t rows, std::size_t vectors, class T>
BURTORCH_INLINE void finish(Pack<T, L> (&sums)[rows][vectors], const Target<T>& y,
                            std::size_t cols) {
  const auto each = [&](const auto& f) BURTORCH_INLINE_LAMBDA {
    unroll<rows>([&](auto i) BURTORCH_INLINE_LAMBDA {
      unroll<vectors>([&](auto v) BURTORCH_INLINE_LAMBDA { f(i, v, sums[i][v]); });
    });
  };
  if (cols != vectors * L) {
    T edge[rows * vectors * L];
    each([&](auto i, auto v, const Pack<T, L>& sum)
             BURTORCH_INLINE_LAMBDA { store(edge + (i * vectors + v) * L, sum); });
    return finishEdge<T>(edge, vectors * L, y, rows, cols);
  }
  if (y.bias)
    each([&](auto, auto v, Pack<T, L>& sum)
             BURTORCH_INLINE_LAMBDA { sum = sum + load<L>(y.bias + v * L); });
  if (y.adds)
    each([&](auto i, auto v, Pack<T, L>& sum)
             BURTORCH_INLINE_LAMBDA { sum = sum + load<L>(y.first + i * y.stride + v * L); });
  each([&](auto i, auto v, const Pack<T, L>& sum)
           BURTORCH_INLINE_LAMBDA { store(y.first + i * y.stride + v * L, sum); });
}

template <std::size_t L, std::size_t rows, std::size_t vectors, class T>
BURTORCH_INLINE void tile(std::size_t k, const Left<T>& x, const T* w, std::size_t wStep,
                          const Target<T>& y, std::size_t cols) {
  Pack<T, L> sums[rows][vectors];
  unroll<rows>([&](auto i) BURTORCH_INLINE_LAMBDA {
    unroll<vectors>([&](auto v) BURTORCH_INLINE_LAMBDA { sums[i][v] = fill<L>(T(0)); });
  });
  // y is often far away: it arrives while the sums are computed.
  if (k > 16)
    unroll<rows>([&](auto i) BURTORCH_INLINE_LAMBDA {
      prefetch(y.first + i * y.stride);
      prefetch(y.first + i * y.stride + cols - 1);
    });
  const T* a = x.first;
  for (std::size_t p = 0; p < k; ++p) {
    Pack<T, L> b[vectors];
    unroll<vectors>([&](auto v) BURTORCH_INLINE_LAMBDA { b[v] = load<L>(w + v * L); });
    unroll<rows>([&](auto i) BURTORCH_INLINE_LAMBDA {
      const Pack<T, L> each = fill<L>(a[i * x.row]);
      unroll<vectors>([&](auto v) BURTORCH_INLINE_LAMBDA {
        sums[i][v] = multiplyAdd<T>(each, b[v], sums[i][v]);
      });
    });
    a += x.step;
    w += wStep;
  }
  finish<L, rows, vectors, T>(sums, y, cols);
}

// All rows of one panel: tiles of `rows` rows, then what is left.
template <std::size_t L, std::size_t rows, std::size_t vectors, class T>
BURTORCH_INLINE void tilesDown(std::size_t m, std::size_t k, Left<T> x, const T* w,
                               std::size_t wStep, Target<T> y, std::size_t cols) {
  for (; m >= rows; m -= rows) {
    tile<L, rows, vectors>(k, x, w, wStep, y, cols);
    x.first += rows * x.row;
    y.first += rows * y.stride;
  }
  if constexpr (rows > 1) tilesDown<L, rows - 1, vectors>(m, k, x, w, wStep, y, cols);
}
template <std::size_t L, std::size_t vectors, class T>
BURTORCH_NOINLINE void panel(std::size_t m, std::size_t k, Left<T> x, const T* w, std::size_t wStep,
                             Target<T> y, std::size_t cols) {
  tilesDown<L, tileRows(vectors), vectors>(m, k, x, w, wStep, y, cols);
}

// k rows of `cols` columns of w, one after the other, filled up with zeros.
template <std::size_t L, std::size_t vectors, class T>
BURTORCH_NOINLINE void packRows(const T* w, std::size_t stride, std::size_t k, std::size_t cols,
                                T* packed) {
  const std::size_t rest = cols - (vectors - 1) * L;
  for (std::size_t p = 0; p < k; ++p, w += stride, packed += vectors * L) {
    unroll<vectors - 1>([&](auto v)
                            BURTORCH_INLINE_LAMBDA { store(packed + v * L, load<L>(w + v * L)); });
    constexpr std::size_t last = (vectors - 1) * L;
    store(packed + last, rest == L ? load<L>(w + last) : load<L>(w + last, rest));
  }
}

// The same of wᵀ: `cols` rows of w with k columns each.
template <std::size_t L, std::size_t vectors, class T>
BURTORCH_NOINLINE void packColumns(const T* w, std::size_t stride, std::size_t k, std::size_t cols,
                                   T* packed) {
  for (std::size_t v = 0; v < vectors; ++v)
    for (std::size_t p = 0; p < k; p += L)
      transpose<L>(w + v * L * stride + p, stride, std::min(L, cols - v * L), std::min(L, k - p),
                   packed + (p * vectors + v) * L, vectors * L);
}

enum class Right { asIs, transposed }; // w[k,n] or w[n,k]

// One panel of columns, k in blocks.
template <Right form, std::size_t L, std::size_t vectors, class T>
BURTORCH_INLINE void columns(std::size_t m, std::size_t k, Left<T> x, const T* w,
                             std::size_t stride, Target<T> y, std::size_t cols) {
  const bool nearby = k * stride * sizeof(T) <= 32768 || m <= 2 * tileRows(vectors);
  if (form == Right::asIs && cols == vectors * L && nearby)
    return panel<L, vectors>(m, k, x, w, stride, y, cols);
  alignas(64) T packed[panelSteps<T> * vectors * L];
  static_assert(panelSteps<T> % L == 0);
  const std::size_t blocks = std::max<std::size_t>((k + panelSteps<T> - 1) / panelSteps<T>, 1);
  const std::size_t steps = (k + blocks * L - 1) / (blocks * L) * L; // equal, whole registers
  do {
    const std::size_t now = std::min(steps, k);
    if constexpr (form == Right::asIs) packRows<L, vectors>(w, stride, now, cols, packed);
    else packColumns<L, vectors>(w, stride, now, cols, packed);
    panel<L, vectors>(m, now, x, packed, vectors * L, y, cols);
    x.first += now * x.step;
    w += now * (form == Right::asIs ? stride : 1);
    k -= now;
    y.bias = nullptr;
    y.adds = true;
  } while (k != 0);
}

// The next panel of columns, one to three registers of L lanes; returns how many columns it has.
template <Right form, std::size_t L, class T>
BURTORCH_INLINE std::size_t nextColumns(std::size_t m, std::size_t n, std::size_t k,
                                        const Left<T>& x, const T* w, std::size_t stride,
                                        const Target<T>& y) {
  const std::size_t vectors = (n + L - 1) / L;
  // Three registers wide, but two and two rather than three and one.
  const std::size_t take = vectors == 4 || vectors == 2 ? 2 : std::min(vectors, panelVectors);
  const std::size_t cols = std::min(n, take * L);
  if (take == 3) columns<form, L, 3>(m, k, x, w, stride, y, cols);
  else if (take == 2) columns<form, L, 2>(m, k, x, w, stride, y, cols);
  else columns<form, L, 1>(m, k, x, w, stride, y, cols);
  return cols;
}

// Whether the last n columns fill narrower registers better: one of them is enough, or two or three
// are full where wide ones would not be.
template <class T> BURTORCH_INLINE bool fitsFewerLanes(std::size_t n) {
  constexpr std::size_t L = lanes<T>, half = fewerLanes<T>;
  if constexpr (L == half) return false;
  else return n <= half || (n == 3 * half);
}

template <Right form, class T>
BURTORCH_NOINLINE void multiply(std::size_t m, std::size_t n, std::size_t k, Left<T> x, const T* w,
                                std::size_t stride, Target<T> y) {
  while (n != 0 && m != 0) {
    const std::size_t cols = fitsFewerLanes<T>(n)
                                 ? nextColumns<form, fewerLanes<T>>(m, n, k, x, w, stride, y)
                                 : nextColumns<form, lanes<T>>(m, n, k, x, w, stride, y);
    w += form == Right::asIs ? cols : cols * stride;
    y.first += cols;
    if (y.bias) y.bias += cols;
    n -= cols;
  }
}

// y[i][j] = the dot product of row i of x and row j of w, for `rows` of these and `cols` of those.
template <std::size_t rows, std::size_t cols, class T>
BURTORCH_INLINE void dots(std::size_t k, const T* x, std::size_t xStride, const T* w,
                          std::size_t wStride, const Target<T>& y) {
  constexpr std::size_t L = lanes<T>;
  constexpr std::size_t chains = rows * cols < 6 ? 2 : 1; // enough sums to hide their latency
  Pack<T> sums[chains][rows][cols];
  unroll<chains>([&](auto c) BURTORCH_INLINE_LAMBDA {
    unroll<rows>([&](auto i) BURTORCH_INLINE_LAMBDA {
      unroll<cols>([&](auto j) BURTORCH_INLINE_LAMBDA { sums[c][i][j] = fill(T(0)); });
    });
  });
  const auto step = [&](auto c, const auto& read) BURTORCH_INLINE_LAMBDA {
    Pack<T> a[rows];
    unroll<rows>([&](auto i) BURTORCH_INLINE_LAMBDA { a[i] = read(x + i * xStride + c * L); });
    unroll<cols>([&](auto j) BURTORCH_INLINE_LAMBDA {
      const Pack<T> b = read(w + j * wStride + c * L);
      unroll<rows>([&](auto i) BURTORCH_INLINE_LAMBDA {
        sums[c][i][j] = multiplyAdd<T>(a[i], b, sums[c][i][j]);
      });
    });
  };
  const auto whole = [](const T* from) BURTORCH_INLINE_LAMBDA { return load(from); };
  constexpr std::integral_constant<std::size_t, 0> first{};
  for (; k >= chains * L; k -= chains * L, x += chains * L, w += chains * L)
    unroll<chains>([&](auto c) BURTORCH_INLINE_LAMBDA { step(c, whole); });
  for (; k >= L; k -= L, x += L, w += L) step(first, whole);
  if (k != 0) step(first, [k](const T* from) BURTORCH_INLINE_LAMBDA { return load(from, k); });
  unroll<rows>([&](auto i) BURTORCH_INLINE_LAMBDA {
    unroll<cols>([&](auto j) BURTORCH_INLINE_LAMBDA {
      T& to = y.first[i * y.stride + j];
      T sum = sumOf<T>(chains == 2 ? sums[0][i][j] + sums[chains - 1][i][j] : sums[0][i][j]);
      if (y.bias) sum = sum + y.bias[j];
      to = y.adds ? to + sum : sum;
    });
  });
}

template <std::size_t rows, std::size_t cols, class T>
BURTORCH_INLINE void dotsAlong(std::size_t n, std::size_t k, const T* x, std::size_t xStride,
                               const T* w, std::size_t wStride, Target<T> y) {
  for (; n >= cols; n -= cols) {
    dots<rows, cols>(k, x, xStride, w, wStride, y);
    w += cols * wStride;
    y.first += cols;
    if (y.bias) y.bias += cols;
  }
  if constexpr (cols > 1) dotsAlong<rows, cols - 1>(n, k, x, xStride, w, wStride, y);
}
template <std::size_t rows, class T>
BURTORCH_NOINLINE void dotRows(std::size_t n, std::size_t k, const T* x, std::size_t xStride,
                               const T* w, std::size_t wStride, Target<T> y) {
  dotsAlong<rows, 4>(n, k, x, xStride, w, wStride, y);
}

template <class T>
BURTORCH_NOINLINE void multiplyByDots(std::size_t m, std::size_t n, std::size_t k, const T* x,
                                      std::size_t xStride, const T* w, std::size_t wStride,
                                      Target<T> y) {
  while (m != 0) {
    const std::size_t rows = m == 4 ? 2 : std::min<std::size_t>(m, 3);
    if (rows == 3) dotRows<3>(n, k, x, xStride, w, wStride, y);
    else if (rows == 2) dotRows<2>(n, k, x, xStride, w, wStride, y);
    else dotRows<1>(n, k, x, xStride, w, wStride, y);
    x += rows * xStride;
    y.first += rows * y.stride;
    m -= rows;
  }
}

template <class T>
BURTORCH_INLINE void multiplyNT(const Matrix<const T>& x, const Matrix<const T>& w,
                                const Target<T>& y) {
  const std::size_t m = x.rows, n = w.rows, k = x.cols;
  if (m < 6 || n <= lanes<T> / 2)
    multiplyByDots<T>(m, n, k, x.first, x.stride, w.first, w.stride, y);
  else multiply<Right::transposed, T>(m, n, k, {x.first, x.stride, 1}, w.first, w.stride, y);
}

} // namespace detail

template <class T> void multiplyNT(ConstMatrix<T> x, ConstMatrix<T> w, Matrix<T> y, Store how) {
  detail::multiplyNT<T>(x, w, {y.first, y.stride, nullptr, how == Store::add});
}

template <class T> void multiplyNN(ConstMatrix<T> x, ConstMatrix<T> w, Matrix<T> y, Store how) {
  detail::multiply<detail::Right::asIs, T>(x.rows, w.cols, w.rows, {x.first, x.stride, 1}, w.first,
                                           w.stride,
                                           {y.first, y.stride, nullptr, how == Store::add});
}

template <class T> void multiplyTN(ConstMatrix<T> x, ConstMatrix<T> w, Matrix<T> y, Store how) {
  detail::multiply<detail::Right::asIs, T>(x.cols, w.cols, w.rows, {x.first, 1, x.stride}, w.first,
                                           w.stride,
                                           {y.first, y.stride, nullptr, how == Store::add});
}

} // namespace kernel

BURTORCH_END_NAMESPACE
