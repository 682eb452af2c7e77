// cpp_tests/op_table_test.cpp — every operation of the table × every scalar type, driven by the table itself
// SPDX-License-Identifier: MIT
#include <burtorch/burtorch.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace bt = burtorch;
namespace op = burtorch::op;

namespace {

template <class O> std::string nameOf() { return op::Entry<O>::name; }

// Inputs at which every operation is smooth wherever it is defined at all.
const std::vector<double> samples{-3.1, -1.7, -0.8, -0.45, 0.35, 0.6, 0.9, 1.3, 2.2, 3.7};

// The derivative of f at x by a central difference in long double; NaN where f is not defined
// around x.
template <class F> double slope(const F& f, double x) {
  const long double h = 1e-6L;
  return static_cast<double>((f(x + h) - f(x - h)) / (2 * h));
}

template <class T> double tolerance() { return std::is_same_v<T, float> ? 3e-5 : 2e-9; }

template <class T> bool close(T got, double want) {
  return std::abs(static_cast<double>(got) - want) <= tolerance<T>() * (1 + std::abs(want));
}

template <class O, class T> void checkUnary() {
  int checked = 0;
  for (const double x : samples) {
    const double want = slope([](long double t) { return O::forward(t); }, x);
    if (std::isnan(want)) continue;
    bt::Tape<T> tape;
    const bt::Value<T> v(tape, x);
    const auto z = bt::apply<O>(v);
    CHECK_MESSAGE(close(z.dataCopy(), static_cast<double>(O::forward(static_cast<long double>(x)))),
                  nameOf<O>());
    CHECK(z.operation() == op::Entry<O>::code);
    bt::backward(z);
    CHECK_MESSAGE(close(v.gradCopy(), want), nameOf<O>() << " at " << x);
    ++checked;
  }
  CHECK_MESSAGE(checked >= 3, nameOf<O>());
}

// Both operands nodes, and either of them a plain number: same value, same derivative where there
// is one.
template <class O, class T> void checkBinary() {
  int checked = 0;
  for (const double x : samples)
    for (const double y : samples) {
      const auto f = [](long double s, long double t) { return O::forward(s, t); };
      const double dx = slope([&](long double t) { return f(t, y); }, x);
      double dy = slope([&](long double t) { return f(x, t); }, y);
      if (std::isnan(dx) || std::isnan(dy) || x == y) continue;
      if (std::is_same_v<O, op::BinaryMultByConst>) dy = 0;
      bt::Tape<T> tape;
      const bt::Value<T> a(tape, x), b(tape, y);
      const auto z = bt::apply<O>(a, b);
      bt::backward(z);
      CHECK_MESSAGE(close(a.gradCopy(), dx), nameOf<O>() << " at " << x << ", " << y);
      CHECK_MESSAGE(close(b.gradCopy(), dy), nameOf<O>() << " at " << x << ", " << y);

      const T ga = a.gradCopy(), gb = b.gradCopy();
      tape.zeroGrad();
      const auto nodesBefore = tape.size();
      const auto zn = bt::apply<O>(a, static_cast<T>(y));
      CHECK(tape.size() == nodesBefore + 1); // a number takes no node
      CHECK(zn.dataCopy() == z.dataCopy());
      bt::backward(zn);
      CHECK(a.gradCopy() == ga);
      CHECK(b.gradCopy() == 0);
      tape.zeroGrad();
      const auto nz = bt::apply<O>(static_cast<T>(x), b);
      CHECK(nz.dataCopy() == z.dataCopy());
      bt::backward(nz);
      CHECK(b.gradCopy() == gb);
      CHECK(a.gradCopy() == 0);
      ++checked;
    }
  CHECK_MESSAGE(checked >= 10, nameOf<O>());
}

// The first n samples as neighbours on the tape, then the same nodes as a list that is no run:
// value and derivatives by each operand agree with differences.
template <class O, class T> void checkReduction() {
  for (std::size_t n = 1; n <= samples.size(); ++n) {
    if (std::is_same_v<O, op::VarianceVarying> && n == 1) continue; // 0/0, tested elsewhere
    std::vector<long double> xs(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(n));
    bt::Tape<T> tape;
    std::vector<bt::Value<T>> run, scattered;
    for (const auto x : xs) run.emplace_back(tape, static_cast<double>(x));
    for (std::size_t i = n; i-- != 0;) { // in reverse, and with gaps
      tape.leaf(T(77));
      scattered.insert(scattered.begin(), bt::Value<T>(tape, static_cast<double>(xs[i])));
    }
    const auto z = bt::apply<O>(run);
    CHECK(tape.records().back().form() == bt::Form::run);
    const auto zs = bt::apply<O>(scattered);
    if (n > 1) CHECK(tape.records().back().form() == bt::Form::list);
    CHECK_MESSAGE(close(z.dataCopy(), static_cast<double>(O::forward(xs))), nameOf<O>()
                                                                                << " of " << n);
    CHECK(zs.dataCopy() == z.dataCopy());
    bt::backward(z);
    bt::backward(zs);
    for (std::size_t i = 0; i < n; ++i) {
      const auto f = [&](long double t) {
        auto moved = xs;
        moved[i] = t;
        return O::forward(moved);
      };
      const double want = slope(f, static_cast<double>(xs[i]));
      CHECK_MESSAGE(close(run[i].gradCopy(), want), nameOf<O>() << " of " << n << " by " << i);
      CHECK(scattered[i].gradCopy() == run[i].gradCopy());
    }
  }
}

template <class O, class T> void checkProduct() {
  for (std::size_t n = 0; n <= samples.size(); ++n)
    for (const bool scattered : {false, true}) {
      bt::Tape<T> tape;
      std::vector<bt::Value<T>> x, y;
      for (std::size_t i = 0; i < n; ++i) {
        if (scattered) tape.leaf(T(5));
        x.emplace_back(tape, samples[i]);
      }
      for (std::size_t i = 0; i < n; ++i) y.emplace_back(tape, samples[n - 1 - i] * 0.5);
      const bt::Value<T> bias(tape, 0.75);
      bt::TapeScope scope(tape);
      const auto z = [&] {
        if constexpr (O::hasBias) return bt::apply<O>(x, y, bias);
        else return bt::apply<O>(x, y);
      }();
      double want = O::hasBias ? 0.75 : 0;
      for (std::size_t i = 0; i < n; ++i) want += samples[i] * samples[n - 1 - i] * 0.5;
      CHECK(close(z.dataCopy(), want));
      bt::backward(z);
      for (std::size_t i = 0; i < n; ++i) {
        CHECK(close(x[i].gradCopy(), samples[n - 1 - i] * 0.5));
        CHECK(close(y[i].gradCopy(), samples[i]));
      }
      CHECK(bias.gradCopy() == (O::hasBias ? 1 : 0));
    }
}

} // namespace

TEST_CASE_TEMPLATE("unary operations against central differences", T, float, double) {
#define CHECK_IT(Name, function) checkUnary<op::Name, T>();
  BURTORCH_UNARY_OPERATIONS(CHECK_IT)
#undef CHECK_IT
}

TEST_CASE_TEMPLATE("binary operations against central differences, in all forms", T, float,
                   double) {
#define CHECK_IT(Name, function) checkBinary<op::Name, T>();
  BURTORCH_BINARY_OPERATIONS(CHECK_IT)
#undef CHECK_IT
}

TEST_CASE_TEMPLATE("reductions against central differences, over runs and lists", T, float,
                   double) {
#define CHECK_IT(Name, function) checkReduction<op::Name, T>();
  BURTORCH_REDUCTIONS(CHECK_IT)
#undef CHECK_IT
}

TEST_CASE_TEMPLATE("inner products against closed forms, over runs and lists", T, float, double) {
#define CHECK_IT(Name, function) checkProduct<op::Name, T>();
  BURTORCH_PRODUCTS(CHECK_IT)
#undef CHECK_IT
}

TEST_CASE_TEMPLATE("clamp: inside, on the bounds, outside", T, float, double) {
  struct {
    double x, value, slope;
  } const cases[] = {{-2, -1, 0}, {-1, -1, 1}, {0.5, 0.5, 1}, {3, 3, 1}, {4, 3, 0}};
  for (const auto& c : cases) {
    bt::Tape<T> tape;
    const bt::Value<T> x(tape, c.x);
    const auto z = clamp(x, -1, 3);
    CHECK(tape.size() == 2);
    bt::backward(z);
    CHECK(z.dataCopy() == T(c.value));
    CHECK(x.gradCopy() == T(c.slope));
  }
}

namespace {

struct Row {
  const char* function;
  double x, y, value, dx, dy;
};
const Row rows[] = {
#include "data/op_reference.inc"
};

struct Result {
  double value, dx, dy;
};

// name → value and derivatives at (x, y), through the struct in double.
std::map<std::string, Result (*)(double, double)> evaluators() {
  std::map<std::string, Result (*)(double, double)> all;
#define ADD(Name, function)                                                                        \
  all[#function] = [](double x, double) {                                                          \
    const double z = op::Name::forward(x);                                                         \
    return Result{z, op::Name::pullback(x, z, 1.0), 0.0};                                          \
  };
  BURTORCH_UNARY_OPERATIONS(ADD)
#undef ADD
#define ADD(Name, function)                                                                        \
  all[#function] = [](double x, double y) {                                                        \
    const double z = op::Name::forward(x, y);                                                      \
    return Result{z, op::Name::pullbackX(x, y, z, 1.0), op::Name::pullbackY(x, y, z, 1.0)};        \
  };
  BURTORCH_BINARY_OPERATIONS(ADD)
#undef ADD
  return all;
}

// Relative, because the reference goes down to 1e-300; numbers below the normal range may flush.
// Derivatives that are made from the result alone (1 − z², z(1 − z), z + 1) have the absolute
// accuracy of a number near 1.
bool matches(double got, double want, double absolute) {
  if (std::isinf(want)) return got == want;
  return std::abs(got - want) <= std::max({1e-12 * std::abs(want), absolute, 1e-300});
}

} // namespace

TEST_CASE("values and derivatives against stored references, from 1e-300 to 1e300") {
  const auto evaluate = evaluators();
  const std::set<std::string> throughOne{"tanh", "sigmoid", "expm1"};
  std::set<std::string> seen;
  for (const Row& row : rows) {
    const Result got = evaluate.at(row.function)(row.x, row.y);
    const double absolute = throughOne.contains(row.function) ? 3e-16 : 0;
    CHECK_MESSAGE(matches(got.value, row.value, 0),
                  std::string(row.function) << "(" << row.x << ", " << row.y << ") = " << got.value
                                            << ", not " << row.value);
    CHECK_MESSAGE(matches(got.dx, row.dx, absolute), std::string(row.function)
                                                         << " by x at (" << row.x << ", " << row.y
                                                         << "): " << got.dx << ", not " << row.dx);
    CHECK_MESSAGE(matches(got.dy, row.dy, absolute), std::string(row.function)
                                                         << " by y at (" << row.x << ", " << row.y
                                                         << "): " << got.dy << ", not " << row.dy);
    seen.insert(row.function);
  }
  CHECK(seen.size() == evaluate.size() - 1); // all but mulByConstant
}

TEST_CASE_TEMPLATE("awkward points: 0, infinities, NaN", T, float, double) {
  constexpr T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  const auto both = [](auto f, T x) {
    bt::Tape<T> tape;
    const bt::Value<T> v(tape, x);
    const auto z = f(v);
    bt::backward(z);
    return std::pair{z.dataCopy(), v.gradCopy()};
  };
#define AT(function, x) both([](auto v) { return function(v); }, T(x))
#define PAIR(a, b) std::pair<T, T>(T(a), T(b))
  CHECK(AT(relu, 0) == PAIR(0, 0));
  CHECK(AT(relu, -0.0) == PAIR(0, 0));
  CHECK(AT(relu, inf) == PAIR(inf, 1));
  CHECK(AT(relu, -inf) == PAIR(0, 0));
  CHECK(std::isnan(AT(relu, nan).first));
  CHECK(AT(abs, 0) == PAIR(0, 0));
  CHECK(AT(abs, -inf) == PAIR(inf, -1));
  CHECK(AT(tanh, 0) == PAIR(0, 1));
  CHECK(AT(tanh, inf) == PAIR(1, 0));
  CHECK(AT(tanh, -inf) == PAIR(-1, 0));
  CHECK(AT(exp, -inf) == PAIR(0, 0));
  CHECK(AT(exp, inf) == PAIR(inf, inf));
  CHECK(AT(sigmoid, 0) == PAIR(0.5, 0.25));
  CHECK(AT(sigmoid, inf) == PAIR(1, 0));
  CHECK(AT(sigmoid, -inf) == PAIR(0, 0));
  CHECK(AT(sigmoid, 1e4) == PAIR(1, 0));
  CHECK(AT(sigmoid, -1e4) == PAIR(0, 0));
  CHECK(AT(softplus, 1e4) == PAIR(1e4, 1));
  CHECK(AT(softplus, -1e4) == PAIR(0, 0));
  CHECK(AT(softplus, inf) == PAIR(inf, 1));
  CHECK(AT(softplus, -inf) == PAIR(0, 0));
  CHECK(AT(silu, inf) == PAIR(inf, 1));
  CHECK(AT(silu, -inf) == PAIR(0, 0));
  CHECK(AT(silu, 0) == PAIR(0, 0.5));
  CHECK(AT(gelu, inf) == PAIR(inf, 1));
  CHECK(AT(gelu, -inf) == PAIR(0, 0));
  CHECK(AT(gelu, 0) == PAIR(0, 0.5));
  CHECK(AT(sqrt, 0) == PAIR(0, inf));
  CHECK(AT(logarithm, 0) == PAIR(-inf, inf));
  CHECK(AT(negativeLog, 0) == PAIR(inf, -inf));
  CHECK(std::isnan(AT(logarithm, -1).first));
  CHECK(std::isnan(AT(sqrt, -1).first));
  CHECK(AT(inv, 0) == PAIR(inf, -inf));
  CHECK(AT(inv, inf) == PAIR(0, 0));
  CHECK(AT(invSqrt, 0) == PAIR(inf, -inf));
  CHECK(AT(erf, inf) == PAIR(1, 0));
  CHECK(AT(atan, inf).second == 0);
  CHECK(AT(log1p, -1) == PAIR(-inf, inf));
  CHECK(AT(expm1, -inf) == PAIR(-1, 0));
  CHECK(AT(asin, 1).second == inf);
  CHECK(AT(acos, 1).second == -inf);
#undef AT
  CHECK(both([](auto v) { return pow(v, 0); }, T(0)) == PAIR(1, 0));
  CHECK(both([](auto v) { return pow(v, 1); }, T(0)) == PAIR(0, 1));
  CHECK(both([](auto v) { return pow(v, 2); }, T(0)) == PAIR(0, 0));
  CHECK(both([](auto v) { return pow(v, 2); }, T(-3)) == PAIR(9, -6));
  CHECK(both([](auto v) { return pow(0, v); }, T(2)) == PAIR(0, 0));
  CHECK(both([](auto v) { return pow(0, v); }, T(0)) == PAIR(1, 0));
  CHECK(both([](auto v) { return pow(v, std::numeric_limits<T>::infinity()); }, T(0.5)) ==
        PAIR(0, 0));
  CHECK(both([](auto v) { return pow(v, -std::numeric_limits<T>::infinity()); }, T(2)) ==
        PAIR(0, 0));
  CHECK(both([](auto v) { return pow(v, 3); }, T(0)) == PAIR(0, 0));
  CHECK(both([](auto v) { return hypot(v, 0); }, T(0)) == PAIR(0, 0));
  CHECK(both([](auto v) { return atan2(v, 0); }, T(0)) == PAIR(0, 0));
  CHECK(both([](auto v) { return atan2(0, v); }, T(0)) == PAIR(0, 0));
  const T least = std::numeric_limits<T>::denorm_min(); // 1 / least overflows
  CHECK(both([](auto v) { return 0 / v; }, least) == PAIR(0, 0));
  CHECK(both([](auto v) { return 1 / v; }, T(2)) == PAIR(0.5, -0.25));
  CHECK(both([](auto v) { return max(v, -2); }, T(-1)) == PAIR(-1, 1)); // a maximum over negatives
  CHECK(both([](auto v) { return max(v, 1); }, T(1)) == PAIR(1, 0.5));
  CHECK(both([](auto v) { return max(v, v); }, T(1)) == PAIR(1, 1));
  CHECK(both([](auto v) { return min(v, v); }, T(1)) == PAIR(1, 1));
  CHECK(both([](auto v) { return min(v, -inf); }, T(1)) == PAIR(-inf, 0));
#undef PAIR
  for (const auto& z :
       {both([](auto v) { return max(v, 1); }, nan), both([](auto v) { return min(v, 1); }, nan),
        both([](auto v) { return max(v, std::numeric_limits<T>::quiet_NaN()); }, T(1)),
        both([](auto v) { return min(v, std::numeric_limits<T>::quiet_NaN()); }, T(1))})
    CHECK(std::isnan(z.first));
}

TEST_CASE("operations that say so really do not read their result") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
#define CHECK_IT(Name, function)                                                                   \
  if (!op::Name::usesOutput)                                                                       \
    CHECK_MESSAGE(!std::isnan(op::Name::pullback(0.5, nan, 1.0)), #function);
  BURTORCH_UNARY_OPERATIONS(CHECK_IT)
#undef CHECK_IT
#define CHECK_IT(Name, function)                                                                   \
  if (!op::Name::usesOutput) {                                                                     \
    CHECK_MESSAGE(!std::isnan(op::Name::pullbackX(0.5, 0.7, nan, 1.0)), #function);                \
    CHECK_MESSAGE(!std::isnan(op::Name::pullbackY(0.5, 0.7, nan, 1.0)), #function);                \
  }
  BURTORCH_BINARY_OPERATIONS(CHECK_IT)
#undef CHECK_IT
#define CHECK_IT(Name, function)                                                                   \
  if (!op::Name::usesOutput)                                                                       \
    op::Name::pullback(std::vector{0.5, 0.7}, nan, 1.0,                                            \
                       [](std::size_t, double c) { CHECK_MESSAGE(!std::isnan(c), #function); });
  BURTORCH_REDUCTIONS(CHECK_IT)
#undef CHECK_IT
}

TEST_CASE("codes hold operation and form, names are unique, every operation has a symbol") {
  std::set<std::string> names;
  std::size_t count = 0;
#define CHECK_IT(Name, unused)                                                                     \
  for (const auto form : {bt::Form::nodes, bt::Form::nodeNumber, bt::Form::numberNode}) {          \
    const auto code = bt::codeOf(bt::Op::e##Name, form);                                           \
    CHECK(bt::opOf(code) == bt::Op::e##Name);                                                      \
    CHECK(bt::formOf(code) == form);                                                               \
    CHECK(code < bt::Tape<double>::Record::visited);                                               \
  }                                                                                                \
  names.insert(bt::namesOf(bt::Op::e##Name).function);                                             \
  CHECK(std::strlen(bt::namesOf(bt::Op::e##Name).symbol) != 0);                                    \
  ++count;
  BURTORCH_OPERATIONS(CHECK_IT)
#undef CHECK_IT
  CHECK(names.size() == count);
  CHECK(std::string(bt::namesOf(bt::Op::eLeaf).function) == "leaf");
}
