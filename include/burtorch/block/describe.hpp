// burtorch/block/describe.hpp — what a block brings, and the words in which its definition is written
// SPDX-License-Identifier: MIT
//
// A block is a struct in namespace block and a function that records it, in one file:
//
//   name, symbol     of its C++ function; what a picture shows
//   meaning          optional: what it computes, in words, for Python's help and docs/operations.md
//   forward(frame)   the results, by kernels; pullback(frame): the gradients of its views
//   expanded(parts)  its definition: one Value per result, row by row. Tests hold the kernels against it,
//                    and gradients that are recorded go through it
//   record(parts)    the block anew, from a file: parts.demand… first compares what the file says with
//                    the sizes that such a block has, so that no file makes a block that is larger than
//                    itself; then the block's function, which checks shapes and indices, records it
//   assigns(frame)   optional: pullback writes gradients even where the results have none
//   gradients, isAssigned(frame, view)
//                    optional: the place of a ParameterGradients among the parameters, and the views of
//                    which it speaks
//   key              optional: the place of two parameters that are a key to random numbers; a run with
//                    other words there draws others
//   keepsSamples(frame, view, n)
//                    optional: if that view is n samples, one after the other, and the other views are the
//                    same for all, then so are the results, and each depends on its own sample alone.
//                    Without it the block mixes samples, and batches with it are not cut into parts
//   stored(frame)    optional: how many parameters a file keeps; the others are space to work in
//
// The list of all blocks in blocks.hpp makes files, expansions and tests know it.
//
// Definitions speak of rows. A row is a View, a vector of Values, or an array, whose length the compiler
// knows; an array may hold numbers, Values or Symbols, and nothing is allocated then. So the same
// definition serves blocks and the layers in nn/fixed.hpp.
#pragma once

#include <burtorch/base/error.hpp>
#include <burtorch/op/table.hpp>
#include <burtorch/value.hpp>
#include <burtorch/view.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

BURTORCH_BEGIN_NAMESPACE

// A block taken apart: what stands on a tape, or what a file says stood there. The parameters are those
// that files keep.
template <class T, class... O> struct BlockParts {
  using V = View<T, O...>;
  std::vector<V> views;
  std::vector<std::size_t> parameters;
  std::vector<T> kept;
  std::size_t results = 0;

  static BlockParts onTape(Tape<T, O...>& tape, const typename Tape<T, O...>::Record& record,
                           std::size_t storedParameters) {
    const auto frame = tape.frame(record);
    const auto& d = frame.description;
    BlockParts parts;
    tape.forEachView(record, [&](std::size_t first, std::size_t rows, std::size_t cols) {
      parts.views.push_back(V::at(tape, first, rows, cols));
    });
    parts.parameters.assign(d.parameters(), d.parameters() + storedParameters);
    parts.kept.assign(frame.kept, frame.kept + d.constants());
    parts.results = frame.count;
    return parts;
  }

  std::span<const V> viewsFrom(std::size_t i) const { return std::span(views).subspan(i); }
  std::span<const std::size_t> parametersFrom(std::size_t i) const {
    return std::span(parameters).subspan(i);
  }

  // For record: before memory is taken.
  void demand(bool fits) const {
    if (!fits) detail::fail(ErrorKind::badData, "operands and results do not fit");
  }
  void demandOperands(std::size_t wantedViews, std::size_t leastParameters = 0) const {
    demand(views.size() == wantedViews && parameters.size() >= leastParameters);
  }
  void demandSizes(std::size_t wantedResults, std::size_t wantedKept = 0) const {
    demand(results == wantedResults && kept.size() == wantedKept);
  }
};

namespace block {

// For keepsSamples of a block that takes a view row by row.
template <class Frame> bool hasWholeRows(const Frame& f, std::size_t view, std::size_t samples) {
  return f.value(view).rows % samples == 0;
}

// Kinds of blocks. What is made of every block is made of a list.
template <class... B> struct List {
  template <class... More> constexpr List<B..., More...> operator+(List<More...>) const {
    return {};
  }
};

template <class B, class Frame> std::size_t storedParameters(const Frame& frame) {
  if constexpr (requires { B::stored(frame); }) return B::stored(frame);
  else return frame.description.parameterCount();
}

// The definition of a B on a tape, recorded there: the results again, as Values.
template <class B, class T, class... O>
std::vector<Value<T, O...>> expandedAs(Tape<T, O...>& tape,
                                       const typename Tape<T, O...>::Record& record) {
  return B::expanded(
      BlockParts<T, O...>::onTape(tape, record, storedParameters<B>(tape.frame(record))));
}

// ---- the words of definitions --------------------------------------------------------------------

// Values and Symbols, whose operations are recorded; everything else is a number.
template <class X>
concept Recorded = requires(std::span<const X> x) { innerProduct(x, x); };
template <class Row> using ElementOf = std::remove_cvref_t<decltype(std::declval<Row>()[0])>;

template <std::size_t n> using Count = std::integral_constant<std::size_t, n>;
template <class X, std::size_t n> constexpr Count<n> countOf(const std::array<X, n>&) { return {}; }
template <class Row> std::size_t countOf(const Row& row) { return row.size(); }

// f(0), f(1), … f(n − 1); where the compiler knows n, f may take them as Counts.
template <std::size_t n, class F> constexpr auto rowOf(const F& f) {
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    return std::array<decltype(f(Count<0>{})), n>{f(Count<i>{})...};
  }(std::make_index_sequence<n>{});
}
template <std::size_t n, class F> constexpr auto rowOf(Count<n>, const F& f) { return rowOf<n>(f); }
template <class F> auto rowOf(std::size_t n, const F& f) {
  std::vector<decltype(f(n))> row;
  for (std::size_t i = 0; i < n; ++i) row.push_back(f(i));
  return row;
}

// A plain number beside X: Values and Symbols take it as it is.
template <class X> constexpr auto number(double x) {
  if constexpr (AnyValue<X>) return static_cast<typename X::Scalar>(x);
  else if constexpr (Recorded<X>) return x;
  else return X(x);
}

template <class X> constexpr X exponential(const X& x) {
  if constexpr (Recorded<X>) return exp(x);
  else return op::Exp::forward(x);
}
template <class X> constexpr X inverseRoot(const X& x) {
  if constexpr (Recorded<X>) return invSqrt(x);
  else return op::InvSqrt::forward(x);
}
template <class X> constexpr X larger(const X& x, const X& y) {
  if constexpr (Recorded<X>) return max(x, y);
  else return op::BinaryMax::forward(x, y);
}

// ⟨x, y⟩ of rows that are not empty, and ⟨x, y⟩ + bias.
template <class X, class Y> constexpr auto dot(const X& x, const Y& y) {
  if constexpr (Recorded<ElementOf<X>>) {
    return innerProduct(x, y);
  } else {
    auto sum = x[0] * y[0];
    for (std::size_t i = 1; i < x.size(); ++i) sum = sum + x[i] * y[i];
    return sum;
  }
}
template <class X, class Y>
constexpr auto dotWithBias(const X& x, const Y& y, const ElementOf<X>& bias) {
  if constexpr (Recorded<ElementOf<X>>) {
    return innerProductWithBias(x, y, bias);
  } else {
    auto sum = bias;
    for (std::size_t i = 0; i < x.size(); ++i) sum = sum + x[i] * y[i];
    return sum;
  }
}

template <class Row> auto sumOf(const Row& x) { return reduceSum(x); }
template <class X, std::size_t n> constexpr X sumOf(const std::array<X, n>& x) {
  X sum = x[0];
  for (std::size_t i = 1; i < n; ++i) sum = sum + x[i];
  return sum;
}

// What a softmax subtracts: a plain number where there are such, because no result depends on it.
template <class Row> auto largestOf(const Row& x) {
  auto largest = x[0].dataCopy();
  for (const auto& each : x) largest = std::max(largest, each.dataCopy());
  return largest;
}
template <class X, std::size_t n> constexpr X largestOf(const std::array<X, n>& x) {
  X largest = x[0];
  for (std::size_t i = 1; i < n; ++i) largest = larger(largest, x[i]);
  return largest;
}

// A row minus its mean, and its (biased) variance.
template <class Row, class X> struct Moments {
  Row centred;
  X variance;
};
template <class Row> auto momentsOf(const Row& x) {
  const auto mean = reduceMean(x);
  const auto variance = varianceBiased(x);
  auto centred = rowOf(x.size(), [&](std::size_t i) { return x[i] - mean; });
  return Moments<decltype(centred), ElementOf<Row>>{std::move(centred), variance};
}
template <class X, std::size_t n>
constexpr Moments<std::array<X, n>, X> momentsOf(const std::array<X, n>& x) {
  const X mean = sumOf(x) * number<X>(1.0 / n);
  const auto centred = rowOf<n>([&](std::size_t i) { return x[i] - mean; });
  const auto squares = rowOf<n>([&](std::size_t i) { return centred[i] * centred[i]; });
  return {centred, sumOf(squares) * number<X>(1.0 / n)};
}

// What of(row) gives for each row of a view, one after the other.
template <AnyView V, class F> auto eachRow(const V& x, const F& of) {
  std::vector<typename V::Element> all;
  for (std::size_t i = 0; i < x.rows(); ++i)
    for (const auto& each : of(x.row(i))) all.push_back(each);
  return all;
}

} // namespace block

BURTORCH_END_NAMESPACE
