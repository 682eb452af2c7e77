// burtorch/kernel/softmax.hpp — softmax, its logarithm and cross-entropy of the rows of a matrix
// SPDX-License-Identifier: MIT
//
// The largest number of a row is subtracted first, so that no exponential overflows and at least
// one of them is 1.
#pragma once

#include <burtorch/kernel/lanes.hpp>
#include <burtorch/kernel/matrix.hpp>
#include <burtorch/kernel/vector.hpp>

#include <cmath>
#include <concepts>
#include <cstddef>

BURTORCH_BEGIN_NAMESPACE

namespace kernel {

namespace detail {

using std::exp, std::log;

// The larger; y unless x is larger, lane by lane.
template <class P> BURTORCH_INLINE P larger(const P& x, const P& y) { return select(y < x, x, y); }

// The largest of n > 0 numbers.
template <class T> BURTORCH_INLINE T largestOf(const T* x, std::size_t n) {
  constexpr std::size_t L = lanes<T>;
  if constexpr (L > 1) {
    if (n >= L) {
      Pack<T> most = load(x);
      for (std::size_t i = L; i + L <= n; i += L) most = larger(load(x + i), most);
      return maximum(
          larger(load(x + (n - L)), most)); // the last L, some of them for the second time
    }
  }
  T most = x[0];
  for (std::size_t i = 1; i < n; ++i) most = larger(x[i], most);
  return most;
}

// y = e^(x − most); returns the sum.
template <class T> BURTORCH_INLINE T exponentials(const T* x, const T& most, T* y, std::size_t n) {
  return sumOfEach<T>(n, [&](std::size_t i, const auto& read, const auto& write)
                             BURTORCH_INLINE_LAMBDA {
                               const Pack<T> e = exp(read(x + i) - fill(most));
                               write(y + i, e);
                               return e;
                             });
}

template <class T> BURTORCH_INLINE void scale(T* x, const T& factor, std::size_t n) {
  eachPack<T>(n, [&](std::size_t i, const auto& read, const auto& write)
                     BURTORCH_INLINE_LAMBDA { write(x + i, read(x + i) * fill(factor)); });
}

} // namespace detail

// y[i] = softmax of x[i]; y may be x.
template <class T> BURTORCH_NOINLINE void softmaxForward(ConstMatrix<T> x, Matrix<T> y) {
  if (x.cols == 0) return;
  for (std::size_t i = 0; i < x.rows; ++i) {
    const T most = detail::largestOf(x.row(i), x.cols);
    const T total = detail::exponentials(x.row(i), most, y.row(i), x.cols);
    detail::scale(y.row(i), T(1) / total, x.cols);
  }
}

// dx += y·(dy − Σ y·dy)
template <class T>
BURTORCH_NOINLINE void softmaxBackward(ConstMatrix<T> y, ConstMatrix<T> dy, Matrix<T> dx) {
  for (std::size_t i = 0; i < y.rows; ++i) {
    const T *p = y.row(i), *g = dy.row(i);
    T* const to = dx.row(i);
    const Pack<T> mean = fill(dot(p, g, y.cols));
    eachPack<T>(y.cols,
                [&](std::size_t j, const auto& read, const auto& write) BURTORCH_INLINE_LAMBDA {
                  write(to + j, multiplyAdd<T>(read(p + j), read(g + j) - mean, read(to + j)));
                });
  }
}

// y[i] = log softmax of x[i]; y is not x.
template <class T> BURTORCH_NOINLINE void logSoftmaxForward(ConstMatrix<T> x, Matrix<T> y) {
  using detail::log;
  if (x.cols == 0) return;
  for (std::size_t i = 0; i < x.rows; ++i) {
    const T* const from = x.row(i);
    T* const to = y.row(i);
    const T most = detail::largestOf(from, x.cols);
    const T shift = log(detail::exponentials(from, most, to, x.cols));
    eachPack<T>(x.cols,
                [&](std::size_t j, const auto& read, const auto& write) BURTORCH_INLINE_LAMBDA {
                  write(to + j, (read(from + j) - fill(most)) - fill(shift));
                });
  }
}

// dx += dy − e^y·Σ dy
template <class T>
BURTORCH_NOINLINE void logSoftmaxBackward(ConstMatrix<T> y, ConstMatrix<T> dy, Matrix<T> dx) {
  using detail::exp;
  for (std::size_t i = 0; i < y.rows; ++i) {
    const T *from = y.row(i), *g = dy.row(i);
    T* const to = dx.row(i);
    const Pack<T> sum =
        fill(sumOfEach<T>(y.cols, [&](std::size_t j, const auto& read, const auto&)
                                      BURTORCH_INLINE_LAMBDA { return read(g + j); }));
    eachPack<T>(y.cols,
                [&](std::size_t j, const auto& read, const auto& write) BURTORCH_INLINE_LAMBDA {
                  write(to + j, (read(to + j) + read(g + j)) - exp(read(from + j)) * sum);
                });
  }
}

// losses[i] = −log of the probability that softmax of x[i] gives to column targets[i], which must
// be one of x's. The probabilities are kept for the way back.
template <class T, std::integral Index>
BURTORCH_NOINLINE void crossEntropyForward(ConstMatrix<T> x, const Index* targets, T* losses,
                                           Matrix<T> probabilities) {
  using detail::log;
  if (x.cols == 0) return;
  for (std::size_t i = 0; i < x.rows; ++i) {
    const T target = x.row(i)[targets[i]]; // before it is overwritten, if probabilities are x
    T* const p = probabilities.row(i);
    const T most = detail::largestOf(x.row(i), x.cols);
    const T total = detail::exponentials(x.row(i), most, p, x.cols);
    detail::scale(p, T(1) / total, x.cols);
    losses[i] = (most - target) + log(total);
  }
}

// dx += dlosses·(probabilities − 1 in the target's column)
template <class T, std::integral Index>
BURTORCH_NOINLINE void crossEntropyBackward(ConstMatrix<T> probabilities, const Index* targets,
                                            const std::type_identity_t<T>* dlosses, Matrix<T> dx) {
  for (std::size_t i = 0; i < dx.rows; ++i) {
    axpy(dlosses[i], probabilities.row(i), dx.row(i), dx.cols);
    T& target = dx.row(i)[targets[i]];
    target = target - dlosses[i];
  }
}

} // namespace kernel

BURTORCH_END_NAMESPACE
