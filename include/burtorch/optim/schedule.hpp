// burtorch/optim/schedule.hpp — learning rates that change: functions of the number of steps made
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/base/config.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

BURTORCH_BEGIN_NAMESPACE

namespace optim {

struct Constant {
  double rate;
  double operator()(std::uint64_t) const { return rate; }
};

// Times `factor` after each `every` steps.
struct StepDecay {
  double rate;
  std::uint64_t every;
  double factor = 0.1;
  double operator()(std::uint64_t step) const {
    const std::uint64_t times = step / std::max<std::uint64_t>(every, 1);
    return rate * std::pow(factor, static_cast<double>(times));
  }
};

// From one rate to another in `steps` steps.
struct Linear {
  double from, to;
  std::uint64_t steps;
  double operator()(std::uint64_t step) const {
    if (step >= steps) return to;
    return from + (to - from) * (static_cast<double>(step) / static_cast<double>(steps));
  }
};

// Up to `rate` in `warmUp` equal steps, the first of which is not 0, then down to `least` along half a
// cosine that ends after `steps`.
struct Cosine {
  double rate;
  std::uint64_t steps, warmUp = 0;
  double least = 0;
  double operator()(std::uint64_t step) const {
    if (step < warmUp) return rate * (static_cast<double>(step + 1) / static_cast<double>(warmUp));
    if (step >= steps) return least;
    const double part = static_cast<double>(step - warmUp) / static_cast<double>(steps - warmUp);
    return least + (rate - least) * 0.5 * (1 + std::cos(std::numbers::pi * part));
  }
};

} // namespace optim

BURTORCH_END_NAMESPACE
