// cpp_tests/dual_test.cpp — forward mode agrees with reverse mode, and derivatives of derivatives with formulas
// SPDX-License-Identifier: MIT
#include <burtorch/burtorch.hpp>
#include <burtorch/run/derivatives.hpp>
#include <burtorch/op/dual.hpp>
#include <burtorch/scalar/quad.hpp>
#include <burtorch/scalar/vector_math.hpp>

#include "support.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <limits>
#include <string>
#include <vector>

namespace bt = burtorch;
namespace op = burtorch::op;

namespace {

using D = bt::dual<double>;
using DD = bt::dual<D>;

TEST_CASE("the tangent of every function of the table is its gradient") {
  const auto same = [](double x, double y) {
    return std::abs(x - y) <= 1e-14 * (1 + std::abs(y)) || (std::isnan(x) && std::isnan(y));
  };
  for (const double x : {-1.7, -0.45, 0.35, 0.9, 2.2})
    for (const double y : {-0.8, 0.6, 1.3}) {
      bt::Tape<double> tape;
      const bt::Value<double> a(tape, x), b(tape, y);
#define BURTORCH_CHECK(Name, function)                                                             \
  {                                                                                                \
    tape.zeroGrad();                                                                               \
    const auto z = function(a);                                                                    \
    backward(z);                                                                                   \
    const D d = function(D(x, 1.0));                                                               \
    CHECK_MESSAGE(same(d.value, z.dataCopy()), std::string(#function));                            \
    CHECK_MESSAGE(same(d.tangent, a.gradCopy()), std::string(#function));                          \
  }
      BURTORCH_UNARY_OPERATIONS(BURTORCH_CHECK)
#undef BURTORCH_CHECK
#define BURTORCH_CHECK(Name, function)                                                             \
  {                                                                                                \
    tape.zeroGrad();                                                                               \
    const auto z = function(a, b);                                                                 \
    backward(z);                                                                                   \
    const D d = function(D(x, 2.0), D(y, -3.0));                                                   \
    CHECK_MESSAGE(same(d.value, z.dataCopy()), std::string(#function));                            \
    CHECK_MESSAGE(same(d.tangent, 2 * a.gradCopy() - 3 * b.gradCopy()), std::string(#function));   \
  }
      BURTORCH_BINARY_OPERATIONS(BURTORCH_CHECK)
#undef BURTORCH_CHECK
    }
}

TEST_CASE("nested twice: third derivatives") {
  using DDD = bt::dual<DD>;
  const auto third = [](const auto& f, double x) {
    const DDD seeded{DD{D{x, 1}, D{1, 0}}, DD{D{1, 0}, D{0, 0}}};
    return f(seeded).tangent.tangent.tangent;
  };
  CHECK(third([](auto x) { return exp(x); }, 0.7) == doctest::Approx(std::exp(0.7)));
  CHECK(third([](auto x) { return sin(x); }, 0.7) == doctest::Approx(-std::cos(0.7)));
  CHECK(third([](auto x) { return log(x); }, 0.7) == doctest::Approx(2 / (0.7 * 0.7 * 0.7)));
  CHECK(third([](auto x) { return x * x * x * x; }, 0.7) == doctest::Approx(24 * 0.7));
  const double t = std::tanh(0.7), s = 1 - t * t;
  CHECK(third([](auto x) { return tanh(x); }, 0.7) == doctest::Approx(s * (6 * t * t - 2)));
  const double inner = std::exp(-0.49) * 2 / std::sqrt(std::acos(-1.0));
  CHECK(third([](auto x) { return erf(x); }, 0.7) == doctest::Approx(inner * (4 * 0.49 - 2)));
  CHECK(third([](auto x) { return erfc(x); }, 0.7) == doctest::Approx(-inner * (4 * 0.49 - 2)));
}

TEST_CASE("a direction of 0 stays 0, also where the derivative is infinite") {
  CHECK(sqrt(D(0.0)).tangent == 0);
  CHECK((D(std::numeric_limits<double>::infinity()) * D(2.0)).tangent == 0);
  CHECK(pow(D(0.0, 1.0), D(0.0)).tangent == 0);
  CHECK(std::isinf(sqrt(D(0.0, 1.0)).tangent));
}

TEST_CASE("a mixed derivative where the exponent is 0") { // d²(x^y)/dx dy = 1/x at y = 0
  const DD x{D{2.0, 1.0}, D{0.0, 0.0}}, y{D{0.0, 0.0}, D{1.0, 0.0}};
  CHECK(pow(x, y).tangent.tangent == doctest::Approx(0.5));
}

const auto rosenbrock = [](auto x) { return sqr(1.0 - x[0]) + 100.0 * sqr(x[1] - sqr(x[0])); };

TEST_CASE("jvp, hvp, jacobian and hessian") {
  const std::array<double, 2> x{0.5, -1.2}, v{2, 3};
  const double gx = -2 * (1 - x[0]) - 400 * x[0] * (x[1] - x[0] * x[0]);
  const double gy = 200 * (x[1] - x[0] * x[0]);
  const double hxx = 2 - 400 * (x[1] - 3 * x[0] * x[0]), hxy = -400 * x[0], hyy = 200;
  const auto [value, slope] = bt::jvp(rosenbrock, x, v);
  CHECK(value == doctest::Approx(std::pow(0.5, 2) + 100 * std::pow(-1.45, 2)));
  CHECK(slope == doctest::Approx(2 * gx + 3 * gy));
  const auto second = bt::hvp(rosenbrock, x, v);
  CHECK(second.value == doctest::Approx(value));
  CHECK(second.gradient[0] == doctest::Approx(gx));
  CHECK(second.gradient[1] == doctest::Approx(gy));
  CHECK(second.product[0] == doctest::Approx(2 * hxx + 3 * hxy));
  CHECK(second.product[1] == doctest::Approx(2 * hxy + 3 * hyy));
  const auto h = bt::hessian(rosenbrock, x);
  CHECK(h.size() == 4);
  CHECK(h[0] == doctest::Approx(hxx));
  CHECK(h[1] == doctest::Approx(hxy));
  CHECK(h[2] == doctest::Approx(hxy));
  CHECK(h[3] == doctest::Approx(hyy));

  const auto polar = [](auto p) { return std::array{p[0] * cos(p[1]), p[0] * sin(p[1])}; };
  const auto j = bt::jacobian(polar, std::vector<double>{2, 0.3});
  CHECK(j.size() == 4);
  CHECK(j[0] == doctest::Approx(std::cos(0.3)));
  CHECK(j[1] == doctest::Approx(-2 * std::sin(0.3)));
  CHECK(j[2] == doctest::Approx(std::sin(0.3)));
  CHECK(j[3] == doctest::Approx(2 * std::cos(0.3)));

  CHECK(errorOf([&] { bt::jvp(rosenbrock, x, std::vector<double>{1}); }).what() ==
        std::string("a direction of 1 numbers for 2 arguments"));
}

TEST_CASE("the Hessian of every reduction is symmetric and agrees with differences of gradients") {
  const std::vector<double> x{0.7, -1.3, 2.1, 0.4};
  const auto check = [&](const std::string& name, const auto& f) {
    const auto h = bt::hessian(f, x);
    const double step = 1e-6;
    for (std::size_t i = 0; i < x.size(); ++i) {
      auto up = x, down = x;
      up[i] += step;
      down[i] -= step;
      const auto one = [&](auto p) { return std::array{f(p)}; };
      const auto above = bt::jacobian(one, up), below = bt::jacobian(one, down);
      for (std::size_t k = 0; k < x.size(); ++k) {
        CHECK_MESSAGE(h[i * x.size() + k] == doctest::Approx(h[k * x.size() + i]), name);
        CHECK_MESSAGE(std::abs(h[i * x.size() + k] - (above[k] - below[k]) / (2 * step)) < 1e-7,
                      name);
      }
    }
  };
#define BURTORCH_CHECK(Name, function)                                                             \
  check(#function, [](auto p) { return exp(function(p) * 0.1); });
  BURTORCH_REDUCTIONS(BURTORCH_CHECK)
#undef BURTORCH_CHECK
  check("innerProduct", [](auto p) { return innerProduct(p.first(2), p.last(2)); });
  check("innerProductWithBias",
        [](auto p) { return sqr(innerProductWithBias(p.first(2), p.subspan(1, 2), p[3])); });
}

TEST_CASE("duals and Values of duals compare by value, as programs that branch need") {
  const D a(1.0, 5.0), b(2.0, -3.0), c(1.0, 0.0);
  CHECK(a < b);
  CHECK((a <=> b) < 0);
  CHECK((a <=> c) == 0);
  CHECK(std::min(a, b).tangent == 5);
  CHECK((D(std::nan("")) <=> a) == std::partial_ordering::unordered);
  CHECK((DD(a, a) <=> DD(b, a)) < 0);
  const auto f = [](auto x) { return std::min(x[0] * x[1], sqr(x[1])) + std::max(x[0], x[1]); };
  const auto second = bt::hvp(f, std::array{2.0, 3.0}, std::array{1.0, 10.0}); // x·y + y
  CHECK(second.value == 9);
  CHECK(second.gradient == std::vector<double>{3, 3});
  CHECK(second.product == std::vector<double>{10, 1});
}

TEST_CASE("lanes inside duals, quads inside duals") {
  using L = bt::simd<double, 4>;
  L x, one(1.0);
  for (std::size_t i = 0; i < 4; ++i) x.set(i, static_cast<double>(i) - 1.5);
  const auto y = relu(bt::dual<L>(x, one)) + tanh(bt::dual<L>(x, one));
  for (std::size_t i = 0; i < 4; ++i) {
    const double t = std::tanh(x[i]);
    CHECK(y.tangent[i] == doctest::Approx((x[i] > 0 ? 1 : 0) + 1 - t * t));
  }
  using Q = bt::float128;
  const auto z = log(bt::dual<Q>(Q(3), Q(1)));
  CHECK(fabs(z.tangent * Q(3) - Q(1)) < Q(1e-33));
}

} // namespace
