// examples/gpt.cpp — a small transformer learns a text by heart
// SPDX-License-Identifier: MIT
//
// GPT: every next character of a sequence. The Python twin is gpt.py.
#include <burtorch/nn/generate.hpp>
#include <burtorch/nn/oracle.hpp>
#include <burtorch/optim/optim.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace bt = burtorch;

int main() {
  const std::string text = "round and round the ragged rock the ragged rascal ran. ";
  std::string characters = text;
  std::ranges::sort(characters);
  characters.erase(std::unique(characters.begin(), characters.end()), characters.end());
  const auto idAt = [&](std::size_t i) {
    return static_cast<std::int64_t>(characters.find(text[i % text.size()]));
  };

  bt::nn::Oracle<bt::nn::GPT<double>> oracle({.vocab = characters.size(), .layers = 2});
  const std::size_t context = oracle.model().inputsPerSample();
  std::vector<std::int64_t> x, y;
  for (std::size_t start = 0; start < text.size(); ++start)
    for (std::size_t i = 0; i < context; ++i) {
      x.push_back(idAt(start + i));
      y.push_back(idAt(start + i + 1)); // the same, one further
    }

  const bt::optim::Cosine rate{0.02, 101, 10};
  bt::optim::AdamW<double> optimizer;
  for (int step = 0; step <= 100; ++step) {
    const double loss = oracle.lossAndGradient(x, y, {.microBatch = 16});
    bt::optim::clipByNorm(oracle.gradients(), 1);
    if (step % 25 == 0) std::printf("step %3d: loss %.2f\n", step, loss);
    optimizer.lr = rate(static_cast<std::uint64_t>(step));
    optimizer.step(oracle.values(), oracle.gradients());
  }
  bt::Random random(0);
  std::vector<std::int64_t> start;
  for (std::size_t i = 0; i < context; ++i) start.push_back(idAt(i));
  std::string said;
  for (const auto id : bt::nn::generate(oracle.model(), 40, random, start, 0.1))
    said += characters[static_cast<std::size_t>(id)];
  std::printf("round an...%s\n", said.c_str());
}
