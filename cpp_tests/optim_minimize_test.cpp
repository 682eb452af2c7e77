// cpp_tests/optim_minimize_test.cpp — minimization: every method finds the minimum, and stops when told
// SPDX-License-Identifier: MIT
#include <burtorch/optim/minimize.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <span>
#include <vector>

using namespace burtorch;
using optim::Method;

namespace {

// Rosenbrock's valley: the minimum is 0 at (1, 1).
double valley(const double* x, double* g) {
  const double a = 1 - x[0], b = x[1] - x[0] * x[0];
  g[0] = -2 * a - 400 * x[0] * b;
  g[1] = 200 * b;
  return a * a + 100 * b * b;
}
double bowl(const double* x, double* g) {
  g[0] = 2 * (x[0] - 3);
  g[1] = 20 * (x[1] + 1);
  return (x[0] - 3) * (x[0] - 3) + 10 * (x[1] + 1) * (x[1] + 1);
}

} // namespace

TEST_CASE("minimize: every method finds the bottom of a bowl") {
  for (const Method method : {Method::gd, Method::momentum, Method::adam, Method::lbfgs}) {
    std::vector<double> x{0.0, 0.0};
    const auto m =
        optim::minimize<double>(bowl, x, {.method = method, .steps = 5000, .tolerance = 1e-6});
    CHECK(m.converged);
    CHECK(m.slope <= 1e-6);
    CHECK(x[0] == doctest::Approx(3).epsilon(1e-5));
    CHECK(x[1] == doctest::Approx(-1).epsilon(1e-5));
  }
}

TEST_CASE("minimize: L-BFGS in a curved valley, in few steps") {
  std::vector<double> x{-1.2, 1.0};
  const auto m = optim::minimize<double>(valley, x, {.steps = 60});
  CHECK(m.converged);
  CHECK(m.steps < 60);
  CHECK(m.value < 1e-16);
  CHECK(x[0] == doctest::Approx(1));
}

TEST_CASE("minimize: ends after so many steps, when told, and where there is no way down") {
  std::vector<double> x{0.0, 0.0};
  CHECK(optim::minimize<double>(bowl, x, {.method = Method::gd, .steps = 3}).steps == 3);
  int left = 2;
  x = {0.0, 0.0};
  const auto m =
      optim::minimize<double>(bowl, x, {.method = Method::gd}, [&] { return --left != 0; });
  CHECK((m.steps == 2 && !m.converged));
  const auto lost = [](const double*, double* g) {
    g[0] = g[1] = std::numeric_limits<double>::quiet_NaN();
    return 0.0;
  };
  const auto none = optim::minimize<double>(lost, x, {});
  CHECK((none.steps == 0 && !none.converged));
}
