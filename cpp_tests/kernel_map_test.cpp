// cpp_tests/kernel_map_test.cpp — every operation of the table on vectors equals itself on numbers
// SPDX-License-Identifier: MIT
#include "kernel_support.hpp"

#include <burtorch/kernel/map.hpp>
#include <burtorch/op/table.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace {

namespace bk = burtorch::kernel;
namespace op = burtorch::op;
using kernel_support::Grid;

// Numbers at which every operation of the table is defined.
template <class T> Grid<T> between(std::size_t n, double low, double high) {
  Grid<T> x(1, n);
  for (std::size_t i = 0; i < n; ++i)
    x.at(0, i) = static_cast<T>(low + (high - low) * (static_cast<double>(x.at(0, i)) + 1) / 2);
  return x;
}

// Equal but for some rounding: vector functions are not those of the standard library.
template <class T> bool near(T got, T want) {
  return std::fabs(got - want) <= 32 * std::numeric_limits<T>::epsilon() * (1 + std::fabs(want));
}

template <class O, class T> void checkUnary() {
  for (std::size_t n = 0; n <= 40; ++n) {
    Grid<T> x = between<T>(n, 0.1, 0.9), y(1, n), dy(1, n), dx(1, n);
    const Grid<T> before = dx;
    bk::mapForward<O>(x.data(), y.data(), n);
    bk::mapBackward<O>(x.data(), y.data(), dy.data(), dx.data(), n);
    bool isRight = y.isIntact() && dx.isIntact();
    for (std::size_t i = 0; i < n; ++i) {
      const T a = x.at(0, i), z = y.at(0, i);
      isRight &= near(z, O::forward(a));
      isRight &= near(dx.at(0, i), before.at(0, i) + O::pullback(a, z, dy.at(0, i)));
    }
    CAPTURE(O::symbol);
    CAPTURE(n);
    CHECK(isRight);
  }
}

template <class O, class T> void checkBinary() {
  for (std::size_t n = 0; n <= 40; ++n) {
    Grid<T> a = between<T>(n, 0.1, 0.9), b = between<T>(n, 0.1, 0.9), y(1, n), dy(1, n), da(1, n),
            db(1, n);
    const Grid<T> da0 = da, db0 = db;
    bk::mapForward2<O>(a.data(), b.data(), y.data(), n);
    bk::mapBackward2<O, bk::Side::x>(a.data(), b.data(), y.data(), dy.data(), da.data(), n);
    bk::mapBackward2<O, bk::Side::y>(a.data(), b.data(), y.data(), dy.data(), db.data(), n);
    bool isRight = y.isIntact() && da.isIntact() && db.isIntact();
    for (std::size_t i = 0; i < n; ++i) {
      const T u = a.at(0, i), v = b.at(0, i), z = y.at(0, i), g = dy.at(0, i);
      isRight &= near(z, O::forward(u, v));
      isRight &= near(da.at(0, i), da0.at(0, i) + O::pullbackX(u, v, z, g));
      isRight &= near(db.at(0, i), db0.at(0, i) + O::pullbackY(u, v, z, g));
    }
    CAPTURE(O::symbol);
    CAPTURE(n);
    CHECK(isRight);
  }
}

TEST_CASE_TEMPLATE("operations of one operand", T, float, double, long double) {
#define BURTORCH_CHECK(Struct, function) checkUnary<op::Struct, T>();
  BURTORCH_UNARY_OPERATIONS(BURTORCH_CHECK)
#undef BURTORCH_CHECK
}

TEST_CASE_TEMPLATE("operations of two operands", T, float, double, long double) {
#define BURTORCH_CHECK(Struct, function) checkBinary<op::Struct, T>();
  BURTORCH_BINARY_OPERATIONS(BURTORCH_CHECK)
#undef BURTORCH_CHECK
}

// Rows, columns and single numbers beside a matrix, at sizes around what is repeated at a time.
TEST_CASE_TEMPLATE("operands of other shapes", T, float, double, long double) {
  using O = op::BinaryDiv;
  constexpr std::size_t shapes[][4] = {{3, 5, 1, 5},   {3, 5, 3, 1}, {3, 5, 1, 1},
                                       {1, 1, 3, 5},   {3, 1, 1, 5}, {1, 300, 1, 1},
                                       {2, 300, 2, 1}, {4, 1, 1, 1}, {2, 513, 1, 1}};
  for (const auto& [rowsX, colsX, rowsY, colsY] : shapes) {
    const std::size_t rows = std::max(rowsX, rowsY), cols = std::max(colsX, colsY);
    const auto filled = [](std::size_t m, std::size_t n, double from) {
      std::vector<T> x(m * n);
      for (std::size_t i = 0; i < x.size(); ++i)
        x[i] = static_cast<T>(from + static_cast<double>(i % 17) / 8);
      return x;
    };
    const auto x = filled(rowsX, colsX, 0.5), y = filled(rowsY, colsY, 1.5),
               dz = filled(rows, cols, -1);
    std::vector<T> z(rows * cols), dx(x.size(), T(1)), dy(y.size(), T(1));
    const bk::Matrix<const T> a{x.data(), rowsX, colsX, colsX}, b{y.data(), rowsY, colsY, colsY},
        g{dz.data(), rows, cols, cols};
    const bk::Matrix<T> c{z.data(), rows, cols, cols};
    bk::broadcastForward<T>(bk::mapForward2<O, T>, a, b, c);
    bk::broadcastBackward<bk::Side::x, T>(bk::mapBackward2<O, bk::Side::x, T>, a, b, c, g,
                                          dx.data());
    bk::broadcastBackward<bk::Side::y, T>(bk::mapBackward2<O, bk::Side::y, T>, a, b, c, g,
                                          dy.data());
    std::vector<T> wantX(x.size(), T(1)), wantY(y.size(), T(1));
    bool isRight = true;
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < cols; ++j) {
        const std::size_t atX = (rowsX == 1 ? 0 : i * colsX) + (colsX == 1 ? 0 : j),
                          atY = (rowsY == 1 ? 0 : i * colsY) + (colsY == 1 ? 0 : j),
                          at = i * cols + j;
        isRight &= near(z[at], O::forward(x[atX], y[atY]));
        wantX[atX] += O::pullbackX(x[atX], y[atY], z[at], dz[at]);
        wantY[atY] += O::pullbackY(x[atX], y[atY], z[at], dz[at]);
      }
    for (std::size_t i = 0; i < x.size(); ++i) isRight &= near(dx[i], wantX[i]);
    for (std::size_t i = 0; i < y.size(); ++i) isRight &= near(dy[i], wantY[i]);
    CAPTURE(rowsX);
    CAPTURE(colsX);
    CAPTURE(rowsY);
    CAPTURE(colsY);
    CHECK(isRight);
  }
}

TEST_CASE_TEMPLATE("an adjoint of 0 gives nothing, whatever the derivative", T, float, double,
                   long double) {
  const std::size_t n = 9;
  std::vector<T> zeros(n), x(n), y(n), dx(n, T(2));
  bk::mapForward<op::Sqrt>(x.data(), y.data(), n); // at 0 its derivative is infinite
  bk::mapBackward<op::Sqrt>(x.data(), y.data(), zeros.data(), dx.data(), n);
  bk::mapForward2<op::BinaryDiv>(x.data(), x.data(), y.data(), n); // 0/0
  bk::mapBackward2<op::BinaryDiv, bk::Side::x>(x.data(), x.data(), y.data(), zeros.data(),
                                               dx.data(), n);
  bk::mapBackward2<op::BinaryDiv, bk::Side::y>(x.data(), x.data(), y.data(), zeros.data(),
                                               dx.data(), n);
  for (const T& each : dx) CHECK(each == T(2));
}

TEST_CASE("in place") {
  Grid<float> x(1, 13);
  const Grid<float> before = x;
  bk::mapForward<op::Relu>(x.data(), x.data(), 13);
  for (std::size_t i = 0; i < 13; ++i) CHECK(x.at(0, i) == std::fmax(before.at(0, i), 0.0f));
}

} // namespace
