// burtorch/backward.hpp — gradients: the sweep over the records, and its variations
// SPDX-License-Identifier: MIT
//
// detail::Pull (tape/sweep.hpp) turns a record into contributions to its operands' gradients. The functions
// here differ in which records they hand to it:
//
//   backward(root)                      every record from the root's down to the first
//   backwardUntil(root, stop, every)    the same, asking now and then whether to stop
//   backwardOf<op>(operands…)           of op(operands…), neither appended nor evaluated
//   backwardWithScratchStorage(…)       only what the root reaches (scratch.hpp)
//   backwardRestricted(root, leaves)    only records between the root and the given leaves (restricted.hpp)
//   backwardReaching(root)              every record down to the oldest that the root depends on (the same)
//
// In all of them the gradients of leaves accumulate over calls, as in other libraries, until
// zeroGrad(); the gradients of other nodes are those of the last call. An adjoint of
// exactly 0 contributes nothing, not even 0·∞ = NaN, so that nodes which the root does not depend
// on leave no trace.
#pragma once

#include <burtorch/tape/sweep.hpp>
#include <burtorch/tape/tape.hpp>
#include <burtorch/value.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <type_traits>

BURTORCH_BEGIN_NAMESPACE

// The gradient of root with respect to everything it was made from, times seed.
template <class T, class... O>
void backward(const Value<T, O...>& root, std::type_identity_t<T> seed = T(1)) {
  auto& tape = root.tape();
  const auto node = root.sysGetRawNodeIndex();
  const std::size_t records = detail::recordsUpTo(tape, node, seed);
  if (records == 0) return;
  detail::Pull pull(detail::TapeAccess::columns(tape), detail::Everything{}, node, seed);
  detail::sweep(tape, 0, records, pull);
}

// The same, but after every `every` records asks stop(), and returns false if it said so. The
// gradients of leaves then hold part of the sum. An std::atomic<bool> serves as a flag that another
// thread or a signal sets.
template <class T, class... O, class Stop>
  requires requires(Stop& stop) { static_cast<bool>(stop()); }
bool backwardUntil(const Value<T, O...>& root, Stop&& stop, std::size_t every = 4096) {
  auto& tape = root.tape();
  const auto node = root.sysGetRawNodeIndex();
  std::size_t left = detail::recordsUpTo(tape, node, T(1));
  if (left == 0) return true;
  detail::Pull pull(detail::TapeAccess::columns(tape), detail::Everything{}, node, T(1));
  while (left != 0) {
    if (stop()) return false;
    const std::size_t next = left - std::min(left, std::max<std::size_t>(every, 1));
    detail::sweep(tape, next, left, pull);
    left = next;
  }
  return true;
}

template <class T, class... O>
bool backwardUntil(const Value<T, O...>& root, const std::atomic<bool>& stop,
                   std::size_t every = 4096) {
  return backwardUntil(
      root, [&stop] { return stop.load(std::memory_order_relaxed); }, every);
}

// The gradient of op(operands…) with respect to what the operands were made from, without the node:
// nothing stays on the tape, and where the pullback does not read the result (op::BinaryDiv's does,
// op::Sqr's does not) the operation is not even evaluated. backwardOf<op::MeanVarying>(losses),
// backwardOf<op::BinaryMult>(x, 0.5).
template <class O, class... Operands> void backwardOf(const Operands&... operands) {
  using V = decltype(apply<O>(operands...));
  auto& tape = detail::tapeAmong(operands...);
  const auto before = tape.mark();
  backward(applyAs<O>(EvaluateIfPulled<O, typename V::Scalar>{}, operands...));
  tape.rewind(before);
}

BURTORCH_END_NAMESPACE
