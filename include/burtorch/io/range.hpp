// burtorch/io/range.hpp — saveRange, loadRange, mapRange: nodes as plain arrays
// SPDX-License-Identifier: MIT
//
// The values of nodes [first, last), or their gradients, or both one after the other: exactly the bytes of
// the arrays, little-endian, and nothing else. Seven doubles are 56 bytes, which NumPy reads with
// fromfile. What is included is chosen while compiling:
//
//   saveRange(tape, 0, 7, "activations");                   values
//   saveRange<Parts::gradients>(tape, 0, 7, "gradients");
//   saveRange<Parts::both>(tape, 0, 7, "both");             values, then gradients
//
// A range is saved in place, with one system call for the payload, because activations are saved
// often; Writing::atomic or durable as last argument makes it as safe as a graph or a checkpoint.
// Loading reads straight into the tape's arrays, which is faster than copying from a mapping; mapRange
// is for looking at a large file without loading it.
#pragma once

#include <burtorch/io/layout.hpp>
#include <burtorch/tape/tape.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

BURTORCH_BEGIN_NAMESPACE

enum class Parts { values, gradients, both };

namespace detail {

template <Parts parts, class T>
constexpr std::size_t bytesPerNode = sizeof(T) * (parts == Parts::both ? 2 : 1);

inline void demandRange(std::size_t first, std::size_t last, std::size_t size) {
  if (first <= last && last <= size) return;
  std::string what = "nodes [";
  what.append(std::to_string(first)).append(", ").append(std::to_string(last));
  what.append(") of a tape that holds ").append(std::to_string(size));
  fail(ErrorKind::badArgument, what);
}

// Calls f with the bytes of the chosen parts, as a file has them.
template <Parts parts, class T, class... O, class F>
void withRange(const Tape<T, O...>& tape, std::size_t first, std::size_t last, const F& f) {
  demandRange(first, last, tape.size());
  const auto part = [&](std::span<const T> all) { return all.subspan(first, last - first); };
  if constexpr (parts == Parts::both) {
    const FileBytes<T> values(part(tape.values())), grads(part(tape.grads()));
    const std::array both{values.bytes(), grads.bytes()};
    f(std::span<const Bytes>(both));
  } else {
    const FileBytes<T> one(part(parts == Parts::values ? tape.values() : tape.grads()));
    const Bytes bytes = one.bytes();
    f(std::span<const Bytes>(&bytes, 1));
  }
}

// Where those parts are, to be written to.
template <Parts parts, class T, class... O>
auto placesOf(Tape<T, O...>& tape, std::size_t first, std::size_t count) {
  const auto part = [&](std::span<T> all) { return all.subspan(first, count); };
  if constexpr (parts == Parts::both) return std::array{part(tape.values()), part(tape.grads())};
  else if constexpr (parts == Parts::values) return std::array{part(tape.values())};
  else return std::array{part(tape.grads())};
}

// How many nodes so many bytes are, if they fit the tape from `first` on.
template <Parts parts, class T, class... O>
std::size_t nodesIn(std::size_t bytes, const Tape<T, O...>& tape, std::size_t first,
                    const std::filesystem::path& where = {}) {
  constexpr std::size_t each = bytesPerNode<parts, T>;
  demandRange(first, first, tape.size());
  if (bytes % each == 0 && bytes / each <= tape.size() - first) return bytes / each;
  std::string what = where.empty() ? std::string() : where.string() + ": ";
  what.append(std::to_string(bytes));
  if (bytes % each != 0)
    what.append(" bytes are not a number of nodes of ")
        .append(std::to_string(each))
        .append(" each");
  else
    what.append(" bytes are ")
        .append(std::to_string(bytes / each))
        .append(" nodes; from ")
        .append(std::to_string(first))
        .append(" on the tape holds ")
        .append(std::to_string(tape.size() - first));
  fail(ErrorKind::badData, what);
}

inline void demandCount(std::size_t found, std::size_t first, std::size_t last,
                        const std::filesystem::path& where = {}) {
  if (found == last - first) return;
  std::string what = where.empty() ? std::string() : where.string() + ": ";
  what.append(std::to_string(found));
  what.append(" nodes where [").append(std::to_string(first)).append(", ");
  what.append(std::to_string(last)).append(") were expected");
  fail(ErrorKind::badData, what);
}

} // namespace detail

// ---- memory --------------------------------------------------------------------------------------

template <Parts parts = Parts::values, class T, class... O>
std::vector<std::byte> saveRange(const Tape<T, O...>& tape, std::size_t first, std::size_t last) {
  std::vector<std::byte> out;
  detail::withRange<parts>(tape, first, last, [&](std::span<const Bytes> all) {
    out.reserve(detail::bytesIn(all));
    for (const Bytes bytes : all) out.insert(out.end(), bytes.begin(), bytes.end());
  });
  return out;
}

// Into memory of exactly the right size.
template <Parts parts = Parts::values, class T, class... O>
void saveRange(const Tape<T, O...>& tape, std::size_t first, std::size_t last,
               std::span<std::byte> to) {
  detail::withRange<parts>(tape, first, last, [&](std::span<const Bytes> all) {
    if (to.size() != detail::bytesIn(all))
      detail::fail(ErrorKind::badArgument, std::to_string(detail::bytesIn(all)) +
                                               " bytes to be saved into " +
                                               std::to_string(to.size()));
    auto at = to.begin();
    for (const Bytes bytes : all) at = std::copy(bytes.begin(), bytes.end(), at);
  });
}

// Sets the nodes from `first` on, as many as there are; returns how many. If the bytes do not fit,
// nothing is changed.
template <Parts parts = Parts::values, class T, class... O>
std::size_t loadRange(Tape<T, O...>& tape, std::size_t first, Bytes from) {
  const std::size_t n = detail::nodesIn<parts>(from.size(), tape, first);
  for (const std::span<T> place : detail::placesOf<parts>(tape, first, n)) {
    detail::fromFileBytes(from.first(place.size_bytes()), place);
    from = from.subspan(place.size_bytes());
  }
  return n;
}
// Exactly the nodes [first, last).
template <Parts parts = Parts::values, class T, class... O>
void loadRange(Tape<T, O...>& tape, std::size_t first, std::size_t last, Bytes from) {
  detail::demandRange(first, last, tape.size());
  detail::demandCount(detail::nodesIn<parts>(from.size(), tape, first), first, last);
  loadRange<parts>(tape, first, from);
}

// ---- files ---------------------------------------------------------------------------------------

template <Parts parts = Parts::values, class T, class... O>
void saveRange(const Tape<T, O...>& tape, std::size_t first, std::size_t last,
               const std::filesystem::path& path, Writing writing = Writing::inPlace) {
  detail::withRange<parts>(tape, first, last,
                           [&](std::span<const Bytes> all) { writeFile(path, all, writing); });
}

namespace detail {

template <Parts parts, class T, class... O, class Check>
std::size_t loadRangeFile(Tape<T, O...>& tape, std::size_t first, const std::filesystem::path& path,
                          const Check& check) {
  OpenFile file(path, OpenFile::For::reading);
  if (!file.isPlain()) { // no more than a node too many: it may have no end
    demandRange(first, first, tape.size());
    std::vector<std::byte> content;
    readMore(file, content, (tape.size() - first + 1) * bytesPerNode<parts, T>);
    check(nodesIn<parts>(content.size(), tape, first, path));
    return loadRange<parts>(tape, first, Bytes(content));
  }
  const std::size_t n = nodesIn<parts>(file.size(), tape, first, path);
  check(n);
  for (const std::span<T> place : placesOf<parts>(tape, first, n)) {
    if (file.read(std::as_writable_bytes(place)) != place.size_bytes())
      fail(ErrorKind::badData, path.string() + " was cut off while it was read");
    if constexpr (!bytesAreInOrder) turnBytes<T>(std::as_writable_bytes(place));
  }
  return n;
}

} // namespace detail

template <Parts parts = Parts::values, class T, class... O>
std::size_t loadRange(Tape<T, O...>& tape, std::size_t first, const std::filesystem::path& path) {
  return detail::loadRangeFile<parts>(tape, first, path, [](std::size_t) {});
}
template <Parts parts = Parts::values, class T, class... O>
void loadRange(Tape<T, O...>& tape, std::size_t first, std::size_t last,
               const std::filesystem::path& path) {
  detail::demandRange(first, last, tape.size());
  detail::loadRangeFile<parts>(tape, first, path,
                               [&](std::size_t n) { detail::demandCount(n, first, last, path); });
}

// The numbers of a file as an array that is read only where it is looked at.
template <class T> class MappedRange {
  static_assert(detail::bytesAreInOrder, "files are little-endian: load the range instead");

public:
  explicit MappedRange(const std::filesystem::path& path) : file_(path) {
    if (file_.bytes().size() % sizeof(T) != 0)
      detail::fail(ErrorKind::badData, std::to_string(file_.bytes().size()) +
                                           " bytes are not a number of numbers of " +
                                           std::to_string(sizeof(T)) + " each");
  }
  std::span<const T> numbers() const {
    return {reinterpret_cast<const T*>(file_.bytes().data()), file_.bytes().size() / sizeof(T)};
  }

private:
  MappedFile file_;
};
template <class T> MappedRange<T> mapRange(const std::filesystem::path& path) {
  return MappedRange<T>(path);
}

BURTORCH_END_NAMESPACE
