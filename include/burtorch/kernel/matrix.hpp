// burtorch/kernel/matrix.hpp — where the rows of a matrix lie in memory that somebody else owns
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/base/config.hpp>

#include <cstddef>
#include <type_traits>

BURTORCH_BEGIN_NAMESPACE

namespace kernel {

// What becomes of what a destination held.
enum class Store { assign, add };

// Element (i, j) is first[i * stride + j]. No alignment is asked for.
template <class T> struct Matrix {
  T* first;
  std::size_t rows, cols, stride;

  constexpr T* row(std::size_t i) const { return first + i * stride; }

  // m rows from row i on, of these n columns from column j on.
  constexpr Matrix part(std::size_t i, std::size_t m, std::size_t j, std::size_t n) const {
    return {row(i) + j, m, n, stride};
  }

  constexpr operator Matrix<const T>() const
    requires(!std::is_const_v<T>)
  {
    return {first, rows, cols, stride};
  }
};

// A parameter that takes no part in deducing T, so that a Matrix<T> converts to it.
template <class T> using ConstMatrix = std::type_identity_t<Matrix<const T>>;

} // namespace kernel

BURTORCH_END_NAMESPACE
