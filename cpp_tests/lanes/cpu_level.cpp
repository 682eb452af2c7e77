// cpp_tests/lanes/cpu_level.cpp — says by its exit status whether this processor is x86-64-v3 or v4
// SPDX-License-Identifier: MIT
#include <cstdio>
#include <cstring>

int main(int count, char** arguments) {
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  const bool wantsV4 = count > 1 && std::strcmp(arguments[1], "4") == 0;
  if (wantsV4 ? v4 : v3) return 0;
  std::printf("this processor has no x86-64-v%s; skipped\n", wantsV4 ? "4" : "3");
  return 1;
}
