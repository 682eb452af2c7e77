// burtorch/optim/minimize.hpp — a whole minimization: the loop around an objective and an optimizer
// SPDX-License-Identifier: MIT
//
//   const auto f = [&](const double* x, double* gradient) { return r.valueAndGradient(w, x, gradient); };
//   const auto result = minimize<double>(f, x, {.method = Method::lbfgs, .steps = 100});
//
// x is where it starts and where it ends. It stops after so many steps, when no derivative is larger than
// the tolerance, or when between(), called after each step, says so by returning false.
//
// L-BFGS keeps the last few differences of points and gradients and finds each step's length by
// bisection between Armijo's condition and a growing slope (weak Wolfe), so that every pair it keeps
// has a positive product. Where the tries end without both, it takes the lowest point that fulfilled Armijo's;
// without one it forgets the pairs and goes along the gradient. It has no learning rate.
//
// What is NaN at the start stays there: no steps, not converged.
#pragma once

#include <burtorch/base/error.hpp>
#include <burtorch/kernel/vector.hpp>
#include <burtorch/optim/adam.hpp>
#include <burtorch/optim/sgd.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

BURTORCH_BEGIN_NAMESPACE

namespace optim {

enum class Method : std::uint8_t { gd, momentum, adam, lbfgs };

struct MinimizeOptions {
  Method method = Method::lbfgs;
  std::size_t steps = 1000;
  double lr = 1e-2;
  double momentum = 0.9;
  double tolerance = 1e-8;
  std::size_t memory = 10; // pairs that L-BFGS keeps
};

template <class T> struct Minimum {
  T value;
  T slope; // the largest derivative at the end, without its sign
  std::size_t steps;
  bool converged; // no derivative was larger than the tolerance
};

namespace detail {

template <class T> T dot(std::span<const T> x, std::span<const T> y) {
  T sum = T(0);
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}
template <class T> T largest(std::span<const T> x) {
  T most = T(0);
  for (const T& each : x) most = std::isnan(each) ? each : std::max(most, std::abs(each));
  return most;
}

// The loop of all methods: advance(value) makes one step and gives the new value, or false if it can't.
template <class T, class Advance, class Between>
Minimum<T> loop(T value, std::span<const T> gradient, const MinimizeOptions& options,
                const Advance& advance, const Between& between) {
  Minimum<T> m{value, largest(gradient), 0, false};
  if (std::isnan(m.value) || std::isnan(m.slope)) return m;
  while (!(m.converged = m.slope <= T(options.tolerance)) && m.steps < options.steps) {
    if (!advance(m.value)) break;
    ++m.steps;
    m.slope = largest(gradient);
    if (!between()) break;
  }
  return m;
}

template <class T, class F> class LimitedMemory {
public:
  LimitedMemory(const F& f, std::span<T> x, std::span<T> gradient, std::size_t memory)
      : f_(f), x_(x), gradient_(gradient), memory_(std::max<std::size_t>(memory, 1)),
        direction_(x.size()), newX_(x.size()), newGradient_(x.size()) {}

  bool operator()(T& value) {
    if (search(value)) return true;
    if (pairs_.empty()) return false;
    pairs_.clear();
    return search(value);
  }

private:
  struct Pair {
    std::vector<T> s, y;
    T rho;
  };

  // One step along the direction that the pairs give.
  bool search(T& value) {
    direction();
    const T slope = dot<T>(direction_, gradient_);
    if (!(slope < 0)) return false; // numbers too rough to go down
    constexpr T infinity = std::numeric_limits<T>::infinity();
    T low = 0, high = infinity, best = value, bestLength = 0;
    T length = pairs_.empty() ? std::min(T(1), T(1) / largest<T>(gradient_)) : T(1);
    for (int tries = 0; tries < 60; ++tries) {
      const T newValue = at(length);
      const T newSlope = dot<T>(direction_, newGradient_);
      const bool isFinite = std::abs(newValue) < infinity && std::abs(newSlope) < infinity;
      if (!isFinite || !(newValue <= value + T(1e-4) * length * slope)) high = length;
      else if (newSlope < T(0.9) * slope) low = length;
      else return accept(value, newValue);
      if (low == length && newValue < best) {
        best = newValue;
        bestLength = length;
      }
      length = high < infinity ? (low + high) / 2 : 2 * low;
    }
    return bestLength > 0 && accept(value, at(bestLength));
  }
  T at(T length) {
    for (std::size_t i = 0; i < x_.size(); ++i) newX_[i] = x_[i] + length * direction_[i];
    return f_(newX_.data(), newGradient_.data());
  }

  bool accept(T& value, T newValue) {
    Pair pair{std::vector<T>(x_.size()), std::vector<T>(x_.size()), T(0)};
    for (std::size_t i = 0; i < x_.size(); ++i) {
      pair.s[i] = newX_[i] - x_[i];
      pair.y[i] = newGradient_[i] - gradient_[i];
    }
    const T product = dot<T>(pair.s, pair.y);
    if (product > 0) {
      pair.rho = 1 / product;
      if (pairs_.size() == memory_) pairs_.erase(pairs_.begin());
      pairs_.push_back(std::move(pair));
    }
    std::ranges::copy(newX_, x_.begin());
    std::ranges::copy(newGradient_, gradient_.begin());
    value = newValue;
    return true;
  }

  // −H·gradient by the two loops over the pairs.
  void direction() {
    const std::size_t n = x_.size();
    for (std::size_t i = 0; i < n; ++i) direction_[i] = -gradient_[i];
    std::vector<T> weights(pairs_.size());
    for (std::size_t k = pairs_.size(); k-- != 0;) {
      weights[k] = pairs_[k].rho * dot<T>(pairs_[k].s, direction_);
      kernel::axpy(-weights[k], pairs_[k].y.data(), direction_.data(), n);
    }
    if (!pairs_.empty()) {
      const Pair& last = pairs_.back();
      const T scale = 1 / (last.rho * dot<T>(last.y, last.y));
      for (T& each : direction_) each *= scale;
    }
    for (std::size_t k = 0; k < pairs_.size(); ++k)
      kernel::axpy(weights[k] - pairs_[k].rho * dot<T>(pairs_[k].y, direction_), pairs_[k].s.data(),
                   direction_.data(), n);
  }

  const F& f_;
  std::span<T> x_, gradient_;
  std::size_t memory_;
  std::vector<Pair> pairs_;
  std::vector<T> direction_, newX_, newGradient_;
};

} // namespace detail

template <class T, class F, class Between>
Minimum<T> minimize(const F& f, std::span<T> x, const MinimizeOptions& options,
                    const Between& between) {
  std::vector<T> gradient(x.size());
  const T value = f(x.data(), gradient.data());
  const auto with = [&](auto optimizer) {
    const auto advance = [&](T& at) {
      optimizer.step(x, std::span<const T>(gradient));
      at = f(x.data(), gradient.data());
      return true;
    };
    return detail::loop<T>(value, gradient, options, advance, between);
  };
  switch (options.method) {
  case Method::gd:
    return with(GD<T>(options.lr));
  case Method::momentum:
    return with(SGD<T>({.lr = options.lr, .momentum = options.momentum}));
  case Method::adam:
    return with(Adam<T>({.lr = options.lr}));
  case Method::lbfgs:
    break;
  }
  detail::LimitedMemory<T, F> advance(f, x, gradient, options.memory);
  return detail::loop<T>(
      value, gradient, options, [&](T& at) { return advance(at); }, between);
}
template <class T, class F>
Minimum<T> minimize(const F& f, std::span<T> x, const MinimizeOptions& options = {}) {
  return minimize<T>(f, x, options, [] { return true; });
}

} // namespace optim

BURTORCH_END_NAMESPACE
