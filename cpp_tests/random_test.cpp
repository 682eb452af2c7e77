// cpp_tests/random_test.cpp — the generator: known numbers, ranges, distributions, state
// SPDX-License-Identifier: MIT
#include <burtorch/base/random.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

using namespace burtorch;

TEST_CASE("random: bits of xoshiro256** as its authors publish it") {
  // Their generator from the state {1, 2, 3, 4}.
  Random random;
  random.setState({1, 2, 3, 4});
  CHECK(random.bits() == 11520);
  CHECK(random.bits() == 0);
  CHECK(random.bits() == 1509978240);
  CHECK(random.bits() == 1215971899390074240u);
  // SplitMix64 from 0 gives the first state.
  CHECK(Random(0).state() == Random::State{0xe220a8397b1dcdafu, 0x6e789e6aa1b965f4u,
                                           0x06c45d188009454fu, 0xf88bb8a8724c81ecu});
  static_assert(Random(7).bits() != Random(8).bits()); // also while compiling
}

TEST_CASE("random: numbers that a seed stands for, to the last bit") {
  // Computed from the published algorithms in exact arithmetic.
  Random random(42);
  CHECK(random.uniform() == 0x1.5780b2e0c2ec0p-4);
  CHECK(random.uniform(-2, 3) == std::fma(0x1.84136619b444ep-2, 5.0, -2.0));
  Random normal(42);
  for (const double want : {-0.7262191382447857, 0.2216227015035933, 0.46417731016247366})
    CHECK(normal.normal() == doctest::Approx(want).epsilon(1e-15));
}

TEST_CASE("random: uniform and below stay inside, and reach everything") {
  Random random(1);
  std::array<int, 7> counts{};
  double sum = 0;
  for (int i = 0; i < 70000; ++i) {
    const double u = random.uniform();
    REQUIRE(u >= 0);
    REQUIRE(u < 1);
    const double w = random.uniform(-3, 5);
    REQUIRE(w >= -3);
    REQUIRE(w < 5);
    sum += w;
    ++counts.at(random.below(7));
  }
  CHECK(std::fabs(sum / 70000 - 1) < 0.05);
  for (const int count : counts) CHECK(std::abs(count - 10000) < 500); // five deviations
  CHECK(random.below(1) == 0);
}

TEST_CASE("random: normal numbers have mean 0, deviation 1 and normal tails") {
  Random random(2);
  constexpr int n = 200000;
  double sum = 0, squares = 0, fourth = 0;
  int beyondTwo = 0;
  for (int i = 0; i < n; ++i) {
    const double x = random.normal();
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
    beyondTwo += std::fabs(x) > 2;
  }
  CHECK(std::fabs(sum / n) < 0.012);
  CHECK(std::fabs(squares / n - 1) < 0.017);
  CHECK(std::fabs(fourth / n - 3) < 0.12);
  CHECK(std::fabs(beyondTwo / double(n) - 0.0455) < 0.0025);
}

TEST_CASE("random: the state says what comes next") {
  Random random(5);
  for (int i = 0; i < 10; ++i) random.normal();
  Random copy;
  copy.setState(random.state());
  for (int i = 0; i < 10; ++i) CHECK(copy.normal() == random.normal());
  CHECK(copy.state() == random.state());
}
