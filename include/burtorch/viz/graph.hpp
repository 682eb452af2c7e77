// burtorch/viz/graph.hpp — what a picture shows: the nodes a root was made from, and their operands
// SPDX-License-Identifier: MIT
//
// The one walk behind DOT, JSON and whatever else draws. Breadth first, so that what stands nearest
// to the root is kept when there is a limit; without recursion; in time proportional to what the
// root reaches, plus one bit for each older node. The nodes are then sorted by their indices.
#pragma once

#include <burtorch/op/record.hpp>
#include <burtorch/op/table.hpp>
#include <burtorch/tape/tape.hpp>
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

// A block's results, and the leaves it takes as one operand, as one box or node by node.
enum class Blocks : std::uint8_t { boxes, nodes };

struct Selection {
  std::size_t depth = unlimited;    // how many operations away from the root
  std::size_t maxNodes = unlimited; // the root counts
  // Leaves with smaller indices are parameters: tape.size() where a training loop takes its mark.
  // By default the leaves that have labels.
  std::optional<std::size_t> parametersBelow = std::nullopt;
  Blocks blocks = Blocks::boxes;
};

enum class Kind : std::uint8_t { leaf, parameter, inner, root };

constexpr const char* nameOf(Kind kind) {
  constexpr const char* names[] = {"leaf", "parameter", "inner", "root"};
  return names[static_cast<std::size_t>(kind)];
}

struct Node {         // or a box of them
  std::size_t index;  // the first
  std::size_t record; // its position among the tape's records; their number for a leaf
  std::size_t count = 1;
};

template <class TapeType> struct Graph {
  const TapeType& tape;
  Selection selection;
  std::vector<std::size_t> roots; // descending
  std::vector<Node> nodes;        // ascending
  std::size_t more;               // how many others the roots reach

  bool isLeaf(const Node& node) const { return node.record == tape.records().size(); }
  // The one that shows a node of the tape, or nullptr.
  const Node* find(std::size_t index) const {
    const auto after = std::ranges::upper_bound(nodes, index, {}, &Node::index);
    if (after == nodes.begin()) return nullptr;
    const Node& node = *std::prev(after);
    return index < node.index + node.count ? &node : nullptr;
  }
  Kind kindOf(const Node& node) const {
    const auto newest = std::ranges::lower_bound(roots, node.index + node.count - 1,
                                                 std::ranges::greater{}); // not above the node
    const bool isRoot = newest != roots.end() && *newest >= node.index;
    if (isRoot && (roots.size() == 1 || !isLeaf(node))) return Kind::root;
    if (!isLeaf(node)) return Kind::inner;
    const bool isParameter = selection.parametersBelow ? node.index < *selection.parametersBelow
                                                       : !tape.label(node.index).empty();
    return isParameter ? Kind::parameter : Kind::leaf;
  }
};

namespace detail {

// Finds what a picture shows, each node once.
template <class TapeType> class Finder {
public:
  Finder(const TapeType& tape, std::size_t nodes, Blocks blocks)
      : tape_(tape), blocks_(blocks), seen_(nodes), pulled_(tape.records().size()) {}

  // The node, with all results of its block if boxes are wanted.
  void add(std::size_t index, std::size_t record) {
    if (seen_[index]) return;
    if (blocks_ == Blocks::boxes && record != tape_.records().size()) {
      const auto& made = tape_.records()[record];
      return box(made.firstResult(), record, made.results());
    }
    box(index, record, 1);
  }

  // The operands of a record.
  void addOperands(std::size_t user) {
    if (user == tape_.records().size() || pulled_[user]) return; // a block has many results
    pulled_[user] = true;
    const auto& record = tape_.records()[user];
    if (record.isBlock() && blocks_ == Blocks::boxes)
      tape_.forEachView(record, [&](std::size_t first, std::size_t rows, std::size_t cols) {
        addView(first, rows * cols, user);
      });
    else
      tape_.forEachOperand(record, [&](std::size_t operand) {
        if (!seen_[operand]) add(operand, tape_.recordOfOperand(operand, user));
      });
  }

  std::vector<Node> found; // nearest first

private:
  void addView(std::size_t first, std::size_t count, std::size_t user) {
    bool goesOn = false; // the box added last holds leaves up to here
    for (std::size_t operand = first; operand < first + count; ++operand) {
      if (seen_[operand]) {
        goesOn = false;
        continue;
      }
      const std::size_t made = tape_.recordOfOperand(operand, user);
      if (goesOn && made == tape_.records().size()) {
        seen_[operand] = true;
        ++found.back().count;
      } else {
        add(operand, made);
        goesOn = made == tape_.records().size();
      }
    }
  }
  void box(std::size_t index, std::size_t record, std::size_t count) {
    if (seen_.size() < index + count) seen_.resize(index + count); // the root's block may go on
    for (std::size_t i = index; i < index + count; ++i) seen_[i] = true;
    found.push_back({index, record, count});
  }

  const TapeType& tape_;
  Blocks blocks_;
  std::vector<bool> seen_;   // nodes
  std::vector<bool> pulled_; // records
};

} // namespace detail

// What the roots, given newest first, were made from.
template <class TapeType>
Graph<TapeType> graphOf(const TapeType& tape, std::vector<std::size_t> roots,
                        const Selection& selection) {
  detail::Finder finder(tape, roots.empty() ? 0 : roots.front() + 1, selection.blocks);
  auto& found = finder.found;
  for (const std::size_t root : roots) finder.add(root, tape.recordOf(root));
  std::size_t kept = 0;
  for (std::size_t next = 0, level = 0, levelEnd = found.size(); next < found.size(); ++next) {
    if (next == levelEnd) ++level, levelEnd = found.size();
    if (level <= selection.depth) kept = next + 1;
    finder.addOperands(found[next].record);
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

namespace detail {
// Adds contributions to the derivatives of arguments (op/record.hpp).
template <class T> struct GiveToArguments {
  std::vector<Argument<T>>& all;

  void add(std::size_t i, const auto& contribution) const {
    T& derivative = all[i].derivative;
    derivative = static_cast<T>(computed(derivative) + contribution);
  }
  template <int k, bool> void node(std::size_t, const auto& contribution) const {
    add(k == 2 ? all.size() - 1 : k, contribution());
  }
  template <int k> auto run(std::size_t, std::size_t n) const { // as a list: in order of operands
    return [to = *this, first = k * n](std::size_t i, const auto& c) { to.add(first + i, c); };
  }
  template <int k> auto list(std::size_t, std::size_t n) const { return run<k>(0, n); }
};
} // namespace detail

// The derivatives are the pullbacks of an adjoint of 1.
template <class T, class... O>
std::vector<Argument<T>> argumentsOf(const Tape<T, O...>& tape,
                                     const typename Tape<T, O...>::Record& record) {
  std::vector<Argument<T>> out;
  tape.forEachArgument(
      record,
      [&](std::size_t i) {
        out.push_back({true, i, tape.values()[i], T(0)});
      },
      [&](const T& number) {
        out.push_back({false, 0, number, T(0)});
      });
  if (record.isBlock()) return out;
  const burtorch::detail::TapeSource<T, typename Tape<T, O...>::Index> source{
      tape.values().data(), tape.constants().data(), tape.operands().data()};
  const ComputedIn<T> z(source.template node<0>(record.result)), one(1);
  burtorch::detail::dispatch(record.code(),
                             [&]<class Operation, Form F>(op::Instance<Operation, F>) {
                               if constexpr (!op::is<op::Block, Operation>)
                                 burtorch::detail::contribute<Operation, F>(
                                     record, source, z, one, detail::GiveToArguments<T>{out});
                             });
  return out;
}

} // namespace viz

BURTORCH_END_NAMESPACE
