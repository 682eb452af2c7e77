// benchmarks/saveload.cpp — 7 activations saved and loaded 5 000 times; a large model's parameters
// SPDX-License-Identifier: MIT
//
// Prints one line per measurement: name, then seconds (the minimum of several rounds). benchmarks/saveload.py runs
// it and puts NumPy and PyTorch beside it. Argument: a folder to write to.
#include "timing.hpp"

#include <burtorch/burtorch.hpp>
#include <burtorch/io/graph.hpp>
#include <burtorch/io/range.hpp>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>

namespace bt = burtorch;

namespace {

// A graph whose seven newest nodes are saved, as the paper does with activations.
bt::Value<double> small(bt::Tape<double>& tape) {
  bt::Value<double> a(tape, timing::opaque(-4.0)), b(tape, timing::opaque(2.0));
  bt::Value<double> c = a + b, d = a * b + bt::pow3(b);
  bt::Value<double> e = c - d, f = bt::sqr(e);
  return f / 2.0;
}

struct Work {
  const char* name;
  std::function<void()> run;
};

// They take turns; prints the shortest time of each.
void measure(const std::vector<Work>& works) {
  std::vector<double> best(works.size(), 1e300);
  for (int round = 0; round < 15; ++round)
    for (std::size_t i = 0; i < works.size(); ++i) {
      const auto start = std::chrono::steady_clock::now();
      works[i].run();
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
      best[i] = std::min(best[i], passed.count());
    }
  for (std::size_t i = 0; i < works.size(); ++i) std::printf("%s %.9f\n", works[i].name, best[i]);
}
void measure(const char* name, const std::function<void()>& work) { measure({{name, work}}); }

#if !defined(_WIN32)
// What nobody who replaces a file can do without.
void writeAndRename(const std::filesystem::path& path, bt::Bytes content) {
  const std::string beside = path.string() + ".tmp";
  const int file = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (::write(file, content.data(), content.size()) < 0) std::abort();
  ::close(file);
  std::filesystem::rename(beside, path);
}
#endif

} // namespace

int main(int count, char** arguments) {
  const std::filesystem::path folder =
      count > 1 ? std::filesystem::path(arguments[1]) : std::filesystem::temp_directory_path();
  timing::pinToOneCore();
  constexpr int times = 5000;

  bt::Tape<double> tape;
  bt::backward(small(tape));
  const std::size_t first = tape.size() - 7, last = tape.size();
  const auto seven = folder / "seven";
  measure("save7", [&] {
    for (int i = 0; i < times; ++i) bt::saveRange(tape, first, last, seven);
  });
  measure("load7", [&] {
    for (int i = 0; i < times; ++i) bt::loadRange(tape, first, last, seven);
  });
  measure("save7_atomic", [&] {
    for (int i = 0; i < times; ++i) bt::saveRange(tape, first, last, seven, bt::Writing::atomic);
  });
  std::vector<std::byte> memory(56);
  measure("save7_memory", [&] {
    for (int i = 0; i < times; ++i) bt::saveRange(tape, first, last, std::span(memory));
  });
  measure("save_graph_memory", [&] {
    for (int i = 0; i < times; ++i) memory = bt::saveGraph(tape);
  });
  bt::Tape<double> other;
  const auto start = other.mark();
  measure("load_graph_memory", [&] {
    for (int i = 0; i < times; ++i) {
      bt::loadGraph(other, bt::Bytes(memory));
      other.rewind(start);
    }
  });

  // The parameters of a CharMLP with 1 024 hidden units.
  constexpr std::size_t parameters = 1'079'003;
  bt::Tape<float> model;
  model.leaves(parameters);
  const auto large = folder / "large";
  const auto save = [&](bt::Writing writing) {
    return [&, writing] { bt::saveRange(model, 0, parameters, large, writing); };
  };
  measure({
#if !defined(_WIN32)
    {"plain_model", [&] { writeAndRename(large, std::as_bytes(model.values())); }},
#endif
        {"save_model", save(bt::Writing::atomic)},
        {"save_model_durable", save(bt::Writing::durable)},
  });
  measure("load_model", [&] { bt::loadRange(model, 0, parameters, large); });
  float sum = 0;
  measure("map_model", [&] { // and looks at every page
    const auto range = bt::mapRange<float>(large);
    for (std::size_t i = 0; i < parameters; i += 1024) sum += range.numbers()[i];
  });
  return sum == 0 ? 0 : 1;
}
