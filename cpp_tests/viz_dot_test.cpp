// cpp_tests/viz_dot_test.cpp — DOT text and asString (what Graphviz makes of it is tested from Python)
// SPDX-License-Identifier: MIT
#include <burtorch/block/affine.hpp>
#include <burtorch/block/elementwise.hpp>
#include <burtorch/burtorch.hpp>
#include <burtorch/viz/dot.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <string>

namespace bt = burtorch;
namespace viz = burtorch::viz;
using V = bt::Value<double>;

namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

struct Fixture {
  bt::Tape<double> tape;
  V a{tape, 3.0}, b{tape, 4.0}; // 0, 1
  V c = b - a;                  // 2
  V root = c * 0.5;             // 3
};

} // namespace

TEST_CASE_FIXTURE(Fixture, "one box per node, edges in operand order, numbers beside") {
  const std::string text = buildDotGraph(root, "a \"title\"");
  CHECK(text.starts_with("digraph burtorch {\n  rankdir=LR\n  label=\"a &quot;title&quot;\"\n"));
  for (const char* node : {"  n0 [", "  n1 [", "  n2 [", "  n3 [", "  c3_2 [label=\"0.5\""})
    CHECK(count(text, node) == 1);
  CHECK(text.find("  n1 -> n2\n  n0 -> n2\n") != std::string::npos);
  CHECK(text.find("  c3_2 -> n3 [arrowhead=none]\n") != std::string::npos);
  CHECK(text.ends_with("}\n"));
  CHECK(buildDotGraph(root).find("  label=") == std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "fields and direction") {
  using viz::Fields;
  const auto with = [&](Fields fields) { return buildDotGraph(root, "", {.fields = fields}); };
  CHECK(count(with(Fields::usual), ">value<") == 4);
  CHECK(count(with(Fields::usual), ">grad<") == 4);
  CHECK(count(with(Fields::value | Fields::operation), ">grad<") == 0);
  CHECK(count(with(Fields::none), "[label=\"\"") == 4);
  CHECK(count(with(Fields::all), "  n0 -> n2 [label=\"-1\"]\n") == 1);
  CHECK(count(buildDotGraph(root, "", {.direction = viz::Direction::topToBottom}), "rankdir=TB") ==
        1);
  CHECK(count(buildDotGraph(root / 3.0, "", {.digits = 3}), "0.167<") == 1);
}

TEST_CASE_FIXTURE(Fixture, "what is left out is counted and tied to what needs it") {
  const std::string text = buildDotGraph(root, "", {.selection = {.depth = 1}});
  CHECK(count(text, "  more -> n2 [style=dashed]\n") == 1); // both operands are missing: one edge
  CHECK(count(text, "more [label=\"… 2 more\"") == 1);
  CHECK(count(text, "n0") == 0);
  CHECK(count(buildDotGraph(root), "more") == 0);
}

TEST_CASE_FIXTURE(Fixture, "kinds differ in shape") {
  const std::string text =
      buildDotGraph(root, "", {.selection = {.parametersBelow = 1}}); // a, not b
  CHECK(count(text, "shape=cylinder") == 1);
  CHECK(count(text, "peripheries=2") == 1);
  CHECK(count(buildDotGraph(root), "shape=cylinder") == 0);
}

TEST_CASE_FIXTURE(Fixture, "a whole tape") {
  [[maybe_unused]] const V other = sqrt(a);
  const std::string text = buildDotGraph(tape);
  CHECK(count(text, "peripheries=2") == 2);
  CHECK(count(text, "  n4 [") == 1);
}

#if BURTORCH_LABELS
TEST_CASE_FIXTURE(Fixture, "labels are quoted") {
  a.setLabel("<b>&\n\"");
  CHECK(count(buildDotGraph(root), "<B>&lt;b&gt;&amp;<BR/>&quot;</B>") == 1);
  const std::string unnamed = buildDotGraph(root, "", {.fields = viz::Fields::operation});
  CHECK(count(unnamed, "&lt;b") == 0);
  CHECK(count(unnamed, ">leaf<") == 2); // also the one whose label is not shown
}
#endif

TEST_CASE_FIXTURE(Fixture, "asString says everything about a node, and never fails") {
  backward(root);
  CHECK(asString(root) == "Value(data=0.5, grad=1, op=\"*\", index=3)");
  CHECK(asString(V()) == "Value()");
#if BURTORCH_LABELS
  a.setLabel("a\"");
  CHECK(asString(a) == "Value(data=3, grad=-0.5, op=\"leaf\", index=0, label=\"a\\\"\")");
#endif
  const auto mark = tape.mark();
  const V gone = a * 2.0;
  tape.rewind(mark);
  CHECK(asString(gone) == "Value(stale, index=4)");
}

// ---- blocks ----------------------------------------------------------------------------------------

TEST_CASE("dot: a block and its operands are boxes, or every node of them") {
  bt::Tape<double> tape;
  const auto w = bt::matrix(tape, 2, 3, std::array{1.0, 2.0, 3.0, 4.0, 5.0, 6.0});
  const auto b = bt::vector(tape, std::array{0.5, -0.5});
  const auto x = bt::vector(tape, std::array{1.0, 0.0, -1.0});
  w.setLabel("w");
  const auto root = bt::reduceSum(tanh(affine(w, x, b)));
  bt::backward(root);
  const std::string boxes = bt::buildDotGraph(root);
  CHECK(count(boxes, " [label=<") == 6); // w, b, x, affine, tanh, the sum
  CHECK(count(boxes, " -> ") == 6);      // three into affine, one into tanh, two into the sum
  CHECK(boxes.find("<B>w</B>") != std::string::npos);
  CHECK(boxes.find("× 6") != std::string::npos);
  CHECK(boxes.find("1 … 6") != std::string::npos);
  CHECK(boxes.find(">affine<") != std::string::npos);
  const std::string nodes =
      bt::buildDotGraph(root, "", {.selection = {.blocks = viz::Blocks::nodes}});
  CHECK(count(nodes, " [label=<") == tape.size());
}
