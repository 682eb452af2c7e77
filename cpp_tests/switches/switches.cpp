// cpp_tests/switches/switches.cpp — the same code must compile and agree whatever the switches say
// SPDX-License-Identifier: MIT
#include <burtorch/burtorch.hpp>
#include <burtorch/viz/dot.hpp>

#include <cmath>
#include <cstdio>
#include <type_traits>

// Without labels not a byte is stored for them.
static_assert(BURTORCH_LABELS || std::is_empty_v<burtorch::detail::Labels>);

int main() {
  auto a = burtorch::Value(-4.0);
  auto b = burtorch::Value(2.0);
  a.setLabel("a"); // compiles with labels removed, too
  auto c = a * b + burtorch::pow3(b);
  c += burtorch::relu(b - a) * 0.5;
  c.setLabel("c");
  burtorch::backward(c);

  // c = ab + b^3 + (b-a)/2 = -8 + 8 + 3, dc/da = b - 1/2, dc/db = a + 3b^2 + 1/2
  const bool right =
      std::abs(c.dataCopy() - 3.0) < 1e-12 && std::abs(a.gradCopy() - 1.5) < 1e-12 &&
      std::abs(b.gradCopy() - 8.5) < 1e-12 &&
      (burtorch::asString(a).find("label") != std::string::npos) == BURTORCH_LABELS &&
      burtorch::buildDotGraph(c).size() > 1000;
  std::printf("c=%g dc/da=%g dc/db=%g\n", c.dataCopy(), a.gradCopy(), b.gradCopy());
  return right ? 0 : 1;
}
