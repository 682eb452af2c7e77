// cpp_tests/backward_test.cpp — gradients: accumulation, second roots, unused nodes, stopping, subsets, misuse
// SPDX-License-Identifier: MIT
#include "support.hpp"

#include <burtorch/burtorch.hpp>
#include <burtorch/restricted.hpp>

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

using namespace burtorch;

namespace {

using V = Value<double>;

} // namespace

// ---- known graphs --------------------------------------------------------------------------------

TEST_CASE("backward: the paper's tiny graph") {
  Tape<double> tape;
  const V a(tape, -41.0), b(tape, 2.0);
  const V c = a + b, d = a * b + pow3(b), e = c - d, f = sqr(e), g = f / 2.0;
  backward(g);
  CHECK(g.dataCopy() == 612.5);
  CHECK(a.gradCopy() == -35.0);
  CHECK(b.gradCopy() == 1050.0);
}

TEST_CASE("backward: the paper's small graph") {
  Tape<double> tape;
  const V a(tape, -4.0), b(tape, 2.0);
  V c = a + b;
  V d = a * b + pow3(b);
  c += c + 1.0;
  c += 1.0 + c - a;
  d += d * 2.0 + relu(b + a);
  d += 3.0 * d + relu(b - a);
  const V e = c - d, f = sqr(e);
  V g = f / 2.0;
  g += 10.0 / f;
  backward(g);
  CHECK(g.dataCopy() == doctest::Approx(24.70408163265306).epsilon(1e-15));
  CHECK(a.gradCopy() == doctest::Approx(138.83381924198252).epsilon(1e-15));
  CHECK(b.gradCopy() == doctest::Approx(645.5772594752186).epsilon(1e-15));
}

// ---- several calls -------------------------------------------------------------------------------

TEST_CASE_TEMPLATE("backward: the 300th call is as right as the first", T, float, double) {
  Tape<T> tape;
  const Value<T> x(tape, 5), y(tape, 3);
  const Value<T> square = x * x, sum = reduceSum({y, square, x, square}), root = sum * T(3) - y;
  for (int call = 1; call <= 300; ++call) {
    backward(root);
    CHECK(x.gradCopy() == T(63 * call)); // 3 (2·2x + 1)
    CHECK(y.gradCopy() == T(2 * call));
    CHECK(square.gradCopy() == T(6)); // not a leaf: of the last call only
    CHECK(sum.gradCopy() == T(3));
    CHECK(root.gradCopy() == T(1));
  }
}

TEST_CASE("backward: a second root visits what the first visited") {
  Tape<double> tape;
  const V x(tape, 2.0), y(tape, 7.0);
  const V shared = x * y, first = shared * shared, second = shared + x;
  backward(first);
  CHECK(x.gradCopy() == 2 * 14 * 7.0);
  CHECK(shared.gradCopy() == 28.0);
  backward(second);
  CHECK(x.gradCopy() == 196 + 7 + 1.0);
  CHECK(y.gradCopy() == 2 * 14 * 2 + 2.0);
  CHECK(shared.gradCopy() == 1.0);
  CHECK(first.gradCopy() == 0.0); // no part of the last call
  backward(first);                // an older root after a younger one
  CHECK(second.gradCopy() == 0.0);
  CHECK(shared.gradCopy() == 28.0);
  CHECK(x.gradCopy() == 204 + 196.0);
  backward(shared);
  CHECK(first.gradCopy() == 0.0);
  CHECK(x.gradCopy() == 400 + 7.0);
}

TEST_CASE("backward: nodes appended after a call, on top of what it visited") {
  Tape<double> tape;
  const V x(tape, 1.0);
  V y = x * 2.0;
  double expected = 0, slope = 2;
  for (int i = 0; i < 40; ++i) {
    backward(y);
    expected += slope;
    CHECK(x.gradCopy() == expected);
    y = y + y;
    slope *= 2;
  }
}

TEST_CASE("backward: rewinding between calls keeps the sum on the leaves only") {
  Tape<double> tape;
  const V x(tape, 3.0), w = x * x;
  backward(w);
  const auto m = tape.mark();
  for (int i = 1; i <= 20; ++i) {
    backward(w * static_cast<double>(i));
    CHECK(w.gradCopy() == i);
    tape.rewind(m);
  }
  CHECK(x.gradCopy() == 6.0 * (1 + 20 * 21 / 2));
}

TEST_CASE("backward: zeroGrad starts over, for every node") {
  Tape<double> tape;
  const V x(tape, 3.0), y = x * x, z = y * 2.0, unused = x * 5.0;
  backward(z);
  backward(unused);
  const auto once = [&] {
    tape.zeroGrad();
    for (const double g : gradientsOf(tape)) CHECK(g == 0.0);
    backward(z);
    return gradientsOf(tape);
  };
  const auto first = once();
  CHECK(first == std::vector<double>{12, 2, 1, 0});
  CHECK(once() == first);
}

TEST_CASE("backward: a root that is a leaf") {
  Tape<double> tape;
  const V x(tape, 3.0), y = x * x, z(tape, 1.0);
  backward(y);
  backward(x);
  CHECK(x.gradCopy() == 7.0);
  CHECK(y.gradCopy() == 0.0);
  backward(x, -2.5);
  CHECK(x.gradCopy() == 4.5);
  CHECK(z.gradCopy() == 0.0);
  CHECK(backwardUntil(z, [] { return false; }));
  CHECK(z.gradCopy() == 1.0);
  Tape<double> onlyLeaves;
  const V lonely(onlyLeaves, 1.0);
  backward(lonely);
  backward(lonely);
  CHECK(lonely.gradCopy() == 2.0);
}

TEST_CASE("backward: the seed scales every gradient") {
  Tape<double> tape;
  const V x(tape, 3.0), y = x * x, z = reduceSum({y, x});
  backward(z, 2.5);
  CHECK(z.gradCopy() == 2.5);
  CHECK(y.gradCopy() == 2.5);
  CHECK(x.gradCopy() == 17.5);
  backward(z, -2.5);
  CHECK(x.gradCopy() == 0.0);
  backward(z, 0.0);
  CHECK(x.gradCopy() == 0.0);
  CHECK(z.gradCopy() == 0.0);
  Tape<float> floats;
  const Value<float> u(floats, 2.0f);
  backward(u * u, 0.5); // a double literal is fine
  CHECK(u.gradCopy() == 2.0f);
}

TEST_CASE("backward: setGrad on a leaf is where the sum starts, on another node it has no effect") {
  Tape<double> tape;
  const V x(tape, 3.0), y = x * x, z = y * 2.0, after = z + x;
  x.setGrad(100.0);
  y.setGrad(1000.0);
  z.setGrad(1000.0);
  after.setGrad(1000.0);
  backward(z);
  CHECK(x.gradCopy() == 112.0);
  CHECK(y.gradCopy() == 2.0);
  CHECK(z.gradCopy() == 1.0);
  CHECK(after.gradCopy() == 0.0);
  for (double& g : tape.grads()) g = 7.0; // the same through the array
  backward(after);
  CHECK(x.gradCopy() == 7 + 13.0);
  CHECK(y.gradCopy() == 2.0);
}

// ---- what the root does not depend on ------------------------------------------------------------

TEST_CASE("backward: unused nodes with an infinite or undefined derivative do not poison") {
  Tape<double> tape;
  const V x(tape, 0.0), y(tape, -1.0);
  const V before = x * 3.0;
  static_cast<void>(1.0 / x);
  static_cast<void>(inv(x));
  static_cast<void>(log(x));
  static_cast<void>(sqrt(x) * sqrt(y));
  static_cast<void>(invSqrt(x));
  static_cast<void>(x / x);
  static_cast<void>(pow(x, y));
  static_cast<void>(variance(std::vector<V>{x}));
  static_cast<void>(reduceMean({y, log(x)}));
  static_cast<void>(innerProductWithBias({log(x), y}, {sqrt(y), x}, log(y)));
  static_cast<void>(clamp(log(y), 0.0, 1.0));
  static_cast<void>(x * std::numeric_limits<double>::infinity());
  const V root = before + y * y;
  for (int call = 1; call <= 3; ++call) {
    backward(root);
    CHECK(x.gradCopy() == 3.0 * call);
    CHECK(y.gradCopy() == -2.0 * call);
  }
  CHECK(backwardUntil(
      root, [] { return false; }, 1));
  CHECK(x.gradCopy() == 12.0);
  backwardRestricted(root, std::vector<V>{x, y});
  CHECK(x.gradCopy() == 15.0);
}

TEST_CASE("backward: what a bad root left behind does not reach the next root") {
  Tape<double> tape;
  const V x(tape, 0.0);
  const V shared = x * 2.0, bad = log(shared) * sqrt(shared), good = shared + 1.0;
  backward(bad);
  CHECK_FALSE(std::isfinite(shared.gradCopy()));
  x.setGrad(0.0);
  backward(good);
  CHECK(shared.gradCopy() == 1.0);
  CHECK(x.gradCopy() == 2.0);
  CHECK(bad.gradCopy() == 0.0);
}

TEST_CASE("backward: a NaN that the root does depend on is not hidden") {
  Tape<double> tape;
  const V x(tape, -1.0), y(tape, 2.0);
  backward(log(x) * y + sqrt(x));
  CHECK(std::isnan(x.gradCopy()));
  CHECK(std::isnan(y.gradCopy()));
}

// ---- one node, many uses -------------------------------------------------------------------------

TEST_CASE("backward: the same node on both sides") {
  Tape<double> tape;
  const V x(tape, 3.0);
  const auto gradient = [&](const V& root) {
    tape.zeroGrad();
    backward(root);
    return x.gradCopy();
  };
  CHECK(gradient(x * x) == 6.0);
  CHECK(gradient(x / x) == 0.0);
  CHECK(gradient(x + x) == 2.0);
  CHECK(gradient(x - x) == 0.0);
  CHECK(gradient(mean(x, x)) == 1.0);
  CHECK(gradient(min(x, x)) == 1.0);
  CHECK(gradient(max(x, x)) == 1.0);
  CHECK(gradient(addSquares(x, x)) == 12.0);
  CHECK(gradient(mulByConstant(x, x)) == 3.0);
  CHECK(gradient(pow(x, x)) == doctest::Approx(27 * (std::log(3.0) + 1)));
  CHECK(gradient(reduceMul({x, x, x})) == 27.0);
  CHECK(gradient(reduceSub({x, x, x, x})) == -2.0);
  CHECK(gradient(reduceMax({x, x, x})) == 1.0);
  CHECK(gradient(innerProductWithBias({x, x}, {x, x}, x)) == 13.0);
  CHECK(gradient((x * x) * (x * x)) == 108.0);
  const V same = x * x; // the adjoint written last is the one read next, twice
  CHECK(gradient(same * same + same) == (18 + 1) * 6.0);
}

TEST_CASE("backward: thousands of handles to one node") {
  Tape<double> tape;
  const V x(tape, 2.0), y = x * 3.0;
  const std::vector<V> handles(5000, y);
  const V list = reduceSum(handles), dot = innerProduct(handles, handles);
  V chain = handles[0];
  for (const V& handle : handles) chain = chain + handle;
  backward(list + dot + chain);
  CHECK(y.gradCopy() == 5000 + 5000 * 12.0 + 5001);
  CHECK(x.gradCopy() == 3 * y.gradCopy());
  for (const V& handle : handles) CHECK(handle.gradCopy() == y.gradCopy());
}

// ---- the oldest that is reached ------------------------------------------------------------------

TEST_CASE("backward: backwardReaching agrees with backward whatever else is on the tape") {
  Tape<double> tape;
  const V old(tape, 3.0);
  const V below = sqr(old) * old;
  const V a(tape, -4.0), b(tape, 2.0);
  const V between = exp(a) + old; // no part of the roots that follow, but it reaches below them
  const V high = a * b + sqr(b);
  const V sum = reduceSum(std::vector<V>{high, b, high});
  const V deep = sum * below;
  const V number = 10.0 / high;
  const auto gradients = [&] {
    const auto all = std::as_const(tape).grads();
    return std::vector<double>(all.begin(), all.end());
  };
  const std::vector<V> roots{high, sum, deep, number, between, below, a};
  for (const V& root : roots) {
    CAPTURE(root.sysGetRawNodeIndex());
    tape.zeroGrad();
    backward(root);
    const auto expected = gradients();
    for (const V& earlier : roots) { // whose traces must go, but for those on the leaves
      tape.zeroGrad();
      backwardReaching(earlier);
      for (const V& leaf : {old, a, b})
        detail::TapeAccess::columns(tape).grads[leaf.sysGetRawNodeIndex()] = 0;
      backwardReaching(root);
      CHECK(gradients() == expected);
    }
  }
}

TEST_CASE("backward: backwardReaching leaves alone what lies below the oldest operand") {
  Tape<double> tape;
  const V old(tape, 3.0);
  const V below = sqr(old);
  const V a(tape, 2.0);
  const V root = a * a + 1.0;
  auto* const grads = detail::TapeAccess::columns(tape).grads;
  grads[below.sysGetRawNodeIndex()] = 5.0; // an adjoint that a sweep would pull
  backwardReaching(root);
  CHECK(a.gradCopy() == 4.0);
  CHECK(old.gradCopy() == 0.0);
}

// ---- stopping ------------------------------------------------------------------------------------

TEST_CASE("backward: backwardUntil without a stop is backward") {
  Tape<double> tape;
  const V x(tape, 1.0), y(tape, 2.0);
  V root = x * y;
  for (int i = 0; i < 1000; ++i)
    root = (i % 3 == 0) ? root + x : (i % 3 == 1) ? reduceMean({root, y}) : root * y;
  backward(root);
  const auto expected = gradientsOf(tape);
  const std::size_t huge = std::numeric_limits<std::size_t>::max();
  for (const std::size_t every :
       {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{1001}, huge}) {
    tape.zeroGrad();
    CHECK(backwardUntil(
        root, [] { return false; }, every));
    CHECK(gradientsOf(tape) == expected);
  }
  tape.zeroGrad();
  const std::atomic<bool> flag{false};
  CHECK(backwardUntil(root, flag));
  CHECK(gradientsOf(tape) == expected);
}

TEST_CASE("backward: backwardUntil asks as often as told, and stops when told") {
  Tape<double> tape;
  const V x(tape, 1.0), one(tape, 1.0);
  V root = x * 1.0;
  for (int i = 0; i < 99; ++i) root = root + one; // 100 records
  std::size_t asked = 0;
  const auto count = [&] { return ++asked, false; };
  CHECK(backwardUntil(root, count, 1));
  CHECK(asked >= 99);
  CHECK(asked <= 101);
  asked = 0;
  CHECK(backwardUntil(root, count, 10));
  CHECK(asked >= 9);
  CHECK(asked <= 11);
  asked = 0;
  CHECK(backwardUntil(root, count, std::numeric_limits<std::size_t>::max()));
  CHECK(asked <= 2);

  for (const std::size_t every : {std::size_t{0}, std::size_t{1}, std::size_t{10}}) {
    tape.zeroGrad();
    asked = 0;
    CHECK_FALSE(backwardUntil(
        root, [&] { return ++asked == 5; }, every));
    CHECK(asked == 5); // nothing is asked after a yes
    CHECK(one.gradCopy() >= 4.0 * static_cast<double>(every == 0 ? 1 : every) - 1);
    CHECK(one.gradCopy() < 99.0);
    CHECK(x.gradCopy() == 0.0);
    const double part = one.gradCopy();
    backward(root); // a stopped sweep leaves nothing that the next one would count
    CHECK(one.gradCopy() == part + 99.0);
    CHECK(x.gradCopy() == 1.0);
  }
}

TEST_CASE("backward: backwardUntil stopped by an atomic flag before it starts") {
  Tape<double> tape;
  const V x(tape, 2.0), root = x * x;
  std::atomic<bool> flag{true};
  CHECK_FALSE(backwardUntil(root, flag));
  CHECK(x.gradCopy() == 0.0);
  flag = false;
  CHECK(backwardUntil(root, flag));
  CHECK(x.gradCopy() == 4.0);
}

// ---- subsets -------------------------------------------------------------------------------------

namespace {

// Five leaves, used in every form of operand.
struct Mixed {
  Tape<double> tape;
  std::vector<V> x;
  V middle, root, younger;

  Mixed() {
    for (int i = 0; i < 5; ++i) x.emplace_back(tape, 0.3 + 0.4 * i);
    const V products = x[0] * x[1] + 2.0 * x[2] - x[3] / 3.0 + 1.0 / x[4];
    middle = tanh(products);
    const V run = reduceSumOfSquares(x), list = reduceMean({x[4], x[0], middle});
    const V dots = innerProduct(x, x) + innerProductWithBias({x[3], middle}, {middle, x[1]}, x[2]) +
                   innerProductWithBias(std::span(x).first(2), std::span(x).last(2), x[0]);
    root = sin(run * list) + clamp(dots, -100.0, 100.0) * middle;
    younger = V(tape, 9.0);
  }
};

} // namespace

TEST_CASE("backward: backwardRestricted agrees with backward and touches no other leaf") {
  for (unsigned subset = 0; subset < 32; ++subset) {
    CAPTURE(subset);
    Mixed full, part;
    backward(full.root);
    std::vector<V> wanted;
    for (unsigned i = 0; i < 5; ++i)
      if ((subset >> i) & 1u) wanted.push_back(part.x[i]);
    for (const V& v : part.x) v.setGrad(1000.0);
    for (int call = 1; call <= 2; ++call) {
      backwardRestricted(part.root, wanted);
      for (unsigned i = 0; i < 5; ++i) {
        if ((subset >> i) & 1u) {
          CHECK(part.x[i].gradCopy() ==
                doctest::Approx(1000.0 + call * full.x[i].gradCopy()).epsilon(1e-14));
        } else {
          CHECK(part.x[i].gradCopy() == 1000.0);
        }
      }
    }
    CHECK(part.younger.gradCopy() == 0.0);
  }
}

TEST_CASE("backward: backwardRestricted to an intermediate node, the root, or a node younger than "
          "the root") {
  Mixed full, part;
  backward(full.root);
  backwardRestricted(part.root, std::vector<V>{part.middle});
  CHECK(part.middle.gradCopy() == full.middle.gradCopy());
  for (const V& v : part.x) CHECK(v.gradCopy() == 0.0);
  backwardRestricted(part.root, std::vector<V>{part.middle, part.x[4]});
  CHECK(part.middle.gradCopy() == full.middle.gradCopy());
  CHECK(part.x[4].gradCopy() == full.x[4].gradCopy());
  CHECK(part.x[0].gradCopy() == 0.0);
  backwardRestricted(part.root, std::vector<V>{part.root});
  CHECK(part.root.gradCopy() == 1.0);
  CHECK(part.x[4].gradCopy() == full.x[4].gradCopy());
  backwardRestricted(part.root, std::vector<V>{part.younger, part.x[1], part.x[1]});
  CHECK(part.younger.gradCopy() == 0.0);
  CHECK(part.x[1].gradCopy() == full.x[1].gradCopy());
  backwardRestricted(part.root, std::vector<V>{});
  CHECK(part.x[1].gradCopy() == full.x[1].gradCopy());
}

TEST_CASE(
    "backward: backwardRestricted to what the root does not depend on, and with a leaf as root") {
  Tape<double> tape;
  const V x(tape, 2.0), y(tape, 3.0), other = y * y, root = x * x;
  backwardRestricted(root, std::vector<V>{y, other});
  CHECK(x.gradCopy() == 0.0);
  CHECK(y.gradCopy() == 0.0);
  CHECK(other.gradCopy() == 0.0);
  backwardRestricted(x, std::vector<V>{y});
  CHECK(x.gradCopy() == 0.0);
  backwardRestricted(x, std::vector<V>{y, x});
  CHECK(x.gradCopy() == 1.0);
  CHECK(y.gradCopy() == 0.0);
}

TEST_CASE("backward: backwardRestricted in the caller's memory") {
  Mixed g;
  const std::array<V, 1> wanted{g.x[2]};
  std::vector<std::uint8_t> work(g.root.sysGetRawNodeIndex() + std::size_t{1}, std::uint8_t{255});
  const auto before = gradientsOf(g.tape);
  const Error e =
      errorOf([&] { backwardRestricted(g.root, wanted, std::span(work).first(work.size() - 1)); });
  CHECK(e.kind() == ErrorKind::badArgument);
  CHECK(std::string(e.what()).find(std::to_string(work.size())) != std::string::npos);
  CHECK(gradientsOf(g.tape) == before);
  backwardRestricted(g.root, wanted, std::span(work));
  Mixed full;
  backward(full.root);
  CHECK(g.x[2].gradCopy() == full.x[2].gradCopy());
}

// ---- the root that is not there ------------------------------------------------------------------

namespace {

// backwardOf<O>(operands…) against append and backward, to the last bit. `pick` gives operands of a
// Mixed graph.
template <class O, class Pick> void sameAsAppended(const Pick& pick) {
  CAPTURE(std::string(op::Entry<O>::name));
  Mixed appended, spared;
  std::apply([](const auto&... x) { backward(apply<O>(x...)); }, pick(appended));
  const auto operands = pick(spared);
  const Extent used = spared.tape.used();
  std::apply([](const auto&... x) { backwardOf<O>(x...); }, operands);
  CHECK(spared.tape.used() == used);
  const auto expected = gradientsOf(appended.tape), got = gradientsOf(spared.tape);
  for (std::size_t i = 0; i < got.size(); ++i) {
    CHECK(got[i] == expected[i]);
    CHECK(std::isfinite(got[i]));
  }
  backward(spared.root); // and nothing is left that would be counted
  Mixed plain;
  backward(plain.root);
  CHECK(spared.middle.gradCopy() == plain.middle.gradCopy());
}

} // namespace

TEST_CASE("backward: backwardOf every operation is the gradient of the appended one") {
  // x[1] = 0.7 lies inside every operation's domain; middle is not a leaf, so the sweep goes on
  // below it.
#define UNARY(Name, function)                                                                      \
  sameAsAppended<op::Name>([](Mixed& g) { return std::tuple(g.x[1] * 0.9); });
  BURTORCH_UNARY_OPERATIONS(UNARY)
#undef UNARY
#define BINARY(Name, function)                                                                     \
  sameAsAppended<op::Name>([](Mixed& g) { return std::tuple(g.x[1] * 0.9, g.middle); });           \
  sameAsAppended<op::Name>([](Mixed& g) { return std::tuple(g.middle, 0.25); });
  BURTORCH_BINARY_OPERATIONS(BINARY)
#undef BINARY
  sameAsAppended<op::BinaryDiv>([](Mixed& g) { return std::tuple(2.0, g.middle); });
  sameAsAppended<op::BinaryPow>([](Mixed& g) { return std::tuple(2.0, g.middle); });
  sameAsAppended<op::BinarySub>([](Mixed& g) { return std::tuple(2, g.middle); });
  sameAsAppended<op::Clamp>([](Mixed& g) { return std::tuple(g.middle, -2.0, 2.0); });
#define REDUCTION(Name, function)                                                                  \
  sameAsAppended<op::Name>([](Mixed& g) { return std::tuple(g.x); });                              \
  sameAsAppended<op::Name>([](Mixed& g) {                                                          \
    return std::tuple(std::vector{g.x[3], g.middle, g.x[0]});                                      \
  });
  BURTORCH_REDUCTIONS(REDUCTION)
#undef REDUCTION
  sameAsAppended<op::InnerProductNoBias>([](Mixed& g) { return std::tuple(g.x, g.x); });
  sameAsAppended<op::InnerProductNoBias>([](Mixed& g) {
    return std::tuple(std::vector{g.middle, g.x[0]}, std::vector{g.x[1], g.x[1]});
  });
  sameAsAppended<op::InnerProductWithBias>([](Mixed& g) { return std::tuple(g.x, g.x, g.middle); });
  sameAsAppended<op::InnerProductWithBias>([](Mixed& g) {
    return std::tuple(std::vector{g.middle, g.x[0]}, std::vector{g.x[1], g.x[1]}, g.x[4]);
  });
}

TEST_CASE("backward: backwardOf in a loop: nothing grows, leaves accumulate") {
  Tape<double> tape;
  const V x(tape, 2.0), y = x * x;
  const Extent used = tape.used();
  for (int call = 1; call <= 300; ++call) {
    backwardOf<op::BinaryMult>(y, x);
    CHECK(x.gradCopy() == 12.0 * call);
    CHECK(y.gradCopy() == 2.0);
    CHECK(tape.used() == used);
  }
}

// ---- misuse --------------------------------------------------------------------------------------

#if BURTORCH_CHECKS
TEST_CASE("backward: an empty handle is refused everywhere") {
  Tape<double> tape;
  const V x(tape, 1.0), empty;
  std::vector<std::uint32_t> list(8);
  ScratchList order(list), leaves(list), stack(list);
  const auto isRefused = [](auto&& use) { CHECK(errorOf(use).kind() == ErrorKind::emptyHandle); };
  CHECK(empty.isEmpty());
  isRefused([&] { empty.dataCopy(); });
  isRefused([&] { empty.gradCopy(); });
  isRefused([&] { empty.setData(1.0); });
  isRefused([&] { empty.setGrad(1.0); });
  isRefused([&] { static_cast<void>(empty.label()); });
  isRefused([&] { empty.operation(); });
  isRefused([&] { tanh(empty); });
  isRefused([&] { empty + 1.0; });
  isRefused([&] { 1.0 - empty; });
  isRefused([&] { empty* x; });
  isRefused([&] { x* empty; });
  isRefused([&] { clamp(empty, 0.0, 1.0); });
  isRefused([&] { reduceSum({x, empty}); });
  isRefused([&] { reduceSum({empty, x}); });
  isRefused([&] { innerProduct({x}, {empty}); });
  isRefused([&] { innerProductWithBias({x}, {x}, empty); });
  isRefused([&] { backward(empty); });
  isRefused([&] { backwardUntil(empty, [] { return false; }); });
  isRefused([&] { backwardRestricted(empty, std::vector{x}); });
  isRefused([&] { backwardRestricted(x, std::vector{empty}); });
  isRefused([&] { backwardOf<op::Sqr>(empty); });
  isRefused([&] { backwardWithScratchStorage(empty, order, leaves, stack); });
  CHECK(tape.size() == 1);
}

TEST_CASE(
    "backward: a handle that outlived a rewind is refused, also when its place is taken again") {
  Tape<double> tape;
  const V x(tape, 1.0);
  const auto m = tape.mark();
  V stale = x * 2.0;
  tape.rewind(m);
  for (int refilled = 0; refilled < 2; ++refilled) {
    const auto isRefused = [](auto&& use) { CHECK(errorOf(use).kind() == ErrorKind::staleHandle); };
    isRefused([&] { stale.dataCopy(); });
    isRefused([&] { stale.gradCopy(); });
    isRefused([&] { stale.setData(1.0); });
    isRefused([&] { stale.setGrad(1.0); });
    isRefused([&] { stale.setLabel("x"); });
    isRefused([&] { tanh(stale); });
    isRefused([&] { stale + x; });
    isRefused([&] { x + stale; });
    isRefused([&] { stale += 1.0; });
    isRefused([&] { reduceSum({x, stale}); });
    isRefused([&] { innerProduct({x, x}, {x, stale}); });
    isRefused([&] { innerProductWithBias({x}, {x}, stale); });
    isRefused([&] { backward(stale); });
    isRefused([&] { backwardRestricted(x * x, std::vector{stale}); });
    isRefused([&] { backwardOf<op::BinaryMult>(x, stale); });
    tape.rewind(m);
    CHECK(tape.size() == 1);
    for (int i = 0; i < 5; ++i) tape.leaf(77.0);
  }
}

TEST_CASE("backward: operands of two tapes are refused, and neither tape changes") {
  Tape<double> tape, other;
  const V x(tape, 1.0), y(other, 2.0), root = x * x;
  const std::size_t size = tape.size();
  const auto isRefused = [](auto&& use) {
    CHECK(errorOf(use).kind() == ErrorKind::differentTapes);
  };
  isRefused([&] { x + y; });
  isRefused([&] { y* x; });
  isRefused([&] { pow(x, y); });
  isRefused([&] { reduceSum({x, x, y}); });
  isRefused([&] { reduceMax({y, x}); });
  isRefused([&] { innerProduct({x}, {y}); });
  isRefused([&] { innerProduct({x, y}, {x, x}); });
  isRefused([&] { innerProductWithBias({x}, {x}, y); });
  isRefused([&] { backwardRestricted(root, std::vector{y}); });
  isRefused([&] { backwardOf<op::BinaryMult>(x, y); });
  CHECK(tape.size() == size);
  CHECK(other.size() == 1);
}

TEST_CASE("backward: a handle to a node that does not exist is not made") {
  Tape<double> tape;
  CHECK(errorOf([&] { V::at(tape, 0); }).kind() == ErrorKind::badArgument);
  const V x(tape, 1.0);
  CHECK(V::at(tape, 0).dataCopy() == 1.0);
  CHECK(errorOf([&] { V::at(tape, 1); }).kind() == ErrorKind::badArgument);
}
#endif

TEST_CASE("backward: sizes that do not match and empty extrema are refused in every build") {
  Tape<double> tape;
  const V x(tape, 1.0), y(tape, 2.0);
  const std::vector<V> none, one{x}, two{x, y};
  CHECK(errorOf([&] { innerProduct(one, two); }).kind() == ErrorKind::badArgument);
  CHECK(errorOf([&] { innerProductWithBias(two, none, x); }).kind() == ErrorKind::badArgument);
  CHECK(errorOf([&] { reduceMax(none); }).kind() == ErrorKind::badArgument);
  CHECK(errorOf([&] { backwardOf<op::MinVarying>(none); }).kind() == ErrorKind::badArgument);
  CHECK(tape.size() == 2);
}
