// benchmarks/kernels.cpp — the kernels at the sizes of the paper's models, beside plain loops
// SPDX-License-Identifier: MIT
//
// Usage: bench_kernels [part of a title …]. FP32, one process, one core; contenders take turns and
// the best of many rounds counts. Compile for the machine (NATIVE=1, or -march=x86-64-v3).
#include "timing.hpp"

#include <burtorch/kernel/affine.hpp>
#include <burtorch/kernel/attention.hpp>
#include <burtorch/kernel/layer_norm.hpp>
#include <burtorch/kernel/map.hpp>
#include <burtorch/kernel/multiply.hpp>
#include <burtorch/kernel/softmax.hpp>
#include <burtorch/op/table.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace {

namespace bk = burtorch::kernel;
using Numbers = std::vector<float>;

Numbers numbers(std::size_t n) {
  static std::mt19937 generator(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  Numbers x(n);
  for (float& each : x) each = uniform(generator);
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

// Nanoseconds of one call of each.
std::vector<double> race(double expected, const std::vector<std::function<void()>>& calls) {
  const int iterations = std::max(1, static_cast<int>(30000 / expected));
  std::vector<timing::Contender> contenders;
  for (const auto& call : calls)
    contenders.push_back({"", [call, iterations](int) {
                            for (int i = 0; i < iterations; ++i) call();
                          }});
  std::vector<double> best;
  for (const auto& result : timing::race(contenders, 1, 60))
    best.push_back(result.minimum / iterations);
  return best;
}

// A linear layer of m samples, k inputs and n outputs: its three products.
void products(std::size_t m, std::size_t n, std::size_t k) {
  Numbers x = numbers(m * k), w = numbers(n * k), y = numbers(m * n), dx = numbers(m * k),
          dw = numbers(n * k), dy = numbers(m * n);
  const auto X = matrix(x, m, k), W = matrix(w, n, k), Y = matrix(y, m, n), dX = matrix(dx, m, k),
             dW = matrix(dw, n, k), dY = matrix(dy, m, n);
  const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n * k);
  std::vector<std::function<void()>> calls{[=] { bk::multiplyNT(X, W, Y, bk::Store::assign); },
                                           [=] { bk::multiplyNN(dY, W, dX, bk::Store::add); },
                                           [=] { bk::multiplyTN(dY, X, dW, bk::Store::assign); },
                                           [=] { plain::nt(X, W, Y); },
                                           [=] { plain::nn(dY, W, dX); },
                                           [=] { plain::tn(dY, X, dW); }};
  if (m == 1)
    calls.push_back([=] { bk::affineBackward(X, W, dY, dX, dW, nullptr, bk::Store::assign); });
  const std::vector<double> ns = race(flops / 50, calls);
  std::printf("  %4zu %5zu %5zu |", m, k, n);
  for (std::size_t i = 0; i < 6; ++i) std::printf(" %7.1f%s", flops / ns[i], i == 2 ? " |" : "");
  if (m == 1) std::printf(" | fused backward %7.1f, %8.2f us", 2 * flops / ns[6], ns[6] / 1000);
  std::printf("\n");
}

void heading(const char* title) {
  std::printf("\n%s, GFLOP/s\n  %4s %5s %5s | %7s %7s %7s | plain loops\n", title, "rows", "in",
              "out", "NT", "NN", "TN");
}

void charMLP(std::size_t batch) {
  heading(("CharMLP, batch " + std::to_string(batch)).c_str());
  for (const std::size_t e : {4u, 16u, 32u, 64u, 128u, 512u, 1024u}) {
    products(batch, e, 1024);
    products(batch, 27, e);
  }
}

void gpt(std::size_t samples) {
  heading(("GPT, samples " + std::to_string(samples)).c_str());
  for (const auto& [k, n] : std::vector<std::pair<std::size_t, std::size_t>>{
           {24, 72}, {24, 24}, {24, 96}, {96, 24}, {24, 65}})
    products(8 * samples, n, k);
}

// The others, as one sample of the GPT or one of the CharMLP calls them; only nanoseconds.
void others() {
  constexpr std::size_t length = 8, heads = 6, size = 4, width = heads * size, chars = 65;
  Numbers a = numbers(4096), b = numbers(4096), c = numbers(4096), d = numbers(4096),
          weights = numbers(heads * length * length), mean = numbers(length),
          inverseStd = numbers(length), losses = numbers(length), dlosses = numbers(length);
  const auto qkv = matrix(a, length, 3 * width), dqkv = matrix(b, length, 3 * width),
             attended = matrix(c, length, width), dattended = matrix(d, length, width);
  const auto x = matrix(a, length, width), y = matrix(b, length, width),
             dy = matrix(c, length, width), dx = matrix(d, length, width);
  const auto logits = matrix(a, length, chars), probabilities = matrix(b, length, chars),
             dlogits = matrix(c, length, chars);
  static constexpr int targets[length] = {1, 2, 3, 4, 5, 6, 7, 8};
  float *gamma = a.data() + 2048, *beta = b.data() + 2048, *dgamma = c.data() + 2048,
        *dbeta = d.data() + 2048, *means = mean.data(), *inverseStds = inverseStd.data(),
        *w = weights.data(), *loss = losses.data(), *dloss = dlosses.data();
  const float *in = a.data(), *values = b.data(), *gains = c.data();
  float *result = b.data(), *gradient = d.data();
  namespace op = burtorch::op;
  constexpr std::size_t n = 768;
  const std::vector<std::pair<const char*, std::function<void()>>> calls{
      {"attention, T = 8, 6 heads of 4: forward",
       [=] { bk::attentionForward(qkv, heads, 0.5f, attended, w); }},
      {"  backward", [=] { bk::attentionBackward(qkv, heads, 0.5f, w, dattended, dqkv); }},
      {"layer norm, 8 rows of 24: forward",
       [=] { bk::layerNormForward(x, gamma, beta, 1e-5f, y, means, inverseStds); }},
      {"  backward",
       [=] {
         bk::layerNormBackward(x, gamma, means, inverseStds, dy, dx, dgamma, dbeta,
                               bk::Store::assign);
       }},
      {"cross-entropy, 8 rows of 65: forward",
       [=] { bk::crossEntropyForward(logits, targets, loss, probabilities); }},
      {"  backward", [=] { bk::crossEntropyBackward(probabilities, targets, dloss, dlogits); }},
      {"softmax, 8 rows of 65: forward", [=] { bk::softmaxForward(logits, probabilities); }},
      {"relu of 768: forward", [=] { bk::mapForward<op::Relu>(in, result, n); }},
      {"  backward", [=] { bk::mapBackward<op::Relu>(in, values, gains, gradient, n); }},
      {"tanh of 768: forward", [=] { bk::mapForward<op::Tanh>(in, result, n); }},
      {"  backward", [=] { bk::mapBackward<op::Tanh>(in, values, gains, gradient, n); }}};
  std::vector<std::function<void()>> functions;
  for (const auto& call : calls) functions.push_back(call.second);
  const std::vector<double> ns = race(300, functions);
  std::printf("\nOther kernels\n");
  for (std::size_t i = 0; i < calls.size(); ++i)
    std::printf("  %-44s %8.0f ns\n", calls[i].first, ns[i]);
}

} // namespace

int main(int argc, char** argv) {
  timing::pinToOneCore();
  const auto wanted = [&](const std::string& title) {
    return argc < 2 || std::any_of(argv + 1, argv + argc, [&](const char* part) {
             return title.find(part) != std::string::npos;
           });
  };
  for (const std::size_t batch : {1u, 8u, 16u, 27u, 32u, 64u})
    if (wanted("mlp" + std::to_string(batch))) charMLP(batch);
  for (const std::size_t samples : {1u, 2u, 4u, 8u, 16u})
    if (wanted("gpt" + std::to_string(samples))) gpt(samples);
  if (wanted("others")) others();
}
