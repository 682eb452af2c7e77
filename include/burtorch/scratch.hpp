// burtorch/scratch.hpp — a gradient over only what the root reaches, working in the caller's memory
// SPDX-License-Identifier: MIT
//
// backward() walks every record below the root. When a tape holds much that the root does not
// depend on, it pays to find first what it does. That takes three lists, given by the caller, so
// nothing is allocated and nothing recursed; the records found are then pulled in the same order as
// backward() would, so that both give the same gradients to the last bit. The price: gradients of
// nodes that are not reached stay as they were.
#pragma once

#include <burtorch/backward.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

BURTORCH_BEGIN_NAMESPACE

// A list of indices in memory of the caller: never grows. A std::vector with reserved capacity
// serves as well.
template <class Index = std::uint32_t> class ScratchList {
public:
  explicit ScratchList(std::span<Index> room) : room_(room) {}

  std::size_t size() const { return size_; }
  std::size_t capacity() const { return room_.size(); }
  void clear() { size_ = 0; }
  void push_back(Index i) { room_[size_++] = i; }
  void pop_back() { --size_; }
  const Index& back() const { return room_[size_ - 1]; }
  Index* begin() const { return room_.data(); }
  Index* end() const { return room_.data() + size_; }

private:
  std::span<Index> room_;
  std::size_t size_ = 0;
};
template <class Room>
ScratchList(Room&) -> ScratchList<std::remove_cvref_t<decltype(*std::data(std::declval<Room&>()))>>;

// What a call takes over from the call before it. The order depends only on the shape of the graph
// below the root, so a loop that rewinds and builds the same expression need not find it again.
enum class Reuse : unsigned { nothing = 0, order = 1, leaves = 2, orderAndLeaves = 3 };

constexpr bool includes(Reuse all, Reuse part) {
  return (static_cast<unsigned>(all) & static_cast<unsigned>(part)) != 0;
}

namespace detail {

template <class List> using IndexOf = std::remove_cvref_t<decltype(*std::declval<List&>().begin())>;

template <class List> bool isFull(const List& list) { return list.size() >= list.capacity(); }

[[noreturn]] BURTORCH_COLD inline void failScratch(const char* name, std::size_t capacity,
                                                   std::size_t atMost) {
  fail(ErrorKind::capacity, std::string("backwardWithScratchStorage: '") + name +
                                "' has room for " + std::to_string(capacity) +
                                " indices; this root needs at most " + std::to_string(atMost));
}

// Notes leaves as they are met; makes the list unique when it is full and at the end.
template <class Leaves> class LeafNotes {
public:
  explicit LeafNotes(Leaves& leaves) : leaves_(leaves) { leaves_.clear(); }

  // False if there is no room for one more.
  bool add(std::size_t leaf) {
    if (isFull(leaves_)) {
      sortOut();
      if (std::binary_search(leaves_.begin(), leaves_.end(), leaf)) return true;
      if (isFull(leaves_)) return false;
    }
    leaves_.push_back(static_cast<IndexOf<Leaves>>(leaf));
    sorted_ = false;
    return true;
  }
  void sortOut() {
    if (std::exchange(sorted_, true)) return;
    std::sort(leaves_.begin(), leaves_.end());
    const auto end = std::unique(leaves_.begin(), leaves_.end());
    for (auto extra = leaves_.end() - end; extra != 0; --extra) leaves_.pop_back();
  }

private:
  Leaves& leaves_;
  bool sorted_ = false;
};

// A walk over what the record at `root` reaches. Fills order with those records, newest first, as
// distances from root; calls onLeaf(node), which may answer false to end the walk, for each leaf
// met. Returns the name of the list that was too small, or nullptr. Visited records are marked in
// their word, and unmarked again whatever happens.
template <class T, class... O, class Order, class Stack, class OnLeaf>
const char* findOrder(Tape<T, O...>& tape, std::size_t root, Order& order, Stack& stack,
                      const OnLeaf& onLeaf) {
  using Record = typename Tape<T, O...>::Record;
  using Word = typename Record::Word;
  Record* const records = TapeAccess::records(tape);
  const std::size_t leaf = tape.records().size(); // what recordOfOperand says of a leaf
  const auto isVisited = [&](std::size_t r) { return (records[r].word & Record::visited) != 0; };
  const auto visit = [&](std::size_t r) {
    records[r].word = static_cast<Word>(records[r].word | Record::visited);
  };
  const auto leave = [&](std::size_t r) {
    records[r].word = static_cast<Word>(records[r].word & (Record::visited - 1u));
  };
  order.clear();
  stack.clear();
  if (isFull(stack)) return "stack";
  visit(root);
  stack.push_back(static_cast<IndexOf<Stack>>(root));
  const char* full = nullptr;
  std::size_t oldest = root;
  while (stack.size() != 0 && full == nullptr) {
    if (isFull(order)) {
      full = "order";
      break;
    }
    const std::size_t r = stack.back();
    stack.pop_back();
    order.push_back(static_cast<IndexOf<Order>>(root - r));
    oldest = std::min(oldest, r);
    tape.forEachOperand(records[r], [&](std::size_t operand) {
      if (full != nullptr) return;
      const std::size_t made = tape.recordOfOperand(operand, r);
      if (made == leaf) {
        if (!onLeaf(operand)) full = "leaves";
      } else if (!isVisited(made)) {
        if (isFull(stack)) {
          full = "stack";
          return;
        }
        visit(made);
        stack.push_back(static_cast<IndexOf<Stack>>(made));
      }
    });
  }
  if (full == nullptr &&
      root - oldest < 8 * order.size()) { // dense: the marks, read in order, are the sorted list
    order.clear();
    for (std::size_t r = root + 1; r-- != oldest;)
      if (isVisited(r)) {
        leave(r);
        order.push_back(static_cast<IndexOf<Order>>(root - r));
      }
    return nullptr;
  }
  for (const auto distance : order) leave(root - distance);
  for (const auto r : stack) leave(r);
  if (full == nullptr) std::sort(order.begin(), order.end());
  return full;
}

// The same for the leaves alone, from an order found before.
template <class T, class... O, class Order, class OnLeaf>
const char* findLeaves(Tape<T, O...>& tape, std::size_t root, const Order& order,
                       const OnLeaf& onLeaf) {
  bool fits = true;
  for (const auto distance : order)
    tape.forEachOperand(tape.records()[root - distance], [&](std::size_t operand) {
      if (tape.recordOfOperand(operand, root - distance) == tape.records().size())
        fits = fits && onLeaf(operand);
    });
  return fits ? nullptr : "leaves";
}

} // namespace detail

// The gradient of root, visiting only what it reaches. Afterwards order holds the records visited,
// newest first (as distances from the root's record), leaves the indices of the leaves the root
// depends on; stack is work space. order and stack need room for at most one index per record,
// leaves for one per leaf. If a list is too small, the error says so and no gradient has changed.
template <Reuse reuse = Reuse::nothing, class T, class... O, class Order, class Leaves, class Stack>
void backwardWithScratchStorage(const Value<T, O...>& root, Order&& order, Leaves&& leaves,
                                Stack&& stack) {
  using Index = typename Value<T, O...>::Index;
  constexpr auto holdsIndices = []<class I>(I) {
    return std::unsigned_integral<I> && sizeof(I) >= sizeof(Index);
  };
  static_assert(holdsIndices(detail::IndexOf<Order>{}) && holdsIndices(detail::IndexOf<Leaves>{}) &&
                    holdsIndices(detail::IndexOf<Stack>{}),
                "the lists must hold unsigned integers at least as wide as the tape's indices");
  auto& tape = root.tape();
  const auto node = root.sysGetRawNodeIndex();
  const std::size_t top = tape.recordOf(node);
  auto columns = detail::TapeAccess::columns(tape);
  if (top == tape.records().size()) { // the root is a leaf
    if (leaves.capacity() == 0) detail::failScratch("leaves", 0, 1);
    order.clear();
    leaves.clear();
    leaves.push_back(static_cast<detail::IndexOf<Leaves>>(node));
    columns.grads[node] = columns.grads[node] + T(1);
    return;
  }
  const auto search = [&](const auto& onLeaf) {
    if constexpr (includes(reuse, Reuse::order))
      return detail::findLeaves(tape, top, order, onLeaf);
    else return detail::findOrder(tape, top, order, stack, onLeaf);
  };
  const char* full = nullptr; // the name of the list that is too small
  if constexpr (!includes(reuse, Reuse::leaves)) {
    detail::LeafNotes notes(leaves);
    full = search([&](std::size_t leaf) { return notes.add(leaf); });
    notes.sortOut();
  } else if constexpr (!includes(reuse, Reuse::order)) {
    full = search([](std::size_t) { return true; });
  }
  if (full != nullptr) {
    if (full[0] == 'l')
      detail::failScratch(full, leaves.capacity(), tape.size() - tape.records().size());
    detail::failScratch(full, full[0] == 'o' ? order.capacity() : stack.capacity(), top + 1);
  }
  BURTORCH_ASSERT(order.size() != 0 && *(order.end() - 1) <= top, badArgument,
                  "backwardWithScratchStorage: the order to reuse is of another graph");
  const auto* const records = detail::TapeAccess::records(tape);
  if (detail::TapeAccess::markSwept(tape, top + 1))
    for (const auto distance : order)
      detail::TapeAccess::clearResults(columns.grads, records[top - distance]);
  detail::Pull pull(columns, detail::Everything{}, node, T(1));
  for (const auto distance : order) pull(records[top - distance]);
}

BURTORCH_END_NAMESPACE
