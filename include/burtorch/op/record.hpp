// burtorch/op/record.hpp — how a record is read: its fields, its value, what its operands gain
// SPDX-License-Identifier: MIT
//
// A record is a code and two fields, a and b. What the fields mean is its Layout, which follows from the
// operation's kind and the form; it is written down here and nowhere else. Whoever walks records brings
// along what differs between them:
//
//   eachField(record, operands, visit)       which nodes, numbers and places the fields hold
//   evaluate<O, F>(record, source)           the value, from a source of operands
//   contribute<O, F>(record, source, z, g, give)   what the operands gain, from z and its adjoint g
//
// A visitor has
//   node(field)          a node
//   run(field, n)        the first of n neighbouring nodes
//   numbers(field, n)    the place of n plain numbers; kept(field, n) of a block's own
//   stored(field, n)     the place of n entries of the operands, some of which are fields themselves
//   many(n)              before them: how many operands there are, in each of its sequences
// Fields are references: a visitor may also rename them or fill them in. EachField is one to derive from.
//
// A source answers
//   node<k>(i)         the value of node i, the record's operand k (0 or 1; 2: a bias)
//   number(place)      a plain number
//   run(first, n)      the values of neighbours, a sequence
//   list(place, n)     the values of the nodes listed from a place among the operands
//   operand(place)     an entry of the operands
//   isBNewer(record)   of two nodes; a bool or a constant of that type
//
// A give takes
//   node<k, newest>(i, contribution)   contribution() is what node i gains, to be called at most once.
//                                      The operand made last comes last, and newest is true for it: its
//                                      record is likely to be the next one pulled.
//   run<k>(first, n), list<k>(place, n)   return what is called with (i, what the i-th of them gains)
//
// Sums of contributions round alike on every way to run, because all of them give in this order.
// A new kind of record is a line of Layout and a case in each of the three functions.
#pragma once

#include <burtorch/base/config.hpp>
#include <burtorch/op/table.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

BURTORCH_BEGIN_NAMESPACE

// What the fields hold. The numbers are part of the file format (io/graph.hpp).
enum class Layout : std::uint8_t {
  node = 1,        // a: a node
  nodeNumbers = 2, // a: a node; b: the place of two numbers among the constants
  nodes = 3,       // a, b: nodes
  nodeNumber = 4,  // a: a node; b: the place of a number
  numberNode = 5,  // a: the place of a number; b: a node
  run = 6,         // a, a+1, …: b nodes
  list = 7,        // operands[a], operands[a+1], …: b nodes
  runs = 8,        // operands[a], operands[a+1]: where two runs of b nodes start; then a bias
  lists = 9,       // operands[a…]: b nodes, and b more; then a bias
  block = 10,      // operands[a…]: a description (tape/block.hpp); b: how many results
};

namespace op {

constexpr bool hasNodeInA(Layout layout) { return layout <= Layout::nodeNumber; }
constexpr bool hasNodeInB(Layout layout) {
  return layout == Layout::nodes || layout == Layout::numberNode;
}
constexpr bool isFew(Layout layout) { return layout < Layout::run; } // operands are in a and b

template <class O> constexpr Layout layoutOf(Form form) {
  const auto pick = [&](Layout first) {
    return static_cast<Layout>(static_cast<unsigned>(first) + static_cast<unsigned>(form));
  };
  if (is<Unary, O>) return Layout::node;
  if (is<Clipped, O>) return Layout::nodeNumbers;
  if (is<Binary, O>) return pick(Layout::nodes);
  if (is<Reduction, O>) return pick(Layout::run);
  if (is<Product, O>) return pick(Layout::runs);
  return Layout::block;
}

// The forms an operation has.
template <class O> constexpr unsigned formsOf() {
  return is<Binary, O> ? 3 : is<Reduction, O> || is<Product, O> ? 2 : 1;
}

namespace detail {
struct LayoutRow {
  Layout layout{};
  std::uint8_t biases = 0;
};
inline constexpr auto layouts = [] {
  std::array<LayoutRow, blockCode + 1> rows{};
#define BURTORCH_ROW(Name, function)                                                               \
  for (unsigned form = 0; form < formsOf<Name>(); ++form)                                          \
    rows[codeOf(Op::e##Name, static_cast<Form>(form))] = {layoutOf<Name>(static_cast<Form>(form)), \
                                                          Name::hasBias ? 1 : 0};
  BURTORCH_OPERATIONS(BURTORCH_ROW)
  BURTORCH_ROW(Block, block)
#undef BURTORCH_ROW
  return rows;
}();
} // namespace detail

constexpr Layout layoutOf(Code code) { return detail::layouts[code].layout; }

// How many entries of the tape's operands a record of n operands (or n in each of two sequences) has.
constexpr std::size_t storedOperands(Code code, std::size_t n) {
  const auto [layout, biases] = detail::layouts[code];
  if (layout == Layout::list) return n;
  if (layout == Layout::runs) return std::size_t{2} + biases;
  return layout == Layout::lists ? 2 * n + biases : 0;
}

} // namespace op

namespace detail {

// Calls the visitor for each field, in the order of the operands. What is stored among the tape's operands is
// announced before it is read, so that a visitor may move it first. Not for blocks, whose fields are in
// their descriptions: Tape::eachField is for all.
template <class Record, class Index, class Visit>
BURTORCH_INLINE constexpr void eachField(Record& record, Index* operands, Visit&& visit) {
  const auto [layout, biases] = op::detail::layouts[record.code()];
  const auto nodesFrom = [&](std::size_t first, std::size_t n) {
    for (std::size_t i = first; i < first + n; ++i) visit.node(operands[record.a + i]);
  };
  const auto many = [&](std::size_t stored) {
    visit.many(record.b);
    if (stored != 0) visit.stored(record.a, stored);
  };
  switch (layout) {
  case Layout::node:
    return visit.node(record.a);
  case Layout::nodeNumbers:
    visit.node(record.a);
    return visit.numbers(record.b, 2);
  case Layout::nodes:
    visit.node(record.a);
    return visit.node(record.b);
  case Layout::nodeNumber:
    visit.node(record.a);
    return visit.numbers(record.b, 1);
  case Layout::numberNode:
    visit.numbers(record.a, 1);
    return visit.node(record.b);
  case Layout::run:
    many(0);
    return visit.run(record.a, record.b);
  case Layout::list:
    many(record.b);
    return nodesFrom(0, record.b);
  case Layout::runs:
    many(std::size_t{2} + biases);
    visit.run(operands[record.a], record.b);
    visit.run(operands[record.a + std::size_t{1}], record.b);
    return nodesFrom(2, biases);
  case Layout::lists:
    many(2 * std::size_t{record.b} + biases);
    return nodesFrom(0, 2 * std::size_t{record.b} + biases);
  case Layout::block:
    break;
  }
}

// What a visitor does with the fields that it does not name.
struct EachField {
  static constexpr void node(const auto&) {}
  static constexpr void run(const auto&, std::size_t) {}
  static constexpr void numbers(const auto&, std::size_t) {}
  // Numbers that a block keeps for its pullback.
  static constexpr void kept(const auto&, std::size_t) {}
  static constexpr void stored(const auto&, std::size_t) {}
  static constexpr void many(std::size_t) {}
};

// Of an operation that is no block.
template <class O, Form F, class Record, class Source>
BURTORCH_INLINE constexpr auto evaluate(const Record& r, const Source& s) {
  constexpr Layout layout = op::layoutOf<O>(F);
  if constexpr (layout == Layout::node) {
    return O::forward(s.template node<0>(r.a));
  } else if constexpr (layout == Layout::nodeNumbers) {
    return O::forward(s.template node<0>(r.a), s.number(r.b), s.number(r.b + std::size_t{1}));
  } else if constexpr (layout == Layout::nodes) {
    return O::forward(s.template node<0>(r.a), s.template node<1>(r.b));
  } else if constexpr (layout == Layout::nodeNumber) {
    return O::forward(s.template node<0>(r.a), s.number(r.b));
  } else if constexpr (layout == Layout::numberNode) {
    return O::forward(s.number(r.a), s.template node<1>(r.b));
  } else if constexpr (layout == Layout::run) {
    return O::forward(s.run(r.a, r.b));
  } else if constexpr (layout == Layout::list) {
    return O::forward(s.list(r.a, r.b));
  } else {
    const std::size_t a = r.a, n = r.b, each = layout == Layout::runs ? 1 : n;
    const auto value = [&] {
      if constexpr (layout == Layout::runs)
        return O::forward(s.run(s.operand(a), n), s.run(s.operand(a + 1), n));
      else return O::forward(s.list(a, n), s.list(a + n, n));
    };
    if constexpr (O::hasBias) return value() + s.template node<2>(s.operand(a + 2 * each));
    else return value();
  }
}

template <class O, Form F, class Record, class Source, class C, class Give>
BURTORCH_INLINE constexpr void contribute(const Record& r, const Source& s, const C& z, const C& g,
                                          Give&& give) {
  constexpr Layout layout = op::layoutOf<O>(F);
  if constexpr (layout == Layout::node) {
    give.template node<0, true>(
        r.a, [&]() BURTORCH_INLINE_LAMBDA { return O::pullback(s.template node<0>(r.a), z, g); });
  } else if constexpr (layout == Layout::nodeNumbers) {
    give.template node<0, true>(r.a, [&]() BURTORCH_INLINE_LAMBDA {
      return O::pullback(s.template node<0>(r.a), s.number(r.b), s.number(r.b + std::size_t{1}), g);
    });
  } else if constexpr (layout == Layout::nodeNumber) {
    give.template node<0, true>(r.a, [&]() BURTORCH_INLINE_LAMBDA {
      return O::pullbackX(s.template node<0>(r.a), s.number(r.b), z, g);
    });
  } else if constexpr (layout == Layout::numberNode) {
    give.template node<1, true>(r.b, [&]() BURTORCH_INLINE_LAMBDA {
      return O::pullbackY(s.number(r.a), s.template node<1>(r.b), z, g);
    });
  } else if constexpr (layout == Layout::nodes) {
    const auto toX = [&]() BURTORCH_INLINE_LAMBDA {
      return O::pullbackX(s.template node<0>(r.a), s.template node<1>(r.b), z, g);
    };
    const auto toY = [&]() BURTORCH_INLINE_LAMBDA {
      return O::pullbackY(s.template node<0>(r.a), s.template node<1>(r.b), z, g);
    };
    if (s.isBNewer(r)) {
      give.template node<0, false>(r.a, toX);
      give.template node<1, true>(r.b, toY);
    } else {
      give.template node<1, false>(r.b, toY);
      give.template node<0, true>(r.a, toX);
    }
  } else if constexpr (layout == Layout::run) {
    O::pullback(s.run(r.a, r.b), z, g, give.template run<0>(r.a, r.b));
  } else if constexpr (layout == Layout::list) {
    O::pullback(s.list(r.a, r.b), z, g, give.template list<0>(r.a, r.b));
  } else {
    const std::size_t a = r.a, n = r.b, each = layout == Layout::runs ? 1 : n;
    if constexpr (layout == Layout::runs) {
      const std::size_t x = s.operand(a), y = s.operand(a + 1);
      O::pullback(s.run(x, n), s.run(y, n), g, give.template run<0>(x, n),
                  give.template run<1>(y, n));
    } else {
      O::pullback(s.list(a, n), s.list(a + n, n), g, give.template list<0>(a, n),
                  give.template list<1>(a + n, n));
    }
    if constexpr (O::hasBias)
      give.template node<2, false>(s.operand(a + 2 * each),
                                   [&]() BURTORCH_INLINE_LAMBDA { return g; });
  }
}

} // namespace detail

BURTORCH_END_NAMESPACE
