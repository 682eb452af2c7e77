// burtorch/block/convolution.hpp — conv2d: filters over images, with strides, paddings and groups
// SPDX-License-Identifier: MIT
//
// Shapes: x has a row of channels·height·width numbers for each image, the weight a row of channels /
// groups · kernelHeight · kernelWidth numbers for each output. The result has a row of outputs·rows·columns
// numbers for each image. A signal of one dimension is an image of height 1.
#pragma once

#include <burtorch/base/sizes.hpp>
#include <burtorch/block/affine.hpp>
#include <burtorch/block/describe.hpp>
#include <burtorch/kernel/convolution.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

BURTORCH_BEGIN_NAMESPACE

using kernel::Windows;

namespace block {

// Windows among the parameters of a block, from the first of them on.
inline constexpr std::size_t windowsWords = 9;
inline std::array<std::size_t, windowsWords> wordsOf(const Windows& g) {
  return {g.channels,     g.height,      g.width,         g.kernelHeight, g.kernelWidth,
          g.strideHeight, g.strideWidth, g.paddingHeight, g.paddingWidth};
}
template <class Words> Windows windowsFrom(const Words& w) {
  return {w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8]};
}

// Why there are no such windows over the rows of x; empty if there are.
template <AnyView V> std::string complaintOf(const Windows& g, const V& x) {
  const auto text = [](std::size_t h, std::size_t w) { return detail::shapeText(h, w); };
  if (detail::sizeProduct(detail::sizeProduct(g.channels, g.height), g.width) != x.cols())
    return "rows of " + detail::shapeText(x.rows(), x.cols()) + " are not images of " +
           std::to_string(g.channels) + "×" + text(g.height, g.width);
  if (g.kernelHeight == 0 || g.kernelWidth == 0 || g.strideHeight == 0 || g.strideWidth == 0)
    return "windows of " + text(g.kernelHeight, g.kernelWidth) + " with strides of " +
           text(g.strideHeight, g.strideWidth) + "; all are at least 1";
  if (g.paddingHeight >= g.kernelHeight || g.paddingWidth >= g.kernelWidth)
    return "paddings of " + text(g.paddingHeight, g.paddingWidth) +
           " are not smaller than the windows of " + text(g.kernelHeight, g.kernelWidth);
  if (g.kernelHeight - g.paddingHeight > g.height + g.paddingHeight ||
      g.kernelWidth - g.paddingWidth > g.width + g.paddingWidth)
    return "windows of " + text(g.kernelHeight, g.kernelWidth) + " do not fit into images of " +
           text(g.height, g.width) + " with paddings of " + text(g.paddingHeight, g.paddingWidth);
  return {};
}

// Views: weight, bias (or none), x. Parameters: the windows; groups; has it a bias; what becomes of the
// gradients of weight and bias. Keeps space to work in, for one image.
struct Convolution {
  static constexpr const char* name = "conv2d";
  static constexpr const char* symbol = "conv";
  static constexpr std::size_t gradients = windowsWords + 2;
  template <class Frame> static bool isAssigned(const Frame& f, std::size_t view) {
    return view <= f.parameter(windowsWords + 1);
  }
  template <class Frame> static bool assigns(const Frame& f) {
    return storeOf(f, gradients) == kernel::Store::assign;
  }

  template <class Frame> static void forward(const Frame& f) {
    const std::size_t hasBias = f.parameter(windowsWords + 1);
    const auto x = f.value(1 + hasBias);
    const auto y = f.result(x.rows);
    const Windows g = windowsFrom(f.description.parameters());
    for (std::size_t i = 0; i < x.rows; ++i)
      kernel::convolutionForward(g, f.parameter(windowsWords), x.row(i), f.value(0),
                                 hasBias ? f.value(1).first : nullptr, y.row(i), f.kept);
  }
  template <class Frame> static void pullback(const Frame& f) {
    const std::size_t hasBias = f.parameter(windowsWords + 1), view = 1 + hasBias;
    const auto x = f.value(view);
    const auto dy = f.adjoint(x.rows);
    auto dw = f.grad(0);
    if (!f.wants(0)) dw.first = nullptr;
    const Windows g = windowsFrom(f.description.parameters());
    for (std::size_t i = 0; i < x.rows; ++i)
      kernel::convolutionBackward(g, f.parameter(windowsWords), x.row(i), f.value(0), dy.row(i),
                                  f.wants(view) ? f.grad(view).row(i) : nullptr, dw,
                                  hasBias && f.wants(1) ? f.grad(1).first : nullptr, f.kept,
                                  i == 0 ? storeOf(f, gradients) : kernel::Store::add);
  }

  template <class Frame>
  static bool keepsSamples(const Frame& f, std::size_t view, std::size_t samples) {
    return view == 1 + f.parameter(windowsWords + 1) && hasWholeRows(f, view, samples);
  }

  template <class Parts> static auto expanded(const Parts& p) {
    const Windows g = windowsFrom(p.parameters);
    const std::size_t part = g.channels / p.parameters[windowsWords];
    const auto& w = p.views[0];
    const std::size_t outputs = w.rows() / p.parameters[windowsWords]; // of a group
    const bool hasBias = p.parameters[windowsWords + 1] != 0;
    return eachRow(p.views.back(), [&](const auto& image) {
      std::vector<typename Parts::V::Element> y;
      for (std::size_t o = 0; o < w.rows(); ++o)
        for (std::size_t i = 0; i < g.rows(); ++i)
          for (std::size_t j = 0; j < g.cols(); ++j) {
            decltype(y) inside, weights; // what of the window lies within the image
            for (std::size_t c = 0, at = 0; c < part; ++c)
              for (std::size_t ki = 0; ki < g.kernelHeight; ++ki)
                for (std::size_t kj = 0; kj < g.kernelWidth; ++kj, ++at) {
                  const std::size_t row = i * g.strideHeight + ki, col = j * g.strideWidth + kj;
                  if (row < g.paddingHeight || row >= g.height + g.paddingHeight ||
                      col < g.paddingWidth || col >= g.width + g.paddingWidth)
                    continue;
                  const std::size_t channel = o / outputs * part + c;
                  inside.push_back(image[(channel * g.height + row - g.paddingHeight) * g.width +
                                         col - g.paddingWidth]);
                  weights.push_back(w(o, at));
                }
            y.push_back(hasBias ? dotWithBias(inside, weights, p.views[1][o])
                                : dot(inside, weights));
          }
      return y;
    });
  }

  // Why the operands do not fit; empty if they do.
  template <AnyView V>
  static std::string complaint(const V& x, const V& weight, const V& bias, const Windows& g,
                               std::size_t groups) {
    if (std::string why = complaintOf(g, x); !why.empty()) return why;
    if (groups == 0 || g.channels % groups != 0 || weight.rows() % groups != 0)
      return std::to_string(g.channels) + " channels and " + std::to_string(weight.rows()) +
             " outputs can't be shared by " + std::to_string(groups) + " groups";
    if (detail::sizeProduct(detail::sizeProduct(g.channels / groups, g.kernelHeight),
                            g.kernelWidth) != weight.cols())
      return "weights of " + detail::shapeText(weight.rows(), weight.cols()) +
             " are not filters of " + std::to_string(g.channels / groups) + "×" +
             detail::shapeText(g.kernelHeight, g.kernelWidth);
    if (!bias.isEmpty() && bias.size() != weight.rows())
      return std::to_string(bias.size()) + " biases for " + std::to_string(weight.rows()) +
             " outputs";
    return {};
  }
  template <class Parts> static void record(const Parts& p) {
    p.demand(p.parameters.size() == windowsWords + 3 && p.parameters[windowsWords + 1] <= 1);
    const bool hasBias = p.parameters[windowsWords + 1] != 0;
    p.demandOperands(2u + hasBias);
    const Windows g = windowsFrom(p.parameters);
    const std::size_t groups = p.parameters[windowsWords];
    const auto bias = hasBias ? p.views[1] : typename Parts::V{};
    const auto& x = p.views.back();
    p.demand(complaint(x, p.views[0], bias, g, groups).empty());
    p.demandSizes(detail::sizeProduct(x.rows(), detail::sizeProduct(p.views[0].rows(), g.count())),
                  kernel::convolutionSpace(g, groups));
    conv2d(x, p.views[0], bias, g, groups, parameterGradients(p, windowsWords + 2));
  }
};

} // namespace block

// Filters over the images in the rows of x. An empty bias stands for none.
template <AnyView V>
V conv2d(const V& x, const V& weight, const V& bias, const Windows& windows, std::size_t groups = 1,
         ParameterGradients gradients = ParameterGradients::accumulate) {
  const std::string why = block::Convolution::complaint(x, weight, bias, windows, groups);
  if (!why.empty()) detail::fail(ErrorKind::badArgument, "conv2d: " + why);
  const bool hasBias = !bias.isEmpty();
  const std::array<V, 3> views{weight, hasBias ? bias : x, x};
  const auto words = block::wordsOf(windows);
  const std::array rest{groups, std::size_t{hasBias}, static_cast<std::size_t>(gradients)};
  return applyBlock<block::Convolution>(
      x.rows(), detail::demandProduct(weight.rows(), windows.count()),
      kernel::convolutionSpace(windows, groups), std::span<const V>(views.data(), hasBias ? 3 : 2),
      std::span<const std::size_t>(words), {}, std::span<const std::size_t>(rest));
}

BURTORCH_END_NAMESPACE
