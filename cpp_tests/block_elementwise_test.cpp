// cpp_tests/block_elementwise_test.cpp — every operation of the table on views, against single Values
// SPDX-License-Identifier: MIT
#include "block_support.hpp"
#include "support.hpp"

#include <burtorch/block/elementwise.hpp>

using namespace burtorch;
using namespace block_support;

namespace {

// f(i) for every element, row by row.
template <class T, class F> auto elements(const View<T>& x, const F& f) {
  return block::rowOf(x.size(), f);
}

} // namespace

TEST_CASE_TEMPLATE("elementwise: every unary operation", T, double, float) {
  for (const std::size_t rows : {1u, 3u})
    for (const std::size_t cols : {1u, 7u, 21u}) {
      // Where all of them are defined.
#define CHECK_ONE(Name, function)                                                                  \
  {                                                                                                \
    INFO(#function);                                                                               \
    checkSame<T>(                                                                                  \
        {{rows, cols}}, [](const auto& v) { return function(v[0]); },                              \
        [](const auto& v) {                                                                        \
          return elements(v[0], [&](std::size_t i) { return function(v[0][i]); });                 \
        },                                                                                         \
        0.125, 0.875);                                                                             \
    checkDefinition<T, block::Map<op::Name>>(                                                      \
        {{rows, cols}}, [](const auto& v) { return function(v[0]); }, 0.125, 0.875);               \
  }
      BURTORCH_UNARY_OPERATIONS(CHECK_ONE)
#undef CHECK_ONE
    }
  checkDefinition<T, block::Map<op::Gelu>>(
      {{2, 40}}, [](const auto& v) { return gelu(v[0]); }, -4, 4);
  checkDefinition<T, block::Map<op::Tanh>>(
      {{2, 40}}, [](const auto& v) { return tanh(v[0]); }, -4, 4);
  checkDefinition<T, block::Map<op::Relu>>({{2, 40}}, [](const auto& v) { return relu(v[0]); });
}

TEST_CASE_TEMPLATE("elementwise: every binary operation, in every way shapes go together", T,
                   double, float) {
  const std::vector<std::vector<Shape>> pairs{{{3, 5}, {3, 5}}, {{1, 5}, {1, 5}}, {{3, 5}, {1, 5}},
                                              {{1, 5}, {3, 5}}, {{3, 5}, {1, 1}}, {{1, 1}, {3, 5}},
                                              {{1, 1}, {1, 1}}, {{4, 1}, {1, 1}}, {{4, 1}, {4, 1}},
                                              {{3, 5}, {3, 1}}, {{3, 1}, {3, 5}}, {{3, 1}, {1, 5}}};
  for (const auto& shapes : pairs) {
#define CHECK_ONE(Name, function)                                                                  \
  {                                                                                                \
    INFO(#function);                                                                               \
    checkDefinition<T, block::Map2<op::Name>>(                                                     \
        shapes, [](const auto& v) { return function(v[0], v[1]); }, 0.25, 2);                      \
  }
    BURTORCH_BINARY_OPERATIONS(CHECK_ONE)
#undef CHECK_ONE
  }
}

TEST_CASE_TEMPLATE("elementwise: the same nodes twice, and a number on either side", T, double,
                   float){
#define CHECK_ONE(Name, function)                                                                  \
  {                                                                                                \
    INFO(#function);                                                                               \
    checkSame<T>(                                                                                  \
        {{2, 5}}, [](const auto& v) { return function(v[0], v[0]); },                              \
        [](const auto& v) {                                                                        \
          return elements(v[0], [&](std::size_t i) { return function(v[0][i], v[0][i]); });        \
        },                                                                                         \
        0.25, 2);                                                                                  \
    checkSame<T>(                                                                                  \
        {{2, 5}}, [](const auto& v) { return function(v[0], v[0].row(1)); },                       \
        [](const auto& v) {                                                                        \
          return elements(v[0], [&](std::size_t i) { return function(v[0][i], v[0](1, i % 5)); }); \
        },                                                                                         \
        0.25, 2);                                                                                  \
    checkSame<T>(                                                                                  \
        {{2, 5}}, [](const auto& v) { return function(v[0], T(0.75)); },                           \
        [](const auto& v) {                                                                        \
          return elements(v[0], [&](std::size_t i) { return function(v[0][i], T(0.75)); });        \
        },                                                                                         \
        0.25, 2);                                                                                  \
    if (op::Entry<op::Name>::code != Op::eBinaryMultByConst) /* whose right operand is none */     \
      checkSame<T>(                                                                                \
          {{2, 5}}, [](const auto& v) { return function(T(0.75), v[0]); },                         \
          [](const auto& v) {                                                                      \
            return elements(v[0], [&](std::size_t i) { return function(T(0.75), v[0][i]); });      \
          },                                                                                       \
          0.25, 2);                                                                                \
  }
    BURTORCH_BINARY_OPERATIONS(CHECK_ONE)
#undef CHECK_ONE
}

TEST_CASE("elementwise: operators") {
  Tape<double> tape;
  const std::vector<double> numbers{1, 2, 4};
  const View<double> x = vector(tape, spanOf(numbers));
  const auto is = [](const View<double>& v, const std::vector<double>& want) {
    return std::ranges::equal(v.data(), want);
  };
  CHECK(is(x + x, {2, 4, 8}));
  CHECK(is(x - 1, {0, 1, 3}));
  CHECK(is(2 * x, {2, 4, 8}));
  CHECK(is(8 / x, {8, 4, 2}));
  CHECK(is(-x, {-1, -2, -4}));
  CHECK(is(x * x / x, {1, 2, 4}));
  CHECK(is(log(exp(View<double>(tape, 1, 2))), {0, 0}));
  CHECK(is(2.0f - x, {1, 0, -2}));
  CHECK(is(clamp(x, 1.5, 3), {1.5, 2, 3}));
}

TEST_CASE_TEMPLATE("elementwise: a Value beside a view goes with every element", T, double, float) {
#define CHECK_ONE(Name, function)                                                                  \
  {                                                                                                \
    INFO(#function);                                                                               \
    checkSame<T>(                                                                                  \
        {{2, 5}, {1, 1}}, [](const auto& v) { return function(v[0], v[1][0]); },                   \
        [](const auto& v) {                                                                        \
          return elements(v[0], [&](std::size_t i) { return function(v[0][i], v[1][0]); });        \
        },                                                                                         \
        0.25, 2);                                                                                  \
    checkSame<T>(                                                                                  \
        {{2, 5}, {1, 1}}, [](const auto& v) { return function(v[1][0], v[0]); },                   \
        [](const auto& v) {                                                                        \
          return elements(v[0], [&](std::size_t i) { return function(v[1][0], v[0][i]); });        \
        },                                                                                         \
        0.25, 2);                                                                                  \
  }
  BURTORCH_BINARY_OPERATIONS(CHECK_ONE)
#undef CHECK_ONE
  Tape<T> tape, other;
  const View<T> x(tape, 1, 2);
  CHECK((x * x[0] / (x[1] + T(2)) - x[0] + x[1]).size() == 2);
  CHECK(errorOf([&] { x + Value<T>(other, T(1)); }).kind() == ErrorKind::differentTapes);
}

TEST_CASE_TEMPLATE("elementwise: between bounds", T, double, float) {
#define CHECK_ONE(Name, function)                                                                  \
  checkSame<T>(                                                                                    \
      {{3, 7}}, [](const auto& v) { return function(v[0], -0.5, 0.25f); },                         \
      [](const auto& v) {                                                                          \
        return elements(v[0], [&](std::size_t i) { return function(v[0][i], T(-0.5), T(0.25)); }); \
      });                                                                                          \
  checkDefinition<T, block::MapBounded<op::Name>>(                                                 \
      {{3, 7}}, [](const auto& v) { return function(v[0], -0.5, 0.25f); });
  BURTORCH_CLIPPED_OPERATIONS(CHECK_ONE)
#undef CHECK_ONE
}

TEST_CASE("elementwise: a number that lies on the tape survives its growth") {
  Tape<double> tape;
  const View<double> x(tape, 1, 100);
  x.data()[3] = 5;
  for (int i = 0; i < 50; ++i) { // some of these grow the tape
    const View<double> y = x + tape.values()[3];
    REQUIRE(y.data()[0] == 5);
  }
}

TEST_CASE("elementwise: shapes that do not go together are named") {
  Tape<double> tape;
  const View<double> x(tape, 3, 2), y(tape, 2, 3), column(tape, 3, 1), row(tape, 1, 3);
  const std::size_t before = tape.size();
  CHECK(errorOf([&] { x + y; }).what() == std::string("add: 3×2 does not go with 2×3"));
  CHECK(errorOf([&] { column* y; }).what() == std::string("mul: 3×1 does not go with 2×3"));
  CHECK(errorOf([&] { x - row; }).what() == std::string("sub: 3×2 does not go with 1×3"));
  CHECK(tape.size() == before);
}

TEST_CASE("elementwise: nothing of nothing") {
  Tape<double> tape;
  const View<double> none(tape, 0, 3), row(tape, 1, 3);
  CHECK((none + row).size() == 0);
  CHECK(tanh(none).rows() == 0);
  CHECK((none * 2).cols() == 3);
  CHECK((View<double>(tape, 3, 0) + View<double>(tape, 3, 1)).rows() == 3);
}
