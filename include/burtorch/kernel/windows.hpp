// burtorch/kernel/windows.hpp — windows that slide over an image: sizes, and their elements as a matrix
// SPDX-License-Identifier: MIT
//
// An image is channels × height × width numbers. A window is kernelHeight × kernelWidth of them, in all
// channels; it moves by the strides and begins outside the image by the paddings, where there are zeros.
#pragma once

#include <burtorch/kernel/lanes.hpp>
#include <burtorch/kernel/vector.hpp>

#include <algorithm>
#include <cstddef>

BURTORCH_BEGIN_NAMESPACE

namespace kernel {

struct Windows {
  std::size_t channels, height, width;
  std::size_t kernelHeight, kernelWidth;
  std::size_t strideHeight = 1, strideWidth = 1;
  std::size_t paddingHeight = 0, paddingWidth = 0;

  constexpr std::size_t image() const { return channels * height * width; }
  constexpr std::size_t window() const { return channels * kernelHeight * kernelWidth; }
  // How many windows there are, one below and one beside the other.
  constexpr std::size_t rows() const {
    return (height + 2 * paddingHeight - kernelHeight) / strideHeight + 1;
  }
  constexpr std::size_t cols() const {
    return (width + 2 * paddingWidth - kernelWidth) / strideWidth + 1;
  }
  constexpr std::size_t count() const { return rows() * cols(); }
  // The matrix of all windows is the image itself.
  constexpr bool areElements() const {
    return kernelHeight == 1 && kernelWidth == 1 && strideHeight == 1 && strideWidth == 1 &&
           paddingHeight == 0 && paddingWidth == 0;
  }
};

namespace detail {

// Visits the matrix whose columns are the windows, row by row: for each place within a window, and for
// each row of windows, inside(place in the image, place in the matrix, n) with n windows that have the
// place within the image, and outside(place in the matrix, n) for those that do not.
template <class Inside, class Outside>
BURTORCH_INLINE void eachPlace(const Windows& g, const Inside& inside, const Outside& outside) {
  const std::size_t rows = g.rows(), cols = g.cols();
  std::size_t at = 0;
  for (std::size_t c = 0; c < g.channels; ++c)
    for (std::size_t ki = 0; ki < g.kernelHeight; ++ki)
      for (std::size_t kj = 0; kj < g.kernelWidth; ++kj) {
        // Windows [first, last) of a row have column kj within the image.
        const std::size_t before = g.paddingWidth > kj ? g.paddingWidth - kj : 0;
        const std::size_t first = std::min((before + g.strideWidth - 1) / g.strideWidth, cols);
        const std::size_t beyond = g.width + g.paddingWidth; // > kj
        const std::size_t last = std::clamp(
            beyond > kj ? (beyond - kj - 1) / g.strideWidth + 1 : std::size_t{0}, first, cols);
        for (std::size_t i = 0; i < rows; ++i, at += cols) {
          const std::size_t y = i * g.strideHeight + ki; // paddingHeight more than in the image
          if (y < g.paddingHeight || y >= g.height + g.paddingHeight) {
            outside(at, cols);
            continue;
          }
          const std::size_t x = first * g.strideWidth + kj - g.paddingWidth;
          if (first != 0) outside(at, first);
          if (last != first)
            inside((c * g.height + y - g.paddingHeight) * g.width + x, at + first, last - first);
          if (last != cols) outside(at + last, cols - last);
        }
      }
}

// n numbers; the last register overlaps the one before instead of being filled in part.
template <class T> BURTORCH_INLINE void copyShort(const T* from, T* to, std::size_t n) {
  constexpr std::size_t L = fewerLanes<T>;
  if (n < L) {
    for (std::size_t i = 0; i < n; ++i) to[i] = from[i];
    return;
  }
  for (std::size_t i = 0; i + L < n; i += L) store(to + i, load<L>(from + i));
  store(to + n - L, load<L>(from + n - L));
}

} // namespace detail

// matrix[window() × count()]: a column is a window of the image.
template <class T> BURTORCH_KERNEL void gatherWindows(const Windows& g, const T* image, T* matrix) {
  const auto outside = [&](std::size_t at, std::size_t n)
                           BURTORCH_INLINE_LAMBDA { std::fill_n(matrix + at, n, T(0)); };
  if (g.strideWidth == 1)
    return detail::eachPlace(
        g,
        [&](std::size_t from, std::size_t to, std::size_t n)
            BURTORCH_INLINE_LAMBDA { detail::copyShort(image + from, matrix + to, n); },
        outside);
  detail::eachPlace(
      g,
      [&](std::size_t from, std::size_t to, std::size_t n) BURTORCH_INLINE_LAMBDA {
        for (std::size_t i = 0; i < n; ++i) matrix[to + i] = image[from + i * g.strideWidth];
      },
      outside);
}

// image += each element of the matrix, where it came from.
template <class T> BURTORCH_KERNEL void addWindows(const Windows& g, const T* matrix, T* image) {
  const auto outside = [](std::size_t, std::size_t) BURTORCH_INLINE_LAMBDA {};
  if (g.strideWidth == 1)
    return detail::eachPlace(
        g,
        [&](std::size_t to, std::size_t from, std::size_t n) BURTORCH_INLINE_LAMBDA {
          eachPack<T, fewerLanes<T>>(
              n, [&](std::size_t i, const auto& read, const auto& write) BURTORCH_INLINE_LAMBDA {
                write(image + to + i, read(image + to + i) + read(matrix + from + i));
              });
        },
        outside);
  detail::eachPlace(
      g,
      [&](std::size_t to, std::size_t from, std::size_t n) BURTORCH_INLINE_LAMBDA {
        for (std::size_t i = 0; i < n; ++i) {
          T& place = image[to + i * g.strideWidth];
          place = place + matrix[from + i];
        }
      },
      outside);
}

} // namespace kernel

BURTORCH_END_NAMESPACE
