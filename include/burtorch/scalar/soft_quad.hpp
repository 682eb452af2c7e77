// burtorch/scalar/soft_quad.hpp — arithmetic of IEEE binary128 in whole numbers, for compilers without it
// SPDX-License-Identifier: MIT
//
// Sum, difference, product, quotient and conversions, correctly rounded: to nearest, ties to even. A
// number is 1 bit of sign, 15 of exponent, 112 of fraction. Between unpacking and packing, a
// significand has its leading 1 at bit 115: 112 digits below it, two more for rounding, and a last
// one that is set if anything further down was lost.
#pragma once

#include <burtorch/base/config.hpp>

#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

BURTORCH_BEGIN_NAMESPACE

namespace detail {

// A whole number of 128 bits; no compiler is known to have one and lack float128.
struct Wide {
  std::uint64_t hi, lo;

  friend constexpr Wide operator+(Wide x, Wide y) {
    const std::uint64_t low = x.lo + y.lo;
    return {x.hi + y.hi + (low < x.lo ? 1 : 0), low};
  }
  friend constexpr Wide operator-(Wide x, Wide y) {
    return {x.hi - y.hi - (x.lo < y.lo ? 1 : 0), x.lo - y.lo};
  }
  friend constexpr bool operator==(Wide, Wide) = default;
  friend constexpr bool operator<(Wide x, Wide y) {
    return x.hi != y.hi ? x.hi < y.hi : x.lo < y.lo;
  }
  constexpr bool isZero() const { return (hi | lo) == 0; }
  constexpr int leadingZeros() const {
    return hi != 0 ? std::countl_zero(hi) : 64 + std::countl_zero(lo);
  }
  friend constexpr Wide operator<<(Wide x, int n) {
    if (n == 0) return x;
    if (n >= 64) return {n >= 128 ? 0 : x.lo << (n - 64), 0};
    return {(x.hi << n) | (x.lo >> (64 - n)), x.lo << n};
  }
  friend constexpr Wide operator>>(Wide x, int n) {
    if (n == 0) return x;
    if (n >= 64) return {0, n >= 128 ? 0 : x.hi >> (n - 64)};
    return {x.hi >> n, (x.lo >> n) | (x.hi << (64 - n))};
  }
  // Shifted right; what falls off leaves its trace in the last bit.
  constexpr Wide sticky(int n) const {
    const Wide shifted = *this >> n;
    return {shifted.hi, shifted.lo | ((shifted << n) == *this ? 0 : 1)};
  }
  // The upper half of the product, its last bit set if the lower half is not 0.
  static constexpr Wide productOf(Wide x, Wide y) {
    const Wide low = product(x.lo, y.lo), high = product(x.hi, y.hi);
    const Wide one = product(x.lo, y.hi), two = product(x.hi, y.lo);
    const Wide middle = Wide{0, low.hi} + Wide{0, one.lo} + Wide{0, two.lo};
    const Wide sum = high + Wide{0, one.hi} + Wide{0, two.hi} + Wide{0, middle.hi};
    return {sum.hi, sum.lo | ((middle.lo | low.lo) != 0 ? 1 : 0)};
  }

private:
  static constexpr Wide product(std::uint64_t x, std::uint64_t y) {
    const std::uint64_t x1 = x >> 32, x0 = x & 0xffffffffu, y1 = y >> 32, y0 = y & 0xffffffffu;
    const std::uint64_t middle = x1 * y0 + ((x0 * y0) >> 32);
    const std::uint64_t upper = x0 * y1 + (middle & 0xffffffffu);
    return {x1 * y1 + (middle >> 32) + (upper >> 32), x * y};
  }
};

class SoftQuad {
  // The bits of an IEEE number of so many digits and bits of exponent, rounded once. It stands first, as
  // clang wants templates before what calls them in constant expressions.
  template <class Bits, int digits, int exponentBits> constexpr Bits narrowed() const {
    constexpr int target = (1 << (exponentBits - 1)) - 1, most = (1 << exponentBits) - 1;
    const Bits sign = static_cast<Bits>(isNegative() ? 1 : 0) << (digits - 1 + exponentBits);
    const Bits infinite = static_cast<Bits>(most) << (digits - 1);
    if (isNaN()) return infinite | (Bits{1} << (digits - 2));
    if (isInfinite()) return sign | infinite;
    if (isZero()) return sign;
    Parts p = parts();
    int at = p.exponent - bias + target;
    if (at >= most) return sign | infinite;
    Wide kept = p.significand.sticky(113 - digits); // three digits too many, as in packed()
    if (at < 1) {
      kept = at < -digits - 3 ? Wide{0, 1} : kept.sticky(1 - at);
      at = 0;
    }
    const auto lost = static_cast<unsigned>(kept.lo & 7);
    Bits bits = static_cast<Bits>(kept.lo >> 3);
    if (lost > 4 || (lost == 4 && (bits & 1) != 0)) ++bits;
    if (at > 1) bits += static_cast<Bits>(at - 1) << (digits - 1);
    return sign | bits;
  }

public:
  SoftQuad() = default;
  template <std::integral I> constexpr explicit SoftQuad(I x) : word_(ofInteger(x)) {}
  constexpr explicit SoftQuad(double x) : word_(ofDouble(x)) {}
  constexpr explicit SoftQuad(float x) : word_(ofDouble(x)) {}
  constexpr explicit SoftQuad(long double x) { // of at most 106 digits
    const auto head = static_cast<double>(x);
    const auto rest = x - x == 0 ? static_cast<double>(x - head) : 0.0;
    *this = rest == 0 ? SoftQuad(head) : SoftQuad(head) + SoftQuad(rest);
  }
  static constexpr SoftQuad fromWord(Wide word) {
    SoftQuad x;
    x.word_ = word;
    return x;
  }
  constexpr Wide word() const { return word_; }

  constexpr explicit operator double() const {
    return std::bit_cast<double>(narrowed<std::uint64_t, 53, 11>());
  }
  constexpr explicit operator float() const {
    return std::bit_cast<float>(narrowed<std::uint32_t, 24, 8>());
  }
  constexpr explicit operator long double() const {
    const auto head = static_cast<double>(*this);
    if (std::numeric_limits<long double>::digits == 53 || !isFinite()) return head;
    return static_cast<long double>(head) + static_cast<double>(*this - SoftQuad(head));
  }
  template <std::integral I> constexpr explicit operator I() const {
    if constexpr (std::same_as<I, bool>) {
      return !isZero();
    } else { // towards 0; the caller sees to it that it fits
      const int shift = bias + 112 - exponent();
      if (shift > 112) return 0;
      const Wide fraction = significand();
      const std::uint64_t whole = shift >= 0 ? (fraction >> shift).lo : (fraction << -shift).lo;
      return static_cast<I>(isNegative() ? std::uint64_t{0} - whole : whole);
    }
  }

  friend constexpr SoftQuad operator-(SoftQuad x) {
    return fromWord({x.word_.hi ^ signBit, x.word_.lo});
  }
  friend constexpr SoftQuad operator+(SoftQuad x, SoftQuad y) {
    if (!x.isFinite() || !y.isFinite()) {
      const bool opposite = x.isInfinite() && y.isInfinite() && x.isNegative() != y.isNegative();
      return x.isNaN() || y.isNaN() || opposite ? nan() : x.isInfinite() ? x : y;
    }
    if (magnitude(x) < magnitude(y)) return y + x;
    if (y.isZero()) return x.isZero() && !(x.isNegative() && y.isNegative()) ? zero(false) : x;
    const Parts a = x.parts(), b = y.parts();
    const int distance = a.exponent - b.exponent;
    const Wide shifted = distance > 120 ? Wide{0, 1} : b.significand.sticky(distance);
    if (x.isNegative() == y.isNegative())
      return packed(x.isNegative(), a.exponent, a.significand + shifted);
    const Wide difference = a.significand - shifted;
    return difference.isZero() ? zero(false) : packed(x.isNegative(), a.exponent, difference);
  }
  friend constexpr SoftQuad operator-(SoftQuad x, SoftQuad y) { return y.isNaN() ? nan() : x + -y; }
  friend constexpr SoftQuad operator*(SoftQuad x, SoftQuad y) {
    const bool negative = x.isNegative() != y.isNegative();
    if (!x.isFinite() || !y.isFinite()) {
      if (x.isNaN() || y.isNaN() || x.isZero() || y.isZero()) return nan();
      return infinity(negative);
    }
    if (x.isZero() || y.isZero()) return zero(negative);
    const Parts a = x.parts(), b = y.parts();
    // Leading ones at bits 127: the product's is at bit 255 or 254.
    const Wide product = Wide::productOf(a.significand << 12, b.significand << 12);
    return packed(negative, a.exponent + b.exponent - bias + 1, product.sticky(12));
  }
  friend constexpr SoftQuad operator/(SoftQuad x, SoftQuad y) {
    const bool negative = x.isNegative() != y.isNegative();
    if (x.isNaN() || y.isNaN()) return nan();
    if (x.isInfinite() || y.isZero())
      return x.isInfinite() == y.isInfinite() && x.isZero() == y.isZero() ? nan()
                                                                          : infinity(negative);
    if (x.isZero() || y.isInfinite()) return zero(negative);
    const Parts a = x.parts(), b = y.parts();
    Wide rest = a.significand, quotient{0, 0};
    for (int i = 0; i < 117; ++i) { // one digit a time: one before the point, 116 behind it
      const bool one = !(rest < b.significand);
      if (one) rest = rest - b.significand;
      quotient = (quotient << 1) + Wide{0, one ? std::uint64_t{1} : 0};
      rest = rest << 1;
    }
    quotient.lo |= rest.isZero() ? 0 : 1;
    return packed(negative, a.exponent - b.exponent + bias, quotient.sticky(1));
  }

  friend constexpr bool operator==(SoftQuad x, SoftQuad y) {
    return !x.isNaN() && !y.isNaN() && (x.word_ == y.word_ || (x.isZero() && y.isZero()));
  }
  friend constexpr bool operator<(SoftQuad x, SoftQuad y) {
    if (x.isNaN() || y.isNaN() || (x.isZero() && y.isZero())) return false;
    if (x.isNegative() != y.isNegative()) return x.isNegative();
    return x.isNegative() ? magnitude(y) < magnitude(x) : magnitude(x) < magnitude(y);
  }
  friend constexpr bool operator>(SoftQuad x, SoftQuad y) { return y < x; }

private:
  static constexpr int bias = 16383, special = 32767; // of the exponent
  static constexpr std::uint64_t signBit = std::uint64_t{1} << 63;
  static constexpr std::uint64_t fractionBits = (std::uint64_t{1} << 48) - 1; // in the upper half

  static constexpr SoftQuad zero(bool negative) { return fromWord({negative ? signBit : 0, 0}); }
  static constexpr SoftQuad infinity(bool negative) {
    return fromWord({(negative ? signBit : 0) | (std::uint64_t{special} << 48), 0});
  }
  static constexpr SoftQuad nan() { return fromWord({std::uint64_t{0x7fff8} << 44, 0}); }

  constexpr int exponent() const { return static_cast<int>((word_.hi & ~signBit) >> 48); }
  constexpr bool isNegative() const { return (word_.hi & signBit) != 0; }
  constexpr bool isFinite() const { return exponent() != special; }
  constexpr bool isInfinite() const {
    return magnitude(*this) == Wide{std::uint64_t{special} << 48, 0};
  }
  constexpr bool isNaN() const { return !isFinite() && !isInfinite(); }
  constexpr bool isZero() const { return magnitude(*this).isZero(); }
  static constexpr Wide magnitude(SoftQuad x) { return {x.word_.hi & ~signBit, x.word_.lo}; }
  constexpr Wide significand() const { // of a normal number, its leading 1 at bit 112
    return {(word_.hi & fractionBits) | (fractionBits + 1), word_.lo};
  }

  struct Parts {
    int exponent; // with the bias; denormals have one below 1
    Wide significand;
  };
  constexpr Parts parts() const { // of a finite number that is not 0
    if (exponent() != 0) return {exponent(), significand() << 3};
    const Wide fraction = magnitude(*this);
    const int shift = fraction.leadingZeros() - 12;
    return {1 + 3 - shift, fraction << shift};
  }

  // Rounds a significand that is not 0 and whose leading 1 stands anywhere; at bit 115 it counts
  // 2^(exponent − bias).
  static constexpr SoftQuad packed(bool negative, int exponent, Wide significand) {
    const int shift = 12 - significand.leadingZeros();
    exponent += shift;
    significand = shift >= 0 ? significand.sticky(shift) : significand << -shift;
    if (exponent >= special) return infinity(negative);
    if (exponent < 1) { // a denormal: fewer digits
      significand = exponent < -120 ? Wide{0, 1} : significand.sticky(1 - exponent);
      exponent = 0;
    }
    const auto lost = static_cast<unsigned>(significand.lo & 7);
    Wide word = significand >> 3;
    if (lost > 4 || (lost == 4 && (word.lo & 1) != 0)) word = word + Wide{0, 1};
    // The leading 1 adds one to the exponent; if rounding carried, it adds two, as it should.
    if (exponent > 1) word.hi += static_cast<std::uint64_t>(exponent - 1) << 48;
    return fromWord({word.hi | (negative ? signBit : 0), word.lo});
  }

  template <class I> static constexpr Wide ofInteger(I x) {
    if (x == 0) return {0, 0};
    bool negative = false;
    if constexpr (std::is_signed_v<I>) negative = x < 0;
    const auto bits = static_cast<std::uint64_t>(x);
    const Wide magnitude{0, negative ? std::uint64_t{0} - bits : bits};
    return packed(negative, bias + 115, magnitude).word_;
  }
  static constexpr Wide ofDouble(double x) {
    const auto bits = std::bit_cast<std::uint64_t>(x);
    const bool negative = (bits & signBit) != 0;
    const auto exponent = static_cast<int>((bits & ~signBit) >> 52);
    const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
    if (exponent == 2047) return (fraction != 0 ? nan() : infinity(negative)).word_;
    if (exponent == 0 && fraction == 0) return zero(negative).word_;
    const std::uint64_t whole = exponent == 0 ? fraction : fraction | (std::uint64_t{1} << 52);
    return packed(negative, (exponent == 0 ? 1 : exponent) - 1023 + bias + 115 - 52, {0, whole})
        .word_;
  }

  Wide word_;
};

} // namespace detail

BURTORCH_END_NAMESPACE
