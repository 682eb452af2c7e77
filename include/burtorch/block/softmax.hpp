// burtorch/block/softmax.hpp — softmax, log-softmax and cross-entropy of the rows of a view
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/block/describe.hpp>
#include <burtorch/kernel/softmax.hpp>

#include <cstddef>
#include <span>
#include <string>

BURTORCH_BEGIN_NAMESPACE

namespace block {

// What blocks share that make a row of each row of their one view; ofRow is their definition.
template <class B> struct OfEachRow {
  template <AnyView V> static V of(const V& x) {
    return applyBlock<B>(x.rows(), x.cols(), 0, std::span<const V>(&x, 1));
  }

  template <class Frame>
  static bool keepsSamples(const Frame& f, std::size_t view, std::size_t samples) {
    return hasWholeRows(f, view, samples);
  }

  template <class Parts> static auto expanded(const Parts& p) {
    return eachRow(p.views[0], [](const auto& row) { return B::ofRow(row); });
  }
  template <class Parts> static void record(const Parts& p) {
    p.demandOperands(1);
    p.demandSizes(p.views[0].size());
    of(p.views[0]);
  }
};

struct Softmax : OfEachRow<Softmax> {
  static constexpr const char* name = "softmax";
  static constexpr const char* symbol = "softmax";
  static constexpr const char* meaning = "e to the power of x over the sum of these, in each row";
  template <class Frame> static void forward(const Frame& f) {
    kernel::softmaxForward(f.value(0), f.result(f.value(0).rows));
  }
  template <class Frame> static void pullback(const Frame& f) {
    const std::size_t rows = f.value(0).rows;
    using T = std::remove_reference_t<decltype(*f.values)>;
    if (f.wants(0))
      kernel::softmaxBackward(kernel::Matrix<const T>(f.result(rows)), f.adjoint(rows), f.grad(0));
  }

  template <class Row> static constexpr auto ofRow(const Row& x) {
    const auto largest = largestOf(x);
    auto y = rowOf(countOf(x), [&](std::size_t j) { return exponential(x[j] - largest); });
    const auto sum = sumOf(y);
    for (auto& each : y) each = each / sum;
    return y;
  }
};

struct LogSoftmax : OfEachRow<LogSoftmax> {
  static constexpr const char* name = "logSoftmax";
  static constexpr const char* symbol = "log softmax";
  static constexpr const char* meaning = "the logarithm of softmax, in each row";
  template <class Frame> static void forward(const Frame& f) {
    kernel::logSoftmaxForward(f.value(0), f.result(f.value(0).rows));
  }
  template <class Frame> static void pullback(const Frame& f) {
    const std::size_t rows = f.value(0).rows;
    using T = std::remove_reference_t<decltype(*f.values)>;
    if (f.wants(0))
      kernel::logSoftmaxBackward(kernel::Matrix<const T>(f.result(rows)), f.adjoint(rows),
                                 f.grad(0));
  }

  template <class Row> static auto ofRow(const Row& x) {
    const auto largest = largestOf(x);
    auto y = rowOf(countOf(x), [&](std::size_t j) { return x[j] - largest; });
    const auto logSum =
        logarithm(sumOf(rowOf(countOf(x), [&](std::size_t j) { return exponential(y[j]); })));
    for (auto& each : y) each = each - logSum;
    return y;
  }
};

// Parameters: the target of each row. Keeps the probabilities.
struct CrossEntropy {
  static constexpr const char* name = "crossEntropy";
  static constexpr const char* symbol = "cross-entropy";
  static constexpr const char* meaning = "-log_softmax(logits)[target] of each row";
  template <class Frame> static void forward(const Frame& f) {
    kernel::crossEntropyForward(f.value(0), f.description.parameters(), f.result(1).first,
                                probabilities(f));
  }
  template <class Frame> static void pullback(const Frame& f) {
    using T = std::remove_reference_t<decltype(*f.values)>;
    if (f.wants(0))
      kernel::crossEntropyBackward(kernel::Matrix<const T>(probabilities(f)),
                                   f.description.parameters(), f.adjoint(1).first, f.grad(0));
  }

  template <class Frame>
  static bool keepsSamples(const Frame& f, std::size_t view, std::size_t samples) {
    return hasWholeRows(f, view, samples);
  }

  template <class Parts> static auto expanded(const Parts& p) {
    const auto& x = p.views[0];
    return rowOf(x.rows(),
                 [&](std::size_t i) { return -LogSoftmax::ofRow(x.row(i))[p.parameters[i]]; });
  }
  template <class Parts> static void record(const Parts& p) {
    p.demandOperands(1);
    p.demandSizes(p.views[0].rows(), p.views[0].size());
    crossEntropy(p.views[0], p.parameters);
  }

private:
  template <class Frame> static auto probabilities(const Frame& f) {
    const auto x = f.value(0);
    return kernel::Matrix<std::remove_reference_t<decltype(*f.values)>>{f.kept, x.rows, x.cols,
                                                                        x.cols};
  }
};

} // namespace block

// eˣ over its sum, of each row.
template <AnyView V> V softmax(const V& x) { return block::Softmax::of(x); }
// Its logarithm, without leaving the range of the numbers.
template <AnyView V> V logSoftmax(const V& x) { return block::LogSoftmax::of(x); }

// -log softmax(x)[target] of each row: one number per row.
template <AnyView V, ContiguousIntegers Targets>
V crossEntropy(const V& x, const Targets& targetOfRow) {
  const auto targets = detail::spanOf(targetOfRow);
  if (targets.size() != x.rows())
    detail::fail(ErrorKind::badArgument, "crossEntropy: " + std::to_string(targets.size()) +
                                             " targets for logits of " +
                                             detail::shapeText(x.rows(), x.cols()));
  detail::demandBelow(targets, x.cols(), "crossEntropy: target");
  return applyBlock<block::CrossEntropy>(1, x.rows(), x.size(), std::span<const V>(&x, 1), {}, {},
                                         targets);
}

BURTORCH_END_NAMESPACE
