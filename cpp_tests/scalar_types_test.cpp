// cpp_tests/scalar_types_test.cpp — every operation of the table × every scalar type of the library
// SPDX-License-Identifier: MIT
//
// Both lists are the library's own, so neither an operation nor a type can be forgotten. The truth
// is the same operation on a tape of doubles, which op_table_test.cpp compares with differences;
// every lane has another sample.
//
// Compiling this takes long: nothing is forced to be inlined here, and builds with an optimizer or a
// sanitizer take one type of each kind; the whole list is for the others.
#define BURTORCH_INSTRUMENTED 1
#include <burtorch/burtorch.hpp>
#include <burtorch/op/types.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace bt = burtorch;
namespace op = burtorch::op;

namespace {

constexpr std::array points{-3.1, -1.7, -0.8, -0.45, 0.35, 0.6, 0.9, 1.3, 2.2, 3.7};

// How a type holds numbers: lanes of them, to so many digits.
template <class T> struct As {
  static constexpr std::size_t lanes = 1;
  static constexpr double epsilon =
      sizeof(T) == 16 ? 0x1p-53 : static_cast<double>(std::numeric_limits<T>::epsilon());
  static T make(const auto& numberOf) { return T(numberOf(0)); }
  static double lane(const T& x, std::size_t) { return static_cast<double>(x); }
};
template <class T, std::size_t N> struct As<bt::simd<T, N>> {
  static constexpr std::size_t lanes = N;
  static constexpr double epsilon = As<T>::epsilon;
  static bt::simd<T, N> make(const auto& numberOf) {
    bt::simd<T, N> x;
    for (std::size_t i = 0; i < N; ++i) x.set(i, static_cast<T>(numberOf(i)));
    return x;
  }
  static double lane(const bt::simd<T, N>& x, std::size_t i) { return static_cast<double>(x[i]); }
};
template <class T> struct As<bt::dual<T>> {
  static constexpr std::size_t lanes = 1;
  static constexpr double epsilon = As<T>::epsilon;
  static bt::dual<T> make(const auto& numberOf) { return bt::dual<T>(numberOf(0)); }
  static double lane(const bt::dual<T>& x, std::size_t) { return static_cast<double>(x.value); }
};

// Sample k as the type holds it, lane by lane.
template <class T> T sample(std::size_t k) {
  return As<T>::make([&](std::size_t i) { return points[(k + i) % points.size()]; });
}

// One operation in one form on n operands.
template <class T> struct Case {
  std::string name;
  std::size_t n;
  bt::Value<T> (*apply)(std::span<const bt::Value<T>> x);
};

template <class T> T numberLike(const bt::Value<T>& x) { return x.dataCopy(); }

template <class V> std::vector<V> everySecond(std::span<const V> x) { // no run
  std::vector<V> some;
  for (std::size_t i = 0; i < x.size(); i += 2) some.push_back(x[i]);
  return some;
}

template <class O, class X, class Y, class V>
auto product(const X& x, const Y& y, [[maybe_unused]] const V& bias) {
  if constexpr (O::hasBias) return bt::apply<O>(x, y, bias);
  else return bt::apply<O>(x, y);
}

template <class T> std::vector<Case<T>> allCases() {
  using X = std::span<const bt::Value<T>>;
  std::vector<Case<T>> all;
#define BURTORCH_ADD(Name, function)                                                               \
  all.push_back({#function, 1, [](X x) { return bt::apply<op::Name>(x[0]); }});
  BURTORCH_UNARY_OPERATIONS(BURTORCH_ADD)
#undef BURTORCH_ADD
#define BURTORCH_ADD(Name, function)                                                               \
  all.push_back({#function, 2, [](X x) { return bt::apply<op::Name>(x[0], x[1]); }});              \
  all.push_back({#function " with a number", 2,                                                    \
                 [](X x) { return bt::apply<op::Name>(x[0], numberLike(x[1])); }});                \
  all.push_back({#function " of a number", 2,                                                      \
                 [](X x) { return bt::apply<op::Name>(numberLike(x[0]), x[1]); }});
  BURTORCH_BINARY_OPERATIONS(BURTORCH_ADD)
#undef BURTORCH_ADD
#define BURTORCH_ADD(Name, function)                                                               \
  all.push_back({#function, 1, [](X x) { return bt::apply<op::Name>(x[0], T(-1), T(2)); }});
  BURTORCH_CLIPPED_OPERATIONS(BURTORCH_ADD)
#undef BURTORCH_ADD
#define BURTORCH_ADD(Name, function)                                                               \
  for (const std::size_t n : {1u, 2u, 5u, 10u, 21u}) {                                             \
    all.push_back({#function, n, [](X x) { return bt::apply<op::Name>(x); }});                     \
    all.push_back(                                                                                 \
        {#function " of a list", 2 * n, [](X x) { return bt::apply<op::Name>(everySecond(x)); }}); \
  }
  BURTORCH_REDUCTIONS(BURTORCH_ADD)
#undef BURTORCH_ADD
#define BURTORCH_ADD(Name, function)                                                               \
  for (const std::size_t n : {1u, 3u, 8u, 21u}) {                                                  \
    all.push_back({#function, 2 * n + 1, [](X x) {                                                 \
                     const std::size_t half = x.size() / 2;                                        \
                     return product<op::Name>(x.first(half), x.subspan(half, half), x.back());     \
                   }});                                                                            \
    all.push_back({#function " of lists", 4 * n, [](X x) {                                         \
                     const auto some = everySecond(x);                                             \
                     return product<op::Name>(some, x.last(some.size()), x.front());               \
                   }});                                                                            \
  }
  BURTORCH_PRODUCTS(BURTORCH_ADD)
#undef BURTORCH_ADD
  return all;
}

// What comes out of one operation: its value, then the gradients of its operands.
template <class T> std::vector<T> outcomeOf(const Case<T>& one, const std::vector<T>& x) {
  bt::Tape<T> tape;
  const bt::TapeScope scope(tape);
  std::vector<bt::Value<T>> leaves;
  for (const T& each : x) leaves.emplace_back(tape, each);
  const auto z = one.apply(leaves);
  bt::backward(z);
  std::vector<T> out{z.dataCopy()};
  for (const auto& leaf : leaves) out.push_back(leaf.gradCopy());
  return out;
}

template <class T> void checkAll() {
  const auto inT = allCases<T>();
  const auto inDouble = allCases<double>();
  for (std::size_t c = 0; c < inT.size(); ++c)
    for (std::size_t first = 0; first < points.size(); ++first) {
      std::vector<T> x;
      for (std::size_t k = 0; k < inT[c].n; ++k) x.push_back(sample<T>(first + k));
      const auto got = outcomeOf(inT[c], x);
      for (std::size_t lane = 0; lane < As<T>::lanes; ++lane) {
        std::vector<double> plain;
        for (const T& each : x) plain.push_back(As<T>::lane(each, lane));
        const auto want = outcomeOf(inDouble[c], plain);
        for (std::size_t i = 0; i < want.size(); ++i) {
          const double g = As<T>::lane(got[i], lane), w = want[i];
          const double size = std::isnan(want[0]) ? 1 : 1 + std::abs(want[0]);
          const double bound = 16 * As<T>::epsilon * (1 + std::abs(w)) * size;
          const bool good = (std::isnan(g) && std::isnan(w)) || g == w || std::abs(g - w) <= bound;
          if (!good) // a CHECK for each of the millions would take longer than they do
            FAIL_CHECK(inT[c].name << " of " << inT[c].n << ", result " << i << ", lane " << lane
                                   << ": " << g << " instead of " << w);
        }
      }
    }
}

} // namespace

#if defined(__OPTIMIZE__) || defined(__SANITIZE_ADDRESS__)
#define BURTORCH_TESTED_TYPES(X)                                                                   \
  X(float16, bt::float16)                                                                          \
  X(float32x8, bt::float32x8)
#else
#define BURTORCH_TESTED_TYPES(X) BURTORCH_SCALAR_TYPES(X)
#endif

#define BURTORCH_TEST(name, type)                                                                  \
  TEST_CASE("every operation on " #name) { checkAll<type>(); }
BURTORCH_TESTED_TYPES(BURTORCH_TEST)
#undef BURTORCH_TEST

TEST_CASE("derivatives in float128 have the digits of float128") {
  using Quad = bt::float128;
  const Quad h(1e-10);
  for (const double at : {0.35, 0.6, 0.9}) {
    const Quad x(at);
#define BURTORCH_CHECK(Name, function)                                                             \
  {                                                                                                \
    const Quad z = op::Name::forward(x), slope = op::Name::pullback(x, z, Quad(1));                \
    const auto difference = [&](Quad step) {                                                       \
      return (op::Name::forward(x + step) - op::Name::forward(x - step)) / (step + step);          \
    };                                                                                             \
    const Quad want =                                                                              \
        (Quad(4) * difference(h) - difference(h + h)) / Quad(3); /* error of order h⁴ */         \
    CHECK_MESSAGE(fabs(slope - want) < Quad(1e-20),                                                \
                  std::string(#function) << " is off by " << static_cast<double>(slope - want));   \
  }
    BURTORCH_UNARY_OPERATIONS(BURTORCH_CHECK)
#undef BURTORCH_CHECK
  }
}

TEST_CASE("a graph of lanes is eight graphs; conditionals choose for each lane") {
  using V = bt::simd<float, 8>;
  const auto graph = [](const auto& x, const auto& y) {
    return relu(x) * max(x, y) + abs(y) - min(x * y, x) + clamp(x + y, -1, 1);
  };
  V xs, ys;
  for (std::size_t i = 0; i < 8; ++i) {
    xs.set(i, static_cast<float>(i) - 3.5f);
    ys.set(i, 2.25f - static_cast<float>(i) * 0.75f);
  }
  bt::Tape<V> lanes;
  const bt::Value<V> x(lanes, xs), y(lanes, ys);
  const auto z = graph(x, y);
  bt::backward(z);
  for (std::size_t i = 0; i < 8; ++i) {
    bt::Tape<float> tape;
    const bt::Value<float> a(tape, xs[i]), b(tape, ys[i]);
    const auto c = graph(a, b);
    bt::backward(c);
    CHECK(z.dataCopy()[i] == c.dataCopy());
    CHECK(x.gradCopy()[i] == a.gradCopy());
    CHECK(y.gradCopy()[i] == b.gradCopy());
  }
}

TEST_CASE("an adjoint of 0 in a lane gives nothing, not even 0·∞") {
  using V = bt::simd<double, 4>;
  V xs(4.0);
  xs.set(1, 0.0);
  bt::Tape<V> tape;
  const bt::Value<V> x(tape, xs);
  V weight(1.0);
  weight.set(1, 0.0); // the root does not depend on the lane where the root of 0 is taken
  bt::backward(sqrt(x) * weight);
  CHECK(x.gradCopy()[0] == 0.25);
  CHECK(x.gradCopy()[1] == 0);
}

TEST_CASE("halves: an operation rounds once, and sums are kept in float") {
  using H = bt::float16;
  bt::Tape<H> tape;
  std::vector<bt::Value<H>> x;
  for (int i = 0; i < 4096; ++i) x.emplace_back(tape, 1.0);
  CHECK(static_cast<float>(reduceSum(x).dataCopy()) == 4096); // in half it would stop at 2048
  const bt::Value<H> a(tape, 3.0);
  // sigmoid(3) from float, rounded once.
  CHECK(sigmoid(a).dataCopy().bits() == H(1.0f / (1.0f + std::exp(-3.0f))).bits());
  std::vector<bt::Value<H>> y;
  for (int i = 0; i < 4096; ++i) y.emplace_back(tape, 0.5 + i % 7);
  float want = 0;
  for (int i = 0; i < 4096; ++i)
    want += static_cast<float>(y[static_cast<std::size_t>(i)].dataCopy());
  const auto product = innerProduct(x, y);
  CHECK(product.dataCopy().bits() == H(want).bits());
  bt::backward(product);
  CHECK(static_cast<float>(x[13].gradCopy()) == static_cast<float>(y[13].dataCopy()));
  CHECK(static_cast<float>(y[4095].gradCopy()) == 1);
}
