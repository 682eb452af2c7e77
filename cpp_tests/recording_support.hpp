// cpp_tests/recording_support.hpp — what tests of recordings start from: points, and leaves at them
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/run/replay.hpp>

#include <vector>

namespace recording_support {

using V = burtorch::Value<double>;
using R = burtorch::Recording<double>;

inline const std::vector<double> at{0.75, 0.3, -0.6, 1.4, 0.2},
    elsewhere{0.4, 1.1, 0.35, -0.8, 0.9};

inline std::vector<V> leaves(burtorch::Tape<double>& tape, const std::vector<double>& x) {
  std::vector<V> all;
  for (const double each : x) all.emplace_back(tape, each);
  return all;
}

} // namespace recording_support
