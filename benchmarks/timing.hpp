// benchmarks/timing.hpp — what a fair measurement needs beside a clock
// SPDX-License-Identifier: MIT
#pragma once

namespace timing {

// A number the optimizer knows nothing about.
inline double opaque(double x) {
  volatile double hidden = x;
  return hidden;
}

} // namespace timing
