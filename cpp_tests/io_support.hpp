// cpp_tests/io_support.hpp — what the tests of saving and loading share
// SPDX-License-Identifier: MIT
#pragma once

#include "support.hpp"

#include <burtorch/io/graph.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

using FileContent = std::vector<std::byte>;

// A folder that is gone at the end.
class TemporaryFolder {
public:
  TemporaryFolder() {
    path = std::filesystem::temp_directory_path() /
           ("burtorch_test_" + std::to_string(reinterpret_cast<std::uintptr_t>(this)) + "_" +
            std::to_string(burtorch::detail::processNumber()));
    std::filesystem::create_directories(path);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
  std::filesystem::path operator/(const char* name) const { return path / name; }
  std::filesystem::path path;
};

template <class F> void checkFails(burtorch::ErrorKind kind, const std::string& part, const F& f) {
  const burtorch::Error error = errorOf(f);
  CHECK(error.kind() == kind);
  CHECK_MESSAGE(std::string(error.what()).find(part) != std::string::npos, error.what());
}

// A graph whose head says what is true of it again, after it was changed.
inline FileContent sealed(FileContent graph) {
  const auto put = [&](std::size_t at, auto x) {
    for (std::size_t i = 0; i < sizeof(x) && at + i < graph.size(); ++i)
      graph[at + i] = static_cast<std::byte>(x >> (8 * i));
  };
  put(16, static_cast<std::uint64_t>(graph.size()));
  if (graph.size() > 16) put(12, burtorch::detail::crc32(burtorch::Bytes(graph).subspan(16)));
  return graph;
}

// Loads it if it can be loaded; else the tape must be as it was.
template <class Tape, class... More>
bool loadsOrRefuses(Tape& tape, const FileContent& graph, const More&... more) {
  const auto before = tape.used();
  const auto start = tape.mark();
  try {
    loadGraph(tape, burtorch::Bytes(graph), more...);
  } catch (const burtorch::Error&) {
    CHECK(tape.used() == before);
    return false;
  }
  tape.rewind(start);
  return true;
}

// Bytes from `first` on set to each of some values, sealed again: whatever the reader is given, it must
// load or refuse.
template <class Load>
void checkBytesChanged(const FileContent& graph, std::size_t first, std::size_t every,
                       const Load& load) {
  std::size_t loaded = 0;
  for (std::size_t i = first; i < graph.size(); i += every)
    for (const unsigned change : {0x01u, 0x02u, 0x7fu, 0x80u, 0xffu}) {
      FileContent changed = graph;
      changed[i] ^= static_cast<std::byte>(change);
      changed = sealed(std::move(changed));
      if (load(changed)) ++loaded;
    }
  CHECK(loaded > 0); // other numbers are as good
}
