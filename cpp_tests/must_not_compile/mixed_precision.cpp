// expect: (no match for|invalid operands to|static assertion|static_assert|constraint)
// cpp_tests/must_not_compile/mixed_precision.cpp — values of two precisions live on two tapes and do not add
// SPDX-License-Identifier: MIT
#include <burtorch/burtorch.hpp>

int main() {
  burtorch::Value<float> x(1.0f);
  burtorch::Value<double> y(2.0);
  auto sum = x + x;
#ifdef BURTORCH_THE_ERROR
  auto mixed = x + y;
#endif
  return sum.dataCopy() == 2.0f && y.dataCopy() == 2.0 ? 0 : 1;
}
