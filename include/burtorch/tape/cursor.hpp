// burtorch/tape/cursor.hpp — how full the arrays of a tape are, and handing out their next places
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/base/config.hpp>
#include <burtorch/base/sizes.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

BURTORCH_BEGIN_NAMESPACE

// How much of each array: a position on the tape, a need, or a capacity.
struct Extent {
  std::size_t nodes = 0;
  std::size_t records = 0;
  std::size_t constants = 0;
  std::size_t operands = 0;

  constexpr bool operator==(const Extent&) const = default;
};

constexpr Extent operator+(const Extent& x, const Extent& y) {
  using detail::sizeSum;
  return {sizeSum(x.nodes, y.nodes), sizeSum(x.records, y.records),
          sizeSum(x.constants, y.constants), sizeSum(x.operands, y.operands)};
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

// The same for several threads. Nodes and records are claimed together in one word, so that the
// records of any two threads stand in the order of their results.
class ConcurrentCursor {
public:
  bool hasRoom(const Extent& need, Extent& at) { // and takes it
    const Extent& capacity = capacity_;
    if (!claimOne(constants_, need.constants, capacity.constants, at.constants)) return false;
    if (!claimOne(operands_, need.operands, capacity.operands, at.operands)) {
      giveBack(constants_, need.constants, at.constants);
      return false;
    }
    std::uint64_t old = nodesAndRecords_.load(std::memory_order_relaxed);
    do {
      at.nodes = old >> 32;
      at.records = old & 0xffffffffu;
      if (at.nodes + need.nodes > capacity.nodes || at.records + need.records > capacity.records) {
        giveBack(constants_, need.constants, at.constants);
        giveBack(operands_, need.operands, at.operands);
        return false;
      }
    } while (
        !nodesAndRecords_.compare_exchange_weak(old, old + pack(need), std::memory_order_relaxed));
    return true;
  }
  void take(const Extent&, const Extent&) {}
  Extent used() const {
    const std::uint64_t both = nodesAndRecords_.load(std::memory_order_acquire);
    return {both >> 32, both & 0xffffffffu, constants_.load(std::memory_order_acquire),
            operands_.load(std::memory_order_acquire)};
  }
  void set(const Extent& used) {
    nodesAndRecords_.store(pack(used));
    constants_.store(used.constants);
    operands_.store(used.operands);
  }
  Extent capacity() const { return capacity_; }
  void setCapacity(const Extent& capacity) { capacity_ = capacity; }

private:
  static std::uint64_t pack(const Extent& e) {
    return (static_cast<std::uint64_t>(e.nodes) << 32) | static_cast<std::uint64_t>(e.records);
  }
  static bool claimOne(std::atomic<std::size_t>& counter, std::size_t need, std::size_t capacity,
                       std::size_t& at) {
    if (need == 0) return true;
    at = counter.load(std::memory_order_relaxed);
    do {
      if (at + need > capacity) return false;
    } while (!counter.compare_exchange_weak(at, at + need, std::memory_order_relaxed));
    return true;
  }
  // Unless another thread has claimed more since: then the places stay unused, which hurts nobody.
  static void giveBack(std::atomic<std::size_t>& counter, std::size_t need, std::size_t at) {
    std::size_t end = at + need;
    counter.compare_exchange_strong(end, at, std::memory_order_relaxed);
  }
  std::atomic<std::uint64_t> nodesAndRecords_{0};
  std::atomic<std::size_t> constants_{0}, operands_{0};
  Extent capacity_;
};

} // namespace detail

BURTORCH_END_NAMESPACE
