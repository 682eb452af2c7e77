// burtorch/run/recorded.hpp — gradients as nodes: they can be differentiated again, replayed, pictured
// SPDX-License-Identifier: MIT
//
//   const Value<double> x(2.0), y = x * x * x;
//   const Value<double> slope = gradientsOf(y, std::vector{x})[0];   // 3x², recorded: 12
//   backward(slope);                                                 // x.gradCopy() is 6x: 12
//
// backward() computes numbers and leaves them in the tape's gradients. gradientsOf() appends to the tape the
// operations that compute them and touches no gradient. No derivative is written here: the pullbacks of the
// table run over a scalar whose arithmetic records.
//
// What is known while recording takes no node: numbers are computed at once, 1·x is x, and an adjoint that is
// the number 0 gives nothing, not even 0·∞ = NaN. An adjoint that is a node gives, even while it is 0,
// because its own derivative may be another number (as with duals, where both parts must be 0).
//
// Pullbacks compare (relu, max, clamp, …). Kinks says what becomes of that:
//   decided   the branch that the numbers take now is recorded: for a graph that is used at this point
//   open      both branches are recorded, and operations choose between them: for a graph that is replayed
//             (run/replay.hpp) at other points. A choice costs two calls of pow. NaN in what is compared
//             gives NaN.
//
// The pullbacks of blocks (of views) are kernels over plain numbers. A block between the root and the leaves is
// an error, unless run/recorded_blocks.hpp expands it into operations on single Values.
#pragma once

#include <burtorch/backward.hpp>
#include <burtorch/base/config.hpp>
#include <burtorch/base/error.hpp>
#include <burtorch/op/record.hpp>
#include <burtorch/op/table.hpp>
#include <burtorch/tape/tape.hpp>
#include <burtorch/value.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

BURTORCH_BEGIN_NAMESPACE

enum class Kinks : std::uint8_t { open, decided };

// What gradientsOf does with a block: nothing, which is an error.
struct NoBlocks {
  template <class T, class... O, class Record>
  std::vector<Value<T, O...>> operator()(Tape<T, O...>&, const Record&) const {
    return {};
  }
};

namespace detail {

namespace recorded { // functions that must not hide those of the scalars

// A scalar of a gradient that is being recorded: a plain number, or a node.
template <class V, Kinks kinks> struct Number {
  using T = typename V::Scalar;
  using C = ComputedIn<T>;

  C number = C(0);
  V node{}; // empty: a plain number

  Number() = default;
  template <class Plain>
    requires std::constructible_from<C, const Plain&>
  explicit Number(const Plain& x) : number(static_cast<C>(x)) {}
  explicit Number(const V& v) : node(v) {}

  bool isPlain() const { return node.isEmpty(); }
  bool is(double x) const { return isPlain() && isZero(number - C(x)); } // in all its parts
  C now() const { return isPlain() ? number : C(computed(node.dataCopy())); }
  T stored() const { return static_cast<T>(number); }
};

// op(x…), computed now if all operands are plain.
template <class O, class V, Kinks k> Number<V, k> recordOne(const Number<V, k>& x) {
  if (x.isPlain()) return Number<V, k>(O::forward(x.number));
  return Number<V, k>(apply<O>(x.node));
}
template <class O, class V, Kinks k>
Number<V, k> recordTwo(const Number<V, k>& x, const Number<V, k>& y) {
  if (x.isPlain() && y.isPlain()) return Number<V, k>(O::forward(x.number, y.number));
  if (x.isPlain()) return Number<V, k>(apply<O>(x.stored(), y.node));
  if (y.isPlain()) return Number<V, k>(apply<O>(x.node, y.stored()));
  return Number<V, k>(apply<O>(x.node, y.node));
}

#define BURTORCH_FUNCTION(Name, function)                                                          \
  template <class V, Kinks k> Number<V, k> function(const Number<V, k>& x) {                       \
    return recordOne<op::Name>(x);                                                                 \
  }
BURTORCH_UNARY_OPERATIONS(BURTORCH_FUNCTION)
BURTORCH_FUNCTION(Log, log)
BURTORCH_FUNCTION(Abs, fabs)
BURTORCH_FUNCTION(Negative, operator-)
BURTORCH_FUNCTION(Sigmoid, logistic)
#undef BURTORCH_FUNCTION

#define BURTORCH_FUNCTION(Name, function)                                                          \
  template <class V, Kinks k>                                                                      \
  Number<V, k> function(const Number<V, k>& x, const Number<V, k>& y) {                            \
    return recordTwo<op::Name>(x, y);                                                              \
  }
BURTORCH_BINARY_OPERATIONS(BURTORCH_FUNCTION)
#undef BURTORCH_FUNCTION

// 1 − erf, with the digits that the difference would lose as long as the graph is not replayed.
template <class V, Kinks k> Number<V, k> erfc(const Number<V, k>& x) {
  using std::erfc;
  using N = Number<V, k>;
  const auto value = erfc(x.now());
  if (x.isPlain()) return N(value);
  const typename N::T one(1);
  return N(applyAs<op::BinarySub>(Evaluated<std::remove_const_t<decltype(value)>>{value}, one,
                                  apply<op::Erf>(x.node)));
}

template <class V, Kinks k> bool isFiniteNow(const Number<V, k>& x) {
  const auto now = x.now();
  return now - now == now - now; // ∞ − ∞ and NaN are no numbers
}

// Arithmetic leaves out what changes nothing: x + 0, 1·x, x/1. The number 0 times a node is the number 0:
// nothing that depends on it can show.
template <class V, Kinks k> Number<V, k> operator+(const Number<V, k>& x, const Number<V, k>& y) {
  return x.is(0) ? y : y.is(0) ? x : add(x, y);
}
template <class V, Kinks k> Number<V, k> operator-(const Number<V, k>& x, const Number<V, k>& y) {
  return y.is(0) ? x : sub(x, y);
}
template <class V, Kinks k> Number<V, k> operator*(const Number<V, k>& x, const Number<V, k>& y) {
  if (x.is(1)) return y;
  if (y.is(1)) return x;
  if (whereZero(x) && isFiniteNow(y)) return x;
  if (whereZero(y) && isFiniteNow(x)) return y;
  return mul(x, y);
}
template <class V, Kinks k> Number<V, k> operator/(const Number<V, k>& x, const Number<V, k>& y) {
  return y.is(1) ? x : div(x, y);
}

template <class V, Kinks k> bool whereZero(const Number<V, k>& x) {
  return x.isPlain() && isZero(x.number);
}

// ---- choices --------------------------------------------------------------------------------------

enum class Order : std::uint8_t { less, equal };

// left < right, left == right, or the contrary of that.
template <class V, Kinks k> struct Comparison {
  Order order;
  Number<V, k> left, right;
  bool negated = false;

  bool holdsNow() const {
    const auto x = left.now(), y = right.now();
    const bool holds = order == Order::less ? x < y : x == y;
    return holds != negated;
  }
};

template <class V, Kinks k>
Comparison<V, k> operator<(const Number<V, k>& x, const Number<V, k>& y) {
  return {Order::less, x, y};
}
template <class V, Kinks k>
Comparison<V, k> operator<=(const Number<V, k>& x, const Number<V, k>& y) {
  return {Order::less, y, x, true}; // of a NaN: see Kinks
}
template <class V, Kinks k>
Comparison<V, k> operator==(const Number<V, k>& x, const Number<V, k>& y) {
  return {Order::equal, x, y};
}

// The same number without a derivative: the second operand of a product "by a constant".
template <class V> V asConstant(const V& x) {
  return apply<op::BinaryMultByConst>(typename V::Scalar(1), x);
}

// 1 where x > 0, else 0, as operations. The smallest number times the largest, twice, exceeds 1. It has no
// derivative: at 0 the clamps would give ∞.
template <class V> V whetherPositive(const V& x) {
  using T = typename V::Scalar;
  constexpr T huge = std::numeric_limits<T>::max();
  const V once = apply<op::Clamp>(x * huge, T(0), T(1));
  return asConstant(apply<op::Clamp>(once * huge, T(0), T(1)));
}

// 1 if it holds, else 0.
template <class V> Number<V, Kinks::open> indicator(const Comparison<V, Kinks::open>& c) {
  using N = Number<V, Kinks::open>;
  const N gap = c.order == Order::less ? c.right - c.left : fabs(c.left - c.right);
  const N positive(whetherPositive(gap.node));
  return (c.order == Order::less) != c.negated ? positive : N(1) - positive;
}

// x where the comparison holds, else y. x to the power of 0 is 1, even if x is infinite or no number, so
// that what is not chosen has no say, neither in the value nor in the derivatives.
template <class V, Kinks k>
Number<V, k> select(const Comparison<V, k>& c, const Number<V, k>& x, const Number<V, k>& y) {
  if (c.left.isPlain() && c.right.isPlain()) return c.holdsNow() ? x : y;
  if constexpr (k == Kinks::decided) {
    return c.holdsNow() ? x : y;
  } else {
    if (x.isPlain() && y.isPlain() && x.number == y.number) return x;
    const auto chosen = [&](bool negated) {
      auto same = c;
      same.negated = c.negated != negated;
      return indicator(same);
    };
    if (y.is(0)) {
      const auto isX = chosen(false);
      return x.isPlain() ? x * isX : pow(x, isX) * isX;
    }
    if (x.is(0)) {
      const auto isY = chosen(true);
      return y.isPlain() ? y * isY : pow(y, isY) * isY;
    }
    return pow(x, chosen(false)) * pow(y, chosen(true));
  }
}

} // namespace recorded

// Walks from the root down and gives adjoints that are Numbers.
template <class V, Kinks kinks, class Expand> class RecordedSweep {
  using Tape = typename V::TapeType;
  using Record = typename Tape::Record;
  using Index = typename Tape::Index;
  using N = recorded::Number<V, kinks>;

public:
  // Nodes older than `since` are plain numbers.
  RecordedSweep(const V& root, std::size_t since, const Expand& expand)
      : tape_(root.tape()), expand_(expand), root_(root.sysGetRawNodeIndex()), since_(since) {}

  template <class Leaves> std::vector<V> operator()(const Leaves& leaves) {
    const std::size_t end = nodesUpTo(V::at(tape_, root_));
    oldest_ = root_;
    for (const auto& leaf : leaves)
      oldest_ = std::min<std::size_t>(oldest_, leaf.sysGetRawNodeIndex());
    nodes_.resize(end - oldest_);
    for (const auto& leaf : leaves) // one that is newer than the root is no part of it
      if (leaf.sysGetRawNodeIndex() < end) at(leaf.sysGetRawNodeIndex()).isActive = true;
    const std::size_t last = recordsUpToRoot();
    std::size_t first = last;
    while (first != 0 && tape_.records()[first - 1].result > oldest_) --first;
    activate(first, last);
    at(root_).adjoint = N(1);
    pull(first, last);
    std::vector<V> gradients;
    for (const auto& leaf : leaves) {
      const std::size_t i = leaf.sysGetRawNodeIndex();
      const N adjoint = i < end ? at(i).adjoint : N(0);
      gradients.push_back(adjoint.isPlain() ? V(tape_, adjoint.stored()) : adjoint.node);
    }
    return gradients;
  }

private:
  struct Node {
    N adjoint;             // the number 0: none
    bool isActive = false; // depends on the leaves
  };

  Node& at(std::size_t i) { return nodes_[i - oldest_]; }
  bool isActive(std::size_t i) const { return i >= oldest_ && nodes_[i - oldest_].isActive; }

  std::size_t recordsUpToRoot() const {
    const std::size_t record = tape_.recordOf(root_);
    return record == tape_.records().size() ? 0 : record + 1;
  }

  // Marks what depends on the leaves among the results of these records.
  void activate(std::size_t first, std::size_t end) {
    const auto records = tape_.records();
    for (std::size_t r = first; r < end; ++r) {
      bool any = false;
      tape_.forEachOperand(records[r], [&](std::size_t i) { any = any || isActive(i); });
      for (std::size_t i = 0; any && i < records[r].results(); ++i)
        at(records[r].firstResult() + i).isActive = true;
    }
  }

  N value(std::size_t i) const {
    const V v = V::at(tape_, i);
    return i < since_ ? N(computed(v.dataCopy())) : N(v);
  }
  // Operands as Numbers, and what they gain (op/record.hpp).
  template <class O> struct Source {
    RecordedSweep& sweep;
    template <int k> N node(std::size_t i) const {
      const N x = sweep.value(i);
      if constexpr (k == 1 && std::same_as<O, op::BinaryMultByConst>) // not differentiated, nor is
        if (!x.isPlain()) return N(recorded::asConstant(x.node));     // the slope by the other
      return x;
    }
    N number(std::size_t place) const { return N(computed(sweep.tape_.constants()[place])); }
    std::size_t operand(std::size_t place) const { return sweep.tape_.operands()[place]; }
    std::vector<N> run(std::size_t first, std::size_t n) const {
      std::vector<N> all;
      for (std::size_t i = first; i < first + n; ++i) all.push_back(sweep.value(i));
      return all;
    }
    std::vector<N> list(std::size_t place, std::size_t n) const {
      std::vector<N> all;
      for (std::size_t i = place; i < place + n; ++i) all.push_back(sweep.value(operand(i)));
      return all;
    }
    static bool isBNewer(const Record& record) { return record.a < record.b; }
  };
  struct Give { // nothing is asked for operands that take no part
    RecordedSweep& sweep;
    template <int, bool> void node(std::size_t i, const auto& contribution) const {
      if (sweep.isActive(i)) sweep.give(i, contribution());
    }
    template <int> auto run(std::size_t first, std::size_t) const {
      return [*this, first](std::size_t i, const N& c) { sweep.give(first + i, c); };
    }
    template <int> auto list(std::size_t place, std::size_t) const {
      return [*this, place](std::size_t i, const N& c) {
        sweep.give(sweep.tape_.operands()[place + i], c);
      };
    }
  };

  void give(std::size_t node, const N& contribution) {
    if (isActive(node)) at(node).adjoint = at(node).adjoint + contribution;
  }

  void pull(std::size_t first, std::size_t end) {
    for (std::size_t r = end; r-- != first;) pull(Record(tape_.records()[r])); // it may move
  }
  void pull(const Record& record) {
    if (record.isBlock()) return pullBlock(record);
    const N g = at(record.result).adjoint;
    if (!isActive(record.result) || whereZero(g)) return;
    dispatch(record.code(), [&]<class O, Form F>(op::Instance<O, F>) {
      if constexpr (!op::is<op::Block, O>)
        contribute<O, F>(record, Source<O>{*this}, value(record.result), g, Give{*this});
    });
  }

  // The operations that a block stands for are appended, take over the adjoints of its results, and are pulled.
  void pullBlock(const Record& record) {
    const std::size_t first = record.firstResult(), count = record.results();
    bool any = false;
    for (std::size_t i = first; i < first + count; ++i)
      any = any || (isActive(i) && !whereZero(at(i).adjoint));
    if (!any) return;
    const std::size_t before = tape_.records().size();
    const auto expanded = expand_(tape_, record);
    const std::size_t after = tape_.records().size();
    if (expanded.size() != count)
      fail(ErrorKind::badArgument,
           std::string("gradientsOf: ") + tape_.namesOf(tape_.recordOf(record.result)).function +
               " of whole views can't be recorded; see run/recorded_blocks.hpp");
    nodes_.resize(tape_.size() - oldest_);
    activate(before, after);
    for (std::size_t i = 0; i < count; ++i)
      give(expanded[i].sysGetRawNodeIndex(), N(at(first + i).adjoint));
    pull(before, after);
  }

  Tape& tape_;
  const Expand& expand_;
  std::size_t root_, since_, oldest_ = 0;
  std::vector<Node> nodes_; // from the oldest leaf on
};

} // namespace detail

// The derivatives of root by each of the leaves, which may be any nodes, recorded on their tape. Nodes older than
// `since` are taken for plain numbers.
template <class T, class... O, RangeOfValues Leaves, class Expand = NoBlocks>
std::vector<Value<T, O...>> gradientsOf(const Value<T, O...>& root, const Leaves& leaves,
                                        Kinks kinks = std::floating_point<T> ? Kinks::open
                                                                             : Kinks::decided,
                                        std::size_t since = 0, const Expand& expand = {}) {
  static_assert(
      requires(const T& x) { static_cast<bool>(x == x); },
      "a scalar with lanes takes several branches at once");
  using V = Value<T, O...>;
  for (const V& leaf : leaves) root.checkSameTape(leaf);
  if constexpr (std::floating_point<T>) {
    if (kinks == Kinks::open)
      return detail::RecordedSweep<V, Kinks::open, Expand>(root, since, expand)(leaves);
  } else if (kinks == Kinks::open) {
    detail::fail(ErrorKind::badArgument, "gradientsOf: kinks stay open for float and double only");
  }
  return detail::RecordedSweep<V, Kinks::decided, Expand>(root, since, expand)(leaves);
}

BURTORCH_END_NAMESPACE
