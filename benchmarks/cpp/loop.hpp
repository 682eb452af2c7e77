// benchmarks/cpp/loop.hpp — one C++ way in a process of its own: runs it, prints one JSON line
// SPDX-License-Identifier: MIT
//
// program WORK WAY seconds=2 rounds=5 key=value … as worker.py does for Python, with the same numbers as
// works.py. A program lists its ways and calls loop::main.
#pragma once

#include "graphs.hpp"
#include "timing.hpp"
#include "yardstick.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace loop {

using Outputs = std::vector<double>;
struct Run {
  std::function<void(std::size_t count)> gradients; // takes so many; this is what is timed
  std::function<Outputs()> outputs;                 // of the last
};
using yardstick::Gradient;

struct Parameters {
  std::map<std::string, std::string> words;

  std::string text(const std::string& key, const char* otherwise = "") const {
    const auto found = words.find(key);
    return found == words.end() ? otherwise : found->second;
  }
  double number(const std::string& key, double otherwise) const {
    const auto found = words.find(key);
    return found == words.end() ? otherwise : std::stod(found->second);
  }
  std::size_t count(const std::string& key, std::size_t otherwise) const {
    return static_cast<std::size_t>(number(key, static_cast<double>(otherwise)));
  }
};

struct Way {
  const char* work;
  const char* name;
  std::function<Run(const Parameters&)> make;
};

inline std::map<std::string, double> extras; // further figures, printed as they are

inline volatile double sink; // results go here, so that none can be skipped

// The loop of a function of two numbers that the optimizer can't know.
template <class F> Run repeat(double a, double b, F gradient) {
  const auto last = std::make_shared<Gradient>();
  return {[=](std::size_t count) mutable {
            for (std::size_t i = 0; i < count; ++i) {
              const Gradient g = gradient(timing::opaque(a), timing::opaque(b));
              sink = g.value + g.a + g.b;
              if (i + 1 == count) *last = g;
            }
          },
          [=] {
            return Outputs{last->value, last->a, last->b};
          }};
}
template <class F> Way tiny(const char* name, F gradient) {
  return {"tiny", name, [=](const Parameters&) { return repeat(-41, 2, gradient); }};
}
template <class F> Way small(const char* name, F gradient) {
  return {"small", name, [=](const Parameters&) { return repeat(-4, 2, gradient); }};
}

// Plain numbers stay plain: most types mix with them.
constexpr auto number = [](double x) { return x; };
constexpr auto tinyGraph = []<class V>(const V& a, const V& b) {
  return graphs::tiny<V>(a, b, number);
};
constexpr auto smallGraph = []<class V>(const V& a, const V& b) {
  return graphs::small<V>(a, b, number);
};

// The same numbers in [0, 1) as numbers() of works.py.
inline double uniform(std::size_t i, std::uint32_t seed) {
  std::uint32_t x = (static_cast<std::uint32_t>(i) + seed) * 2654435761u;
  x ^= x >> 15;
  return static_cast<double>((x * 2246822519u) >> 8) / (1 << 24);
}

// Kilobytes of all lines of a file below /proc/self that start with `key`.
inline long kilobytes(const char* file, const std::string& key) {
  std::ifstream lines(std::string("/proc/self/") + file);
  long sum = 0;
  for (std::string line; std::getline(lines, line);)
    if (line.rfind(key, 0) == 0) sum += std::atol(line.c_str() + line.find(':') + 1);
  return sum;
}

inline std::string list(const std::vector<double>& numbers) {
  std::ostringstream text;
  text.precision(17);
  for (std::size_t i = 0; i < numbers.size(); ++i) text << (i ? ", " : "[") << numbers[i];
  return text.str() + "]";
}

inline void measure(Run run, const Parameters& parameters) {
  using clock = std::chrono::steady_clock;
  const auto since = [](clock::time_point start) {
    return std::chrono::duration<double>(clock::now() - start).count();
  };
  const auto seconds = [&](std::size_t count) {
    const auto start = clock::now();
    run.gradients(count);
    return since(start);
  };
  std::vector<double> times{seconds(parameters.count("count", 1))};
  const Outputs outputs = run.outputs();
  const auto rounds = parameters.count("rounds", 5);
  const double budget = parameters.number("seconds", 0);
  // Short rounds: the fastest of many is one that nothing disturbed.
  const double slot = std::min(0.01, budget / static_cast<double>(rounds));
  std::size_t done = 1;
  const std::clock_t before = std::clock();
  if (slot > 0 && !parameters.words.contains("count")) {
    std::size_t count = 1;
    for (;;) { // until a round is long enough for the clock
      const double passed = seconds(count);
      done += count;
      if (passed > slot / 2) break;
      const double fitting = static_cast<double>(count) * slot / std::max(passed, 1e-9);
      count = std::min(count * 10, std::max(count + 1, static_cast<std::size_t>(fitting)));
    }
    times.clear();
    for (const auto start = clock::now(); times.size() < rounds || since(start) < budget;) {
      times.push_back(seconds(count) / static_cast<double>(count));
      done += count;
    }
  }
  std::printf("{\"outputs\": %s, \"times\": %s, \"gradients\": %zu, \"cpu\": %.6f",
              list(outputs).c_str(), list(times).c_str(), done,
              static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC);
  for (const auto& [key, value] : extras) std::printf(", \"%s\": %.17g", key.c_str(), value);
  std::printf(", \"VmPeak\": %ld, \"VmHWM\": %ld, \"private\": %ld}\n",
              kilobytes("status", "VmPeak"), kilobytes("status", "VmHWM"),
              kilobytes("smaps_rollup", "Private_"));
}

inline int main(int argc, char** argv, const std::vector<Way>& ways) {
  Parameters parameters;
  for (int i = 3; i < argc; ++i) {
    const std::string word = argv[i];
    parameters.words[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
  }
  for (const Way& way : ways)
    if (argc > 2 && way.work == std::string(argv[1]) && way.name == std::string(argv[2])) {
      measure(way.make(parameters), parameters);
      return 0;
    }
  std::puts("{\"error\": \"not available in this build\"}");
  return 0;
}

} // namespace loop
