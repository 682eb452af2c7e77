// burtorch/nn/oracle.hpp — the loss and its gradient over a batch, in memory that does not grow with it
// SPDX-License-Identifier: MIT
//
// Samples are taken `microBatch` at a time: their graph is appended above the parameters, swept, and
// rewound. Memory depends on the micro-batch only. By default it is as large as pays: weights are then
// read once for many samples, and what lies between stays in a processor's second cache; see
// microBatchFor(). The first micro-batch assigns the
// gradients of weights, later ones add, so nothing is cleared but the embedding tables.
//
// With threads the batch is cut into as many parts, whatever the timing; each thread has a copy of
// the model, and the parts' gradients are added in their order. The result depends on the number
// of threads, and on nothing else.
//
// Nothing is computed before all of x and y has been checked.
#pragma once

#include <burtorch/backward.hpp>
#include <burtorch/nn/models.hpp>
#include <burtorch/base/team.hpp>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstddef>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <utility>
#include <vector>

BURTORCH_BEGIN_NAMESPACE

namespace nn {

inline constexpr std::size_t automatic = 0; // micro-batch: chosen by the sizes of model and batch

struct BatchOptions {
  std::size_t microBatch = automatic;
  std::size_t threads = 1;
  bool accumulate = false;            // add to the gradients that are there
  std::function<void()> between = {}; // called after each micro-batch of this thread; may throw
};

template <class Model> class Oracle {
public:
  using T = typename Model::Scalar;

  explicit Oracle(const typename Model::Config& config) : model_(config) {}

  Model& model() { return model_; }
  std::span<T> values() { return model_.tape().values().first(model_.numParameters()); }
  std::span<T> gradients() { return model_.tape().grads().first(model_.numParameters()); }

  // How many samples x and y hold; an error if they do not fit the model or each other.
  template <ContiguousIntegers X, ContiguousIntegers Y>
  std::size_t samples(const X& x, const Y& y) const {
    const std::size_t inputs = std::ranges::size(x), targets = std::ranges::size(y);
    const std::size_t n = inputs / model_.inputsPerSample();
    if (n == 0 || n * model_.inputsPerSample() != inputs ||
        n * model_.targetsPerSample() != targets)
      detail::fail(ErrorKind::badArgument,
                   std::to_string(inputs) + " inputs and " + std::to_string(targets) +
                       " targets are not samples of " + std::to_string(model_.inputsPerSample()) +
                       " inputs and " + std::to_string(model_.targetsPerSample()) + " targets");
    demandIndices(detail::spanOf(x), model_.inputsPerSample(), "input");
    demandIndices(detail::spanOf(y), model_.targetsPerSample(), "target");
    return n;
  }

  // From now on at most so many samples are taken at a time, in memory that is there: what values() and
  // gradients() point to stays where it is.
  void reserve(std::size_t microBatch) {
    auto& tape = model_.tape();
    const auto before = tape.used();
    const Extent two = measure();
    const std::size_t fitting = 2 * largestReserve / (two.nodes - before.nodes);
    largest_ = std::clamp<std::size_t>(fitting, 2, std::max<std::size_t>(microBatch, 2));
    const auto room = [&](std::size_t Extent::*count) {
      return before.*count + (two.*count - before.*count) * (largest_ + 1) / 2;
    };
    tape.makeRoomFor({room(&Extent::nodes), room(&Extent::records), room(&Extent::constants),
                      room(&Extent::operands)});
  }

  // The micro-batch that `automatic` stands for in a batch of n samples: as many as fit into the memory
  // of the parameters and their gradients, or into two megabytes if these are smaller; 256 at most.
  // It depends on sizes only, so results can be repeated.
  std::size_t microBatchFor(std::size_t n) {
    if (perSample_ == 0) measure();
    const std::size_t room = std::max(mostBytes, 2 * sizeof(T) * model_.numParameters());
    return std::min(n, std::clamp<std::size_t>(room / perSample_, 1, std::min(largest_, most)));
  }

  // The mean loss; no gradients.
  template <ContiguousIntegers X, ContiguousIntegers Y>
  double loss(const X& x, const Y& y, const BatchOptions& options = {}) {
    const std::size_t n = samples(x, y);
    double total = 0;
    eachPart(model_, 0, n, chosen(options, n), [&](std::size_t first, std::size_t count) {
      total += sumOf(model_.losses(inputs(x, first, count), targets(y, first, count)));
      if (options.between) options.between();
    });
    return total / static_cast<double>(n * model_.targetsPerSample());
  }

  // A row of `vocab` logits for each target of each sample.
  template <ContiguousIntegers X>
  void logits(const X& x, std::span<T> out, const BatchOptions& options = {}) {
    const std::size_t n = std::ranges::size(x) / model_.inputsPerSample();
    if (n * model_.inputsPerSample() != std::ranges::size(x))
      detail::fail(ErrorKind::badArgument, std::to_string(std::ranges::size(x)) +
                                               " inputs are not samples of " +
                                               std::to_string(model_.inputsPerSample()));
    demandRoom(out, n * model_.targetsPerSample() * model_.config().vocab, "logits");
    demandIndices(detail::spanOf(x), model_.inputsPerSample(), "input");
    auto next = out.begin();
    eachPart(model_, 0, n, chosen(options, n), [&](std::size_t first, std::size_t count) {
      next = std::ranges::copy(model_.logits(inputs(x, first, count)).data(), next).out;
      if (options.between) options.between();
    });
  }

  // The mean loss; its gradient by the parameters is in gradients().
  template <ContiguousIntegers X, ContiguousIntegers Y>
  double lossAndGradient(const X& x, const Y& y, const BatchOptions& options = {}) {
    const std::size_t n = samples(x, y);
    const std::size_t threads = std::clamp<std::size_t>(options.threads, 1, n);
    const double count = static_cast<double>(n * model_.targetsPerSample());
    BatchOptions all = options;
    all.microBatch = chosen(options, (n + threads - 1) / threads);
    const double total = threads == 1 ? part(model_, x, y, 0, n, all, T(1 / count))
                                      : inThreads(x, y, n, threads, all, T(1 / count));
    return total / count;
  }

  // The gradient of each sample's own loss: `out` has a row of numParameters() for each.
  template <ContiguousIntegers X, ContiguousIntegers Y>
  void perSampleGradients(const X& x, const Y& y, std::span<T> out,
                          const std::function<void()>& between = {}) {
    const std::size_t n = samples(x, y), p = model_.numParameters();
    demandRoom(out, n * p, "gradients");
    const T seed = T(1.0 / static_cast<double>(model_.targetsPerSample()));
    const Restore restore{gradients()};
    for (std::size_t i = 0; i < n; ++i) {
      part(model_, x, y, i, i + 1, {.microBatch = 1}, seed);
      std::ranges::copy(gradients(), out.begin() + static_cast<std::ptrdiff_t>(i * p));
      if (between) between();
    }
  }

private:
  static constexpr std::size_t mostBytes = std::size_t{1} << 21, most = 256; // of a micro-batch

  // What the tape holds with two samples on it; m of them need at most m/2 times as much.
  Extent measure() {
    auto& tape = model_.tape();
    const std::vector<int> x(2 * model_.inputsPerSample()), y(2 * model_.targetsPerSample());
    const Extent before = tape.used();
    Extent two;
    eachPart(model_, 0, 2, 2, [&](std::size_t, std::size_t) {
      reduceSum(model_.losses(x, y));
      two = tape.used();
    });
    perSample_ =
        (2 * (two.nodes - before.nodes) + (two.constants - before.constants)) * sizeof(T) / 2;
    return two;
  }

  // Micro-batches for which reserve() finds room have at most so many nodes.
  static constexpr std::size_t largestReserve = std::size_t{1} << 26;

  template <class Id>
  void demandIndices(std::span<const Id> ids, std::size_t perSample, const char* what) const {
    const std::size_t limit = model_.config().vocab;
    for (std::size_t i = 0; i < ids.size(); ++i)
      if (std::cmp_less(ids[i], 0) || std::cmp_greater_equal(ids[i], limit)) [[unlikely]]
        detail::fail(ErrorKind::badArgument, std::string(what) + " " + std::to_string(ids[i]) +
                                                 " (number " + std::to_string(i % perSample) +
                                                 " of sample " + std::to_string(i / perSample) +
                                                 ") is not between 0 and " +
                                                 std::to_string(limit - 1));
  }

  static void demandRoom(std::span<T> out, std::size_t wanted, const char* what) {
    if (out.size() != wanted)
      detail::fail(ErrorKind::badArgument, "room for " + std::to_string(out.size()) +
                                               " numbers, but " + std::to_string(wanted) + " " +
                                               what);
  }

  struct Restore { // also when an error is thrown
    explicit Restore(std::span<T> numbers)
        : place(numbers), before(numbers.begin(), numbers.end()) {}
    ~Restore() { std::ranges::copy(before, place.begin()); }
    std::span<T> place;
    std::vector<T> before;
  };

  std::size_t chosen(const BatchOptions& options, std::size_t n) {
    return options.microBatch == automatic ? microBatchFor(n) : options.microBatch;
  }

  // Calls work(first, count) for samples [first, last), some at a time, and rewinds the tape after each.
  template <class Work>
  void eachPart(Model& model, std::size_t first, std::size_t last, std::size_t microBatch,
                const Work& work) const {
    const std::size_t m = std::clamp<std::size_t>(microBatch, 1, largest_);
    const auto mark = model.tape().mark();
    for (std::size_t i = first; i < last; i += m) {
      const Rewind rewind{model.tape(), mark};
      work(i, std::min(m, last - i));
    }
  }
  template <class X> auto inputs(const X& x, std::size_t first, std::size_t count) const {
    const std::size_t n = model_.inputsPerSample();
    return detail::spanOf(x).subspan(first * n, count * n);
  }
  template <class Y> auto targets(const Y& y, std::size_t first, std::size_t count) const {
    const std::size_t n = model_.targetsPerSample();
    return detail::spanOf(y).subspan(first * n, count * n);
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

  template <class X, class Y>
  double part(Model& model, const X& x, const Y& y, std::size_t first, std::size_t last,
              const BatchOptions& options, const T& seed) const {
    auto gradients =
        options.accumulate ? ParameterGradients::accumulate : ParameterGradients::assign;
    if (!options.accumulate)
      model.tables([](const auto& table) { std::ranges::fill(table.grads(), T(0)); });
    double total = 0;
    eachPart(model, first, last, options.microBatch, [&](std::size_t i, std::size_t count) {
      const auto losses = model.losses(inputs(x, i, count), targets(y, i, count), gradients);
      total += sumOf(losses);
      backward(reduceSum(losses), seed);
      gradients = ParameterGradients::accumulate;
      if (options.between) options.between();
    });
    return total;
  }

  template <class X, class Y>
  double inThreads(const X& x, const Y& y, std::size_t n, std::size_t threads,
                   const BatchOptions& options, const T& seed) {
    auto config = model_.config();
    config.seed.reset(); // they get their parameters below
    while (copies_.size() + 1 < threads) copies_.push_back(std::make_unique<Model>(config));
    std::vector<double> totals(threads);
    std::vector<T*> gradientsOf(threads);
    std::vector<std::exception_ptr> errors(threads);
    std::atomic<bool> stop{false}; // an error in one part ends the others early
    std::barrier together(static_cast<std::ptrdiff_t>(threads));
    const std::size_t p = model_.numParameters();
    const auto values = this->values();
    team_.run(threads, [&](std::size_t t) {
      Model& model = t == 0 ? model_ : *copies_[t - 1];
      BatchOptions mine = options;
      if (t != 0) {
        mine.accumulate = false;
        mine.between = [&] {
          if (stop.load(std::memory_order_relaxed)) throw Stopped();
        };
        std::ranges::copy(values, model.tape().values().begin());
      }
      together.arrive_and_wait(); // now the first may append, which may move its values
      try {
        totals[t] = part(model, x, y, n * t / threads, n * (t + 1) / threads, mine, seed);
      } catch (const Stopped&) {
      } catch (...) {
        stop = true;
        errors[t] = std::current_exception();
      }
      gradientsOf[t] = model.tape().grads().data();
      together.arrive_and_wait();
      if (stop) return;
      // Each thread adds up a slice of the gradients of all.
      for (std::size_t other = 1; other < threads; ++other)
        for (std::size_t i = p * t / threads; i < p * (t + 1) / threads; ++i)
          gradientsOf[0][i] = gradientsOf[0][i] + gradientsOf[other][i];
    });
    for (const auto& error : errors)
      if (error) std::rethrow_exception(error);
    double total = 0;
    for (const double each : totals) total += each;
    return total;
  }

  struct Stopped {};

  Model model_;
  std::vector<std::unique_ptr<Model>> copies_;
  Team team_;                                                     // that works on them
  std::size_t largest_ = std::numeric_limits<std::size_t>::max(); // micro-batch
  std::size_t perSample_ = 0; // bytes of a sample's nodes, once they were counted
};

} // namespace nn

BURTORCH_END_NAMESPACE
