// burtorch/optim/adam.hpp — Adam and AdamW, after torch.optim
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/kernel/vector.hpp>
#include <burtorch/optim/sgd.hpp>

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

BURTORCH_BEGIN_NAMESPACE

namespace optim {

// Weights decay through their gradients (Adam), or by themselves (AdamW).
enum class WeightDecay { inGradients, decoupled };

template <class T, WeightDecay how> class AdaptiveMoments : public detail::OptimizerSteps {
public:
  struct Options {
    double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
    double weightDecay = how == WeightDecay::decoupled ? 1e-2 : 0;
  };
  double lr;

  AdaptiveMoments() : AdaptiveMoments(Options{}) {}
  explicit AdaptiveMoments(const Options& options) : lr(options.lr), options_(options) {
    demand(lr >= 0, "Adam: lr can't be negative");
    demand(options.beta1 >= 0 && options.beta1 < 1, "Adam: beta1 must be in [0, 1)");
    demand(options.beta2 >= 0 && options.beta2 < 1, "Adam: beta2 must be in [0, 1)");
    demand(options.eps >= 0, "Adam: eps can't be negative");
    demand(options.weightDecay >= 0, "Adam: weight decay can't be negative");
  }

  void step(std::span<T> values, std::span<const T> gradients) {
    match(values, gradients);
    fit(mean_, values.size());
    fit(square_, values.size());
    ++steps_;
    constexpr bool isDecoupled = how == WeightDecay::decoupled;
    const auto t = static_cast<double>(steps());
    const double ofMean = 1 - std::pow(options_.beta1, t),
                 ofSquare = 1 - std::pow(options_.beta2, t);
    using Pack = kernel::Pack<T>;
    const auto all = [](double number) { return kernel::fill(T(number)); };
    const Pack rate = all(lr / ofMean), root = all(std::sqrt(ofSquare)), eps = all(options_.eps),
               decay = all(isDecoupled ? 1 - lr * options_.weightDecay : options_.weightDecay),
               newMean = all(1 - options_.beta1), oldSquare = all(options_.beta2),
               newSquare = all(1 - options_.beta2);
    T* const w = values.data();
    T* const m = mean_.data();
    T* const v = square_.data();
    kernel::eachPack<T>(values.size(), [&](std::size_t i, const auto& read,
                                           const auto& write) BURTORCH_INLINE_LAMBDA {
      using std::sqrt;
      Pack x = read(w + i), g = read(gradients.data() + i);
      if constexpr (isDecoupled) x = x * decay;
      else g = g + decay * x;
      const Pack mean = read(m + i) + (g - read(m + i)) * newMean;
      const Pack square = read(v + i) * oldSquare + g * g * newSquare;
      write(m + i, mean);
      write(v + i, square);
      write(w + i, x - rate * (mean / (sqrt(square) / root + eps)));
    });
  }
  template <class F> void state(const F& visit) {
    visit("exp_avg", mean_);
    visit("exp_avg_sq", square_);
  }

private:
  Options options_;
  std::vector<T> mean_, square_; // of the gradients, decaying
};

template <class T> using Adam = AdaptiveMoments<T, WeightDecay::inGradients>;
template <class T> using AdamW = AdaptiveMoments<T, WeightDecay::decoupled>;

} // namespace optim

BURTORCH_END_NAMESPACE
