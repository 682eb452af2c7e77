// cpp_tests/nn_oracle_test.cpp — the batch oracle: parts, threads, what it refuses, memory that stays in place
// SPDX-License-Identifier: MIT
#include "support.hpp"

#include <burtorch/nn/oracle.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

namespace bt = burtorch;
namespace nn = burtorch::nn;
using Ids = std::vector<int>;

template <class T> struct Case {
  using GPT = nn::GPT<T>;
  using MLP = nn::CharMLP<T>;
  nn::Oracle<GPT> gpt;
  nn::Oracle<MLP> mlp;
  Case()
      : gpt(typename GPT::Config{.vocab = 7, .context = 4, .dModel = 6, .layers = 2, .heads = 2}),
        mlp(typename MLP::Config{.hidden = 5, .vocab = 7, .embed = 3, .context = 4}) {}
};

struct Batch {
  Ids x, y;
  template <class Model> Batch(Model& model, std::size_t samples) {
    for (std::size_t i = 0; i < samples * model.inputsPerSample(); ++i)
      x.push_back(static_cast<int>((5 * i + i / 3) % 7));
    for (std::size_t i = 0; i < samples * model.targetsPerSample(); ++i)
      y.push_back(static_cast<int>((3 * i + 1) % 7));
  }
  std::span<const int> xs() const { return x; }
  std::span<const int> ys() const { return y; }
};

template <class T, class Oracle> std::vector<T> copyOf(Oracle& oracle) {
  return {oracle.gradients().begin(), oracle.gradients().end()};
}

template <class T> double distance(const std::vector<T>& a, const std::vector<T>& b) {
  double worst = 0, most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
    most = std::max(most, std::abs(static_cast<double>(a[i])));
  }
  return worst / most;
}

template <class T, class Oracle> void checkParts(Oracle& oracle) {
  const double close = sizeof(T) == 4 ? 1e-5 : 1e-13;
  const Batch batch(oracle.model(), 11);
  const double loss = oracle.lossAndGradient(batch.xs(), batch.ys());
  const auto gradient = copyOf<T>(oracle);
  CHECK(loss == doctest::Approx(oracle.loss(batch.xs(), batch.ys())).epsilon(close));
  for (const std::size_t threads : {1u, 2u, 3u})
    for (const std::size_t microBatch : {1u, 2u, 11u, 50u}) {
      const nn::BatchOptions options{microBatch, threads, false, {}};
      CHECK(oracle.lossAndGradient(batch.xs(), batch.ys(), options) ==
            doctest::Approx(loss).epsilon(close));
      const auto once = copyOf<T>(oracle);
      CHECK(distance(gradient, once) < close);
      oracle.lossAndGradient(batch.xs(), batch.ys(), options);
      CHECK(copyOf<T>(oracle) == once);
      oracle.lossAndGradient(batch.xs(), batch.ys(), {microBatch, threads, true, {}});
      auto half = copyOf<T>(oracle);
      for (T& g : half) g /= 2;
      CHECK(distance(gradient, half) < close);
    }
  CHECK(oracle.model().tape().size() == oracle.model().numParameters());
}

TEST_CASE_TEMPLATE("parts and threads add up to the same gradient", T, float, double) {
  Case<T> c;
  checkParts<T>(c.gpt);
  checkParts<T>(c.mlp);
}

TEST_CASE_TEMPLATE("the micro-batch is chosen by sizes", T, float, double) {
  Case<T> c;
  const auto check = [](auto& oracle, std::size_t samples) {
    const std::size_t chosen = oracle.microBatchFor(samples);
    CHECK(chosen >= 1);
    CHECK(chosen <= std::min<std::size_t>(samples, 256));
    CHECK(oracle.microBatchFor(samples) == chosen);
    const Batch batch(oracle.model(), samples);
    oracle.lossAndGradient(batch.xs(), batch.ys());
    const auto gradient = copyOf<T>(oracle);
    oracle.lossAndGradient(batch.xs(), batch.ys(), {.microBatch = chosen});
    CHECK(copyOf<T>(oracle) == gradient); // bit for bit
  };
  for (const std::size_t samples : {1u, 2u, 3u, 9u, 300u}) {
    check(c.gpt, samples);
    check(c.mlp, samples);
  }
  CHECK(c.mlp.microBatchFor(1000) == 256); // small samples
  nn::Oracle<nn::GPT<T>> large({.vocab = 65, .context = 64, .dModel = 64, .layers = 4, .heads = 4});
  CHECK(large.microBatchFor(64) < 4); // a sample takes more than a megabyte
  large.reserve(2);
  CHECK(large.microBatchFor(64) <= 2);
}

TEST_CASE("threads may be the first to use a model, whose tape then has to grow") {
  Case<float> alone, together;
  const Batch batch(alone.gpt.model(), 64);
  const double loss = alone.gpt.lossAndGradient(batch.xs(), batch.ys());
  CHECK(together.gpt.lossAndGradient(batch.xs(), batch.ys(), {16, 4, false, {}}) ==
        doctest::Approx(loss).epsilon(1e-5));
  CHECK(distance(copyOf<float>(alone.gpt), copyOf<float>(together.gpt)) < 1e-5);
}

TEST_CASE("gradients of each sample average to that of the batch") {
  Case<double> c;
  const Batch batch(c.gpt.model(), 3);
  c.gpt.lossAndGradient(batch.xs(), batch.ys());
  const auto mean = copyOf<double>(c.gpt);
  std::vector<double> each(3 * mean.size()), sum(mean.size());
  c.gpt.perSampleGradients(batch.xs(), batch.ys(), each);
  CHECK(copyOf<double>(c.gpt) == mean); // what was there is there again
  for (std::size_t i = 0; i < each.size(); ++i) sum[i % mean.size()] += each[i] / 3;
  CHECK(distance(mean, sum) < 1e-13);
}

TEST_CASE("everything is checked before anything is computed") {
  Case<double> c;
  Batch batch(c.gpt.model(), 3);
  c.gpt.lossAndGradient(batch.xs(), batch.ys());
  const auto before = copyOf<double>(c.gpt);
  const auto refused = [&] {
    return std::string(errorOf([&] {
                         c.gpt.lossAndGradient(batch.xs(), batch.ys(), {1, 2, true, {}});
                       }).what());
  };
  batch.y[9] = -1;
  CHECK(refused() == "target -1 (number 1 of sample 2) is not between 0 and 6");
  batch.x[4] = 7;
  CHECK(refused() == "input 7 (number 0 of sample 1) is not between 0 and 6");
  batch.x.pop_back();
  CHECK(refused() == "11 inputs and 12 targets are not samples of 4 inputs and 4 targets");
  CHECK(copyOf<double>(c.gpt) == before);
}

TEST_CASE("results go into exactly as much room as they need") {
  Case<double> c;
  const Batch batch(c.gpt.model(), 3);
  const std::size_t p = c.gpt.model().numParameters();
  std::vector<double> room(3 * p - 1), logits(3 * 4 * 7);
  CHECK(std::string(errorOf([&] { c.gpt.perSampleGradients(batch.x, batch.y, room); }).what()) ==
        "room for " + std::to_string(3 * p - 1) + " numbers, but " + std::to_string(3 * p) +
            " gradients");
  c.gpt.logits(batch.x, logits);
  logits.push_back(0);
  CHECK(std::string(errorOf([&] { c.gpt.logits(batch.x, logits); }).what()) ==
        "room for 85 numbers, but 84 logits");
  CHECK(std::string(errorOf([&] { c.gpt.logits(Ids(9), logits); }).what()) ==
        "9 inputs are not samples of 4");
  const Batch words(c.mlp.model(), 3);
  logits.resize(3 * 7);
  c.mlp.logits(words.x, logits);
}

TEST_CASE("inputs and targets may be any integers in any container") {
  Case<double> c;
  const Batch batch(c.mlp.model(), 2);
  const double loss = c.mlp.loss(batch.xs(), batch.ys());
  std::array<std::int64_t, 8> x{};
  std::ranges::copy(batch.x, x.begin());
  const std::vector<unsigned char> y(batch.y.begin(), batch.y.end());
  CHECK(c.mlp.loss(x, y) == loss);
  CHECK(c.mlp.lossAndGradient(x, y) == loss);
}

TEST_CASE("a model of no inputs, outputs or layers is refused") {
  using MLP = nn::CharMLP<double>;
  using GPT = nn::GPT<double>;
  const auto refused = [](auto make) { return std::string(errorOf(make).what()); };
  CHECK(refused([] { MLP({.hidden = 0}); }) == "hidden must be at least 1: 0");
  CHECK(refused([] { MLP({.vocab = 0}); }) == "vocab must be at least 1: 0");
  CHECK(refused([] { MLP({.embed = 0}); }) == "embed must be at least 1: 0");
  CHECK(refused([] { nn::Oracle<MLP>({.context = 0}); }) == "context must be at least 1: 0");
  CHECK(refused([] { GPT({.vocab = 0}); }) == "vocab must be at least 1: 0");
  CHECK(refused([] { nn::Oracle<GPT>({.context = 0}); }) == "context must be at least 1: 0");
  CHECK(refused([] { GPT({.dModel = 0}); }) == "dModel must be at least 1: 0");
  CHECK(refused([] { GPT({.layers = 0}); }) == "layers must be at least 1: 0");
  CHECK(refused([] { GPT({.heads = 0}); }) == "heads must be at least 1: 0");
}

TEST_CASE("a GPT may see one character at a time") {
  nn::Oracle<nn::GPT<double>> oracle(
      {.vocab = 7, .context = 1, .dModel = 6, .layers = 1, .heads = 2});
  const Batch batch(oracle.model(), 5);
  CHECK(oracle.lossAndGradient(batch.x, batch.y, {2, 2, false, {}}) ==
        doctest::Approx(oracle.loss(batch.x, batch.y)).epsilon(1e-13));
}

TEST_CASE("reserved memory stays where it is, however many samples come") {
  Case<float> c;
  c.gpt.reserve(8);
  c.mlp.reserve(8);
  const auto check = [](auto& oracle) {
    const auto* const values = oracle.values().data();
    const auto* const gradients = oracle.gradients().data();
    const auto capacity = oracle.model().tape().capacity();
    for (const std::size_t n : {1u, 2u, 3u, 8u, 9u, 100u}) {
      const Batch batch(oracle.model(), n);
      oracle.lossAndGradient(batch.xs(), batch.ys(), {n, 1, false, {}});
      oracle.loss(batch.xs(), batch.ys(), {n, 1, false, {}});
    }
    CHECK(oracle.values().data() == values);
    CHECK(oracle.gradients().data() == gradients);
    CHECK(oracle.model().tape().capacity() == capacity);
  };
  check(c.gpt);
  check(c.mlp);
}

TEST_CASE("a call between parts may stop it") {
  Case<double> c;
  const Batch batch(c.gpt.model(), 6);
  for (const std::size_t threads : {1u, 2u}) {
    int calls = 0;
    const nn::BatchOptions options{1, threads, false, [&] {
                                     if (++calls == 2) throw std::runtime_error("stop");
                                   }};
    CHECK_THROWS_WITH_AS(c.gpt.lossAndGradient(batch.xs(), batch.ys(), options), "stop",
                         std::runtime_error);
    CHECK(calls == 2);
    CHECK(c.gpt.model().tape().size() == c.gpt.model().numParameters());
  }
  CHECK(c.gpt.lossAndGradient(batch.xs(), batch.ys()) > 0);
}

} // namespace
