// burtorch/io/file.hpp — files: written at once, replaced as a whole, read at once, mapped
// SPDX-License-Identifier: MIT
//
// What the other headers of io/ need of the system, for POSIX and Windows. Every failure is an Error of
// kind `file` that names the path and the system's reason; a FileError also has the system's number.
#pragma once

#include <burtorch/base/error.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#if defined(_WIN32)
#ifndef NOMINMAX
#define NOMINMAX
#endif
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>
#else
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#endif

BURTORCH_BEGIN_NAMESPACE

class FileError : public Error {
public:
  FileError(const std::string& what, int code) : Error(ErrorKind::file, what), code_(code) {}
  int code() const noexcept { return code_; } // errno, or what GetLastError said

private:
  int code_;
};

// How a file is written.
enum class Writing {
  inPlace, // open, write, close: the fastest; a crash in between leaves a part
  atomic,  // a new file takes the place of the old one: whoever reads finds one of the two, whole
  durable, // and it is on the disk before the call returns: so also after the power fails
};

using Bytes = std::span<const std::byte>;

namespace detail {

[[noreturn]] BURTORCH_COLD inline void failFile(const char* doing,
                                                const std::filesystem::path& path, int code) {
  std::string what = "can't ";
  what.append(doing).append(" ").append(path.string()).append(": ");
  what.append(std::system_category().message(code));
#if BURTORCH_EXCEPTIONS
  throw FileError(what, code);
#else
  fail(ErrorKind::file, what);
#endif
}

inline std::size_t bytesIn(std::span<const Bytes> parts) {
  std::size_t n = 0;
  for (const Bytes& part : parts) n += part.size();
  return n;
}

inline constexpr std::string_view temporaryBegin = ".burtorch.", temporaryEnd = ".tmp";

// Not made from the name of the file, which may be as long as names may be. Killed processes leave such files,
// and numbers of processes come again.
inline std::string temporaryName(unsigned long process) {
  static std::atomic<unsigned> count{0}; // some systems have no random numbers
  std::random_device random;
  std::string name(temporaryBegin);
  name.append(std::to_string(process));
  for (const unsigned long part : {0ul + random(), 0ul + random() + count++})
    name.append(".").append(std::to_string(part));
  return name.append(temporaryEnd);
}

#if defined(_WIN32)

// ---- Windows -------------------------------------------------------------------------------------

inline int lastError() { return static_cast<int>(::GetLastError()); }

class OpenFile {
public:
  enum class For { reading, writing, creating };
  OpenFile(const std::filesystem::path& path, For purpose) : OpenFile(path, purpose, path) {}
  OpenFile(const std::filesystem::path& path, For purpose, const std::filesystem::path& called)
      : path_(called) {
    const bool reads = purpose == For::reading;
    handle_ = ::CreateFileW(path.c_str(), reads ? GENERIC_READ : GENERIC_WRITE,
                            FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr,
                            reads                      ? OPEN_EXISTING
                            : purpose == For::creating ? CREATE_NEW
                                                       : OPEN_ALWAYS,
                            FILE_ATTRIBUTE_NORMAL, nullptr);
    if (handle_ != INVALID_HANDLE_VALUE) return;
    if (purpose != For::creating || lastError() != ERROR_FILE_EXISTS)
      failFile("open", path_, lastError());
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (handle_ != INVALID_HANDLE_VALUE) ::CloseHandle(handle_);
  }
  std::size_t size() const {
    LARGE_INTEGER n;
    if (!::GetFileSizeEx(handle_, &n)) failFile("read", path_, lastError());
    return static_cast<std::size_t>(n.QuadPart);
  }
  void write(std::span<const Bytes> parts) {
    for (Bytes part : parts)
      while (!part.empty()) {
        DWORD done = 0;
        const auto n = static_cast<DWORD>(std::min<std::size_t>(part.size(), 1u << 30));
        if (!::WriteFile(handle_, part.data(), n, &done, nullptr))
          failFile("write", path_, lastError());
        part = part.subspan(done);
      }
  }
  void cutAt(std::size_t) {
    if (!::SetEndOfFile(handle_)) failFile("write", path_, lastError());
  }
  std::size_t read(std::span<std::byte> into) {
    std::size_t got = 0;
    while (got < into.size()) {
      DWORD done = 0;
      const auto n = static_cast<DWORD>(std::min<std::size_t>(into.size() - got, 1u << 30));
      if (!::ReadFile(handle_, into.data() + got, n, &done, nullptr))
        failFile("read", path_, lastError());
      if (done == 0) break;
      got += done;
    }
    return got;
  }
  void flushToDisk() {
    if (!::FlushFileBuffers(handle_)) failFile("write", path_, lastError());
  }
  void close() { ::CloseHandle(std::exchange(handle_, INVALID_HANDLE_VALUE)); }
  void finish() {}
  bool claim() const { return true; } // an open handle is a claim
  bool isOpen() const { return handle_ != INVALID_HANDLE_VALUE; }
  bool isPlain() const { return ::GetFileType(handle_) == FILE_TYPE_DISK; }
  int whyNotPlain() const { return ERROR_INVALID_FUNCTION; }
  HANDLE handle() const { return handle_; }

private:
  std::filesystem::path path_;
  HANDLE handle_;
};

// Nothing to be done: replaceFile waits for the disk.
class FolderOf {
public:
  FolderOf(const std::filesystem::path&, const std::filesystem::path&) {}
  void flushToDisk() {}
};

inline void replaceFile(const std::filesystem::path& from, const std::filesystem::path& to,
                        bool durable) {
  const DWORD flags = MOVEFILE_REPLACE_EXISTING | (durable ? MOVEFILE_WRITE_THROUGH : 0u);
  if (!::MoveFileExW(from.c_str(), to.c_str(), flags)) failFile("replace", to, lastError());
}
inline unsigned long processNumber() { return ::GetCurrentProcessId(); }
inline void removeFile(const std::filesystem::path& path) { ::DeleteFileW(path.c_str()); }
// Removes a temporary file unless somebody has it open.
inline void removeIfAbandoned(const std::filesystem::path& path) {
  const HANDLE alone = ::CreateFileW(path.c_str(), DELETE, 0, nullptr, OPEN_EXISTING,
                                     FILE_FLAG_DELETE_ON_CLOSE, nullptr);
  if (alone != INVALID_HANDLE_VALUE) ::CloseHandle(alone);
}
inline constexpr int isFolder = ERROR_ACCESS_DENIED; // what opening one says
inline constexpr int tooManyLinks = ERROR_CANT_RESOLVE_FILENAME;

#else

// ---- POSIX ---------------------------------------------------------------------------------------

inline int lastError() { return errno; }

template <class Call> auto unlessInterrupted(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

class OpenFile {
public:
  enum class For { reading, writing, creating };
  OpenFile(const std::filesystem::path& path, For purpose) : OpenFile(path, purpose, path) {}
  // Errors speak of the file by the second name, which outlives this. What is to be created and is
  // there already is not opened.
  OpenFile(const std::filesystem::path& path, For purpose, const std::filesystem::path& called)
      : path_(called.c_str()) {
    const int how = purpose == For::reading   ? O_RDONLY
                    : purpose == For::writing ? O_WRONLY | O_CREAT
                                              : O_WRONLY | O_CREAT | O_EXCL;
    number_ = unlessInterrupted([&] { return ::open(path.c_str(), how | O_CLOEXEC, 0666); });
    if (number_ < 0 && (purpose != For::creating || errno != EEXIST))
      failFile("open", path_, errno);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (number_ >= 0) ::close(number_);
  }

  std::size_t size() const { return static_cast<std::size_t>(status().st_size); }
  bool isOpen() const { return number_ >= 0; }
  bool isPlain() const { return S_ISREG(status().st_mode); }
  int whyNotPlain() const { return S_ISDIR(status().st_mode) ? EISDIR : ENODEV; }
  void allowAs(const struct ::stat& other) { ::fchmod(number_, other.st_mode & 07777); }

  // One system call, unless the system takes less than it was given.
  void write(std::span<const Bytes> parts) {
    std::array<::iovec, 64> some;
    for (std::size_t next = 0, skip = 0; next < parts.size();) {
      int n = 0;
      for (std::size_t i = next; i < parts.size() && n < 64; ++i, ++n) {
        const Bytes part = i == next ? parts[i].subspan(skip) : parts[i];
        some[static_cast<std::size_t>(n)] = {const_cast<std::byte*>(part.data()), part.size()};
      }
      const auto done = unlessInterrupted([&] {
        return n == 1 ? ::write(number_, some[0].iov_base, some[0].iov_len)
                      : ::writev(number_, some.data(), n);
      });
      if (done < 0) failFile("write", path_, errno);
      skip += static_cast<std::size_t>(done);
      while (next < parts.size() && skip >= parts[next].size()) skip -= parts[next++].size();
    }
  }
  void cutAt(std::size_t bytes) {
    if (unlessInterrupted([&] { return ::ftruncate(number_, static_cast<::off_t>(bytes)); }) < 0)
      failFile("write", path_, errno);
  }
  std::size_t read(std::span<std::byte> into) {
    std::size_t got = 0;
    while (got < into.size()) {
      const auto n =
          unlessInterrupted([&] { return ::read(number_, into.data() + got, into.size() - got); });
      if (n < 0) failFile("read", path_, errno);
      if (n == 0) break;
      got += static_cast<std::size_t>(n);
    }
    return got;
  }
  void flushToDisk() {
#if defined(__APPLE__) // fsync leaves it in the drive's own memory
    if (::fcntl(number_, F_FULLFSYNC) == 0) return;
#endif
    if (unlessInterrupted([&] { return ::fsync(number_); }) < 0) failFile("write", path_, errno);
  }
  void close() {
    const int number = std::exchange(number_, -1);
    if (::close(number) < 0 && errno != EINTR) failFile("write", path_, errno);
  }
  // What closing would complain about, but the file and its lock stay open.
  void finish() {
    const int same = ::fcntl(number_, F_DUPFD_CLOEXEC, 0);
    if (same >= 0 && ::close(same) < 0 && errno != EINTR) failFile("write", path_, errno);
  }
  // Locks a file that was just created, so that nobody takes it for abandoned. False: somebody did meanwhile.
  // Where a file system has no locks, nobody can.
  bool claim() const {
    if (::flock(number_, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) return false;
    return status().st_nlink != 0;
  }
  int number() const { return number_; }

private:
  struct ::stat status() const {
    struct ::stat s;
    if (::fstat(number_, &s) < 0) failFile("read", path_, errno);
    return s;
  }
  const char* path_;
  int number_;
};

// The folder of a file: flushed, it holds the name that the file got.
class FolderOf {
public:
  FolderOf(const std::filesystem::path& file, const std::filesystem::path& called)
      : folder_(file.has_parent_path() ? file.parent_path() : ".", OpenFile::For::reading, called) {
  }
  void flushToDisk() { folder_.flushToDisk(); }

private:
  OpenFile folder_;
};

inline void replaceFile(const std::filesystem::path& from, const std::filesystem::path& to, bool) {
  if (::rename(from.c_str(), to.c_str()) < 0) failFile("replace", to, errno);
}
inline unsigned long processNumber() { return static_cast<unsigned long>(::getpid()); }
inline void removeFile(const std::filesystem::path& path) { ::unlink(path.c_str()); }
// Removes a temporary file unless its maker, who has it locked, still lives.
inline void removeIfAbandoned(const std::filesystem::path& path) {
  const int number = ::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (number < 0) return;
  struct ::stat s;
  if (::fstat(number, &s) == 0 && S_ISREG(s.st_mode) && ::flock(number, LOCK_EX | LOCK_NB) == 0)
    ::unlink(path.c_str());
  ::close(number);
}
inline constexpr int isFolder = EISDIR;
inline constexpr int tooManyLinks = ELOOP;

#endif

// ---- both ----------------------------------------------------------------------------------------

// Not truncated when it is opened: giving blocks back and taking them again is slower than the
// write itself, and some file systems flush a file that was.
inline void writeInPlace(const std::filesystem::path& path, std::span<const Bytes> parts) {
  OpenFile file(path, OpenFile::For::writing);
  file.write(parts);
  if (file.isPlain() && file.size() > bytesIn(parts)) file.cutAt(bytesIn(parts));
  file.close();
}

// The file that a path means: where links lead to, whether or not something is there.
inline std::filesystem::path withoutLinks(const std::filesystem::path& path) {
  std::filesystem::path target = path;
  std::error_code code;
  for (int links = 0; std::filesystem::is_symlink(target, code); ++links) {
    if (links == 40) failFile("open", path, tooManyLinks);
    const auto next = std::filesystem::read_symlink(target, code);
    if (code) failFile("open", path, code.value());
    target = target.parent_path() / next;
  }
  return target;
}

// Removes what killed processes left in a folder, each as large as what they were about to save. Looking for it
// takes at most a tenth of the time, even where a folder has very many files.
inline void removeAbandoned(const std::filesystem::path& folder) {
  using Clock = std::chrono::steady_clock;
  static std::atomic<Clock::rep> notBefore{std::numeric_limits<Clock::rep>::min()};
  const Clock::time_point start = Clock::now();
  if (start.time_since_epoch().count() < notBefore) return;
  std::error_code code;
  std::filesystem::directory_iterator each(folder.empty() ? "." : folder, code), end;
  for (; !code && each != end; each.increment(code)) {
    const std::filesystem::path path = each->path();
    const std::filesystem::path::string_type name = path.filename().native();
    const auto has = [&](std::string_view text, std::size_t at) {
      return name.size() >= at + text.size() &&
             std::equal(text.begin(), text.end(), name.begin() + static_cast<std::ptrdiff_t>(at));
    };
    if (has(temporaryBegin, 0) && name.size() > temporaryBegin.size() + temporaryEnd.size() &&
        has(temporaryEnd, name.size() - temporaryEnd.size()))
      removeIfAbandoned(path);
  }
  const Clock::time_point now = Clock::now();
  notBefore = (now + 10 * (now - start)).time_since_epoch().count();
}

// A new file that takes another one's place, or is gone.
class Replacement {
public:
  Replacement(const std::filesystem::path& target, bool durable) : target_(target) {
    if (durable) folder_.emplace(target_, target_); // which may be refused: before anything changes
    removeAbandoned(target.parent_path());
    do {
      path_ = target.parent_path() / temporaryName(processNumber());
      file_.emplace(path_, OpenFile::For::creating, target_);
    } while (!file_->isOpen() || !file_->claim());
  }
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;
  ~Replacement() {
    if (isDone_) return;
    file_.reset(); // where open files can't be removed
    removeFile(path_);
  }
  void fill(std::span<const Bytes> parts) {
#if !defined(_WIN32)
    if (struct ::stat old; ::stat(target_.c_str(), &old) == 0) file_->allowAs(old);
#endif
    file_->write(parts);
    if (folder_) file_->flushToDisk();
    file_->finish(); // open until it has its place: closed, it would look abandoned
  }
  void takePlace() {
    replaceFile(path_, target_, folder_.has_value());
    isDone_ = true;
    if (folder_) folder_->flushToDisk();
  }

private:
  const std::filesystem::path& target_;
  std::filesystem::path path_;
  std::optional<FolderOf> folder_;
  std::optional<OpenFile> file_;
  bool isDone_ = false;
};

// Appends what a file still has, but at most so many bytes: what is no plain file may have no end.
inline void readMore(OpenFile& file, std::vector<std::byte>& content, std::size_t most) {
  const bool isPlain = file.isPlain();
  const std::size_t size = isPlain ? file.size() : 0, start = content.size();
  for (std::size_t room = isPlain ? size - std::min(size, start) : 4096;; room *= 2) {
    const std::size_t got = content.size();
    room = std::min(room, most - (got - start));
    content.resize(got + room);
    const std::size_t n = file.read(std::span(content).subspan(got));
    content.resize(got + n);
    if (isPlain || n < room || n == 0) return;
  }
}

} // namespace detail

// Writes a file that consists of the parts, one after the other. What is no ordinary file (a
// device, a pipe) can't be replaced and is written in place.
inline void writeFile(const std::filesystem::path& path, std::span<const Bytes> parts,
                      Writing writing = Writing::durable) {
  if (writing == Writing::inPlace) return detail::writeInPlace(path, parts);
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (std::filesystem::is_directory(status)) detail::failFile("write", path, detail::isFolder);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    return detail::writeInPlace(path, parts);
  const std::filesystem::path target = detail::withoutLinks(path);
  detail::Replacement fresh(target, writing == Writing::durable);
  fresh.fill(parts);
  fresh.takePlace();
}
inline void writeFile(const std::filesystem::path& path, Bytes content,
                      Writing writing = Writing::durable) {
  writeFile(path, std::span<const Bytes>(&content, 1), writing);
}

// All bytes of a file; what has no size, such as a pipe, is read to its end.
inline std::vector<std::byte> readFile(const std::filesystem::path& path) {
  detail::OpenFile file(path, detail::OpenFile::For::reading);
  std::vector<std::byte> content;
  detail::readMore(file, content, std::numeric_limits<std::size_t>::max());
  return content;
}

// A file as memory, to be read: pages come from the disk when they are looked at. Whoever truncates the file
// meanwhile pulls them away, as with every mapping.
class MappedFile {
public:
  explicit MappedFile(const std::filesystem::path& path) {
    const detail::OpenFile file(path, detail::OpenFile::For::reading);
    if (!file.isPlain()) detail::failFile("map", path, file.whyNotPlain());
    size_ = file.size();
    if (size_ == 0) return;
#if defined(_WIN32)
    const HANDLE mapping =
        ::CreateFileMappingW(file.handle(), nullptr, PAGE_READONLY, 0, 0, nullptr);
    if (mapping == nullptr) detail::failFile("map", path, detail::lastError());
    first_ = ::MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, 0);
    const int code = detail::lastError();
    ::CloseHandle(mapping);
    if (first_ == nullptr) detail::failFile("map", path, code);
#else
    first_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.number(), 0);
    if (first_ == MAP_FAILED) {
      first_ = nullptr;
      detail::failFile("map", path, errno);
    }
#endif
  }
  MappedFile(MappedFile&& other) noexcept
      : first_(std::exchange(other.first_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(first_, other.first_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~MappedFile() {
    if (first_ == nullptr) return;
#if defined(_WIN32)
    ::UnmapViewOfFile(first_);
#else
    ::munmap(first_, size_);
#endif
  }
  Bytes bytes() const { return {static_cast<const std::byte*>(first_), size_}; }

private:
  void* first_ = nullptr;
  std::size_t size_ = 0;
};

BURTORCH_END_NAMESPACE
