// benchmarks/cpp/libtorch.cpp — LibTorch, the C++ side of PyTorch
// SPDX-License-Identifier: MIT
#include <torch/torch.h>

namespace at {
inline Tensor sqr(const Tensor& x) { return pow(x, 2); }
inline Tensor pow3(const Tensor& x) { return pow(x, 3); }
} // namespace at

#include "loop.hpp"

namespace {

template <class Graph> auto eager(Graph graph) {
  return [=](double x, double y) {
    const auto leaf = torch::TensorOptions().dtype(torch::kFloat64).requires_grad(true);
    const torch::Tensor a = torch::full({}, x, leaf), b = torch::full({}, y, leaf);
    const torch::Tensor g = graph(a, b);
    g.backward();
    return loop::Gradient{g.item<double>(), a.grad().item<double>(), b.grad().item<double>()};
  };
}

} // namespace

int main(int argc, char** argv) {
  torch::set_num_threads(1);
  return loop::main(
      argc, argv,
      {loop::tiny("eager", eager(loop::tinyGraph)), loop::small("eager", eager(loop::smallGraph))});
}
