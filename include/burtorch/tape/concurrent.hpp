// burtorch/tape/concurrent.hpp — Tape<T, Concurrent>: several threads append to one graph
// SPDX-License-Identifier: MIT
//
// Each thread claims its places with atomic counters. Memory does not move while others read it, so such a
// tape never grows: it has what it was given. Everything but appending is for one thread at a time.
#pragma once

#include <burtorch/tape/tape.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

BURTORCH_BEGIN_NAMESPACE

namespace detail {

// SequentialCursor for several threads. Nodes and records are claimed together in one word, so that the
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

template <class... Rest> struct TapeOptions<Concurrent, Rest...> : TapeOptions<Rest...> {
  static constexpr bool concurrent = true;
  using Cursor = ConcurrentCursor;
};

} // namespace detail

BURTORCH_END_NAMESPACE
