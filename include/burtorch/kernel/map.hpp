// burtorch/kernel/map.hpp — an operation of the table on every element of a vector
// SPDX-License-Identifier: MIT
//
// O is a struct of namespace op: value and derivative are the ones written there, on all lanes at
// once. A destination may be the same array as a source. An adjoint of 0 gives nothing, not even
// 0·∞ = NaN.
//
// An operation of two operands is three kernels over neighbours. Where one number goes with a whole
// row, it is first written as often as it is needed (Repeated), and what its gradient gains is
// gathered the same way (Gathered): that costs a load from the first cache, and saves the kernels
// that would otherwise be compiled for each combination.
#pragma once

#include <burtorch/kernel/lanes.hpp>
#include <burtorch/kernel/matrix.hpp>
#include <burtorch/kernel/vector.hpp>

#include <algorithm>
#include <cstddef>
#include <type_traits>

BURTORCH_BEGIN_NAMESPACE

namespace kernel {

namespace detail {

// What an adjoint g gives: nothing in the lanes where it is 0.
template <class O, class T>
BURTORCH_INLINE Pack<T> given(const Pack<T>& g, const Pack<T>& contribution) {
  if constexpr (O::isLinear) return contribution;
  else if constexpr (isPacked<T>) return unlessZero(g, contribution);
  else return isZero(g) ? T(0) : contribution;
}

} // namespace detail

// y = O(x)
template <class O, class T> BURTORCH_KERNEL void mapForward(const T* x, T* y, std::size_t n) {
  eachPack<T>(n, [&](std::size_t i, const auto& read, const auto& write)
                     BURTORCH_INLINE_LAMBDA { write(y + i, O::forward(read(x + i))); });
}

// dx += what x's gradient gains
template <class O, class T>
BURTORCH_KERNEL void mapBackward(const T* x, const T* y, const T* dy, T* dx, std::size_t n) {
  eachPack<T>(n, [&](std::size_t i, const auto& read, const auto& write) BURTORCH_INLINE_LAMBDA {
    const Pack<T> g = read(dy + i);
    write(dx + i, read(dx + i) + detail::given<O, T>(g, O::pullback(read(x + i), read(y + i), g)));
  });
}

// y = O(x, lo, hi)
template <class O, class T>
BURTORCH_KERNEL void mapBoundedForward(const T* x, const std::type_identity_t<T>& lo,
                                       const std::type_identity_t<T>& hi, T* y, std::size_t n) {
  const Pack<T> least = fill(lo), most = fill(hi);
  eachPack<T>(n, [&](std::size_t i, const auto& read, const auto& write) BURTORCH_INLINE_LAMBDA {
    write(y + i, O::forward(read(x + i), least, most));
  });
}

// dx += …
template <class O, class T>
BURTORCH_KERNEL void mapBoundedBackward(const T* x, const std::type_identity_t<T>& lo,
                                        const std::type_identity_t<T>& hi, const T* dy, T* dx,
                                        std::size_t n) {
  const Pack<T> least = fill(lo), most = fill(hi);
  eachPack<T>(n, [&](std::size_t i, const auto& read, const auto& write) BURTORCH_INLINE_LAMBDA {
    const Pack<T> g = read(dy + i);
    write(dx + i, read(dx + i) + detail::given<O, T>(g, O::pullback(read(x + i), least, most, g)));
  });
}

// y = O(a, b)
template <class O, class T>
BURTORCH_KERNEL void mapForward2(const T* a, const T* b, T* y, std::size_t n) {
  eachPack<T>(n, [&](std::size_t i, const auto& read, const auto& write) BURTORCH_INLINE_LAMBDA {
    write(y + i, O::forward(read(a + i), read(b + i)));
  });
}

// to += what the gradient of a (Side::x) or b (Side::y) gains
enum class Side { x, y };
template <class O, Side side, class T>
BURTORCH_KERNEL void mapBackward2(const T* a, const T* b, const T* y, const T* dy, T* to,
                                  std::size_t n) {
  eachPack<T>(n, [&](std::size_t i, const auto& read, const auto& write) BURTORCH_INLINE_LAMBDA {
    const Pack<T> u = read(a + i), v = read(b + i), z = read(y + i), g = read(dy + i);
    const auto pulled = [&]() BURTORCH_INLINE_LAMBDA -> Pack<T> {
      if constexpr (side == Side::x) return O::pullbackX(u, v, z, g);
      else return O::pullbackY(u, v, z, g);
    };
    write(to + i, read(to + i) + detail::given<O, T>(g, pulled()));
  });
}

// ---- one number that goes with many --------------------------------------------------------------

inline constexpr std::size_t repeats = 256; // numbers at a time

// `count` neighbours from `first` on, or one number in the place of all of them.
template <class T> class Repeated {
public:
  Repeated(const T* first, bool isOne, std::size_t count) : first_(first), isOne_(isOne) {
    if (isOne_) std::fill_n(same_, std::min(count, repeats), *first);
  }
  // Those from i on, `repeats` of them at most.
  const T* from(std::size_t i) const { return isOne_ ? same_ : first_ + i; }

private:
  const T* first_;
  bool isOne_;
  alignas(64) T same_[repeats];
};

// Where their gradients go: to neighbours, or all to one number, which gains their sum at the end.
template <class T> class Gathered {
public:
  Gathered(T* first, bool isOne, std::size_t count)
      : first_(first), count_(std::min(count, repeats)), isOne_(isOne) {
    if (isOne_) std::fill_n(sums_, count_, T(0));
  }
  T* from(std::size_t i) { return isOne_ ? sums_ : first_ + i; }
  ~Gathered() {
    if (isOne_)
      *first_ =
          *first_ + sumOfEach<T>(count_, [&](std::size_t i, const auto& read, const auto&)
                                             BURTORCH_INLINE_LAMBDA { return read(sums_ + i); });
  }
  Gathered(const Gathered&) = delete;
  Gathered& operator=(const Gathered&) = delete;

private:
  T* first_;
  std::size_t count_;
  bool isOne_;
  alignas(64) T sums_[repeats];
};

// The kernels of an operation of two operands, for the two functions below.
template <class T> using Forward2 = void(const T* a, const T* b, T* y, std::size_t n);
template <class T>
using Backward2 = void(const T* a, const T* b, const T* y, const T* dy, T* to, std::size_t n);

namespace detail {

// visit(first element, its operands' first ones, how many) for parts of the result in which each
// operand is either neighbours or one number: all of it where both have its shape, else rows.
template <class T, class Visit>
void eachBroadcastRow(const Matrix<const T>& x, const Matrix<const T>& y, const Matrix<T>& z,
                      const Visit& visit) {
  const std::size_t n = z.rows * z.cols;
  if (x.rows == y.rows && x.cols == y.cols) return visit(std::size_t{0}, 0, 0, n, false, false);
  if (x.rows * x.cols == 1) return visit(std::size_t{0}, 0, 0, n, true, false);
  if (y.rows * y.cols == 1) return visit(std::size_t{0}, 0, 0, n, false, true);
  for (std::size_t i = 0; i < z.rows; ++i)
    visit(i * z.cols, x.rows == 1 ? 0 : i * x.stride, y.rows == 1 ? 0 : i * y.stride, z.cols,
          x.cols != z.cols, y.cols != z.cols);
}

} // namespace detail

// z = O(x, y): operands of equal shapes, or of one row, one column, one number beside the other's.
template <class T>
void broadcastForward(Forward2<T>* kernel, ConstMatrix<T> x, ConstMatrix<T> y, Matrix<T> z) {
  detail::eachBroadcastRow<T>(
      x, y, z,
      [&](std::size_t at, std::size_t atX, std::size_t atY, std::size_t n, bool isOneX,
          bool isOneY) {
        if (!isOneX && !isOneY) return kernel(x.first + atX, y.first + atY, z.first + at, n);
        const Repeated<T> a(x.first + atX, isOneX, n), b(y.first + atY, isOneY, n);
        for (std::size_t i = 0; i < n; i += repeats)
          kernel(a.from(i), b.from(i), z.first + at + i, std::min(repeats, n - i));
      });
}

// What the gradient of one of them gains; `to` has that one's shape.
template <Side side, class T>
void broadcastBackward(Backward2<T>* kernel, ConstMatrix<T> x, ConstMatrix<T> y, Matrix<T> z,
                       ConstMatrix<T> dz, T* to) {
  detail::eachBroadcastRow<T>(
      x, y, z,
      [&](std::size_t at, std::size_t atX, std::size_t atY, std::size_t n, bool isOneX,
          bool isOneY) {
        T* const place = to + (side == Side::x ? atX : atY);
        if (!isOneX && !isOneY)
          return kernel(x.first + atX, y.first + atY, z.first + at, dz.first + at, place, n);
        const Repeated<T> a(x.first + atX, isOneX, n), b(y.first + atY, isOneY, n);
        Gathered<T> gradients(place, side == Side::x ? isOneX : isOneY, n);
        for (std::size_t i = 0; i < n; i += repeats)
          kernel(a.from(i), b.from(i), z.first + at + i, dz.first + at + i, gradients.from(i),
                 std::min(repeats, n - i));
      });
}

} // namespace kernel

BURTORCH_END_NAMESPACE
