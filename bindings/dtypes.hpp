// bindings/dtypes.hpp — the scalar types Python can ask for
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/op/types.hpp>

#include <concepts>
#include <cstdint>

// X(name in Python, C++ type). Another one takes a line here, its look in Python in scalars.hpp, and,
// if a node holds several numbers, numbersIn below. Views and recordings have dtypes of their own.
#define BURTORCH_DTYPES(X)                                                                         \
  X(float64, double)                                                                               \
  BURTORCH_OTHER_DTYPES(X)

// Those whose operations are compiled once for all (others.cpp) and not into every function of the
// module: what they cost per operation does not matter as much as what they would cost to compile.
#define BURTORCH_OTHER_DTYPES(X)                                                                   \
  X(float32, float)                                                                                \
  X(float16, burtorch::float16)                                                                    \
  X(bfloat16, burtorch::bfloat16)                                                                  \
  X(float128, burtorch::float128)                                                                  \
  X(float32x8, burtorch::float32x8)                                                                \
  X(float64x4, burtorch::float64x4)                                                                \
  X(dual64, burtorch::dual64)

namespace burtorch_python {

enum class DType : std::uint8_t {
#define BURTORCH_DTYPE(name, type) name,
  BURTORCH_DTYPES(BURTORCH_DTYPE)
#undef BURTORCH_DTYPE
};

template <class T> inline constexpr bool isOther = !std::same_as<T, double>;

// How many numbers stand in a node; they form the last axis of what NumPy sees.
template <class T> inline constexpr std::size_t numbersIn = 1;
template <class T, std::size_t N> inline constexpr std::size_t numbersIn<burtorch::simd<T, N>> = N;
template <class T> inline constexpr std::size_t numbersIn<burtorch::dual<T>> = 2;

} // namespace burtorch_python
