// benchmarks/timing.hpp — fair timing on a noisy machine: contenders take turns, the minimum counts
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#if defined(__linux__)
#include <sched.h>
#endif

namespace timing {

// A number the optimizer knows nothing about.
inline double opaque(double x) {
  volatile double hidden = x;
  return hidden;
}

// Stays on one core, so that clocks and caches do not change under the measurement.
inline void pinToOneCore() {
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(sched_getcpu(), &set);
  sched_setaffinity(0, sizeof(set), &set);
#endif
}

struct Contender {
  std::string name;
  std::function<void(int iterations)> run; // the loop is inside, so that the call costs nothing
};

struct Result {
  double minimum, median; // nanoseconds per iteration
};

// Runs the contenders round after round, one after the other.
inline std::vector<Result> race(const std::vector<Contender>& contenders, int iterations,
                                int rounds = 25) {
  using clock = std::chrono::steady_clock;
  std::vector<std::vector<double>> times(contenders.size());
  for (const auto& contender : contenders) contender.run(iterations); // warm-up
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      const auto start = clock::now();
      contenders[i].run(iterations);
      const std::chrono::duration<double, std::nano> passed = clock::now() - start;
      times[i].push_back(passed.count() / iterations);
    }
  std::vector<Result> results;
  for (auto& t : times) {
    std::sort(t.begin(), t.end());
    results.push_back({t.front(), t[t.size() / 2]});
  }
  return results;
}

// Prints a race; the last column is the minimum relative to the contender at index `yardstick`.
inline void print(const char* title, const std::vector<Contender>& contenders,
                  const std::vector<Result>& results, std::size_t yardstick) {
  std::printf("\n%s\n  %-44s %10s %10s %8s\n", title, "", "min ns", "median ns", "ratio");
  for (std::size_t i = 0; i < contenders.size(); ++i)
    std::printf("  %-44s %10.1f %10.1f %8.2f\n", contenders[i].name.c_str(), results[i].minimum,
                results[i].median, results[i].minimum / results[yardstick].minimum);
}

} // namespace timing
