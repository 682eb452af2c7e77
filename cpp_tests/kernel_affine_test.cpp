// cpp_tests/kernel_affine_test.cpp — a linear layer, forward and backward, against plain loops
// SPDX-License-Identifier: MIT
#include "kernel_support.hpp"

#include <burtorch/kernel/affine.hpp>

#include <doctest/doctest.h>

#include <cstddef>

namespace {

namespace bk = burtorch::kernel;
using kernel_support::anyOf;
using kernel_support::Grid;
using kernel_support::worst;

using Long = long double;

TEST_CASE_TEMPLATE("forward, with and without bias", T, float, double, long double) {
  for (int round = 0; round < 200; ++round) {
    const std::size_t m = round % 3 == 0 ? 1 : anyOf(1, 70), n = anyOf(1, 70), k = anyOf(1, 250);
    const bool hasBias = round % 2 == 0;
    const bk::Store how = round % 5 == 0 ? bk::Store::add : bk::Store::assign;
    Grid<T> x(m, k), w(n, k), bias(1, n), y(m, n);
    const Grid<T> before = y;
    bk::affineForward(x.view(), w.view(), hasBias ? bias.data() : nullptr, y.view(), how);
    CAPTURE(m);
    CAPTURE(n);
    CAPTURE(k);
    CHECK(worst(y, k + 2, [&](std::size_t i, std::size_t j) {
            Long sum = (how == bk::Store::add ? before.at(i, j) : T(0)) +
                       Long(hasBias ? bias.at(0, j) : T(0));
            for (std::size_t p = 0; p < k; ++p) sum += Long(x.at(i, p)) * w.at(j, p);
            return sum;
          }) <= 1);
  }
}

TEST_CASE_TEMPLATE("backward, with and without what is optional", T, float, double, long double) {
  for (int round = 0; round < 200; ++round) {
    const std::size_t m = round % 2 == 0 ? 1 : anyOf(1, 70), n = anyOf(1, 70), k = anyOf(1, 120);
    const bool wantsInput = round % 3 != 0, hasBias = round % 5 != 0;
    const bk::Store how = round % 4 < 2 ? bk::Store::add : bk::Store::assign;
    const bool adds = how == bk::Store::add;
    Grid<T> x(m, k), w(n, k), dy(m, n), dx(m, k), dw(n, k), db(1, n);
    const Grid<T> dx0 = dx, dw0 = dw, db0 = db;
    auto input = dx.view();
    if (!wantsInput) input.first = nullptr;
    bk::affineBackward(x.view(), w.view(), dy.view(), input, dw.view(),
                       hasBias ? db.data() : nullptr, how);
    CAPTURE(m);
    CAPTURE(n);
    CAPTURE(k);
    CHECK(worst(dx, n + 1, [&](std::size_t i, std::size_t p) {
            Long sum = dx0.at(i, p);
            for (std::size_t j = 0; wantsInput && j < n; ++j) sum += Long(dy.at(i, j)) * w.at(j, p);
            return sum;
          }) <= 1);
    CHECK(worst(dw, m + 1, [&](std::size_t j, std::size_t p) {
            Long sum = adds ? dw0.at(j, p) : T(0);
            for (std::size_t i = 0; i < m; ++i) sum += Long(dy.at(i, j)) * x.at(i, p);
            return sum;
          }) <= 1);
    CHECK(worst(db, m + 1, [&](std::size_t, std::size_t j) {
            Long sum = adds || !hasBias ? db0.at(0, j) : T(0);
            for (std::size_t i = 0; hasBias && i < m; ++i) sum += Long(dy.at(i, j));
            return sum;
          }) <= 1);
  }
}

} // namespace
