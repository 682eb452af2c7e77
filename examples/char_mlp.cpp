// examples/char_mlp.cpp — the paper's MLP learns to make up words
// SPDX-License-Identifier: MIT
//
// CharMLP: the next character from the 16 before it. The Python twin is char_mlp.py.
#include <burtorch/nn/generate.hpp>
#include <burtorch/nn/oracle.hpp>
#include <burtorch/optim/adam.hpp>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace bt = burtorch;

int main() {
  constexpr std::string_view alphabet = ".abcdefghijklmnopqrstuvwxyz"; // index 0 ends a word
  constexpr std::string_view words =
      "apple.apricot.banana.blueberry.cherry.date.fig.grape.lemon.lime.mango.melon.";

  bt::nn::Oracle<bt::nn::CharMLP<double>> oracle({.hidden = 16});
  const std::size_t context = oracle.model().inputsPerSample();

  // For every character of every word: those before it, padded with index 0, and itself.
  std::vector<int> x, y, before(context);
  for (const char character : words) {
    const int index = static_cast<int>(alphabet.find(character));
    x.insert(x.end(), before.begin(), before.end());
    y.push_back(index);
    before.erase(before.begin());
    before.push_back(index);
    if (index == 0) before.assign(context, 0);
  }

  std::printf("%zu parameters, %zu samples\n", oracle.model().numParameters(), y.size());
  bt::optim::Adam<double> optimizer({.lr = 0.003});
  for (int step = 0; step <= 200; ++step) {
    const double loss = oracle.lossAndGradient(x, y, {.microBatch = 32});
    if (step % 50 == 0) std::printf("step %3d: loss %.3f\n", step, loss);
    optimizer.step(oracle.values(), oracle.gradients());
  }
  bt::Random random(1);
  std::string text;
  for (const auto id : bt::nn::generate(oracle.model(), 60, random))
    text += alphabet[static_cast<std::size_t>(id)];
  std::printf("some of what it makes up: %s\n", text.c_str());
}
