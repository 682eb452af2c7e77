// benchmarks/cpp/burtorch_kernels.cpp — the kernels at the sizes of the paper's models, beside plain loops
// SPDX-License-Identifier: MIT
#include "loop.hpp"

#include <burtorch/kernel/affine.hpp>
#include <burtorch/kernel/attention.hpp>
#include <burtorch/kernel/layer_norm.hpp>
#include <burtorch/kernel/map.hpp>
#include <burtorch/kernel/multiply.hpp>
#include <burtorch/kernel/softmax.hpp>
#include <burtorch/op/table.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace bk = burtorch::kernel;
using loop::Outputs, loop::Parameters, loop::Run;
using Numbers = std::vector<float>;

Numbers numbers(std::size_t n) {
  static std::uint32_t seed = 0;
  Numbers x(n);
  ++seed;
  for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<float>(2 * loop::uniform(i, seed) - 1);
  return x;
}

bk::Matrix<float> matrix(Numbers& x, std::size_t rows, std::size_t cols) {
  return {x.data(), rows, cols, cols};
}

// Plain loops, in the order of loops that a compiler vectorizes best.
namespace plain {
using In = bk::Matrix<const float>;
using Out = bk::Matrix<float>;

// Not strict: the compiler may split the sum, else it would be one number after the other.
BURTORCH_NOINLINE void nt(In x, In w, Out y) {
  for (std::size_t i = 0; i < x.rows; ++i)
    for (std::size_t j = 0; j < w.rows; ++j) {
      float sums[16] = {};
      std::size_t p = 0;
      for (; p + 16 <= x.cols; p += 16)
        for (std::size_t l = 0; l < 16; ++l) sums[l] += x.row(i)[p + l] * w.row(j)[p + l];
      for (; p < x.cols; ++p) sums[0] += x.row(i)[p] * w.row(j)[p];
      float sum = 0;
      for (const float each : sums) sum += each;
      y.row(i)[j] = sum;
    }
}
BURTORCH_NOINLINE void nn(In x, In w, Out y) { // adds
  for (std::size_t i = 0; i < x.rows; ++i)
    for (std::size_t p = 0; p < w.rows; ++p) {
      const float a = x.row(i)[p];
      float* BURTORCH_RESTRICT to = y.row(i);
      for (std::size_t j = 0; j < w.cols; ++j) to[j] += a * w.row(p)[j];
    }
}
BURTORCH_NOINLINE void tn(In x, In w, Out y) {
  for (std::size_t i = 0; i < x.cols; ++i) {
    float* BURTORCH_RESTRICT to = y.row(i);
    std::fill(to, to + y.cols, 0.0f);
    for (std::size_t p = 0; p < w.rows; ++p) {
      const float a = x.row(p)[i];
      for (std::size_t j = 0; j < w.cols; ++j) to[j] += a * w.row(p)[j];
    }
  }
}
} // namespace plain

// The matrices of a linear layer of m samples, k inputs and n outputs.
struct Layer {
  explicit Layer(const Parameters& parameters)
      : m(parameters.count("m", 1)), n(parameters.count("n", 1)), k(parameters.count("k", 1)) {}
  std::size_t m, n, k;
  Numbers x = numbers(m * k), w = numbers(n * k), y = Numbers(m * n), dx = Numbers(m * k),
          dw = Numbers(n * k), dy = numbers(m * n);
  bk::Matrix<float> X = matrix(x, m, k), W = matrix(w, n, k), Y = matrix(y, m, n),
                    dX = matrix(dx, m, k), dW = matrix(dw, n, k), dY = matrix(dy, m, n);
};

double sum(const Numbers& x) {
  double total = 0;
  for (const float each : x) total += std::abs(static_cast<double>(each));
  return total;
}

// Calls one function on such matrices; what it wrote is told as a sum of magnitudes.
template <class Call>
loop::Way way(const char* work, const char* name, Call call, Numbers Layer::*out) {
  return {work, name, [=](const Parameters& parameters) {
            const auto layer = std::make_shared<Layer>(parameters);
            return Run{[=](std::size_t count) {
                         for (std::size_t i = 0; i < count; ++i) call(*layer);
                       },
                       [=] {
                         Numbers& written = (*layer).*out;
                         std::fill(written.begin(), written.end(), 0.0f); // some calls add
                         call(*layer);
                         return Outputs{sum(written)};
                       }};
          }};
}

// The others, as one sample of the GPT calls them.
struct Sample {
  static constexpr std::size_t length = 8, heads = 6, size = 4, width = heads * size, chars = 65;
  static constexpr int targets[length] = {1, 2, 3, 4, 5, 6, 7, 8};
  Numbers a = numbers(4096), b = numbers(4096), c = numbers(4096), d = numbers(4096),
          weights = numbers(heads * length * length), mean = numbers(length),
          inverseStd = numbers(length), losses = numbers(length), dlosses = numbers(length);
  bk::Matrix<float> qkv = matrix(a, length, 3 * width), dqkv = matrix(b, length, 3 * width),
                    attended = matrix(c, length, width), dattended = matrix(d, length, width),
                    x = matrix(a, length, width), y = matrix(b, length, width),
                    dy = matrix(c, length, width), dx = matrix(d, length, width),
                    logits = matrix(a, length, chars), probabilities = matrix(b, length, chars),
                    dlogits = matrix(c, length, chars);
  float *gamma = a.data() + 2048, *beta = b.data() + 2048, *dgamma = c.data() + 2048,
        *dbeta = d.data() + 2048;
};

template <class Call> loop::Way way(const char* work, Call call) {
  return {work, "kernel", [=](const Parameters&) {
            const auto sample = std::make_shared<Sample>();
            return Run{[=](std::size_t count) {
                         for (std::size_t i = 0; i < count; ++i) call(*sample);
                       },
                       [] { return Outputs{0}; }}; // gradients grow with every call
          }};
}

} // namespace

int main(int argc, char** argv) {
  namespace op = burtorch::op;
  constexpr std::size_t n = 768;
  constexpr auto assign = bk::Store::assign;
  return loop::main(
      argc, argv,
      {way(
           "NT", "kernel", [](Layer& l) { bk::multiplyNT(l.X, l.W, l.Y, assign); }, &Layer::y),
       way(
           "NN", "kernel", [](Layer& l) { bk::multiplyNN(l.dY, l.W, l.dX, bk::Store::add); },
           &Layer::dx),
       way(
           "TN", "kernel", [](Layer& l) { bk::multiplyTN(l.dY, l.X, l.dW, assign); }, &Layer::dw),
       way(
           "NT", "plain", [](Layer& l) { plain::nt(l.X, l.W, l.Y); }, &Layer::y),
       way(
           "NN", "plain", [](Layer& l) { plain::nn(l.dY, l.W, l.dX); }, &Layer::dx),
       way(
           "TN", "plain", [](Layer& l) { plain::tn(l.dY, l.X, l.dW); }, &Layer::dw),
       way(
           "fused backward", "kernel",
           [](Layer& l) { bk::affineBackward(l.X, l.W, l.dY, l.dX, l.dW, nullptr, assign); },
           &Layer::dw),
       way("attention",
           [](Sample& s) {
             bk::attentionForward(s.qkv, s.heads, 0.5f, s.attended, s.weights.data());
           }),
       way("attention backward",
           [](Sample& s) {
             bk::attentionBackward(s.qkv, s.heads, 0.5f, s.weights.data(), s.dattended, s.dqkv);
           }),
       way("layer norm",
           [](Sample& s) {
             bk::layerNormForward(s.x, s.gamma, s.beta, 1e-5f, s.y, s.mean.data(),
                                  s.inverseStd.data());
           }),
       way("layer norm backward",
           [](Sample& s) {
             bk::layerNormBackward(s.x, s.gamma, s.mean.data(), s.inverseStd.data(), s.dy, s.dx,
                                   s.dgamma, s.dbeta, assign);
           }),
       way("cross-entropy",
           [](Sample& s) {
             bk::crossEntropyForward(s.logits, s.targets, s.losses.data(), s.probabilities);
           }),
       way("cross-entropy backward",
           [](Sample& s) {
             bk::crossEntropyBackward(s.probabilities, s.targets, s.dlosses.data(), s.dlogits);
           }),
       way("softmax", [](Sample& s) { bk::softmaxForward(s.logits, s.probabilities); }),
       way("relu", [](Sample& s) { bk::mapForward<op::Relu>(s.a.data(), s.b.data(), n); }),
       way("relu backward",
           [](Sample& s) {
             bk::mapBackward<op::Relu>(s.a.data(), s.b.data(), s.c.data(), s.d.data(), n);
           }),
       way("tanh of 768", [](Sample& s) { bk::mapForward<op::Tanh>(s.a.data(), s.b.data(), n); }),
       way("tanh of 768 backward", [](Sample& s) {
         bk::mapBackward<op::Tanh>(s.a.data(), s.b.data(), s.c.data(), s.d.data(), n);
       })});
}
