// burtorch/base/random.hpp — random numbers that are the same on every platform
// SPDX-License-Identifier: MIT
//
// Random is xoshiro256** seeded through SplitMix64 (both by Blackman and Vigna, public domain
// algorithms). Everything derived from it uses integer arithmetic, correctly rounded operations and
// explicit fma only, so that no compiler, library or contraction of products changes a bit: a seed
// names a model, wherever it is trained.
#pragma once

#include <burtorch/base/config.hpp>

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

BURTORCH_BEGIN_NAMESPACE

class Random {
public:
  using State = std::array<std::uint64_t, 4>;

  explicit constexpr Random(std::uint64_t seed = 0) {
    for (std::uint64_t& word : state_) { // SplitMix64
      std::uint64_t z = (seed += 0x9e3779b97f4a7c15u);
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
      z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
      word = z ^ (z >> 31);
    }
  }

  // A generator that gives nothing but 0, for parameters whose first values do not matter.
  static constexpr Random idle() {
    Random random;
    random.state_ = {};
    return random;
  }
  constexpr bool isIdle() const { return state_ == State{}; }

  // 64 random bits.
  constexpr std::uint64_t bits() {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // In [0, 1), a multiple of 2⁻⁵³.
  constexpr double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  double uniform(double low, double high) { return std::fma(uniform(), high - low, low); }

  // One of 0 … n-1, all equally likely.
  constexpr std::size_t below(std::size_t n) {
    const std::uint64_t limit = ~std::uint64_t{0} - ~std::uint64_t{0} % n; // a multiple of n
    std::uint64_t x = bits();
    while (x >= limit) x = bits();
    return static_cast<std::size_t>(x % n);
  }

  // Mean 0, deviation 1: Marsaglia's polar method. Of each pair one is used, so that the state alone
  // says what comes next.
  double normal() {
    while (true) {
      const double u = std::fma(uniform(), 2.0, -1.0), v = std::fma(uniform(), 2.0, -1.0);
      const double s = std::fma(u, u, v * v);
      if (s < 1.0 && s > 0.0) return u * std::sqrt(-2.0 * logarithm(s) / s);
    }
  }

  const State& state() const { return state_; }
  void setState(const State& state) { state_ = state; }

private:
  // ln x of a positive normal number: x = 2ᵉ·m with m in [√½, √2), ln m = 2·artanh((m-1)/(m+1)).
  static double logarithm(double x) {
    int exponent;
    double m = std::frexp(x, &exponent);
    if (m < 0.70710678118654752) {
      m *= 2;
      --exponent;
    }
    const double t = (m - 1.0) / (m + 1.0), tt = t * t;
    double sum = 0;
    for (int k = 27; k >= 3; k -= 2) sum = std::fma(sum, tt, 1.0 / k);
    sum = std::fma(sum * tt, t, t); // t + t³/3 + t⁵/5 + …
    return std::fma(static_cast<double>(exponent), 0.69314718055994531, 2.0 * sum);
  }

  State state_{};
};

BURTORCH_END_NAMESPACE
