// examples/logistic_regression.cpp — which side of a line a point is on, learnt from examples
// SPDX-License-Identifier: MIT
//
// Logistic regression with plain Values and an optimizer. The Python twin is logistic_regression.py.
#include <burtorch/burtorch.hpp>
#include <burtorch/optim/sgd.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

namespace bt = burtorch;

struct Point {
  double x, y, side;
};

// Points of a grid, and whether they lie above the line y = 2x - 1; those very near it are left out.
std::vector<Point> points() {
  std::vector<Point> all;
  for (int i = -8; i <= 8; ++i)
    for (int j = -8; j <= 8; ++j) {
      const double x = i / 4.0, y = j / 4.0;
      if (std::abs(y - 2 * x + 1) > 0.2) all.push_back({x, y, y > 2 * x - 1 ? 1.0 : -1.0});
    }
  return all;
}

int main() {
  const auto data = points();
  bt::Tape<double> tape;
  const bt::Value<double> wx(tape, 0.0), wy(tape, 0.0), bias(tape, 0.0);
  const auto parameters = tape.mark(); // everything above is forgotten after each step
  bt::optim::SGD<double> optimizer({.lr = 0.5, .momentum = 0.9});
  for (int step = 0; step <= 100; ++step) {
    tape.zeroGrad();
    std::vector<bt::Value<double>> losses;
    int right = 0;
    for (const auto& [x, y, side] : data) {
      const auto score = wx * x + wy * y + bias;
      // The chance of being above is sigmoid(score); softplus(-s) is -log(sigmoid(s)).
      losses.push_back(softplus(score * -side));
      right += score.dataCopy() * side > 0;
    }
    const auto loss = reduceMean(losses);
    backward(loss);
    if (step % 25 == 0)
      std::printf("step %3d: loss %.4f, %d of %zu right\n", step, loss.dataCopy(), right,
                  data.size());
    tape.rewind(parameters);
    optimizer.step(tape.values(), tape.grads());
  }
  std::printf("the line: y = %.1f x %+.1f\n", -wx.dataCopy() / wy.dataCopy(),
              -bias.dataCopy() / wy.dataCopy());
}
