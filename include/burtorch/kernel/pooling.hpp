// burtorch/kernel/pooling.hpp — a reduction of the table over each window of each channel
// SPDX-License-Identifier: MIT
//
// O is op::MaxVarying or op::MeanVarying: value and derivative are the ones written there. Nothing is kept:
// the way back finds the largest number of a window again.
#pragma once

#include <burtorch/kernel/windows.hpp>

#include <cstddef>
#include <type_traits>

BURTORCH_BEGIN_NAMESPACE

namespace kernel {

namespace detail {

// A window of one channel as a range. The compiler knows the sizes of a fixed one.
template <class T, std::size_t fixedHeight, std::size_t fixedWidth> struct ChannelWindow {
  const T* first;
  std::size_t stride, kernelHeight, kernelWidth;

  constexpr std::size_t height() const { return fixedHeight ? fixedHeight : kernelHeight; }
  constexpr std::size_t width() const { return fixedWidth ? fixedWidth : kernelWidth; }
  constexpr std::size_t size() const { return height() * width(); }
  constexpr std::size_t place(std::size_t i) const { return i / width() * stride + i % width(); }
  constexpr const T& operator[](std::size_t i) const { return first[place(i)]; }
};

// visit(window, its place in the image, its number), for all channels.
template <class T, class Visit>
BURTORCH_INLINE void eachChannelWindow(const Windows& g, const T* image, const Visit& visit) {
  const auto over = [&]<class W>(const W& like) BURTORCH_INLINE_LAMBDA {
    const std::size_t rows = g.rows(), cols = g.cols();
    std::size_t number = 0;
    for (std::size_t c = 0; c < g.channels; ++c)
      for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t j = 0; j < cols; ++j, ++number) {
          const std::size_t at = (c * g.height + i * g.strideHeight) * g.width + j * g.strideWidth;
          W window = like;
          window.first = image + at;
          visit(window, at, number);
        }
  };
  if (g.kernelHeight == 2 && g.kernelWidth == 2) over(ChannelWindow<T, 2, 2>{image, g.width, 2, 2});
  else over(ChannelWindow<T, 0, 0>{image, g.width, g.kernelHeight, g.kernelWidth});
}

} // namespace detail

// y[channels × windows]
template <class O, class T> BURTORCH_KERNEL void poolForward(const Windows& g, const T* x, T* y) {
  detail::eachChannelWindow(g, x,
                            [&](const auto& window, std::size_t, std::size_t number)
                                BURTORCH_INLINE_LAMBDA { y[number] = O::forward(window); });
}

// dx += …
template <class O, class T>
BURTORCH_KERNEL void poolBackward(const Windows& g, const T* x, const T* y, const T* dy, T* dx) {
  detail::eachChannelWindow(
      g, x, [&](const auto& window, std::size_t at, std::size_t number) BURTORCH_INLINE_LAMBDA {
        O::pullback(window, y[number], dy[number],
                    [&](std::size_t i, const T& gain) BURTORCH_INLINE_LAMBDA {
                      T& to = dx[at + window.place(i)];
                      to = to + gain;
                    });
      });
}

} // namespace kernel

BURTORCH_END_NAMESPACE
