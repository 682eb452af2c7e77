// benchmarks/cpp/burtorch_scalars.cpp — what lanes, halves and the vector functions cost against plain numbers
// SPDX-License-Identifier: MIT
#include "loop.hpp"

#include <burtorch/burtorch.hpp>
#include <burtorch/op/types.hpp>

#include <cmath>
#include <memory>
#include <span>
#include <vector>

namespace {

namespace bt = burtorch;
using loop::Outputs, loop::Parameters, loop::Run;

template <class T> double first(const T& x) { return static_cast<double>(x); }
template <class T, std::size_t N> double first(const bt::simd<T, N>& x) {
  return static_cast<double>(x[0]);
}

// The small graph, rebuilt every iteration; of several lanes the first is told.
template <class T> Run smallGraph(const Parameters&) {
  const auto tape = std::make_shared<bt::Tape<T>>(bt::reserve(256));
  return loop::repeat(-4, 2, [=, start = tape->mark()](double x, double y) {
    tape->rewind(start);
    const bt::Value<T> a(*tape, x), b(*tape, y);
    const bt::Value<T> g = loop::smallGraph(a, b);
    backward(g);
    return loop::Gradient{first(g.dataCopy()), first(a.gradCopy()), first(b.gradCopy())};
  });
}

// tanh(Wx + b) of 64 outputs and 1024 inputs, each an inner product over runs; forward and backward.
template <class T> Run affineTanh(const Parameters&) {
  constexpr std::size_t rows = 64, columns = 1024;
  static bt::Tape<T> tape{bt::reserve(rows * (columns + 4) + columns)};
  static std::vector<bt::Value<T>> x, w, b;
  for (std::size_t i = 0; i < columns; ++i) x.emplace_back(tape, std::sin(static_cast<double>(i)));
  for (std::size_t i = 0; i < rows * columns; ++i)
    w.emplace_back(tape, 0.03 * std::cos(static_cast<double>(i)));
  for (std::size_t i = 0; i < rows; ++i) b.emplace_back(tape, 0.01);
  const auto last = std::make_shared<Outputs>(2);
  return {[=, start = tape.mark()](std::size_t count) {
            for (std::size_t i = 0; i < count; ++i) {
              std::vector<bt::Value<T>> y;
              for (std::size_t r = 0; r < rows; ++r)
                y.push_back(tanh(innerProductWithBias(std::span(w).subspan(r * columns, columns),
                                                      std::span(x), b[r])));
              const auto loss = reduceMean(y);
              tape.zeroGrad();
              backward(loss);
              *last = {first(loss.dataCopy()), first(x[7].gradCopy())};
              tape.rewind(start);
            }
          },
          [=] { return *last; }};
}

// A function of 4096 numbers: one after the other, or as many as a register holds.
struct Numbers {
  std::vector<float> x = std::vector<float>(4096), y = x;
  Numbers() {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.001f + static_cast<float>(i % 997) * 0.01f;
  }
};
template <class Pass> Run passes(Pass pass) {
  const auto numbers = std::make_shared<Numbers>();
  return {[=](std::size_t count) {
            for (std::size_t k = 0; k < count; ++k) {
              pass(*numbers);
              loop::sink = static_cast<double>(numbers->y[k % numbers->y.size()]);
            }
          },
          [=] {
            double sum = 0;
            for (const float y : numbers->y) sum += static_cast<double>(y);
            return Outputs{sum};
          }};
}
template <class F> void add(std::vector<loop::Way>& ways, const char* name, F function) {
  ways.push_back({name, "std", [=](const Parameters&) {
                    return passes([=](Numbers& n) {
                      for (std::size_t i = 0; i < n.x.size(); ++i) n.y[i] = function(n.x[i]);
                    });
                  }});
  ways.push_back({name, "lanes", [=](const Parameters&) {
                    return passes([=](Numbers& n) {
                      using V = bt::simd<float, bt::nativeLanes<float>>;
                      for (std::size_t i = 0; i < n.x.size(); i += V::size)
                        function(V::load(n.x.data() + i)).store(n.y.data() + i);
                    });
                  }});
}

} // namespace

int main(int argc, char** argv) {
  std::vector<loop::Way> ways{{"lanes", "float", smallGraph<float>},
                              {"lanes", "simd<float, 8>", smallGraph<bt::float32x8>},
                              {"lanes", "double", smallGraph<double>},
                              {"lanes", "simd<double, 4>", smallGraph<bt::float64x4>},
                              {"affine tanh", "float", affineTanh<float>},
                              {"affine tanh", "float16", affineTanh<bt::float16>},
                              {"affine tanh", "bfloat16", affineTanh<bt::bfloat16>}};
  using std::exp, std::log, std::tanh;
  add(ways, "exp", [](const auto& x) { return exp(x); });
  add(ways, "log", [](const auto& x) { return log(x); });
  add(ways, "tanh", [](const auto& x) { return tanh(x); });
  return loop::main(argc, argv, ways);
}
