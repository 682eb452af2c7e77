// burtorch/kernel/convolution.hpp — an image times filters, at every place of a window
// SPDX-License-Identifier: MIT
//
// x is an image of g.channels in `groups` equal parts, w is outputs × (channels / groups · kernelHeight ·
// kernelWidth), y is outputs × windows. Each part of the channels goes with its part of the filters.
//
// The windows of one part of one image become the columns of a matrix in `space`; then it is a product of
// matrices. The space is that of one image: it stays in the cache, and is filled again on the way back.
#pragma once

#include <burtorch/kernel/matrix.hpp>
#include <burtorch/kernel/multiply.hpp>
#include <burtorch/kernel/vector.hpp>
#include <burtorch/kernel/windows.hpp>

#include <algorithm>
#include <cstddef>
#include <type_traits>

BURTORCH_BEGIN_NAMESPACE

namespace kernel {

// One of `groups` equal parts of the channels.
constexpr Windows partOf(Windows g, std::size_t groups) {
  g.channels /= groups;
  return g;
}
// How many numbers the space has.
constexpr std::size_t convolutionSpace(const Windows& g, std::size_t groups) {
  const Windows part = partOf(g, groups);
  return part.areElements() ? 0 : part.window() * part.count();
}

namespace detail {

// The windows of a part of an image as columns.
template <class T>
Matrix<const T> windowsOf(const Windows& part, const T* image, std::type_identity_t<T>* space) {
  const std::size_t n = part.count();
  if (part.areElements()) return {image, part.window(), n, n};
  gatherWindows(part, image, space);
  return {space, part.window(), n, n};
}

} // namespace detail

// y = w·windows of x, + bias of each output; bias may be null.
template <class T>
void convolutionForward(const Windows& g, std::size_t groups, const T* x, ConstMatrix<T> w,
                        const std::type_identity_t<T>* bias, T* y, T* space) {
  const Windows part = partOf(g, groups);
  const std::size_t n = g.count(), outputs = w.rows / groups;
  if (bias)
    for (std::size_t o = 0; o < w.rows; ++o) std::fill_n(y + o * n, n, bias[o]);
  for (std::size_t i = 0; i < groups; ++i)
    multiplyNN<T>(w.part(i * outputs, outputs, 0, w.cols),
                  detail::windowsOf(part, x + i * part.image(), space),
                  Matrix<T>{y + i * outputs * n, outputs, n, n}, bias ? Store::add : Store::assign);
}

// dx += …, dw (+)= dy·windowsᵀ, dbias (+)= the sum of each output's dy. Of dx, dw and dbias any may be
// null: not wanted.
template <class T>
void convolutionBackward(const Windows& g, std::size_t groups, const T* x, ConstMatrix<T> w,
                         const std::type_identity_t<T>* dy, T* dx, Matrix<T> dw,
                         std::type_identity_t<T>* dbias, T* space, Store parameters) {
  const Windows part = partOf(g, groups);
  const std::size_t n = g.count(), outputs = w.rows / groups;
  for (std::size_t o = 0; o < w.rows && dbias; ++o) {
    const T* const from = dy + o * n;
    const T sum = sumOfEach<T>(n, [&](std::size_t j, const auto& read, const auto&)
                                      BURTORCH_INLINE_LAMBDA { return read(from + j); });
    dbias[o] = parameters == Store::add ? dbias[o] + sum : sum;
  }
  for (std::size_t i = 0; i < groups; ++i) {
    const Matrix<const T> adjoint{dy + i * outputs * n, outputs, n, n};
    if (dw.first)
      multiplyNT<T>(adjoint, detail::windowsOf(part, x + i * part.image(), space),
                    dw.part(i * outputs, outputs, 0, dw.cols), parameters);
    if (!dx) continue;
    T* const image = dx + i * part.image();
    const bool straight = part.areElements();
    multiplyTN<T>(w.part(i * outputs, outputs, 0, w.cols), adjoint,
                  Matrix<T>{straight ? image : space, part.window(), n, n},
                  straight ? Store::add : Store::assign);
    if (!straight) addWindows(part, space, image);
  }
}

} // namespace kernel

BURTORCH_END_NAMESPACE
