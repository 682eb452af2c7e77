// expect: an array that has too few elements
// cpp_tests/must_not_compile/program_too_short.cpp — arrays whose size is known are long enough
// SPDX-License-Identifier: MIT
#include <burtorch/run/program.hpp>

#include <array>
#include <cstddef>

int main() {
  using namespace burtorch;
#ifdef BURTORCH_THE_ERROR
  using P = Program<[](auto a, auto b) { return a * b; }, 2>;
  return P::value(std::array{3.0}) == 12.0 ? 0 : 1;
#else
  using P = Program<[](auto a, auto b) { return a * b; }, 2>;
  return P::value(std::array{3.0, 4.0}) == 12.0 ? 0 : 1;
#endif
}
