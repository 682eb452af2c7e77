// bindings/interrupts.hpp — Ctrl-C during a call that runs without the interpreter's lock
// SPDX-License-Identifier: MIT
#pragma once

#include "lock.hpp"

#include <pybind11/pybind11.h>

#include <chrono>

namespace burtorch_python {

// Ctrl-C was pressed, and a Python error is set. For work inside of an Unlocked to ask now and then.
inline bool isInterrupted() {
  const Relocked locked;
  return PyErr_CheckSignals() != 0;
}

// To be asked often, inside of an Unlocked: looks now and then, and throws what Python raised.
class Interrupts {
public:
  void operator()() {
    const auto now = Clock::now();
    if (now - asked_ < std::chrono::milliseconds(20)) return;
    asked_ = now;
    if (!isInterrupted()) return;
    const Relocked locked;
    throw pybind11::error_already_set();
  }

private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point asked_ = Clock::now();
};

} // namespace burtorch_python
