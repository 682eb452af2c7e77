// expect: the lambda of a Program returns a symbol or a number
// cpp_tests/must_not_compile/program_result.cpp — what a Program can't return
// SPDX-License-Identifier: MIT
#include <burtorch/run/program.hpp>

#include <array>
#include <cstddef>

int main() {
  using namespace burtorch;
#ifdef BURTORCH_THE_ERROR
  using P = Program<[](auto) { return "three"; }, 1>;
  return P::value(std::array{3.0}) == 3.0 ? 0 : 1;
#else
  using P = Program<[](auto a) { return a; }, 1>;
  return P::value(std::array{3.0}) == 3.0 ? 0 : 1;
#endif
}
