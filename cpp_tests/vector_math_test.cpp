// cpp_tests/vector_math_test.cpp — the vector functions against the standard library in more digits
// SPDX-License-Identifier: MIT
//
// Samples of all floats and doubles, by their bits, so that every binade has its share; slow/ tries
// all floats.
#include "ulp.hpp"
#include "vector_functions.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace bt = burtorch;

namespace {

// long double has to hold a double and some digits more, else it says nothing about double.
template <class T>
inline constexpr bool truthIsBetter =
    std::numeric_limits<long double>::digits >= std::numeric_limits<T>::digits + 8;

template <class T> std::vector<T> samples() {
  using Limits = std::numeric_limits<T>;
  using Bits = bt::detail::BitsOf<T>;
  const T inf = Limits::infinity();
  std::vector<T> x{T(0),
                   T(1),
                   T(0.5),
                   Limits::denorm_min(),
                   Limits::min(),
                   Limits::max(),
                   inf,
                   Limits::quiet_NaN(),
                   T(88.7),
                   T(709.8),
                   T(1e10),
                   T(103.9),
                   T(745.2),
                   T(0.3466),
                   T(1.5707963267),
                   T(3.14159265358979)};
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) // any bits
    x.push_back(std::bit_cast<T>(static_cast<Bits>(random())));
  std::uniform_real_distribution<T> near(0, 8), far(0, 800), turns(0, 1 << 22);
  for (int i = 0; i < 20000; ++i) {
    x.push_back(near(random));
    x.push_back(far(random));
    x.push_back(turns(random));
    x.push_back(1 + (near(random) - 4) / T(1 << (i % 20))); // around 1, where log is 0
  }
  // What is nearest to multiples of π/2, and its neighbours.
  for (int n = 1; n < 4096; ++n) {
    const T turn = static_cast<T>(n * 1.57079632679489661923132169163975144L);
    for (const T y : {turn, std::nextafter(turn, T(0)), std::nextafter(turn, inf)}) x.push_back(y);
  }
  const std::size_t half = x.size();
  for (std::size_t i = 0; i < half; ++i) x.push_back(-x[i]);
  while (x.size() % 8 != 0) x.push_back(T(0));
  return x;
}

template <class T, std::size_t N> void check() {
  if constexpr (truthIsBetter<T>) {
    const auto all = samples<T>();
    forEachVectorFunction([&](const char* name, const auto& vector, const auto& truth) {
      std::int64_t worst = 0;
      T where = 0;
      for (std::size_t i = 0; i < all.size(); i += N) {
        const auto got = vector(bt::simd<T, N>::load(all.data() + i));
        for (std::size_t k = 0; k < N; ++k) {
          const auto want = static_cast<T>(truth(static_cast<long double>(all[i + k])));
          const auto distance = ulpDistance(got[k], want);
          if (distance <= worst) continue;
          worst = distance;
          where = all[i + k];
        }
      }
      CHECK_MESSAGE(worst <= 2, std::string(name) << " is off by " << worst << " ulp at " << where);
    });
  } else {
    MESSAGE("long double is too short here to judge these");
  }
}

TEST_CASE("at most 2 ulp, float") { check<float, 8>(); }
TEST_CASE("at most 2 ulp, double") { check<double, 4>(); }

TEST_CASE("special values") {
  const auto one = [](const auto& f, auto x) { return f(bt::simd<decltype(x), 4>(x))[3]; };
  const auto exp_ = [](const auto& x) { return exp(x); };
  const auto log_ = [](const auto& x) { return log(x); };
  const auto tanh_ = [](const auto& x) { return tanh(x); };
  const auto erf_ = [](const auto& x) { return erf(x); };
  const double inf = std::numeric_limits<double>::infinity();
  CHECK(one(exp_, inf) == inf);
  CHECK(one(exp_, -inf) == 0);
  CHECK(one(exp_, 0.0) == 1);
  CHECK(one(exp_, -745.0) > 0); // denormal
  CHECK(one(log_, 0.0) == -inf);
  CHECK(one(log_, -0.0) == -inf);
  CHECK(std::isnan(one(log_, -1.0)));
  CHECK(one(log_, 1.0) == 0);
  CHECK(one(log_, inf) == inf);
  CHECK(one(log_, 5e-324) == doctest::Approx(-744.4400719213812));
  CHECK(one(tanh_, inf) == 1);
  CHECK(one(tanh_, -inf) == -1);
  CHECK(std::signbit(one(tanh_, -0.0)));
  CHECK(std::signbit(one(erf_, -0.0)));
  CHECK(one(erf_, -inf) == -1);
  for (const auto& f : {std::isnan(one(exp_, std::nan(""))), std::isnan(one(log_, std::nan(""))),
                        std::isnan(one(tanh_, std::nan(""))), std::isnan(one(erf_, std::nan("")))})
    CHECK(f);
}

} // namespace
