// expect: thisProgramIsFarBeyond_BURTORCH_PROGRAM_LIMIT
// cpp_tests/must_not_compile/program_far_beyond_limit.cpp — a Program that is too long stops where it would take a compiler minutes
// SPDX-License-Identifier: MIT
#include <burtorch/run/program.hpp>

#include <array>
#include <cstddef>

template <std::size_t n>
constexpr auto sum = [](auto x) {
  auto s = x;
  for (std::size_t i = 0; i < n; ++i) s += x;
  return s;
};

int main() {
  using namespace burtorch;
#ifdef BURTORCH_THE_ERROR
  using P = Program<sum<1000000>, 1>;
#else
  using P = Program<sum<100>, 1>;
#endif
  return P::value(std::array{1.0}) == 101.0 ? 0 : 1;
}
