// cpp_tests/nn_init_test.cpp — how parameters start: bounds, deviations, the same on every platform
// SPDX-License-Identifier: MIT
#include <burtorch/nn/init.hpp>
#include <burtorch/nn/models.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

using namespace burtorch;
using nn::Init;

namespace {

struct Spread {
  double largest, deviation, mean;
};

Spread drawn(Init how) {
  Tape<double> tape;
  const View<double> w(tape, 200, 50);
  Random random(3);
  nn::initialize(w, how, random, 50, 200);
  double largest = 0, sum = 0, squares = 0;
  for (const double x : w.data()) {
    largest = std::max(largest, std::fabs(x));
    sum += x;
    squares += x * x;
  }
  const double mean = sum / 1e4;
  return {largest, std::sqrt(squares / 1e4 - mean * mean), mean};
}

void checkUniform(Init how, double bound) {
  const Spread s = drawn(how);
  CHECK(s.largest <= bound);
  CHECK(s.largest > 0.99 * bound);
  CHECK(s.deviation == doctest::Approx(bound / std::sqrt(3.0)).epsilon(0.02));
  CHECK(std::fabs(s.mean) < 0.03 * bound);
}
void checkNormal(Init how, double deviation) {
  const Spread s = drawn(how);
  CHECK(s.largest > 3 * deviation);
  CHECK(s.deviation == doctest::Approx(deviation).epsilon(0.03));
  CHECK(std::fabs(s.mean) < 0.05 * deviation);
}

} // namespace

TEST_CASE("init: every scheme has the spread it is named for") {
  CHECK(drawn(Init::zeros).largest == 0);
  CHECK(drawn(Init::ones).mean == 1);
  checkUniform(Init::uniform, 1);
  checkUniform(Init::linear, 1 / std::sqrt(50.0));
  checkUniform(Init::xavierUniform, std::sqrt(6 / 250.0));
  checkUniform(Init::kaimingUniform, std::sqrt(6 / 50.0));
  checkNormal(Init::normal, 1);
  checkNormal(Init::xavierNormal, std::sqrt(2 / 250.0));
  checkNormal(Init::kaimingNormal, std::sqrt(2 / 50.0));
}

TEST_CASE("init: a seed names the numbers, in both precisions") {
  Tape<double> tape;
  Tape<float> narrow;
  const View<double> a(tape, 3, 3), b(tape, 3, 3);
  const View<float> c(narrow, 3, 3);
  Random one(9), two(9), three(9);
  nn::initialize(a, Init::kaimingNormal, one, 3, 3);
  nn::initialize(b, Init::kaimingNormal, two, 3, 3);
  nn::initialize(c, Init::kaimingNormal, three, 3, 3);
  CHECK(std::ranges::equal(a.data(), b.data()));
  for (std::size_t i = 0; i < 9; ++i) CHECK(c.data()[i] == static_cast<float>(a.data()[i]));
}

TEST_CASE("init: an idle generator draws nothing, and so does a model without a seed") {
  Tape<double> tape;
  const View<double> a(tape, 2, 2);
  std::ranges::fill(a.data(), 7.0);
  Random idle = Random::idle();
  CHECK(idle.isIdle());
  CHECK(!Random(0).isIdle());
  nn::initialize(a, Init::kaimingNormal, idle, 2, 2);
  CHECK(std::ranges::all_of(a.data(), [](double x) { return x == 7.0; }));

  nn::CharMLP<double>::Config config;
  config.seed.reset();
  nn::CharMLP<double> model(config);
  CHECK(model.tape().values().size() == model.numParameters());
  CHECK(std::ranges::all_of(model.tape().values(), [](double x) { return x == 0.0; }));
}
