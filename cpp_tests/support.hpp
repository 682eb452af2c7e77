// cpp_tests/support.hpp — what several test files need
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/burtorch.hpp>

#include <stdexcept>
#include <vector>

// The error that f throws; it must throw one.
template <class F> burtorch::Error errorOf(F&& f) {
  try {
    f();
  } catch (const burtorch::Error& error) {
    return error;
  }
  throw std::logic_error("nothing was thrown");
}

inline std::vector<double> gradientsOf(const burtorch::Tape<double>& tape) {
  return {tape.grads().begin(), tape.grads().end()};
}
