// cpp_tests/two_units/one.cpp — continues a graph that the other unit began, on the same current tape
// SPDX-License-Identifier: MIT
#include <burtorch/burtorch.hpp>

#include <cstdio>

burtorch::Value<double> squareElsewhere(burtorch::Value<double> x); // two.cpp

int main() {
  auto x = burtorch::Value(3.0);
  auto y = squareElsewhere(x) * x;
  burtorch::backward(y);
  std::printf("y=%g dy/dx=%g\n", y.dataCopy(), x.gradCopy());
  return y.dataCopy() == 27.0 && x.gradCopy() == 27.0 ? 0 : 1;
}
