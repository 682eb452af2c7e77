// cpp_tests/viz_graph_test.cpp — which nodes a picture shows, and the derivatives of one operation
// SPDX-License-Identifier: MIT
#include "support.hpp"

#include <burtorch/viz/graph.hpp>

#include <doctest/doctest.h>

#include <array>
#include <vector>

namespace bt = burtorch;
namespace viz = burtorch::viz;
using V = bt::Value<double>;

namespace {

template <class Graph> std::vector<std::size_t> indices(const Graph& graph) {
  std::vector<std::size_t> out;
  for (const auto& node : graph.nodes) out.push_back(node.index);
  return out;
}

auto argumentsOf(const V& v) {
  const auto& tape = v.tape();
  return viz::argumentsOf(tape, tape.records()[tape.recordOf(v.sysGetRawNodeIndex())]);
}

using Indices = std::vector<std::size_t>;

} // namespace

TEST_CASE("only what the root reaches, in the order of indices") {
  bt::Tape<double> tape;
  const V a(tape, 2.0), unused(tape, 3.0), b(tape, 4.0); // 0 1 2
  const V sum = b + a;                                   // 3
  [[maybe_unused]] const V other = unused * a;           // 4
  const V root = sum * b;                                // 5
  const auto graph = viz::graphOf(root);
  CHECK(indices(graph) == Indices{0, 2, 3, 5});
  CHECK(graph.more == 0);
  CHECK(graph.isLeaf(graph.nodes[0]));
  CHECK_FALSE(graph.isLeaf(graph.nodes[3]));
  CHECK(graph.tape.namesOf(graph.nodes[2].record).function == std::string("add"));
  CHECK(graph.tape.namesOf(graph.nodes[0].record).function == std::string("leaf"));
  CHECK(graph.find(2) != nullptr);
  CHECK(graph.find(1) == nullptr);
}

TEST_CASE("limits keep what is nearest to the root and count the rest") {
  bt::Tape<double> tape;
  V x(tape, 1.0); // 0
  for (int i = 0; i < 9; ++i) x = tanh(x);
  const V root = x + V::at(tape, 8); // 10; 9 and 8 are one operation away
  CHECK(indices(viz::graphOf(root, {.depth = 0})) == Indices{10});
  CHECK(indices(viz::graphOf(root, {.depth = 1})) == Indices{8, 9, 10});
  CHECK(viz::graphOf(root, {.depth = 1}).more == 8);
  CHECK(indices(viz::graphOf(root, {.depth = 2})) == Indices{7, 8, 9, 10});
  CHECK(indices(viz::graphOf(root, {.maxNodes = 4})) == Indices{7, 8, 9, 10});
  CHECK(viz::graphOf(root, {.maxNodes = 4}).more == 7);
  CHECK(viz::graphOf(root, {.depth = 1, .maxNodes = 100}).nodes.size() == 3);
  CHECK(indices(viz::graphOf(root, {.maxNodes = 0})) == Indices{10}); // the root is always there
}

TEST_CASE("a node reached on two ways has the shorter one's depth and appears once") {
  bt::Tape<double> tape;
  const V a(tape, 2.0);
  const V square = a * a; // twice the same operand
  const V root = tanh(tanh(square)) + a;
  CHECK(indices(viz::graphOf(root)) == Indices{0, 1, 2, 3, 4});
  CHECK(indices(viz::graphOf(root, {.depth = 1})) == Indices{0, 3, 4});
}

TEST_CASE("kinds: the root, results, parameters and other leaves") {
  bt::Tape<double> tape;
  const V weight(tape, 2.0), input(tape, 3.0);
  const V root = exp(weight * input);
  const auto kinds = [&](const viz::Selection& selection) {
    const auto graph = viz::graphOf(root, selection);
    std::vector<viz::Kind> out;
    for (const auto& node : graph.nodes) out.push_back(graph.kindOf(node));
    return out;
  };
  using viz::Kind;
  CHECK(kinds({}) == std::vector{Kind::leaf, Kind::leaf, Kind::inner, Kind::root});
  CHECK(kinds({.parametersBelow = 1}) ==
        std::vector{Kind::parameter, Kind::leaf, Kind::inner, Kind::root});
#if BURTORCH_LABELS
  input.setLabel("x");
  CHECK(kinds({}) == std::vector{Kind::leaf, Kind::parameter, Kind::inner, Kind::root});
  CHECK(kinds({.parametersBelow = 1}) ==
        std::vector{Kind::parameter, Kind::leaf, Kind::inner, Kind::root});
#endif
  const auto alone = viz::graphOf(input); // a leaf may be the root
  CHECK(alone.kindOf(alone.nodes[0]) == viz::Kind::root);
}

TEST_CASE("a whole tape: its roots are what no operation has used") {
  bt::Tape<double> tape;
  const V a(tape, 2.0), lonely(tape, 5.0);
  [[maybe_unused]] const V one = sqr(a), two = sqrt(a);
  const auto graph = viz::graphOf(tape);
  CHECK(indices(graph) == Indices{0, 1, 2, 3});
  CHECK(graph.roots == Indices{3, 2, 1});
  CHECK(graph.kindOf(graph.nodes[1]) == viz::Kind::leaf); // not a result of anything
  CHECK(graph.kindOf(graph.nodes[2]) == viz::Kind::root);
  CHECK(graph.kindOf(graph.nodes[3]) == viz::Kind::root);
  const bt::Tape<double> empty;
  CHECK(viz::graphOf(empty).nodes.empty());
}

TEST_CASE("a chain of a million nodes is walked without recursion") {
  bt::Tape<float> tape;
  bt::Value<float> x(tape, 0.5f);
  for (int i = 0; i < 1'000'000; ++i) x = sin(x);
  CHECK(viz::graphOf(x).nodes.size() == 1'000'001);
}

TEST_CASE("operands in order, plain numbers among them") {
  bt::Tape<double> tape;
  const V a(tape, 3.0), b(tape, 4.0);
  auto arguments = argumentsOf(10.0 / a);
  CHECK_FALSE(arguments[0].isNode);
  CHECK(arguments[0].value == 10);
  CHECK(arguments[1].isNode);
  CHECK(arguments[1].node == 0);
  CHECK(arguments[1].derivative == doctest::Approx(-10.0 / 9));
  arguments = argumentsOf(b - 1.0);
  CHECK(arguments[0].node == 1);
  CHECK(arguments[1].value == 1);
  CHECK(arguments[0].derivative == 1);
  CHECK(arguments[1].derivative == 0);
  arguments = argumentsOf(clamp(a, -1.0, 5.0));
  REQUIRE(arguments.size() == 3);
  CHECK(arguments[1].value == -1);
  CHECK(arguments[2].value == 5);
  CHECK(arguments[0].derivative == 1);
}

TEST_CASE("each operand's own derivative, also of an operand that comes twice") {
  bt::Tape<double> tape;
  const V a(tape, 3.0), b(tape, 4.0), c(tape, 5.0);
  const auto derivatives = [](const V& v) {
    std::vector<double> out;
    for (const auto& argument : argumentsOf(v)) out.push_back(argument.derivative);
    return out;
  };
  CHECK(derivatives(a / a) == std::vector{1.0 / 3, -1.0 / 3});
  CHECK(derivatives(reduceMul(std::array{a, b, c})) == std::vector<double>{20, 15, 12});
  CHECK(derivatives(reduceMul(std::array{a, a, c})) == std::vector<double>{15, 15, 9});
  CHECK(derivatives(innerProduct(std::array{a, b}, std::array{b, c})) ==
        std::vector<double>{4, 5, 3, 4});
  CHECK(derivatives(innerProductWithBias(std::array{a, a}, std::array{c, b}, a)) ==
        std::vector<double>{5, 4, 3, 3, 1});
}

TEST_CASE("the derivatives are those that backward adds up, for every operation of two or fewer") {
  bt::Tape<double> tape;
  const V a(tape, 0.3), b(tape, 0.7);
  const auto check = [&](const V& z) {
    backward(z);
    double toA = 0, toB = 0;
    for (const auto& argument : argumentsOf(z))
      if (argument.isNode) (argument.node == 0 ? toA : toB) += argument.derivative;
    CHECK(toA == a.gradCopy());
    CHECK(toB == b.gradCopy());
    tape.zeroGrad();
  };
#define BURTORCH_CHECK_UNARY(Name, function) check(bt::apply<bt::op::Name>(a));
  BURTORCH_UNARY_OPERATIONS(BURTORCH_CHECK_UNARY)
#undef BURTORCH_CHECK_UNARY
#define BURTORCH_CHECK_BINARY(Name, function)                                                      \
  check(bt::apply<bt::op::Name>(a, b));                                                            \
  check(bt::apply<bt::op::Name>(b, a));                                                            \
  check(bt::apply<bt::op::Name>(a, a));                                                            \
  check(bt::apply<bt::op::Name>(a, 2.0));                                                          \
  check(bt::apply<bt::op::Name>(2.0, b));
  BURTORCH_BINARY_OPERATIONS(BURTORCH_CHECK_BINARY)
#undef BURTORCH_CHECK_BINARY
#define BURTORCH_CHECK_REDUCTION(Name, function)                                                   \
  check(bt::apply<bt::op::Name>(std::array{a, b}));                                                \
  check(bt::apply<bt::op::Name>(std::array{b, b, a}));
  BURTORCH_REDUCTIONS(BURTORCH_CHECK_REDUCTION)
#undef BURTORCH_CHECK_REDUCTION
}
