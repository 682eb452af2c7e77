// burtorch/viz/dot.hpp — a graph as text in the DOT language, and a node as a line of text
// SPDX-License-Identifier: MIT
//
//   std::ofstream("g.dot") << buildDotGraph(g, "title");       then: dot -Tsvg g.dot -o g.svg
//   buildDotGraph(g, "", {.selection = {.depth = 3}, .direction = viz::Direction::topToBottom})
//
// Kinds of nodes differ in shape and colour: leaves have square corners (blue), parameters are
// cylinders (green), results are rounded (white), the root has a double border (orange). Which
// leaves are parameters is said in Selection. Plain numbers among the operands are drawn beside the
// operation that uses them. Edges stand in operand order.
#pragma once

#include <burtorch/viz/graph.hpp>
#include <burtorch/viz/text.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

BURTORCH_BEGIN_NAMESPACE

namespace viz {

enum class Direction { leftToRight, topToBottom };

// What a node says. Combined with |.
enum class Fields : unsigned {
  none = 0,
  label = 1,
  operation = 2,
  value = 4,
  gradient = 8,
  index = 16,
  derivatives = 32, // of each result by its operands, written at the edges
  usual = label | operation | value | gradient | index,
  all = usual | derivatives,
};
constexpr Fields operator|(Fields x, Fields y) {
  return static_cast<Fields>(static_cast<unsigned>(x) | static_cast<unsigned>(y));
}
constexpr bool has(Fields fields, Fields field) {
  return (static_cast<unsigned>(fields) & static_cast<unsigned>(field)) != 0;
}

struct DotOptions {
  Selection selection = {};
  Direction direction = Direction::leftToRight;
  Fields fields = Fields::usual;
  int digits = 6; // significant ones; allDigits for as many as it takes to tell numbers apart
};

namespace detail {

constexpr const char* dotStyleOf(Kind kind) { // beside that of inner nodes, which is the default
  switch (kind) {
  case Kind::leaf:
    return R"( style=filled fillcolor="#e8f1fc" color="#5b8fd0")";
  case Kind::parameter:
    return R"( shape=cylinder style=filled fillcolor="#e6f5ea" color="#4f9e68")";
  case Kind::root:
    return R"( peripheries=2 fillcolor="#fff1de" color="#d98a2b")";
  case Kind::inner:
    break;
  }
  return "";
}

inline constexpr const char* dotPrologue =
    R"(  graph [bgcolor=transparent fontname="Helvetica,Arial,sans-serif" fontsize=16 labelloc=t
         nodesep=0.25 ranksep=0.45 ordering=in]
  node [fontname="Helvetica,Arial,sans-serif" fontsize=11 shape=box style="rounded,filled"
        fillcolor="#ffffff" color="#8a94a6" fontcolor="#1f2933" margin="0.08,0.04" height=0.2]
  edge [color="#8a94a6" fontname="Helvetica,Arial,sans-serif" fontsize=9 fontcolor="#6b7686"
        arrowsize=0.6]
)";

// Name and operation in the first row, then one row for each number.
class DotLabel {
public:
  void head(const std::string& html) { head_ += head_.empty() ? html : " " + html; }
  void corner(std::size_t index) {
    corner_ = "<FONT POINT-SIZE=\"8\" COLOR=\"#8a94a6\">" + std::to_string(index) + "</FONT>";
  }
  void row(const char* name, const std::string& number) {
    rows_.append("<TR><TD ALIGN=\"LEFT\"><FONT COLOR=\"#6b7686\">").append(name);
    rows_.append("</FONT></TD><TD ALIGN=\"RIGHT\">").append(number).append("</TD></TR>");
  }
  std::string text() const {
    std::string first;
    if (!head_.empty() || !corner_.empty())
      first =
          "<TR><TD ALIGN=\"LEFT\">" + head_ + "</TD><TD ALIGN=\"RIGHT\">" + corner_ + "</TD></TR>";
    if (first.empty() && rows_.empty()) return "\"\"";
    return "<<TABLE BORDER=\"0\" CELLSPACING=\"1\" CELLPADDING=\"1\">" + first + rows_ +
           "</TABLE>>";
  }

private:
  std::string head_, corner_, rows_;
};

// The number of a node; of a box the smallest and the largest.
template <class T> std::string rangeText(std::span<const T> numbers, const Node& node, int digits) {
  const auto these = numbers.subspan(node.index, node.count);
  const auto number = [&](std::size_t i) { return numberText(these[i], digits); };
  if (node.count == 1) return number(0);
  if constexpr (requires(const T& x) { static_cast<bool>(x < x); }) {
    const auto [low, high] = std::ranges::minmax_element(these);
    return numberText(*low, digits) + " … " + numberText(*high, digits);
  }
  return number(0) + " …";
}

template <class TapeType>
std::string dotLabel(const Graph<TapeType>& graph, const Node& node, const DotOptions& options) {
  std::string name = graph.tape.label(node.index);
  if (node.count != 1 && name.ends_with("[0]")) name.resize(name.size() - 3); // View::setLabel
  const bool isNamed = has(options.fields, Fields::label) && !name.empty();
  DotLabel label;
  if (isNamed) label.head("<FONT POINT-SIZE=\"13\"><B>" + htmlText(name) + "</B></FONT>");
  if (has(options.fields, Fields::operation) && !(isNamed && graph.isLeaf(node)))
    label.head("<FONT POINT-SIZE=\"13\">" + htmlText(graph.tape.namesOf(node.record).symbol) +
               "</FONT>");
  if (node.count != 1)
    label.head(std::string("<FONT POINT-SIZE=\"9\">× ")
                   .append(std::to_string(node.count))
                   .append("</FONT>"));
  if (has(options.fields, Fields::index)) label.corner(node.index);
  if (has(options.fields, Fields::value))
    label.row("value", rangeText(graph.tape.values(), node, options.digits));
  if (has(options.fields, Fields::gradient))
    label.row("grad", rangeText(graph.tape.grads(), node, options.digits));
  return label.text();
}

// The edges that end in a block's box: one for each box or node among its operands.
template <class TapeType>
void appendBoxes(std::string& out, const Graph<TapeType>& graph, const Node& node,
                 const std::string& to) {
  std::vector<const Node*> drawn;
  std::size_t end = 0; // of the operands that the edge drawn last stands for
  const Node* from = nullptr;
  graph.tape.forEachOperand(graph.tape.records()[node.record], [&](std::size_t operand) {
    if (from != nullptr && operand >= from->index && operand < end) return;
    from = graph.find(operand);
    end = from == nullptr ? 0 : from->index + from->count;
    if (std::ranges::find(drawn, from) != drawn.end()) return;
    drawn.push_back(from);
    if (from == nullptr) out.append("  more").append(to).append(" [style=dashed]\n");
    else out.append("  n").append(std::to_string(from->index)).append(to).append("\n");
  });
}

// The edges that end in a node, in operand order, and the plain numbers among its operands.
template <class TapeType>
void appendOperands(std::string& out, const Graph<TapeType>& graph, const Node& node,
                    const DotOptions& options) {
  const std::string to = " -> n" + std::to_string(node.index);
  if (graph.tape.records()[node.record].isBlock() && graph.selection.blocks == Blocks::boxes)
    return appendBoxes(out, graph, node, to);
  std::size_t place = 0;
  bool hasMore = false;
  for (const auto& argument : argumentsOf(graph.tape, graph.tape.records()[node.record])) {
    ++place;
    if (!argument.isNode) {
      const std::string name = "  c" + std::to_string(node.index) + "_" + std::to_string(place);
      out.append(name).append(" [label=\"").append(numberText(argument.value, options.digits));
      out.append("\" shape=plain style=solid]\n");
      out.append(name).append(to).append(" [arrowhead=none]\n");
    } else if (const Node* const from = graph.find(argument.node)) {
      out.append("  n").append(std::to_string(from->index)).append(to);
      if (has(options.fields, Fields::derivatives))
        out.append(" [label=\"")
            .append(numberText(argument.derivative, options.digits))
            .append("\"]");
      out += '\n';
    } else if (!std::exchange(hasMore, true)) {
      out.append("  more").append(to).append(" [style=dashed]\n");
    }
  }
}

template <class TapeType>
std::string dotText(const Graph<TapeType>& graph, std::string_view title,
                    const DotOptions& options) {
  std::string out = "digraph burtorch {\n";
  out += options.direction == Direction::leftToRight ? "  rankdir=LR\n" : "  rankdir=TB\n";
  if (!title.empty()) out += "  label=" + dotString(title) + "\n";
  out += dotPrologue;
  for (const Node& node : graph.nodes) {
    out.append("  n").append(std::to_string(node.index)).append(" [label=");
    out.append(dotLabel(graph, node, options));
    out.append(dotStyleOf(graph.kindOf(node))).append("]\n");
    if (!graph.isLeaf(node)) appendOperands(out, graph, node, options);
  }
  if (graph.more != 0)
    out += "  more [label=\"… " + std::to_string(graph.more) + " more\" shape=plain style=solid]\n";
  return out += "}\n";
}

} // namespace detail

} // namespace viz

// The graph of everything the root was made from.
template <class T, class... O>
std::string buildDotGraph(const Value<T, O...>& root, std::string_view title = "",
                          const viz::DotOptions& options = {}) {
  return viz::detail::dotText(viz::graphOf(root, options.selection), title, options);
}

// The graph of everything on a tape.
template <class T, class... O>
std::string buildDotGraph(const Tape<T, O...>& tape, std::string_view title = "",
                          const viz::DotOptions& options = {}) {
  return viz::detail::dotText(viz::graphOf(tape, options.selection), title, options);
}

// Value(data=612.5, grad=1, op="/", index=8, label="g"), for logs and debuggers; also of a handle
// that must not be used any more.
template <class T, class... O> std::string asString(const Value<T, O...>& node) {
  if (node.isEmpty()) return "Value()";
  const std::string index = "index=" + std::to_string(node.sysGetRawNodeIndex());
  if (!node.isAlive()) return "Value(stale, " + index + ")";
  const std::string label = node.label();
  return "Value(data=" + viz::numberText(node.dataCopy()) +
         ", grad=" + viz::numberText(node.gradCopy()) + ", op=\"" + node.names().symbol + "\", " +
         index + (label.empty() ? "" : ", label=" + viz::jsonString(label)) + ")";
}

BURTORCH_END_NAMESPACE
