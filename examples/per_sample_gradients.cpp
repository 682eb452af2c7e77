// examples/per_sample_gradients.cpp — the gradient of each sample, and two uses of them
// SPDX-License-Identifier: MIT
//
// Frameworks give the mean gradient of a batch. Here each sample's own costs the same: samples are
// computed one after the other anyway. The Python twin is per_sample_gradients.py.
#include <burtorch/nn/oracle.hpp>
#include <burtorch/optim/clip.hpp>
#include <burtorch/optim/sgd.hpp>

#include <cmath>
#include <cstdio>
#include <span>
#include <vector>

namespace bt = burtorch;

// A row for each sample.
class Rows {
public:
  Rows(std::size_t rows, std::size_t cols) : cols_(cols), all_(rows * cols) {}
  std::size_t rows() const { return all_.size() / cols_; }
  std::size_t cols() const { return cols_; }
  std::span<double> all() { return all_; }
  std::span<double> operator[](std::size_t i) { return all().subspan(i * cols_, cols_); }
  double length(std::size_t i) { return bt::optim::norm(std::span<const double>((*this)[i])); }
  // The row whose length is largest.
  std::size_t longest() {
    std::size_t most = 0;
    for (std::size_t i = 1; i < rows(); ++i)
      if (length(i) > length(most)) most = i;
    return most;
  }

private:
  std::size_t cols_;
  std::vector<double> all_;
};

bool meanIs(Rows& each, std::span<const double> gradient) {
  for (std::size_t j = 0; j < each.cols(); ++j) {
    double mean = 0;
    for (std::size_t i = 0; i < each.rows(); ++i)
      mean += each[i][j] / static_cast<double>(each.rows());
    if (std::abs(mean - gradient[j]) > 1e-8 + 1e-5 * std::abs(gradient[j])) return false;
  }
  return true;
}

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

  Rows each(samples, oracle.model().numParameters());
  oracle.perSampleGradients(xs, ys, each.all());
  oracle.lossAndGradient(xs, ys);
  std::printf("shape: (%zu, %zu), mean is the gradient: %s\n", each.rows(), each.cols(),
              meanIs(each, oracle.gradients()) ? "True" : "False");

  // The sample that pulls against all others is the one with the wrong label.
  bt::optim::GD<double> optimizer(0.5);
  for (int step = 0; step < 100; ++step) {
    oracle.lossAndGradient(xs, ys, {.microBatch = samples});
    optimizer.step(oracle.values(), oracle.gradients());
  }
  oracle.perSampleGradients(xs, ys, each.all());
  const std::size_t most = each.longest();
  std::printf("the largest gradient, of length %.3f, is of sample %zu\n", each.length(most), most);

  // Clipping each before averaging bounds what one sample can do (as differential privacy needs).
  for (std::size_t i = 0; i < each.rows(); ++i) bt::optim::clipByNorm(each[i], 0.1);
  std::printf("longest after clipping: %.3f\n", each.length(each.longest()));
}
