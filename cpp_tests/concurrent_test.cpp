// cpp_tests/concurrent_test.cpp — several threads appending to one tape; meant to be run under TSan as well
// SPDX-License-Identifier: MIT
#include "support.hpp"

#include <burtorch/burtorch.hpp>
#include <burtorch/tape/concurrent.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace burtorch;

namespace {

using SharedTape = Tape<double, Concurrent>;
using SharedValue = Value<double, Concurrent>;
constexpr std::size_t threadCount = 4;

// Runs work(0), work(1), … at once, starting them together so that they do meet.
template <class Work> void inParallel(const Work& work) {
  std::atomic<std::size_t> ready{0};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < threadCount; ++t)
    threads.emplace_back([&, t] {
      ++ready;
      while (ready.load() < threadCount) std::this_thread::yield();
      work(t);
    });
  for (std::thread& thread : threads) thread.join();
}

// The invariant that the sweep rests on.
template <class TapeType> void checkOrder(const TapeType& tape) {
  const auto records = tape.records();
  std::size_t outOfOrder = 0, tooYoung = 0;
  for (std::size_t r = 0; r < records.size(); ++r) {
    if (r != 0 && records[r - 1].result >= records[r].result) ++outOfOrder;
    tape.forEachOperand(records[r],
                        [&](std::size_t operand) { tooYoung += operand >= records[r].result; });
  }
  CHECK(outOfOrder == 0);
  CHECK(tooYoung == 0);
}

} // namespace

TEST_CASE("concurrent: one thread alone uses it like any tape") {
  SharedTape tape{reserve(100)};
  SharedValue unused(tape, 1.0), x(tape, 3.0);
  const auto m = tape.mark();
  SharedValue y = clamp(x * x, -100.0, 100.0) + reduceSum({x, unused}) * 2.0;
  backward(y);
  CHECK(x.gradCopy() == 8.0);
  tape.rewind(m);
  CHECK(tape.size() == 2);
  y = innerProductWithBias({x, x}, {x, x}, x) - 1.0;
  tape.collect(x, y);
  CHECK(tape.size() == 3);
  tape.zeroGrad();
  backward(y);
  CHECK(x.gradCopy() == 13.0);
  std::vector<std::uint32_t> order(8), leaves(8), stack(8);
  ScratchList orderList(order), leavesList(leaves), stackList(stack);
  tape.zeroGrad();
  backwardWithScratchStorage(y, orderList, leavesList, stackList);
  CHECK(x.gradCopy() == 13.0);
}

TEST_CASE("concurrent: threads append to one graph; its gradient is right") {
  constexpr std::size_t each = 2000;
  SharedTape tape{reserve(Extent{threadCount * each * 8, threadCount * each * 8,
                                 threadCount * each * 4, threadCount * each * 8})};
  const SharedValue x(tape, 2.0), y(tape, 3.0);
  std::array<SharedValue, threadCount> ends;
  inParallel([&](std::size_t t) {
    SharedValue sum = x * 1.0;
    for (std::size_t i = 0; i < each; ++i) {
      const SharedValue own(tape, 1.0); // leaves stand between the records
      switch (i % 4) {
      case 0:
        sum = sum + x * y;
        break;
      case 1:
        sum = reduceSum({sum, y, own});
        break;
      case 2:
        sum = sum + clamp(x * static_cast<double>(t), -100.0, 100.0);
        break;
      case 3:
        sum = innerProductWithBias({x, y}, {y, own}, sum);
        break;
      }
    }
    ends[t] = sum;
  });
  checkOrder(tape);
  double value = 0, gx = 0, gy = 0;
  for (std::size_t t = 0; t < threadCount; ++t) {
    const double n = each / 4, slope = static_cast<double>(t);
    value += 2 + n * (6 + 4 + 2 * slope + 9);
    gx += 1 + n * (3 + slope + 3);
    gy += n * (2 + 1 + 2 + 1);
  }
  const SharedValue root = reduceSum(ends);
  CHECK(root.dataCopy() == value);
  backward(root);
  CHECK(x.gradCopy() == gx);
  CHECK(y.gradCopy() == gy);
  CHECK(tape.size() == 2 + threadCount * (1 + each + each / 4 * (2 + 1 + 3 + 1)) + 1);
}

TEST_CASE("concurrent: every node is handed out once") {
  constexpr std::size_t each = 5000;
  SharedTape tape{reserve(Extent{threadCount * each, 0, 0, 0})};
  std::array<std::vector<SharedValue>, threadCount> made;
  inParallel([&](std::size_t t) {
    for (std::size_t i = 0; i < each; ++i)
      made[t].emplace_back(tape, static_cast<double>(t * each + i));
  });
  CHECK(tape.size() == threadCount * each);
  std::vector<bool> seen(tape.size());
  std::size_t wrong = 0;
  for (std::size_t t = 0; t < threadCount; ++t)
    for (std::size_t i = 0; i < each; ++i) {
      const auto index = made[t][i].sysGetRawNodeIndex();
      if (seen[index] || made[t][i].dataCopy() != static_cast<double>(t * each + i)) ++wrong;
      seen[index] = true;
    }
  CHECK(wrong == 0);
}

TEST_CASE("concurrent: a tape does not grow, whoever owns its memory") {
  SharedTape none;
  CHECK(errorOf([&] { none.leaf(1.0); }).kind() == ErrorKind::capacity);
  SharedTape tape{reserve(Extent{2, 1, 1, 2})};
  const SharedValue x(tape, 1.0);
  const SharedValue y = x * 2.0;
  const Error e = errorOf([&] { y + x; });
  CHECK(e.kind() == ErrorKind::capacity);
  CHECK(std::string(e.what()).find("3 nodes") != std::string::npos);
  CHECK(tape.size() == 2);
  const Extent extent{3, 2, 2, 2};
  std::vector<std::byte> buffer(SharedTape::bytesFor(extent));
  SharedTape borrowed(buffer, extent);
  const SharedValue u(borrowed, 3.0);
  backward(u * u * 2.0);
  CHECK(u.gradCopy() == 12.0);
  CHECK(errorOf([&] { borrowed.leaf(1.0); }).kind() == ErrorKind::capacity);
}

// The numbers and operand lists of an operation that finds no room for its node must not stay
// claimed.
TEST_CASE("concurrent: an operation that does not fit leaves the tape as it was") {
  SharedTape tape{reserve(Extent{4, 4, 8, 8})};
  const SharedValue x(tape, 2.0), y(tape, 3.0), z = x * y, w = z * 2.0;
  const Extent used = tape.used();
  for (int attempt = 0; attempt < 20; ++attempt) {
    CHECK(errorOf([&] { x * 2.0; }).kind() == ErrorKind::capacity);
    CHECK(errorOf([&] { clamp(x, 0.0, 1.0); }).kind() == ErrorKind::capacity);
    CHECK(errorOf([&] { reduceSum({y, x}); }).kind() == ErrorKind::capacity);
  }
  CHECK(tape.used() == used);
  backward(w);
  CHECK(x.gradCopy() == 6.0);
}

TEST_CASE("concurrent: threads that run out of room leave a consistent tape") {
  for (int which = 0; which < 4; ++which) {
    CAPTURE(which);
    Extent extent{5000, 5000, 5000, 5000};
    (which == 0   ? extent.nodes
     : which == 1 ? extent.records
     : which == 2 ? extent.constants
                  : extent.operands) = 700;
    SharedTape tape{reserve(extent)};
    const SharedValue x(tape, 1.0), y(tape, 2.0);
    std::array<std::vector<SharedValue>, threadCount> made;
    std::array<std::size_t, threadCount> refused{};
    for (auto& part : made) part.push_back(x + y);
    inParallel([&](std::size_t t) {
      SharedValue sum = made[t].back();
      while (refused[t] < 3) {
        try {
          sum = sum + x;
          made[t].push_back(sum);
          made[t].push_back(sum * 2.0);
          made[t].push_back(reduceSum({y, x}));
        } catch (const Error& e) {
          if (e.kind() != ErrorKind::capacity) return;
          ++refused[t];
        }
      }
    });
    checkOrder(tape);
    CHECK(fits(tape.used(), tape.capacity()));
    std::size_t nodes = 2, wrong = 0;
    for (std::size_t t = 0; t < threadCount; ++t) {
      CHECK(refused[t] == 3);
      nodes += made[t].size();
      double sum = 2;
      for (const SharedValue& v : made[t]) { // each handle still names the node it was given
        const Op op = v.operation();
        if (op == Op::eBinaryAdd) wrong += v.dataCopy() != (sum += 1.0);
        else if (op == Op::eBinaryMult) wrong += v.dataCopy() != 2 * sum;
        else wrong += v.dataCopy() != 3.0;
      }
    }
    CHECK(wrong == 0);
    CHECK(tape.size() == nodes);
    const auto last =
        *std::ranges::find_if(made[0].rbegin(), made[0].rend(),
                              [](const SharedValue& v) { return v.operation() == Op::eBinaryAdd; });
    backward(last);
    CHECK(x.gradCopy() == last.dataCopy() - 2.0);
    CHECK(y.gradCopy() == 1.0);
  }
}

// Numbers and operand lists are claimed apart from the node, so those of two threads can stand the
// other way round than their operations. collect, which moves them in the order of the operations,
// must not mix them up.
TEST_CASE("concurrent: collect after threads appended numbers and operand lists") {
  constexpr std::size_t each = 2000;
  bool numbersCrossed = false,
       listsCrossed = false; // it takes two threads that meet: try until they did
  for (int round = 0; round < 100 && !(numbersCrossed && listsCrossed); ++round) {
    SharedTape tape{reserve(Extent{3 * threadCount * each, 2 * threadCount * each,
                                   threadCount * each, 2 * threadCount * each})};
    const SharedValue unused(tape, 0.0);
    SharedValue x(tape, 1.0), y(tape, 1.0);
    std::array<std::vector<SharedValue>, threadCount> products, sums;
    inParallel([&](std::size_t t) {
      for (std::size_t i = 0; i < each; ++i) {
        products[t].push_back(x * static_cast<double>(1 + t * each + i));
        sums[t].push_back(i % 2 == 0 ? reduceSum({y, x}) : reduceSum({x, x}));
      }
    });
    std::size_t number = 0, list = 0;
    for (const auto& record : tape.records()) {
      const bool isNumber = record.operation() == Op::eBinaryMult;
      (isNumber ? numbersCrossed : listsCrossed) |=
          (isNumber ? record.b < number : record.a < list);
      (isNumber ? number : list) = isNumber ? record.b : record.a;
    }
    tape.collect(products[0], products[1], products[2], products[3], sums[0], sums[1], sums[2],
                 sums[3], x, y);
    std::size_t wrong = 0;
    for (std::size_t t = 0; t < threadCount; ++t)
      for (std::size_t i = 0; i < each; ++i) {
        const auto recordOf = [&](const SharedValue& v) {
          return tape.records()[tape.recordOf(v.sysGetRawNodeIndex())];
        };
        wrong +=
            tape.constants()[recordOf(products[t][i]).b] != products[t][i].dataCopy(); // x is 1
        const auto operands = tape.operands().subspan(recordOf(sums[t][i]).a, 2);
        wrong += operands[0] != (i % 2 == 0 ? y : x).sysGetRawNodeIndex();
        wrong += operands[1] != x.sysGetRawNodeIndex();
      }
    CHECK(wrong == 0);
  }
}

TEST_CASE("concurrent: with 16-bit indices, too many nodes for them") {
  Tape<float, Concurrent, std::uint16_t> tape{reserve(65535)};
  using Value = burtorch::Value<float, Concurrent, std::uint16_t>;
  const Value x(tape, 1.0f);
  std::array<std::size_t, threadCount> made{};
  inParallel([&](std::size_t t) {
    try {
      for (;; ++made[t]) static_cast<void>(x + x);
    } catch (const Error&) {
    }
  });
  CHECK(tape.size() == 65535);
  CHECK(made[0] + made[1] + made[2] + made[3] == 65534);
  checkOrder(tape);
}

TEST_CASE("concurrent: different tapes in different threads share nothing") {
  std::array<double, threadCount> grads{};
  inParallel([&](std::size_t t) {
    Tape<double> tape;
    const TapeScope scope(tape);
    const Value<double> x(static_cast<double>(t));
    for (int i = 0; i < 200; ++i) {
      const auto m = tape.mark();
      backward(x * x + x);
      tape.rewind(m);
    }
    grads[t] = x.gradCopy();
  });
  for (std::size_t t = 0; t < threadCount; ++t)
    CHECK(grads[t] == 200 * (2 * static_cast<double>(t) + 1));
}

TEST_CASE("concurrent: reading shared parameters of one tape while other threads append") {
  SharedTape tape{reserve(20'000)};
  std::vector<SharedValue> parameters;
  for (int i = 0; i < 100; ++i) parameters.emplace_back(tape, i);
  std::array<double, threadCount> sums{};
  inParallel([&](std::size_t t) {
    for (int i = 0; i < 100; ++i) sums[t] += reduceSum(parameters).dataCopy() + tape.values()[50];
  });
  for (const double sum : sums) CHECK(sum == 100 * (4950 + 50.0));
}
