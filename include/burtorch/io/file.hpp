// burtorch/io/file.hpp — files: written at once, replaced as a whole, read at once, mapped
// SPDX-License-Identifier: MIT
//
// What the other headers of io/ need of the system, for POSIX and Windows. Every failure is an Error of
// kind `file` that names the path and the system's reason; a FileError also has the system's number.
#pragma once

#include <burtorch/error.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <string>
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

// Not made from the name of the file, which may be as long as names may be.
inline std::string temporaryName(unsigned long process) {
  static std::atomic<unsigned> count{0};
  std::string name = ".burtorch.";
  name.append(std::to_string(process)).append(".").append(std::to_string(count++));
  return name.append(".tmp");
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
    if (handle_ == INVALID_HANDLE_VALUE) failFile("open", path_, lastError());
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
  bool isPlain() const { return ::GetFileType(handle_) == FILE_TYPE_DISK; }
  HANDLE handle() const { return handle_; }

private:
  std::filesystem::path path_;
  HANDLE handle_;
};

inline void replaceFile(const std::filesystem::path& from, const std::filesystem::path& to,
                        bool durable) {
  const DWORD flags = MOVEFILE_REPLACE_EXISTING | (durable ? MOVEFILE_WRITE_THROUGH : 0u);
  if (!::MoveFileExW(from.c_str(), to.c_str(), flags)) failFile("replace", to, lastError());
}
inline unsigned long processNumber() { return ::GetCurrentProcessId(); }
inline void removeFile(const std::filesystem::path& path) { ::DeleteFileW(path.c_str()); }
inline constexpr int isFolder = ERROR_ACCESS_DENIED; // what opening one says

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
  // Errors speak of the file by the second name; both outlive this.
  OpenFile(const std::filesystem::path& path, For purpose, const std::filesystem::path& called)
      : path_(called.c_str()) {
    const int how = purpose == For::reading   ? O_RDONLY
                    : purpose == For::writing ? O_WRONLY | O_CREAT
                                              : O_WRONLY | O_CREAT | O_EXCL;
    number_ = unlessInterrupted([&] { return ::open(path.c_str(), how | O_CLOEXEC, 0666); });
    if (number_ < 0) failFile("open", path_, errno);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (number_ >= 0) ::close(number_);
  }

  std::size_t size() const { return static_cast<std::size_t>(status().st_size); }
  bool isPlain() const { return S_ISREG(status().st_mode); }
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

inline void replaceFile(const std::filesystem::path& from, const std::filesystem::path& to,
                        bool durable) {
  if (::rename(from.c_str(), to.c_str()) < 0) failFile("replace", to, errno);
  if (!durable) return;
  const std::filesystem::path folder = to.has_parent_path() ? to.parent_path() : ".";
  OpenFile(folder, OpenFile::For::reading).flushToDisk();
}
inline unsigned long processNumber() { return static_cast<unsigned long>(::getpid()); }
inline void removeFile(const std::filesystem::path& path) { ::unlink(path.c_str()); }
inline constexpr int isFolder = EISDIR;

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

// A file that is there only until it takes another one's place.
class TemporaryFile {
public:
  explicit TemporaryFile(const std::filesystem::path& beside) {
    for (int attempt = 0;; ++attempt) { // a killed process may have left one of this name
      path_ = beside.parent_path() / temporaryName(processNumber());
      std::error_code ignored;
      if (attempt == 100 || !std::filesystem::exists(path_, ignored)) return;
    }
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (isThere_) removeFile(path_);
  }
  void fill(std::span<const Bytes> parts, const std::filesystem::path& like, bool durable) {
    OpenFile file(path_, OpenFile::For::creating, like);
    isThere_ = true;
#if !defined(_WIN32)
    if (struct ::stat old; ::stat(like.c_str(), &old) == 0) file.allowAs(old);
#else
    static_cast<void>(like);
#endif
    file.write(parts);
    if (durable) file.flushToDisk();
    file.close();
  }
  void become(const std::filesystem::path& path, bool durable) {
    replaceFile(path_, path, durable);
    isThere_ = false;
  }

private:
  std::filesystem::path path_;
  bool isThere_ = false;
};

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
  std::filesystem::path target = path;
  if (std::filesystem::is_symlink(path, ignored)) { // the file it leads to is meant
    target = std::filesystem::weakly_canonical(path, ignored);
    if (ignored) target = path;
  }
  const bool durable = writing == Writing::durable;
  detail::TemporaryFile fresh(target);
  fresh.fill(parts, target, durable);
  fresh.become(target, durable);
}
inline void writeFile(const std::filesystem::path& path, Bytes content,
                      Writing writing = Writing::durable) {
  writeFile(path, std::span<const Bytes>(&content, 1), writing);
}

// All bytes of a file; what has no size, such as a pipe, is read to its end.
inline std::vector<std::byte> readFile(const std::filesystem::path& path) {
  detail::OpenFile file(path, detail::OpenFile::For::reading);
  std::vector<std::byte> content(file.isPlain() ? file.size() : 0);
  content.resize(file.read(content));
  if (file.isPlain()) return content;
  for (std::size_t got = 0, room = 4096;; room *= 2) {
    content.resize(got + room);
    const std::size_t n = file.read(std::span(content).subspan(got));
    got += n;
    if (n < room) {
      content.resize(got);
      return content;
    }
  }
}

// A file as memory, to be read: pages come from the disk when they are looked at. Whoever truncates the file
// meanwhile pulls them away, as with every mapping.
class MappedFile {
public:
  explicit MappedFile(const std::filesystem::path& path) {
    const detail::OpenFile file(path, detail::OpenFile::For::reading);
    if (!file.isPlain()) detail::failFile("map", path, detail::isFolder);
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
