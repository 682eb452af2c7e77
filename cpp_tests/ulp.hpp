// cpp_tests/ulp.hpp — how many floating-point numbers lie between two
// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

// 0 if both are the same or both NaN; 0 and -0 are told apart, and a NaN or an infinity is far from
// anything else.
template <class T> std::int64_t ulpDistance(T x, T y) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  constexpr std::int64_t far = std::numeric_limits<std::int64_t>::max();
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y) ? 0 : far;
  if (x == y) return std::signbit(x) == std::signbit(y) ? 0 : 1000;
  if (std::signbit(x) != std::signbit(y)) return far;
  const std::int64_t distance =
      std::int64_t{std::bit_cast<Bits>(x)} - std::int64_t{std::bit_cast<Bits>(y)};
  return distance < 0 ? -distance : distance;
}
