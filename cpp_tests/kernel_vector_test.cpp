// cpp_tests/kernel_vector_test.cpp — dot products and sums of vectors of all small lengths
// SPDX-License-Identifier: MIT
#include "kernel_support.hpp"

#include <burtorch/kernel/vector.hpp>

#include <doctest/doctest.h>

#include <cstddef>

namespace {

namespace bk = burtorch::kernel;
using kernel_support::Grid;
using kernel_support::worst;

TEST_CASE_TEMPLATE("dot, axpy, add", T, float, double, long double) {
  for (std::size_t n = 0; n <= 140; ++n) {
    CAPTURE(n);
    Grid<T> x(1, n), y(1, n), z = y, sum = y, product(1, 1);
    product.at(0, 0) = bk::dot(x.data(), y.data(), n);
    bk::axpy(T(-3), x.data(), z.data(), n);
    bk::add(x.data(), sum.data(), n);
    CHECK(worst(product, n + 1, [&](std::size_t, std::size_t) {
            long double want = 0;
            for (std::size_t i = 0; i < n; ++i)
              want += static_cast<long double>(x.at(0, i)) * y.at(0, i);
            return want;
          }) <= 1);
    CHECK(worst(z, 4, [&](std::size_t, std::size_t i) {
            return y.at(0, i) - 3 * static_cast<long double>(x.at(0, i));
          }) <= 1);
    CHECK(worst(sum, 1, [&](std::size_t, std::size_t i) { return y.at(0, i) + x.at(0, i); }) == 0);
  }
}

} // namespace
