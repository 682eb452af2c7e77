// burtorch/kernel/affine.hpp — a linear layer: x[m,k], w[n,k], bias[n] → y[m,n]
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/kernel/lanes.hpp>
#include <burtorch/kernel/matrix.hpp>
#include <burtorch/kernel/multiply.hpp>
#include <burtorch/kernel/vector.hpp>

#include <cstddef>

BURTORCH_BEGIN_NAMESPACE

namespace kernel {

namespace detail {

// One sample reads w and writes dw once and together: `rows` rows of them at a time, for which dx
// is read and written once. (More than two rows that are 4096 bytes apart would compete for the
// same places in the first cache.) From the last row to the first: forward has just read the last
// ones, and begins with the first ones next time. Returns how many rows are left.
template <std::size_t rows, bool wantsInput, bool adds, class T>
BURTORCH_INLINE std::size_t backwardRows(std::size_t n, std::size_t k, const T* x,
                                         const Matrix<const T>& w, const T* dy, T* dx,
                                         const Matrix<T>& dw) {
  for (; n >= rows; n -= rows) {
    const std::size_t i = n - rows;
    Pack<T> g[rows];
    unroll<rows>([&](auto r) BURTORCH_INLINE_LAMBDA { g[r] = fill(dy[i + r]); });
    const T* const from = wantsInput ? w.row(i) : nullptr;
    T* const to = dw.row(i);
    eachPack<T>(k, [&](std::size_t p, const auto& read, const auto& write) BURTORCH_INLINE_LAMBDA {
      const Pack<T> input = read(x + p);
      if constexpr (wantsInput) {
        Pack<T> sum = read(dx + p);
        unroll<rows>([&](auto r) BURTORCH_INLINE_LAMBDA {
          sum = multiplyAdd<T>(g[r], read(from + r * w.stride + p), sum);
        });
        write(dx + p, sum);
      }
      unroll<rows>([&](auto r) BURTORCH_INLINE_LAMBDA {
        T* const d = to + r * dw.stride + p;
        prefetch(d, 256);
        if constexpr (adds) write(d, multiplyAdd<T>(g[r], input, read(d)));
        else write(d, g[r] * input);
      });
    });
  }
  return n;
}

template <bool wantsInput, bool adds, class T>
BURTORCH_NOINLINE void backwardOfOne(std::size_t k, const T* x, const Matrix<const T>& w,
                                     const T* dy, T* dx, const Matrix<T>& dw) {
  const std::size_t left = backwardRows<2, wantsInput, adds>(dw.rows, k, x, w, dy, dx, dw);
  backwardRows<1, wantsInput, adds>(left, k, x, w, dy, dx, dw);
}

// sums[j] (+)= Σᵢ x[i][j]; four registers of columns at a time, so that no addition waits for another.
template <class T> BURTORCH_NOINLINE void sumRows(const Matrix<const T>& x, T* sums, Store how) {
  constexpr std::size_t L = lanes<T>, wide = 4;
  std::size_t first = 0;
  for (; first + wide * L <= x.cols; first += wide * L) {
    Pack<T> sum[wide];
    unroll<wide>([&](auto v) BURTORCH_INLINE_LAMBDA {
      sum[v] = how == Store::add ? load(sums + first + v * L) : fill(T(0));
    });
    for (std::size_t i = 0; i < x.rows; ++i)
      unroll<wide>(
          [&](auto v) BURTORCH_INLINE_LAMBDA { sum[v] = sum[v] + load(x.row(i) + first + v * L); });
    unroll<wide>([&](auto v) BURTORCH_INLINE_LAMBDA { store(sums + first + v * L, sum[v]); });
  }
  eachPack<T>(x.cols - first,
              [&](std::size_t j, const auto& read, const auto& write) BURTORCH_INLINE_LAMBDA {
                Pack<T> sum = how == Store::add ? read(sums + first + j) : fill(T(0));
                for (std::size_t i = 0; i < x.rows; ++i) sum = sum + read(x.row(i) + first + j);
                write(sums + first + j, sum);
              });
}

} // namespace detail

// y = x·wᵀ + bias in every row; bias may be null. With Store::add y keeps what it held and gains
// that.
template <class T>
void affineForward(ConstMatrix<T> x, ConstMatrix<T> w, const std::type_identity_t<T>* bias,
                   Matrix<T> y, Store how = Store::assign) {
  detail::multiplyNT<T>(x, w, {y.first, y.stride, bias, how == Store::add});
}

// dx += dy·w, dw (+)= dyᵀ·x, db (+)= the sum of dy's rows. Of dx, dw and db any may be null: not
// wanted.
template <class T>
void affineBackward(ConstMatrix<T> x, ConstMatrix<T> w, ConstMatrix<T> dy, Matrix<T> dx,
                    Matrix<T> dw, std::type_identity_t<T>* db, Store parameters) {
  if (db) detail::sumRows<T>(dy, db, parameters);
  if (x.rows <= 3 && dw.first) { // one after the other: tiles of so few steps would not pay
    for (std::size_t i = 0; i < x.rows; ++i) {
      const bool adds = parameters == Store::add || i != 0;
      const auto one = dx.first ? adds ? detail::backwardOfOne<true, true, T>
                                       : detail::backwardOfOne<true, false, T>
                       : adds ? detail::backwardOfOne<false, true, T>
                                : detail::backwardOfOne<false, false, T>;
      one(x.cols, x.row(i), w, dy.row(i), dx.first ? dx.row(i) : nullptr, dw);
    }
    return;
  }
  if (dx.first) multiplyNN<T>(dy, w, dx, Store::add);
  if (dw.first) multiplyTN<T>(dy, x, dw, parameters);
}

} // namespace kernel

BURTORCH_END_NAMESPACE
