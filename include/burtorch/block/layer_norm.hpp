// burtorch/block/layer_norm.hpp — every row shifted and scaled to mean 0 and variance 1
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/block/affine.hpp>
#include <burtorch/block/describe.hpp>
#include <burtorch/kernel/layer_norm.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <string>

BURTORCH_BEGIN_NAMESPACE

namespace block {

// Views: x, weight, bias. Keeps eps, then the mean and the inverse deviation of each row.
// Parameters: what becomes of the gradients of weight and bias.
struct LayerNorm {
  static constexpr const char* name = "layerNorm";
  static constexpr const char* symbol = "layer norm";
  static constexpr std::size_t gradients = 0;
  template <class Frame> static bool isAssigned(const Frame&, std::size_t view) {
    return view != 0;
  }
  static constexpr const char* meaning =
      "each row shifted and scaled to mean 0 and variance 1, times weight, plus bias";
  template <class Frame> static bool assigns(const Frame& f) {
    return storeOf(f, gradients) == kernel::Store::assign;
  }

  template <class Frame> static void forward(const Frame& f) {
    const auto x = f.value(0);
    kernel::layerNormForward(x, f.value(1).first, f.value(2).first, f.kept[0], f.result(x.rows),
                             f.kept + 1, f.kept + 1 + x.rows);
  }
  template <class Frame> static void pullback(const Frame& f) {
    const auto x = f.value(0);
    auto dx = f.grad(0);
    if (!f.wants(0)) dx.first = nullptr;
    kernel::layerNormBackward(x, f.value(1).first, f.kept + 1, f.kept + 1 + x.rows,
                              f.adjoint(x.rows), dx, f.wants(1) ? f.grad(1).first : nullptr,
                              f.wants(2) ? f.grad(2).first : nullptr, storeOf(f, 0));
  }

  template <class Frame>
  static bool keepsSamples(const Frame& f, std::size_t view, std::size_t samples) {
    return view == 0 && hasWholeRows(f, view, samples);
  }

  template <class Row, class Weights, class Number>
  static constexpr auto ofRow(const Row& x, const Weights& weight, const Weights& bias,
                              const Number& eps) {
    const auto moments = momentsOf(x);
    const auto inverse = inverseRoot(moments.variance + eps);
    return rowOf(countOf(x),
                 [&](std::size_t j) { return moments.centred[j] * inverse * weight[j] + bias[j]; });
  }
  template <class Parts> static auto expanded(const Parts& p) {
    return eachRow(p.views[0],
                   [&](const auto& row) { return ofRow(row, p.views[1], p.views[2], p.kept[0]); });
  }
  template <class Parts> static void record(const Parts& p) {
    p.demandOperands(3, 1);
    const auto& x = p.views[0];
    p.demandSizes(x.size(), 1 + detail::sizeProduct(2, x.rows()));
    layerNorm(x, p.views[1], p.views[2], p.kept[0], parameterGradients(p, 0));
  }
};

} // namespace block

// (x − mean) / √(variance + eps) · weight + bias for each row, with the biased variance.
template <AnyView V>
V layerNorm(const V& x, const V& weight, const V& bias,
            std::type_identity_t<typename V::Scalar> eps = typename V::Scalar(1e-5),
            ParameterGradients gradients = ParameterGradients::accumulate) {
  if (weight.size() != x.cols() || bias.size() != x.cols())
    detail::fail(ErrorKind::badArgument, "layerNorm: " + std::to_string(weight.size()) +
                                             " weights and " + std::to_string(bias.size()) +
                                             " biases for rows of " +
                                             detail::shapeText(x.rows(), x.cols()));
  const std::array all{x, weight, bias};
  const std::array parameters{static_cast<std::size_t>(gradients)};
  return applyBlock<block::LayerNorm>(x.rows(), x.cols(), 1 + 2 * x.rows(), std::span<const V>(all),
                                      std::span<const std::size_t>(parameters), std::span(&eps, 1));
}

BURTORCH_END_NAMESPACE
