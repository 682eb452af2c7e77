// cpp_tests/value_test.cpp — the handle: construction, operators, plain numbers, precisions, comparisons
// SPDX-License-Identifier: MIT
#include <burtorch/burtorch.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <concepts>
#include <string>
#include <type_traits>
#include <vector>

using namespace burtorch;

static_assert(std::is_trivially_copyable_v<Value<double>>);
#if !BURTORCH_CHECKS
static_assert(sizeof(Value<double>) == 16);
#endif
static_assert(sizeof(Tape<double>::Record) == 16);
static_assert(2 * sizeof(double) + sizeof(Tape<double>::Record) <= 32, "bytes per FP64 node");
static_assert(sizeof(Tape<double, std::uint16_t>::Record) == 8);

template <class X, class Y>
concept Addable = requires(X x, Y y) { x + y; };
template <class X, class Y>
concept Assignable = requires(X x, Y y) { x += y; };

static_assert(Addable<Value<float>, double>);
static_assert(Addable<int, Value<float>>);
static_assert(!Addable<Value<float>, Value<double>>); // precisions do not mix silently
static_assert(!Addable<Value<double>, Value<double, std::uint64_t>>);
static_assert(!Addable<Value<double>, std::string>);
static_assert(!std::convertible_to<Value<double>, double>); // would cut the graph silently
static_assert(!std::convertible_to<double, Value<double>>); // would make leaves silently

TEST_CASE("a Value is deduced from its number") {
  static_assert(std::same_as<decltype(Value(1.5)), Value<double>>);
  static_assert(std::same_as<decltype(Value(1.5f)), Value<float>>);
  static_assert(std::same_as<decltype(Value(3)), Value<double>>);
  static_assert(std::same_as<decltype(Value(std::declval<Tape<float>&>(), 1.5)), Value<float>>);
  Tape<float> tape;
  const Value x(tape, 1.5);
  CHECK(&x.tape() == &tape);
  CHECK(x.dataCopy() == 1.5f);
  CHECK(x.sysGetRawNodeIndex() == 0);
  CHECK(x.operation() == Op::eLeaf);
  CHECK(Value<double>().isEmpty());
  const auto copy = x;
  copy.setData(2.5f);
  CHECK(x.dataCopy() == 2.5f); // two handles, one node
  CHECK((x + 1).dataCopy() == 3.5f);
}

TEST_CASE("operators record one node each; plain numbers none") {
  Tape<double> tape;
  const Value<double> a(tape, 6.0), b(tape, 4.0);
  struct {
    Value<double> z;
    double value, da, db;
    Op op;
  } const cases[] = {
      {a + b, 10, 1, 1, Op::eBinaryAdd},
      {a - b, 2, 1, -1, Op::eBinarySub},
      {a * b, 24, 4, 6, Op::eBinaryMult},
      {a / b, 1.5, 0.25, -0.375, Op::eBinaryDiv},
      {a + 1, 7, 1, 0, Op::eBinaryAdd},
      {1 + a, 7, 1, 0, Op::eBinaryAdd},
      {a - 1.0, 5, 1, 0, Op::eBinarySub},
      {1.0 - a, -5, -1, 0, Op::eBinarySub},
      {a * 3, 18, 3, 0, Op::eBinaryMult},
      {3.0f * a, 18, 3, 0, Op::eBinaryMult},
      {a / 2, 3, 0.5, 0, Op::eBinaryDiv},
      {3 / a, 0.5, -1.0 / 12, 0, Op::eBinaryDiv},
      {-a, -6, -1, 0, Op::eNegative},
      {pow(a, 2), 36, 12, 0, Op::eBinaryPow},
      {pow(2, b), 16, 0, 16 * std::log(2), Op::eBinaryPow},
      {mulByConstant(a, 3), 18, 3, 0, Op::eBinaryMultByConst},
      {mulByConstant(a, b), 24, 4, 0, Op::eBinaryMultByConst},
  };
  CHECK(tape.size() == 2 + std::size(cases));
  for (const auto& c : cases) {
    tape.zeroGrad();
    backward(c.z);
    CHECK(c.z.dataCopy() == c.value);
    CHECK(a.gradCopy() == doctest::Approx(c.da).epsilon(1e-15));
    CHECK(b.gradCopy() == doctest::Approx(c.db).epsilon(1e-15));
    CHECK(c.z.operation() == c.op);
  }
}

TEST_CASE("in-place operators move the handle and leave the old node to others") {
  Tape<double> tape;
  Value<double> a(tape, 3.0);
  const auto old = a;
  a += 1;
  a *= a;
  a -= old;
  a /= 2;
  CHECK(a.dataCopy() == 6.5);
  CHECK(old.dataCopy() == 3);
  backward(a);
  CHECK(old.gradCopy() == 3.5); // ((x + 1)² − x) / 2
  CHECK(addInplace(a, old).dataCopy() == 9.5);
  CHECK(subInplace(a, 0.5).dataCopy() == 9);
  CHECK(multInplace(a, 2).dataCopy() == 18);
  CHECK(divInplace(a, old).dataCopy() == 6);
}

TEST_CASE("numbers of another precision become the tape's") {
  Tape<float> tape;
  const Value<float> x(tape, 0.1); // a double literal
  CHECK(x.dataCopy() == 0.1f);
  const auto y = x * 0.1;
  static_assert(std::same_as<decltype(y), const Value<float>>);
  CHECK(y.dataCopy() == 0.1f * 0.1f);
  backward(y);
  CHECK(x.gradCopy() == 0.1f);
  CHECK((x / 2).dataCopy() == 0.05f); // an int is a number, not an integer division
  CHECK((1 / x).dataCopy() == 1 / 0.1f);
  CHECK(clamp(x, 0, 0.05f).dataCopy() == 0.05f);
}

TEST_CASE("comparisons look at values and record nothing") {
  Tape<double> tape;
  const Value<double> a(tape, 1.0), b(tape, 2.0), c(tape, 1.0);
  const auto before = tape.size();
  CHECK(a < b);
  CHECK(b > a);
  CHECK(a <= c);
  CHECK(a == c);
  CHECK(a != b);
  CHECK(a < 1.5);
  CHECK(1.5 > a);
  CHECK(a == 1);
  CHECK_FALSE(Value<double>(tape, std::nan("")) == a);
  CHECK(tape.size() == before + 1);
}

TEST_CASE("thousands of handles to one node") {
  Tape<double> tape;
  const Value<double> x(tape, 2.0);
  const std::vector<Value<double>> handles(10000, x);
  auto sum = handles[0] * 1;
  for (std::size_t i = 1; i < handles.size(); ++i) sum += handles[i];
  backward(sum);
  CHECK(x.gradCopy() == 10000);
  for (const auto& h : handles) CHECK(h.gradCopy() == 10000);
}

TEST_CASE("labels, or their absence") {
  Tape<double> tape;
  const Value<double> x(tape, 2.0);
  x.setLabel("x");
  x.setLabel(std::string("weight \"1\"\n"));
#if BURTORCH_LABELS
  CHECK(x.label() == "weight \"1\"\n");
#else
  CHECK(x.label().empty());
#endif
  CHECK((x + 1).label().empty());
}
