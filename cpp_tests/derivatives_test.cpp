// cpp_tests/derivatives_test.cpp — every operation of the table: forward against reverse against differences, twice
// SPDX-License-Identifier: MIT
#include "every_operation.hpp"

#include <burtorch/run/derivatives.hpp>
#include <burtorch/run/replay.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace bt = burtorch;

namespace {

using D = bt::dual<double>;
using Point = std::vector<double>;

// The k-th of every operation in every form, as a function.
struct Case {
  std::size_t k;
  auto operator()(auto x) const {
    using V = std::remove_cv_t<std::ranges::range_value_t<decltype(x)>>;
    return every::operation(std::span<const V>(x))[k].root;
  }
};

std::vector<std::string> names() {
  bt::Tape<double> tape;
  std::vector<bt::Value<double>> x;
  for (int i = 0; i < 5; ++i) x.emplace_back(tape, 0.5);
  std::vector<std::string> all;
  for (const auto& each : every::operation(std::span<const bt::Value<double>>(x)))
    all.push_back(each.name);
  return all;
}

Point gradientOf(const Case& f, const Point& x) {
  return bt::jacobian([&](auto p) { return std::array{f(p)}; }, x);
}
double valueOf(const Case& f, const Point& x) { return bt::jvp(f, x, Point(x.size())).value; }
Point moved(Point x, const Point& v, double by) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += by * v[i];
  return x;
}
// Σ x·v; where v is 0, nothing, not even 0·∞.
double along(const Point& x, const Point& v) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (v[i] != 0) sum += x[i] * v[i];
  return sum;
}
// Up to a part of y, or of the largest of what was added up to it.
bool same(double x, double y, double tolerance, const Point& terms = {}) {
  double scale = 1 + std::abs(y);
  for (const double each : terms) scale = std::max(scale, std::abs(each));
  return x == y || (std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= tolerance * scale;
}

const std::vector<Point> ordinary{{0.75, 0.3, 0.6, 0.45, 0.2},
                                  {0.35, 1.25, -0.6, 1.4, -2.2},
                                  {-0.55, 2.1, 0.9, -1.3, 0.15},
                                  {0.62, -0.8, 1.7, 0.25, 3.1}};
// Zeros, ties, bounds of every_operation's clamps and the plain number that it takes as an operand.
const std::vector<Point> kinks{
    {0, 0, 0, 0, 0},       {0.5, 0.5, 0.5, 0.5, 0.5}, {-2, -2, -2, -2, -2}, {0.1, 0, 0.1, 0, 0.1},
    {-0.1, 1.5, 2, 2, -2}, {1.5, 1.5, 1, 1.5, 0},     {9, -9, 9, -9, 9},    {0, 1, 1, 0, 1},
    {1, 0, 0, 1, 1},       {-9, 0.25, -9, 0.25, 0},   {0, -1, 0, -1, 0},    {1, -1, 1, -1, 1}};
const std::vector<Point> directions{
    {1, 0, 0, 0, 0}, {0, 1, 0, 0, 0}, {1, 1, 1, 1, 1}, {0.7, -1.3, 0.4, 2.1, -0.6}};

// The slope and the curvature along v by every road: they agree.
void checkRoads(const Case& f, const std::string& name, const Point& x, const Point& v) {
  const Point gradient = gradientOf(f, x);
  const double slope = along(gradient, v);
  const auto forward = bt::jvp(f, x, v);
  INFO(name, " at (", x[0], ", ", x[1], ", ", x[2], ", …), along (", v[0], ", ", v[1], ", …)");
  CHECK(same(forward.slope, slope, 1e-12, gradient));

  const auto second = bt::hvp(f, x, v);
  CHECK(same(second.value, forward.value, 0));
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(same(second.gradient[i], gradient[i], 1e-12));

  std::vector<D> inner, direction; // forward over forward
  for (std::size_t i = 0; i < x.size(); ++i) {
    inner.emplace_back(x[i], v[i]);
    direction.emplace_back(v[i]);
  }
  const auto twice = bt::jvp(f, inner, direction);
  CHECK(same(twice.slope.value, slope, 1e-12, gradient));
  CHECK(same(twice.slope.tangent, along(second.product, v), 1e-12, second.product));

  bt::Tape<double> tape; // and a recording, run over duals
  std::vector<bt::Value<double>> leaves;
  for (const double each : x) leaves.emplace_back(tape, each + 0.03);
  const auto root = f(std::span<const bt::Value<double>>(leaves));
  const bt::Recording<double> recording(leaves, root);
  auto w = recording.workspace<D>();
  std::vector<D> rows(x.size());
  const D y = recording.valueAndGradient(w, inner, rows);
  CHECK(same(y.tangent, forward.slope, 0));
  for (std::size_t i = 0; i < x.size(); ++i) {
    CHECK(same(rows[i].value, gradient[i], 1e-12));
    CHECK(same(rows[i].tangent, second.product[i], 1e-12));
  }
}

TEST_CASE("every operation, forward against reverse, to second order") {
  const auto all = names();
  for (std::size_t k = 0; k < all.size(); ++k)
    for (const auto& points : {ordinary, kinks})
      for (const Point& x : points)
        for (const Point& v : directions) checkRoads(Case{k}, all[k], x, v);
}

TEST_CASE("every operation, reverse against central differences, to second order") {
  const auto all = names();
  const double step = 1e-5;
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (all[k].starts_with("mulByConstant")) continue; // leaves a derivative out: see below
    const Case f{k};
    int checked = 0;
    for (const Point& x : ordinary)
      for (const Point& v : directions) {
        if (std::isnan(valueOf(f, moved(x, v, step)) + valueOf(f, moved(x, v, -step)))) continue;
        ++checked;
        INFO(all[k], " at (", x[0], ", ", x[1], ", …), along (", v[0], ", ", v[1], ", …)");
        const double rise = valueOf(f, moved(x, v, step)) - valueOf(f, moved(x, v, -step));
        CHECK(same(along(gradientOf(f, x), v), rise / (2 * step), 1e-6));
        const Point above = gradientOf(f, moved(x, v, step)),
                    below = gradientOf(f, moved(x, v, -step));
        const Point product = bt::hvp(f, x, v).product;
        for (std::size_t i = 0; i < x.size(); ++i)
          CHECK(same(product[i], (above[i] - below[i]) / (2 * step), 1e-5));
      }
    CHECK_MESSAGE(checked > 0, all[k]);
  }
}

TEST_CASE("the factor of mulByConstant is differentiated on no road") {
  const auto f = [](auto x) { return mulByConstant(x[0], x[1]); };
  const Point x{3, 5}, v{1, 1};
  CHECK(bt::jvp(f, x, v).slope == 5);
  CHECK(bt::hvp(f, x, v).gradient == Point{5, 0});
  const auto [value, product] = bt::hvp(f, x, v); // a pair, as in Python
  CHECK(value == bt::hvp(f, x, v).value);
  CHECK(product == bt::hvp(f, x, v).product);
  CHECK(bt::hessian(f, x) == Point{0, 0, 0, 0});
  CHECK(mulByConstant(D(3.0, 1.0), D(5.0, 1.0)).tangent == 5);
}

TEST_CASE("of two equal operands each has half of an extremum's derivative, forward as well") {
  const auto least = [](auto x) { return min(x[0], x[1]); };
  const auto largest = [](auto x) { return max(x[0], x[1]); };
  for (const Point& v : {Point{1, 0}, Point{0, 1}}) {
    CHECK(bt::jvp(least, Point{2, 2}, v).slope == 0.5);
    CHECK(bt::jvp(largest, Point{2, 2}, v).slope == 0.5);
  }
}

TEST_CASE("smooth functions whose formulas have a kink at 0") {
  const Point at{0}, v{1};
  CHECK(bt::jvp([](auto x) { return sigmoid(x[0]); }, at, v).slope == 0.25);
  CHECK(bt::jvp([](auto x) { return softplus(x[0]); }, at, v).slope == 0.5);
  CHECK(bt::hessian([](auto x) { return softplus(x[0]); }, at) == Point{0.25});
  CHECK(bt::hessian([](auto x) { return silu(x[0]); }, at) == Point{0.5});
}

} // namespace
