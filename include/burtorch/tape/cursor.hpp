// burtorch/tape/cursor.hpp — how full the arrays of a tape are, and handing out their next places
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/base/config.hpp>
#include <burtorch/base/sizes.hpp>

#include <cstddef>

BURTORCH_BEGIN_NAMESPACE

// How much of each array: a position on the tape, a need, or a capacity.
struct Extent {
  std::size_t nodes = 0;
  std::size_t records = 0;
  std::size_t constants = 0;
  std::size_t operands = 0;

  constexpr bool operator==(const Extent&) const = default;
};

// f(of x, of y) for each array.
template <class F> constexpr Extent ofEach(const Extent& x, const Extent& y, const F& f) {
  return {f(x.nodes, y.nodes), f(x.records, y.records), f(x.constants, y.constants),
          f(x.operands, y.operands)};
}
constexpr Extent operator+(const Extent& x, const Extent& y) {
  return ofEach(x, y, detail::sizeSum);
}

// True if x fits into y in every array.
constexpr bool fits(const Extent& x, const Extent& y) {
  return x.nodes <= y.nodes && x.records <= y.records && x.constants <= y.constants &&
         x.operands <= y.operands;
}

// Tape<float> tape{reserve(1 << 20)}: owned memory for that many nodes from the start.
struct Reserve {
  Extent extent;
};
constexpr Reserve reserve(std::size_t nodes) { return {{nodes, nodes, nodes / 4, nodes}}; }
constexpr Reserve reserve(const Extent& extent) { return {extent}; }

namespace detail {

// Hands out the next places of the four arrays: `at` is where they begin.
class SequentialCursor {
public:
  // The needs are literals after inlining, so that arrays which are not needed cost nothing. Each
  // counter is read first and once: a compiler then sees that in an expression it is the one stored
  // by the append before.
  BURTORCH_INLINE bool hasRoom(const Extent& need, Extent& at) const {
    if (need.nodes != 0) at.nodes = nodes_.used;
    if (need.records != 0) at.records = records_.used;
    if (need.constants != 0) at.constants = constants_.used;
    if (need.operands != 0) at.operands = operands_.used;
    return (need.nodes == 0 || at.nodes + need.nodes <= nodes_.capacity) &&
           (need.records == 0 || at.records + need.records <= records_.capacity) &&
           (need.constants == 0 || at.constants + need.constants <= constants_.capacity) &&
           (need.operands == 0 || at.operands + need.operands <= operands_.capacity);
  }
  BURTORCH_INLINE void take(const Extent& need, const Extent& at) {
    if (need.nodes != 0) nodes_.used = at.nodes + need.nodes;
    if (need.records != 0) records_.used = at.records + need.records;
    if (need.constants != 0) constants_.used = at.constants + need.constants;
    if (need.operands != 0) operands_.used = at.operands + need.operands;
  }
  BURTORCH_INLINE Extent used() const {
    return {nodes_.used, records_.used, constants_.used, operands_.used};
  }
  BURTORCH_INLINE void set(const Extent& used) {
    nodes_.used = used.nodes;
    records_.used = used.records;
    constants_.used = used.constants;
    operands_.used = used.operands;
  }
  BURTORCH_INLINE Extent capacity() const {
    return {nodes_.capacity, records_.capacity, constants_.capacity, operands_.capacity};
  }
  void setCapacity(const Extent& capacity) {
    nodes_.capacity = capacity.nodes;
    records_.capacity = capacity.records;
    constants_.capacity = capacity.constants;
    operands_.capacity = capacity.operands;
  }

private:
  // Each counter stands beside its capacity, and so no two counters are neighbours: a compiler
  // would load two neighbours as one vector, right after the append before has stored them one by
  // one, and a processor waits a dozen cycles for such a load. All of them share one cache line.
  // They are std::size_t, not Index: a store to a record must not look like a store to a counter.
  struct alignas(16) Column {
    std::size_t used = 0, capacity = 0;
  };
  Column nodes_, records_, constants_, operands_;
};

} // namespace detail

BURTORCH_END_NAMESPACE
