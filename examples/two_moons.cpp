// examples/two_moons.cpp — a small network tells two half moons apart; its decision boundary is drawn
// SPDX-License-Identifier: MIT
//
// Layers on views: one block per layer for all points at once. The Python twin is two_moons.py.
#include <burtorch/burtorch.hpp>
#include <burtorch/nn/layers.hpp>
#include <burtorch/optim/adam.hpp>

#include <array>
#include <cmath>
#include <cstdio>
#include <numbers>
#include <vector>

namespace bt = burtorch;
using View = bt::View<double>;

struct Moons {
  std::vector<double> points; // x, y, x, y, …
  std::vector<int> labels;
  explicit Moons(int n) {
    bt::Random random(1);
    for (int i = 0; i < n; ++i) {
      const double angle = std::numbers::pi * random.uniform();
      const int upper = i % 2;
      const double x = upper ? std::cos(angle) : 1 - std::cos(angle);
      const double y = upper ? std::sin(angle) : 0.5 - std::sin(angle);
      points.push_back(x + 0.1 * random.normal());
      points.push_back(y + 0.1 * random.normal());
      labels.push_back(upper);
    }
  }
};

// '#' where the network says upper moon, '.' where it says lower; points as 1 and 0.
template <class Network>
void draw(const Network& network, bt::Tape<double>& tape, const Moons& moons) {
  constexpr int rows = 18, cols = 60;
  std::array<std::array<char, cols>, rows> picture;
  std::vector<double> grid;
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < cols; ++c) {
      grid.push_back(-1.5 + 4.0 * c / cols);
      grid.push_back(1.4 - 2.4 * r / rows);
    }
  const auto mark = tape.mark();
  const View scores = network(bt::matrix(tape, rows * cols, 2, grid));
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < cols; ++c) {
      const auto cell = static_cast<std::size_t>(r * cols + c);
      const bool upper = scores(cell, 1).dataCopy() > scores(cell, 0).dataCopy();
      picture[static_cast<std::size_t>(r)][static_cast<std::size_t>(c)] = upper ? '#' : '.';
    }
  tape.rewind(mark);
  for (std::size_t i = 0; i < moons.labels.size(); ++i) {
    const int c = static_cast<int>((moons.points[2 * i] + 1.5) / 4.0 * cols);
    const int r = static_cast<int>((1.4 - moons.points[2 * i + 1]) / 2.4 * rows);
    if (r >= 0 && r < rows && c >= 0 && c < cols)
      picture[static_cast<std::size_t>(r)][static_cast<std::size_t>(c)] =
          moons.labels[i] == 1 ? '1' : '0';
  }
  for (const auto& row : picture) std::printf("%.*s\n", cols, row.data());
}

int main() {
  const Moons moons(100);
  bt::Tape<double> tape;
  bt::Random random(0);
  const std::array<std::size_t, 4> sizes{2, 16, 16, 2};
  const bt::nn::MLP<View> network(tape, sizes, random, bt::nn::Activation::tanh);
  const std::size_t parameters = tape.size();
  const auto mark = tape.mark();
  bt::optim::Adam<double> optimizer({.lr = 0.02});
  for (int step = 0; step <= 200; ++step) {
    tape.zeroGrad();
    const View logits = network(bt::matrix(tape, moons.labels.size(), 2, moons.points));
    const auto loss = reduceMean(crossEntropy(logits, moons.labels));
    backward(loss);
    int right = 0;
    for (std::size_t i = 0; i < moons.labels.size(); ++i)
      right += (logits(i, 1).dataCopy() > logits(i, 0).dataCopy()) == (moons.labels[i] == 1);
    if (step % 50 == 0)
      std::printf("step %3d: loss %.4f, %d of %zu right\n", step, loss.dataCopy(), right,
                  moons.labels.size());
    tape.rewind(mark);
    optimizer.step(tape.values().first(parameters), tape.grads().first(parameters));
  }
  draw(network, tape, moons);
}
