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

TEST_CASE("minimize: L-BFGS keeps what a search has found") {
  const auto unbounded = [](const double* x, double* g) { // a slope that grows for ever
    g[0] = 1 / x[0] - 6 * x[0];
    return std::log(x[0]) - 3 * x[0] * x[0];
  };
  std::vector<double> x{1.0};
  const auto m = optim::minimize<double>(unbounded, x, {.steps = 3});
  CHECK(m.steps > 0);
  CHECK(m.value < -1e6);
  CHECK(!m.converged);
  CHECK(std::isfinite(x[0]));

  // The slope jumps where the minimum is and never becomes small: no length fulfils both conditions.
  const auto cliff = [](const double* at, double* g) {
    g[0] = at[0] < 1 ? -1.0 : std::numeric_limits<double>::quiet_NaN();
    return at[0] < 1 ? -at[0] : std::numeric_limits<double>::quiet_NaN();
  };
  x = {0.25};
  const auto edge = optim::minimize<double>(cliff, x, {.steps = 5});
  CHECK(edge.steps > 0);
  CHECK((x[0] > 0.99 && x[0] < 1));
  CHECK(edge.value == -x[0]);
}

TEST_CASE("minimize: L-BFGS whose pairs lead nowhere tries the gradient") {
  int calls = 0;
  const auto corridor = [&](const double* at, double* g) { // from the second point on: only x = 0
    g[0] = at[0];
    g[1] = 4 * at[1];
    if (++calls > 2 && at[0] != 0) return std::numeric_limits<double>::infinity();
    return (at[0] * at[0] + 4 * at[1] * at[1]) / 2;
  };
  std::vector<double> x{1.0, 0.1};
  const auto m = optim::minimize<double>(corridor, x, {.steps = 50});
  CHECK(m.converged);
  CHECK(x[1] == doctest::Approx(0).epsilon(1e-6));
}

TEST_CASE("minimize: what is NaN at the start stays there") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Method method : {Method::gd, Method::momentum, Method::adam, Method::lbfgs})
    for (const bool isValue : {true, false}) {
      const auto lost = [&](const double*, double* g) {
        g[0] = isValue ? 1.0 : nan;
        return isValue ? nan : 1.0;
      };
      std::vector<double> x{2.0};
      const auto m = optim::minimize<double>(lost, x, {.method = method});
      CHECK((m.steps == 0 && !m.converged && x[0] == 2.0));
    }
}
