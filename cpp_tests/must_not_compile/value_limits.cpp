// expect: std::numeric_limits of a Value: there is no such Value
// cpp_tests/must_not_compile/value_limits.cpp — the largest Value is no empty handle: it does not exist
// SPDX-License-Identifier: MIT
#include <burtorch/burtorch.hpp>

#include <limits>

int main() {
  using Limits = std::numeric_limits<burtorch::Value<double>>;
  static_assert(Limits::digits == 53 && Limits::has_infinity); // those of its scalar
#ifdef BURTORCH_THE_ERROR
  burtorch::Value<double> most = Limits::max();
#else
  burtorch::Value<double> most(std::numeric_limits<double>::max());
#endif
  return most.dataCopy() > 1 ? 0 : 1;
}
