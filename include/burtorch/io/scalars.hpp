// burtorch/io/scalars.hpp — what halves, quads, lanes and duals are called in files
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/io/layout.hpp>
#include <burtorch/op/types.hpp>

BURTORCH_BEGIN_NAMESPACE

namespace detail {
template <class T> inline constexpr std::size_t unitOf = sizeof(T);
template <class T, std::size_t N> inline constexpr std::size_t unitOf<simd<T, N>> = unitOf<T>;
template <class T> inline constexpr std::size_t unitOf<dual<T>> = unitOf<T>;
} // namespace detail

#define BURTORCH_STORED(dtype, type)                                                               \
  template <> struct StoredAs<type> {                                                              \
    static constexpr const char* name = #dtype;                                                    \
    static constexpr std::size_t unit = detail::unitOf<type>;                                      \
  };
BURTORCH_SCALAR_TYPES(BURTORCH_STORED)
#undef BURTORCH_STORED

BURTORCH_END_NAMESPACE
