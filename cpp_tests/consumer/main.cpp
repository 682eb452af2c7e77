// cpp_tests/consumer/main.cpp — the paper's listing as it stands; prints 138.834
// SPDX-License-Identifier: MIT
#include "burtorch.h"
#include <iostream>

int main() {
  auto a = Value(-4.0);
  auto b = Value(2.0);
  auto c = a + b;
  auto d = a * b + pow3(b);
  c += c + Value(1.0);
  c += Value(1.0) + c - a;
  d += d * Value(2.0) + relu(b + a);
  d += Value(3.0) * d + relu(b - a);
  auto e = c - d;
  auto f = sqr(e);
  auto g = f / Value(2.0);
  g += Value(10.0) / f;
  backward(g);
  std::cout << a.gradCopy();
  return 0;
}
