// cpp_tests/team_test.cpp — threads that stay: who runs what, more and fewer of them, after a fork
// SPDX-License-Identifier: MIT
#include <burtorch/base/team.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <thread>
#include <utility>
#include <vector>

#if __has_include(<sys/wait.h>)
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace {

using burtorch::Team;

// Each job writes its own place, and all are there at the same time.
std::vector<std::thread::id> whoRuns(Team& team, std::size_t n) {
  std::vector<std::thread::id> ids(n);
  std::barrier together(static_cast<std::ptrdiff_t>(n));
  team.run(n, [&](std::size_t i) {
    together.arrive_and_wait();
    ids[i] = std::this_thread::get_id();
  });
  return ids;
}

TEST_CASE("a team keeps its threads, however many are asked for") {
  Team team;
  CHECK(team.threads() == 0);
  const auto first = whoRuns(team, 3);
  CHECK(team.threads() == 2);
  CHECK(first[0] == std::this_thread::get_id());
  CHECK(first[1] != first[0]);
  CHECK(first[2] != first[1]);
  CHECK(whoRuns(team, 3) == first);
  CHECK(whoRuns(team, 1) == std::vector{first[0]});
  CHECK(whoRuns(team, 2) == std::vector{first[0], first[1]});
  const auto more = whoRuns(team, 5);
  CHECK(std::vector(more.begin(), more.begin() + 3) == first);
  CHECK(team.threads() == 4);
}

TEST_CASE("what jobs wrote is there when they have returned") {
  Team team;
  std::vector<std::size_t> sums(4);
  for (std::size_t round = 0; round < 2000; ++round) {
    // Now and then they have long been parked.
    if (round % 500 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const std::size_t n = 1 + round % 4;
    team.run(n, [&](std::size_t i) { sums[i] += n; });
  }
  CHECK(sums == std::vector<std::size_t>{5000, 4500, 3500, 2000});
}

TEST_CASE("a team may move, and a moved one starts anew") {
  Team team;
  const auto first = whoRuns(team, 2);
  Team other = std::move(team);
  CHECK(whoRuns(other, 2) == first);
  CHECK(whoRuns(team, 2)[1] != first[1]); // NOLINT: what is left is an empty team
}

#if __has_include(                                                                                 \
    <sys/wait.h>) && !defined(__SANITIZE_THREAD__) // which can't follow threads there
TEST_CASE("a child of a fork makes threads of its own") {
  Team team;
  whoRuns(team, 3);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::atomic<int> calls{0};
    team.run(3, [&](std::size_t) { ++calls; });
    ::_exit(calls == 3 ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(whoRuns(team, 3).size() == 3); // the parent's are still there
}
#endif

} // namespace
