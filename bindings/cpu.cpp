// bindings/cpu.cpp — which instruction sets this processor has, best first
// SPDX-License-Identifier: MIT
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <initializer_list>
#include <string>
#include <vector>

#if defined(_MSC_VER) && defined(_M_X64)
#include <immintrin.h>
#include <intrin.h>
#endif

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
#elif defined(_MSC_VER) && defined(_M_X64)
  // The processor must have the instructions, and the system must save their registers.
  int one[4], seven[4];
  __cpuidex(one, 1, 0);
  __cpuidex(seven, 7, 0);
  const auto has = [](int word, std::initializer_list<int> bits) {
    for (const int bit : bits)
      if ((word >> bit & 1) == 0) return false;
    return true;
  };
  const auto saved = has(one[2], {27}) ? _xgetbv(0) : 0; // by a system that says so
  // fma; bmi, avx2, bmi2
  const bool avx2 = (saved & 0x06) == 0x06 && has(one[2], {12}) && has(seven[1], {3, 5, 8});
  // f, dq, cd, bw, vl
  const bool avx512 = avx2 && (saved & 0xe6) == 0xe6 && has(seven[1], {16, 17, 28, 30, 31});
#else
  const bool avx2 = false, avx512 = false;
#endif
  if (avx512) names.emplace_back("avx512");
  if (avx2) names.emplace_back("avx2");
  names.emplace_back("baseline");
  return names;
}

} // namespace

PYBIND11_MODULE(_cpu, module) {
  module.doc() = "Which instruction sets this processor has.";
  module.def("supported", &supported,
             "The names of the extension modules that can run here, best first.");
}
