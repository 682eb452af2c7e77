// expect: (cannot convert|no viable conversion|cannot initialize)
// cpp_tests/must_not_compile/implicit_number.cpp — a value never turns into a number by accident
// SPDX-License-Identifier: MIT
#include <burtorch/burtorch.hpp>

int main() {
  burtorch::Value<double> x(1.0);
  double number = x.dataCopy();
#ifdef BURTORCH_THE_ERROR
  number = 0.0;
  double silent = x;
  number = silent;
#endif
  return number == 1.0 ? 0 : 1;
}
