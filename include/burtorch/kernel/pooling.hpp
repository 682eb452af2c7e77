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

// A window of one channel as a range.
template <class T> struct ChannelWindow {
  const T* first;
  std::size_t stride, height, width;

  constexpr std::size_t size() const { return height * width; }
  constexpr std::size_t place(std::size_t i) const { return i / width * stride + i % width; }
  constexpr const T& operator[](std::size_t i) const { return first[place(i)]; }
};

// Windows of 2 × 2, the usual ones, go through registers of several windows.
inline bool areFour(const Windows& g) { return g.kernelHeight == 2 && g.kernelWidth == 2; }

// visit(window, its place in the image, its number), for all channels.
template <class T, class Visit>
BURTORCH_INLINE void eachChannelWindow(const Windows& g, const T* image, const Visit& visit) {
  const std::size_t rows = g.rows(), cols = g.cols();
  std::size_t number = 0;
  for (std::size_t c = 0; c < g.channels; ++c)
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < cols; ++j, ++number) {
        const std::size_t at = (c * g.height + i * g.strideHeight) * g.width + j * g.strideWidth;
        visit(ChannelWindow<T>{image + at, g.width, g.kernelHeight, g.kernelWidth}, at, number);
      }
}

// Registers of windows of 2 × 2: lane l of each of the four is of window l.
template <class T> struct FourPacks {
  Pack<T> part[4];
  static constexpr std::size_t size() { return 4; }
  const Pack<T>& operator[](std::size_t i) const { return part[i]; }
};

// visit(windows, place in the image of the first, its number, n) with n windows of 2 × 2 side by side, at
// most a register of them. No branch depends on what the image holds.
template <std::size_t step, class T, class Visit>
BURTORCH_INLINE void eachFourPacks(const Windows& g, const T* image, const Visit& visit) {
  constexpr std::size_t L = lanes<T>;
  const std::size_t rows = g.rows(), cols = g.cols(), stride = step ? step : g.strideWidth;
  std::size_t number = 0;
  const auto some = [&](std::size_t at, std::size_t n, auto count) BURTORCH_INLINE_LAMBDA {
    alignas(64) T parts[4][L] = {};
    for (std::size_t l = 0; l < (count ? count : n); ++l) {
      const T* const from = image + at + l * stride;
      parts[0][l] = from[0];
      parts[1][l] = from[1];
      parts[2][l] = from[g.width];
      parts[3][l] = from[g.width + 1];
    }
    visit(FourPacks<T>{{load(parts[0]), load(parts[1]), load(parts[2]), load(parts[3])}}, at,
          number, n);
    number += n;
  };
  for (std::size_t c = 0; c < g.channels; ++c)
    for (std::size_t i = 0; i < rows; ++i) {
      const std::size_t first = (c * g.height + i * g.strideHeight) * g.width;
      std::size_t j = 0;
      for (; j + L <= cols; j += L)
        some(first + j * stride, L, std::integral_constant<std::size_t, L>{});
      if (j != cols) some(first + j * stride, cols - j, std::integral_constant<std::size_t, 0>{});
    }
}

template <std::size_t step, class O, class T>
BURTORCH_INLINE void poolFourForward(const Windows& g, const T* x, T* y) {
  eachFourPacks<step>(g, x,
                      [&](const auto& windows, std::size_t, std::size_t number, std::size_t n)
                          BURTORCH_INLINE_LAMBDA {
                            const Pack<T> best = O::forward(windows);
                            if (n == lanes<T>) store(y + number, best);
                            else store(y + number, best, n);
                          });
}

template <std::size_t step, class O, class T>
BURTORCH_INLINE void poolFourBackward(const Windows& g, const T* x, const T* y, const T* dy,
                                      T* dx) {
  const std::size_t stride = step ? step : g.strideWidth;
  eachFourPacks<step>(g, x,
                      [&](const auto& windows, std::size_t at, std::size_t number, std::size_t n)
                          BURTORCH_INLINE_LAMBDA {
                            const auto read = [&](const T* from) BURTORCH_INLINE_LAMBDA {
                              return n == lanes<T> ? load(from + number) : load(from + number, n);
                            };
                            alignas(64) T gains[4][lanes<T>];
                            O::pullback(windows, read(y), read(dy),
                                        [&](std::size_t i, const Pack<T>& gain)
                                            BURTORCH_INLINE_LAMBDA { store(gains[i], gain); });
                            for (std::size_t l = 0; l < n; ++l) {
                              T* const to = dx + at + l * stride;
                              to[0] += gains[0][l];
                              to[1] += gains[1][l];
                              to[g.width] += gains[2][l];
                              to[g.width + 1] += gains[3][l];
                            }
                          });
}

} // namespace detail

// y[channels × windows]
template <class O, class T> BURTORCH_KERNEL void poolForward(const Windows& g, const T* x, T* y) {
  if constexpr (isPacked<T>)
    if (detail::areFour(g))
      return g.strideWidth == 2 ? detail::poolFourForward<2, O>(g, x, y)
                                : detail::poolFourForward<0, O>(g, x, y);
  detail::eachChannelWindow(g, x,
                            [&](const auto& window, std::size_t, std::size_t number)
                                BURTORCH_INLINE_LAMBDA { y[number] = O::forward(window); });
}

// dx += …
template <class O, class T>
BURTORCH_KERNEL void poolBackward(const Windows& g, const T* x, const T* y, const T* dy, T* dx) {
  if constexpr (isPacked<T>)
    if (detail::areFour(g))
      return g.strideWidth == 2 ? detail::poolFourBackward<2, O>(g, x, y, dy, dx)
                                : detail::poolFourBackward<0, O>(g, x, y, dy, dx);
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
