// burtorch/scalar/simd.hpp — N numbers that are computed with as one
// SPDX-License-Identifier: MIT
//
// simd<T, N> holds N lanes of float, double or an integer type, N a power of two. It is made of
// `parts`: registers of the widest kind that the target has (16, 32 or 64 bytes), through the
// vector extensions of GCC and Clang; elsewhere, or with BURTORCH_VECTOR_EXTENSIONS 0, a part is
// one plain number and the same source compiles to loops over an array. So every N works
// everywhere, and simd<float, nativeLanes<float>> is one register.
//
//   load(p) store(p)                    from and to any address; loadAligned, storeAligned: p
//                                       aligned to alignof(simd)
//   loadPartial(p, n) storePartial(p, n) the first n lanes, touching no other memory; the rest is 0
//   simd(x)                             x in every lane;  x[i], x.set(i, y): one lane
//   + - * / < == …                      lane by lane; comparisons give a mask
//   select(mask, x, y) any(m) all(m)    x where the mask is set, else y
//   fma(x, y, z)                        x·y+z; rounded once if the target can, else twice
//   sqrt fabs copysign min max          (min and max give y unless x is smaller, or larger)
//   sum(x) maximum(x) minimum(x)        over the lanes; the sum is pairwise
//
// exp, log, tanh and their like are in vector_math.hpp. Nothing here needs or wants -ffast-math.
#pragma once

#include <burtorch/base/config.hpp>
#include <burtorch/scalar/scalar.hpp>

#include <array>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

// 0: a plain array instead of vector registers.
#ifndef BURTORCH_VECTOR_EXTENSIONS
#if defined(__GNUC__)
#define BURTORCH_VECTOR_EXTENSIONS 1
#else
#define BURTORCH_VECTOR_EXTENSIONS 0
#endif
#endif

#if BURTORCH_VECTOR_EXTENSIONS && defined(__SSE2__)
#include <immintrin.h>
#elif BURTORCH_VECTOR_EXTENSIONS && defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
#endif

BURTORCH_BEGIN_NAMESPACE

namespace detail {

#if !BURTORCH_VECTOR_EXTENSIONS
inline constexpr std::size_t registerBytes = 0;
#elif defined(__AVX512F__)
inline constexpr std::size_t registerBytes = 64;
#elif defined(__AVX__)
inline constexpr std::size_t registerBytes = 32;
#else
inline constexpr std::size_t registerBytes = 16;
#endif

template <std::size_t Bytes> struct IntegerOf;
template <> struct IntegerOf<2> {
  using type = std::int16_t;
};
template <> struct IntegerOf<4> {
  using type = std::int32_t;
};
template <> struct IntegerOf<8> {
  using type = std::int64_t;
};
template <class T> using BitsOf = typename IntegerOf<sizeof(T)>::type;

// W lanes in one register; one lane is a plain number.
template <class T, std::size_t W> struct Register {
#if BURTORCH_VECTOR_EXTENSIONS
  typedef T type __attribute__((vector_size(W * sizeof(T))));
#endif
};
template <class T> struct Register<T, 1> {
  using type = T;
};

// Comparisons of registers give all ones or all zeros; those of plain numbers are made to.
template <class Bits> BURTORCH_INLINE Bits asBits(bool yes) { return yes ? Bits(-1) : Bits(0); }
#if BURTORCH_VECTOR_EXTENSIONS
template <class Bits, class V>
  requires(!std::same_as<V, bool>)
BURTORCH_INLINE Bits asBits(V yes) {
  return (Bits)yes;
}
#endif

} // namespace detail

template <class T, std::size_t N> struct simd;
template <class T, std::size_t N> struct mask;

// How many lanes one register of the target holds.
template <class T>
inline constexpr std::size_t nativeLanes =
    detail::registerBytes == 0 ? 1 : detail::registerBytes / sizeof(T);

namespace detail {

// The narrowest register. On 32-bit x86 one of 8 bytes would be an MMX register, which is the same as one of
// those that hold plain floating-point numbers: the next of these would come out as NaN.
#if defined(__i386__)
inline constexpr std::size_t leastBytes = 16;
#else
inline constexpr std::size_t leastBytes = 0;
#endif

// How many of N lanes one register takes.
template <class T, std::size_t N>
inline constexpr std::size_t widthOf = N >= nativeLanes<T>          ? nativeLanes<T>
                                       : N * sizeof(T) < leastBytes ? 1
                                                                    : N;

// Calls f for the parts of one or more simds, which become the parts of the result.
template <class R, class F, class... X> BURTORCH_INLINE R eachPart(const F& f, const X&... x) {
  R r;
  const auto one = [&](auto k) BURTORCH_INLINE_LAMBDA { r.part[k] = f(x.part[k]...); };
  [&]<std::size_t... k>(std::index_sequence<k...>) BURTORCH_INLINE_LAMBDA {
    (one(std::integral_constant<std::size_t, k>{}), ...);
  }(std::make_index_sequence<R::parts>{});
  return r;
}

} // namespace detail

namespace detail {

#if BURTORCH_VECTOR_EXTENSIONS && defined(__AVX__)
// All ones in the first n of W lanes: a window into W times all ones, then W times all zeros.
template <class Bits, std::size_t W> BURTORCH_INLINE auto firstOf(std::size_t n) {
  static constexpr auto window = [] {
    std::array<Bits, 2 * W> w{};
    for (std::size_t i = 0; i < W; ++i) w[i] = -1;
    return w;
  }();
  const Bits* const from = window.data() + (W - n);
  if constexpr (W * sizeof(Bits) == 32)
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  else return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}
#endif

// The first n of W lanes in memory, the others 0; reads nothing behind them.
template <class T, std::size_t W>
BURTORCH_INLINE typename Register<T, W>::type loadFirst(const T* from, std::size_t n) {
  using Part = typename Register<T, W>::type;
  if constexpr (W == 1) {
    return n == 0 ? T(0) : *from;
  } else {
#if BURTORCH_VECTOR_EXTENSIONS && defined(__AVX512F__)
    if constexpr (std::same_as<T, float> && W == 16)
      return (Part)_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), from);
    if constexpr (std::same_as<T, double> && W == 8)
      return (Part)_mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << n) - 1), from);
#endif
#if BURTORCH_VECTOR_EXTENSIONS && defined(__AVX__)
    if constexpr (std::same_as<T, float> && W == 8)
      return (Part)_mm256_maskload_ps(from, firstOf<std::int32_t, 8>(n));
    if constexpr (std::same_as<T, double> && W == 4)
      return (Part)_mm256_maskload_pd(from, firstOf<std::int64_t, 4>(n));
    if constexpr (std::same_as<T, float> && W == 4)
      return (Part)_mm_maskload_ps(from, firstOf<std::int32_t, 4>(n));
    if constexpr (std::same_as<T, double> && W == 2)
      return (Part)_mm_maskload_pd(from, firstOf<std::int64_t, 2>(n));
#endif
    Part x{};
    for (std::size_t i = 0; i < n; ++i) x[i] = from[i];
    return x;
  }
}

template <class T, std::size_t W>
BURTORCH_INLINE void storeFirst(T* to, const typename Register<T, W>::type& x, std::size_t n) {
  if constexpr (W == 1) {
    if (n != 0) *to = x;
  } else {
#if BURTORCH_VECTOR_EXTENSIONS && defined(__AVX512F__)
    if constexpr (std::same_as<T, float> && W == 16)
      return _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1u << n) - 1), (__m512)x);
    if constexpr (std::same_as<T, double> && W == 8)
      return _mm512_mask_storeu_pd(to, static_cast<__mmask8>((1u << n) - 1), (__m512d)x);
#endif
#if BURTORCH_VECTOR_EXTENSIONS && defined(__AVX__)
    if constexpr (std::same_as<T, float> && W == 8)
      return _mm256_maskstore_ps(to, firstOf<std::int32_t, 8>(n), (__m256)x);
    if constexpr (std::same_as<T, double> && W == 4)
      return _mm256_maskstore_pd(to, firstOf<std::int64_t, 4>(n), (__m256d)x);
    if constexpr (std::same_as<T, float> && W == 4)
      return _mm_maskstore_ps(to, firstOf<std::int32_t, 4>(n), (__m128)x);
    if constexpr (std::same_as<T, double> && W == 2)
      return _mm_maskstore_pd(to, firstOf<std::int64_t, 2>(n), (__m128d)x);
#endif
    for (std::size_t i = 0; i < n; ++i) to[i] = x[i];
  }
}

} // namespace detail

template <class T, std::size_t N> struct simd {
  static_assert(std::is_arithmetic_v<T> && std::has_single_bit(N));
  using Lane = T;
  using Mask = mask<T, N>;
  static constexpr std::size_t size = N;
  static constexpr std::size_t width = detail::widthOf<T, N>; // lanes of a part
  static constexpr std::size_t parts = N / width;
  using Part = typename detail::Register<T, width>::type;

  Part part[parts];

  simd() = default;
  template <class Number>
    requires std::is_arithmetic_v<Number>
  BURTORCH_INLINE explicit(!std::same_as<Number, T>) simd(Number number) {
    const T x = static_cast<T>(number);
    for (Part& p : part) {
      if constexpr (width == 1) p = x;
      else p = x - Part{}; // x - 0, not x + 0: keeps the sign of -0
    }
  }

  static BURTORCH_INLINE simd load(const T* from) {
    simd x;
    std::memcpy(x.part, from, sizeof(x.part));
    return x;
  }
  static BURTORCH_INLINE simd loadAligned(const T* from) {
    return *reinterpret_cast<const simd*>(from);
  }
  BURTORCH_INLINE void store(T* to) const { std::memcpy(to, part, sizeof(part)); }
  BURTORCH_INLINE void storeAligned(T* to) const { *reinterpret_cast<simd*>(to) = *this; }

  static BURTORCH_INLINE simd loadPartial(const T* from, std::size_t n) {
    simd x;
    for (std::size_t k = 0; k < parts; ++k)
      x.part[k] = detail::loadFirst<T, width>(from + k * width, before(n, k));
    return x;
  }
  BURTORCH_INLINE void storePartial(T* to, std::size_t n) const {
    for (std::size_t k = 0; k < parts; ++k)
      detail::storeFirst<T, width>(to + k * width, part[k], before(n, k));
  }

  BURTORCH_INLINE T operator[](std::size_t i) const {
    if constexpr (width == 1) return part[i];
    else return part[i / width][i % width];
  }
  BURTORCH_INLINE void set(std::size_t i, T x) {
    if constexpr (width == 1) part[i] = x;
    else part[i / width][i % width] = x;
  }

#define BURTORCH_LANEWISE(symbol)                                                                  \
  friend BURTORCH_INLINE simd operator symbol(const simd& x, const simd& y) {                      \
    return detail::eachPart<simd>(                                                                 \
        [](Part a, Part b) BURTORCH_INLINE_LAMBDA -> Part { return Part(a symbol b); }, x, y);     \
  }
  BURTORCH_LANEWISE(+)
  BURTORCH_LANEWISE(-)
  BURTORCH_LANEWISE(*)
  BURTORCH_LANEWISE(/)
#undef BURTORCH_LANEWISE
#define BURTORCH_LANEWISE(symbol)                                                                  \
  friend BURTORCH_INLINE simd operator symbol(const simd& x, const simd& y)                        \
    requires std::integral<T>                                                                      \
  {                                                                                                \
    return detail::eachPart<simd>(                                                                 \
        [](Part a, Part b) BURTORCH_INLINE_LAMBDA -> Part { return Part(a symbol b); }, x, y);     \
  }
  BURTORCH_LANEWISE(&)
  BURTORCH_LANEWISE(|)
  BURTORCH_LANEWISE(^)
#undef BURTORCH_LANEWISE
#define BURTORCH_COMPARE(symbol)                                                                   \
  friend BURTORCH_INLINE Mask operator symbol(const simd& x, const simd& y) {                      \
    using Bits = simd<detail::BitsOf<T>, N>;                                                       \
    return {detail::eachPart<Bits>(                                                                \
        [](Part a, Part b)                                                                         \
            BURTORCH_INLINE_LAMBDA { return detail::asBits<typename Bits::Part>(a symbol b); },    \
        x, y)};                                                                                    \
  }
  BURTORCH_COMPARE(<)
  BURTORCH_COMPARE(<=)
  BURTORCH_COMPARE(>)
  BURTORCH_COMPARE(>=)
  BURTORCH_COMPARE(==)
  BURTORCH_COMPARE(!=)
#undef BURTORCH_COMPARE

  friend BURTORCH_INLINE simd operator-(const simd& x) {
    return detail::eachPart<simd>([](Part a) BURTORCH_INLINE_LAMBDA -> Part { return -a; }, x);
  }
  // Bits of unsigned or non-negative integers, moved.
  friend BURTORCH_INLINE simd operator<<(const simd& x, int by)
    requires std::integral<T>
  {
    return detail::eachPart<simd>([by](Part a) BURTORCH_INLINE_LAMBDA { return Part(a << by); }, x);
  }
  friend BURTORCH_INLINE simd operator>>(const simd& x, int by)
    requires std::integral<T>
  {
    return detail::eachPart<simd>([by](Part a) BURTORCH_INLINE_LAMBDA { return Part(a >> by); }, x);
  }
  BURTORCH_INLINE simd& operator+=(const simd& y) { return *this = *this + y; }
  BURTORCH_INLINE simd& operator-=(const simd& y) { return *this = *this - y; }
  BURTORCH_INLINE simd& operator*=(const simd& y) { return *this = *this * y; }
  BURTORCH_INLINE simd& operator/=(const simd& y) { return *this = *this / y; }

private:
  // How many of the first n lanes lie in part k.
  static BURTORCH_INLINE std::size_t before(std::size_t n, std::size_t k) {
    return n <= k * width ? 0 : n - k * width < width ? n - k * width : width;
  }
};

// One truth per lane, kept as a number of T's size: all ones or all zeros.
template <class T, std::size_t N> struct mask {
  simd<detail::BitsOf<T>, N> bits;

  BURTORCH_INLINE bool operator[](std::size_t i) const { return bits[i] != 0; }
  friend BURTORCH_INLINE mask operator&(const mask& x, const mask& y) { return {x.bits & y.bits}; }
  friend BURTORCH_INLINE mask operator|(const mask& x, const mask& y) { return {x.bits | y.bits}; }
  friend BURTORCH_INLINE mask operator^(const mask& x, const mask& y) { return {x.bits ^ y.bits}; }
  friend BURTORCH_INLINE mask operator!(const mask& x) {
    return {x.bits ^ simd<detail::BitsOf<T>, N>(detail::BitsOf<T>(-1))};
  }
};

template <class T, std::size_t N> BURTORCH_INLINE bool any(const mask<T, N>& m) {
  using Bits = simd<detail::BitsOf<T>, N>;
  typename Bits::Part p = m.bits.part[0];
  for (std::size_t k = 1; k < Bits::parts; ++k) p = p | m.bits.part[k];
  if constexpr (Bits::width == 1) {
    return p != 0;
  } else {
#if BURTORCH_VECTOR_EXTENSIONS && defined(__AVX512F__)
    if constexpr (sizeof(p) == 64) return _mm512_test_epi32_mask((__m512i)p, (__m512i)p) != 0;
    else
#endif
#if BURTORCH_VECTOR_EXTENSIONS && defined(__AVX__)
        if constexpr (sizeof(p) == 32)
      return _mm256_testz_si256((__m256i)p, (__m256i)p) == 0;
    else
#endif
#if BURTORCH_VECTOR_EXTENSIONS && defined(__SSE2__)
        if constexpr (sizeof(p) == 16)
      return _mm_movemask_epi8((__m128i)p) != 0;
    else
#endif
    {
      bool some = false;
      for (std::size_t i = 0; i < Bits::width; ++i) some |= p[i] != 0;
      return some;
    }
  }
}
template <class T, std::size_t N> BURTORCH_INLINE bool all(const mask<T, N>& m) { return !any(!m); }

template <class T, std::size_t N> BURTORCH_INLINE mask<T, N> whereZero(const simd<T, N>& x) {
  return x == simd<T, N>(T(0));
}
template <class T, std::size_t N> BURTORCH_INLINE bool isZero(const simd<T, N>& x) {
  return !any(x != simd<T, N>(T(0)));
}

template <class T, std::size_t N>
BURTORCH_INLINE simd<T, N> select(const mask<T, N>& m, const std::type_identity_t<simd<T, N>>& yes,
                                  const std::type_identity_t<simd<T, N>>& no) {
  using Part = typename simd<T, N>::Part;
  using BitsPart = typename simd<detail::BitsOf<T>, N>::Part;
  return detail::eachPart<simd<T, N>>([](BitsPart c, Part a, Part b)
                                          BURTORCH_INLINE_LAMBDA -> Part { return c ? a : b; },
                                      m.bits, yes, no);
}

template <class T, std::size_t N>
BURTORCH_INLINE simd<T, N> unlessZero(const simd<T, N>& g, const simd<T, N>& x) {
  return select(whereZero(g), simd<T, N>(T(0)), x);
}

// The same bits as other lanes.
template <class To, class T, std::size_t N>
  requires(sizeof(To) == sizeof(T))
BURTORCH_INLINE simd<To, N> bitCast(const simd<T, N>& x) {
  using From = typename simd<T, N>::Part;
  return detail::eachPart<simd<To, N>>(
      [](From a) BURTORCH_INLINE_LAMBDA { return std::bit_cast<typename simd<To, N>::Part>(a); },
      x);
}

namespace detail {

#if BURTORCH_VECTOR_EXTENSIONS && defined(__SSE2__)
// The intrinsic for one register of its size and kind; registers are its own type by another name.
template <class T, class Part> BURTORCH_INLINE Part sqrtOf(Part x) {
#if defined(__AVX512F__)
  if constexpr (sizeof(x) == 64 && std::same_as<T, float>)
    return (Part)_mm512_maskz_sqrt_ps(0xffff, (__m512)x); // _mm512_sqrt_ps makes GCC 12 warn
  else if constexpr (sizeof(x) == 64) return (Part)_mm512_maskz_sqrt_pd(0xff, (__m512d)x);
  else
#endif
#if defined(__AVX__)
      if constexpr (sizeof(x) == 32 && std::same_as<T, float>)
    return (Part)_mm256_sqrt_ps((__m256)x);
  else if constexpr (sizeof(x) == 32) return (Part)_mm256_sqrt_pd((__m256d)x);
  else
#endif
      if constexpr (sizeof(x) == 16 && std::same_as<T, float>)
    return (Part)_mm_sqrt_ps((__m128)x);
  else if constexpr (sizeof(x) == 16) return (Part)_mm_sqrt_pd((__m128d)x);
  else {
    for (std::size_t i = 0; i < sizeof(x) / sizeof(T); ++i) x[i] = std::sqrt(x[i]);
    return x;
  }
}
#endif

} // namespace detail

// x·y+z, rounded once where the target has such an instruction. (Where it has not, std::fma would
// call a function.)
template <class T, std::size_t N>
BURTORCH_INLINE simd<T, N> fma(const simd<T, N>& x, const std::type_identity_t<simd<T, N>>& y,
                               const std::type_identity_t<simd<T, N>>& z) {
#if BURTORCH_VECTOR_EXTENSIONS && defined(__FMA__)
  using Part = typename simd<T, N>::Part;
  return detail::eachPart<simd<T, N>>(
      [](Part a, Part b, Part c) BURTORCH_INLINE_LAMBDA -> Part {
#if defined(__AVX512F__)
        if constexpr (sizeof(Part) == 64 && std::same_as<T, float>)
          return (Part)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
        else if constexpr (sizeof(Part) == 64)
          return (Part)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
        else
#endif
            if constexpr (sizeof(Part) == 32 && std::same_as<T, float>)
          return (Part)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
        else if constexpr (sizeof(Part) == 32)
          return (Part)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
        else if constexpr (sizeof(Part) == 16 && std::same_as<T, float>)
          return (Part)_mm_fmadd_ps((__m128)a, (__m128)b, (__m128)c);
        else if constexpr (sizeof(Part) == 16)
          return (Part)_mm_fmadd_pd((__m128d)a, (__m128d)b, (__m128d)c);
        else return a * b + c;
      },
      x, y, z);
#elif BURTORCH_VECTOR_EXTENSIONS && defined(__ARM_NEON) && defined(__aarch64__)
  using Part = typename simd<T, N>::Part;
  return detail::eachPart<simd<T, N>>(
      [](Part a, Part b, Part c) BURTORCH_INLINE_LAMBDA -> Part {
        if constexpr (sizeof(Part) == 16 && std::same_as<T, float>)
          return (Part)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
        else if constexpr (sizeof(Part) == 16)
          return (Part)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
        else return a * b + c;
      },
      x, y, z);
#else
  return x * y + z;
#endif
}

template <class T, std::size_t N> BURTORCH_INLINE simd<T, N> sqrt(const simd<T, N>& x) {
  using Part = typename simd<T, N>::Part;
  return detail::eachPart<simd<T, N>>(
      [](Part a) BURTORCH_INLINE_LAMBDA -> Part {
        if constexpr (simd<T, N>::width == 1) return std::sqrt(a);
#if BURTORCH_VECTOR_EXTENSIONS && defined(__SSE2__)
        else return detail::sqrtOf<T>(a);
#elif BURTORCH_VECTOR_EXTENSIONS && defined(__ARM_NEON) && defined(__aarch64__)
        else if constexpr (sizeof(Part) == 16 && std::same_as<T, float>)
          return (Part)vsqrtq_f32((float32x4_t)a);
        else if constexpr (sizeof(Part) == 16) return (Part)vsqrtq_f64((float64x2_t)a);
#endif
#if !defined(__SSE2__)
        else {
          for (std::size_t i = 0; i < simd<T, N>::width; ++i) a[i] = std::sqrt(a[i]);
          return a;
        }
#endif
      },
      x);
}

template <class T, std::size_t N> BURTORCH_INLINE simd<T, N> fabs(const simd<T, N>& x) {
  using Bits = detail::BitsOf<T>;
  return bitCast<T>(bitCast<Bits>(x) & simd<Bits, N>(std::numeric_limits<Bits>::max()));
}
template <class T, std::size_t N> BURTORCH_INLINE simd<T, N> abs(const simd<T, N>& x) {
  return fabs(x);
}

// |x| with the sign of y.
template <class T, std::size_t N>
BURTORCH_INLINE simd<T, N> copysign(const simd<T, N>& x,
                                    const std::type_identity_t<simd<T, N>>& y) {
  using Bits = detail::BitsOf<T>;
  const simd<Bits, N> magnitude(std::numeric_limits<Bits>::max()),
      sign(std::numeric_limits<Bits>::min());
  return bitCast<T>((bitCast<Bits>(x) & magnitude) | (bitCast<Bits>(y) & sign));
}

template <class T, std::size_t N>
BURTORCH_INLINE simd<T, N> min(const simd<T, N>& x, const std::type_identity_t<simd<T, N>>& y) {
  return select(x < y, x, y);
}
template <class T, std::size_t N>
BURTORCH_INLINE simd<T, N> max(const simd<T, N>& x, const std::type_identity_t<simd<T, N>>& y) {
  return select(y < x, x, y);
}

// Half of the lanes, from `first` on.
template <std::size_t first, class T, std::size_t N>
BURTORCH_INLINE simd<T, N / 2> half(const simd<T, N>& x) {
  using Half = simd<T, N / 2>;
  Half h;
  if constexpr (simd<T, N>::parts > 1) {
    for (std::size_t k = 0; k < Half::parts; ++k) h.part[k] = x.part[first / Half::width + k];
#if BURTORCH_VECTOR_EXTENSIONS && (defined(__clang__) || __GNUC__ >= 12)
  } else if constexpr (Half::width > 1) {
    h.part[0] = [&]<std::size_t... i>(std::index_sequence<i...>) BURTORCH_INLINE_LAMBDA {
      return __builtin_shufflevector(x.part[0], x.part[0], (first + i)...);
    }(std::make_index_sequence<N / 2>{});
#endif
  } else {
    for (std::size_t i = 0; i < N / 2; ++i) h.set(i, x[first + i]);
  }
  return h;
}

namespace detail {
template <class T, std::size_t N, class F>
BURTORCH_INLINE T overLanes(const simd<T, N>& x, const F& join) {
  if constexpr (N == 1) return x[0];
  else return overLanes(join(half<0>(x), half<N / 2>(x)), join);
}
} // namespace detail

template <class T, std::size_t N> BURTORCH_INLINE T sum(const simd<T, N>& x) {
  return detail::overLanes(x, [](const auto& a, const auto& b)
                                  BURTORCH_INLINE_LAMBDA { return a + b; });
}
template <class T, std::size_t N> BURTORCH_INLINE T maximum(const simd<T, N>& x) {
  return detail::overLanes(x, [](const auto& a, const auto& b)
                                  BURTORCH_INLINE_LAMBDA { return max(a, b); });
}
template <class T, std::size_t N> BURTORCH_INLINE T minimum(const simd<T, N>& x) {
  return detail::overLanes(x, [](const auto& a, const auto& b)
                                  BURTORCH_INLINE_LAMBDA { return min(a, b); });
}

// f of each lane, one after the other: for functions that have no vector code.
template <class T, std::size_t N, class F, class... X>
BURTORCH_INLINE simd<T, N> eachLane(const F& f, const simd<T, N>& x, const X&... more) {
  simd<T, N> r;
  for (std::size_t i = 0; i < N; ++i) r.set(i, f(x[i], more[i]...));
  return r;
}

BURTORCH_END_NAMESPACE
