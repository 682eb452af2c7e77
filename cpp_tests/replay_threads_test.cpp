// cpp_tests/replay_threads_test.cpp — one recording, many threads, each in a workspace of its own
// SPDX-License-Identifier: MIT
#include <burtorch/run/replay.hpp>

#include <doctest/doctest.h>

#include <array>
#include <thread>
#include <vector>

using namespace burtorch;

TEST_CASE("replay: one recording, many threads") {
  Tape<double> tape;
  const Value<double> a(tape, 1.0), b(tape, 2.0);
  const Recording<double> f({a, b}, exp(a) * b + reduceSum({a, b, a}) * sqr(b));
  const std::array x{0.3, -1.7};
  std::array<double, 2> want{};
  auto here = f.workspace();
  const double value = f.valueAndGradient(here, x, want);
  std::vector<int> wrong(4);
  std::vector<std::thread> threads;
  for (int& count : wrong)
    threads.emplace_back([&] {
      auto w = f.workspace();
      std::array<double, 2> gradient{};
      for (int i = 0; i < 500; ++i)
        if (f.valueAndGradient(w, x, gradient) != value || gradient != want) ++count;
    });
  for (auto& thread : threads) thread.join();
  CHECK(wrong == std::vector{0, 0, 0, 0});
}
