// burtorch/io/stream.hpp — writing and reading the bytes of a graph: integers, texts, numbers
// SPDX-License-Identifier: MIT
//
// The reader trusts nothing. Whatever it hands out lies inside the bytes it was given, a count of
// things is at most what the bytes that are left could hold, and the error says at which byte.
#pragma once

#include <burtorch/io/layout.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

BURTORCH_BEGIN_NAMESPACE

namespace detail {

class ByteWriter {
public:
  // Seven bits per byte, lowest first; the highest bit of a byte says that more follow.
  void integer(std::uint64_t x) {
    for (; x >= 0x80; x >>= 7) byte(static_cast<std::uint8_t>(x | 0x80));
    byte(static_cast<std::uint8_t>(x));
  }
  void byte(std::uint8_t x) { bytes_.push_back(static_cast<std::byte>(x)); }
  void raw(Bytes bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  void text(std::string_view x) {
    integer(x.size());
    raw(std::as_bytes(std::span(x)));
  }
  template <class T> void numbers(std::span<const T> x) { raw(FileBytes<T>(x).bytes()); }
  template <class T> void number(const T& x) { numbers(std::span<const T>(&x, 1)); }
  template <std::unsigned_integral U> void fixed(U x) {
    for (std::size_t i = 0; i < sizeof(U); ++i) byte(static_cast<std::uint8_t>(x >> (8 * i)));
  }
  std::vector<std::byte>& bytes() { return bytes_; }

private:
  std::vector<std::byte> bytes_;
};

class ByteReader {
public:
  explicit ByteReader(Bytes bytes, std::size_t at = 0) : bytes_(bytes), at_(at) {}

  std::uint64_t integer() {
    std::uint64_t x = 0;
    for (unsigned shift = 0;; shift += 7) {
      const std::uint64_t part = byte();
      if (shift == 63 && part > 1) fail("an integer of more than 64 bits");
      x |= (part & 0x7f) << shift;
      if (part < 0x80) return x;
    }
  }
  // A number of things that take at least `each` bytes.
  std::size_t count(std::size_t each) {
    const std::uint64_t n = integer();
    if (n > left() / each)
      fail("a count of " + std::to_string(n) + " with " + std::to_string(left()) + " bytes left");
    return static_cast<std::size_t>(n);
  }
  std::uint8_t byte() { return static_cast<std::uint8_t>(raw(1)[0]); }
  Bytes raw(std::size_t n) {
    if (n > left()) fail("it ends too early");
    at_ += n;
    return bytes_.subspan(at_ - n, n);
  }
  std::string_view text() {
    const Bytes x = raw(count(1));
    return {reinterpret_cast<const char*>(x.data()), x.size()};
  }
  template <class T> T number() {
    T x;
    fromFileBytes(raw(sizeof(T)), std::span<T>(&x, 1));
    return x;
  }
  template <std::unsigned_integral U> U fixed() { return littleEndian<U>(raw(sizeof(U)).data()); }
  std::size_t left() const { return bytes_.size() - at_; }

  [[noreturn]] void fail(const std::string& what) const {
    std::string all = "this graph can't be loaded: ";
    all.append(what).append(" (at byte ").append(std::to_string(at_)).append(")");
    detail::fail(ErrorKind::badData, all);
  }

private:
  Bytes bytes_;
  std::size_t at_;
};

} // namespace detail

BURTORCH_END_NAMESPACE
