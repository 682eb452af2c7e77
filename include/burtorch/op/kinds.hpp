// burtorch/op/kinds.hpp — the shapes an operation can have, and how a struct describes one
// SPDX-License-Identifier: MIT
//
// An operation is a struct derived from one of the kinds below. x, y are operands, z is the result,
// g the adjoint of the result (d root / d z). Everything the library knows about its calculus is in
// that struct:
//
//   Unary      z = forward(x)          pullback(x, z, g) → what x's gradient gains
//   Binary     z = forward(x, y)       pullbackX(x, y, z, g), pullbackY(x, y, z, g)
//   Clipped    z = forward(x, lo, hi)  pullback(x, lo, hi, g); lo and hi are plain numbers
//   Reduction  z = forward(x)          pullback(x, z, g, give): give(i, what x[i]'s gradient gains)
//   Product    z = forward(x, y)       pullback(x, y, g, giveX, giveY); with a bias: its gradient
//                                      gains g
//   Block      many results at once: block.hpp
//
// In a Reduction and a Product x and y are sequences with size() and operator[]. The second base, Named,
// brings its symbol, which is what a picture shows, and its meaning, which is what the documentation
// says: a formula or words that go on "of x". An operation whose pullback reads z
// says so with usesOutput: where it does not, a root need not be evaluated. Operands of a Binary that are plain numbers take no node and no
// derivative; the tape derives those forms from the same struct.
#pragma once

#include <burtorch/base/config.hpp>
#include <burtorch/scalar/scalar.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>

BURTORCH_BEGIN_NAMESPACE

namespace op {

struct Kind {
  static constexpr bool usesOutput = false;
  static constexpr bool hasBias = false; // a Product may have one
  // The derivatives are finite numbers, whatever the operands.
  static constexpr bool isLinear = false;
  // An adjoint of 0 gives 0 to operands with finite squares: on the way nothing overflows and nothing is
  // divided by 0. Of others a sweep must not ask, because 0·∞ is no number.
  static constexpr bool keepsZero = false;
};
struct Unary : Kind {};
struct Binary : Kind {};
struct Clipped : Kind {};
struct Reduction : Kind {};
struct Product : Kind {};

// A text as a template argument.
template <std::size_t n> struct Text {
  char text[n];
  constexpr Text(const char (&from)[n]) { std::copy_n(from, n, text); } // NOLINT: a literal is one
};
// What people see of an operation.
template <Text Symbol, Text Meaning> struct Named {
  static constexpr const char* symbol = Symbol.text;
  static constexpr const char* meaning = Meaning.text;
};

// What it computes is in its description (tape/block.hpp).
struct Block : Kind, Named<"block", "many numbers at once"> {};

// Inside an operation the standard functions are called unqualified: these for built-in scalars,
// and by argument-dependent lookup those that a scalar type brings along.
#define BURTORCH_USING(function) using std::function;
BURTORCH_STANDARD_FUNCTIONS(BURTORCH_USING)
BURTORCH_STANDARD_FUNCTIONS_OF_TWO(BURTORCH_USING)
#undef BURTORCH_USING

// a·b where a zero b wins over an infinite a: the tails of x·Φ(x) and the like, where b vanishes
// faster.
template <class T> constexpr T vanishing(const T& a, const T& b) {
  return select(b == T(0), T(0), a * b);
}

} // namespace op

BURTORCH_END_NAMESPACE
