// benchmarks/compiled.cpp — the paper's graphs recorded once: eager, replay, compile-time program, by hand
// SPDX-License-Identifier: MIT
//
// One process, one core; contenders take turns. The last lines say what was asked.
#include "graphs.hpp"
#include "timing.hpp"
#include "yardstick.hpp"

#include <burtorch/burtorch.hpp>
#include <burtorch/run/program.hpp>
#include <burtorch/run/replay.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

namespace bt = burtorch;
using yardstick::Gradient;
using Tape = bt::Tape<double>;
using Value = bt::Value<double>;

volatile double sink; // results go here, so that none can be skipped

constexpr auto number = [](double x) { return x; };
constexpr auto tiny = []<class V>(V a, V b) { return graphs::tiny<V>(a, b, number); };
constexpr auto small = []<class V>(V a, V b) { return graphs::small<V>(a, b, number); };

template <class F> timing::Contender contender(std::string name, double a, double b, F gradient) {
  return {std::move(name), [=](int iterations) {
            for (int i = 0; i < iterations; ++i) {
              const Gradient g = gradient(timing::opaque(a), timing::opaque(b));
              sink = g.value + g.a + g.b;
            }
          }};
}

void demandAgreement(const Gradient& got, const Gradient& want, const char* what) {
  const auto close = [](double x, double y) { return std::abs(x - y) <= 1e-12 * std::abs(y); };
  if (close(got.value, want.value) && close(got.a, want.a) && close(got.b, want.b)) return;
  std::fprintf(stderr, "wrong result: %s\n", what);
  std::exit(1);
}

template <auto f>
void race(const char* title, double a, double b, Gradient (*byHand)(double, double),
          double programLimit) {
  static Tape tape;
  tape.clear();
  static const bt::Recording<double> recording = [&] {
    Tape recorder;
    const std::array x{Value(recorder, a), Value(recorder, b)};
    return bt::Recording<double>(x, f(x[0], x[1]));
  }();
  static auto workspace = recording.workspace();
  static auto lanes = recording.workspace<bt::simd<double, bt::nativeLanes<double>>>();
  const auto start = tape.mark();
  const auto eager = [=](double x, double y) {
    tape.rewind(start);
    const Value u(tape, x), v(tape, y);
    const Value g = f(u, v);
    bt::backward(g);
    return Gradient{g.dataCopy(), u.gradCopy(), v.gradCopy()};
  };
  const auto replay = [](double x, double y) {
    const std::array at{x, y};
    Gradient g;
    g.value = recording.valueAndGradient(workspace, at, &g.a); // a and b are neighbours
    return g;
  };
  const auto program = [](double x, double y) {
    const std::array at{x, y};
    std::array<double, 2> g;
    const double value = bt::Program<f, 2>::valueAndGradient(at, g);
    return Gradient{value, g[0], g[1]};
  };
  demandAgreement(replay(a, b), byHand(a, b), "replay");
  demandAgreement(program(a, b), byHand(a, b), "program");
  demandAgreement(eager(a, b), byHand(a, b), "eager");

  static constexpr std::size_t samples = 1000;
  static std::vector<double> points(2 * samples, 1.5), values(samples), grads(2 * samples);
  const std::vector<timing::Contender> contenders{
      contender("by hand", a, b, byHand),
      contender("eager", a, b, eager),
      contender("replay", a, b, replay),
      contender("program", a, b, program),
      {"replay: batch of 1000, per sample",
       [](int iterations) {
         for (int i = 0; i < iterations; i += static_cast<int>(samples))
           recording.batch(lanes, points.data(), samples, values.data(), grads.data());
         sink = grads[0];
       }},
  };
  const auto results = timing::race(contenders, 20000);
  timing::print(title, contenders, results, 1);
  std::printf("  asked: replay / eager at most 0.60; reached %.2f\n",
              results[2].minimum / results[1].minimum);
  std::printf("  asked: program / by hand at most %.1f; reached %.2f\n", programLimit,
              results[3].minimum / results[0].minimum);
}

} // namespace

int main() {
  timing::pinToOneCore();
  race<tiny>("Tiny graph, FP64", -41, 2, yardstick::tinyByHand, 2.0);
  race<small>("Small graph, FP64", -4, 2, yardstick::smallByHand, 2.5);
}
