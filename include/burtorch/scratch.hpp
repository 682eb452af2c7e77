// burtorch/scratch.hpp — a gradient over only what the root reaches, working in the caller's memory
// SPDX-License-Identifier: MIT
//
// backward() walks every record below the root. When a tape holds much that the root does not depend on, it pays
// to find first what it does. That takes three lists, given by the caller, so nothing is allocated and nothing
// recursed; the records found are then pulled in the same order as backward() would, so that both give the same
// gradients to the last bit. The price: gradients of nodes that are not reached stay as they were.
#pragma once

#include <burtorch/backward.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

BURTORCH_BEGIN_NAMESPACE

// A list of indices in memory of the caller: never grows. A std::vector with reserved capacity serves as well.
template <class Index = std::uint32_t>
class ScratchList {
public:
  explicit ScratchList(std::span<Index> room) : room_(room) {}

  std::size_t size() const { return size_; }
  std::size_t capacity() const { return room_.size(); }
  void clear() { size_ = 0; }
  void push_back(Index i) { room_[size_++] = i; }
  void pop_back() { --size_; }
  const Index& back() const { return room_[size_ - 1]; }
  Index* begin() { return room_.data(); }
  Index* end() { return room_.data() + size_; }
  const Index* begin() const { return room_.data(); }
  const Index* end() const { return room_.data() + size_; }

private:
  std::span<Index> room_;
  std::size_t size_ = 0;
};
template <class Room>
ScratchList(Room&) -> ScratchList<std::remove_cvref_t<decltype(*std::data(std::declval<Room&>()))>>;

// What a call takes over from the call before it. The order depends only on the shape of the graph below the root,
// so a loop that rewinds and builds the same expression need not find it again.
enum class Reuse : unsigned { nothing = 0, order = 1, leaves = 2, orderAndLeaves = 3 };

constexpr bool includes(Reuse all, Reuse part) {
  return (static_cast<unsigned>(all) & static_cast<unsigned>(part)) != 0;
}

namespace detail {

template <class List>
using IndexOf = std::remove_cvref_t<decltype(*std::declval<List&>().begin())>;

template <class List>
bool isFull(const List& list) {
  return list.size() >= list.capacity();
}

[[noreturn]] BURTORCH_COLD inline void failScratch(const char* name, std::size_t capacity, std::size_t atMost) {
  fail(ErrorKind::capacity, std::string("backwardWithScratchStorage: '") + name + "' has room for " +
                                std::to_string(capacity) + " indices; this root needs at most " +
                                std::to_string(atMost));
}

// Fills order with the records that the one at `root` reaches, newest first, as distances from it.
template <class T, class... O, class Order, class Stack>
void findOrder(Tape<T, O...>& tape, std::size_t root, Order& order, Stack& stack) {
  using Record = typename Tape<T, O...>::Record;
  using Word = typename Record::Word;
  Record* const records = TapeAccess::records(tape);
  const auto isVisited = [&](std::size_t r) { return (records[r].word & Record::visited) != 0; };
  const auto visit = [&](std::size_t r) { records[r].word = static_cast<Word>(records[r].word | Record::visited); };
  const auto leave = [&](std::size_t r) {
    records[r].word = static_cast<Word>(records[r].word & (Record::visited - 1u));
  };
  const char* full = nullptr; // the name of the list that has run out
  order.clear();
  stack.clear();
  std::size_t oldest = root;
  if (isFull(stack)) failScratch("stack", stack.capacity(), root + 1);
  visit(root);
  stack.push_back(static_cast<IndexOf<Stack>>(root));
  while (stack.size() != 0 && full == nullptr) {
    const std::size_t r = stack.back();
    if (isFull(order)) {
      full = "order";
      break;
    }
    stack.pop_back();
    order.push_back(static_cast<IndexOf<Order>>(root - r));
    oldest = std::min(oldest, r);
    tape.forEachOperand(records[r], [&](std::size_t operand) {
      const std::size_t made = tape.recordOfOperand(operand, r);
      if (made == tape.records().size() || isVisited(made) || full != nullptr) return;
      if (isFull(stack)) {
        full = "stack";
        return;
      }
      visit(made);
      stack.push_back(static_cast<IndexOf<Stack>>(made));
    });
  }
  const std::size_t reached = order.size();
  if (full == nullptr && root - oldest < 8 * reached) { // dense: the marks, read in order, are the sorted list
    order.clear();
    for (std::size_t r = root + 1; r-- != oldest;)
      if (isVisited(r)) {
        leave(r);
        order.push_back(static_cast<IndexOf<Order>>(root - r));
      }
    return;
  }
  for (const auto distance : order) leave(root - distance);
  for (const auto r : stack) leave(r);
  if (full != nullptr)
    failScratch(full, full[0] == 'o' ? order.capacity() : stack.capacity(), root + 1);
  std::sort(order.begin(), order.end());
}

// Fills leaves with the leaves that the records of order use, each once, oldest first.
template <class T, class... O, class Order, class Leaves>
void findLeaves(Tape<T, O...>& tape, std::size_t root, const Order& order, Leaves& leaves) {
  leaves.clear();
  const auto tidy = [&] { // sorted, each once
    std::sort(leaves.begin(), leaves.end());
    const auto end = std::unique(leaves.begin(), leaves.end());
    for (auto extra = leaves.end() - end; extra != 0; --extra) leaves.pop_back();
  };
  for (const auto distance : order) {
    const std::size_t r = root - distance;
    tape.forEachOperand(tape.records()[r], [&](std::size_t operand) {
      if (tape.recordOfOperand(operand, r) != tape.records().size()) return;
      if (isFull(leaves)) tidy();
      if (isFull(leaves)) failScratch("leaves", leaves.capacity(), tape.size() - tape.records().size());
      leaves.push_back(static_cast<IndexOf<Leaves>>(operand));
    });
  }
  tidy();
}

} // namespace detail

// The gradient of root, visiting only what it reaches. Afterwards order holds the records visited, newest first (as
// distances from the root's record), leaves the indices of the leaves the root depends on; stack is work space.
// order and stack need room for at most one index per record, leaves for one per leaf. If a list is too small,
// the error says so and no gradient has changed.
template <Reuse reuse = Reuse::nothing, class T, class... O, class Order, class Leaves, class Stack>
void backwardWithScratchStorage(const Value<T, O...>& root, Order&& order, Leaves&& leaves, Stack&& stack) {
  auto& tape = root.tape();
  const auto node = root.sysGetRawNodeIndex();
  const std::size_t top = tape.recordOf(node);
  auto columns = detail::TapeAccess::columns(tape);
  if (top == tape.records().size()) { // the root is a leaf
    if (detail::isFull(leaves) && leaves.capacity() == 0) detail::failScratch("leaves", 0, 1);
    order.clear();
    leaves.clear();
    leaves.push_back(static_cast<detail::IndexOf<Leaves>>(node));
    columns.grads[node] = columns.grads[node] + T(1);
    return;
  }
  if constexpr (!includes(reuse, Reuse::order)) detail::findOrder(tape, top, order, stack);
  if constexpr (!includes(reuse, Reuse::leaves)) detail::findLeaves(tape, top, order, leaves);
  const auto* const records = detail::TapeAccess::records(tape);
  if (detail::TapeAccess::markSwept(tape, top + 1))
    for (const auto distance : order) columns.grads[records[top - distance].result] = T(0);
  detail::Pull pull(columns, detail::Everything{}, node, T(1));
  for (const auto distance : order) pull(records[top - distance]);
}

BURTORCH_END_NAMESPACE
