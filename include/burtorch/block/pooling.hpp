// burtorch/block/pooling.hpp — maxPool2d, avgPool2d: one number for each window of each channel
// SPDX-License-Identifier: MIT
//
// Shapes: x has a row of channels·height·width numbers for each image, the result one of
// channels·rows·columns.
#pragma once

#include <burtorch/block/convolution.hpp>
#include <burtorch/block/describe.hpp>
#include <burtorch/kernel/pooling.hpp>
#include <burtorch/op/reduce.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

BURTORCH_BEGIN_NAMESPACE

namespace block {

// Views: x. Parameters: the windows.
template <class O> struct Pool {
  static constexpr bool isMax = std::is_same_v<O, op::MaxVarying>;
  static constexpr const char* name = isMax ? "maxPool2d" : "avgPool2d";
  static constexpr const char* symbol = isMax ? "max pool" : "avg pool";

  template <class Frame> static void forward(const Frame& f) {
    const auto x = f.value(0);
    const auto y = f.result(x.rows);
    const Windows g = windowsFrom(f.description.parameters());
    for (std::size_t i = 0; i < x.rows; ++i) kernel::poolForward<O>(g, x.row(i), y.row(i));
  }
  template <class Frame> static void pullback(const Frame& f) {
    if (!f.wants(0)) return;
    using T = typename Frame::Scalar;
    const auto x = f.value(0);
    const kernel::Matrix<const T> y = f.result(x.rows), dy = f.adjoint(x.rows);
    const Windows g = windowsFrom(f.description.parameters());
    for (std::size_t i = 0; i < x.rows; ++i)
      kernel::poolBackward<O>(g, x.row(i), y.row(i), dy.row(i), f.grad(0).row(i));
  }

  template <class Frame>
  static bool keepsSamples(const Frame& f, std::size_t view, std::size_t samples) {
    return hasWholeRows(f, view, samples);
  }

  template <class Parts> static auto expanded(const Parts& p) {
    const Windows g = windowsFrom(p.parameters);
    return eachRow(p.views[0], [&](const auto& image) {
      std::vector<typename Parts::V::Element> y;
      for (std::size_t c = 0; c < g.channels; ++c)
        for (std::size_t i = 0; i < g.rows(); ++i)
          for (std::size_t j = 0; j < g.cols(); ++j) {
            decltype(y) window;
            for (std::size_t ki = 0; ki < g.kernelHeight; ++ki)
              for (std::size_t kj = 0; kj < g.kernelWidth; ++kj)
                window.push_back(image[(c * g.height + i * g.strideHeight + ki) * g.width +
                                       j * g.strideWidth + kj]);
            if constexpr (isMax) y.push_back(reduceMax(window));
            else y.push_back(reduceMean(window));
          }
      return y;
    });
  }

  template <AnyView V> static std::string complaint(const V& x, const Windows& g) {
    if (g.paddingHeight != 0 || g.paddingWidth != 0) return "windows have no padding";
    return complaintOf(g, x);
  }
  template <class Parts> static void record(const Parts& p) {
    p.demandOperands(1);
    p.demand(p.parameters.size() == windowsWords);
    const Windows g = windowsFrom(p.parameters);
    const auto& x = p.views[0];
    p.demand(complaint(x, g).empty());
    p.demandSizes(detail::sizeProduct(x.rows(), detail::sizeProduct(g.channels, g.count())));
    apply(x, g);
  }
  template <AnyView V> static V apply(const V& x, const Windows& g) {
    if (const std::string why = complaint(x, g); !why.empty())
      detail::fail(ErrorKind::badArgument, std::string(name) + ": " + why);
    const auto words = wordsOf(g);
    return applyBlock<Pool>(x.rows(), detail::demandProduct(g.channels, g.count()), 0,
                            std::span<const V>(&x, 1), std::span<const std::size_t>(words));
  }
};
using MaxPool = Pool<op::MaxVarying>;
using AvgPool = Pool<op::MeanVarying>;

} // namespace block

// The largest number of each window (of equal ones the first takes the gradient); their mean.
template <AnyView V> V maxPool2d(const V& x, const Windows& windows) {
  return block::MaxPool::apply(x, windows);
}
template <AnyView V> V avgPool2d(const V& x, const Windows& windows) {
  return block::AvgPool::apply(x, windows);
}

BURTORCH_END_NAMESPACE
