// burtorch/base/sizes.hpp — sums and products of sizes, which might not fit: the one place that makes them
// SPDX-License-Identifier: MIT
//
// A size that came from outside is added and multiplied here before anything is made of it. What does not
// fit becomes `tooLarge`, which is larger than every capacity, so that comparing with one refuses it.
#pragma once

#include <burtorch/base/config.hpp>
#include <burtorch/base/error.hpp>

#include <cstddef>
#include <limits>
#include <string>

BURTORCH_BEGIN_NAMESPACE

namespace detail {

inline constexpr std::size_t tooLarge = std::numeric_limits<std::size_t>::max();
// No array has more bytes than pointers can be apart.
inline constexpr auto largestArray =
    static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max());

constexpr std::size_t sizeSum(std::size_t x, std::size_t y) {
  return x > tooLarge - y ? tooLarge : x + y;
}
constexpr std::size_t sizeProduct(std::size_t x, std::size_t y) {
  return y != 0 && x > tooLarge / y ? tooLarge : x * y;
}

// A product that is a number of elements: of rows and columns, say.
inline std::size_t demandProduct(std::size_t x, std::size_t y) {
  const std::size_t n = sizeProduct(x, y);
  if (n > largestArray)
    fail(ErrorKind::capacity,
         std::to_string(x) + "×" + std::to_string(y) + " numbers are more than any memory holds");
  return n;
}

} // namespace detail

BURTORCH_END_NAMESPACE
