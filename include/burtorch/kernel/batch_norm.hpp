// burtorch/kernel/batch_norm.hpp — channels brought to mean 0 and variance 1 over all samples, scaled, shifted
// SPDX-License-Identifier: MIT
//
// A row of x holds `channels` runs of `size` numbers. y = (x − mean)·inverseStd·weight + bias, where each of
// these four has a number for each channel.
#pragma once

#include <burtorch/kernel/lanes.hpp>
#include <burtorch/kernel/layer_norm.hpp>
#include <burtorch/kernel/matrix.hpp>
#include <burtorch/kernel/vector.hpp>

#include <cstddef>
#include <type_traits>

BURTORCH_BEGIN_NAMESPACE

namespace kernel {

struct Channels {
  std::size_t count, size;
};

namespace detail {

// visit(column, of, read, write) for registers of columns: of(p) is p's number of their channel. Where a
// channel is one column, registers hold neighbours; else numbers of one channel.
template <class T, class Visit>
BURTORCH_INLINE void eachChannelPack(const Channels& c, const Visit& visit) {
  if (c.size == 1)
    return eachPack<T>(
        c.count, [&](std::size_t j, const auto& read, const auto& write) BURTORCH_INLINE_LAMBDA {
          visit(
              j, [&](const T* p) BURTORCH_INLINE_LAMBDA { return read(p + j); }, read, write);
        });
  for (std::size_t i = 0; i < c.count; ++i)
    eachPack<T>(c.size,
                [&](std::size_t j, const auto& read, const auto& write) BURTORCH_INLINE_LAMBDA {
                  visit(
                      i * c.size + j, [&](const T* p) BURTORCH_INLINE_LAMBDA { return fill(p[i]); },
                      read, write);
                });
}

// sums[channel] = Σ term(row, column, of, read)
template <class T, class Term>
BURTORCH_INLINE void channelSums(const Channels& c, std::size_t rows, T* sums, const Term& term) {
  if (c.size == 1)
    return eachPack<T>(c.count, [&](std::size_t j, const auto& read,
                                    const auto& write) BURTORCH_INLINE_LAMBDA {
      Pack<T> sum = fill(T(0));
      for (std::size_t row = 0; row < rows; ++row)
        sum =
            sum + term(
                      row, j, [&](const T* p) BURTORCH_INLINE_LAMBDA { return read(p + j); }, read);
      write(sums + j, sum);
    });
  for (std::size_t i = 0; i < c.count; ++i) {
    T sum = T(0);
    for (std::size_t row = 0; row < rows; ++row)
      sum = sum + sumOfEach<T>(c.size, [&](std::size_t j, const auto& read,
                                           const auto&) BURTORCH_INLINE_LAMBDA {
              return term(
                  row, i * c.size + j,
                  [&](const T* p) BURTORCH_INLINE_LAMBDA { return fill(p[i]); }, read);
            });
    sums[i] = sum;
  }
}

} // namespace detail

// Mean and (biased) variance of each channel.
template <class T>
BURTORCH_NOINLINE void channelMoments(const Channels& c, ConstMatrix<T> x, T* mean, T* variance) {
  const T share = T(1) / T(static_cast<double>(x.rows * c.size));
  detail::channelSums<T>(c, x.rows, mean,
                         [&](std::size_t row, std::size_t column, const auto&, const auto& read)
                             BURTORCH_INLINE_LAMBDA { return read(x.row(row) + column); });
  for (std::size_t i = 0; i < c.count; ++i) mean[i] = mean[i] * share;
  detail::channelSums<T>(c, x.rows, variance,
                         [&](std::size_t row, std::size_t column, const auto& of, const auto& read)
                             BURTORCH_INLINE_LAMBDA {
                               const Pack<T> d = read(x.row(row) + column) - of(mean);
                               return d * d;
                             });
  for (std::size_t i = 0; i < c.count; ++i) variance[i] = variance[i] * share;
}

template <class T>
BURTORCH_NOINLINE void
batchNormForward(const Channels& c, ConstMatrix<T> x, const std::type_identity_t<T>* weight,
                 const std::type_identity_t<T>* bias, const std::type_identity_t<T>* mean,
                 const std::type_identity_t<T>* inverseStd, Matrix<T> y) {
  for (std::size_t i = 0; i < x.rows; ++i)
    detail::eachChannelPack<T>(c, [&](std::size_t j, const auto& of, const auto& read,
                                      const auto& write) BURTORCH_INLINE_LAMBDA {
      write(y.row(i) + j,
            multiplyAdd<T>((read(x.row(i) + j) - of(mean)) * of(inverseStd), of(weight), of(bias)));
    });
}

// With h = (x − mean)·inverseStd: sums = Σ dy and normals = Σ dy·h of each channel, which are the
// gradients of bias and weight; dx += weight·inverseStd·(dy − average of dy − h·average of dy·h), without the
// averages if mean and inverseStd do not depend on x. dx may be null: not wanted.
template <class T>
BURTORCH_NOINLINE void
batchNormBackward(const Channels& c, ConstMatrix<T> x, const std::type_identity_t<T>* weight,
                  const std::type_identity_t<T>* mean, const std::type_identity_t<T>* inverseStd,
                  ConstMatrix<T> dy, Matrix<T> dx, T* sums, T* normals, bool ofBatch) {
  const auto normal =
      [&](std::size_t i, std::size_t j, const auto& of, const auto& read)
          BURTORCH_INLINE_LAMBDA { return (read(x.row(i) + j) - of(mean)) * of(inverseStd); };
  detail::channelSums<T>(c, x.rows, sums,
                         [&](std::size_t i, std::size_t j, const auto&, const auto& read)
                             BURTORCH_INLINE_LAMBDA { return read(dy.row(i) + j); });
  detail::channelSums<T>(
      c, x.rows, normals,
      [&](std::size_t i, std::size_t j, const auto& of, const auto& read)
          BURTORCH_INLINE_LAMBDA { return read(dy.row(i) + j) * normal(i, j, of, read); });
  const Pack<T> share = fill(ofBatch ? T(1) / T(static_cast<double>(x.rows * c.size)) : T(0));
  for (std::size_t i = 0; i < x.rows && dx.first; ++i)
    detail::eachChannelPack<T>(c, [&](std::size_t j, const auto& of, const auto& read,
                                      const auto& write) BURTORCH_INLINE_LAMBDA {
      const Pack<T> g = read(dy.row(i) + j);
      const Pack<T> rest =
          ofBatch ? Pack<T>(g - share * (of(sums) + normal(i, j, of, read) * of(normals))) : g;
      write(dx.row(i) + j, multiplyAdd<T>(of(weight) * of(inverseStd), rest, read(dx.row(i) + j)));
    });
}

} // namespace kernel

BURTORCH_END_NAMESPACE
