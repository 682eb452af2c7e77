// burtorch/run/anomaly.hpp — which operation first made a NaN or an infinity
// SPDX-License-Identifier: MIT
//
// IEEE arithmetic goes on with them, so that they are met far from where they began. These functions
// look where that was; nothing else pays for it. They answer with a position in records(), which is
// records().size() if all is well.
#pragma once

#include <burtorch/backward.hpp>

#include <algorithm>
#include <cstddef>

BURTORCH_BEGIN_NAMESPACE

// Of several lanes: all of them are.
template <Scalar T> bool isFinite(const T& x) {
  const auto c = computed(x);
  return isZero(c - c); // NaN and infinity less themselves are NaN
}

// The first record from `from` on that made a number which is not finite of operands which all are.
template <class T, class... O>
std::size_t findAnomaly(const Tape<T, O...>& tape, std::size_t from = 0) {
  const auto values = tape.values();
  const auto records = tape.records();
  for (std::size_t r = from; r < records.size(); ++r) {
    const auto results = values.subspan(records[r].firstResult(), records[r].results());
    bool isAnomaly = !std::ranges::all_of(results, isFinite<T>);
    if (!isAnomaly) continue;
    tape.forEachArgument(
        records[r], [&](std::size_t node) { isAnomaly = isAnomaly && isFinite(values[node]); },
        [&](const T& number) { isAnomaly = isAnomaly && isFinite(number); });
    if (isAnomaly) return r;
  }
  return records.size();
}

// backward(root), but ends at the first record whose pullback makes a finite gradient one that is not.
// The gradients of leaves then hold part of the sum.
template <class T, class... O> std::size_t backwardWatched(const Value<T, O...>& root) {
  auto& tape = root.tape();
  const auto node = root.sysGetRawNodeIndex();
  const auto records = tape.records();
  std::size_t left = detail::recordsUpTo(tape, node, T(1));
  if (left == 0) return records.size();
  detail::Pull pull(detail::TapeAccess::columns(tape), detail::Everything{}, node, T(1));
  for (; left != 0; --left) {
    const auto anomalies = [&, grads = tape.grads()] {
      std::size_t count = 0;
      tape.forEachOperand(records[left - 1],
                          [&](std::size_t operand) { count += isFinite(grads[operand]) ? 0 : 1; });
      return count;
    };
    const std::size_t before = anomalies(); // a leaf may hold one from an earlier call
    detail::sweep(tape, left - 1, left, pull);
    if (anomalies() != before) return left - 1;
  }
  return records.size();
}

BURTORCH_END_NAMESPACE
