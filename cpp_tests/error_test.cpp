// cpp_tests/error_test.cpp — misuse is reported with a kind and a sentence, and nothing is lost
// SPDX-License-Identifier: MIT
#include "support.hpp"

#include <burtorch/burtorch.hpp>
#include <burtorch/tape/concurrent.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace burtorch;

namespace {

template <class F> void checkFails(ErrorKind kind, const std::string& part, const F& f) {
  const Error error = errorOf(f);
  CHECK(error.kind() == kind);
  CHECK_MESSAGE(std::string(error.what()).find(part) != std::string::npos, error.what());
}

} // namespace

TEST_CASE("inner products of different lengths") {
  Tape<double> tape;
  const std::vector<Value<double>> three(3, Value<double>(tape, 1.0)),
      two(2, Value<double>(tape, 1.0));
  checkFails(ErrorKind::badArgument, "3 with 2", [&] { innerProduct(three, two); });
  CHECK(tape.size() == 2);
}

TEST_CASE("a mark from the future") {
  Tape<double> tape;
  const auto empty = tape.mark();
  Value<double> x(tape, 1.0);
  x *= x;
  const auto full = tape.mark();
  tape.rewind(empty);
  checkFails(ErrorKind::badArgument, "ahead of the tape", [&] { tape.rewind(full); });
}

TEST_CASE("an empty handle that is computed with is an error, with checks and without") {
  Tape<double> tape;
  const Value<double> x(tape, 1.0);
  std::vector<Value<double>> sums(3);
  const Value<double> empty;
  CHECK(empty.isEmpty());
  CHECK_FALSE(empty.isAlive());
  const auto fails = [](const auto& use) { checkFails(ErrorKind::emptyHandle, "empty", use); };
  fails([&] { sums[0] += x; });
  fails([&] { sums[1] *= 2.0; });
  fails([&] { static_cast<void>(empty - x); });
  fails([&] { static_cast<void>(2.0 / empty); });
  fails([&] { static_cast<void>(exp(empty)); });
  fails([&] { static_cast<void>(clamp(empty, 0, 1)); });
  fails([&] { static_cast<void>(reduceSum(sums)); });
  fails([&] { static_cast<void>(innerProduct(sums, sums)); });
  fails([&] { static_cast<void>(empty < x); });
  fails([&] { static_cast<void>(x == empty); });
  fails([&] { empty.setData(1.0); });
  fails([&] { empty.setGrad(1.0); });
  fails([&] { backward(empty); });
  fails([&] { tape.collect(sums); });
  CHECK(sums[0].isEmpty());
  CHECK(tape.size() == 1);
  sums[0] = x; // what it is for
  sums[0] += x;
  CHECK(sums[0].dataCopy() == 2);
  Value<float, std::uint16_t> small; // of any tape
  fails([&] { small += 1.0f; });
  Value<double, Concurrent> shared;
  fails([&] { shared += 1.0; });
}

#if BURTORCH_CHECKS
TEST_CASE("empty handles, stale handles, two tapes") {
  Tape<double> tape, other;
  const Value<double> empty, x(tape, 1.0), y(other, 2.0);
  checkFails(ErrorKind::emptyHandle, "empty", [&] { empty.dataCopy(); });
  checkFails(ErrorKind::emptyHandle, "empty", [&] { x + empty; });
  checkFails(ErrorKind::differentTapes, "two tapes", [&] { x* y; });
  checkFails(ErrorKind::differentTapes, "two tapes", [&] { reduceSum({x, y}); });
  checkFails(ErrorKind::differentTapes, "two tapes", [&] { innerProduct({x}, {y}); });
  CHECK(tape.size() == 1);
  CHECK(other.size() == 1);

  const auto mark = tape.mark();
  const auto z = x + 1;
  tape.rewind(mark);
  checkFails(ErrorKind::staleHandle, "index 1", [&] { z.dataCopy(); });
  const auto successor = x + 2; // takes z's index
  CHECK(successor.sysGetRawNodeIndex() == z.sysGetRawNodeIndex());
  checkFails(ErrorKind::staleHandle, "rewound", [&] { z + 1; });
  checkFails(ErrorKind::staleHandle, "rewound", [&] { backward(z); });
  CHECK(x.dataCopy() == 1);
  CHECK(successor.dataCopy() == 3);
}
#endif

TEST_CASE("the failure handler is kept and given back") {
  const FailureHandler mine = [](ErrorKind, const char*) {};
  const auto before = setFailureHandler(mine);
  const bool given = setFailureHandler(before) == mine;
  CHECK(given);
}
