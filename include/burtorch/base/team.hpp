// burtorch/base/team.hpp — threads that stay between calls
// SPDX-License-Identifier: MIT
//
// A thread costs tens of microseconds to make, and it begins wherever the system finds room, often
// beside the one that made it. A team makes its threads when they are first needed and parks them.
//
// A fork copies no threads: a team notices in the child and makes new ones.
#pragma once

#include <burtorch/base/config.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#if __has_include(<unistd.h>)
#include <unistd.h>
#endif

BURTORCH_BEGIN_NAMESPACE

class Team {
public:
  // Calls job(0) here and job(1) … job(n − 1) in threads of their own, all at once, and returns when
  // all have returned. Jobs do not throw. If the system has no more threads (std::system_error),
  // none of them is called.
  template <class Job> void run(std::size_t n, const Job& job) {
    if (!workers_.empty() && workers_.front()->process != process()) workers_.clear();
    while (workers_.size() + 1 < n) workers_.emplace_back(new Worker);
    for (std::size_t i = 1; i < n; ++i)
      workers_[i - 1]->start(
          {[](const void* all, std::size_t which) { (*static_cast<const Job*>(all))(which); }, &job,
           i});
    job(0);
    for (std::size_t i = 1; i < n; ++i) workers_[i - 1]->await(State::busy);
  }

  std::size_t threads() const { return workers_.size(); } // that wait for work

private:
  enum class State : int { idle, busy, leaving };
  struct Task {
    void (*call)(const void*, std::size_t);
    const void* job;
    std::size_t which;
  };

  static long process() {
#if __has_include(<unistd.h>)
    return ::getpid();
#else
    return 0;
#endif
  }

  // One of them on a line of the cache, so that two that wait do not disturb each other.
  struct alignas(64) Worker {
    std::atomic<State> state{State::idle};
    Task task{};
    long process = Team::process();
    std::thread thread{[this] {
      while (await(State::idle) == State::busy) {
        task.call(task.job, task.which);
        become(State::idle);
      }
    }};

    ~Worker() {
      become(State::leaving);
      thread.join();
    }
    void start(const Task& what) {
      task = what;
      become(State::busy);
    }
    void become(State next) {
      state.store(next, std::memory_order_release);
      state.notify_one();
    }
    // The state that follows `now`. The next call usually comes soon, so it looks for a while
    // before it parks.
    State await(State now) const {
      constexpr std::chrono::microseconds patience{20};
      const auto begin = std::chrono::steady_clock::now();
      State seen = state.load(std::memory_order_acquire);
      while (seen == now && std::chrono::steady_clock::now() - begin < patience) {
        std::this_thread::yield();
        seen = state.load(std::memory_order_acquire);
      }
      for (; seen == now; seen = state.load(std::memory_order_acquire))
        state.wait(now, std::memory_order_acquire);
      return seen;
    }
  };

  // In a child of a fork there is no thread to join.
  struct Dismiss {
    void operator()(Worker* worker) const {
      if (worker->process == process()) delete worker;
    }
  };

  std::vector<std::unique_ptr<Worker, Dismiss>> workers_;
};

BURTORCH_END_NAMESPACE
