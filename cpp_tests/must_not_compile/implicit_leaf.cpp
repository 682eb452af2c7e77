// expect: (conversion from .* requested|no viable conversion|could not convert|cannot convert)
// cpp_tests/must_not_compile/implicit_leaf.cpp — a number never becomes a leaf by accident
// SPDX-License-Identifier: MIT
#include <burtorch/burtorch.hpp>

int main() {
  burtorch::Value<double> x(1.0);
#ifdef BURTORCH_THE_ERROR
  burtorch::Value<double> silent = 1.0;
#endif
  return x.dataCopy() == 1.0 ? 0 : 1;
}
