// cpp_tests/simd_test.cpp — lanes: every operation does to each lane what it does to a number
// SPDX-License-Identifier: MIT
#include <burtorch/scalar/simd.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace bt = burtorch;

namespace {

template <class T, std::size_t N> std::array<T, N> ramp(double first, double step) {
  std::array<T, N> x{};
  for (std::size_t i = 0; i < N; ++i) x[i] = static_cast<T>(first + step * static_cast<double>(i));
  return x;
}

template <class V, class F> void checkLanes(const V& got, const F& want) {
  for (std::size_t i = 0; i < V::size; ++i) CHECK(got[i] == want(i));
}

// 128, 256 and 512 bits, one lane, and two registers of the widest kind.
#define BURTORCH_WIDTHS                                                                            \
  bt::simd<float, 1>, bt::simd<float, 4>, bt::simd<float, 8>, bt::simd<float, 16>,                 \
      bt::simd<float, 32>, bt::simd<double, 1>, bt::simd<double, 2>, bt::simd<double, 4>,          \
      bt::simd<double, 8>, bt::simd<double, 16>

TEST_CASE_TEMPLATE("arithmetic, comparison and selection", V, BURTORCH_WIDTHS) {
  using T = typename V::Lane;
  constexpr std::size_t n = V::size;
  static_assert(std::is_trivially_copyable_v<V> && sizeof(V) == n * sizeof(T));
  const auto a = ramp<T, n>(-2.5, 1), b = ramp<T, n>(4, -0.75);
  const V x = V::load(a.data()), y = V::load(b.data());
  checkLanes(x + y, [&](std::size_t i) { return a[i] + b[i]; });
  checkLanes(x - y, [&](std::size_t i) { return a[i] - b[i]; });
  checkLanes(x * y, [&](std::size_t i) { return a[i] * b[i]; });
  checkLanes(y / x, [&](std::size_t i) { return b[i] / a[i]; });
  checkLanes(-x, [&](std::size_t i) { return -a[i]; });
  checkLanes(fabs(x), [&](std::size_t i) { return std::fabs(a[i]); });
  checkLanes(sqrt(fabs(x)), [&](std::size_t i) { return std::sqrt(std::fabs(a[i])); });
  checkLanes(min(x, y), [&](std::size_t i) { return std::min(a[i], b[i]); });
  checkLanes(max(x, y), [&](std::size_t i) { return std::max(a[i], b[i]); });
  checkLanes(copysign(y, x), [&](std::size_t i) { return std::copysign(b[i], a[i]); });
  checkLanes(fma(x, y, V(T(1))), [&](std::size_t i) { return a[i] * b[i] + 1; }); // exact
  checkLanes(x * T(2) + T(1), [&](std::size_t i) { return a[i] * 2 + 1; });
  for (std::size_t i = 0; i < n; ++i) {
    CHECK((x < y)[i] == (a[i] < b[i]));
    CHECK((x <= y)[i] == (a[i] <= b[i]));
    CHECK((x > y)[i] == (a[i] > b[i]));
    CHECK((x >= y)[i] == (a[i] >= b[i]));
    CHECK((x == x)[i]);
    CHECK_FALSE((x != x)[i]);
    CHECK((!(x < y))[i] == !(a[i] < b[i]));
  }
  checkLanes(select(x < y, x, V(T(7))), [&](std::size_t i) { return a[i] < b[i] ? a[i] : T(7); });
}

TEST_CASE_TEMPLATE("over the lanes", V, BURTORCH_WIDTHS) {
  using T = typename V::Lane;
  constexpr std::size_t n = V::size;
  for (std::size_t peak = 0; peak < n; ++peak) { // whichever lane it is
    V x(T(1));
    x.set(peak, T(5));
    CHECK(sum(x) == static_cast<T>(n + 4));
    CHECK(maximum(x) == 5);
    CHECK(minimum(-x) == -5);
    CHECK(any(x == V(T(5))));
    CHECK_FALSE(any(x == V(T(4))));
    CHECK(all(x == V(T(5))) == (n == 1));
    CHECK(all(x >= V(T(1))));
  }
}

TEST_CASE_TEMPLATE("loading and storing part of the lanes", V, BURTORCH_WIDTHS) {
  using T = typename V::Lane;
  constexpr std::size_t n = V::size;
  const auto a = ramp<T, n>(1, 1);
  for (std::size_t k = 0; k <= n; ++k) {
    const V x = V::loadPartial(a.data(), k);
    checkLanes(x, [&](std::size_t i) { return i < k ? a[i] : T(0); });
    std::array<T, n> out = ramp<T, n>(-1, 0);
    V::load(a.data()).storePartial(out.data(), k);
    for (std::size_t i = 0; i < n; ++i) CHECK(out[i] == (i < k ? a[i] : T(-1)));
  }
  alignas(V) std::array<T, n> aligned{};
  V::load(a.data()).storeAligned(aligned.data());
  CHECK(aligned == a);
  V::loadAligned(aligned.data()).store(aligned.data());
  CHECK(aligned == a);
}

TEST_CASE("signs of zero survive") {
  const bt::simd<float, 8> zero(-0.0f);
  CHECK(std::signbit(zero[3]));
  CHECK_FALSE(std::signbit((-zero)[3]));
  CHECK_FALSE(std::signbit(fabs(zero)[3]));
}

TEST_CASE("integers") {
  using V = bt::simd<std::uint32_t, 8>;
  const V x(0xf0u);
  checkLanes((x >> 4) | V(0x100u), [](std::size_t) { return 0x10fu; });
  checkLanes((x << 1) & V(0xffu), [](std::size_t) { return 0xe0u; });
  checkLanes(bt::bitCast<std::uint32_t>(bt::simd<float, 8>(1.0f)),
             [](std::size_t) { return 0x3f800000u; });
}

} // namespace
