// cpp_tests/error_test.cpp — misuse is reported with a kind and a sentence, and nothing is lost
// SPDX-License-Identifier: MIT
#include "support.hpp"

#include <burtorch/burtorch.hpp>

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
