// burtorch/kernel/layer_norm.hpp — rows brought to mean 0 and variance 1, then scaled and shifted
// SPDX-License-Identifier: MIT
//
// y = (x − mean)·inverseStd·gamma + beta with inverseStd = 1/√(variance + eps); mean and (biased)
// variance are those of the row of x, gamma and beta have a number for each column.
#pragma once

#include <burtorch/kernel/lanes.hpp>
#include <burtorch/kernel/matrix.hpp>
#include <burtorch/kernel/vector.hpp>

#include <cmath>
#include <cstddef>
#include <type_traits>

BURTORCH_BEGIN_NAMESPACE

namespace kernel {

namespace detail {

using std::sqrt;

template <class T> BURTORCH_INLINE T inverseStdOf(const T& variance, const T& eps) {
  return T(1) / sqrt(variance + eps);
}

} // namespace detail

// Keeps the mean and the inverse of the standard deviation of each row for the way back. y may be x.
template <class T>
BURTORCH_NOINLINE void
layerNormForward(ConstMatrix<T> x, const std::type_identity_t<T>* gamma,
                 const std::type_identity_t<T>* beta, std::type_identity_t<T> eps, Matrix<T> y,
                 std::type_identity_t<T>* mean, std::type_identity_t<T>* inverseStd) {
  const std::size_t n = x.cols;
  const T share = T(1) / T(static_cast<double>(n));
  for (std::size_t i = 0; i < x.rows; ++i) {
    const T* const from = x.row(i);
    T* const to = y.row(i);
    mean[i] = share * sumOfEach<T>(n, [&](std::size_t j, const auto& read, const auto&)
                                          BURTORCH_INLINE_LAMBDA { return read(from + j); });
    const Pack<T> m = fill(mean[i]);
    const T variance = share * sumOfEach<T>(n, [&](std::size_t j, const auto& read, const auto&)
                                                   BURTORCH_INLINE_LAMBDA {
                                                     const Pack<T> d = read(from + j) - m;
                                                     return d * d;
                                                   });
    inverseStd[i] = detail::inverseStdOf<T>(variance, eps);
    const Pack<T> s = fill(inverseStd[i]);
    eachPack<T>(n, [&](std::size_t j, const auto& read, const auto& write) BURTORCH_INLINE_LAMBDA {
      write(to + j, multiplyAdd<T>((read(from + j) - m) * s, read(gamma + j), read(beta + j)));
    });
  }
}

// With h = (x − mean)·inverseStd and g = dy·gamma:
// dx += inverseStd·(g − average of g − h·average of g·h), dgamma (+)= Σ dy·h, dbeta (+)= Σ dy. Of
// dx, dgamma and dbeta any may be null: not wanted.
template <class T>
BURTORCH_NOINLINE void
layerNormBackward(ConstMatrix<T> x, const std::type_identity_t<T>* gamma,
                  const std::type_identity_t<T>* mean, const std::type_identity_t<T>* inverseStd,
                  ConstMatrix<T> dy, Matrix<T> dx, std::type_identity_t<T>* dgamma,
                  std::type_identity_t<T>* dbeta, Store parameters) {
  const std::size_t n = x.cols;
  const T share = T(1) / T(static_cast<double>(n));
  for (std::size_t i = 0; i < x.rows && dx.first; ++i) {
    const T *from = x.row(i), *g = dy.row(i);
    T* const to = dx.row(i);
    const Pack<T> m = fill(mean[i]), s = fill(inverseStd[i]);
    const auto normal = [&](std::size_t j, const auto& read)
                            BURTORCH_INLINE_LAMBDA { return (read(from + j) - m) * s; };
    const auto inner = [&](std::size_t j, const auto& read)
                           BURTORCH_INLINE_LAMBDA { return read(g + j) * read(gamma + j); };
    const Pack<T> offset =
        fill(share * sumOfEach<T>(n, [&](std::size_t j, const auto& read, const auto&)
                                         BURTORCH_INLINE_LAMBDA { return inner(j, read); }));
    const Pack<T> slope = fill(share * sumOfEach<T>(n, [&](std::size_t j, const auto& read,
                                                           const auto&) BURTORCH_INLINE_LAMBDA {
                                 return inner(j, read) * normal(j, read);
                               }));
    eachPack<T>(n, [&](std::size_t j, const auto& read, const auto& write) BURTORCH_INLINE_LAMBDA {
      const Pack<T> rest = (inner(j, read) - offset) - normal(j, read) * slope;
      write(to + j, multiplyAdd<T>(s, rest, read(to + j)));
    });
  }
  const auto sums = [&](auto wantsScale, auto wantsShift) BURTORCH_INLINE_LAMBDA {
    eachPack<T>(n, [&](std::size_t j, const auto& read, const auto& write) BURTORCH_INLINE_LAMBDA {
      const bool adds = parameters == Store::add;
      Pack<T> scale = wantsScale && adds ? read(dgamma + j) : fill(T(0));
      Pack<T> shift = wantsShift && adds ? read(dbeta + j) : fill(T(0));
      for (std::size_t i = 0; i < x.rows; ++i) {
        const Pack<T> g = read(dy.row(i) + j);
        const Pack<T> h = (read(x.row(i) + j) - fill(mean[i])) * fill(inverseStd[i]);
        if constexpr (wantsScale) scale = multiplyAdd<T>(g, h, scale);
        shift = shift + g;
      }
      if constexpr (wantsScale) write(dgamma + j, scale);
      if constexpr (wantsShift) write(dbeta + j, shift);
    });
  };
  constexpr std::true_type yes;
  constexpr std::false_type no;
  if (dgamma && dbeta && areApart<T>({dgamma, 1, n, n}, {dbeta, 1, n, n})) return sums(yes, yes);
  if (dgamma) sums(yes, no);
  if (dbeta) sums(no, yes);
}

} // namespace kernel

BURTORCH_END_NAMESPACE
