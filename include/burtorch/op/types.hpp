// burtorch/op/types.hpp — every scalar type that the library brings along
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/op/dual.hpp>
#include <burtorch/scalar/half.hpp>
#include <burtorch/scalar/quad.hpp>
#include <burtorch/scalar/simd.hpp>
#include <burtorch/scalar/vector_math.hpp>

BURTORCH_BEGIN_NAMESPACE

using float32x8 = simd<float, 8>;
using float32x16 = simd<float, 16>;
using float64x4 = simd<double, 4>;
using dual64 = dual<double>;

BURTORCH_END_NAMESPACE

// X(name, type): the tests try every operation on each of these, and Python's dtypes are among
// them.
#define BURTORCH_SCALAR_TYPES(X)                                                                   \
  X(float32, float)                                                                                \
  X(float64, double)                                                                               \
  X(float16, burtorch::float16)                                                                    \
  X(bfloat16, burtorch::bfloat16)                                                                  \
  X(float128, burtorch::float128)                                                                  \
  X(float32x8, burtorch::float32x8)                                                                \
  X(float32x16, burtorch::float32x16)                                                              \
  X(float64x4, burtorch::float64x4)                                                                \
  X(dual64, burtorch::dual64)

BURTORCH_BEGIN_NAMESPACE

#define BURTORCH_IS_SCALAR(name, type) static_assert(Scalar<type>);
BURTORCH_SCALAR_TYPES(BURTORCH_IS_SCALAR)
#undef BURTORCH_IS_SCALAR

BURTORCH_END_NAMESPACE
