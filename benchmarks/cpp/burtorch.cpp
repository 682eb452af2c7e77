// benchmarks/cpp/burtorch.cpp — this library's ways to a gradient of the paper's graphs, and chains
// SPDX-License-Identifier: MIT
//
// -DINDEX=std::uint64_t chooses another index type.
#include "loop.hpp"

#include <burtorch/burtorch.hpp>
#include <burtorch/run/program.hpp>

#include <array>
#include <cstdint>
#include <memory>

#ifndef INDEX
#define INDEX std::uint32_t
#endif

namespace {

namespace bt = burtorch;
using loop::Gradient, loop::Outputs, loop::Parameters, loop::Run;
using Tape = bt::Tape<double, INDEX>;
using Value = bt::Value<double, INDEX>;

// Builds the graph anew and takes its gradient by `backward`. The tape has a life of its own, as
// in a program that uses it.
template <class Graph, class Backward> auto rebuilt(Graph graph, Backward backward) {
  static Tape tape;
  return [=, start = tape.mark()](double x, double y) mutable {
    tape.rewind(start);
    const Value a(tape, x), b(tape, y);
    const Value g = graph(a, b);
    backward(g);
    return Gradient{g.dataCopy(), a.gradCopy(), b.gradCopy()};
  };
}
constexpr auto sweep = [](const Value& g) { bt::backward(g); };

template <bt::Reuse reuse> auto scratch() {
  static std::vector<INDEX> order, leaves, stack;
  for (auto* list : {&order, &leaves, &stack}) list->reserve(64);
  return [](const Value& g) {
    if (order.empty()) bt::backwardWithScratchStorage(g, order, leaves, stack);
    else bt::backwardWithScratchStorage<reuse>(g, order, leaves, stack);
  };
}

template <auto graph> Gradient program(double x, double y) {
  const std::array at{x, y};
  std::array<double, 2> g;
  const double value = bt::Program<graph, 2>::valueAndGradient(at, g);
  return {value, g[0], g[1]};
}

// The same graphs with a leaf for each constant.
constexpr auto leaf = [](const Value& a) { return [&](double c) { return Value(a.tape(), c); }; };
constexpr auto tinyOfLeaves = [](const Value& a, const Value& b) {
  return graphs::tiny<Value>(a, b, leaf(a));
};
constexpr auto smallOfLeaves = [](const Value& a, const Value& b) {
  return graphs::small<Value>(a, b, leaf(a));
};

// Σ (x − c)² over plain numbers c, or over leaves: an append with a number writes one array more and
// must not wait for it.
template <bool withLeaves> Run distances(const Parameters& parameters) {
  const auto n = parameters.count("n", 1000);
  const auto tape = std::make_shared<Tape>();
  const auto gradient = std::make_shared<double>();
  return {[=, start = tape->mark()](std::size_t count) {
            for (std::size_t i = 0; i < count; ++i) {
              tape->rewind(start);
              const Value x(*tape, timing::opaque(0.5));
              Value sum = x * 0.0;
              for (std::size_t k = 0; k < n; ++k) {
                const double c = static_cast<double>(k % 7);
                if constexpr (withLeaves) {
                  const Value difference = x - Value(*tape, c);
                  sum += difference * difference;
                } else {
                  const Value difference = x - c;
                  sum += difference * difference;
                }
              }
              bt::backward(sum);
              loop::sink = *gradient = x.gradCopy();
            }
          },
          [=] { return Outputs{*gradient}; }};
}

// x ← x · 0.999…, n times, then the gradient.
Run chain(const Parameters& parameters) {
  const auto n = parameters.count("n", 1000);
  const auto tape = std::make_shared<Tape>();
  const auto gradient = std::make_shared<double>();
  const auto run = [=, start = tape->mark()](std::size_t count) {
    const double factor = timing::opaque(1 - 1e-9);
    for (std::size_t i = 0; i < count; ++i) {
      tape->rewind(start);
      const Value x(*tape, 1.0), c(*tape, factor);
      Value y = x;
      for (std::size_t k = 0; k + 2 < n; ++k) y = y * c;
      bt::backward(y);
      loop::sink = *gradient = x.gradCopy();
    }
  };
  return {run, [=] {
            const auto used = tape->used();
            const auto bytes = used.nodes * 2 * sizeof(double) +
                               used.records * sizeof(Tape::Record) +
                               used.constants * sizeof(double) + used.operands * sizeof(INDEX);
            loop::extras["bytes_per_node"] =
                static_cast<double>(bytes) / static_cast<double>(used.nodes);
            return Outputs{*gradient};
          }};
}

} // namespace

int main(int argc, char** argv) {
  std::vector<loop::Way> ways{{"chain", "eager", chain},
                              {"distances", "eager", distances<false>},
                              {"distances", "leaves", distances<true>},
                              loop::tiny("leaves", rebuilt(tinyOfLeaves, sweep)),
                              loop::small("leaves", rebuilt(smallOfLeaves, sweep)),
                              loop::tiny("program", program<loop::tinyGraph>),
                              loop::small("program", program<loop::smallGraph>)};
  const auto add = [&](const char* name, auto make) {
    ways.push_back({"tiny", name, [=](const Parameters&) {
                      return loop::repeat(-41, 2, make(loop::tinyGraph));
                    }});
    ways.push_back({"small", name, [=](const Parameters&) {
                      return loop::repeat(-4, 2, make(loop::smallGraph));
                    }});
  };
  add("eager", [](auto graph) { return rebuilt(graph, sweep); });
  add("scratch", [](auto graph) { return rebuilt(graph, scratch<bt::Reuse::nothing>()); });
  add("order reused",
      [](auto graph) { return rebuilt(graph, scratch<bt::Reuse::orderAndLeaves>()); });
  return loop::main(argc, argv, ways);
}
