// examples/per_sample_gradients.cpp — the gradient of each sample, and what it tells
// SPDX-License-Identifier: MIT
//
// Frameworks give the mean gradient of a batch. Here each sample's own costs the same: samples are
// computed one after the other anyway. The Python twin is per_sample_gradients.py.
#include <burtorch/nn/oracle.hpp>
#include <burtorch/optim/clip.hpp>
#include <burtorch/optim/sgd.hpp>

#include <algorithm>
#include <cstdio>
#include <span>
#include <vector>

namespace bt = burtorch;

int main() {
  bt::nn::Oracle<bt::nn::CharMLP<double>> oracle(
      {.hidden = 8, .vocab = 5, .embed = 4, .context = 3});
  constexpr int samples = 20;
  std::vector<int> x, y;
  for (int i = 0; i < samples; ++i) {
    for (int j = 0; j < 3; ++j) x.push_back((i + j) % 5);
    y.push_back((i + 3) % 5);
  }
  y[7] = 3; // one label is wrong: all others say "the next letter"
  const std::span<const int> xs(x), ys(y);

  bt::optim::GD<double> optimizer(0.5);
  for (int step = 0; step < 100; ++step) {
    oracle.lossAndGradient(xs, ys, {.microBatch = samples});
    optimizer.step(oracle.values(), oracle.gradients());
  }

  // The sample that pulls against all others is the one with the wrong label.
  const std::size_t n = oracle.model().numParameters();
  std::vector<double> each(samples * n), lengths;
  oracle.perSampleGradients(xs, ys, std::span(each));
  for (std::size_t i = 0; i < samples; ++i)
    lengths.push_back(bt::optim::norm(std::span<const double>(each).subspan(i * n, n)));
  const auto most = std::ranges::max_element(lengths);
  std::printf("the largest gradient, of length %.3f, is of sample %td\n", *most,
              most - lengths.begin());
}
