// cpp_tests/quad_test.cpp — float128 and its functions against numbers known to more digits
// SPDX-License-Identifier: MIT
#include <burtorch/scalar/quad.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

namespace bt = burtorch;

namespace {

using Q = bt::float128;
using Limits = std::numeric_limits<Q>;

void checkClose(const std::string& what, double x, Q got, Q want) {
  const Q error = want == Q(0) ? fabs(got) : fabs((got - want) / want);
  CHECK_MESSAGE(error < Q(1e-32),
                what << " at " << x << " is off by " << static_cast<double>(error));
}

Q scaledBy(Q x, int power) {
  for (; power > 0; power -= 800) x = x * Q(0x1p800);
  for (; power < 0; power += 800) x = x * Q(0x1p-800);
  return x;
}

Q timesPower(Q x, int power) {
  for (; power > 0; --power) x = x + x;
  return x;
}

TEST_CASE("functions to 32 digits") {
#define ONE(function, x, hi, mid, lo, scale)                                                       \
  checkClose(#function, x, function(Q(x)), scaledBy(Q(hi, mid, lo), scale));
#define TWO(function, x, y, hi, mid, lo)                                                           \
  checkClose(#function, x, function(Q(x), Q(y)), Q(hi, mid, lo));
#define FAR(function, power, x1, x2, x3, hi, mid, lo)                                              \
  checkClose(#function " 2^" #power " times", x1, function(timesPower(Q(x1, x2, x3), power)),      \
             Q(hi, mid, lo));
#include "data/quad_reference.inc"
#undef ONE
#undef TWO
#undef FAR
}

TEST_CASE("special values are those of the standard library") {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const auto same = [](Q got, double want) {
    const auto d = static_cast<double>(got);
    return (std::isnan(d) && std::isnan(want)) ||
           (d == want && std::signbit(d) == std::signbit(want));
  };
  for (const double x : {0.0, -0.0, 1.0, -1.0, inf, -inf, nan}) {
#define BURTORCH_SAME(function) /* what is finite and not 0 is checked above */                    \
  if (const double want = std::function(x); x == 0 || !std::isfinite(want))                        \
    CHECK_MESSAGE(same(function(Q(x)), want), std::string(#function) << " of " << x);
    BURTORCH_STANDARD_FUNCTIONS(BURTORCH_SAME)
#undef BURTORCH_SAME
    for (const double y : {0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -3.0, inf, -inf, nan}) {
      const double p = std::pow(x, y), h = std::hypot(x, y);
      CHECK_MESSAGE(same(pow(Q(x), Q(y)), p), x << "^" << y);
      if (!std::isnan(h) && std::isinf(h)) CHECK(same(hypot(Q(x), Q(y)), h));
      const double a = std::atan2(x, y), got = static_cast<double>(atan2(Q(x), Q(y)));
      CHECK_MESSAGE(((std::isnan(a) && std::isnan(got)) ||
                     (std::fabs(a - got) < 1e-15 && std::signbit(a) == std::signbit(got))),
                    "atan2 of " << x << ", " << y);
    }
  }
}

TEST_CASE("sines of anything finite lie between -1 and 1, of the rest they are not numbers") {
  for (Q x = Q(0x1.8p40); x + x < Limits::infinity(); x = x * Q(3.7)) {
    const Q s = sin(x), c = cos(x);
    CHECK(fabs(s * s + c * c - Q(1)) < Q(1e-32));
    CHECK(sin(-x) == -s);
    CHECK(cos(-x) == c);
    checkClose("sin of twice", static_cast<double>(x), sin(x + x), Q(2) * s * c);
  }
  CHECK(fabs(tan(Limits::max())) < Limits::infinity());
  for (const Q x : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()})
    for (const Q y : {sin(x), cos(x), tan(x)}) CHECK_FALSE(y == y);
}

TEST_CASE("the whole range") {
  CHECK(exp(Q(11356)) < Limits::infinity());
  CHECK(exp(Q(11357)) == Limits::infinity());
  CHECK(exp(Q(-11432)) > Q(0));
  CHECK(sqrt(Limits::denorm_min()) * sqrt(Limits::denorm_min()) == Limits::denorm_min());
  checkClose("log", 0, log(Limits::max()), Q(16384) * log(Q(2)));
  checkClose("log", 0, log(Limits::denorm_min()), Q(-16494) * log(Q(2)));
  CHECK(Q(1) + Limits::epsilon() > Q(1));
  CHECK(Q(1) + Limits::epsilon() * Q(0.5) == Q(1));
  CHECK(static_cast<double>(Q(0.1)) == 0.1);
}

} // namespace
