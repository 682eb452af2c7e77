// burtorch/block/batch_norm.hpp — every channel shifted and scaled to mean 0 and variance 1 over a batch
// SPDX-License-Identifier: MIT
//
// Shapes: a row of x is a sample of channels·size numbers; weight, bias and the running statistics have a
// number for each channel.
#pragma once

#include <burtorch/block/affine.hpp>
#include <burtorch/block/describe.hpp>
#include <burtorch/kernel/batch_norm.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

BURTORCH_BEGIN_NAMESPACE

// Whose mean and variance a batch norm takes: those of the batch, or the running ones.
enum class Statistics { running, batch };

namespace block {

// Views: x, weight, bias, running mean, running variance. Parameters: channels; whose statistics; what
// becomes of the gradients of weight and bias. Keeps eps, momentum; mean and inverse deviation of each
// channel; space for two sums of each channel.
//
// With the batch's statistics, forward moves the values of the running ones by `momentum` towards them: the one
// block that writes values of its operands.
struct BatchNorm {
  static constexpr const char* name = "batchNorm";
  static constexpr const char* symbol = "batch norm";
  static constexpr std::size_t momentum = 1; // its place among the kept numbers
  static constexpr std::size_t gradients = 2;
  template <class Frame> static bool isAssigned(const Frame&, std::size_t view) {
    return view == 1 || view == 2;
  }
  template <class Frame> static bool assigns(const Frame& f) {
    return storeOf(f, gradients) == kernel::Store::assign;
  }

  template <class Frame> static void forward(const Frame& f) {
    using T = typename Frame::Scalar;
    const auto x = f.value(0);
    const kernel::Channels c = channels(f);
    T *const mean = f.kept + 2, *const inverse = mean + c.count;
    const auto running = [&](std::size_t view) { return f.values + f.description.view(view)[0]; };
    if (ofBatch(f)) {
      kernel::channelMoments(c, x, mean, inverse);
      const double n = static_cast<double>(x.rows * c.size);
      const T rate = f.kept[momentum], unbiased = T(n / (n - 1));
      for (std::size_t i = 0; i < c.count && !isZero(rate); ++i) {
        T &m = running(3)[i], &v = running(4)[i];
        m = m + rate * (mean[i] - m);
        v = v + rate * (unbiased * inverse[i] - v);
      }
    } else {
      std::copy_n(running(3), c.count, mean);
      std::copy_n(running(4), c.count, inverse);
    }
    for (std::size_t i = 0; i < c.count; ++i)
      inverse[i] = kernel::detail::inverseStdOf<T>(inverse[i], f.kept[0]);
    kernel::batchNormForward(c, x, f.value(1).first, f.value(2).first, mean, inverse,
                             f.result(x.rows));
  }

  template <class Frame> static void pullback(const Frame& f) {
    using T = typename Frame::Scalar;
    const auto x = f.value(0);
    const kernel::Channels c = channels(f);
    T *const mean = f.kept + 2, *const inverse = mean + c.count, *const sums = inverse + c.count,
             *const normals = sums + c.count;
    auto dx = f.grad(0);
    if (!f.wants(0)) dx.first = nullptr;
    const T* const weight = f.value(1).first;
    kernel::batchNormBackward(c, x, weight, mean, inverse, f.adjoint(x.rows), dx, sums, normals,
                              ofBatch(f));
    const bool adds = storeOf(f, 2) == kernel::Store::add;
    const auto give = [&](std::size_t view, bool isAdded, const auto& gain) {
      if (!f.wants(view)) return;
      T* const to = f.grad(view).first;
      for (std::size_t i = 0; i < c.count; ++i) to[i] = isAdded ? to[i] + gain(i) : gain(i);
    };
    give(1, adds, [&](std::size_t i) { return normals[i]; });
    give(2, adds, [&](std::size_t i) { return sums[i]; });
    if (ofBatch(f)) return;
    give(3, true, [&](std::size_t i) { return T(-(weight[i] * inverse[i] * sums[i])); });
    give(4, true, [&](std::size_t i) {
      return T(T(-0.5) * weight[i] * inverse[i] * inverse[i] * normals[i]);
    });
  }

  // The batch's statistics mix samples.
  template <class Frame>
  static bool keepsSamples(const Frame& f, std::size_t view, std::size_t samples) {
    return !ofBatch(f) && view == 0 && hasWholeRows(f, view, samples);
  }

  template <class Parts> static auto expanded(const Parts& p) {
    using X = typename Parts::V::Element;
    const auto& x = p.views[0];
    const std::size_t count = p.parameters[0], size = x.cols() / count;
    std::vector<X> y(x.size());
    for (std::size_t c = 0; c < count; ++c) {
      std::vector<std::size_t> places;
      for (std::size_t i = 0; i < x.rows(); ++i)
        for (std::size_t j = 0; j < size; ++j) places.push_back(i * x.cols() + c * size + j);
      const auto numbers = rowOf(places.size(), [&](std::size_t i) { return x[places[i]]; });
      const auto finish = [&](const std::vector<X>& centred, const X& variance) {
        const X factor = inverseRoot(variance + p.kept[0]) * p.views[1][c];
        for (std::size_t i = 0; i < places.size(); ++i)
          y[places[i]] = centred[i] * factor + p.views[2][c];
      };
      if (p.parameters[1] != 0) {
        const auto moments = momentsOf(numbers);
        finish(moments.centred, moments.variance);
      } else {
        const X mean = p.views[3][c];
        finish(rowOf(numbers.size(), [&](std::size_t i) { return numbers[i] - mean; }),
               p.views[4][c]);
      }
    }
    return y;
  }

  // Why the operands do not fit; empty if they do.
  template <AnyView V>
  static std::string complaint(std::span<const V> views, std::size_t count, bool batch) {
    const V& x = views[0];
    if (count == 0 || x.cols() % count != 0)
      return "rows of " + detail::shapeText(x.rows(), x.cols()) + " are not " +
             std::to_string(count) + " channels";
    for (const V& each : views.subspan(1))
      if (each.size() != count)
        return std::to_string(each.size()) + " weights, biases, means or variances for " +
               std::to_string(count) + " channels";
    if (batch && x.rows() * (x.cols() / count) == 1)
      return "one number in each channel of " + detail::shapeText(x.rows(), x.cols()) +
             " has no variance";
    return {};
  }
  template <class Parts> static void record(const Parts& p) {
    p.demandOperands(5, 3);
    p.demand(p.parameters[1] <= 1 && p.kept.size() > momentum);
    const auto& v = p.views;
    p.demand(complaint(p.viewsFrom(0), p.parameters[0], p.parameters[1] != 0).empty());
    p.demandSizes(v[0].size(), kept(p.parameters[0]));
    // The statistics in the file have moved already; the momentum itself comes back with what is kept.
    batchNorm(v[0], v[1], v[2], v[3], v[4], p.parameters[0],
              static_cast<Statistics>(p.parameters[1]), 0, p.kept[0], parameterGradients(p, 2));
  }
  static std::size_t kept(std::size_t count) { return 2 + 4 * count; }

private:
  template <class Frame> static bool ofBatch(const Frame& f) { return f.parameter(1) != 0; }
  template <class Frame> static kernel::Channels channels(const Frame& f) {
    return {f.parameter(0), f.value(0).cols / f.parameter(0)};
  }
};

} // namespace block

// (x − mean) / √(variance + eps) · weight + bias for each channel. With the batch's own (biased) statistics
// the running ones move by `momentum` towards them (the variance without bias), now and whenever
// the block is computed anew.
template <AnyView V>
V batchNorm(const V& x, const V& weight, const V& bias, const V& runningMean,
            const V& runningVariance, std::size_t channels, Statistics statistics,
            std::type_identity_t<typename V::Scalar> momentum = typename V::Scalar(0.1),
            std::type_identity_t<typename V::Scalar> eps = typename V::Scalar(1e-5),
            ParameterGradients gradients = ParameterGradients::accumulate) {
  const std::array all{x, weight, bias, runningMean, runningVariance};
  const std::span<const V> views(all);
  const std::string why =
      block::BatchNorm::complaint(views, channels, statistics == Statistics::batch);
  if (!why.empty()) detail::fail(ErrorKind::badArgument, "batchNorm: " + why);
  const std::array parameters{channels, static_cast<std::size_t>(statistics),
                              static_cast<std::size_t>(gradients)};
  const std::array numbers{eps, momentum};
  return applyBlock<block::BatchNorm>(x.rows(), x.cols(), block::BatchNorm::kept(channels), views,
                                      std::span<const std::size_t>(parameters),
                                      std::span<const typename V::Scalar>(numbers));
}

BURTORCH_END_NAMESPACE
