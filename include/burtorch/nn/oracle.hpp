// burtorch/nn/oracle.hpp — the loss and its gradient over a batch, in memory that does not grow with it
// SPDX-License-Identifier: MIT
//
// Samples are taken `microBatch` at a time: their graph is appended above the parameters, swept, and
// rewound. Memory depends on the micro-batch only. The first micro-batch assigns the
// gradients of weights, later ones add, so nothing is cleared but the embedding tables.
//
// With threads the batch is cut into as many parts, whatever the timing; each thread has a copy of
// the model, and the parts' gradients are added in their order. The result depends on the number
// of threads, and on nothing else.
#pragma once

#include <burtorch/backward.hpp>
#include <burtorch/nn/models.hpp>

#include <algorithm>
#include <barrier>
#include <concepts>
#include <cstddef>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

BURTORCH_BEGIN_NAMESPACE

namespace nn {

struct BatchOptions {
  std::size_t microBatch = 1;
  std::size_t threads = 1;
  bool accumulate = false; // add to the gradients that are there
};

template <class Model> class Oracle {
public:
  using T = typename Model::Scalar;

  explicit Oracle(const typename Model::Config& config) : model_(config) {}

  Model& model() { return model_; }
  std::span<T> values() { return model_.tape().values().first(model_.numParameters()); }
  std::span<T> gradients() { return model_.tape().grads().first(model_.numParameters()); }

  // How many samples x and y hold; an error if they do not fit the model or each other.
  template <std::integral Id>
  std::size_t samples(std::span<const Id> x, std::span<const Id> y) const {
    const std::size_t n = x.size() / model_.inputsPerSample();
    if (n == 0 || n * model_.inputsPerSample() != x.size() ||
        n * model_.targetsPerSample() != y.size())
      detail::fail(ErrorKind::badArgument,
                   std::to_string(x.size()) + " inputs and " + std::to_string(y.size()) +
                       " targets are not samples of " + std::to_string(model_.inputsPerSample()) +
                       " inputs and " + std::to_string(model_.targetsPerSample()) + " targets");
    return n;
  }

  // The mean loss; no gradients.
  template <std::integral Id>
  double loss(std::span<const Id> x, std::span<const Id> y, std::size_t microBatch = 1) {
    const std::size_t n = samples(x, y);
    double total = 0;
    eachPart(model_, x, y, 0, n, microBatch,
             [&](const auto& xs, const auto& ys) { total += sumOf(model_.losses(xs, ys)); });
    return total / static_cast<double>(y.size());
  }

  // The mean loss; its gradient by the parameters is in gradients().
  template <std::integral Id>
  double lossAndGradient(std::span<const Id> x, std::span<const Id> y,
                         const BatchOptions& options = {}) {
    const std::size_t n = samples(x, y);
    const std::size_t threads = std::clamp<std::size_t>(options.threads, 1, n);
    const double count = static_cast<double>(y.size());
    const double total = threads == 1 ? part(model_, x, y, 0, n, options, T(1 / count))
                                      : inThreads(x, y, n, threads, options, T(1 / count));
    return total / count;
  }

  // The gradient of each sample's own loss: `out` has a row of numParameters() for each.
  template <std::integral Id>
  void perSampleGradients(std::span<const Id> x, std::span<const Id> y, std::span<T> out) {
    const std::size_t n = samples(x, y), p = model_.numParameters();
    const T seed = T(1.0 / static_cast<double>(model_.targetsPerSample()));
    const std::vector<T> before(gradients().begin(), gradients().end());
    for (std::size_t i = 0; i < n; ++i) {
      part(model_, x, y, i, i + 1, {}, seed);
      std::ranges::copy(gradients(), out.begin() + static_cast<std::ptrdiff_t>(i * p));
    }
    std::ranges::copy(before, gradients().begin());
  }

private:
  // Calls work(x, y) for samples [first, last), some at a time, and rewinds the tape after each.
  template <class Id, class Work>
  static void eachPart(Model& model, std::span<const Id> x, std::span<const Id> y,
                       std::size_t first, std::size_t last, std::size_t microBatch,
                       const Work& work) {
    const std::size_t inputs = model.inputsPerSample(), targets = model.targetsPerSample();
    const std::size_t m = std::max<std::size_t>(microBatch, 1);
    const auto mark = model.tape().mark();
    for (std::size_t i = first; i < last; i += m) {
      const std::size_t k = std::min(m, last - i);
      const Rewind rewind{model.tape(), mark};
      work(x.subspan(i * inputs, k * inputs), y.subspan(i * targets, k * targets));
    }
  }
  template <class Mark> struct Rewind { // also when an error is thrown
    decltype(std::declval<Model&>().tape()) tape;
    const Mark& mark;
    ~Rewind() { tape.rewind(mark); }
  };
  template <class Tape, class Mark> Rewind(Tape&, const Mark&) -> Rewind<Mark>;

  template <class V> static double sumOf(const V& losses) {
    double sum = 0;
    for (const T& loss : losses.data()) sum += static_cast<double>(loss);
    return sum;
  }

  template <class Id>
  static double part(Model& model, std::span<const Id> x, std::span<const Id> y, std::size_t first,
                     std::size_t last, const BatchOptions& options, const T& seed) {
    auto gradients =
        options.accumulate ? ParameterGradients::accumulate : ParameterGradients::assign;
    if (!options.accumulate)
      model.tables([](const auto& table) { std::ranges::fill(table.grads(), T(0)); });
    double total = 0;
    eachPart(model, x, y, first, last, options.microBatch, [&](const auto& xs, const auto& ys) {
      const auto losses = model.losses(xs, ys, gradients);
      total += sumOf(losses);
      backward(reduceSum(losses), seed);
      gradients = ParameterGradients::accumulate;
    });
    return total;
  }

  template <class Id>
  double inThreads(std::span<const Id> x, std::span<const Id> y, std::size_t n, std::size_t threads,
                   const BatchOptions& options, const T& seed) {
    while (copies_.size() + 1 < threads)
      copies_.push_back(std::make_unique<Model>(model_.config()));
    std::vector<double> totals(threads);
    std::vector<std::exception_ptr> errors(threads);
    std::barrier allDone(static_cast<std::ptrdiff_t>(threads));
    const std::size_t p = model_.numParameters();
    const auto values = this->values();
    const auto run = [&](std::size_t t) {
      try {
        Model& model = t == 0 ? model_ : *copies_[t - 1];
        BatchOptions mine = options;
        if (t != 0) {
          mine.accumulate = false;
          std::ranges::copy(values, model.tape().values().begin());
        }
        totals[t] = part(model, x, y, n * t / threads, n * (t + 1) / threads, mine, seed);
      } catch (...) {
        errors[t] = std::current_exception();
      }
      allDone.arrive_and_wait();
      // Each thread adds up a slice of the gradients of all.
      T* const sum = model_.tape().values().empty() ? nullptr : gradientsOf(model_);
      for (std::size_t other = 1; other < threads; ++other) {
        const T* const theirs = gradientsOf(*copies_[other - 1]);
        for (std::size_t i = p * t / threads; i < p * (t + 1) / threads; ++i)
          sum[i] = sum[i] + theirs[i];
      }
    };
    {
      std::vector<std::jthread> others;
      for (std::size_t t = 1; t < threads; ++t) others.emplace_back(run, t);
      run(0);
    }
    for (const auto& error : errors)
      if (error) std::rethrow_exception(error);
    double total = 0;
    for (const double each : totals) total += each;
    return total;
  }

  static T* gradientsOf(Model& model) { return model.tape().grads().data(); }

  Model model_;
  std::vector<std::unique_ptr<Model>> copies_;
};

} // namespace nn

BURTORCH_END_NAMESPACE
