// benchmarks/scalars.cpp — what lanes, halves and the vector functions cost against plain numbers
// SPDX-License-Identifier: MIT
//
// Usage: bench_scalars. Everything is one process, one core; contenders take turns. What is asked of
// the vector functions and of halves is asked on AVX2: NATIVE=1.
#include "timing.hpp"

#include <burtorch/burtorch.hpp>
#include <burtorch/op/types.hpp>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

namespace {

namespace bt = burtorch;

volatile double sink; // results go here, so that none can be skipped

template <class T> double first(const T& x) { return static_cast<double>(x); }
template <class T, std::size_t N> double first(const bt::simd<T, N>& x) {
  return static_cast<double>(x[0]);
}

// The small graph of the paper, rebuilt every iteration; see eager.cpp.
template <class T> timing::Contender smallGraph(const std::string& name) {
  return {name, [](int iterations) {
            static bt::Tape<T> tape{bt::reserve(256)};
            const auto start = tape.mark();
            for (int i = 0; i < iterations; ++i) {
              tape.rewind(start);
              const bt::Value<T> a(tape, timing::opaque(-4.0)), b(tape, timing::opaque(2.0));
              auto c = a + b;
              auto d = a * b + pow3(b);
              c = c + (c + 1.0);
              c = c + (1.0 + c - a);
              d = d + (d * 2.0 + relu(b + a));
              d = d + (3.0 * d + relu(b - a));
              const auto e = c - d;
              const auto f = sqr(e);
              const auto g = f / 2.0 + 10.0 / f;
              backward(g);
              sink = first(g.dataCopy()) + first(a.gradCopy()) + first(b.gradCopy());
            }
            tape.rewind(start); // else the next round would sweep this graph, too
          }};
}

// tanh(Wx + b) of 64 outputs and 1024 inputs, each an inner product over runs; forward and backward.
template <class T> timing::Contender affineTanh(const std::string& name) {
  return {name, [](int iterations) {
            constexpr std::size_t rows = 64, columns = 1024;
            static bt::Tape<T> tape{bt::reserve(rows * (columns + 4) + columns)};
            static std::vector<bt::Value<T>> x, w, b;
            if (tape.size() == 0) {
              for (std::size_t i = 0; i < columns; ++i)
                x.emplace_back(tape, std::sin(static_cast<double>(i)));
              for (std::size_t i = 0; i < rows * columns; ++i)
                w.emplace_back(tape, 0.03 * std::cos(static_cast<double>(i)));
              for (std::size_t i = 0; i < rows; ++i) b.emplace_back(tape, 0.01);
            }
            const auto start = tape.mark();
            for (int i = 0; i < iterations; ++i) {
              std::vector<bt::Value<T>> y;
              for (std::size_t r = 0; r < rows; ++r)
                y.push_back(tanh(innerProductWithBias(std::span(w).subspan(r * columns, columns),
                                                      std::span(x), b[r])));
              const auto loss = reduceMean(y);
              tape.zeroGrad();
              backward(loss);
              sink = first(loss.dataCopy()) + first(x[7].gradCopy());
              tape.rewind(start);
            }
          }};
}

template <class Plain, class Vector>
void functionRace(const char* name, const Plain& plain, const Vector& vector) {
  constexpr std::size_t n = 4096;
  static std::vector<float> x(n), y(n);
  using V = bt::simd<float, bt::nativeLanes<float>>;
  for (std::size_t i = 0; i < n; ++i) x[i] = 0.001f + static_cast<float>(i % 997) * 0.01f;
  const std::vector<timing::Contender> contenders{
      {std::string("std::") + name,
       [&](int iterations) {
         for (int k = 0; k < iterations; ++k) {
           for (std::size_t i = 0; i < n; ++i) y[i] = plain(x[i]);
           sink = static_cast<double>(y[static_cast<std::size_t>(k) % n]);
         }
       }},
      {std::to_string(V::size) + " lanes", [&](int iterations) {
         for (int k = 0; k < iterations; ++k) {
           for (std::size_t i = 0; i < n; i += V::size)
             vector(V::load(x.data() + i)).store(y.data() + i);
           sink = static_cast<double>(y[static_cast<std::size_t>(k) % n]);
         }
       }}};
  const auto results = timing::race(contenders, 20, 15);
  timing::print((std::string(name) + " of 4096 floats").c_str(), contenders, results, 1);
  std::printf("  asked: at least 4 times faster; reached %.1f\n",
              results[0].minimum / results[1].minimum);
}

void race(const char* title, const std::vector<timing::Contender>& contenders, int iterations,
          const char* asked) {
  timing::print(title, contenders, timing::race(contenders, iterations), 0);
  std::printf("  asked: %s\n", asked);
}

} // namespace

int main() {
  timing::pinToOneCore();
  race("Small graph, rebuilt every iteration: one sample against eight",
       {smallGraph<float>("float"), smallGraph<bt::float32x8>("simd<float, 8>")}, 20000,
       "at most 1.6 times");
  race("Small graph, rebuilt every iteration: one sample against four",
       {smallGraph<double>("double"), smallGraph<bt::float64x4>("simd<double, 4>")}, 20000,
       "at most 1.5 times");
  race("tanh(Wx + b), 64 x 1024, forward and backward",
       {affineTanh<float>("float"), affineTanh<bt::float16>("float16"),
        affineTanh<bt::bfloat16>("bfloat16")},
       20, "at most 2.5 times");
  functionRace(
      "exp", [](float x) { return std::exp(x); }, [](const auto& x) { return exp(x); });
  functionRace(
      "log", [](float x) { return std::log(x); }, [](const auto& x) { return log(x); });
  functionRace(
      "tanh", [](float x) { return std::tanh(x); }, [](const auto& x) { return tanh(x); });
}
