// bindings/lock.hpp — the interpreter's lock: given up for long work, taken back for moments
// SPDX-License-Identifier: MIT
//
// A daemon thread may still be at work when the interpreter ends. Python before 3.14 then ends the
// thread with pthread_exit as soon as it asks for the lock, and glibc does that by unwinding the stack:
// through destructors, which ends the whole process. So the unwinding is caught where it
// begins, and the thread sleeps until the process is gone, as it does in newer Pythons.
#pragma once

#include <Python.h>

#include <chrono>
#include <cstddef>
#include <thread>
#include <utility>

namespace burtorch_python {

// Work on so many numbers gives up the lock: nodes, records, parameters. It takes some tens of
// microseconds or more; giving up the lock and taking it back costs one, if nobody waits for it.
inline constexpr std::size_t longWork = std::size_t{1} << 15;

namespace detail {

// What this thread needs to take the lock back; null while it has it. One that began without the
// lock and asks Python for it anew would find no interpreter once that has ended.
inline thread_local PyThreadState* unlockedThread = nullptr;

inline void giveUpLock() noexcept { unlockedThread = PyEval_SaveThread(); }

inline void takeLock() noexcept {
  try {
    PyEval_RestoreThread(std::exchange(unlockedThread, nullptr));
  } catch (...) {
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
  }
}

} // namespace detail

// While one exists, this thread runs without the lock.
class Unlocked {
public:
  Unlocked() noexcept { detail::giveUpLock(); }
  ~Unlocked() { detail::takeLock(); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
};

// Inside of an Unlocked, on the same thread: has the lock again.
class Relocked {
public:
  Relocked() noexcept { detail::takeLock(); }
  ~Relocked() { detail::giveUpLock(); }
  Relocked(const Relocked&) = delete;
  Relocked& operator=(const Relocked&) = delete;
};

} // namespace burtorch_python
