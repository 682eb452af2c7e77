// cpp_tests/soft_quad_test.cpp — binary128 in whole numbers against the compiler's, bit for bit
// SPDX-License-Identifier: MIT
#include <burtorch/scalar/quad.hpp>
#include <burtorch/scalar/soft_quad.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <ios>
#include <random>
#include <vector>

namespace {

using Q = burtorch::float128;
using Soft = burtorch::detail::SoftQuad;
using Words = std::array<std::uint64_t, 2>;

Soft soft(const Words& w) { return Soft::fromWord({w[1], w[0]}); }
Words wordsOf(Soft x) { return {x.word().lo, x.word().hi}; }

bool isNaN(const Words& w) {
  const std::uint64_t upper = w[1] & ~(std::uint64_t{1} << 63);
  return upper > 0x7fff000000000000u || (upper == 0x7fff000000000000u && w[0] != 0);
}
bool same(const Words& a, const Words& b) { return a == b || (isNaN(a) && isNaN(b)); }

// Every kind of number: random ones of all sizes, their neighbours, and the special ones.
std::vector<Words> numbers() {
  constexpr std::uint64_t all = ~std::uint64_t{0};
  std::vector<Words> out;
  for (const std::uint64_t hi :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{0x0000ffffffffffff},
        std::uint64_t{0x0001000000000000}, std::uint64_t{0x3ffe000000000000},
        std::uint64_t{0x3fff000000000000}, std::uint64_t{0x3fff800000000000},
        std::uint64_t{0x406f000000000000}, std::uint64_t{0x7ffeffffffffffff},
        std::uint64_t{0x7fff000000000000}, std::uint64_t{0x7fff800000000000}})
    for (const std::uint64_t lo : {std::uint64_t{0}, std::uint64_t{1}, all >> 1, all})
      for (const std::uint64_t sign : {std::uint64_t{0}, std::uint64_t{1} << 63})
        out.push_back({lo, hi | sign});
  std::mt19937_64 random(7);
  for (int i = 0; i < 150; ++i) {
    // Exponents near each other, so that digits cancel, and everywhere.
    const std::uint64_t exponent = i % 3 == 0 ? random() % 32767 : 16383 + random() % 240 - 120;
    const std::uint64_t holes = i % 2 == 0 ? all : random() & random() & random();
    out.push_back({random() & holes,
                   (random() << 63) | (exponent << 48) | (random() & holes & 0xffffffffffffu)});
  }
  return out;
}

TEST_CASE("arithmetic and order") {
  const auto all = numbers();
  for (const Words& x : all)
    for (const Words& y : all) {
      const Q a = Q::fromWords(x), b = Q::fromWords(y);
      const bool equal = same(wordsOf(soft(x) + soft(y)), (a + b).words()) &&
                         same(wordsOf(soft(x) - soft(y)), (a - b).words()) &&
                         same(wordsOf(soft(x) * soft(y)), (a * b).words()) &&
                         same(wordsOf(soft(x) / soft(y)), (a / b).words()) &&
                         (soft(x) < soft(y)) == (a < b) && (soft(x) == soft(y)) == (a == b) &&
                         (soft(x) > soft(y)) == (a > b);
      if (!equal) // a CHECK for each of these millions would take a minute
        FAIL_CHECK(std::hex << x[1] << ' ' << x[0] << " and " << y[1] << ' ' << y[0]);
    }
}

template <class F> void checkNarrowed(const Words& x) {
  const auto got = static_cast<F>(soft(x)), want = static_cast<F>(Q::fromWords(x));
  CHECK_MESSAGE(((std::isnan(got) && std::isnan(want)) ||
                 (got == want && std::signbit(got) == std::signbit(want))),
                std::hex << x[1] << ' ' << x[0]);
}

TEST_CASE("to float and double, rounded once") {
  for (Words x : numbers()) {
    checkNarrowed<double>(x);
    checkNarrowed<float>(x);
    // The same digits in the middle of float's range, at its lower end, and between two doubles.
    for (const std::uint64_t exponent : {16383u, 16383u - 149, 16383u - 150, 16383u + 127,
                                         16383u - 1022, 16383u - 1074, 16383u - 1075}) {
      const Words moved{x[0], (x[1] & 0x8000ffffffffffffu) | (exponent << 48)};
      checkNarrowed<double>(moved);
      checkNarrowed<float>(moved);
      checkNarrowed<double>({std::uint64_t{1} << 59, moved[1]});
      checkNarrowed<float>({0, moved[1] & ~std::uint64_t{0xffffff}});
    }
  }
}

TEST_CASE("from and to numbers") {
  for (const double x : {0.0, -0.0, 1.0, -1.5, 0.1, 1e300, -1e-300, 5e-324, 1e-310,
                         std::numeric_limits<double>::infinity(), std::nan("")})
    CHECK(same(wordsOf(Soft(x)), Q(x).words()));
  for (const std::int64_t x :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{-1},
        std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()}) {
    CHECK(wordsOf(Soft(x)) == Q(x).words());
    CHECK(static_cast<std::int64_t>(Soft(x)) == x);
  }
  CHECK(static_cast<std::uint64_t>(Soft(~std::uint64_t{0})) == ~std::uint64_t{0});
  CHECK(static_cast<int>(Soft(-2.9)) == -2);
  CHECK(static_cast<int>(Soft(0.9)) == 0);
  CHECK(static_cast<long double>(Soft(0.1L) - Soft(0.1)) == 0.1L - static_cast<long double>(0.1));
  CHECK(static_cast<bool>(Soft(0.1)));
  static_assert(static_cast<double>(Soft(1) / Soft(3)) == 1.0 / 3.0);
}

} // namespace
