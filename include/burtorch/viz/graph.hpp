// burtorch/viz/graph.hpp — what a picture shows: the nodes a root was made from, and their operands
// SPDX-License-Identifier: MIT
//
// The one walk behind DOT, JSON and whatever else draws. Breadth first, so that what stands nearest
// to the root is kept when there is a limit; without recursion; in time proportional to what the
// root reaches, plus one bit for each older node. The nodes are then sorted by their indices.
#pragma once

#include <burtorch/op/table.hpp>
#include <burtorch/tape.hpp>
#include <burtorch/value.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

BURTORCH_BEGIN_NAMESPACE

namespace viz {

inline constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

struct Selection {
  std::size_t depth = unlimited;    // how many operations away from the root
  std::size_t maxNodes = unlimited; // the root counts
  // Leaves with smaller indices are parameters: tape.size() where a training loop takes its mark.
  // By default the leaves that have labels.
  std::optional<std::size_t> parametersBelow = std::nullopt;
};

enum class Kind : std::uint8_t { leaf, parameter, inner, root };

constexpr const char* nameOf(Kind kind) {
  constexpr const char* names[] = {"leaf", "parameter", "inner", "root"};
  return names[static_cast<std::size_t>(kind)];
}

struct Node {
  std::size_t index;
  std::size_t record; // its position among the tape's records; their number for a leaf
};

template <class TapeType> struct Graph {
  const TapeType& tape;
  Selection selection;
  std::vector<std::size_t> roots; // descending
  std::vector<Node> nodes;        // ascending
  std::size_t more;               // how many others the roots reach

  bool isLeaf(const Node& node) const { return node.record == tape.records().size(); }
  bool has(std::size_t index) const {
    return std::ranges::binary_search(nodes, index, {}, &Node::index);
  }
  Kind kindOf(const Node& node) const {
    const bool isRoot = std::ranges::binary_search(roots, node.index, std::ranges::greater{});
    if (isRoot && (roots.size() == 1 || !isLeaf(node))) return Kind::root;
    if (!isLeaf(node)) return Kind::inner;
    const bool isParameter = selection.parametersBelow ? node.index < *selection.parametersBelow
                                                       : !tape.label(node.index).empty();
    return isParameter ? Kind::parameter : Kind::leaf;
  }
};

// What the roots, given newest first, were made from. A record that makes several nodes at once would
// be found from each of them, through recordOf: what is kept here are nodes, not records.
template <class TapeType>
Graph<TapeType> graphOf(const TapeType& tape, std::vector<std::size_t> roots,
                        const Selection& selection) {
  std::vector<bool> seen(roots.empty() ? 0 : roots.front() + 1);
  std::vector<Node> found; // nearest first
  for (const std::size_t root : roots) {
    seen[root] = true;
    found.push_back({root, tape.recordOf(root)});
  }
  std::size_t kept = 0;
  for (std::size_t next = 0, level = 0, levelEnd = found.size(); next < found.size(); ++next) {
    if (next == levelEnd) ++level, levelEnd = found.size();
    if (level <= selection.depth) kept = next + 1;
    const std::size_t user = found[next].record;
    if (user == tape.records().size()) continue;
    tape.forEachOperand(tape.records()[user], [&](std::size_t operand) {
      if (seen[operand]) return;
      seen[operand] = true;
      found.push_back({operand, tape.recordOfOperand(operand, user)});
    });
  }
  kept = std::min(kept, std::max<std::size_t>(selection.maxNodes, 1));
  const std::size_t more = found.size() - kept;
  found.resize(kept);
  std::ranges::sort(found, {}, &Node::index);
  return {tape, selection, std::move(roots), std::move(found), more};
}

template <class T, class... O>
Graph<Tape<T, O...>> graphOf(const Value<T, O...>& root, const Selection& selection = {}) {
  return graphOf(std::as_const(root.tape()), {root.sysGetRawNodeIndex()}, selection);
}

// Everything on a tape; its roots are the nodes that no operation has used.
template <class T, class... O>
Graph<Tape<T, O...>> graphOf(const Tape<T, O...>& tape, const Selection& selection = {}) {
  std::vector<bool> used(tape.size());
  for (const auto& record : tape.records())
    tape.forEachOperand(record, [&](std::size_t operand) { used[operand] = true; });
  std::vector<std::size_t> roots;
  for (std::size_t i = tape.size(); i-- != 0;)
    if (!used[i]) roots.push_back(i);
  return graphOf(tape, std::move(roots), selection);
}

// One operand of an operation, in the order they are written: a node or a plain number.
template <class T> struct Argument {
  bool isNode;
  std::size_t node;
  T value;
  T derivative; // of the result by this operand; 0 for plain numbers
};

// The derivatives are the pullbacks of an adjoint of 1.
template <class T, class... O>
std::vector<Argument<T>> argumentsOf(const Tape<T, O...>& tape,
                                     const typename Tape<T, O...>::Record& record) {
  std::vector<Argument<T>> out;
  const auto node = [&](std::size_t i) { out.push_back({true, i, tape.values()[i], T(0)}); };
  const auto number = [&](std::size_t place) {
    out.push_back({false, 0, tape.constants()[place], T(0)});
  };
  const auto give = [&out](std::size_t first) {
    return [&out, first](std::size_t i, const T& contribution) {
      T& derivative = out[first + i].derivative;
      derivative = derivative + contribution;
    };
  };
  struct Sequence {
    const Argument<T>* first;
    std::size_t count;
    std::size_t size() const { return count; }
    const T& operator[](std::size_t i) const { return first[i].value; }
  };
  const T z = tape.values()[record.result], one(1);
  burtorch::detail::dispatch(
      record.code(), [&]<class Operation, Form F>(op::Instance<Operation, F>) {
        if constexpr (op::is<op::Unary, Operation>) {
          node(record.a);
          give(0)(0, Operation::pullback(out[0].value, z, one));
        } else if constexpr (op::is<op::Clipped, Operation>) {
          node(record.a);
          number(record.b);
          number(record.b + std::size_t{1});
          give(0)(0, Operation::pullback(out[0].value, out[1].value, out[2].value, one));
        } else if constexpr (op::is<op::Binary, Operation>) {
          F == Form::numberNode ? number(record.a) : node(record.a);
          F == Form::nodeNumber ? number(record.b) : node(record.b);
          const T x = out[0].value, y = out[1].value;
          if (F != Form::numberNode) give(0)(0, Operation::pullbackX(x, y, z, one));
          if (F != Form::nodeNumber) give(1)(0, Operation::pullbackY(x, y, z, one));
        } else if constexpr (op::is<op::Block, Operation>) {
          tape.forEachOperand(record, node);
        } else {
          tape.forEachOperand(record, node);
          const std::size_t n = record.b;
          const Sequence x{out.data(), n};
          if constexpr (op::is<op::Reduction, Operation>) {
            Operation::pullback(x, z, one, give(0));
          } else {
            Operation::pullback(x, Sequence{out.data() + n, n}, one, give(0), give(n));
            if constexpr (Operation::hasBias) give(2 * n)(0, one);
          }
        }
      });
  return out;
}

} // namespace viz

BURTORCH_END_NAMESPACE
