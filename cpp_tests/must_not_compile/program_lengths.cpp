// expect: the two sequences have different lengths
// cpp_tests/must_not_compile/program_lengths.cpp — an inner product of different lengths
// SPDX-License-Identifier: MIT
#include <burtorch/run/program.hpp>

#include <array>
#include <cstddef>

int main() {
  using namespace burtorch;
#ifdef BURTORCH_THE_ERROR
  using P = Program<[](auto a, auto b) { return innerProduct({a, b}, {b}); }, 2>;
  return P::value(std::array{1.0, 2.0}) == 4.0 ? 0 : 1;
#else
  using P = Program<[](auto a, auto b) { return innerProduct({a, b}, {b, a}); }, 2>;
  return P::value(std::array{1.0, 2.0}) == 4.0 ? 0 : 1;
#endif
}
