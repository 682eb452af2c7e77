// cpp_tests/optim_test.cpp — optimizers against plain loops, clipping, schedules; test_optim.py has PyTorch's numbers
// SPDX-License-Identifier: MIT
#include "support.hpp"

#include <burtorch/optim/optim.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace {

namespace bt = burtorch;
namespace optim = burtorch::optim;

constexpr int steps = 100;

template <class T> struct Numbers {
  std::vector<T> values, gradients;
  explicit Numbers(std::size_t n) : values(n), gradients(n) {
    for (std::size_t i = 0; i < n; ++i) values[i] = T(1 + 0.25 * static_cast<double>(i));
  }
  // A new gradient for each step and number.
  T gradient(std::size_t i, int step) const {
    return T(0.3) * values[i] + T(std::cos(step + static_cast<int>(i)));
  }
};

// Runs an optimizer and, number by number, a formula that does the same: next(x, g, step, m, v).
template <class T, class Optimizer, class Next>
void compare(Optimizer&& optimizer, const Next& next) {
  for (const std::size_t n : {1u, 7u, 16u, 33u}) {
    Numbers<T> all(n), plain(n);
    std::vector<T> m(n), v(n);
    auto fresh = optimizer;
    for (int step = 1; step <= steps; ++step) {
      for (std::size_t i = 0; i < n; ++i) {
        all.gradients[i] = all.gradient(i, step);
        plain.values[i] = next(plain.values[i], plain.gradient(i, step), step, m[i], v[i]);
      }
      fresh.step(std::span<T>(all.values), std::span<const T>(all.gradients));
    }
    CHECK(fresh.steps() == steps);
    for (std::size_t i = 0; i < n; ++i)
      CHECK(all.values[i] ==
            doctest::Approx(plain.values[i]).epsilon(sizeof(T) == 4 ? 1e-4 : 1e-12));
  }
}

TEST_CASE_TEMPLATE("gradient descent", T, float, double) {
  compare<T>(optim::GD<T>(0.1), [](T x, T g, int, T&, T&) { return x - T(0.1) * g; });
}

TEST_CASE_TEMPLATE("momentum, Nesterov's and plain, with weight decay", T, float, double) {
  for (const bool nesterov : {false, true})
    compare<T>(optim::SGD<T>({0.05, 0.9, 0, 0.01, nesterov}), [&](T x, T g, int step, T& m, T&) {
      g += T(0.01) * x;
      m = step == 1 ? g : T(0.9) * m + g;
      return x - T(0.05) * (nesterov ? g + T(0.9) * m : m);
    });
}

TEST_CASE_TEMPLATE("Adam and AdamW", T, float, double) {
  const auto next = [](T x, T g, int step, T& m, T& v) {
    m = T(0.9) * m + T(0.1) * g;
    v = T(0.999) * v + T(0.001) * g * g;
    const T mean = m / T(1 - std::pow(0.9, step)), square = v / T(1 - std::pow(0.999, step));
    return x - T(0.05) * mean / (std::sqrt(square) + T(1e-8));
  };
  compare<T>(optim::Adam<T>({.lr = 0.05}), next);
  compare<T>(optim::Adam<T>({.lr = 0.05, .weightDecay = 0.1}),
             [&](T x, T g, int s, T& m, T& v) { return next(x, g + T(0.1) * x, s, m, v); });
  compare<T>(optim::AdamW<T>({.lr = 0.05, .weightDecay = 0.1}),
             [&](T x, T g, int s, T& m, T& v) { return next(x * T(1 - 0.05 * 0.1), g, s, m, v); });
}

TEST_CASE("a state taken over goes on bit for bit") {
  Numbers<double> whole(5), parts(5);
  optim::Adam<double> one, first, second;
  const auto go = [](auto& optimizer, Numbers<double>& numbers, int from, int to) {
    for (int step = from; step < to; ++step) {
      for (std::size_t i = 0; i < 5; ++i) numbers.gradients[i] = numbers.gradient(i, step);
      optimizer.step(std::span<double>(numbers.values), std::span<const double>(numbers.gradients));
    }
  };
  go(one, whole, 0, 20);
  go(first, parts, 0, 10);
  std::vector<std::vector<double>> kept;
  std::string names;
  first.state([&](const char* name, const auto& numbers) {
    names += std::string(name) + " ";
    kept.push_back(numbers);
  });
  CHECK(names == "exp_avg exp_avg_sq ");
  std::size_t next = 0;
  second.state([&](const char*, auto& numbers) { numbers = kept[next++]; });
  second.setSteps(first.steps());
  go(second, parts, 10, 20);
  CHECK(parts.values == whole.values);
}

TEST_CASE("sizes and options that make no sense are refused") {
  std::vector<double> three(3), four(4);
  optim::Adam<double> adam;
  adam.step(std::span<double>(three), std::span<const double>(three));
  CHECK(errorOf([&] {
          adam.step(std::span<double>(four), std::span<const double>(four));
        }).what() == std::string("an optimizer of 3 values was given 4"));
  CHECK(errorOf([&] {
          adam.step(std::span<double>(three), std::span<const double>(four));
        }).what() == std::string("3 values and 4 gradients"));
  CHECK(adam.steps() == 1);
  CHECK(errorOf([] { optim::GD<double>(-1); }).kind() == bt::ErrorKind::badArgument);
  CHECK(errorOf([] { optim::SGD<double>({.nesterov = true}); }).kind() ==
        bt::ErrorKind::badArgument);
  CHECK(errorOf([] { optim::Adam<double>({.beta2 = 1}); }).kind() == bt::ErrorKind::badArgument);
}

TEST_CASE_TEMPLATE("clipping", T, float, double) {
  std::vector<T> g{T(3), T(-4)};
  CHECK(optim::clipByNorm(std::span<T>(g), 5.1) == 5);
  CHECK(g[0] == T(3));
  CHECK(optim::clipByNorm(std::span<T>(g), 0.5) == 5);
  CHECK(g[0] == doctest::Approx(0.3).epsilon(1e-6));
  CHECK(g[1] == doctest::Approx(-0.4).epsilon(1e-6));
  optim::clipByValue(std::span<T>(g), T(0.25));
  CHECK(g == std::vector<T>{T(0.25), T(-0.25)});
  std::vector<T> many(5000, T(1)); // more than are summed at a time
  CHECK(optim::norm(std::span<const T>(many)) == doctest::Approx(std::sqrt(5000)));
  CHECK(errorOf([&] { optim::clipByNorm(std::span<T>(g), -1); }).kind() ==
        bt::ErrorKind::badArgument);
}

TEST_CASE("schedules") {
  CHECK(optim::Constant{0.5}(99) == 0.5);
  const optim::StepDecay decay{1, 10, 0.5};
  CHECK(decay(9) == 1);
  CHECK(decay(10) == 0.5);
  CHECK(decay(20) == 0.25);
  const optim::Linear line{1, 0.5, 4};
  CHECK(line(0) == 1);
  CHECK(line(2) == 0.75);
  CHECK(line(4) == 0.5);
  CHECK(line(5) == 0.5);
  const optim::Cosine wave{1, 12, 2, 0.1};
  CHECK(wave(0) == 0.5);
  CHECK(wave(1) == 1);
  CHECK(wave(2) == 1);
  CHECK(wave(7) == doctest::Approx(0.55));
  CHECK(wave(12) == 0.1);
  for (std::uint64_t step = 2; step < 12; ++step) CHECK(wave(step + 1) < wave(step));
  CHECK(optim::Cosine{1, 0, 0, 0.2}(0) == 0.2);
}

} // namespace
