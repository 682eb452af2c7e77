// expect: integers have no derivatives
// cpp_tests/must_not_compile/program_integers.cpp — a Program does not run over integers
// SPDX-License-Identifier: MIT
#include <burtorch/run/program.hpp>

#include <array>
#include <cstddef>

int main() {
  using namespace burtorch;
#ifdef BURTORCH_THE_ERROR
  using P = Program<[](auto a, auto b) { return a * b; }, 2>;
  const int x[2] = {3, 4};
  return P::gradient(x)[0] == 4 ? 0 : 1;
#else
  using P = Program<[](auto a, auto b) { return a * b; }, 2>;
  const double x[2] = {3, 4};
  return P::gradient(x)[0] == 4 ? 0 : 1;
#endif
}
