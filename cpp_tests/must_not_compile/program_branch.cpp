// expect: when its inputs have no values: it can.t branch on them. Use select
// cpp_tests/must_not_compile/program_branch.cpp — a Program can't branch on a value; the message says why and names select
// SPDX-License-Identifier: MIT
#include <burtorch/run/program.hpp>

#include <array>
#include <cstddef>

int main() {
  using namespace burtorch;
#ifdef BURTORCH_THE_ERROR
  using P = Program<[](auto a, auto b) { return a < b ? a : b; }, 2>;
  return P::value(std::array{0.0, 1.0}) == 0.0 ? 0 : 1;
#else
  using P = Program<[](auto a, auto b) { return select(a < b, a, b); }, 2>;
  return P::value(std::array{0.0, 1.0}) == 0.0 ? 0 : 1;
#endif
}
