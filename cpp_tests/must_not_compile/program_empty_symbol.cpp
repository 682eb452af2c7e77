// expect: aSymbolWasUsedBeforeItWasGivenAValue
// cpp_tests/must_not_compile/program_empty_symbol.cpp — a symbol made from nothing has no value to add to
// SPDX-License-Identifier: MIT
#include <burtorch/run/program.hpp>

#include <array>
#include <cstddef>

int main() {
  using namespace burtorch;
#ifdef BURTORCH_THE_ERROR
  using P = Program<[](Symbol a) {
    Symbol s{};
    s += a;
    return s;
  },
                    1>;
  return P::value(std::array{3.0}) == 6.0 ? 0 : 1;
#else
  using P = Program<[](Symbol a) {
    Symbol s = a;
    s += a;
    return s;
  },
                    1>;
  return P::value(std::array{3.0}) == 6.0 ? 0 : 1;
#endif
}
