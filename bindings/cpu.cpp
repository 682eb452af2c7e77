// bindings/cpu.cpp — which instruction sets this processor has, best first
// SPDX-License-Identifier: MIT
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <vector>

namespace {

std::vector<std::string> supported() {
  std::vector<std::string> names;
#if defined(__GNUC__) && defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (avx512) names.emplace_back("avx512");
  if (avx2) names.emplace_back("avx2");
#endif
  names.emplace_back("baseline");
  return names;
}

} // namespace

PYBIND11_MODULE(_cpu, module) {
  module.doc() = "Which instruction sets this processor has.";
  module.def("supported", &supported,
             "The names of the extension modules that can run here, best first.");
}
