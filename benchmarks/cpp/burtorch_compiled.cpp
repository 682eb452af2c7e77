// benchmarks/cpp/burtorch_compiled.cpp — graphs recorded once: replayed, and as native code made at run time
// SPDX-License-Identifier: MIT
#include "loop.hpp"

#if __has_include(<burtorch/run/emit.hpp>)
#include <burtorch/burtorch.hpp>
#include <burtorch/run/emit.hpp>
#include <burtorch/run/replay.hpp>

#include <array>
#include <dlfcn.h>
#include <fstream>
#include <memory>

namespace {

namespace bt = burtorch;
using loop::Gradient, loop::Parameters;

template <class Graph> auto record(Graph graph) {
  bt::Tape<double> tape;
  const std::array x{bt::Value<double>(tape, 1.0), bt::Value<double>(tape, 1.0)};
  return std::make_shared<const bt::Recording<double>>(x, graph(x[0], x[1]));
}

template <class Graph> auto replay(Graph graph, const Parameters&) {
  const auto recording = record(graph);
  // Shared, because loops are copied and workspaces are not.
  const auto workspace = std::make_shared<bt::Workspace<double>>(recording->workspace());
  return [=](double a, double b) {
    const std::array at{a, b};
    std::array<double, 2> g;
    const double value = recording->valueAndGradient(*workspace, at, g);
    return Gradient{value, g[0], g[1]};
  };
}

template <class Graph> auto native(Graph graph, const Parameters& parameters) {
  const std::string code = parameters.text("path") + ".c",
                    library = parameters.text("path") + ".so";
  std::ofstream(code) << bt::emit(*record(graph));
  const std::string command = "cc -O3 -march=" + parameters.text("march", "native") +
                              " -fPIC -shared " + code + " -o " + library + " -lm";
  void* const loaded = std::system(command.c_str()) ? nullptr : dlopen(library.c_str(), RTLD_NOW);
  if (!loaded) throw std::runtime_error("the emitted code did not compile");
  const auto f = reinterpret_cast<double (*)(const double*, double*)>(dlsym(loaded, "f"));
  return [=](double a, double b) {
    const double at[] = {a, b};
    double g[2];
    const double value = f(at, g);
    return Gradient{value, g[0], g[1]};
  };
}

// A thousand samples in one call, in lanes; counts a gradient per sample.
template <class Graph> loop::Run batch(Graph graph, double a, double b) {
  constexpr std::size_t samples = 1000;
  using Lanes = bt::simd<double, bt::nativeLanes<double>>;
  const auto recording = record(graph);
  const auto workspace =
      std::make_shared<bt::Workspace<Lanes>>(recording->template workspace<Lanes>());
  std::vector<double> points;
  for (std::size_t i = 0; i < samples; ++i) points.insert(points.end(), {a, b});
  const auto values = std::make_shared<std::vector<double>>(samples);
  const auto grads = std::make_shared<std::vector<double>>(2 * samples);
  return {[=](std::size_t count) {
            for (std::size_t i = 0; i < count; i += samples)
              recording->batch(*workspace, points.data(), samples, values->data(), grads->data());
          },
          [=] {
            return loop::Outputs{values->back(), grads->end()[-2], grads->back()};
          }};
}

// The graphs by one of the above.
template <class Make> void add(std::vector<loop::Way>& ways, const char* name, Make make) {
  ways.push_back({"tiny", name, [=](const Parameters& parameters) {
                    return loop::repeat(-41, 2, make(loop::tinyGraph, parameters));
                  }});
  ways.push_back({"small", name, [=](const Parameters& parameters) {
                    return loop::repeat(-4, 2, make(loop::smallGraph, parameters));
                  }});
}

} // namespace

int main(int argc, char** argv) {
  std::vector<loop::Way> ways{
      {"tiny", "batch", [](const Parameters&) { return batch(loop::tinyGraph, -41, 2); }},
      {"small", "batch", [](const Parameters&) { return batch(loop::smallGraph, -4, 2); }}};
  add(ways, "replay", [](auto graph, const auto& p) { return replay(graph, p); });
  add(ways, "native", [](auto graph, const auto& p) { return native(graph, p); });
  return loop::main(argc, argv, ways);
}
#else
int main(int argc, char** argv) { return loop::main(argc, argv, {}); }
#endif
