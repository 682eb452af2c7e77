// burtorch/op/unary.hpp — operations of one operand: value and pullback side by side
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/op/kinds.hpp>

BURTORCH_BEGIN_NAMESPACE

namespace op {

// The derivative at 0 is 0; NaN passes through.
struct Relu : Unary, Named<"relu", "max(0, x), whose derivative at 0 is 0"> {
  static constexpr bool isLinear = true;
  template <class T> static constexpr T forward(const T& x) { return select(x <= T(0), T(0), x); }
  template <class T> static constexpr T pullback(const T& x, const T&, const T& g) {
    return select(x <= T(0), T(0), g);
  }
};

struct Tanh : Unary, Named<"tanh", "tanh x"> {
  static constexpr bool usesOutput = true;
  template <class T> static constexpr T forward(const T& x) { return tanh(x); }
  template <class T> static constexpr T pullback(const T&, const T& z, const T& g) {
    return g * (T(1) - z) * (T(1) + z);
  }
};

struct Exp : Unary, Named<"exp", "eˣ"> {
  static constexpr bool usesOutput = true;
  template <class T> static constexpr T forward(const T& x) { return exp(x); }
  template <class T> static constexpr T pullback(const T&, const T& z, const T& g) { return g * z; }
};

struct NegLog : Unary, Named<"-log", "−ln x"> {
  template <class T> static constexpr T forward(const T& x) { return -log(x); }
  template <class T> static constexpr T pullback(const T& x, const T&, const T& g) {
    return -g / x;
  }
};

struct Sigmoid : Unary, Named<"sigmoid", "1/(1 + e⁻ˣ)"> {
  static constexpr bool usesOutput = true;
  template <class T> static constexpr T forward(const T& x) { return logistic(x); }
  template <class T> static constexpr T pullback(const T&, const T& z, const T& g) {
    return g * z * (T(1) - z);
  }
};

struct Inv : Unary, Named<"1/x", "1/x"> {
  static constexpr bool usesOutput = true;
  template <class T> static constexpr T forward(const T& x) { return T(1) / x; }
  template <class T> static constexpr T pullback(const T&, const T& z, const T& g) {
    return -g * z * z;
  }
};

struct Sqr : Unary, Named<"x^2", "x²"> {
  static constexpr bool keepsZero = true;
  template <class T> static constexpr T forward(const T& x) { return x * x; }
  template <class T> static constexpr T pullback(const T& x, const T&, const T& g) {
    return g * (x + x);
  }
};

struct Cub : Unary, Named<"x^3", "x³"> {
  static constexpr bool keepsZero = true;
  template <class T> static constexpr T forward(const T& x) { return x * x * x; }
  template <class T> static constexpr T pullback(const T& x, const T&, const T& g) {
    return g * (T(3) * x * x);
  }
};

struct Log : Unary, Named<"log", "ln x"> {
  template <class T> static constexpr T forward(const T& x) { return log(x); }
  template <class T> static constexpr T pullback(const T& x, const T&, const T& g) { return g / x; }
};

struct Sqrt : Unary, Named<"sqrt", "√x"> {
  static constexpr bool usesOutput = true;
  template <class T> static constexpr T forward(const T& x) { return sqrt(x); }
  template <class T> static constexpr T pullback(const T&, const T& z, const T& g) {
    return T(0.5) * g / z;
  }
};

struct InvSqrt : Unary, Named<"1/sqrt", "1/√x"> {
  static constexpr bool usesOutput = true;
  template <class T> static constexpr T forward(const T& x) { return T(1) / sqrt(x); }
  template <class T> static constexpr T pullback(const T& x, const T& z, const T& g) {
    return T(-0.5) * g * z / x;
  }
};

struct Negative : Unary, Named<"-x", "−x"> {
  static constexpr bool isLinear = true;
  template <class T> static constexpr T forward(const T& x) { return -x; }
  template <class T> static constexpr T pullback(const T&, const T&, const T& g) { return -g; }
};

// The derivative at 0 is 0.
struct Abs : Unary, Named<"abs", "|x|, whose derivative at 0 is 0"> {
  static constexpr bool isLinear = true;
  template <class T> static constexpr T forward(const T& x) { return fabs(x); }
  template <class T> static constexpr T pullback(const T& x, const T&, const T& g) {
    return select(x == T(0), T(0), select(x < T(0), -g, g));
  }
};

struct Sin : Unary, Named<"sin", "sin x"> {
  template <class T> static constexpr T forward(const T& x) { return sin(x); }
  template <class T> static constexpr T pullback(const T& x, const T&, const T& g) {
    return g * cos(x);
  }
};

struct Cos : Unary, Named<"cos", "cos x"> {
  template <class T> static constexpr T forward(const T& x) { return cos(x); }
  template <class T> static constexpr T pullback(const T& x, const T&, const T& g) {
    return -g * sin(x);
  }
};

struct Tan : Unary, Named<"tan", "tan x"> {
  static constexpr bool usesOutput = true;
  template <class T> static constexpr T forward(const T& x) { return tan(x); }
  template <class T> static constexpr T pullback(const T&, const T& z, const T& g) {
    return g * (T(1) + z * z);
  }
};

struct Asin : Unary, Named<"asin", "arcsin x"> {
  template <class T> static constexpr T forward(const T& x) { return asin(x); }
  template <class T> static constexpr T pullback(const T& x, const T&, const T& g) {
    return g / sqrt((T(1) - x) * (T(1) + x));
  }
};

struct Acos : Unary, Named<"acos", "arccos x"> {
  template <class T> static constexpr T forward(const T& x) { return acos(x); }
  template <class T> static constexpr T pullback(const T& x, const T&, const T& g) {
    return -g / sqrt((T(1) - x) * (T(1) + x));
  }
};

struct Atan : Unary, Named<"atan", "arctan x"> {
  template <class T> static constexpr T forward(const T& x) { return atan(x); }
  template <class T> static constexpr T pullback(const T& x, const T&, const T& g) {
    return g / (T(1) + x * x);
  }
};

struct Sinh : Unary, Named<"sinh", "sinh x"> {
  template <class T> static constexpr T forward(const T& x) { return sinh(x); }
  template <class T> static constexpr T pullback(const T& x, const T&, const T& g) {
    return g * cosh(x);
  }
};

struct Cosh : Unary, Named<"cosh", "cosh x"> {
  template <class T> static constexpr T forward(const T& x) { return cosh(x); }
  template <class T> static constexpr T pullback(const T& x, const T&, const T& g) {
    return g * sinh(x);
  }
};

struct Erf : Unary, Named<"erf", "erf x = 2/√π ∫ e^(−t²) dt from 0 to x"> {
  template <class T> static constexpr T forward(const T& x) { return erf(x); }
  template <class T> static constexpr T pullback(const T& x, const T&, const T& g) {
    return g * (T(Constant<T>::twoOverSqrtPi) * exp(-x * x));
  }
};

struct Log1p : Unary, Named<"log1p", "ln(1 + x), exact near 0"> {
  template <class T> static constexpr T forward(const T& x) { return log1p(x); }
  template <class T> static constexpr T pullback(const T& x, const T&, const T& g) {
    return g / (T(1) + x);
  }
};

struct Expm1 : Unary, Named<"expm1", "eˣ − 1, exact near 0"> {
  static constexpr bool usesOutput = true;
  template <class T> static constexpr T forward(const T& x) { return expm1(x); }
  template <class T> static constexpr T pullback(const T&, const T& z, const T& g) {
    return g * (z + T(1));
  }
};

// log(1 + e^x) without ever computing e^x of a large x.
struct Softplus : Unary, Named<"softplus", "ln(1 + eˣ)"> {
  template <class T> static constexpr T forward(const T& x) {
    if constexpr (hasTangent<T>) return softplus(x); // by the pullback: the formula has a kink at 0
    else return select(x < T(0), T(0), x) + log1p(exp(-fabs(x)));
  }
  template <class T> static constexpr T pullback(const T& x, const T&, const T& g) {
    return g * Sigmoid::forward(x);
  }
};

// x·Φ(x), the exact form; Φ through erfc, which keeps the left tail.
struct Gelu : Unary, Named<"gelu", "x Φ(x) with the normal distribution Φ(x) = (1 + erf(x/√2))/2"> {
  template <class T> static constexpr T phi(const T& x) { // the normal distribution function
    return T(0.5) * erfc(-x * T(Constant<T>::inverseSqrt2));
  }
  template <class T> static constexpr T forward(const T& x) { return vanishing(x, phi(x)); }
  template <class T> static constexpr T pullback(const T& x, const T&, const T& g) {
    const T density = T(0.5) * T(Constant<T>::twoOverSqrtPi) * T(Constant<T>::inverseSqrt2) *
                      exp(T(-0.5) * x * x);
    return g * (phi(x) + vanishing(x, density));
  }
};

// x·sigmoid(x).
struct Silu : Unary, Named<"silu", "x/(1 + e⁻ˣ)"> {
  template <class T> static constexpr T forward(const T& x) {
    return vanishing(x, Sigmoid::forward(x));
  }
  template <class T> static constexpr T pullback(const T& x, const T&, const T& g) {
    const T s = Sigmoid::forward(x);
    return g * (s + vanishing(x, s * Sigmoid::forward(-x)));
  }
};

} // namespace op

BURTORCH_END_NAMESPACE
