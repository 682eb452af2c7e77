// burtorch/optim/sgd.hpp — gradient descent: plain, and with momentum
// SPDX-License-Identifier: MIT
//
// An optimizer changes values given their gradients; it does not know where they come from. Its state
// has as many numbers as the values of its first step. Every optimizer has
//
//   lr                        the learning rate, free to change between steps
//   step(values, gradients)
//   steps(), setSteps(n)      how many were made
//   state(visit)              visit(name, numbers) for what it keeps between steps; names as in PyTorch
//
// The formulas are those of torch.optim, so that results can be compared.
#pragma once

#include <burtorch/base/error.hpp>
#include <burtorch/kernel/vector.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

BURTORCH_BEGIN_NAMESPACE

namespace detail {

// Counts steps and sees to it that all of them are of the same size.
class OptimizerSteps {
public:
  std::uint64_t steps() const { return steps_; }
  void setSteps(std::uint64_t steps) { steps_ = steps; }

protected:
  static void demand(bool isRight, const char* what) {
    if (!isRight) fail(ErrorKind::badArgument, what);
  }
  template <class T> static void fit(std::vector<T>& state, std::size_t n) {
    if (state.empty()) state.resize(n);
    if (state.size() != n)
      fail(ErrorKind::badArgument, "an optimizer of " + std::to_string(state.size()) +
                                       " values was given " + std::to_string(n));
  }
  template <class T> static void match(std::span<T> values, std::span<const T> gradients) {
    if (values.size() != gradients.size())
      fail(ErrorKind::badArgument, std::to_string(values.size()) + " values and " +
                                       std::to_string(gradients.size()) + " gradients");
  }

  std::uint64_t steps_ = 0;
};

} // namespace detail

namespace optim {

// values -= lr·gradients
template <class T> class GD : public detail::OptimizerSteps {
public:
  double lr;

  explicit GD(double lr_) : lr(lr_) { demand(lr >= 0, "GD: lr can't be negative"); }

  void step(std::span<T> values, std::span<const T> gradients) {
    match(values, gradients);
    ++steps_;
    kernel::axpy(T(-lr), gradients.data(), values.data(), values.size());
  }
  template <class F> void state(const F&) {}
};

// Stochastic gradient descent, after torch.optim.SGD.
template <class T> class SGD : public detail::OptimizerSteps {
public:
  struct Options {
    double lr = 1e-3, momentum = 0, dampening = 0, weightDecay = 0;
    bool nesterov = false;
  };
  double lr;

  explicit SGD(const Options& options) : lr(options.lr), options_(options) {
    demand(lr >= 0, "SGD: lr can't be negative");
    demand(options.momentum >= 0, "SGD: momentum can't be negative");
    demand(options.weightDecay >= 0, "SGD: weight decay can't be negative");
    demand(!options.nesterov || (options.momentum > 0 && options.dampening == 0),
           "SGD: Nesterov's way needs a momentum and no dampening");
  }

  void step(std::span<T> values, std::span<const T> gradients) {
    match(values, gradients);
    const bool hasMomentum = options_.momentum != 0;
    if (hasMomentum) fit(momentum_, values.size());
    ++steps_;
    using Pack = kernel::Pack<T>;
    const auto all = [](double number) { return kernel::fill(T(number)); };
    const bool isFirst = steps_ == 1; // the first gradient is taken as it is
    const Pack rate = all(lr), decay = all(options_.weightDecay), momentum = all(options_.momentum),
               keep = all(isFirst ? 0 : options_.momentum),
               take = all(isFirst ? 1 : 1 - options_.dampening);
    T* const w = values.data();
    T* const m = momentum_.data();
    kernel::eachPack<T>(values.size(), [&](std::size_t i, const auto& read,
                                           const auto& write) BURTORCH_INLINE_LAMBDA {
      Pack g = read(gradients.data() + i) + decay * read(w + i);
      if (hasMomentum) {
        const Pack v = keep * read(m + i) + take * g;
        write(m + i, v);
        g = options_.nesterov ? g + momentum * v : v;
      }
      write(w + i, read(w + i) - rate * g);
    });
  }
  template <class F> void state(const F& visit) {
    if (options_.momentum != 0) visit("momentum_buffer", momentum_);
  }

private:
  Options options_;
  std::vector<T> momentum_;
};

} // namespace optim

BURTORCH_END_NAMESPACE
