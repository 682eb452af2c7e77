// burtorch/op/binary.hpp — operations of two operands, and of one operand between two bounds
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/op/kinds.hpp>

BURTORCH_BEGIN_NAMESPACE

namespace op {

// An operation O of which f(x, y) = f(y, x): its derivative by y is that by x with the operands exchanged.
template <class O> struct Symmetric : Binary {
  template <class T> static constexpr T pullbackY(const T& x, const T& y, const T& z, const T& g) {
    return O::pullbackX(y, x, z, g);
  }
};

struct BinaryAdd : Symmetric<BinaryAdd>, Named<"+", "x + y"> {
  static constexpr bool isLinear = true;
  template <class T> static constexpr T forward(const T& x, const T& y) { return x + y; }
  template <class T> static constexpr T pullbackX(const T&, const T&, const T&, const T& g) {
    return g;
  }
};

struct BinarySub : Binary, Named<"-", "x − y"> {
  static constexpr bool isLinear = true;
  template <class T> static constexpr T forward(const T& x, const T& y) { return x - y; }
  template <class T> static constexpr T pullbackX(const T&, const T&, const T&, const T& g) {
    return g;
  }
  template <class T> static constexpr T pullbackY(const T&, const T&, const T&, const T& g) {
    return -g;
  }
};

struct BinaryMult : Symmetric<BinaryMult>, Named<"*", "x y"> {
  static constexpr bool keepsZero = true;
  template <class T> static constexpr T forward(const T& x, const T& y) { return x * y; }
  template <class T> static constexpr T pullbackX(const T&, const T& y, const T&, const T& g) {
    return g * y;
  }
};

// y scales and is not differentiated, be it a number or a node.
struct BinaryMultByConst : Binary, Named<"*const", "x y, not differentiated by y"> {
  static constexpr bool keepsZero = true;
  template <class T> static constexpr T forward(const T& x, const T& y) { return x * passive(y); }
  template <class T> static constexpr T pullbackX(const T&, const T& y, const T&, const T& g) {
    return g * passive(y);
  }
  template <class T> static constexpr T pullbackY(const T&, const T&, const T&, const T&) {
    return T(0);
  }
};

struct BinaryDiv : Binary, Named<"/", "x/y"> {
  static constexpr bool usesOutput = true;
  template <class T> static constexpr T forward(const T& x, const T& y) { return x / y; }
  template <class T> static constexpr T pullbackX(const T&, const T& y, const T&, const T& g) {
    return g / y;
  }
  template <class T> static constexpr T pullbackY(const T&, const T& y, const T& z, const T& g) {
    return -g * (z / y); // g / y may overflow where z is 0
  }
};

// Halves first: the sum of two huge numbers would overflow.
struct BinaryMean : Symmetric<BinaryMean>, Named<"mean", "(x + y)/2"> {
  static constexpr bool isLinear = true;
  template <class T> static constexpr T forward(const T& x, const T& y) {
    return T(0.5) * x + T(0.5) * y;
  }
  template <class T> static constexpr T pullbackX(const T&, const T&, const T&, const T& g) {
    return T(0.5) * g;
  }
};

struct BinaryAddSquares : Symmetric<BinaryAddSquares>, Named<"x^2+y^2", "x² + y²"> {
  static constexpr bool keepsZero = true;
  template <class T> static constexpr T forward(const T& x, const T& y) { return x * x + y * y; }
  template <class T> static constexpr T pullbackX(const T& x, const T&, const T&, const T& g) {
    return g * (x + x);
  }
};

struct BinaryMeanSquares : Symmetric<BinaryMeanSquares>, Named<"(x^2+y^2)/2", "(x² + y²)/2"> {
  static constexpr bool keepsZero = true;
  template <class T> static constexpr T forward(const T& x, const T& y) {
    return T(0.5) * x * x + T(0.5) * y * y;
  }
  template <class T> static constexpr T pullbackX(const T& x, const T&, const T&, const T& g) {
    return g * x;
  }
};

struct BinaryNegativeMean : Symmetric<BinaryNegativeMean>, Named<"-mean", "−(x + y)/2"> {
  static constexpr bool isLinear = true;
  template <class T> static constexpr T forward(const T& x, const T& y) {
    return T(-0.5) * x - T(0.5) * y;
  }
  template <class T> static constexpr T pullbackX(const T&, const T&, const T&, const T& g) {
    return T(-0.5) * g;
  }
};

// x^y; where a formula would give 0·∞ the derivative is 0.
struct BinaryPow : Binary, Named<"pow", "x to the power of y"> {
  static constexpr bool usesOutput = true;
  template <class T> static constexpr T forward(const T& x, const T& y) { return pow(x, y); }
  template <class T> static constexpr T pullbackX(const T& x, const T& y, const T&, const T& g) {
    const T power = pow(x, y - T(1));
    const T slope = select(whereZero(power), T(0), y * power);
    const T ofZero = select(x == T(0), select(y == T(0), T(0), slope), slope);
    return select(whereZero(y), T(0), g * ofZero);
  }
  template <class T> static constexpr T pullbackY(const T& x, const T& y, const T& z, const T& g) {
    const T slope = select(z == T(0), T(0), z * log(x));
    return g * select(x == T(0), select(y == T(0), T(0), slope), slope);
  }
};

// NaN in either operand passes through. The gradient goes to the operand that is taken, and half to each
// where they tie.
template <bool largest> struct BinaryExtremum : Symmetric<BinaryExtremum<largest>> {
  static constexpr bool keepsZero = true;
  static constexpr bool usesOutput = true;
  template <class T> static constexpr T forward(const T& x, const T& y) {
    if constexpr (hasTangent<T> && largest) return max(x, y); // of a tie half of each tangent
    else if constexpr (hasTangent<T>) return min(x, y);
    else return select(largest ? x < y : y < x, y, select(y == y, x, y));
  }
  template <class T> static constexpr T pullbackX(const T& x, const T& y, const T& z, const T& g) {
    return select(x == y, T(0.5) * g, select(x == z, g, T(0)));
  }
};

struct BinaryMin
    : BinaryExtremum<false>,
      Named<"min", "the smaller of x and y, where a tie gives each half the gradient"> {};

struct BinaryMax : BinaryExtremum<true>,
                   Named<"max", "the larger of x and y, where a tie gives each half the gradient"> {
};

// The angle of the point (y, x), in the argument order of std::atan2. The derivative at the origin is 0,
// as that of hypot.
struct BinaryAtan2
    : Binary,
      Named<"atan2", "the angle of the point whose ordinate is x and whose abscissa is y"> {
  template <class T> static constexpr T forward(const T& y, const T& x) { return atan2(y, x); }
  template <class T> static constexpr T pullbackX(const T& y, const T& x, const T&, const T& g) {
    const T r = hypot(x, y); // dividing twice by r neither overflows nor underflows where r² would
    return select(r == T(0), T(0), g * (x / r / r));
  }
  template <class T> static constexpr T pullbackY(const T& y, const T& x, const T&, const T& g) {
    const T r = hypot(x, y);
    return select(r == T(0), T(0), -g * (y / r / r));
  }
};

// The derivative at the origin is 0.
struct BinaryHypot : Symmetric<BinaryHypot>,
                     Named<"hypot", "√(x² + y²), whose derivative at the origin is 0"> {
  static constexpr bool usesOutput = true;
  template <class T> static constexpr T forward(const T& x, const T& y) { return hypot(x, y); }
  template <class T> static constexpr T pullbackX(const T& x, const T&, const T& z, const T& g) {
    return select(z == T(0), T(0), g * (x / z));
  }
};

// The derivative is 1 inside and on the bounds, 0 outside; NaN passes through.
struct Clamp : Clipped, Named<"clamp", "x, but lo if it is smaller and hi if it is larger"> {
  static constexpr bool keepsZero = true;
  template <class T> static constexpr T forward(const T& x, const T& lo, const T& hi) {
    return select(x < lo, lo, select(hi < x, hi, x));
  }
  template <class T> static constexpr T pullback(const T& x, const T& lo, const T& hi, const T& g) {
    return select(x < lo, T(0), select(hi < x, T(0), g));
  }
};

} // namespace op

BURTORCH_END_NAMESPACE
