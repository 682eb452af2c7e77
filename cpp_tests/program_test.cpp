// cpp_tests/program_test.cpp — compile-time programs: the paper's graphs, every operation, other scalars
// SPDX-License-Identifier: MIT
#include "support.hpp"

#include <burtorch/burtorch.hpp>
#include <burtorch/run/program.hpp>
#include <burtorch/scalar/simd.hpp>
#include <burtorch/scalar/vector_math.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <tuple>
#include <vector>

using namespace burtorch;

namespace {

constexpr auto tiny = [](auto a, auto b) {
  const auto c = a + b;
  const auto d = a * b + pow3(b);
  const auto e = c - d;
  return sqr(e) / 2.0;
};
constexpr auto small = [](auto a, auto b) {
  auto c = a + b;
  auto d = a * b + pow3(b);
  c += c + 1.0;
  c += 1.0 + c - a;
  d += d * 2.0 + relu(b + a);
  d += 3.0 * d + relu(b - a);
  const auto e = c - d, f = sqr(e);
  auto g = f / 2.0;
  g += 10.0 / f;
  return g;
};
using Tiny = Program<tiny, 2>;
using Small = Program<small, 2>;

// Value and gradient of a Program and of the same function on a tape. (Not to the last bit: the order
// in which a compiler evaluates operands, and so that of the sums, may differ between the two, and it may
// compute functions of constants itself.)
template <auto f, class... X> void checkAgainstTape(const X&... x) {
  using P = Program<f, sizeof...(X)>;
  const std::array<double, sizeof...(X)> at{x...};
  std::array<double, sizeof...(X)> gradient;
  const double value = P::valueAndGradient(at, gradient);
  Tape<double> tape;
  const std::array leaves{Value<double>(tape, x)...};
  const Value<double> root = std::apply(f, leaves);
  backward(root);
  const auto same = [](double a, double b) {
    return a == doctest::Approx(b).epsilon(1e-15) || a == b || (std::isnan(a) && std::isnan(b));
  };
  CHECK(same(value, root.dataCopy()));
  for (std::size_t i = 0; i < at.size(); ++i) CHECK(same(gradient[i], leaves[i].gradCopy()));
}

// Operands with finite squares at which derivatives are infinite or no numbers.
constexpr std::array awkward{0.0, -0.0, 1.0, -1.0, 1e153, -1e153, 1e103, -1e52, 5e-324, 800.0};

// f as it is and with a derivative of 0 by it, as select and a factor of 0 leave them.
template <auto f> void checkZeroAdjoint() {
  constexpr auto times0 = [](auto x, auto y) { return mulByConstant(f(x, y), 0.0) + y; };
  constexpr auto product0 = [](auto x, auto y) { return f(x, y) * (x - x) + y; };
  for (const double x : awkward)
    for (const double y : awkward) {
      checkAgainstTape<times0>(x, y);
      if (std::isfinite(Program<f, 2>::value(std::array{x, y})))
        checkAgainstTape<product0>(x, y); // else it is 0·∞ there too
    }
}

} // namespace

TEST_CASE("program: the compiler computes a gradient") {
  constexpr std::array x{-41.0, 2.0};
  constexpr auto gradient = Tiny::gradient(x);
  static_assert(Tiny::value(x) == 612.5);
  static_assert(gradient[0] == -35.0 && gradient[1] == 1050.0);
  CHECK(Tiny::operations == 7);
}

TEST_CASE("program: the paper's graphs in every form of input") {
  const double c[] = {-4.0, 2.0};
  double out[2];
  CHECK(Small::valueAndGradient(c, out) == doctest::Approx(24.70408163265306).epsilon(1e-15));
  CHECK(out[0] == doctest::Approx(138.83381924198252).epsilon(1e-15));
  CHECK(out[1] == doctest::Approx(645.5772594752186).epsilon(1e-15));
  std::vector<double> gradient(2);
  Small::gradient(std::span<const double>(c), gradient);
  CHECK(gradient[1] == out[1]);
  checkAgainstTape<tiny>(-41.0, 2.0);
  checkAgainstTape<small>(-4.0, 2.0);
  checkAgainstTape<small>(3.0, -0.5);
}

TEST_CASE("program: loops, an array of inputs, operands used twice, inputs not used") {
  using Sum = Program<[](std::array<Symbol, 5> x) {
    Symbol s = x[0] * x[0];
    for (std::size_t i = 1; i < 4; ++i) s += x[i] * x[i - 1];
    return s + s;
  },
                      5>;
  const std::array x{1.0, 2.0, 3.0, 4.0, 5.0};
  CHECK(Sum::value(x) == 2 * (1 + 2 + 6 + 12));
  CHECK(Sum::gradient(x) == std::array{2.0 * (2 + 2), 2.0 * (1 + 3), 2.0 * (2 + 4), 2.0 * 3, 0.0});
}

TEST_CASE("program: select instead of a branch") {
  using P = Program<[](auto a, auto b) { return select(a < b, a * b, 3.0 * a); }, 2>;
  CHECK(P::gradient(std::array{1.0, 2.0}) == std::array{2.0, 1.0});
  CHECK(P::gradient(std::array{2.0, 1.0}) == std::array{3.0, 0.0});
  using Clip = Program<[](auto a) { return select(a >= 1.0, 1.0, select(a != 0.0, a, 5.0)); }, 1>;
  CHECK(Clip::value(std::array{7.0}) == 1.0);
  CHECK(Clip::value(std::array{0.5}) == 0.5);
  CHECK(Clip::value(std::array{0.0}) == 5.0);
  CHECK(Clip::gradient(std::array{7.0})[0] == 0.0);
}

TEST_CASE("program: several outputs, a Jacobian, a Hessian") {
  using P = Program<[](auto a, auto b) { return std::array{a * b, sin(a), b}; }, 2>;
  double j[3][2];
  const auto y = P::jacobian(std::array{2.0, 3.0}, j);
  CHECK(y == std::array{6.0, std::sin(2.0), 3.0});
  CHECK((j[0][0] == 3.0 && j[0][1] == 2.0));
  CHECK((j[1][0] == std::cos(2.0) && j[1][1] == 0.0));
  CHECK((j[2][0] == 0.0 && j[2][1] == 1.0));
  using Q = Program<[](auto a, auto b) { return a * a * b + pow3(b); }, 2>;
  double h[2][2];
  CHECK(Q::hessian(std::array{2.0, 3.0}, h) == 12.0 + 27.0);
  CHECK((h[0][0] == 6.0 && h[0][1] == 4.0 && h[1][0] == 4.0 && h[1][1] == 18.0));
}

TEST_CASE("program: lanes are samples") {
  using L = simd<double, 4>;
  std::array<L, 2> x, gradient;
  for (std::size_t k = 0; k < 4; ++k) {
    x[0].set(k, -4.0 + static_cast<double>(k));
    x[1].set(k, 2.0 - 0.5 * static_cast<double>(k));
  }
  const L value = Small::valueAndGradient(x, gradient);
  for (std::size_t k = 0; k < 4; ++k) {
    std::array<double, 2> one;
    CHECK(value[k] == Small::valueAndGradient(std::array{x[0][k], x[1][k]}, one));
    CHECK(gradient[0][k] == one[0]);
    CHECK(gradient[1][k] == one[1]);
  }
}

TEST_CASE("program: what select did not choose has no say, nor has a factor of 0") {
  using Root = Program<[](auto x) { return select(x > 0.0, sqrt(x), x * 0.0); }, 1>;
  CHECK(Root::gradient(std::array{0.0})[0] == 0.0);
  CHECK(Root::gradient(std::array{4.0})[0] == 0.25);
  using Times0 = Program<[](auto x, auto y) { return 0.0 * sqrt(x) + y; }, 2>;
  CHECK(Times0::gradient(std::array{0.0, 1.0}) == std::array{0.0, 1.0});
  using Inverse = Program<[](auto x) { return select(x == 0.0, 0.0, 1.0 / x); }, 1>;
  CHECK(Inverse::gradient(std::array{0.0})[0] == 0.0);
  using Entropy = Program<[](auto x) { return select(x > 0.0, x * log(x), 0.0); }, 1>;
  CHECK(Entropy::gradient(std::array{0.0})[0] == 0.0);
  using Far = Program<[](auto x, auto y) { return select(x < 9.0, pow3(x) * y, y); }, 2>;
  CHECK(Far::gradient(std::array{1e200, 1.0}) == std::array{0.0, 1.0});
  checkAgainstTape<[](auto x, auto y) { return 0.0 * (y * log(x)) + y; }>(0.0, 2.0);
  std::array<simd<double, 4>, 1> lanes{simd<double, 4>(4.0)}, gradient;
  lanes[0].set(2, 0.0);
  Root::gradient(lanes, gradient);
  for (std::size_t k = 0; k < 4; ++k) CHECK(gradient[0][k] == (k == 2 ? 0.0 : 0.25));
  double h[1][1];
  Root::hessian(std::array{0.0}, h);
  CHECK(h[0][0] == 0.0);
}

TEST_CASE("program: an adjoint of 0 gives nothing to finite operands, as on the tape") {
#define COMPARE_UNARY(Name, function)                                                              \
  checkZeroAdjoint<[](auto x, auto y) { return function(x) + y - y; }>();
  BURTORCH_UNARY_OPERATIONS(COMPARE_UNARY)
#undef COMPARE_UNARY
#define COMPARE_BINARY(Name, function)                                                             \
  checkZeroAdjoint<[](auto x, auto y) { return function(x, y); }>();                               \
  checkZeroAdjoint<[](auto x, auto) { return function(x, 0.0); }>();                               \
  checkZeroAdjoint<[](auto x, auto) { return function(0.0, x); }>();
  BURTORCH_BINARY_OPERATIONS(COMPARE_BINARY)
#undef COMPARE_BINARY
#define COMPARE_CLIPPED(Name, function)                                                            \
  checkZeroAdjoint<[](auto x, auto) { return function(x, -1.0, 0.5); }>();
  BURTORCH_CLIPPED_OPERATIONS(COMPARE_CLIPPED)
#undef COMPARE_CLIPPED
#define COMPARE_REDUCTION(Name, function)                                                          \
  checkZeroAdjoint<[](auto x, auto y) { return function(std::array{x, y, x}); }>();                \
  checkZeroAdjoint<[](auto x, auto) { return function(std::array{x}); }>();
  BURTORCH_REDUCTIONS(COMPARE_REDUCTION)
#undef COMPARE_REDUCTION
  checkZeroAdjoint<[](auto x, auto y) {
    return innerProduct(std::array{x, y}, std::array{y, x});
  }>();
  checkZeroAdjoint<[](auto x, auto y) {
    return innerProductWithBias(std::array{x, y}, std::array{y, x}, x);
  }>();
}

TEST_CASE("program: conditions are joined and negated") {
  constexpr auto f = [](auto a, auto b) {
    const auto inside = a > 0.0 && b > 0.0;
    return select(inside || !(a < 5.0), a * b, select(!inside && (b < -1.0 || a == b), b, a));
  };
  using P = Program<f, 2>;
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double a : {-3.0, -1.0, 0.0, 2.0, 7.0, nan})
    for (const double b : {-3.0, -1.0, 0.0, 2.0, nan}) {
      const bool inside = a > 0.0 && b > 0.0, product = inside || !(a < 5.0);
      const bool second = b < -1.0 || a == b;
      const auto g = P::gradient(std::array{a, b});
      const auto same = [](double x, double y) {
        return x == y || (std::isnan(x) && std::isnan(y));
      };
      CHECK(same(g[0], product ? b : second ? 0.0 : 1.0));
      CHECK(same(g[1], product ? a : second ? 1.0 : 0.0));
      CHECK(same(P::value(std::array{a, b}), product ? a * b : second ? b : a));
    }
}

TEST_CASE("program: the names that Values have, sequences in braces") {
  checkAgainstTape<[](auto a, auto b) {
    auto x = a + 1.0;
    addInplace(x, b);
    subInplace(x, 0.25);
    multInplace(x, x);
    divInplace(x, 3.0);
    const auto [mean, squares] = reduceMeanAndMeanSquares({x, a, b});
    return mean * squares + reduceSum({a, x}) + innerProduct({a, b}, {x, x}) +
           innerProductWithBias({a}, {b}, x) + reduceMax({a, b, x});
  }>(0.75, 1.5);
}

TEST_CASE("program: a number is an output, and a tuple is several") {
  using Two = Program<[](auto) { return 2.0; }, 1>;
  CHECK(Two::value(std::array{7.0}) == 2.0);
  CHECK(Two::gradient(std::array{7.0})[0] == 0.0);
  using P = Program<[](auto a, auto b) { return std::tuple{a * b, 5, a}; }, 2>;
  double j[3][2];
  CHECK(P::jacobian(std::array{2.0, 3.0}, j) == std::array{6.0, 5.0, 2.0});
  CHECK((j[0][0] == 3.0 && j[0][1] == 2.0 && j[1][0] == 0.0 && j[1][1] == 0.0));
  CHECK((j[2][0] == 1.0 && j[2][1] == 0.0));
}

#if BURTORCH_CHECKS && BURTORCH_EXCEPTIONS
TEST_CASE("program: sequences that are too short when running") {
  std::vector<double> x(1), gradient(2);
  CHECK(errorOf([&] { Tiny::gradient(x, gradient); }).kind() == ErrorKind::badArgument);
  x.resize(2);
  gradient.resize(1);
  CHECK(errorOf([&] { Tiny::gradient(x, gradient); }).kind() == ErrorKind::badArgument);
}
#endif

TEST_CASE("program: every operation gives what the tape gives") {
#define COMPARE_UNARY(Name, function) checkAgainstTape<[](auto x) { return function(x); }>(0.75);
  BURTORCH_UNARY_OPERATIONS(COMPARE_UNARY)
#undef COMPARE_UNARY
#define COMPARE_BINARY(Name, function)                                                             \
  checkAgainstTape<[](auto x, auto y) { return function(x, y); }>(0.75, 1.5);                      \
  checkAgainstTape<[](auto x) { return function(x, 1.5); }>(0.75);                                 \
  checkAgainstTape<[](auto x) { return function(1.5, x); }>(0.75);
  BURTORCH_BINARY_OPERATIONS(COMPARE_BINARY)
#undef COMPARE_BINARY
#define COMPARE_CLIPPED(Name, function)                                                            \
  checkAgainstTape<[](auto x) { return function(x, -1.0, 0.5); }>(0.25);                           \
  checkAgainstTape<[](auto x) { return function(x, -1.0, 0.5); }>(0.75);
  BURTORCH_CLIPPED_OPERATIONS(COMPARE_CLIPPED)
#undef COMPARE_CLIPPED
#define COMPARE_REDUCTION(Name, function)                                                          \
  checkAgainstTape<[](auto x, auto y, auto z) {                                                    \
    return function(std::array{x, y, z, x});                                                       \
  }>(0.75, 1.5, -2.0);
  BURTORCH_REDUCTIONS(COMPARE_REDUCTION)
#undef COMPARE_REDUCTION
  checkAgainstTape<[](auto x, auto y, auto z) {
    return innerProduct(std::array{x, y}, std::array{y, z});
  }>(0.75, 1.5, -2.0);
  checkAgainstTape<[](auto x, auto y, auto z) {
    return innerProductWithBias(std::array{x, y}, std::array{y, z}, z);
  }>(0.75, 1.5, -2.0);
}
