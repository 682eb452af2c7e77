// cpp_tests/scratch_test.cpp — backwardWithScratchStorage: same gradients, only what is reached, the caller's lists
// SPDX-License-Identifier: MIT
#include "support.hpp"

#include <burtorch/burtorch.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

using namespace burtorch;

namespace {

using V = Value<double>;
using List = std::vector<std::uint32_t>;

// Three vectors with room for so many indices.
struct Lists {
  List order, leaves, stack;
  explicit Lists(std::size_t room) : Lists(room, room, room) {}
  Lists(std::size_t o, std::size_t l, std::size_t s) {
    order.reserve(o);
    leaves.reserve(l);
    stack.reserve(s);
  }
  template <Reuse reuse = Reuse::nothing> void backward(const V& root) {
    backwardWithScratchStorage<reuse>(root, order, leaves, stack);
  }
};

} // namespace

TEST_CASE(
    "scratch: order holds the records reached, newest first; leaves those the root depends on") {
  Tape<double> tape;
  const V unused(tape, 1.0), x(tape, 2.0), y(tape, 3.0);
  const V p = x * y;      // record 0
  const V q = unused + x; // record 1, not reached
  const V r = tanh(p);    // record 2
  const V late(tape, 5.0);
  const V s = log(q);          // record 3, not reached
  const V root = r * late + p; // records 4 and 5
  const V after = root * s;    // younger than the root
  Lists lists(20);
  lists.backward(root);
  CHECK(lists.order == List{0, 1, 3, 5});
  CHECK(lists.leaves == List{1, 2, late.sysGetRawNodeIndex()});
  CHECK(late.gradCopy() == r.dataCopy());
  CHECK(unused.gradCopy() == 0.0);
  CHECK(after.gradCopy() == 0.0);
  CHECK(q.gradCopy() == 0.0);
}

TEST_CASE("scratch: every form of operand is walked") {
  Tape<double> a, b;
  const auto build = [](Tape<double>& tape) {
    std::vector<V> x;
    for (int i = 0; i < 6; ++i) x.emplace_back(tape, 0.25 * i - 0.6);
    static_cast<void>(log(x[0])); // NaN, and not reached
    const V c = clamp(x[0] * 2.0, -1.0, 1.0), d = 1.0 / (x[1] + 3.0);
    const std::vector<V> z{sin(x[0]), sin(x[1]), sin(x[2]), sin(x[3])};
    const V run = reduceMul(z), list = reduceMax({z[2], z[0], c});
    const V dotRun = innerProduct(std::span(z).first(2), std::span(z).last(2));
    const V dotList = innerProductWithBias({z[3], c}, {d, z[0]}, run);
    const V biasRun = innerProductWithBias(std::span(z).last(2), std::span(x).first(2), x[5]);
    return reduceMean({dotRun, list, biasRun, dotList}) * variance(x);
  };
  const V rootA = build(a), rootB = build(b);
  backward(rootA);
  Lists lists(100);
  lists.backward(rootB);
  CHECK(gradientsOf(a) == gradientsOf(b));
  CHECK(lists.leaves == List{0, 1, 2, 3, 4, 5});
  CHECK(lists.order.size() == b.records().size() - 1); // all but the logarithm
  CHECK(std::ranges::is_sorted(lists.order));
}

TEST_CASE(
    "scratch: nodes that are not reached keep their gradient, reached ones are of the last call") {
  Tape<double> tape;
  const V x(tape, 2.0), y(tape, 3.0);
  const V p = x * x, q = y * y, both = p + q;
  backward(both);
  Lists lists(10);
  lists.backward(p);
  CHECK(p.gradCopy() == 1.0);
  CHECK(x.gradCopy() == 8.0);
  CHECK(q.gradCopy() == 1.0); // as backward(both) left it
  CHECK(both.gradCopy() == 1.0);
  backward(q); // the sweep clears them all the same
  CHECK(both.gradCopy() == 0.0);
  CHECK(p.gradCopy() == 0.0);
  CHECK(y.gradCopy() == 12.0);
  p.setGrad(1000.0);
  q.setGrad(1000.0);
  lists.backward(p);
  CHECK(x.gradCopy() == 12.0);
  CHECK(q.gradCopy() == 1000.0);
  backward(both);
  CHECK(q.gradCopy() == 1.0);
  CHECK(x.gradCopy() == 16.0);
}

TEST_CASE("scratch: 300 calls, mixed with backward, accumulate on the leaves alone") {
  Tape<double> tape;
  const V x(tape, 3.0), y = x * x, z = reduceSum({y, x, y}), root = z * 2.0, other = y + x;
  Lists lists(10);
  double expected = 0;
  for (int call = 0; call < 300; ++call) {
    if (call % 3 == 0) {
      backward(other);
      expected += 7;
      CHECK(y.gradCopy() == 1.0);
    } else if (call % 3 == 1) {
      lists.backward(root);
      expected += 26;
      CHECK(y.gradCopy() == 4.0);
    } else {
      lists.backward(other);
      expected += 7;
      CHECK(y.gradCopy() == 1.0);
    }
    CHECK(x.gradCopy() == expected);
  }
}

TEST_CASE("scratch: unreached nodes do not poison") {
  Tape<double> tape;
  const V x(tape, 0.0);
  const V y = x * 2.0, bad = log(y) * sqrt(y), good = y + 1.0;
  Lists lists(10);
  lists.backward(bad);
  CHECK_FALSE(std::isfinite(x.gradCopy()));
  x.setGrad(0.0);
  lists.backward(good);
  CHECK(x.gradCopy() == 2.0);
}

TEST_CASE("scratch: the root is a leaf") {
  Tape<double> tape;
  const V unused(tape, 0.0), x(tape, 2.0), y = x * x;
  Lists lists(4);
  lists.backward(y);
  lists.backward(x);
  CHECK(x.gradCopy() == 5.0);
  CHECK(lists.order.empty());
  CHECK(lists.leaves == List{1});
  Lists tight(0, 1, 0);
  tight.backward(x);
  CHECK(x.gradCopy() == 6.0);
  Lists nothing(0);
  CHECK(errorOf([&] { nothing.backward(x); }).kind() == ErrorKind::capacity);
  CHECK(x.gradCopy() == 6.0);
}

TEST_CASE("scratch: a root without operands") {
  Tape<double> tape;
  const TapeScope scope(tape);
  const V root = reduceSum(std::vector<V>{});
  Lists lists(1, 0, 1);
  lists.backward(root);
  CHECK(lists.order == List{0});
  CHECK(lists.leaves.empty());
  CHECK(root.gradCopy() == 1.0);
}

// ---- the caller's lists --------------------------------------------------------------------------

TEST_CASE("scratch: lists in an array, a C array, a span, a vector, and passed as temporaries") {
  Tape<double> tape;
  const V x(tape, 2.0), y(tape, 3.0), root = tanh(x * y) * x;
  backward(root);
  const auto once = gradientsOf(tape);
  std::array<std::uint32_t, 3> order{};
  std::uint64_t leaves[4] = {};
  std::vector<std::uint32_t> memory(3);
  const std::span<std::uint32_t> stack(memory);
  ScratchList orderList(order);
  ScratchList leavesList(leaves);
  ScratchList stackList(stack);
  static_assert(std::is_same_v<decltype(orderList), ScratchList<std::uint32_t>>);
  static_assert(std::is_same_v<decltype(leavesList), ScratchList<std::uint64_t>>);
  static_assert(std::is_same_v<decltype(stackList), ScratchList<std::uint32_t>>);
  tape.zeroGrad();
  backwardWithScratchStorage(root, orderList, leavesList, stackList);
  CHECK(gradientsOf(tape) == once);
  CHECK(orderList.size() == 3);
  CHECK(leavesList.size() == 2);
  CHECK(order == std::array<std::uint32_t, 3>{0, 1, 2});
  tape.zeroGrad();
  backwardWithScratchStorage(root, ScratchList(memory), ScratchList(leaves), ScratchList(order));
  CHECK(gradientsOf(tape) == once);
}

TEST_CASE("scratch: vectors are not grown beyond their capacity") {
  Tape<double> tape;
  const V x(tape, 2.0);
  V root = x * 1.0;
  for (int i = 0; i < 50; ++i) root = root * 1.0;
  Lists lists(51, 4, 4);
  const auto* const where = lists.order.data();
  lists.backward(root);
  CHECK(lists.order.data() == where);
  CHECK(lists.order.size() == 51);
  Lists empty(0);
  CHECK(errorOf([&] { empty.backward(root); }).kind() == ErrorKind::capacity);
  CHECK(empty.order.capacity() == 0);
}

TEST_CASE("scratch: a list that is too small is an error that harms nothing") {
  // 9 records, 5 leaves; the reduction puts 4 records on the stack at once.
  Tape<double> tape;
  std::vector<V> x, y;
  for (int i = 0; i < 4; ++i) x.emplace_back(tape, i + 1.0);
  const V unreached = x[0] * x[1];
  for (const V& v : x) y.push_back(v * v);
  const V last(tape, 3.0);
  const V sum = reduceSum(y), root = sum * last + sum;
  backward(root);
  const auto right = gradientsOf(tape);
  Lists enough(7, 16, 7);
  const auto isUnharmed = [&] {
    for (const auto& record : tape.records()) CHECK((record.word & record.visited) == 0);
    tape.zeroGrad();
    backward(root);
    CHECK(gradientsOf(tape) == right);
    tape.zeroGrad();
    enough.backward(root);
    CHECK(gradientsOf(tape) == right);
    CHECK(enough.order.size() == 7);
  };
  isUnharmed();
  for (std::size_t room = 0; room < 7; ++room) {
    CAPTURE(room);
    Lists lists(room, 16, 7);
    const auto before = gradientsOf(tape);
    const Error e = errorOf([&] { lists.backward(root); });
    CHECK(e.kind() == ErrorKind::capacity);
    CHECK(std::string(e.what()).find("'order' has room for " + std::to_string(room)) !=
          std::string::npos);
    CHECK(gradientsOf(tape) == before);
    isUnharmed();
  }
  for (std::size_t room = 0; room < 5; ++room) {
    CAPTURE(room);
    Lists lists(7, room, 7);
    const auto before = gradientsOf(tape);
    const Error e = errorOf([&] { lists.backward(root); });
    CHECK(e.kind() == ErrorKind::capacity);
    CHECK(std::string(e.what()).find("'leaves' has room for " + std::to_string(room)) !=
          std::string::npos);
    CHECK(gradientsOf(tape) == before);
    isUnharmed();
  }
  std::size_t failures = 0;
  for (std::size_t room = 0; room < 7; ++room) {
    CAPTURE(room);
    Lists lists(7, 16, room);
    const auto before = gradientsOf(tape);
    try {
      lists.backward(root);
    } catch (const Error& e) {
      ++failures;
      CHECK(e.kind() == ErrorKind::capacity);
      CHECK(std::string(e.what()).find("'stack' has room for " + std::to_string(room)) !=
            std::string::npos);
      CHECK(gradientsOf(tape) == before);
    }
    isUnharmed();
  }
  CHECK(failures >= 4); // the four operands of the sum wait together
  CHECK(unreached.gradCopy() == 0.0);
}

TEST_CASE("scratch: room for one index per leaf is enough, however often the leaves are used") {
  Tape<double> tape;
  const V x(tape, 3.0), y(tape, 2.0);
  SUBCASE("one leaf, twice in one operation") {
    const V root = x * x;
    Lists lists(1, 1, 1);
    lists.backward(root);
    CHECK(x.gradCopy() == 6.0);
    CHECK(lists.leaves == List{0});
  }
  SUBCASE("two leaves, many times in many operations") {
    V root = x * y;
    for (int i = 0; i < 10; ++i) root = root + y * x + x;
    Lists lists(100, 2, 100);
    lists.backward(root);
    CHECK(x.gradCopy() == 11 * 2.0 + 10);
    CHECK(y.gradCopy() == 11 * 3.0);
    CHECK(lists.leaves == List{0, 1});
  }
}

TEST_CASE("scratch: many leaves, each used often, in little more than their room") {
  Tape<double> tape;
  std::vector<V> x;
  for (int i = 0; i < 200; ++i) x.emplace_back(tape, 1.0);
  const V root = reduceSum({reduceSum(x), reduceSumOfSquares(x), innerProduct(x, x)});
  Lists lists(4, x.size() + 1, 4);
  lists.backward(root);
  CHECK(lists.leaves.size() == x.size());
  CHECK(std::ranges::is_sorted(lists.leaves));
  for (const V& v : x) CHECK(v.gradCopy() == 5.0);
}

// ---- reuse ---------------------------------------------------------------------------------------

TEST_CASE("scratch: the order is good for the same expression built again, wherever it stands") {
  Tape<double> tape;
  const V x(tape, 0.5), y(tape, -0.25);
  const auto start = tape.mark();
  const auto build = [&] {
    const V p = x * y;
    static_cast<void>(log(p)); // not reached
    return tanh(p + x) * p;
  };
  Lists lists(10);
  V root = build();
  lists.backward(root);
  const List order = lists.order;
  const double gx = x.gradCopy(), gy = y.gradCopy();
  for (int i = 1; i <= 20; ++i) {
    tape.rewind(start);
    for (int k = 0; k < i; ++k) // other records and leaves below the expression
      static_cast<void>(k % 2 == 0 ? x * 3.0 : V(tape, 1.0));
    x.setData(0.5 + i);
    tape.zeroGrad();
    root = build();
    if (i % 2 == 0) lists.backward<Reuse::orderAndLeaves>(root);
    else lists.backward<Reuse::order>(root);
    const double reusedX = x.gradCopy(), reusedY = y.gradCopy();
    CHECK(lists.order == order);
    CHECK(lists.leaves == List{0, 1});
    tape.zeroGrad();
    backward(root);
    CHECK(x.gradCopy() == reusedX);
    CHECK(y.gradCopy() == reusedY);
  }
  x.setData(0.5);
  tape.rewind(start);
  tape.zeroGrad();
  lists.backward<Reuse::order>(build());
  CHECK(x.gradCopy() == gx);
  CHECK(y.gradCopy() == gy);
}

TEST_CASE("scratch: reusing the leaves alone finds the order again") {
  Tape<double> tape;
  const V x(tape, 2.0), root = x * 3.0;
  Lists lists(4);
  lists.leaves = {42};
  lists.backward<Reuse::leaves>(root);
  CHECK(lists.leaves == List{42});
  CHECK(lists.order == List{0});
  CHECK(x.gradCopy() == 3.0);
}

TEST_CASE("scratch: repeated calls with a reused order accumulate like any other") {
  Tape<double> tape;
  const V x(tape, 2.0), y = x * x, root = y * y;
  Lists lists(4);
  lists.backward(root);
  for (int call = 2; call <= 300; ++call) {
    lists.backward<Reuse::orderAndLeaves>(root);
    CHECK(x.gradCopy() == 32.0 * call);
    CHECK(y.gradCopy() == 8.0);
  }
}

TEST_CASE("scratch: a leaf where a swept result stood before a rewind keeps its gradient") {
  Tape<double> tape;
  const V x(tape, 2.0);
  const auto start = tape.mark();
  backward(x * 2.0 * 2.0); // two results
  tape.rewind(start);
  const V y = x * 3.0, leaf(tape, 1.0); // one, and a leaf in place of the other
  Lists lists(2);
  lists.backward(leaf);
  backward(y);
  CHECK(leaf.gradCopy() == 1.0);
  CHECK(x.gradCopy() == 7.0);
}

// ---- sparse and dense ----------------------------------------------------------------------------

TEST_CASE("scratch: a root that reaches three of a hundred thousand records") {
  Tape<double> tape;
  const V x(tape, 2.0);
  const V first = x * x; // the oldest record
  V noise = x * 1.0;
  for (int i = 0; i < 50'000; ++i) noise = noise + x;
  const V middle = first * 3.0;
  for (int i = 0; i < 50'000; ++i) noise = noise - x;
  const V root = middle + first;
  Lists lists(3, 4, 3);
  for (int call = 1; call <= 3; ++call) {
    lists.backward(root);
    CHECK(x.gradCopy() == 16.0 * call);
    CHECK(first.gradCopy() == 4.0);
  }
  CHECK(lists.order == List{0, 50'001, 100'003});
  CHECK(noise.gradCopy() == 0.0);
  for (const auto& record : tape.records()) REQUIRE((record.word & record.visited) == 0);
}

TEST_CASE("scratch: from dense to sparse, the same gradients as backward") {
  for (int gap = 0; gap <= 40; ++gap) { // around the density at which the way of sorting changes
    Tape<double> tape, same;
    const auto build = [gap](Tape<double>& t) {
      const V x(t, 0.5), unused(t, 1.0);
      V y = x * 1.5;
      std::vector<V> some;
      for (int i = 0; i < 30; ++i) {
        V noise = unused * 2.0;
        for (int k = 0; k < gap; ++k) noise = noise + x;
        y = i % 2 == 0 ? sin(y) * y : y + tanh(y);
        if (i % 5 == 0) some.push_back(y);
      }
      return reduceSum(some) * y;
    };
    const V root = build(tape), reference = build(same);
    backward(reference);
    Lists lists(200);
    lists.backward(root);
    CHECK(gradientsOf(tape) == gradientsOf(same));
    CHECK(std::ranges::is_sorted(lists.order));
    CHECK(std::ranges::adjacent_find(lists.order) == lists.order.end());
    for (const auto& record : tape.records()) CHECK((record.word & record.visited) == 0);
  }
}

TEST_CASE("scratch: a small root between other roots of one tape") {
  Tape<double> tape;
  const V x(tape, 2.0), y(tape, 3.0);
  std::vector<V> roots;
  for (int i = 1; i <= 50; ++i) roots.push_back(x * y * static_cast<double>(i) + y);
  Lists lists(3, 8, 3);
  double sum = 0;
  for (std::size_t i = roots.size(); i-- != 0;) {
    lists.backward(roots[i]);
    sum += static_cast<double>(i + 1);
    CHECK(x.gradCopy() == 3 * sum);
    CHECK(lists.order == List{0, 1, 2});
  }
}
