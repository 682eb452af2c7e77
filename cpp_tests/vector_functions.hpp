// cpp_tests/vector_functions.hpp — every vector function beside the same function in a wider type
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/scalar/vector_math.hpp>

#include <cmath>

// Calls check(name, function of a simd, the same of a plain number W) for each of them.
template <class Check> void forEachVectorFunction(const Check& check) {
#define BURTORCH_BOTH(function, truth)                                                             \
  check(                                                                                           \
      #function, [](const auto& x) { return function(x); }, [](auto x) { return truth; });
  BURTORCH_BOTH(exp, std::exp(x))
  BURTORCH_BOTH(expm1, std::expm1(x))
  BURTORCH_BOTH(log, std::log(x))
  BURTORCH_BOTH(tanh, std::tanh(x))
  BURTORCH_BOTH(sigmoid, x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)))
  BURTORCH_BOTH(sqrt, std::sqrt(x))
  BURTORCH_BOTH(inverseSqrt, 1 / std::sqrt(x))
  BURTORCH_BOTH(sin, std::sin(x))
  BURTORCH_BOTH(cos, std::cos(x))
  BURTORCH_BOTH(erf, std::erf(x))
#undef BURTORCH_BOTH
}
