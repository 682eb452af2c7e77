// cpp_tests/kernel_layer_norm_test.cpp — layer norm against its formula and central differences
// SPDX-License-Identifier: MIT
#include "kernel_support.hpp"

#include <burtorch/kernel/layer_norm.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>

namespace {

namespace bk = burtorch::kernel;
using kernel_support::anyOf;
using kernel_support::Grid;
using kernel_support::inner;
using kernel_support::isGradient;
using kernel_support::worst;

TEST_CASE_TEMPLATE("values", T, float, double, long double) {
  for (std::size_t n = 1; n <= 70; ++n) {
    CAPTURE(n);
    const std::size_t m = anyOf(1, 4);
    const T eps = static_cast<T>(1e-2);
    Grid<T> x(m, n), gamma(1, n), beta(1, n), y(m, n), mean(1, m), inverseStd(1, m);
    const auto meanOf = [&](std::size_t i) {
      long double sum = 0;
      for (std::size_t j = 0; j < n; ++j) sum += x.at(i, j);
      return sum / static_cast<long double>(n);
    };
    const auto inverseStdOf = [&](std::size_t i) {
      long double sum = 0;
      for (std::size_t j = 0; j < n; ++j)
        sum += (x.at(i, j) - meanOf(i)) * (x.at(i, j) - meanOf(i));
      return 1 / std::sqrt(sum / static_cast<long double>(n) + eps);
    };
    bk::layerNormForward(x.view(), gamma.data(), beta.data(), eps, y.view(), mean.data(),
                         inverseStd.data());
    CHECK(worst(mean, 8, [&](std::size_t, std::size_t i) { return meanOf(i); }) <= 1);
    CHECK(worst(inverseStd, 80, [&](std::size_t, std::size_t i) { return inverseStdOf(i); }) <= 1);
    CHECK(worst(y, 80, [&](std::size_t i, std::size_t j) {
            return (x.at(i, j) - meanOf(i)) * inverseStdOf(i) * gamma.at(0, j) + beta.at(0, j);
          }) <= 1);
  }
}

TEST_CASE("gradients are those of central differences") {
  for (const std::size_t n : {1u, 2u, 3u, 4u, 5u, 8u, 13u, 24u})
    for (const bk::Store how : {bk::Store::assign, bk::Store::add}) {
      CAPTURE(n);
      const std::size_t m = 3;
      Grid<double> x(m, n), gamma(1, n), beta(1, n), y(m, n), mean(1, m), inverseStd(1, m),
          dy(m, n), dx(m, n), dgamma(1, n), dbeta(1, n);
      const Grid<double> dx0 = dx;
      Grid<double> dgamma0 = dgamma, dbeta0 = dbeta;
      const auto loss = [&] {
        bk::layerNormForward(x.view(), gamma.data(), beta.data(), 0.1, y.view(), mean.data(),
                             inverseStd.data());
        return inner(y, dy);
      };
      loss();
      bk::layerNormBackward(x.view(), gamma.data(), mean.data(), inverseStd.data(), dy.view(),
                            dx.view(), dgamma.data(), dbeta.data(), how);
      if (how == bk::Store::assign)
        for (std::size_t j = 0; j < n; ++j) dgamma0.at(0, j) = dbeta0.at(0, j) = 0;
      CHECK(isGradient(dx, dx0, x, loss));
      CHECK(isGradient(dgamma, dgamma0, gamma, loss));
      CHECK(isGradient(dbeta, dbeta0, beta, loss));
    }
}

} // namespace
