// burtorch/restricted.hpp — gradients that leave out a part of the tape: other leaves, what is too old
// SPDX-License-Identifier: MIT
//
//   backwardReaching(root)              as backward(root), down to the oldest node that the root depends on
//   backwardRestricted(root, leaves)    only records between the root and the given leaves
#pragma once

#include <burtorch/backward.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

BURTORCH_BEGIN_NAMESPACE

namespace detail {

struct OnlyActive : Everything { // those for which active[i] is not 0
  static constexpr bool wantsAll = false;
  const std::uint8_t* active;
  bool wants(std::size_t i) const { return active[i] != 0; }
};
struct DownToOldest : Everything { // until everything that was given something has been passed
  static constexpr bool skipsZeros = true; // else what the root does not reach would count too
  std::size_t oldest;
  BURTORCH_INLINE void gave(std::size_t i) { oldest = std::min(oldest, i); }
  BURTORCH_INLINE bool goesOnTo(std::size_t i) const { return i >= oldest; }
};

// Of each operand of a block either all nodes take part or none, and few enough are left out.
template <class T, class Index>
void demandWholeViews(const BlockDescription<T, Index>& d, const std::uint8_t* active) {
  for (std::size_t v = 0; v < d.views(); ++v) {
    const std::uint8_t* const first = active + d.view(v)[0];
    const std::size_t n = d.viewSize(v);
    const auto wanted = n - static_cast<std::size_t>(std::count(first, first + n, 0));
    if ((wanted != 0 && wanted != n) || (wanted < n && v >= BlockFrame<T, Index>::mostHidden))
      fail(ErrorKind::badArgument, std::string("backwardRestricted: of an operand of ") +
                                       d.methods().name + " either all nodes or none");
  }
}

} // namespace detail

// The gradients of backward(). The sweep ends below the oldest node that the root depends on, which pays where
// much else stands on the tape; noting that node costs a little per operand.
template <class T, class... O> void backwardReaching(const Value<T, O...>& root) {
  auto& tape = root.tape();
  const auto node = root.sysGetRawNodeIndex();
  const std::size_t records = detail::recordsUpTo(tape, node, T(1));
  if (records == 0) return;
  detail::Pull pull(detail::TapeAccess::columns(tape), detail::DownToOldest{{}, node}, node, T(1));
  detail::TapeAccess::spare(tape, detail::sweep(tape, 0, records, pull));
}

// The gradient with respect to some nodes only (usually leaves): no other leaf's gradient changes,
// and records that do not lie between them and the root are not pulled. `work` needs one byte per
// node up to the root, or to the end of the root's block.
template <class T, class... O, RangeOfValues Leaves>
void backwardRestricted(const Value<T, O...>& root, const Leaves& leaves,
                        std::span<std::uint8_t> work) {
  auto& tape = root.tape();
  const auto node = root.sysGetRawNodeIndex();
  const std::size_t root_ = tape.recordOf(node);
  const std::size_t needed = detail::nodesUpTo(root);
  if (work.size() < needed)
    detail::fail(ErrorKind::badArgument, "backwardRestricted: needs " + std::to_string(needed) +
                                             " bytes to work in, got " +
                                             std::to_string(work.size()));
  std::uint8_t* const active = work.data();
  std::fill_n(active, needed, std::uint8_t{0});
  std::size_t oldest = node;
  for (const auto& leaf : leaves) {
    root.checkSameTape(leaf);
    const std::size_t i = leaf.sysGetRawNodeIndex();
    if (i > node) continue; // younger than the root: no part of it
    active[i] = 1;
    oldest = std::min(oldest, i);
  }
  if (root_ == tape.records().size()) {
    if (active[node]) backward(root);
    return;
  }
  const auto records = tape.records();
  const std::size_t first = static_cast<std::size_t>(
      std::ranges::upper_bound(records, oldest, {}, [](const auto& r) { return r.result; }) -
      records.begin());
  for (std::size_t r = first; r <= root_; ++r) {
    bool any = false;
    tape.forEachOperand(records[r], [&](auto operand) { any |= active[operand] != 0; });
    if (!any) continue;
    std::fill_n(active + records[r].firstResult(), records[r].results(), std::uint8_t{1});
    if (records[r].isBlock()) detail::demandWholeViews(tape.frame(records[r]).description, active);
  }
  detail::TapeAccess::clearResults(tape, root_ + 1);
  detail::Pull pull(detail::TapeAccess::columns(tape), detail::OnlyActive{{}, active}, node, T(1));
  detail::sweep(tape, first, root_ + 1, pull);
}

template <class T, class... O, RangeOfValues Leaves>
void backwardRestricted(const Value<T, O...>& root, const Leaves& leaves) {
  std::vector<std::uint8_t> work(detail::nodesUpTo(root));
  backwardRestricted(root, leaves, std::span<std::uint8_t>(work));
}

BURTORCH_END_NAMESPACE
