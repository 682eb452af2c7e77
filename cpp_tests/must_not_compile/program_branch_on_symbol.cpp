// expect: when its inputs have no values: it can.t branch on them. Use select
// cpp_tests/must_not_compile/program_branch_on_symbol.cpp — a symbol is no condition
// SPDX-License-Identifier: MIT
#include <burtorch/run/program.hpp>

#include <array>
#include <cstddef>

int main() {
  using namespace burtorch;
#ifdef BURTORCH_THE_ERROR
  using P = Program<[](auto a) {
    if (a) return a;
    return a + 1.0;
  },
                    1>;
  return P::value(std::array{0.0}) == 1.0 ? 0 : 1;
#else
  using P = Program<[](auto a) { return select(a != 0.0, a, 1.0); }, 1>;
  return P::value(std::array{0.0}) == 1.0 ? 0 : 1;
#endif
}
