// cpp_tests/slow/all_floats.cpp — the vector functions on all 2^32 floats; run by `make slow`
// SPDX-License-Identifier: MIT
//
// Arguments: names of functions (default: all). The truth is the standard library's in double,
// rounded to float: its error is far below half a float ulp. Exit status 1 if anything is off by
// more than 2.
#include "../ulp.hpp"
#include "../vector_functions.hpp"

#include <bit>
#include <cstdint>
#include <cstdio>
#include <string_view>

namespace bt = burtorch;

namespace {

constexpr std::size_t lanes = 8;
using V = bt::simd<float, lanes>;

template <class F, class Truth> bool check(const char* name, const F& f, const Truth& truth) {
  std::int64_t worst = 0;
  float where = 0;
  for (std::uint64_t bits = 0; bits < (1ull << 32); bits += lanes) {
    float x[lanes];
    for (std::size_t i = 0; i < lanes; ++i)
      x[i] = std::bit_cast<float>(static_cast<std::uint32_t>(bits + i));
    const V got = f(V::load(x));
    for (std::size_t i = 0; i < lanes; ++i) {
      const auto distance =
          ulpDistance(got[i], static_cast<float>(truth(static_cast<double>(x[i]))));
      if (distance > worst) {
        worst = distance;
        where = x[i];
      }
    }
  }
  std::printf("%-12s worst %lld ulp, at %a\n", name, static_cast<long long>(worst),
              static_cast<double>(where));
  std::fflush(stdout);
  return worst <= 2;
}

} // namespace

int main(int count, char** names) {
  const auto wanted = [&](std::string_view name) {
    for (int i = 1; i < count; ++i)
      if (name == names[i]) return true;
    return count == 1;
  };
  bool good = true;
  forEachVectorFunction([&](const char* name, const auto& f, const auto& truth) {
    if (wanted(name)) good &= check(name, f, truth);
  });
  return good ? 0 : 1;
}
