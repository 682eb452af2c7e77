// cpp_tests/io_range_test.cpp — ranges of nodes as plain arrays, and the files they go to
// SPDX-License-Identifier: MIT
#include "io_support.hpp"

#include <burtorch/io/range.hpp>
#include <burtorch/io/scalars.hpp>

#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>

using namespace burtorch;

namespace {

// Nodes with values 0, 1, … and gradients 100, 101, …
template <class T = double> void fill(Tape<T>& tape, std::size_t n) {
  tape.leaves(n);
  for (std::size_t i = 0; i < n; ++i) {
    tape.values()[i] = T(static_cast<double>(i));
    tape.grads()[i] = T(static_cast<double>(100 + i));
  }
}

FileContent bytesOf(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto* const first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

FileContent bytesOf(std::initializer_list<double> numbers) {
  FileContent all(numbers.size() * 8);
  std::memcpy(all.data(), numbers.begin(), all.size()); // the tests run on little-endian machines
  return all;
}

} // namespace

TEST_CASE("a range is the bytes of the array and nothing else") {
  const TemporaryFolder folder;
  Tape<double> tape;
  fill(tape, 9);
  saveRange(tape, 1, 8, folder / "seven");
  CHECK(std::filesystem::file_size(folder / "seven") == 56);
  CHECK(bytesOf(folder / "seven") == bytesOf({1, 2, 3, 4, 5, 6, 7}));
  saveRange<Parts::gradients>(tape, 1, 3, folder / "gradients");
  CHECK(bytesOf(folder / "gradients") == bytesOf({101, 102}));
  saveRange<Parts::both>(tape, 7, 9, folder / "both");
  CHECK(bytesOf(folder / "both") == bytesOf({7, 8, 107, 108}));
  CHECK(saveRange<Parts::both>(tape, 7, 9) == bytesOf(folder / "both"));
  FileContent memory(16);
  saveRange(tape, 3, 5, std::span(memory));
  CHECK(memory == bytesOf({3, 4}));
}

TEST_CASE("what was saved is loaded where it is wanted, and nothing else is touched") {
  const TemporaryFolder folder;
  Tape<double> tape;
  fill(tape, 5);
  const auto load = [&]<Parts parts>(std::integral_constant<Parts, parts>, bool fromFile) {
    Tape<double> other;
    other.leaves(5);
    std::ranges::fill(other.values(), -1.0);
    std::ranges::fill(other.grads(), -1.0);
    saveRange<parts>(tape, 0, 3, folder / "range");
    if (fromFile) CHECK(loadRange<parts>(other, 1, folder / "range") == 3);
    else CHECK(loadRange<parts>(other, 1, Bytes(saveRange<parts>(tape, 0, 3))) == 3);
    const std::vector<double> values(other.values().begin(), other.values().end());
    const std::vector<double> untouched(5, -1.0);
    CHECK(values == (parts == Parts::gradients ? untouched : std::vector<double>{-1, 0, 1, 2, -1}));
    CHECK(gradientsOf(other) ==
          (parts == Parts::values ? untouched : std::vector<double>{-1, 100, 101, 102, -1}));
  };
  for (const bool fromFile : {false, true}) {
    load(std::integral_constant<Parts, Parts::values>{}, fromFile);
    load(std::integral_constant<Parts, Parts::gradients>{}, fromFile);
    load(std::integral_constant<Parts, Parts::both>{}, fromFile);
  }
}

TEST_CASE("loaded gradients are those of the leaves, and cleared elsewhere by the next sweep") {
  Tape<double> tape;
  Value<double> x(tape, 3.0);
  Value<double> y = x * x;
  backward(y);
  const auto kept = saveRange<Parts::gradients>(tape, 0, tape.size());
  backward(y);
  CHECK(x.gradCopy() == 12.0);
  loadRange<Parts::gradients>(tape, 0, Bytes(kept));
  CHECK(x.gradCopy() == 6.0);
  backward(y);
  CHECK(x.gradCopy() == 12.0);
}

TEST_CASE("a shorter range leaves nothing of a longer one") {
  const TemporaryFolder folder;
  Tape<double> tape;
  fill(tape, 9);
  for (const Writing writing : {Writing::inPlace, Writing::atomic, Writing::durable}) {
    saveRange(tape, 0, 9, folder / "range", writing);
    CHECK(bytesOf(folder / "range").size() == 72);
    saveRange(tape, 2, 4, folder / "range", writing);
    CHECK(bytesOf(folder / "range") == bytesOf({2, 3}));
    saveRange(tape, 4, 4, folder / "range", writing);
    CHECK(bytesOf(folder / "range").empty());
  }
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 1);
}

TEST_CASE("ranges of every scalar type come back bit for bit") {
  const auto check = []<class T>(T) {
    Tape<T> tape, other;
    fill(tape, 4);
    other.leaves(4);
    const auto saved = saveRange<Parts::both>(tape, 0, 4);
    CHECK(saved.size() == 8 * sizeof(T));
    loadRange<Parts::both>(other, 0, Bytes(saved));
    CHECK(saveRange<Parts::both>(other, 0, 4) == saved);
    CHECK(std::string(Stored<T>::name).size() > 4);
    CHECK(sizeof(T) % Stored<T>::unit == 0);
  };
  check(float{});
  check(float16{});
  check(float32x8{});
  check(dual64{});
  CHECK(Stored<float32x8>::unit == 4);
  CHECK(Stored<dual64>::unit == 8);
}

TEST_CASE("turned bytes turn back") {
  std::vector<float> numbers{1.5f, -2.25f};
  const auto before = numbers;
  detail::turnBytes<float>(std::as_writable_bytes(std::span(numbers)));
  CHECK(numbers != before);
  std::uint32_t first;
  std::memcpy(&first, numbers.data(), 4);
  CHECK(first == 0x0000c03fu); // 1.5 is 0x3fc00000
  detail::turnBytes<float>(std::as_writable_bytes(std::span(numbers)));
  CHECK(numbers == before);
}

TEST_CASE("ranges that do not fit are refused, and nothing is changed") {
  const TemporaryFolder folder;
  Tape<double> tape;
  fill(tape, 4);
  saveRange(tape, 0, 4, folder / "four");
  checkFails(ErrorKind::badArgument, "[2, 5) of a tape that holds 4",
             [&] { saveRange(tape, 2, 5, folder / "x"); });
  checkFails(ErrorKind::badArgument, "[3, 2)", [&] { saveRange(tape, 3, 2, folder / "x"); });
  CHECK(!std::filesystem::exists(folder / "x"));
  checkFails(ErrorKind::badData, "four: 32 bytes are 4 nodes; from 1 on the tape holds 3",
             [&] { loadRange(tape, 1, folder / "four"); });
  checkFails(ErrorKind::badData, "four: 4 nodes where [0, 3) were expected",
             [&] { loadRange(tape, 0, 3, folder / "four"); });
  writeFile(folder / "odd", Bytes(FileContent(13)));
  checkFails(ErrorKind::badData, "13 bytes are not a number of nodes of 8 each",
             [&] { loadRange(tape, 0, folder / "odd"); });
  checkFails(ErrorKind::badData, "13 bytes", [&] { mapRange<double>(folder / "odd"); });
  checkFails(ErrorKind::badArgument, "[9, 9)", [&] { loadRange(tape, 9, folder / "four"); });
  FileContent small(8);
  checkFails(ErrorKind::badArgument, "16 bytes to be saved into 8",
             [&] { saveRange(tape, 0, 2, std::span(small)); });
  CHECK(saveRange(tape, 0, 4) == bytesOf({0, 1, 2, 3}));
}

TEST_CASE("a mapped range shows the file") {
  const TemporaryFolder folder;
  Tape<double> tape;
  fill(tape, 1000);
  saveRange(tape, 0, 1000, folder / "range");
  auto range = mapRange<double>(folder / "range");
  const auto moved = std::move(range);
  CHECK(moved.numbers().size() == 1000);
  CHECK(moved.numbers()[999] == 999.0);
  writeFile(folder / "empty", Bytes());
  CHECK(mapRange<double>(folder / "empty").numbers().empty());
}

#if !defined(_WIN32)

TEST_CASE("what the system refuses is said with path and reason") {
  const TemporaryFolder folder;
  Tape<double> tape;
  fill(tape, 4);
  const auto file = folder / "file";
  saveRange(tape, 0, 4, file);
  const auto fails = [](int code, const std::string& part, const auto& f) {
    try {
      f();
      FAIL("nothing was thrown");
    } catch (const FileError& error) {
      CHECK(error.kind() == ErrorKind::file);
      CHECK(error.code() == code);
      CHECK_MESSAGE(std::string(error.what()).find(part) != std::string::npos, error.what());
    }
  };
  for (const Writing writing : {Writing::inPlace, Writing::atomic, Writing::durable}) {
    fails(EISDIR, folder.path.string() + ": Is a directory",
          [&] { saveRange(tape, 0, 4, folder.path, writing); });
    fails(ENOTDIR, (file / "below").string() + ": Not a directory",
          [&] { saveRange(tape, 0, 4, file / "below", writing); });
    fails(ENOENT, "can't open " + (folder / "no/range").string() + ": No such file or directory",
          [&] { saveRange(tape, 0, 4, folder / "no/range", writing); });
#if defined(__linux__)
    fails(ENOSPC, "can't write /dev/full: No space left on device",
          [&] { saveRange(tape, 0, 4, "/dev/full", writing); });
    CHECK(std::filesystem::is_character_file("/dev/full")); // not replaced
#endif
  }
  fails(EISDIR, "can't read", [&] { loadRange(tape, 0, folder.path); });
  fails(EISDIR, "can't map", [&] { mapRange<double>(folder.path); });
  fails(ENOENT, "can't open", [&] { loadRange(tape, 0, folder / "no"); });
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 1);
}

TEST_CASE("a replaced file keeps its permissions, and a link still leads to it") {
  const TemporaryFolder folder;
  using std::filesystem::perms;
  writeFile(folder / "file", Bytes(FileContent(3)));
  std::filesystem::permissions(folder / "file", perms::owner_read | perms::owner_write);
  std::filesystem::create_symlink("file", folder / "link");
  writeFile(folder / "link", Bytes(FileContent(5)));
  CHECK(std::filesystem::is_symlink(folder / "link"));
  CHECK(std::filesystem::file_size(folder / "file") == 5);
  CHECK(std::filesystem::status(folder / "file").permissions() ==
        (perms::owner_read | perms::owner_write));
}

TEST_CASE("a file of many parts is written in order") {
  const TemporaryFolder folder;
  std::vector<FileContent> parts(200);
  std::vector<Bytes> views;
  FileContent all;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i].assign(i % 7, static_cast<std::byte>(i));
    views.emplace_back(parts[i]);
    all.insert(all.end(), parts[i].begin(), parts[i].end());
  }
  writeFile(folder / "file", std::span<const Bytes>(views), Writing::atomic);
  CHECK(bytesOf(folder / "file") == all);
  CHECK(readFile(folder / "file") == all);
}

TEST_CASE("what killed processes left goes, what living ones are writing stays") {
  const TemporaryFolder folder;
  for (int i = 0; i < 300; ++i) {
    const auto name = detail::temporaryName(detail::processNumber());
    writeFile(folder / name.c_str(), Bytes(FileContent(1)), Writing::inPlace);
    const detail::OpenFile again(folder / name.c_str(), detail::OpenFile::For::creating);
    CHECK(!again.isOpen());
  }
  for (const char* const name : {".burtorch.tmp", ".burtorch.notes", "burtorch.1.tmp"})
    writeFile(folder / name, Bytes(FileContent(1)), Writing::inPlace);
  const auto held = folder / detail::temporaryName(1).c_str();
  const detail::OpenFile living(held, detail::OpenFile::For::creating);
  CHECK(living.claim());
  detail::removeAbandoned(folder.path);
  CHECK(std::filesystem::exists(held));
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 4);
  writeFile(folder / "file", Bytes(FileContent(5)));
  CHECK(std::filesystem::file_size(folder / "file") == 5);
}

#if !defined(_WIN32)
TEST_CASE("a temporary file that somebody removed is not the one that is renamed") {
  const TemporaryFolder folder;
  const auto path = folder / detail::temporaryName(1).c_str();
  const detail::OpenFile lost(path, detail::OpenFile::For::creating);
  detail::removeIfAbandoned(path); // before its maker could lock it
  CHECK(!std::filesystem::exists(path));
  CHECK(!lost.claim());
}
#endif

TEST_CASE("links lead to the file that is meant, whether or not it is there") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "below");
  std::filesystem::create_symlink("below/file", folder / "link");
  std::filesystem::create_symlink("link", folder / "to link");
  for (const Writing writing : {Writing::inPlace, Writing::atomic, Writing::durable}) {
    std::filesystem::remove(folder / "below/file");
    for (const std::size_t size : {3u, 5u}) {
      writeFile(folder / "to link", Bytes(FileContent(size)), writing);
      CHECK(std::filesystem::is_symlink(folder / "to link"));
      CHECK(std::filesystem::is_symlink(folder / "link"));
      CHECK(std::filesystem::file_size(folder / "below/file") == size);
    }
  }
  std::filesystem::create_symlink("second", folder / "first");
  std::filesystem::create_symlink("first", folder / "second");
  std::filesystem::create_symlink("nowhere/file", folder / "lost");
  for (const Writing writing : {Writing::inPlace, Writing::atomic, Writing::durable}) {
    checkFails(ErrorKind::file, "Too many levels of symbolic links",
               [&] { writeFile(folder / "first", Bytes(FileContent(3)), writing); });
    checkFails(ErrorKind::file, "No such file or directory",
               [&] { writeFile(folder / "lost", Bytes(FileContent(3)), writing); });
  }
  CHECK(std::filesystem::is_symlink(folder / "first"));
  CHECK(std::filesystem::is_symlink(folder / "lost"));
}

// Writes to a pipe that has a name, while f reads from it.
template <class F> void withPipe(const TemporaryFolder& folder, const FileContent& content, F f) {
  const auto pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  std::thread writer([&] { writeFile(pipe, Bytes(content), Writing::inPlace); });
  f(pipe);
  writer.join();
  std::filesystem::remove(pipe);
}

TEST_CASE("a range is read from a pipe, which is opened once") {
  const TemporaryFolder folder;
  Tape<double> tape;
  fill(tape, 4);
  withPipe(folder, bytesOf({10, 11, 12}),
           [&](const auto& pipe) { CHECK(loadRange(tape, 1, pipe) == 3); });
  CHECK(saveRange(tape, 0, 4) == bytesOf({0, 10, 11, 12}));
  withPipe(folder, bytesOf({1, 2}), [&](const auto& pipe) { loadRange(tape, 0, 2, pipe); });
  CHECK(saveRange(tape, 0, 4) == bytesOf({1, 2, 11, 12}));
  withPipe(folder, bytesOf({7, 8, 9}), [&](const auto& pipe) {
    checkFails(ErrorKind::badData, "24 bytes are 3 nodes; from 2 on the tape holds 2",
               [&] { loadRange(tape, 2, pipe); });
  });
  CHECK(saveRange(tape, 0, 4) == bytesOf({1, 2, 11, 12}));
}

#if defined(__linux__)
TEST_CASE("what has no end is not read to its end") {
  Tape<double> tape;
  fill(tape, 4);
  checkFails(ErrorKind::badData, "24 bytes are 3 nodes; from 2 on the tape holds 2",
             [&] { loadRange(tape, 2, "/dev/zero"); });
  checkFails(ErrorKind::badData, "does not begin as graphs do",
             [&] { loadGraph(tape, "/dev/zero"); });
  checkFails(ErrorKind::file, "can't map /dev/zero: No such device",
             [&] { mapRange<double>("/dev/zero"); });
  CHECK(saveRange(tape, 0, 4) == bytesOf({0, 1, 2, 3}));
}
#endif

#endif
