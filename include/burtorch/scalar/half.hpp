// burtorch/scalar/half.hpp — float16 and bfloat16: numbers of 16 bits, computed with as floats
// SPDX-License-Identifier: MIT
//
// Both store 16 bits and do their arithmetic in float; every result is rounded to nearest, ties to
// even. The sum, difference, product, quotient and square root of two halves are thereby correctly
// rounded, as float has more than twice their digits. A tape of halves goes further: it computes a
// whole operation in float and rounds only what it stores (ComputedIn in scalar.hpp).
//
// Conversions are integer arithmetic that gives the bits of the hardware's, which is used where the
// target has it (F16C). Where the compiler has std::float16_t, std::bfloat16_t or _Float16, they
// convert from and to these without changing a bit.
#pragma once

#include <burtorch/scalar/scalar.hpp>
#include <burtorch/scalar/simd.hpp>

#include <bit>
#include <cmath>
#include <compare>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#if defined(__has_include)
#if __has_include(<stdfloat>)
#include <stdfloat>
#endif
#endif

// Whether _Float16 is a type. GCC 12 has its limits on every target that has it in C, but the type itself in
// C++ on x86 only.
#if defined(__FLT16_MAX__) && (defined(__clang__) || !defined(__GNUC__) || __GNUC__ >= 13 ||       \
                               defined(__x86_64__) || defined(__i386__))
#define BURTORCH_HAS_FLOAT16 1
#else
#define BURTORCH_HAS_FLOAT16 0
#endif

BURTORCH_BEGIN_NAMESPACE

namespace detail {

// IEEE binary16: 5 bits of exponent, 10 of mantissa.
struct Binary16 {
#if defined(__STDCPP_FLOAT16_T__)
  using Native = std::float16_t;
#elif BURTORCH_HAS_FLOAT16
  using Native = _Float16;
#else
  using Native = void;
#endif
  static constexpr int digits = 11, maxExponent = 16;

  static constexpr std::uint16_t fromFloat(float x) {
    const auto all = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t sign = (all >> 16) & 0x8000u, b = all & 0x7fffffffu;
    std::uint32_t h = 0;
    if (b > 0x7f800000u) h = 0x7e00u | ((b >> 13) & 0x3ffu); // NaN, made quiet
    else if (b >= 0x47800000u) h = 0x7c00u;                  // 65536 and more: ∞
    else if (b < 0x38800000u) // a denormal half: adding ½ lets the float unit round at 2^−24
      h = std::bit_cast<std::uint32_t>(std::bit_cast<float>(b) + 0.5f) - 0x3f000000u;
    else h = (b - 0x38000000u + 0xfffu + ((b >> 13) & 1u)) >> 13;
    return static_cast<std::uint16_t>(sign | h);
  }
  static constexpr float toFloat(std::uint16_t h) {
    const std::uint32_t sign = (h & 0x8000u) << 16, b = (h & 0x7fffu) << 13;
    if (b > 0x0f800000u) return std::bit_cast<float>(sign | 0x7fc00000u | b); // NaN, made quiet
    if (b == 0x0f800000u) return std::bit_cast<float>(sign | 0x7f800000u);
    // A product with a power of two also gets denormals right.
    return std::bit_cast<float>(sign | b) * 0x1p112f;
  }
};

// The upper half of a float: 8 bits of exponent, 7 of mantissa.
struct Brain16 {
#if defined(__STDCPP_BFLOAT16_T__)
  using Native = std::bfloat16_t;
#else
  using Native = void;
#endif
  static constexpr int digits = 8, maxExponent = 128;

  static constexpr std::uint16_t fromFloat(float x) {
    const auto b = std::bit_cast<std::uint32_t>(x);
    if ((b & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((b >> 16) | 0x40u);
    return static_cast<std::uint16_t>((b + 0x7fffu + ((b >> 16) & 1u)) >> 16);
  }
  static constexpr float toFloat(std::uint16_t h) {
    const std::uint32_t b = static_cast<std::uint32_t>(h) << 16;
    return std::bit_cast<float>((b & 0x7fffffffu) > 0x7f800000u ? b | 0x400000u : b);
  }
};

// x as a float whose last digit is odd if anything was lost: rounding that once more to fewer
// digits gives the same as rounding x at once.
template <class Wide> constexpr float roundedToOdd(Wide x) {
  const auto nearest = static_cast<float>(x);
  if (static_cast<Wide>(nearest) == x || x != x) return nearest;
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  const bool away =
      (nearest < 0 ? -static_cast<Wide>(nearest) : static_cast<Wide>(nearest)) > (x < 0 ? -x : x);
  if (away) --bits; // towards 0; an infinity becomes the largest float, which is odd
  return std::bit_cast<float>(bits | 1u);
}

} // namespace detail

template <class Format> class Half16 {
public:
  using Native = typename Format::Native;

  Half16() = default;
  template <class Number>
    requires std::is_arithmetic_v<Number>
  BURTORCH_INLINE constexpr explicit Half16(Number x) : bits_(encode(x)) {}
  template <class N>
    requires std::same_as<N, Native>
  constexpr Half16(N x) : bits_(std::bit_cast<std::uint16_t>(x)) {}

  static constexpr Half16 fromBits(std::uint16_t bits) {
    Half16 h;
    h.bits_ = bits;
    return h;
  }
  constexpr std::uint16_t bits() const { return bits_; }

  BURTORCH_INLINE constexpr operator float() const {
#if defined(__F16C__) && BURTORCH_VECTOR_EXTENSIONS
    if constexpr (std::same_as<Format, detail::Binary16>)
      if (!std::is_constant_evaluated()) return _cvtsh_ss(bits_);
#endif
    return Format::toFloat(bits_);
  }
  template <class Number>
    requires(std::is_arithmetic_v<Number> && !std::same_as<Number, float>)
  constexpr explicit operator Number() const {
    return static_cast<Number>(static_cast<float>(*this));
  }
  template <class N>
    requires std::same_as<N, Native>
  constexpr explicit operator N() const {
    return std::bit_cast<N>(bits_);
  }

  friend constexpr Half16 operator+(Half16 x, Half16 y) { return Half16(float(x) + float(y)); }
  friend constexpr Half16 operator-(Half16 x, Half16 y) { return Half16(float(x) - float(y)); }
  friend constexpr Half16 operator*(Half16 x, Half16 y) { return Half16(float(x) * float(y)); }
  friend constexpr Half16 operator/(Half16 x, Half16 y) { return Half16(float(x) / float(y)); }
  friend constexpr Half16 operator-(Half16 x) {
    return fromBits(static_cast<std::uint16_t>(x.bits_ ^ 0x8000u));
  }
  friend constexpr bool operator==(Half16 x, Half16 y) { return float(x) == float(y); }
  friend constexpr std::partial_ordering operator<=>(Half16 x, Half16 y) {
    return float(x) <=> float(y);
  }

private:
  template <class Number> static BURTORCH_INLINE constexpr std::uint16_t encode(Number x) {
    if constexpr (std::same_as<Number, float>) {
#if defined(__F16C__) && BURTORCH_VECTOR_EXTENSIONS
      if constexpr (std::same_as<Format, detail::Binary16>)
        if (!std::is_constant_evaluated()) return _cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT);
#endif
      return Format::fromFloat(x);
    } else if constexpr (std::integral<Number>) {
      return Format::fromFloat(detail::roundedToOdd(static_cast<long double>(x)));
    } else {
      return Format::fromFloat(detail::roundedToOdd(x));
    }
  }

  std::uint16_t bits_;
};

using float16 = Half16<detail::Binary16>;
using bfloat16 = Half16<detail::Brain16>;

template <class Format> struct Computed<Half16<Format>> {
  using type = float;
};

template <class Format> BURTORCH_INLINE constexpr bool isZero(Half16<Format> x) {
  return (x.bits() & 0x7fffu) == 0;
}

// The functions that operations call, for code that keeps halves throughout.
#define BURTORCH_THROUGH_FLOAT(function)                                                           \
  template <class Format> Half16<Format> function(Half16<Format> x) {                              \
    return Half16<Format>(std::function(static_cast<float>(x)));                                   \
  }
BURTORCH_STANDARD_FUNCTIONS(BURTORCH_THROUGH_FLOAT)
#undef BURTORCH_THROUGH_FLOAT
#define BURTORCH_THROUGH_FLOAT(function)                                                           \
  template <class Format> Half16<Format> function(Half16<Format> x, Half16<Format> y) {            \
    return Half16<Format>(std::function(static_cast<float>(x), static_cast<float>(y)));            \
  }
BURTORCH_STANDARD_FUNCTIONS_OF_TWO(BURTORCH_THROUGH_FLOAT)
#undef BURTORCH_THROUGH_FLOAT

// ---- many at once --------------------------------------------------------------------------------

// N neighbouring halves as floats.
template <std::size_t N, class Format>
BURTORCH_INLINE simd<float, N> widen(const Half16<Format>* from) {
  using V = simd<float, N>;
#if BURTORCH_VECTOR_EXTENSIONS && defined(__F16C__)
  if constexpr (std::same_as<Format, detail::Binary16> && V::width >= 8) {
    V x;
    for (std::size_t k = 0; k < N; k += 8) {
      const __m256 eight =
          _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + k)));
      std::memcpy(reinterpret_cast<char*>(x.part) + k * sizeof(float), &eight, sizeof(eight));
    }
    return x;
  }
#endif
#if BURTORCH_VECTOR_EXTENSIONS
  if constexpr (std::same_as<Format, detail::Brain16>) {
    simd<std::uint32_t, N> x;
    for (std::size_t i = 0; i < N; ++i) x.set(i, from[i].bits());
    return bitCast<float>(x << 16);
  }
#endif
  float x[N];
  for (std::size_t i = 0; i < N; ++i) x[i] = static_cast<float>(from[i]);
  return V::load(x);
}

// Rounds N floats to neighbouring halves.
template <std::size_t N, class Format>
BURTORCH_INLINE void narrow(const simd<float, N>& x, Half16<Format>* to) {
#if BURTORCH_VECTOR_EXTENSIONS && defined(__F16C__)
  if constexpr (std::same_as<Format, detail::Binary16> && simd<float, N>::width >= 8) {
    for (std::size_t k = 0; k < N; k += 8) {
      __m256 eight;
      std::memcpy(&eight, reinterpret_cast<const char*>(x.part) + k * sizeof(float), sizeof(eight));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + k),
                       _mm256_cvtps_ph(eight, _MM_FROUND_TO_NEAREST_INT));
    }
    return;
  }
#endif
  for (std::size_t i = 0; i < N; ++i) to[i] = Half16<Format>(x[i]);
}

BURTORCH_END_NAMESPACE

template <class Format>
struct std::numeric_limits<burtorch::Half16<Format>> { // what the library and its users need
  using Half = burtorch::Half16<Format>;
  static constexpr bool is_specialized = true, is_signed = true, is_iec559 = true,
                        has_infinity = true, has_quiet_NaN = true;
  static constexpr int digits = Format::digits, max_exponent = Format::maxExponent,
                       min_exponent = 3 - Format::maxExponent;
  static constexpr int exponentShift = Format::digits - 1;
  static constexpr std::uint16_t infinityBits = 0x7fffu >> exponentShift << exponentShift;
  static constexpr Half infinity() { return Half::fromBits(infinityBits); }
  static constexpr Half quiet_NaN() {
    return Half::fromBits(infinityBits | (1u << (exponentShift - 1)));
  }
  static constexpr Half max() { return Half::fromBits(infinityBits - 1); }
  static constexpr Half lowest() { return -max(); }
  static constexpr Half min() { return Half::fromBits(1u << exponentShift); }
  static constexpr Half denorm_min() { return Half::fromBits(1); }
  static constexpr Half epsilon() {
    return Half::fromBits(
        static_cast<std::uint16_t>(((Format::maxExponent - 1) - exponentShift) << exponentShift));
  }
};
