// cpp_tests/tape_test.cpp — storage: growth, marks, collect, borrowed memory, index widths, current tape, labels
// SPDX-License-Identifier: MIT
#include "support.hpp"

#include <burtorch/burtorch.hpp>
#include <burtorch/restricted.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

// Sanitizers and unoptimized builds make a tenth of the longest chain: still far deeper than any
// stack.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
#define SHORTER_CHAIN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SHORTER_CHAIN 1
#endif
#endif
#ifndef SHORTER_CHAIN
#define SHORTER_CHAIN 0
#endif

using namespace burtorch;

namespace {

using V = Value<double>;

bool contains(const Error& e, const std::string& part) {
  return std::string(e.what()).find(part) != std::string::npos;
}

// Everything one can see of a tape without changing it.
template <class TapeType> struct Contents {
  Extent used;
  std::vector<double> values, grads, constants;
  std::vector<std::size_t> records, operands;

  explicit Contents(const TapeType& tape)
      : used(tape.used()), values(tape.values().begin(), tape.values().end()),
        grads(tape.grads().begin(), tape.grads().end()),
        constants(tape.constants().begin(), tape.constants().end()),
        operands(tape.operands().begin(), tape.operands().end()) {
    for (const auto& r : tape.records())
      records.insert(records.end(), {r.result, r.a, r.b, r.word});
  }
  bool operator==(const Contents&) const = default;
};

// A caller's buffer of exactly so many bytes; a write past either end is ASan's to find.
struct Buffer {
  explicit Buffer(std::size_t bytes, std::size_t offset = 0)
      : memory(new std::byte[bytes + offset]), span(memory + offset, bytes) {}
  ~Buffer() { delete[] memory; }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  std::byte* memory;
  std::span<std::byte> span;
};

} // namespace

// ---- owned memory --------------------------------------------------------------------------------

TEST_CASE("tape: an owned tape grows and keeps values, handles and gradients") {
  Tape<double> tape;
  CHECK(tape.size() == 0);
  CHECK(tape.ownsMemory());
  const V x(tape, 3.0), y(tape, 5.0);
  backward(x * y);
  std::vector<V> chain{x};
  for (int i = 0; i < 5000; ++i) {
    const Extent before = tape.capacity();
    chain.push_back(i % 2 == 0 ? chain.back() + y : chain.back() - y);
    CHECK(fits(before, tape.capacity()));
    CHECK(fits(tape.used(), tape.capacity()));
  }
  for (std::size_t i = 0; i < chain.size(); ++i)
    CHECK(chain[i].dataCopy() == (i % 2 == 0 ? 3.0 : 8.0));
  CHECK(x.gradCopy() == 5.0);
  CHECK(y.gradCopy() == 3.0);
  CHECK(tape.size() == 2 + 1 + 5000);
  CHECK(tape.records().size() == 1 + 5000);
}

TEST_CASE("tape: every array grows on its own, in the middle of any operation") {
  Tape<double> tape{reserve(Extent{1, 1, 1, 1})};
  std::vector<V> x;
  for (int i = 0; i < 40; ++i) x.emplace_back(tape, i);
  double expected = 0;
  V sum = x[0] * 0.0;
  for (int i = 0; i < 1500; ++i) {
    const V a = x[static_cast<std::size_t>(i % 40)], b = x[static_cast<std::size_t>((i * 7) % 40)];
    sum = sum + clamp(a * 2.0, -1000.0, 1000.0) + reduceSum({b, a, b}) +
          innerProduct({a, b}, {b, a}) + innerProductWithBias({a}, {b}, a) + 1.0 / (1.0 + a * 0.0);
    expected += 2 * a.dataCopy() + (2 * b.dataCopy() + a.dataCopy()) +
                2 * a.dataCopy() * b.dataCopy() + a.dataCopy() * b.dataCopy() + a.dataCopy() + 1;
  }
  CHECK(sum.dataCopy() == expected);
}

TEST_CASE("tape: reserved memory is there from the start and is not given back") {
  Tape<float> tape{reserve(1000)};
  CHECK(tape.capacity().nodes == 1000);
  CHECK(tape.size() == 0);
  const float* const where = tape.values().data();
  for (int i = 0; i < 1000; ++i) tape.leaf(1.0f);
  CHECK(tape.values().data() == where);
  tape.clear();
  CHECK(tape.capacity().nodes == 1000);
  CHECK(tape.values().data() == where);
}

TEST_CASE("tape: after the first pass of a loop that rewinds, no array moves") {
  Tape<double> tape;
  std::vector<V> p;
  for (int i = 0; i < 10; ++i) p.emplace_back(tape, i);
  const auto start = tape.mark();
  Extent capacity;
  const void* values = nullptr;
  for (int pass = 0; pass < 20; ++pass) {
    V sum = p[0] * 1.0;
    for (int i = 0; i < 2000; ++i) sum = sum + 2.0 * p[1] + reduceSum({p[3], p[2]});
    backward(sum);
    if (pass == 0) {
      capacity = tape.capacity();
      values = tape.values().data();
    }
    CHECK(tape.capacity() == capacity);
    CHECK(tape.values().data() == values);
    tape.rewind(start);
  }
  CHECK(p[1].gradCopy() == 20 * 2000 * 2.0);
}

TEST_CASE("tape: a leaf made from a number that lies on the tape itself") {
  Tape<double> tape{reserve(4)};
  for (int i = 0; i < 4; ++i) tape.leaf(i + 7.0);
  const double& first = std::as_const(tape).values()[0];
  const auto copy = tape.leaf(first); // grows: `first` dies in the middle
  CHECK(tape.values()[copy] == 7.0);
  while (tape.size() < tape.capacity().nodes) tape.leaf(0.0);
  CHECK(V(tape, std::as_const(tape).values()[1]).dataCopy() == 8.0);
}

TEST_CASE("tape: 64-byte aligned arrays") {
  const auto isAligned = [](const void* p) {
    return reinterpret_cast<std::uintptr_t>(p) % 64 == 0;
  };
  Tape<float> tape;
  for (int i = 0; i < 1000; ++i) {
    tape.leaf(1.0f);
    CHECK(isAligned(tape.values().data()));
    CHECK(isAligned(tape.grads().data()));
  }
}

// ---- marks ---------------------------------------------------------------------------------------

TEST_CASE("tape: rewind drops what was recorded since the mark, in all four arrays") {
  Tape<double> tape;
  const V x(tape, 2.0), y(tape, 3.0);
  const V kept = reduceSum({y, x}) * 4.0;
  backward(kept);
  const Contents before(tape);
  const auto m = tape.mark();
  const V dropped = innerProduct({y, x}, {x, y}) * 5.0 + V(tape, 9.0);
  CHECK(dropped.dataCopy() == 69.0);
  tape.rewind(m);
  CHECK(Contents(tape) == before);
}

TEST_CASE("tape: nested marks, and one mark rewound to many times") {
  Tape<double> tape;
  const V x(tape, 2.0);
  const auto outer = tape.mark();
  const V a = x * x;
  const auto inner = tape.mark();
  for (int i = 1; i <= 50; ++i) {
    const V b = a * static_cast<double>(i);
    backward(b);
    CHECK(b.dataCopy() == 4.0 * i);
    tape.rewind(inner);
    CHECK(tape.size() == 2);
  }
  CHECK(x.gradCopy() == 4.0 * 50 * 51 / 2);
  CHECK(a.dataCopy() == 4.0);
  tape.rewind(inner); // nothing to drop
  CHECK(tape.size() == 2);
  tape.rewind(outer);
  CHECK(tape.size() == 1);
  tape.rewind(outer);
  CHECK(tape.size() == 1);
}

TEST_CASE("tape: a new node where a rewound one stood starts with gradient 0") {
  Tape<double> tape;
  const V x(tape, 2.0);
  const auto m = tape.mark();
  backward(x * 3.0);
  tape.rewind(m);
  const V leaf(tape, 1.0);
  CHECK(leaf.gradCopy() == 0.0);
  tape.rewind(m);
  const V product = x * 5.0;
  CHECK(product.gradCopy() == 0.0);
  backward(product);
  CHECK(x.gradCopy() == 8.0);
}

TEST_CASE("tape: a mark ahead of the tape is refused, and the tape stays as it is") {
  Tape<double> tape;
  const V x(tape, 2.0);
  const auto early = tape.mark();
  const V y = x * 3.0;
  const auto late = tape.mark();
  CHECK(y.dataCopy() == 6.0);
  tape.rewind(early);
  const Contents before(tape);
  const Error e = errorOf([&] { tape.rewind(late); });
  CHECK(e.kind() == ErrorKind::badArgument);
  CHECK(contains(e, "1 nodes"));
  CHECK(Contents(tape) == before);
  const V other(tape, 1.0); // as many nodes, but fewer records and constants
  CHECK(errorOf([&] { tape.rewind(late); }).kind() == ErrorKind::badArgument);
  CHECK(other.dataCopy() == 1.0);
}

#if BURTORCH_CHECKS
TEST_CASE("tape: a mark of another tape is refused") {
  Tape<double> tape, other;
  const V x(tape, 2.0), y(other, 2.0);
  const auto m = other.mark();
  CHECK(errorOf([&] { tape.rewind(m); }).kind() == ErrorKind::badArgument);
  CHECK(tape.size() == 1);
  CHECK(errorOf([&] { tape.rewind(Tape<double>::Mark{}); }).kind() == ErrorKind::badArgument);
}

TEST_CASE("tape: a mark taken before a collect is refused") {
  Tape<double> tape;
  V x(tape, 2.0), y(tape, 3.0);
  const auto m = tape.mark();
  tape.collect(y);
  V z = y * y;
  CHECK(errorOf([&] { tape.rewind(m); }).kind() == ErrorKind::badArgument);
  CHECK(z.dataCopy() == 9.0);
}

// The mark's four counters belong to a graph that is gone. Here it has one constant where the graph
// of today has two below the same node: a third number would overwrite the second one's place.
TEST_CASE("tape: a mark whose position was rewound and recorded anew is refused") {
  Tape<double> tape;
  const V x(tape, 2.0);
  const auto outer = tape.mark();
  {
    const V a = x * 10.0, b = x + x;
    CHECK(a.dataCopy() + b.dataCopy() == 24.0);
  }
  const auto inner = tape.mark();
  tape.rewind(outer);
  const V a = x * 3.0, b = a * 5.0;
  CHECK(errorOf([&] { tape.rewind(inner); }).kind() == ErrorKind::badArgument);
  const V c = b * 100.0;
  backward(c);
  CHECK(x.gradCopy() == 1500.0);
}
#endif

TEST_CASE("tape: results of forgotten operations are leaves") {
  Tape<double> tape;
  const V x(tape, 3.0);
  const V before = x * x + 1.0;
  const Extent from = tape.used();
  const std::vector<V> some{x, before, x};
  const V y = before * 2.0, z = reduceSum(some) + y, c = clamp(z, 0.0, 5.0);
  const Extent then = tape.used();
  CHECK(then.operands > from.operands);
  CHECK(then.constants > from.constants);
  tape.forgetOperations(from);
  CHECK(tape.used() == Extent{then.nodes, from.records, from.constants, from.operands});
  CHECK(y.dataCopy() == 20.0);
  CHECK(c.dataCopy() == 5.0);
  for (const V& v : {y, z, c}) CHECK(v.operation() == Op::eLeaf);
  CHECK(before.operation() == Op::eBinaryAdd);
  const V root = y * x + before * z; // both parts of the tape go on
  backward(root);
  CHECK(x.gradCopy() == 20.0 + 36.0 * 6.0);
  CHECK(y.gradCopy() == 3.0);
  CHECK(c.gradCopy() == 0.0);
  const Extent now = tape.used();
  tape.forgetOperations({now.nodes, now.records + 1, now.constants, now.operands}); // dropped since
  CHECK(tape.used() == now);
  V kept = root;
  const double number = root.dataCopy();
  tape.collect(kept);
  CHECK(kept.dataCopy() == number);
}

TEST_CASE("tape: clear forgets all nodes and keeps the memory") {
  Tape<double> tape;
  for (int round = 0; round < 3; ++round) {
    const V x(tape, 3.0);
    backward(clamp(reduceSum({x * x, x}), -100.0, 100.0));
    CHECK(x.gradCopy() == 7.0);
    CHECK(x.sysGetRawNodeIndex() == 0);
    const Extent capacity = tape.capacity();
    tape.clear();
    CHECK(tape.used() == Extent{});
    CHECK(tape.values().empty());
    CHECK(tape.records().empty());
    CHECK(tape.capacity() == capacity);
  }
  Tape<double> fresh;
  fresh.clear();
  CHECK(fresh.size() == 0);
}

// ---- collect -------------------------------------------------------------------------------------

TEST_CASE("tape: collect squeezes out what is not reached and keeps order, values and gradients") {
  Tape<double> tape;
  V unused1(tape, 100.0);
  V x(tape, 2.0);
  V unused2 = unused1 * x;
  V y(tape, 3.0);
  V z = x * y;
  V unused3 = log(unused2);
  V w = z - x;
  backward(w);
  const V copy = w;
  tape.collect(w, x);
  CHECK(tape.used() == Extent{4, 2, 0, 0});
  CHECK(x.sysGetRawNodeIndex() == 0);
  CHECK(w.sysGetRawNodeIndex() == 3);
  const std::vector<double> values(tape.values().begin(), tape.values().end());
  CHECK(values == std::vector<double>{2, 3, 6, 4});
  const auto grads = std::as_const(tape).grads();
  CHECK(std::vector<double>(grads.begin(), grads.end()) == std::vector<double>{2, 2, 1, 1});
  CHECK(w.operation() == Op::eBinarySub);
  CHECK(x.operation() == Op::eLeaf);
  backward(w);
  CHECK(x.gradCopy() == 4.0);              // leaves go on accumulating
  CHECK(V::at(tape, 2).gradCopy() == 1.0); // other nodes are not counted twice
  tape.rewind(tape.mark());
#if BURTORCH_CHECKS
  CHECK(errorOf([&] { copy.dataCopy(); }).kind() == ErrorKind::staleHandle);
  CHECK(errorOf([&] { z.dataCopy(); }).kind() == ErrorKind::staleHandle);
  CHECK(errorOf([&] { (void)(unused1 + x); }).kind() == ErrorKind::staleHandle);
  CHECK(errorOf([&] { backward(unused3); }).kind() == ErrorKind::staleHandle);
#else
  static_cast<void>(copy);
  static_cast<void>(unused3);
#endif
}

TEST_CASE("tape: collect updates handles, ranges of handles and many handles of one node") {
  Tape<double> tape;
  std::vector<V> all;
  for (int i = 0; i < 100; ++i) all.emplace_back(tape, i);
  V one = all[97];
  std::vector<V> some{all[90], all[10], all[50], all[10]}; // any order, repeated
  std::array<V, 2> pair{all[20], all[97]};
  V plain[2] = {all[30], all[31]};
  std::vector<V> none;
  const std::span<V> part = std::span(some).first(2);
  auto keepPart = part;
  std::vector<V> rest(some.begin() + 2, some.end());
  tape.collect(one, keepPart, rest, pair, plain, none);
  CHECK(tape.size() == 7); // 10 20 30 31 50 90 97
  CHECK(one.dataCopy() == 97);
  CHECK(some[0].dataCopy() == 90);
  CHECK(some[1].dataCopy() == 10);
  CHECK(rest[0].dataCopy() == 50);
  CHECK(rest[1].dataCopy() == 10);
  CHECK(pair[0].dataCopy() == 20);
  CHECK(pair[1].sysGetRawNodeIndex() == 6);
  CHECK(plain[0].sysGetRawNodeIndex() == 2);
  CHECK(plain[1].dataCopy() == 31);
  for (std::size_t i = 1; i < tape.size(); ++i) CHECK(tape.values()[i - 1] < tape.values()[i]);
}

TEST_CASE("tape: one and the same handle given twice to collect") {
  Tape<double> tape;
  V unused(tape, 0.0), x(tape, 1.0), y(tape, 2.0);
  tape.collect(y, y);
  CHECK(tape.size() == 1);
  CHECK(y.dataCopy() == 2.0);
}

TEST_CASE("tape: collect of nothing empties the tape; collect of everything changes nothing") {
  Tape<double> tape;
  V x(tape, 2.0);
  V y = clamp(x, 0.0, 1.0) + 3.0;
  V z = reduceSum({y, x});
  const Contents before(tape);
  tape.collect(z);
  CHECK(Contents(tape) == before);
  tape.collect(z);
  CHECK(Contents(tape) == before);
  tape.collect();
  CHECK(tape.used() == Extent{});
  const V again(tape, 1.0);
  CHECK(again.dataCopy() == 1.0);
  Tape<double> fresh;
  fresh.collect();
  CHECK(fresh.size() == 0);
}

TEST_CASE("tape: runs stay runs, numbers and operand lists move with their operations") {
  Tape<double> tape;
  std::vector<V> unused, x;
  for (int i = 0; i < 3; ++i) unused.emplace_back(tape, -1.0);
  for (int i = 0; i < 4; ++i) x.emplace_back(tape, i + 2.0);
  // Before each operation that stays, one of the same kind that goes.
  const auto build = [&](const std::vector<V>& v) {
    std::vector<V> out;
    out.push_back(v[0] * 10.0);
    out.push_back(10.0 / v[1]);
    out.push_back(clamp(v[2], -20.0, 20.0));
    out.push_back(clamp(v[2], 0.0, 0.5));
    out.push_back(reduceSumOfSquares(std::span(v).first(3))); // a run
    out.push_back(reduceMul({v[2], v[0], v[1]}));             // a list
    out.push_back(innerProduct(std::span(v).first(2), std::span(v).last(2)));
    out.push_back(innerProduct({v[2], v[0]}, {v[1], v[1]}));
    out.push_back(innerProductWithBias(std::span(v).first(2), std::span(v).last(2), v[1]));
    out.push_back(innerProductWithBias({v[2], v[0]}, {v[1], v[0]}, v[2]));
    out.push_back(reduceSum(std::vector<V>{v[1]}));
    out.push_back(innerProductWithBias(std::vector<V>{}, std::vector<V>{}, v[1]));
    return out;
  };
  std::vector<V> kept;
  const std::size_t kinds = build(unused).size();
  for (std::size_t k = 0; k < kinds; ++k) {
    static_cast<void>(build(unused)); // all of it goes
    const auto all = build(x);
    kept.push_back(all[k]); // one of it stays
  }
  V root = reduceSum(kept);
  std::vector<Form> forms;
  for (const V& v : kept)
    forms.push_back(tape.records()[tape.recordOf(v.sysGetRawNodeIndex())].form());
  backward(root);
  const auto gradients = [&] {
    std::vector<double> g;
    for (const V& v : x) g.push_back(v.gradCopy());
    for (const V& v : kept) g.push_back(v.gradCopy());
    return g;
  };
  const auto before = gradients();
  const double value = root.dataCopy();
  tape.collect(root, x, kept);
  CHECK(tape.size() == 4 + kinds + 1);
  CHECK(tape.used().constants == 1 + 1 + 2 + 2);
  CHECK(tape.used().operands == 3 + 2 + 4 + 3 + 5 + 3 + kinds); // the root lists all kinds
  CHECK(root.dataCopy() == value);
  for (std::size_t k = 0; k < kinds; ++k)
    CHECK(tape.records()[tape.recordOf(kept[k].sysGetRawNodeIndex())].form() == forms[k]);
  CHECK(gradients() == before);
  tape.zeroGrad();
  backward(root);
  CHECK(gradients() == before);
}

TEST_CASE("tape: operations of no operands survive a collect that moves everything") {
  Tape<double> tape;
  V unused(tape, 1.0), b(tape, 5.0);
  const std::vector<V> none;
  const TapeScope scope(tape);
  V zero = reduceSum(none), one = reduceMul(none), dot = innerProduct(none, none);
  V bias = innerProductWithBias(none, none, b);
  V sum = zero + one + dot + bias;
  tape.collect(sum, b);
  CHECK(sum.dataCopy() == 6.0);
  CHECK(tape.size() == 1 + 4 + 3);
  backward(sum);
  CHECK(b.gradCopy() == 1.0);
}

TEST_CASE("tape: a loop that builds and collects runs in constant memory") {
  Tape<double> tape;
  V x(tape, 1.0);
  std::size_t settled = 0;
  for (int i = 0; i < 300; ++i) {
    V y = x * 3.0;
    for (int k = 0; k < 20; ++k) y = y - x;
    x = V(tape, x.dataCopy() + y.dataCopy() * 0.0);
    tape.collect(x);
    CHECK(tape.size() == 1);
    if (i == 0) settled = tape.capacity().nodes;
    CHECK(tape.capacity().nodes == settled);
  }
  CHECK(x.dataCopy() == 1.0);
}

TEST_CASE("tape: collect with the caller's work space, on borrowed memory") {
  const Extent extent{40, 30, 20, 20};
  const Buffer buffer(Tape<double>::bytesFor(extent));
  Tape<double> tape(buffer.span, extent);
  V unused(tape, 1.0), x(tape, 2.0);
  V dropped = unused * 3.0;
  V y = reduceSum({x * 5.0, x, x});
  const Contents before(tape);
  CHECK(errorOf([&] { tape.collect(y); }).kind() == ErrorKind::badArgument);
  std::vector<Tape<double>::Index> work(tape.size());
  const Error e = errorOf([&] { tape.collect(std::span(work).first(work.size() - 1), y); });
  CHECK(e.kind() == ErrorKind::badArgument);
  CHECK(contains(e, std::to_string(tape.size())));
  CHECK(Contents(tape) == before);
  CHECK(dropped.dataCopy() == 3.0);
  tape.collect(std::span(work), y, x);
  CHECK(tape.size() == 3);
  CHECK(y.dataCopy() == 14.0);
  backward(y);
  CHECK(x.gradCopy() == 7.0);
  std::span<Tape<double>::Index> named(work);
  tape.collect(named, x);
  CHECK(tape.size() == 1);
  CHECK(x.dataCopy() == 2.0);
}

TEST_CASE("tape: collect refuses handles of another tape and leaves the tape as it was") {
  Tape<double> tape, other;
  V unused(tape, 1.0), x(tape, 2.0), foreign(other, 3.0), empty;
  const Contents before(tape);
  CHECK(errorOf([&] { tape.collect(x, foreign); }).kind() == ErrorKind::differentTapes);
  CHECK_THROWS_AS(tape.collect(x, empty), Error);
  CHECK(Contents(tape) == before);
  CHECK(x.dataCopy() == 2.0);
  CHECK(foreign.dataCopy() == 3.0);
#if BURTORCH_CHECKS
  const auto m = tape.mark();
  V stale = x * 2.0;
  tape.rewind(m);
  CHECK(errorOf([&] { tape.collect(x, stale); }).kind() == ErrorKind::staleHandle);
  CHECK(Contents(tape) == before);
#endif
}

#if BURTORCH_CHECKS
TEST_CASE("tape: after a collect no old handle reads a new node") {
  Tape<double> tape;
  std::vector<V> old;
  for (int i = 0; i < 10; ++i) old.emplace_back(tape, i);
  V kept = old[7];
  tape.collect(kept);
  for (int i = 0; i < 20; ++i) tape.leaf(-1.0); // fill all places the old handles name
  for (const V& v : old) CHECK(errorOf([&] { v.dataCopy(); }).kind() == ErrorKind::staleHandle);
  CHECK(kept.dataCopy() == 7.0);
}
#endif

// ---- borrowed memory -----------------------------------------------------------------------------

TEST_CASE("tape: borrowed memory is used and never grows") {
  const Extent extent{8, 4, 4, 4};
  const Buffer buffer(Tape<double>::bytesFor(extent), 1); // misaligned on purpose
  Tape<double> tape(buffer.span, extent);
  CHECK_FALSE(tape.ownsMemory());
  CHECK(tape.capacity() == extent);
  const V x(tape, 3.0);
  backward(x * x + 1.0);
  CHECK(x.gradCopy() == 6.0);
  const auto inside = [&](const void* p) {
    return p >= buffer.span.data() && p < buffer.span.data() + buffer.span.size();
  };
  CHECK(inside(tape.values().data()));
  CHECK(inside(tape.grads().data()));
  CHECK(inside(tape.records().data()));
  CHECK(inside(tape.constants().data()));
  CHECK(reinterpret_cast<std::uintptr_t>(tape.values().data()) % 64 == 0);
}

namespace {

// A tape that is full in one array: the operation fails, the tape is exactly as it was and still
// works.
template <class Operation>
void runsOut(const Extent& extent, const std::string& needed, const std::string& has,
             Operation operation) {
  CAPTURE(needed);
  const Buffer buffer(Tape<double>::bytesFor(extent), 3);
  Tape<double> tape(buffer.span, extent);
  const V x(tape, 2.0), y(tape, 3.0);
  const V root = reduceSum({y * x, x}) * 4.0;
  backward(root);
  const Contents before(tape);
  for (int attempt = 0; attempt < 3; ++attempt) {
    const Error e = errorOf([&] { operation(x, y); });
    CHECK(e.kind() == ErrorKind::capacity);
    CHECK(contains(e, needed));
    CHECK(contains(e, has));
    CHECK(Contents(tape) == before);
  }
  CHECK(root.dataCopy() == 32.0);
  tape.zeroGrad();
  backward(root);
  CHECK(x.gradCopy() == 16.0);
  CHECK(y.gradCopy() == 8.0);
}

} // namespace

TEST_CASE(
    "tape: borrowed memory that runs out leaves the tape as it was and says what was needed") {
  // The graph of runsOut uses 5 nodes, 3 records, 1 constant, 2 operands.
  const Extent plenty{50, 50, 50, 50};
  Extent tight = plenty;
  tight.nodes = 5;
  runsOut(tight, "6 nodes", "for 5", [](V x, V) { V(x.tape(), 1.0); });
  runsOut(tight, "6 nodes", "for 5", [](V x, V) { tanh(x); });
  runsOut(tight, "6 nodes", "for 5", [](V x, V) { x * 2.0; });
  runsOut(tight, "6 nodes", "for 5", [](V x, V y) { x* y; });
  runsOut(tight, "6 nodes", "for 5", [](V x, V) { clamp(x, 0.0, 1.0); });
  runsOut(tight, "6 nodes", "for 5", [](V x, V y) { reduceSum({y, x}); });
  runsOut(tight, "6 nodes", "for 5", [](V x, V y) { innerProductWithBias({x, y}, {x, y}, x); });
  runsOut(tight, "6 nodes", "for 5", [](V x, V y) { reduceMeanAndMeanSquares({x, y}); });

  tight = plenty;
  tight.records = 3;
  runsOut(tight, "4 records", "for 3", [](V x, V) { tanh(x); });
  runsOut(tight, "4 records", "for 3", [](V x, V) { 2.0 - x; });
  runsOut(tight, "4 records", "for 3", [](V x, V y) { x + y; });
  runsOut(tight, "4 records", "for 3", [](V x, V) { clamp(x, 0.0, 1.0); });
  runsOut(tight, "4 records", "for 3", [](V x, V y) { reduceMax({x, y}); });
  runsOut(tight, "4 records", "for 3", [](V x, V y) { innerProduct({y, x}, {x, y}); });

  tight = plenty;
  tight.constants = 1;
  runsOut(tight, "2 constants", "for 1", [](V x, V) { x * 2.0; });
  runsOut(tight, "2 constants", "for 1", [](V x, V) { 2.0 / x; });
  runsOut(tight, "3 constants", "for 1", [](V x, V) { clamp(x, 0.0, 1.0); });
  tight.constants = 2;
  runsOut(tight, "3 constants", "for 2", [](V x, V) { clamp(x, 0.0, 1.0); });

  tight = plenty;
  tight.operands = 2;
  runsOut(tight, "4 operands", "for 2", [](V x, V y) { reduceSum({y, x}); });
  runsOut(tight, "4 operands", "for 2", [](V x, V y) { innerProduct({x, y}, {x, y}); });
  runsOut(tight, "5 operands", "for 2", [](V x, V y) { innerProductWithBias({x, y}, {x, y}, y); });
  runsOut(tight, "7 operands", "for 2", [](V x, V y) { innerProductWithBias({y, x}, {x, y}, y); });
  tight.operands = 3;
  runsOut(tight, "4 operands", "for 3", [](V x, V y) { reduceSum({y, x}); });
}

TEST_CASE("tape: a full borrowed tape goes on working after a rewind") {
  const Extent extent{4, 4, 4, 4};
  const Buffer buffer(Tape<float>::bytesFor(extent));
  Tape<float> tape(buffer.span, extent);
  const Value<float> x(tape, 3.0f);
  const auto start = tape.mark();
  for (int i = 0; i < 10; ++i) {
    auto y = x * 2.0f;
    y = y + 1.0f;
    y = y * y;
    CHECK(errorOf([&] { tanh(y); }).kind() == ErrorKind::capacity);
    backward(y);
    tape.rewind(start);
  }
  CHECK(x.gradCopy() == 10 * 28.0f);
}

TEST_CASE_TEMPLATE("tape: bytesFor is enough wherever the buffer starts, and one byte less is not",
                   T, float, double, long double) {
  using Tape = burtorch::Tape<T>;
  for (const Extent extent : {Extent{9, 5, 8, 5}, Extent{64, 32, 64, 32}, Extent{17, 1, 2, 0},
                              Extent{33, 16, 0, 7}, Extent{1, 0, 0, 0}, Extent{}}) {
    for (std::size_t offset = 0; offset <= 64; ++offset) {
      const Buffer buffer(Tape::bytesFor(extent), offset);
      const Error e = errorOf([&] { Tape(buffer.span.first(buffer.span.size() - 1), extent); });
      CHECK(e.kind() == ErrorKind::capacity);
      CHECK(contains(e, std::to_string(Tape::bytesFor(extent))));
      Tape tape(buffer.span, extent);
      CHECK(tape.capacity() == extent);
      // Fill each array to its brim with what must be found there afterwards.
      std::vector<Value<T>> leaves, clamped;
      while (tape.size() < extent.nodes - extent.records) leaves.emplace_back(tape, 1.0);
      for (std::size_t r = 0; r < extent.records; ++r) {
        if (tape.used().operands < extent.operands) {
          std::vector<Value<T>> list(extent.operands - tape.used().operands, leaves[0]);
          if (list.size() == 1) list = leaves; // not reached with the extents above
          clamped.push_back(reduceMean(list));
        } else if (tape.used().constants < extent.constants) {
          clamped.push_back(clamp(leaves[0], 0.0, 2.0));
        } else {
          clamped.push_back(leaves[0] * leaves[0]);
        }
      }
      CHECK(tape.size() == extent.nodes);
      CHECK(tape.used().records == extent.records);
      CHECK(tape.used().operands == extent.operands);
      if (!clamped.empty()) backward(clamped.back());
      for (const auto& v : leaves) CHECK(v.dataCopy() == T(1));
      for (const auto& v : clamped) CHECK(v.dataCopy() == T(1));
    }
  }
}

TEST_CASE("tape: a buffer divided for a usual mix") {
  for (const std::size_t bytes : {63u, 64u, 500u, 1000u, 4096u, 100'000u}) {
    const Buffer buffer(bytes, 7);
    Tape<double> tape(buffer.span);
    CHECK(Tape<double>::bytesFor(tape.capacity()) <= bytes);
    CHECK(tape.capacity().nodes <= bytes / 32);
    std::size_t made = 0;
    const Error e = errorOf([&] {
      for (;; ++made) tape.leaf(static_cast<double>(made));
    });
    CHECK(e.kind() == ErrorKind::capacity);
    CHECK(made == tape.capacity().nodes);
    if (bytes >= 4096) CHECK(made >= bytes / 64);
    for (std::size_t i = 0; i < made; ++i) CHECK(tape.values()[i] == static_cast<double>(i));
  }
  const Buffer tooSmall(10);
  CHECK(errorOf([&] { Tape<double>{tooSmall.span}; }).kind() == ErrorKind::capacity);
  CHECK(errorOf([&] { Tape<double>{std::span<std::byte>{}}; }).kind() == ErrorKind::capacity);
}

// ---- the index type ------------------------------------------------------------------------------

TEST_CASE("tape: 16-bit indices count to 65535") {
  Tape<double, std::uint16_t> tape;
  using Value = burtorch::Value<double, std::uint16_t>;
  CHECK(sizeof(decltype(tape)::Record) == 8);
  const Value x(tape, 1.0);
  Value y = x * x;
  while (tape.size() < 65535) y = y + x;
  const Contents before(tape);
  const Error e = errorOf([&] { y + x; });
  CHECK(e.kind() == ErrorKind::capacity);
  CHECK(contains(e, "65535"));
  CHECK(errorOf([&] { tape.leaf(1.0); }).kind() == ErrorKind::capacity);
  CHECK(Contents(tape) == before);
  CHECK(y.sysGetRawNodeIndex() == 65534);
  backward(y);
  CHECK(x.gradCopy() == 65535.0); // 2 from x*x, then 65533 additions
  Value kept = y;
  tape.collect(kept);
  CHECK(kept.sysGetRawNodeIndex() == 65534);
  std::vector<std::uint16_t> order(65535), leaves(8), stack(8);
  ScratchList orderList(order), leavesList(leaves), stackList(stack);
  tape.zeroGrad();
  backwardWithScratchStorage(kept, orderList, leavesList, stackList);
  CHECK(tape.grads()[0] == 65535.0);
}

TEST_CASE("tape: 16-bit indices, operand lists run out before nodes do") {
  Tape<double, std::uint16_t> tape;
  using Value = burtorch::Value<double, std::uint16_t>;
  std::vector<Value> x;
  for (int i = 0; i < 1000; ++i) x.emplace_back(tape, 1.0);
  std::swap(x[0], x[1]); // not a run
  for (int i = 0; i < 65; ++i) CHECK(reduceSum(x).dataCopy() == 1000.0);
  const Contents before(tape);
  const Error e = errorOf([&] { reduceSum(x); });
  CHECK(e.kind() == ErrorKind::capacity);
  CHECK(Contents(tape) == before);
}

TEST_CASE("tape: 16-bit indices, numbers run out before nodes do") {
  Tape<double, std::uint16_t> tape;
  using Value = burtorch::Value<double, std::uint16_t>;
  const Value x(tape, 1.0);
  for (int i = 0; i < 32767; ++i) clamp(x, -2.0, 2.0);
  const Contents before(tape);
  CHECK(tape.used().constants == 65534);
  CHECK(errorOf([&] { clamp(x, -3.0, 3.0); }).kind() == ErrorKind::capacity);
  CHECK(Contents(tape) == before);
  CHECK(x.dataCopy() == 1.0);
}

TEST_CASE("tape: more memory than the index type can count does not make indices wrap") {
  const auto fill = [](auto& tape) {
    for (int i = 0; i < 65535; ++i) tape.leaf(1.0);
    CHECK(errorOf([&] { tape.leaf(2.0); }).kind() == ErrorKind::capacity);
    CHECK(tape.size() == 65535);
    CHECK(tape.values()[0] == 1.0);
  };
  using Tape = burtorch::Tape<double, std::uint16_t>;
  SUBCASE("reserved") {
    std::optional<Tape> tape;
    try {
      tape.emplace(reserve(100'000));
    } catch (const Error& e) {
      CHECK(e.kind() == ErrorKind::capacity); // refusing it at once would do as well
    }
    if (tape) fill(*tape);
  }
  SUBCASE("borrowed") {
    const Extent extent{100'000, 100'000, 10, 10};
    const Buffer buffer(Tape::bytesFor(extent));
    std::optional<Tape> tape;
    try {
      tape.emplace(buffer.span, extent);
    } catch (const Error& e) {
      CHECK(e.kind() == ErrorKind::capacity);
    }
    if (tape) fill(*tape);
  }
  SUBCASE("borrowed, usual mix") {
    const Buffer buffer(10'000'000);
    Tape tape(buffer.span);
    fill(tape);
  }
}

TEST_CASE("tape: 64-bit indices") {
  Tape<float, std::uint64_t> tape;
  using Value = burtorch::Value<float, std::uint64_t>;
  static_assert(std::is_same_v<decltype(tape)::Index, std::uint64_t>);
  Value unused(tape, 1.0), x(tape, 3.0), y(tape, 4.0);
  Value z = reduceSum({y, x, x * y}) * 2.0f + innerProduct({x, y}, {y, y});
  tape.collect(z, x, y);
  backward(z);
  CHECK(z.dataCopy() == 38.0f + 28.0f);
  CHECK(x.gradCopy() == 2 * (1 + 4) + 4.0f);
  CHECK(y.gradCopy() == 2 * (1 + 3) + 3 + 8.0f);
}

// ---- the current tape ----------------------------------------------------------------------------

TEST_CASE("tape: scopes make a tape the current one, nested, and put back what was before") {
  Tape<double>& usual = Tape<double>::current();
  Tape<double> a, b;
  {
    const TapeScope outer(a);
    CHECK(&Tape<double>::current() == &a);
    const V x(1.0);
    {
      const TapeScope inner(b);
      const V y(2.0);
      CHECK(&y.tape() == &b);
      {
        const TapeScope again(a);
        CHECK(&V(3.0).tape() == &a);
      }
      CHECK(&Tape<double>::current() == &b);
    }
    CHECK(&V(4.0).tape() == &a);
    CHECK(&x.tape() == &a);
  }
  CHECK(&Tape<double>::current() == &usual);
  CHECK(a.size() == 3);
  CHECK(b.size() == 1);
}

TEST_CASE(
    "tape: a scope ends with an exception too; tapes of another type have their own current one") {
  Tape<double>& usual = Tape<double>::current();
  Tape<float>& usualFloat = Tape<float>::current();
  Tape<double> a;
  try {
    const TapeScope scope(a);
    CHECK(&Tape<float>::current() == &usualFloat);
    throw 1;
  } catch (int) {
  }
  CHECK(&Tape<double>::current() == &usual);
}

TEST_CASE("tape: a tape that dies while it is current leaves the usual one current") {
  Tape<double>& usual = Tape<double>::current();
  std::optional<Tape<double>> mortal(std::in_place);
  {
    const TapeScope scope(*mortal);
    mortal.reset();
    CHECK(&Tape<double>::current() == &usual);
  }
  CHECK(&Tape<double>::current() == &usual);
}

TEST_CASE("tape: each thread has its own usual tape") {
  Tape<double>* const mine = &Tape<double>::current();
  const std::size_t before = mine->size();
  struct Seen {
    Tape<double>* tape = nullptr;
    std::size_t size = 0;
    double grad = 0;
  };
  std::array<Seen, 2> seen;
  const auto work = [](Seen& s, double start) {
    s.tape = &Tape<double>::current();
    const V x(start);
    V y = x * 1.0;
    for (int i = 0; i < 1000; ++i) y = y + x;
    backward(y * x);
    s.size = s.tape->size();
    s.grad = x.gradCopy();
  };
  {
    std::thread one([&] { work(seen[0], 2.0); }), two([&] { work(seen[1], 3.0); });
    one.join();
    two.join();
  }
  CHECK(seen[0].tape != mine);
  CHECK(seen[1].tape != mine);
  CHECK(seen[0].size == 1003);
  CHECK(seen[1].size == 1003);
  CHECK(seen[0].grad == 2 * 1001 * 2.0);
  CHECK(seen[1].grad == 2 * 1001 * 3.0);
  CHECK(&Tape<double>::current() == mine);
  CHECK(mine->size() == before);
}

// ---- labels --------------------------------------------------------------------------------------

TEST_CASE("tape: labels") {
  Tape<double> tape;
  V unused(tape, 0.0), x(tape, 2.0);
  CHECK(x.label().empty());
  x.setLabel("first");
  x.setLabel(std::string("x"));
  V y = x * x;
  const auto m = tape.mark();
  V z = y + 1.0, w = z * 2.0;
  w.setLabel("w"); // not in the order of the nodes
  z.setLabel("z");
  y.setLabel("y");
#if BURTORCH_LABELS
  CHECK(x.label() == "x");
  CHECK(y.label() == "y");
  CHECK(z.label() == "z");
  CHECK(w.label() == "w");
  CHECK(unused.label().empty());
  tape.rewind(m);
  z = y + 1.0;
  w = z * 2.0;
  CHECK(z.label().empty());
  CHECK(w.label().empty());
  CHECK(y.label() == "y");
  unused.setLabel("unused");
  w.setLabel("W");
  tape.collect(x, y, w);
  CHECK(tape.size() == 4);
  CHECK(x.label() == "x");
  CHECK(y.label() == "y");
  CHECK(w.label() == "W");
  CHECK(V::at(tape, 2).label().empty());
  y.setLabel("");
  CHECK(y.label().empty());
  tape.clear();
  CHECK(V(tape, 1.0).label().empty());
  CHECK(V(tape, 1.0).label().empty());
#else
  CHECK(w.label().empty());
  tape.rewind(m);
#endif
}

// ---- depth ---------------------------------------------------------------------------------------

TEST_CASE("tape: a chain of ten million nodes, forward, backward, collected and walked") {
  constexpr std::size_t n = SHORTER_CHAIN ? 1'000'000 : 10'000'000;
  Tape<double> tape{reserve(Extent{n + 103, n + 1, 0, 0})};
  for (int i = 0; i < 100; ++i) tape.leaf(0.0);
  V x(tape, 5.0), one(tape, 1.0);
  V y = x * x;
  for (std::size_t i = 0; i < n; ++i) y = y + one;
  CHECK(y.dataCopy() == 25.0 + n);
  backward(y);
  CHECK(x.gradCopy() == 10.0);
  CHECK(one.gradCopy() == static_cast<double>(n));
  tape.collect(x, one, y);
  CHECK(tape.size() == n + 3);
  CHECK(x.sysGetRawNodeIndex() == 0);
  CHECK(y.dataCopy() == 25.0 + n);
  backward(y);
  CHECK(x.gradCopy() == 20.0);
  CHECK(one.gradCopy() == 2.0 * n);
  std::vector<std::uint32_t> order, leaves, stack;
  order.reserve(n + 1);
  leaves.reserve(64);
  stack.reserve(8);
  tape.zeroGrad();
  backwardWithScratchStorage(y, order, leaves, stack);
  CHECK(x.gradCopy() == 10.0);
  CHECK(one.gradCopy() == static_cast<double>(n));
  CHECK(order.size() == n + 1);
  CHECK(leaves == std::vector<std::uint32_t>{0, 1});
  backwardRestricted(y, std::vector<V>{x});
  CHECK(x.gradCopy() == 20.0);
  CHECK(one.gradCopy() == static_cast<double>(n));
}

TEST_CASE("tape: dropping the newest node undoes the last append, whatever it was") {
  Tape<double> tape;
  const V x(tape, 2.0), y(tape, 3.0);
  tape.leaf(0.0); // so that {x, y, last} is no run
  const V last(tape, 5.0);
  const std::vector<V> list{x, y, last}, run{x, y};
  const auto undoes = [&](const auto& append) {
    const auto before = tape.used();
    const V made = append();
    made.setLabel("gone");
    CHECK(tape.used() != before);
    tape.dropNewest();
    CHECK(tape.used() == before);
    CHECK(tape.label(before.nodes).empty());
  };
  undoes([&] { return V(tape, 7.0); });
  undoes([&] { return x * y; });
  undoes([&] { return x * 2.0; });
  undoes([&] { return 2.0 / x; });
  undoes([&] { return tanh(x); });
  undoes([&] { return clamp(x, 0.0, 1.0); });
  undoes([&] { return reduceSum(run); });
  undoes([&] { return reduceSum(list); });
  undoes([&] { return innerProduct(run, run); });
  undoes([&] { return innerProductWithBias(list, list, x); });
  const V z = x * 10.0 + y; // what is left still works
  backward(z);
  undoes([&] { return z * z; });
  CHECK(x.gradCopy() == 10.0);
}
