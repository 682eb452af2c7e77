// cpp_tests/kernel_softmax_test.cpp — softmax, its logarithm and cross-entropy against their formulas
// SPDX-License-Identifier: MIT
#include "kernel_support.hpp"

#include <burtorch/kernel/softmax.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace {

namespace bk = burtorch::kernel;
using kernel_support::anyOf;
using kernel_support::Grid;
using kernel_support::inner;
using kernel_support::isGradient;
using kernel_support::worst;

// log Σ e^x of row i
template <class T> long double logSum(const Grid<T>& x, std::size_t i) {
  long double sum = 0;
  for (std::size_t j = 0; j < x.cols(); ++j) sum += std::exp(static_cast<long double>(x.at(i, j)));
  return std::log(sum);
}

std::vector<std::uint32_t> targetsFor(std::size_t rows, std::size_t cols) {
  std::vector<std::uint32_t> targets(rows);
  for (auto& each : targets) each = static_cast<std::uint32_t>(anyOf(0, cols - 1));
  return targets;
}

TEST_CASE_TEMPLATE("values", T, float, double, long double) {
  for (std::size_t n = 1; n <= 70; ++n) {
    const std::size_t m = anyOf(1, 4);
    CAPTURE(n);
    Grid<T> x(m, n), y(m, n), logs(m, n), p(m, n), losses(1, m);
    const auto targets = targetsFor(m, n);
    bk::softmaxForward(x.view(), y.view());
    bk::logSoftmaxForward(x.view(), logs.view());
    bk::crossEntropyForward(x.view(), targets.data(), losses.data(), p.view());
    const auto probability = [&](std::size_t i, std::size_t j) {
      return std::exp(x.at(i, j) - logSum(x, i));
    };
    CHECK(worst(y, 8, probability) <= 1);
    CHECK(worst(p, 8, probability) <= 1);
    CHECK(worst(logs, 16,
                [&](std::size_t i, std::size_t j) { return x.at(i, j) - logSum(x, i); }) <= 1);
    CHECK(worst(losses, 16, [&](std::size_t, std::size_t i) {
            return logSum(x, i) - x.at(i, targets[i]);
          }) <= 1);
    Grid<T> same = x;
    bk::softmaxForward(same.view(), same.view());
    CHECK(worst(same, 8, probability) <= 1);
  }
}

TEST_CASE("gradients are those of central differences") {
  for (const std::size_t n : {1u, 3u, 4u, 5u, 8u, 13u, 27u}) {
    CAPTURE(n);
    const std::size_t m = 3;
    Grid<double> x(m, n), y(m, n), dy(m, n), dx(m, n), losses(1, m), dlosses(1, m);
    const Grid<double> before = dx;
    const auto targets = targetsFor(m, n);

    const auto softmax = [&] {
      bk::softmaxForward(x.view(), y.view());
      return inner(y, dy);
    };
    softmax();
    bk::softmaxBackward(y.view(), dy.view(), dx.view());
    CHECK(isGradient(dx, before, x, softmax));

    dx = before;
    const auto logSoftmax = [&] {
      bk::logSoftmaxForward(x.view(), y.view());
      return inner(y, dy);
    };
    logSoftmax();
    bk::logSoftmaxBackward(y.view(), dy.view(), dx.view());
    CHECK(isGradient(dx, before, x, logSoftmax));

    dx = before;
    const auto crossEntropy = [&] {
      bk::crossEntropyForward(x.view(), targets.data(), losses.data(), y.view());
      return inner(losses, dlosses);
    };
    crossEntropy();
    bk::crossEntropyBackward(y.view(), targets.data(), dlosses.data(), dx.view());
    CHECK(isGradient(dx, before, x, crossEntropy));
  }
}

TEST_CASE_TEMPLATE("huge numbers, far apart", T, float, double) {
  constexpr T huge = std::numeric_limits<T>::max() / 4;
  for (const std::size_t n : {2u, 9u, 21u})
    for (std::size_t peak = 0; peak < n; ++peak) { // wherever it is
      std::vector<T> x(n, -huge), y(n), loss(2), p(2 * n);
      x[peak] = huge;
      bk::softmaxForward<T>({x.data(), 1, n, n}, {y.data(), 1, n, n});
      for (std::size_t j = 0; j < n; ++j) CHECK(y[j] == (j == peak ? 1 : 0));
      const std::size_t other = (peak + 1) % n;
      const std::uint8_t targets[2] = {static_cast<std::uint8_t>(peak),
                                       static_cast<std::uint8_t>(other)};
      bk::crossEntropyForward<T>({x.data(), 2, n, 0}, targets, loss.data(), {p.data(), 2, n, n});
      CHECK(loss[0] == 0);
      CHECK(loss[1] == 2 * huge);
      bk::logSoftmaxForward<T>({x.data(), 1, n, n}, {y.data(), 1, n, n});
      CHECK(y[peak] == 0);
      CHECK(y[other] == -2 * huge);
    }
}

} // namespace
