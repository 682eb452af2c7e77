// burtorch/kernel/layer_norm.hpp — rows brought to mean 0 and variance 1, then scaled and shifted
// SPDX-License-Identifier: MIT
//
// y = (x − mean)·inverseStd·weight + bias with inverseStd = 1/√(variance + eps); mean and (biased)
// variance are those of the row of x, weight and bias have a number for each column.
#pragma once

#include <burtorch/kernel/lanes.hpp>
#include <burtorch/kernel/matrix.hpp>
#include <burtorch/kernel/vector.hpp>

#include <cmath>
#include <cstddef>
#include <functional>
#include <type_traits>

BURTORCH_BEGIN_NAMESPACE

namespace kernel {

// True if no element of one lies between the first and the last of the other.
template <class T> constexpr bool areApart(const Matrix<T>& x, const Matrix<T>& y) {
  const auto end = [](const Matrix<T>& m) {
    return m.rows == 0 ? m.first : m.row(m.rows - 1) + m.cols;
  };
  const std::less_equal<const T*> before;
  return before(end(x), y.first) || before(end(y), x.first);
}

namespace detail {

using std::sqrt;

template <class T> BURTORCH_INLINE T inverseStdOf(const T& variance, const T& eps) {
  return T(1) / sqrt(variance + eps);
}

} // namespace detail

// Keeps the mean and the inverse of the standard deviation of each row for the way back. y may be x.
template <class T>
BURTORCH_NOINLINE void
layerNormForward(ConstMatrix<T> x, const std::type_identity_t<T>* weight,
                 const std::type_identity_t<T>* bias, std::type_identity_t<T> eps, Matrix<T> y,
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
      write(to + j, multiplyAdd<T>((read(from + j) - m) * s, read(weight + j), read(bias + j)));
    });
  }
}

// With h = (x − mean)·inverseStd and g = dy·weight:
// dx += inverseStd·(g − average of g − h·average of g·h), dweight (+)= Σ dy·h, dbias (+)= Σ dy. Of
// dx, dweight and dbias any may be null: not wanted.
template <class T>
BURTORCH_NOINLINE void
layerNormBackward(ConstMatrix<T> x, const std::type_identity_t<T>* weight,
                  const std::type_identity_t<T>* mean, const std::type_identity_t<T>* inverseStd,
                  ConstMatrix<T> dy, Matrix<T> dx, std::type_identity_t<T>* dweight,
                  std::type_identity_t<T>* dbias, Store parameters) {
  const std::size_t n = x.cols;
  const T share = T(1) / T(static_cast<double>(n));
  for (std::size_t i = 0; i < x.rows && dx.first; ++i) {
    const T *from = x.row(i), *g = dy.row(i);
    T* const to = dx.row(i);
    const Pack<T> m = fill(mean[i]), s = fill(inverseStd[i]);
    const auto normal = [&](std::size_t j, const auto& read)
                            BURTORCH_INLINE_LAMBDA { return (read(from + j) - m) * s; };
    const auto inner = [&](std::size_t j, const auto& read)
                           BURTORCH_INLINE_LAMBDA { return read(g + j) * read(weight + j); };
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
  const auto sums = [&](auto wantsWeight, auto wantsBias) BURTORCH_INLINE_LAMBDA {
    eachPack<T>(n, [&](std::size_t j, const auto& read, const auto& write) BURTORCH_INLINE_LAMBDA {
      const bool adds = parameters == Store::add;
      Pack<T> weights = wantsWeight && adds ? read(dweight + j) : fill(T(0));
      Pack<T> biases = wantsBias && adds ? read(dbias + j) : fill(T(0));
      for (std::size_t i = 0; i < x.rows; ++i) {
        const Pack<T> g = read(dy.row(i) + j);
        const Pack<T> h = (read(x.row(i) + j) - fill(mean[i])) * fill(inverseStd[i]);
        if constexpr (wantsWeight) weights = multiplyAdd<T>(g, h, weights);
        biases = biases + g;
      }
      if constexpr (wantsWeight) write(dweight + j, weights);
      if constexpr (wantsBias) write(dbias + j, biases);
    });
  };
  constexpr std::true_type yes;
  constexpr std::false_type no;
  if (dweight && dbias && areApart<T>({dweight, 1, n, n}, {dbias, 1, n, n})) return sums(yes, yes);
  if (dweight) sums(yes, no);
  if (dbias) sums(no, yes);
}

} // namespace kernel

BURTORCH_END_NAMESPACE
