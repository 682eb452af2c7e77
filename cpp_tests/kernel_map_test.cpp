// cpp_tests/kernel_map_test.cpp — every operation of the table on vectors equals itself on numbers
// SPDX-License-Identifier: MIT
#include "kernel_support.hpp"

#include <burtorch/kernel/map.hpp>
#include <burtorch/op/table.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <limits>

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
    bk::mapBackward2<O>(a.data(), b.data(), y.data(), dy.data(), da.data(), db.data(), n);
    Grid<T> both = da0; // as if a and b were one array
    bk::mapBackward2<O>(a.data(), b.data(), y.data(), dy.data(), both.data(), both.data(), n);
    bk::mapBackward2<O, T>(a.data(), b.data(), y.data(), dy.data(), nullptr, nullptr, n);
    bool isRight = y.isIntact() && da.isIntact() && db.isIntact();
    for (std::size_t i = 0; i < n; ++i) {
      const T u = a.at(0, i), v = b.at(0, i), z = y.at(0, i), g = dy.at(0, i);
      isRight &= near(z, O::forward(u, v));
      isRight &= near(da.at(0, i), da0.at(0, i) + O::pullbackX(u, v, z, g));
      isRight &= near(db.at(0, i), db0.at(0, i) + O::pullbackY(u, v, z, g));
      isRight &= near(both.at(0, i), da.at(0, i) + O::pullbackY(u, v, z, g));
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

TEST_CASE("in place") {
  Grid<float> x(1, 13);
  const Grid<float> before = x;
  bk::mapForward<op::Relu>(x.data(), x.data(), 13);
  for (std::size_t i = 0; i < 13; ++i) CHECK(x.at(0, i) == std::fmax(before.at(0, i), 0.0f));
}

} // namespace
