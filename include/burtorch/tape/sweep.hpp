// burtorch/tape/sweep.hpp — a record turned into what its operands gain: the loop behind every gradient
// SPDX-License-Identifier: MIT
//
// Pull takes one record, sweep() walks a tape's records with it, newest first. What differs between the
// functions of backward.hpp and scratch.hpp is which records they hand to it, and a filter that says which
// nodes take part.
#pragma once

#include <burtorch/base/config.hpp>
#include <burtorch/base/error.hpp>
#include <burtorch/op/record.hpp>
#include <burtorch/op/table.hpp>
#include <burtorch/tape/block.hpp>
#include <burtorch/tape/tape.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

BURTORCH_BEGIN_NAMESPACE

namespace detail {

// What the sweep may touch of a tape.
struct TapeAccess {
  template <class T, class Index> struct Columns {
    T* BURTORCH_RESTRICT values;
    T* BURTORCH_RESTRICT grads;
    T* constants;
    Index* operands;
  };

  template <class T, class... O>
  static Columns<T, typename Tape<T, O...>::Index> columns(Tape<T, O...>& tape) {
    return {tape.values_, tape.grads_, tape.constants_, tape.operands_};
  }
  template <class T, class... O> static auto* records(Tape<T, O...>& tape) { return tape.records_; }

  // Clears what earlier calls left in the gradients of results; the first `records` will be swept
  // now.
  template <class T, class... O>
  BURTORCH_INLINE static void clearResults(Tape<T, O...>& tape, std::size_t records) {
    for (std::size_t r = tape.sweptFrom_; r < tape.swept_; ++r)
      clearResults(tape.grads_, tape.records_[r]);
    tape.sweptFrom_ = 0;
    tape.swept_ = records;
  }
  template <class T, class Record>
  BURTORCH_INLINE static void clearResults(T* grads, const Record& record) {
    grads[record.result] = T(0);
    if (record.isBlock()) [[unlikely]]
      std::fill_n(grads + record.firstResult(), record.results(), T(0));
  }
  // Notes that some of the first `records` will be swept now; true if some of them may hold a
  // gradient already.
  template <class T, class... O> static bool markSwept(Tape<T, O...>& tape, std::size_t records) {
    tape.sweptFrom_ = 0;
    return std::exchange(tape.swept_, std::max(tape.swept_, records)) != 0;
  }
  // Notes that the sweep going on ended above these.
  template <class T, class... O> static void spare(Tape<T, O...>& tape, std::size_t records) {
    tape.sweptFrom_ = records;
  }
  template <class T, class... O> static void demandSomewhere(const Tape<T, O...>& tape) {
    if (tape.isNowhere_) [[unlikely]]
      tape.failEmpty();
  }
};

// Which nodes take part in a sweep, and whether it goes on to older ones.
struct Everything {
  static constexpr bool skipsZeros = false;
  static constexpr bool wantsAll = true;
  template <int k> static constexpr bool wantsSequence = true; // of a product's two
  static constexpr bool wants(std::size_t) { return true; }
  static constexpr void gave(std::size_t) {}
  static constexpr bool goesOnTo(std::size_t) { return true; }
};
// Operations with many operands, out of the hot loop; everything by value, so that the loop's own
// copies can stay in registers.
template <class T, class Index, class Filter> struct GiveToMany {
  using C = ComputedIn<T>;
  T* BURTORCH_RESTRICT grads;
  const Index* operands;
  Filter filter;
  C g;

  BURTORCH_INLINE void add(std::size_t i, const C& contribution) const {
    if (filter.wants(i))
      grads[i] = static_cast<T>(computed(grads[i]) + unlessZero(g, contribution));
  }
  template <int, bool> void node(std::size_t i, const auto& contribution) const {
    add(i, contribution());
  }
  template <int k> auto run(std::size_t first, std::size_t) const {
    if constexpr (!Filter::template wantsSequence<k>) return nothing;
    else
      return [first, *this]<class I>(I i, const auto& c) BURTORCH_INLINE_LAMBDA {
        if constexpr (!std::is_same_v<I, Eight>) add(first + i, c);
        else if constexpr (Filter::wantsAll)
          narrow(widen<8>(grads + first + i.first) + c, grads + first + i.first);
        else
          for (std::size_t j = 0; j < 8; ++j) add(first + i.first + j, c[j]);
      };
  }
  template <int k> auto list(std::size_t place, std::size_t) const {
    if constexpr (!Filter::template wantsSequence<k>) return nothing;
    else
      return [stored = operands + place, *this](std::size_t i, const C& c)
                 BURTORCH_INLINE_LAMBDA { add(stored[i], c); };
  }
  static constexpr auto nothing = [](const auto&...) BURTORCH_INLINE_LAMBDA {};
};
template <class O, Form F, class T, class Index, class Filter, class Record>
BURTORCH_NOINLINE void pullMany(const T* BURTORCH_RESTRICT values, T* BURTORCH_RESTRICT grads,
                                const Index* operands, Filter filter, const Record& record,
                                T adjoint) {
  using C = ComputedIn<T>;
  const C g = computed(adjoint);
  const C& z = computed(values[record.result]);
  contribute<O, F>(record, TapeSource<T, Index>{values, nullptr, operands}, z, g,
                   GiveToMany<T, Index, Filter>{grads, operands, filter, g});
}

// A block. Operands that take no part are hidden from its pullback; they take part as a whole.
template <class T, class Index, class Filter, class Record>
BURTORCH_NOINLINE void pullBlock(T* values, T* grads, T* constants, Index* operands, Filter filter,
                                 const Record& record) {
  const BlockDescription<T, Index> d(operands + record.a);
  const std::size_t first = record.firstResult(), count = record.results();
  BlockFrame<T, Index> frame{values, grads, constants + d.constantsPlace(), d, first, count};
  if constexpr (!std::is_empty_v<Filter> && requires { filter.active; }) {
    for (std::size_t v = 0; v < d.views(); ++v) {
      const std::uint8_t* const active = filter.active + d.view(v)[0];
      if (d.viewSize(v) != 0 && active[0] == 0)
        frame.hide(v); // and so are the others: demandWholeViews
    }
  }
  d.methods().pullback(frame);
}

// Turns records into contributions. In a chain each adjoint is written by one record and read by
// the next; the trip through memory would cost more than the arithmetic, so the adjoint written
// last also stays in a register. Invariant: last_ == grads[lastNode_].
template <class T, class Index, class Filter> class Pull {
  using C = ComputedIn<T>;

public:
  Pull(const TapeAccess::Columns<T, Index>& columns, Filter filter, std::size_t root, const T& seed)
      : columns_(columns), filter_(filter), last_(seed), lastNode_(root) {
    columns_.grads[root] = seed;
  }

  template <class Record> BURTORCH_INLINE void operator()(const Record& record) {
    if (!filter_.wants(record.result)) return;
    T adjoint = last_;
    if (record.result != lastNode_) [[unlikely]]
      adjoint = columns_.grads[record.result];
    // No walk is going on, so the word is the code. Each case reads of the record what it needs:
    // read before, it would have to survive the calls that some cases make.
    dispatch(record.word, [&]<class O, Form F>(op::Instance<O, F>) BURTORCH_INLINE_LAMBDA {
      constexpr Layout layout = op::layoutOf<O>(F);
      if constexpr (layout == Layout::block) {
        pullBlock(columns_.values, columns_.grads, columns_.constants, columns_.operands, filter_,
                  record);
      } else {
        if constexpr (!O::isLinear || Filter::skipsZeros)
          if (isZero(adjoint)) return; // where 0 times the derivative might not be 0
        if constexpr (!op::isFew(layout)) {
          pullMany<O, F>(columns_.values, columns_.grads, columns_.operands, filter_, record,
                         adjoint);
        } else {
          const TapeSource<T, Index> source{columns_.values, columns_.constants, nullptr};
          const C& g = computed(adjoint);
          const C& z = source.template node<0>(record.result);
          return contribute<O, F>(record, source, z, g, Give<O>{*this, g});
        }
      }
      filter_.gave(0); // perhaps
      last_ = columns_.grads[lastNode_];
    });
  }

  template <class Record> BURTORCH_INLINE bool goesOnTo(const Record& record) const {
    return filter_.goesOnTo(record.result);
  }

private:
  // In the lanes where the adjoint is 0 nothing is given, for the same reason.
  template <class O> struct Give {
    Pull& pull;
    const C& g;
    template <int, bool> BURTORCH_INLINE void node(std::size_t i, const auto& contribution) const {
      if constexpr (O::isLinear) pull.give(i, contribution());
      else pull.give(i, unlessZero(g, contribution()));
    }
  };
  BURTORCH_INLINE void give(std::size_t node, const C& contribution) {
    if (!filter_.wants(node)) return;
    filter_.gave(node);
    last_ = static_cast<T>(computed(columns_.grads[node]) + contribution);
    lastNode_ = node;
    columns_.grads[node] = last_;
  }

  TapeAccess::Columns<T, Index> columns_;
  [[no_unique_address]] Filter filter_;
  T last_;
  std::size_t lastNode_;
};

// Pulls records [first, last) of a tape, newest first; returns the number of those before the last
// one pulled.
template <class T, class... O, class PullType>
BURTORCH_INLINE std::size_t sweep(Tape<T, O...>& tape, std::size_t first, std::size_t last,
                                  PullType& pull) {
  const auto* const records = TapeAccess::records(tape);
  const auto* const begin = records + first;
  const auto* record = records + last;
  while (record != begin && pull.goesOnTo(record[-1])) pull(*--record);
  return static_cast<std::size_t>(record - records);
}

// A root that is a leaf: its gradient gains the seed. Otherwise the number of records up to the
// root's.
template <class T, class... O>
BURTORCH_INLINE std::size_t recordsUpTo(Tape<T, O...>& tape, std::size_t root, const T& seed) {
  const std::size_t record = tape.recordOf(root);
  if (record != tape.records().size()) [[likely]] {
    TapeAccess::clearResults(tape, record + 1);
    return record + 1;
  }
  TapeAccess::demandSomewhere(tape);
  TapeAccess::clearResults(tape, 0);
  T& g = TapeAccess::columns(tape).grads[root];
  g = g + seed;
  return 0;
}

template <class T, class... O> std::size_t nodesUpTo(const Value<T, O...>& root) {
  const auto records = root.tape().records();
  const std::size_t record = root.tape().recordOf(root.sysGetRawNodeIndex());
  return std::size_t{1} +
         (record == records.size() ? root.sysGetRawNodeIndex() : records[record].result);
}

} // namespace detail

BURTORCH_END_NAMESPACE
