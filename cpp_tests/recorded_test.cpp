// cpp_tests/recorded_test.cpp — gradients as nodes: against the sweep, against duals, replayed elsewhere
// SPDX-License-Identifier: MIT
#include "every_operation.hpp"

#include <burtorch/run/recorded_blocks.hpp>
#include <burtorch/run/derivatives.hpp>
#include <burtorch/run/recorded.hpp>
#include <burtorch/run/replay.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

using namespace burtorch;

namespace {

using Reals = std::vector<double>;
const Reals recordedAt{0.3, 0.7, 0.45, 0.6, 0.8}, replayedAt{0.75, 0.4, 0.9, 0.2, 0.55};

std::vector<Value<double>> leavesAt(Tape<double>& tape, const Reals& x) {
  std::vector<Value<double>> leaves;
  for (const double each : x) leaves.emplace_back(tape, each);
  return leaves;
}

// ∇f·v, and the gradient of that: from duals, which know nothing of recorded gradients.
template <class F> auto reference(const F& f, const Reals& x) {
  const Reals v{1.0, -0.5, 2.0, 0.25, -1.5};
  const auto second = hvp(f, x, v);
  double slope = 0;
  for (std::size_t i = 0; i < x.size(); ++i) slope += second.gradient[i] * v[i];
  return std::pair{slope, second.product};
}

Value<double> slopeOf(const Value<double>& root, const std::vector<Value<double>>& leaves,
                      Kinks kinks) {
  const auto g = gradientsOf(root, leaves, kinks);
  return g[0] * 1.0 + g[1] * -0.5 + g[2] * 2.0 + g[3] * 0.25 + g[4] * -1.5;
}

bool isNear(double x, double y) { return std::abs(x - y) <= 1e-11 * (1 + std::abs(y)); }

} // namespace

TEST_CASE("gradients are nodes: a cube, four times") {
  Tape<double> tape;
  const Value<double> x(tape, 2.0);
  Value<double> y = x * x * x;
  for (const double expected : {12.0, 12.0, 6.0, 0.0}) {
    y = gradientsOf(y, std::vector{x})[0];
    CHECK(y.dataCopy() == expected);
  }
  CHECK(tape.grads()[0] == 0.0);
}

TEST_CASE("every operation: the second derivatives of duals, also where a graph is replayed") {
  std::size_t count = 0;
  {
    Tape<double> tape;
    const auto leaves = leavesAt(tape, recordedAt);
    count = every::operation<Value<double>>(leaves).size();
  }
  for (std::size_t i = 0; i < count; ++i) {
    const auto f = [i](auto x) {
      using Handle = std::remove_cv_t<typename decltype(x)::element_type>;
      std::vector<Handle> inputs;
      for (const Handle& each : x) inputs.push_back(each * each + 0.1 * each); // a curve before it
      return every::operation<Handle>(inputs)[i].root;
    };
    for (const Kinks kinks : {Kinks::decided, Kinks::open}) {
      Tape<double> tape;
      const auto leaves = leavesAt(tape, recordedAt);
      const auto name = every::operation<Value<double>>(leaves)[i].name;
      CAPTURE(name);
      if (name.find("mulByConstant") != std::string::npos) continue; // duals differentiate both
      const auto [slope, product] = reference(f, recordedAt);
      const auto root = slopeOf(f(std::span<const Value<double>>(leaves)), leaves, kinks);
      CHECK(isNear(root.dataCopy(), slope));
      backward(root);
      for (std::size_t k = 0; k < leaves.size(); ++k)
        CHECK(isNear(leaves[k].gradCopy(), product[k]));
      if (kinks == Kinks::decided) continue;
      const Recording<double> recording(leaves, root);
      auto workspace = recording.workspace();
      Reals gradient(leaves.size());
      const double again = recording.valueAndGradient(workspace, replayedAt, gradient);
      const auto [there, productThere] = reference(f, replayedAt);
      CHECK(isNear(again, there));
      for (std::size_t k = 0; k < leaves.size(); ++k) CHECK(isNear(gradient[k], productThere[k]));
    }
  }
}

TEST_CASE("what is not chosen has no say, in values and in derivatives") {
  Tape<double> tape;
  const Value<double> x(tape, 1.0), y(tape, 2.0);
  // The slope of relu(x)·log(y): where x <= 0 it is 0, however y's logarithm is.
  const auto slope = gradientsOf(relu(x) * logarithm(y), std::vector{x})[0];
  const Recording<double> f({x, y}, slope);
  auto workspace = f.workspace();
  Reals gradient(2);
  CHECK(f.valueAndGradient(workspace, Reals{1.0, 2.0}, gradient) == std::log(2.0));
  CHECK(gradient == Reals{0.0, 0.5});
  for (const double none : {0.0, -1.0})
    for (const double bad : {0.0, -1.0, std::numeric_limits<double>::infinity()}) {
      CHECK(f.valueAndGradient(workspace, Reals{none, bad}, gradient) == 0.0);
      CHECK(gradient == Reals{0.0, 0.0});
    }
  for (const double some : {std::numeric_limits<double>::denorm_min(), 1e-300, 1e300})
    CHECK(f.valueAndGradient(workspace, Reals{some, 2.0}, gradient) == std::log(2.0));
}

TEST_CASE("an adjoint of 0 that is a number gives nothing, one that is a node gives") {
  Tape<double> tape;
  const Value<double> x(tape, 2.0), z(tape, 0.0);
  CHECK(gradientsOf(sqrt(z) * 0.0 + z * x, std::vector{z})[0].dataCopy() == 2.0);
  const auto slope = gradientsOf((x - 2.0) * sqr(z + 3.0), std::vector{z})[0];
  CHECK(slope.dataCopy() == 0.0);
  backward(slope);
  CHECK(x.gradCopy() == 6.0);
}

TEST_CASE("a factor that is not differentiated is not differentiated twice either") {
  Tape<double> tape;
  const Value<double> x(tape, 3.0), y(tape, 5.0);
  const auto slope = gradientsOf(mulByConstant(x * x, y), std::vector{x})[0]; // 2x·y
  CHECK(slope.dataCopy() == 30.0);
  backward(slope);
  CHECK(x.gradCopy() == 10.0);
  CHECK(y.gradCopy() == 0.0);
}

TEST_CASE("older nodes are numbers; leaves that take no part have a gradient of 0") {
  Tape<double> tape;
  const Value<double> w(tape, 3.0), x(tape, 2.0), other(tape, 1.0);
  const auto root = w * x * x;
  const auto g = gradientsOf(root, std::vector{x, other}, Kinks::decided, 1);
  CHECK(g[0].dataCopy() == 12.0);
  CHECK(g[1].dataCopy() == 0.0);
  backward(g[0]);
  CHECK(x.gradCopy() == 6.0);
  const auto younger = sqr(root);
  CHECK(gradientsOf(root, std::vector{younger})[0].dataCopy() == 0.0);
  CHECK(gradientsOf(x, std::vector{x})[0].dataCopy() == 1.0);
  Tape<double> second;
  const Value<double> elsewhere(second, 1.0);
#if BURTORCH_CHECKS
  CHECK_THROWS_AS(gradientsOf(root, std::vector{elsewhere}), Error);
#endif
}

TEST_CASE("blocks are refused, or expanded") {
  Tape<double> tape;
  View<double> w(tape, 2, 3), x(tape, 1, 3);
  for (std::size_t i = 0; i < w.size(); ++i) w[i].setData(0.1 * static_cast<double>(i + 1));
  for (std::size_t i = 0; i < x.size(); ++i) x[i].setData(0.5 - 0.3 * static_cast<double>(i));
  const auto root = reduceSum(softmax(tanh(affine(w, x))) * affine(w, sqr(x)));
  const std::vector<Value<double>> leaves(x.begin(), x.end());
  CHECK_THROWS_AS(gradientsOf(root, leaves), Error);
  const auto g = gradientsOf(root, leaves, Kinks::decided, 0, ExpandBlocks{});
  backward(root);
  for (std::size_t i = 0; i < 3; ++i) CHECK(isNear(g[i].dataCopy(), x[i].gradCopy()));
  tape.zeroGrad();
  backward(g[1]); // symmetric second derivatives
  const double mixed = x[2].gradCopy();
  tape.zeroGrad();
  backward(g[2]);
  CHECK(isNear(x[1].gradCopy(), mixed));
  CHECK(mixed != 0.0);
}
