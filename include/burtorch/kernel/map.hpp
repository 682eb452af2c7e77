// burtorch/kernel/map.hpp — an operation of the table on every element of a vector
// SPDX-License-Identifier: MIT
//
// O is a Unary or Binary struct of namespace op: value and derivative are the ones written there,
// on all lanes at once. A destination may be the same array as a source.
#pragma once

#include <burtorch/kernel/lanes.hpp>
#include <burtorch/kernel/vector.hpp>

#include <cstddef>

BURTORCH_BEGIN_NAMESPACE

namespace kernel {

// y = O(x)
template <class O, class T> BURTORCH_KERNEL void mapForward(const T* x, T* y, std::size_t n) {
  eachPack<T>(n, [&](std::size_t i, const auto& read, const auto& write)
                     BURTORCH_INLINE_LAMBDA { write(y + i, O::forward(read(x + i))); });
}

// dx += what x's gradient gains
template <class O, class T>
BURTORCH_KERNEL void mapBackward(const T* x, const T* y, const T* dy, T* dx, std::size_t n) {
  eachPack<T>(n, [&](std::size_t i, const auto& read, const auto& write) BURTORCH_INLINE_LAMBDA {
    write(dx + i, read(dx + i) + O::pullback(read(x + i), read(y + i), read(dy + i)));
  });
}

// y = O(a, b)
template <class O, class T>
BURTORCH_KERNEL void mapForward2(const T* a, const T* b, T* y, std::size_t n) {
  eachPack<T>(n, [&](std::size_t i, const auto& read, const auto& write) BURTORCH_INLINE_LAMBDA {
    write(y + i, O::forward(read(a + i), read(b + i)));
  });
}

// da += …, db += …; either may be null (not wanted), and both the same where a is b.
template <class O, class T>
BURTORCH_KERNEL void mapBackward2(const T* a, const T* b, const T* y, const T* dy, T* da, T* db,
                                  std::size_t n) {
  eachPack<T>(n, [&](std::size_t i, const auto& read, const auto& write) BURTORCH_INLINE_LAMBDA {
    const Pack<T> u = read(a + i), v = read(b + i), z = read(y + i), g = read(dy + i);
    if (da) write(da + i, read(da + i) + O::pullbackX(u, v, z, g));
    if (db) write(db + i, read(db + i) + O::pullbackY(u, v, z, g));
  });
}

} // namespace kernel

BURTORCH_END_NAMESPACE
