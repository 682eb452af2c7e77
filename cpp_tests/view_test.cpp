// cpp_tests/view_test.cpp — views, and blocks under everything a tape and a sweep can do
// SPDX-License-Identifier: MIT
#include "block_support.hpp"
#include "support.hpp"

#include <burtorch/block/blocks.hpp>
#include <burtorch/restricted.hpp>
#include <burtorch/scratch.hpp>
#include <burtorch/view.hpp>

#include <array>
#include <atomic>
#include <limits>

using namespace burtorch;
using namespace block_support;

namespace {

using View64 = View<double>;
using Doubles = std::vector<double>;

Doubles numbersOf(const View64& view) { return {view.data().begin(), view.data().end()}; }
Doubles gradsOf(const View64& view) { return {view.gradCopy().begin(), view.gradCopy().end()}; }

constexpr double infinity = std::numeric_limits<double>::infinity();

// A small network of most blocks: a root, and the leaves it came from.
struct Network {
  View64 w, x, b, table;
  View64 hidden, logits;
  Value<double> loss;

  explicit Network(Tape<double>& tape) {
    const auto v = leaves<double>(tape, {{3, 4}, {2, 4}, {1, 3}, {5, 3}}, -1, 1);
    w = v[0];
    x = v[1];
    b = v[2];
    table = v[3];
    const std::vector<int> ids{1, 4, 1, 1}, targets{2, 0};
    hidden = tanh(affine(w, x, b)) * 0.5 + gather(table, std::span<const int>(ids).first(2));
    logits = layerNorm(matmul(hidden, w), x.row(0), x.row(1));
    loss = reduceMean(crossEntropy(logits, spanOf(targets)));
  }
};

Doubles gradientOfNetwork() {
  Tape<double> tape;
  const Network network(tape);
  backward(network.loss);
  const auto all = gradientsOf(tape);
  return {all.begin(), all.begin() + 38}; // the leaves
}

Doubles leafGradients(const Tape<double>& tape) {
  const auto all = gradientsOf(tape);
  return {all.begin(), all.begin() + 38};
}

TEST_CASE("data get no gradient, and nothing else changes") {
  Tape<double> tape;
  const std::array numbers{1.0, 2.0, 3.0, 4.0, 5.0, 6.0};
  const auto w = matrix(tape, 2, 3, numbers), x = matrix(tape, 2, 3, numbers);
  const auto gradients = [&](const auto& input) {
    tape.zeroGrad();
    backward(reduceSum(affine(w, input) * affine(w, input.slice(0, 2))));
    return std::vector(w.gradCopy().begin(), w.gradCopy().end());
  };
  const auto want = gradients(x);
  CHECK(std::ranges::any_of(x.gradCopy(), [](double g) { return g != 0; }));
  CHECK(gradients(x.constant()) == want);
  CHECK(std::ranges::all_of(x.gradCopy(), [](double g) { return g == 0; }));
  CHECK(x.constant().row(0).reshape(3, 1).isConstant());
  CHECK_FALSE((x.constant() * 2.0).isConstant()); // a result is no data
  auto kept = x.constant();
  tape.collect(kept);
  CHECK(kept.isConstant());
}

} // namespace

// ---- handles -------------------------------------------------------------------------------------

TEST_CASE("view: shapes, elements, rows, slices, segments") {
  Tape<double> tape;
  const Doubles numbers{1, 2, 3, 4, 5, 6};
  const View64 m = matrix(tape, 3, 2, spanOf(numbers)), v = vector(tape, spanOf(numbers));
  CHECK(m.rows() == 3);
  CHECK(m.cols() == 2);
  CHECK(m.size() == 6);
  CHECK(v.rows() == 1);
  CHECK(v.cols() == 6);
  CHECK(m(2, 0).dataCopy() == 5);
  CHECK(m[3].dataCopy() == 4);
  CHECK(numbersOf(m.row(1)) == Doubles{3, 4});
  CHECK(numbersOf(m.slice(1, 2)) == Doubles{3, 4, 5, 6});
  CHECK(m.slice(3, 0).size() == 0);
  CHECK(numbersOf(v.segment(2, 3)) == Doubles{3, 4, 5});
  CHECK(m.reshape(2, 3)(1, 0).dataCopy() == 4);
  CHECK(&m.tape() == &tape);
  m.data()[1] = 7; // a view owns nothing: every handle sees it
  CHECK(m.row(0)[1].dataCopy() == 7);
  CHECK(View64(tape, 2, 2)(1, 1).dataCopy() == 0);
}

TEST_CASE("view: what is not there is named") {
  Tape<double> tape;
  const View64 m(tape, 3, 2);
  CHECK(errorOf([&] { m[6]; }).what() == std::string("a view of 3×2 has no element 6"));
  CHECK(errorOf([&] { m(3, 0); }).what() == std::string("a view of 3×2 has no row 3"));
  CHECK(errorOf([&] { m(0, 2); }).what() == std::string("a view of 3×2 has no column 2"));
  CHECK(errorOf([&] { m.row(3); }).kind() == ErrorKind::badArgument);
  CHECK(errorOf([&] { m.slice(2, 2); }).kind() == ErrorKind::badArgument);
  CHECK(errorOf([&] { m.segment(5, 2); }).kind() == ErrorKind::badArgument);
  CHECK(errorOf([&] { m.reshape(4, 2); }).what() == std::string("a view of 3×2 can't become 4×2"));
  CHECK(errorOf([&] { View64::at(tape, 2, 1, 5); }).what() ==
        std::string("a view of 1×5 nodes from 2 on: the tape holds 6"));
}

TEST_CASE("view: too few or too many numbers leave the tape as it was") {
  Tape<double> tape;
  const Doubles numbers{1, 2, 3};
  CHECK(errorOf([&] { matrix(tape, 2, 2, spanOf(numbers)); }).what() ==
        std::string("a view of 2×2 numbers was given 3"));
  CHECK(tape.size() == 0);
}

TEST_CASE("view: the numbers may lie on the tape itself") {
  Tape<double> tape;
  View64 v = vector(tape, spanOf(Doubles{1, 2, 3}));
  for (int i = 0; i < 12; ++i) { // the tape grows now and then
    v = vector(tape, std::span<const double>(v.data()));
    REQUIRE(numbersOf(v) == Doubles{1, 2, 3});
    tape.leaves(std::size_t{1} << i);
  }
}

TEST_CASE("view: it is a range of Values") {
  static_assert(RangeOfValues<View64>);
  static_assert(std::random_access_iterator<View64::Iterator>);
  Tape<double> tape;
  const View64 x = vector(tape, spanOf(Doubles{1, 2, 3})),
               y = vector(tape, spanOf(Doubles{4, 5, 6}));
  const auto root = innerProduct(x, y) + reduceSum(x) + reduceMean(y);
  CHECK(root.dataCopy() == 32 + 6 + 5);
  backward(root);
  CHECK(gradsOf(x) == Doubles{5, 6, 7});
  CHECK(gradsOf(y)[0] == doctest::Approx(1 + 1.0 / 3));
  double sum = 0;
  for (const auto& each : x) sum += each.dataCopy();
  CHECK(sum == 6);
  CHECK((x.end() - x.begin()) == 3);
  CHECK(x.begin()[2].dataCopy() == 3);
  CHECK((*--x.end()).dataCopy() == 3);
  CHECK(x.begin() < x.end());
  CHECK(reduceSum(View64(tape, 0, 3)).dataCopy() == 0);
}

TEST_CASE("view: labels number the elements") {
  Tape<double> tape;
  const View64 x(tape, 1, 2), one(tape, 1, 1);
  x.setLabel("w");
  one.setLabel("b");
#if BURTORCH_LABELS
  CHECK(x[1].label() == "w[1]");
  CHECK(one[0].label() == "b");
#endif
}

#if BURTORCH_CHECKS
TEST_CASE("view: empty and stale handles are told") {
  Tape<double> tape;
  const View64 none;
  CHECK(none.isEmpty());
  CHECK(errorOf([&] { none.data(); }).kind() == ErrorKind::emptyHandle);
  CHECK(errorOf([&] { none[0]; }).kind() == ErrorKind::emptyHandle);
  CHECK(errorOf([&] { none.reshape(0, 0); }).kind() == ErrorKind::emptyHandle);
  CHECK(errorOf([&] { tanh(none); }).kind() == ErrorKind::emptyHandle);
  const auto mark = tape.mark();
  const View64 x(tape, 2, 2), y = tanh(x);
  tape.rewind(mark);
  CHECK_FALSE(x.isAlive());
  CHECK(errorOf([&] { x.data(); }).kind() == ErrorKind::staleHandle);
  const View64 again(tape, 4, 4); // where it was: still not it
  CHECK_FALSE(y.isAlive());
  CHECK(errorOf([&] { y + y; }).kind() == ErrorKind::staleHandle);
  CHECK(again.isAlive());
}
#endif

// ---- storage -------------------------------------------------------------------------------------

TEST_CASE("view: rewinding and recording anew gives the same, and takes no more memory") {
  Tape<double> tape;
  const View64 w = leaves<double>(tape, {{4, 4}}, -1, 1)[0];
  const auto mark = tape.mark();
  Doubles first;
  Extent capacity;
  for (int i = 0; i < 3; ++i) {
    backward(reduceSum(softmax(affine(w, tanh(w)))));
    const Doubles now = gradsOf(w);
    if (i == 0) first = now, capacity = tape.capacity();
    tape.rewind(mark);
    tape.zeroGrad();
    CHECK(now == first);
    CHECK(tape.capacity() == capacity);
  }
}

TEST_CASE("view: dropNewest drops a whole block and nothing else") {
  Tape<double> tape;
  const View64 x(tape, 2, 3);
  const auto a = x[0] * 5.0; // holds a constant
  const Extent before = tape.used();
  tanh(x); // keeps no numbers
  CHECK(tape.newest() == 6);
  tape.dropNewest();
  CHECK(tape.used() == before);
  const std::vector<int> targets{0, 1};
  crossEntropy(x, spanOf(targets)); // keeps six
  CHECK(tape.newest() == 2);
  tape.dropNewest();
  CHECK(tape.used() == before);
  x * 3.0;
  tape.dropNewest();
  CHECK(tape.used() == before);
  CHECK(tape.newest() == 1);
  const auto b = x[1] * 7.0;
  backward(a + b);
  CHECK(x[0].gradCopy() == 5);
  CHECK(x[1].gradCopy() == 7);
}

TEST_CASE("view: collect keeps whole blocks with all they need") {
  Tape<double> tape;
  Value<double> junk(tape, 1.0);
  for (int i = 0; i < 19; ++i) junk = junk * 2.0;
  Network network(tape);
  junk = junk + network.loss;
  [[maybe_unused]] View64 unused = softmax(network.x);
  backward(network.loss);
  const Doubles w = gradsOf(network.w), hidden = gradsOf(network.hidden);
  const Doubles values = numbersOf(network.logits);
  const std::size_t before = tape.size();
  View64 part = network.logits.row(1).segment(1, 2); // some nodes of a block
  tape.collect(network.w, network.x, network.b, network.table, network.hidden, network.logits,
               network.loss, part);
  CHECK(tape.size() < before - 20);
  CHECK(gradsOf(network.w) == w);
  CHECK(gradsOf(network.hidden) == hidden);
  CHECK(numbersOf(network.logits) == values);
  CHECK(part[0].sysGetRawNodeIndex() == network.logits(1, 1).sysGetRawNodeIndex());
  tape.zeroGrad();
  backward(network.loss); // operands were renamed, kept numbers moved along
  CHECK(gradsOf(network.w) == w);
  CHECK(gradsOf(network.hidden) == hidden);
  // A single node of a block keeps the block.
  Value<double> one = network.logits(0, 1);
  tape.collect(one);
  CHECK(tape.records().back().results() == 8);
  backward(one);
  View64 first = View64::at(tape, 0, 1, 1);
  CHECK(first.gradCopy()[0] != 0);
#if BURTORCH_CHECKS
  CHECK(errorOf([&] { tape.collect(unused); }).kind() == ErrorKind::staleHandle);
#endif
}

TEST_CASE("view: collect takes views of nothing, and the same view twice") {
  Tape<double> tape;
  View64 x(tape, 2, 2);
  tanh(x);
  View64 nothing(tape, 0, 3);
  View64 twice = x;
  std::vector<View64> list{x, twice};
  tape.collect(x, twice, nothing, list);
  CHECK(tape.size() == 4);
  CHECK(nothing.rows() == 0);
  CHECK(nothing.cols() == 3);
  CHECK(nothing.isAlive());
  CHECK(x[3].dataCopy() == 0);
  CHECK(list[1].sysGetRawNodeIndex() == 0);
  View64 empty;
  CHECK(errorOf([&] { tape.collect(empty); }).kind() == ErrorKind::emptyHandle);
}

TEST_CASE("view: blocks in borrowed memory, which does not grow") {
  const Extent extent{64, 8, 16, 128};
  std::vector<std::byte> buffer(Tape<float>::bytesFor(extent));
  Tape<float> tape(std::span<std::byte>(buffer), extent);
  const View<float> x(tape, 4, 4);
  const View<float> y = softmax(x);
  const Extent before = tape.used();
  CHECK(errorOf([&] {
          for (int i = 0; i < 5; ++i) tanh(y);
        }).kind() == ErrorKind::capacity);
  CHECK(tape.used().nodes <= 64);
  CHECK(fits(before, tape.used()));
  backward(y[0]);
  CHECK(double(x.gradCopy()[0]) == doctest::Approx(0.25 * 0.75));
}

TEST_CASE_TEMPLATE("view: any index type", Index, std::uint16_t, std::uint64_t) {
  Tape<double, Index> tape;
  const View<double, Index> w(tape, 2, 3), x(tape, 4, 3);
  for (auto& each : x.data()) each = 2;
  const std::vector<int> ids{3, 0};
  backward(reduceSum(affine(w, gather(x, spanOf(ids)))));
  CHECK(w.gradCopy()[0] == 4);
}

// ---- sweeps --------------------------------------------------------------------------------------

TEST_CASE("view: all ways to a gradient agree where blocks are on the tape") {
  const Doubles want = gradientOfNetwork();
  CHECK(std::ranges::any_of(want, [](double g) { return g != 0; }));
  SUBCASE("backwardReaching") {
    Tape<double> tape;
    const Network network(tape);
    backwardReaching(network.loss);
    CHECK(leafGradients(tape) == want);
  }
  SUBCASE("backwardUntil") {
    Tape<double> tape;
    const Network network(tape);
    CHECK(backwardUntil(
        network.loss, [] { return false; }, 2));
    CHECK(leafGradients(tape) == want);
    CHECK_FALSE(backwardUntil(network.loss, std::atomic<bool>(true), 1));
  }
  SUBCASE("backwardWithScratchStorage") {
    Tape<double> tape;
    const Network network(tape);
    softmax(network.logits); // not below the root
    std::vector<std::uint32_t> order, nodes, stack;
    for (auto* list : {&order, &nodes, &stack}) list->reserve(64);
    backwardWithScratchStorage(network.loss, order, nodes, stack);
    CHECK(leafGradients(tape) == want);
    CHECK(nodes.size() == 38);
    tape.zeroGrad();
    backwardWithScratchStorage<Reuse::orderAndLeaves>(network.loss, order, nodes, stack);
    CHECK(leafGradients(tape) == want);
  }
  SUBCASE("several calls") {
    Tape<double> tape;
    const Network network(tape);
    for (int i = 0; i < 3; ++i) backward(network.loss);
    for (std::size_t i = 0; i < want.size(); ++i)
      CHECK(leafGradients(tape)[i] == doctest::Approx(3 * want[i]));
    Tape<double> fresh;
    const Network other(fresh);
    backward(other.loss);
    CHECK(gradsOf(network.hidden) == gradsOf(other.hidden)); // results hold those of the last call
  }
}

TEST_CASE("view: a root inside a block, and two roots") {
  Tape<double> tape;
  const View64 w = leaves<double>(tape, {{3, 3}}, -1, 1)[0];
  const View64 y = matmul(w, w);
  const View64 after = tanh(y); // newer than the root: untouched
  const auto want = [&](std::size_t i, std::size_t j, std::size_t p, std::size_t q) {
    return (p == i ? w(q, j).dataCopy() : 0) + (q == j ? w(i, p).dataCopy() : 0);
  };
  backward(y(1, 0));
  for (std::size_t p = 0; p < 3; ++p)
    for (std::size_t q = 0; q < 3; ++q)
      CHECK(w(p, q).gradCopy() == doctest::Approx(want(1, 0, p, q)));
  CHECK(gradsOf(after) == Doubles(9, 0.0));
  backward(y(2, 2), 2.0); // leaves accumulate, the other root's gradient is gone
  for (std::size_t p = 0; p < 3; ++p)
    for (std::size_t q = 0; q < 3; ++q)
      CHECK(w(p, q).gradCopy() == doctest::Approx(want(1, 0, p, q) + 2 * want(2, 2, p, q)));
  CHECK(y(1, 0).gradCopy() == 0);
  CHECK(y(2, 2).gradCopy() == 2);
}

TEST_CASE("view: gradients written through a view do not leak into the next sweep") {
  Tape<double> tape;
  const View64 x(tape, 1, 3), y = x * 2.0;
  for (auto& g : y.grads()) g = 100;
  backward(y[1]);
  CHECK(gradsOf(x) == Doubles{0, 2, 0});
}

TEST_CASE("view: blocks that the root does not depend on leave no trace, NaN or not") {
  Tape<double> tape;
  const View64 x = vector(tape, spanOf(Doubles{0, infinity, 1}));
  const View64 w(tape, 3, 3);
  logarithm(x) / x;
  softmax(x);
  affine(w, x);
  layerNorm(x, x, x);
  backward(reduceSum(w * 2.0));
  CHECK(gradsOf(x) == Doubles(3, 0.0));
  CHECK(gradsOf(w) == Doubles(9, 2.0));
}

TEST_CASE("view: restricted to some leaves, the others keep their gradients") {
  const Doubles want = gradientOfNetwork();
  Tape<double> tape;
  const Network network(tape);
  for (auto& g : network.x.grads()) g = 9;
  for (auto& g : network.table.grads()) g = 9;
  std::vector<Value<double>> wanted(network.w.begin(), network.w.end());
  wanted.insert(wanted.end(), network.b.begin(), network.b.end());
  backwardRestricted(network.loss, wanted);
  CHECK(gradsOf(network.w) == Doubles(want.begin(), want.begin() + 12));
  CHECK(gradsOf(network.b) == Doubles(want.begin() + 20, want.begin() + 23));
  CHECK(gradsOf(network.x) == Doubles(8, 9.0));
  CHECK(gradsOf(network.table) == Doubles(15, 9.0));
  tape.zeroGrad();
  backwardRestricted(network.loss, network.table); // a view is a range of Values
  CHECK(gradsOf(network.table) == Doubles(want.begin() + 23, want.end()));
  CHECK(gradsOf(network.w) == Doubles(12, 0.0));
}

TEST_CASE("view: an operand of a block takes part as a whole, else nothing is touched") {
  Tape<double> tape;
  const Network network(tape);
  const auto loss = network.loss + reduceSum(network.w); // swept before the block
  for (auto& g : network.w.grads()) g = 4;
  const Error error = errorOf([&] { backwardRestricted(loss, network.w.row(1)); });
  CHECK(error.kind() == ErrorKind::badArgument);
  CHECK(error.what() ==
        std::string("backwardRestricted: of an operand of affine either all nodes or none"));
  CHECK(gradsOf(network.w) == Doubles(12, 4.0));
}

TEST_CASE("view: restricted sweeps of blocks with many operands") {
  Tape<double> tape;
  std::vector<View64> parts;
  for (int i = 0; i < 70; ++i) parts.emplace_back(tape, 1, 1);
  const View64 w(tape, 1, 70);
  for (auto& each : w.data()) each = 3;
  const auto y = affine(w, spanOf(parts));
  std::vector<Value<double>> all;
  for (const auto& part : parts) all.push_back(part[0]);
  backwardRestricted(y[0], all); // more operands than bits: fine, as long as they all take part
  CHECK(parts[69].gradCopy()[0] == 3);
  CHECK(errorOf([&] { backwardRestricted(y[0], std::span(all).first(65)); }).kind() ==
        ErrorKind::badArgument);
}
