// cpp_tests/half_test.cpp — halves bit for bit: all of them, and many floats rounded to them
// SPDX-License-Identifier: MIT
#include <burtorch/scalar/half.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace bt = burtorch;

namespace {

// The value of a half from the definition: sign · mantissa · 2^exponent.
template <class H> double valueOf(std::uint16_t bits) {
  constexpr int mantissaBits = std::numeric_limits<H>::digits - 1;
  const int exponent = (bits & 0x7fff) >> mantissaBits, mantissa = bits & ((1 << mantissaBits) - 1);
  const int top = 0x7fff >> mantissaBits, bias = std::numeric_limits<H>::max_exponent - 1;
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == top) return mantissa != 0 ? std::nan("") : sign * HUGE_VAL;
  const int whole = exponent == 0 ? mantissa : mantissa + (1 << mantissaBits);
  return sign * std::ldexp(whole, (exponent == 0 ? 1 : exponent) - bias - mantissaBits);
}

// The nearest half of a double, ties to the even one, by looking at both neighbours.
template <class H> std::uint16_t nearest(double x) {
  const std::uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  const double a = std::fabs(x);
  constexpr std::uint16_t infinity = std::numeric_limits<H>::infinityBits;
  std::uint16_t lo = 0, hi = infinity; // the largest that is not above a
  while (hi - lo > 1) {
    const auto middle = static_cast<std::uint16_t>((lo + hi) / 2);
    (valueOf<H>(middle) <= a ? lo : hi) = middle;
  }
  if (a == HUGE_VAL) return sign | infinity;
  // Above the largest the next number would be the power of two that stands for infinity.
  const double above =
      hi == infinity ? std::ldexp(1, std::numeric_limits<H>::max_exponent) : valueOf<H>(hi);
  const double down = a - valueOf<H>(lo), up = above - a;
  const bool upwards = up < down || (up == down && (lo & 1) != 0);
  return sign | (upwards ? hi : lo);
}

TEST_CASE_TEMPLATE("all 65 536 halves", H, bt::float16, bt::bfloat16) {
  using Format =
      std::conditional_t<std::is_same_v<H, bt::float16>, bt::detail::Binary16, bt::detail::Brain16>;
  int wrong = 0;
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const H h = H::fromBits(bits);
    const double want = valueOf<H>(bits);
    const float soft = Format::toFloat(bits), used = static_cast<float>(h);
    wrong += std::bit_cast<std::uint32_t>(soft) != std::bit_cast<std::uint32_t>(used);
    if (std::isnan(want)) {
      wrong += !std::isnan(used) || !std::isnan(static_cast<float>(H(used)));
      continue;
    }
    wrong += static_cast<double>(used) != want || std::signbit(used) != std::signbit(want);
    wrong += H(used).bits() != bits || H(want).bits() != bits;
#if BURTORCH_HAS_FLOAT16
    if constexpr (std::is_same_v<H, bt::float16>)
      wrong += static_cast<float>(std::bit_cast<_Float16>(bits)) != used;
#endif
  }
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("rounding is to nearest, ties to even", H, bt::float16, bt::bfloat16) {
  using Format =
      std::conditional_t<std::is_same_v<H, bt::float16>, bt::detail::Binary16, bt::detail::Brain16>;
  std::mt19937_64 random(2);
  int wrong = 0;
  const auto check = [&](double x) {
    if (std::isnan(x)) return;
    wrong += H(x).bits() != nearest<H>(x);
    const auto f = static_cast<float>(x);
    wrong += H(f).bits() != nearest<H>(static_cast<double>(f));
    wrong += Format::fromFloat(f) != H(f).bits(); // the hardware agrees with the integers
#if BURTORCH_HAS_FLOAT16
    if constexpr (std::is_same_v<H, bt::float16>)
      wrong += std::bit_cast<std::uint16_t>(static_cast<_Float16>(f)) != H(f).bits() ||
               std::bit_cast<std::uint16_t>(static_cast<_Float16>(x)) != H(x).bits();
#endif
  };
  for (int i = 0; i < 100000; ++i)
    check(static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(random()))));
  // Around every half: the middle between it and the next, and the nearest doubles to that middle.
  for (std::uint32_t i = 0; i < 0x7fff; i += 7) {
    const double middle = (valueOf<H>(static_cast<std::uint16_t>(i)) +
                           valueOf<H>(static_cast<std::uint16_t>(i + 1))) /
                          2;
    if (!std::isfinite(middle)) continue;
    for (const double x : {middle, std::nextafter(middle, 0.0), std::nextafter(middle, HUGE_VAL)}) {
      check(x);
      check(-x);
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("arithmetic is correctly rounded") {
  std::mt19937 random(3);
  int wrong = 0;
  for (int i = 0; i < 20000; ++i) {
    const auto x = bt::float16::fromBits(static_cast<std::uint16_t>(random()));
    const auto y = bt::float16::fromBits(static_cast<std::uint16_t>(random()));
    const auto a = static_cast<double>(x), b = static_cast<double>(y);
    if (!std::isfinite(a) || !std::isfinite(b)) continue;
    wrong += (x + y).bits() != nearest<bt::float16>(a + b);
    wrong += (x - y).bits() != nearest<bt::float16>(a - b);
    wrong += (x * y).bits() != nearest<bt::float16>(a * b);
    wrong += (-x).bits() != nearest<bt::float16>(-a);
    wrong += (x < y) != (a < b) || (x == y) != (a == b);
    if (b != 0) wrong += (x / y).bits() != nearest<bt::float16>(a / b);
  }
  CHECK(wrong == 0);
  CHECK(bt::float16(2049).bits() == bt::float16(2048).bits()); // a tie
  CHECK(bt::float16(2051).bits() == bt::float16(2052).bits());
  CHECK(static_cast<int>(bt::bfloat16(3.0)) == 3);
}

TEST_CASE_TEMPLATE("limits", H, bt::float16, bt::bfloat16) {
  using L = std::numeric_limits<H>;
  CHECK(std::isinf(static_cast<float>(L::infinity())));
  CHECK(std::isnan(static_cast<float>(L::quiet_NaN())));
  CHECK(static_cast<float>(L::epsilon()) == std::ldexp(1.0f, 1 - L::digits));
  CHECK(static_cast<float>(L::max()) < static_cast<float>(L::infinity()));
  CHECK(static_cast<float>(L::min()) == std::ldexp(1.0f, L::min_exponent - 1));
}

TEST_CASE_TEMPLATE("many at once", H, bt::float16, bt::bfloat16) {
  std::vector<H> from(65536), to(65536);
  for (std::uint32_t i = 0; i < 65536; ++i) from[i] = H::fromBits(static_cast<std::uint16_t>(i));
  int wrong = 0;
  for (std::size_t i = 0; i < from.size(); i += 8) {
    const auto x = bt::widen<8>(from.data() + i);
    for (std::size_t k = 0; k < 8; ++k) {
      const auto want = static_cast<float>(from[i + k]);
      wrong += !(x[k] == want || (std::isnan(x[k]) && std::isnan(want)));
    }
    bt::narrow(x, to.data() + i);
    for (std::size_t k = 0; k < 8; ++k)
      if (!std::isnan(x[k])) wrong += to[i + k].bits() != from[i + k].bits();
  }
  CHECK(wrong == 0);
}

} // namespace
