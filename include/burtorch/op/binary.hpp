// burtorch/op/binary.hpp — operations of two operands, and of one operand between two bounds
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/op/kinds.hpp>

BURTORCH_BEGIN_NAMESPACE

namespace op {

struct BinaryAdd : Binary {
  static constexpr const char* symbol = "+";
  static constexpr const char* meaning = "x + y";
  static constexpr bool isLinear = true;
  template <class T> static constexpr T forward(const T& x, const T& y) { return x + y; }
  template <class T> static constexpr T pullbackX(const T&, const T&, const T&, const T& g) {
    return g;
  }
  template <class T> static constexpr T pullbackY(const T&, const T&, const T&, const T& g) {
    return g;
  }
};

struct BinarySub : Binary {
  static constexpr const char* symbol = "-";
  static constexpr const char* meaning = "x − y";
  static constexpr bool isLinear = true;
  template <class T> static constexpr T forward(const T& x, const T& y) { return x - y; }
  template <class T> static constexpr T pullbackX(const T&, const T&, const T&, const T& g) {
    return g;
  }
  template <class T> static constexpr T pullbackY(const T&, const T&, const T&, const T& g) {
    return -g;
  }
};

struct BinaryMult : Binary {
  static constexpr const char* symbol = "*";
  static constexpr const char* meaning = "x y";
  static constexpr bool keepsZero = true;
  template <class T> static constexpr T forward(const T& x, const T& y) { return x * y; }
  template <class T> static constexpr T pullbackX(const T&, const T& y, const T&, const T& g) {
    return g * y;
  }
  template <class T> static constexpr T pullbackY(const T& x, const T&, const T&, const T& g) {
    return g * x;
  }
};

struct BinaryMultByConst : Binary { // y scales and is not differentiated, be it a number or a node
  static constexpr const char* symbol = "*const";
  static constexpr const char* meaning = "x y, not differentiated by y";
  static constexpr bool keepsZero = true;
  template <class T> static constexpr T forward(const T& x, const T& y) { return x * passive(y); }
  template <class T> static constexpr T pullbackX(const T&, const T& y, const T&, const T& g) {
    return g * passive(y);
  }
  template <class T> static constexpr T pullbackY(const T&, const T&, const T&, const T&) {
    return T(0);
  }
};

struct BinaryDiv : Binary {
  static constexpr const char* symbol = "/";
  static constexpr const char* meaning = "x/y";
  static constexpr bool usesOutput = true;
  template <class T> static constexpr T forward(const T& x, const T& y) { return x / y; }
  template <class T> static constexpr T pullbackX(const T&, const T& y, const T&, const T& g) {
    return g / y;
  }
  template <class T> static constexpr T pullbackY(const T&, const T& y, const T& z, const T& g) {
    return -g * (z / y); // g / y may overflow where z is 0
  }
};

struct BinaryMean : Binary { // halves first: the sum of two huge numbers would overflow
  static constexpr const char* symbol = "mean";
  static constexpr const char* meaning = "(x + y)/2";
  static constexpr bool isLinear = true;
  template <class T> static constexpr T forward(const T& x, const T& y) {
    return T(0.5) * x + T(0.5) * y;
  }
  template <class T> static constexpr T pullbackX(const T&, const T&, const T&, const T& g) {
    return T(0.5) * g;
  }
  template <class T> static constexpr T pullbackY(const T&, const T&, const T&, const T& g) {
    return T(0.5) * g;
  }
};

struct BinaryAddSquares : Binary {
  static constexpr const char* symbol = "x^2+y^2";
  static constexpr const char* meaning = "x² + y²";
  static constexpr bool keepsZero = true;
  template <class T> static constexpr T forward(const T& x, const T& y) { return x * x + y * y; }
  template <class T> static constexpr T pullbackX(const T& x, const T&, const T&, const T& g) {
    return g * (x + x);
  }
  template <class T> static constexpr T pullbackY(const T&, const T& y, const T&, const T& g) {
    return g * (y + y);
  }
};

struct BinaryMeanSquares : Binary {
  static constexpr const char* symbol = "(x^2+y^2)/2";
  static constexpr const char* meaning = "(x² + y²)/2";
  static constexpr bool keepsZero = true;
  template <class T> static constexpr T forward(const T& x, const T& y) {
    return T(0.5) * x * x + T(0.5) * y * y;
  }
  template <class T> static constexpr T pullbackX(const T& x, const T&, const T&, const T& g) {
    return g * x;
  }
  template <class T> static constexpr T pullbackY(const T&, const T& y, const T&, const T& g) {
    return g * y;
  }
};

struct BinaryNegativeMean : Binary {
  static constexpr const char* symbol = "-mean";
  static constexpr const char* meaning = "−(x + y)/2";
  static constexpr bool isLinear = true;
  template <class T> static constexpr T forward(const T& x, const T& y) {
    return T(-0.5) * x - T(0.5) * y;
  }
  template <class T> static constexpr T pullbackX(const T&, const T&, const T&, const T& g) {
    return T(-0.5) * g;
  }
  template <class T> static constexpr T pullbackY(const T&, const T&, const T&, const T& g) {
    return T(-0.5) * g;
  }
};

struct BinaryPow : Binary { // x^y; where a formula would give 0·∞ the derivative is 0
  static constexpr const char* symbol = "pow";
  static constexpr const char* meaning = "x to the power of y";
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
template <bool largest> struct BinaryExtremum : Binary {
  static constexpr bool keepsZero = true;
  static constexpr bool usesOutput = true;
  template <class T> static constexpr T forward(const T& x, const T& y) {
    if constexpr (hasTangent<T>) return byPullback(x, y); // of a tie half of each tangent
    else return select(largest ? x < y : y < x, y, select(y == y, x, y));
  }
  template <class T> static constexpr T byPullback(const T& x, const T& y) {
    if constexpr (largest) return max(x, y);
    else return min(x, y);
  }
  template <class T> static constexpr T pullbackX(const T& x, const T& y, const T& z, const T& g) {
    return select(x == y, T(0.5) * g, select(x == z, g, T(0)));
  }
  template <class T> static constexpr T pullbackY(const T& x, const T& y, const T& z, const T& g) {
    return pullbackX(y, x, z, g);
  }
};

struct BinaryMin : BinaryExtremum<false> {
  static constexpr const char* symbol = "min";
  static constexpr const char* meaning =
      "the smaller of x and y, where a tie gives each half the gradient";
};

struct BinaryMax : BinaryExtremum<true> {
  static constexpr const char* symbol = "max";
  static constexpr const char* meaning =
      "the larger of x and y, where a tie gives each half the gradient";
};

// The angle of the point (y, x), in the argument order of std::atan2. The derivative at the origin is 0,
// as that of hypot.
struct BinaryAtan2 : Binary {
  static constexpr const char* symbol = "atan2";
  static constexpr const char* meaning =
      "the angle of the point whose ordinate is x and whose abscissa is y";
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

struct BinaryHypot : Binary { // the derivative at the origin is 0
  static constexpr const char* symbol = "hypot";
  static constexpr const char* meaning = "√(x² + y²), whose derivative at the origin is 0";
  static constexpr bool usesOutput = true;
  template <class T> static constexpr T forward(const T& x, const T& y) { return hypot(x, y); }
  template <class T> static constexpr T pullbackX(const T& x, const T&, const T& z, const T& g) {
    return select(z == T(0), T(0), g * (x / z));
  }
  template <class T> static constexpr T pullbackY(const T&, const T& y, const T& z, const T& g) {
    return select(z == T(0), T(0), g * (y / z));
  }
};

struct Clamp
    : Clipped { // the derivative is 1 inside and on the bounds, 0 outside; NaN passes through
  static constexpr const char* symbol = "clamp";
  static constexpr const char* meaning = "x, but lo if it is smaller and hi if it is larger";
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
