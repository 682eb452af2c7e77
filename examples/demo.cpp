// examples/demo.cpp — the paper's tiny and small graph: gradients, checked, and what each costs
// SPDX-License-Identifier: MIT
#include <burtorch/burtorch.hpp>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace bt = burtorch;
using Value = bt::Value<double>;

namespace {

Value tiny(const Value& a, const Value& b) {
  const auto c = a + b;
  const auto d = a * b + pow3(b);
  const auto e = c - d;
  const auto f = sqr(e);
  return f / 2;
}

Value small(const Value& a, const Value& b) {
  auto c = a + b;
  auto d = a * b + pow3(b);
  c += c + 1;
  c += 1 + c - a;
  d += d * 2 + relu(b + a);
  d += 3 * d + relu(b - a);
  const auto e = c - d;
  const auto f = sqr(e);
  auto g = f / 2;
  g += 10 / f;
  return g;
}

// Builds the graph and its gradient a million times on one tape, and checks the last.
bool demonstrate(const char* name, Value (*graph)(const Value&, const Value&), double x, double y,
                 double value, double da, double db) {
  using clock = std::chrono::steady_clock;
  constexpr int iterations = 1000000;
  bt::Tape<double> tape;
  const auto start = tape.mark();
  const auto begin = clock::now();
  double got[3] = {};
  std::size_t nodes = 0;
  for (int i = 0; i < iterations; ++i) {
    tape.rewind(start); // forget the last graph, keep the memory
    const Value a(tape, x), b(tape, y);
    const Value g = graph(a, b);
    backward(g);
    got[0] = g.dataCopy(), got[1] = a.gradCopy(), got[2] = b.gradCopy();
    nodes = tape.size();
  }
  const std::chrono::duration<double, std::nano> passed = clock::now() - begin;
  const auto close = [](double s, double t) { return std::abs(s - t) <= 1e-12 * std::abs(t); };
  const bool right = close(got[0], value) && close(got[1], da) && close(got[2], db);
  std::printf(
      "%-6s %3zu nodes   g = %.10g   dg/da = %.10g   dg/db = %.10g   %s   %.0f ns per gradient\n",
      name, nodes, got[0], got[1], got[2], right ? "right" : "WRONG", passed.count() / iterations);
  return right;
}

} // namespace

int main() {
  std::puts(
      "Gradients with burtorch: each graph is built anew and differentiated a million times.\n");
  const bool tinyRight = demonstrate("tiny", tiny, -41, 2, 612.5, -35, 1050);
  const bool smallRight =
      demonstrate("small", small, -4, 2, 24.70408163265306, 138.83381924198252, 645.5772594752186);
  std::puts("\nThe program is examples/demo.cpp; `make bench` compares with other ways to get "
            "these gradients.");
  return tinyRight && smallRight ? EXIT_SUCCESS : EXIT_FAILURE;
}
