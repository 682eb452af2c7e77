// burtorch/io/layout.hpp — how numbers lie in files: little-endian on every platform
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/io/file.hpp>

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

BURTORCH_BEGIN_NAMESPACE

// What a scalar type is called in files. `unit` is the size of the number it consists of, one or
// several: that is what has a byte order. io/scalars.hpp says it for the types of op/types.hpp.
template <class T> struct StoredAs;
template <class T> struct Stored : StoredAs<T> {};
template <> struct Stored<float> {
  static constexpr const char* name = "float32";
  static constexpr std::size_t unit = 4;
};
template <> struct Stored<double> {
  static constexpr const char* name = "float64";
  static constexpr std::size_t unit = 8;
};

namespace detail {

inline constexpr bool bytesAreInOrder = std::endian::native == std::endian::little;

// Turns numbers from the machine's order to that of files, or back.
template <class T> void turnBytes(std::span<std::byte> numbers) {
  for (std::size_t i = 0; i < numbers.size(); i += Stored<T>::unit)
    std::reverse(numbers.begin() + static_cast<std::ptrdiff_t>(i),
                 numbers.begin() + static_cast<std::ptrdiff_t>(i + Stored<T>::unit));
}

// Numbers as a file has them: where they are, if the machine has the same order.
template <class T> class FileBytes {
public:
  explicit FileBytes(std::span<const T> numbers) : bytes_(std::as_bytes(numbers)) {
    if constexpr (!bytesAreInOrder) {
      turned_.assign(bytes_.begin(), bytes_.end());
      turnBytes<T>(turned_);
      bytes_ = turned_;
    }
  }
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;
  Bytes bytes() const { return bytes_; }

private:
  Bytes bytes_;
  std::vector<std::byte> turned_;
};

// And back; as many bytes as numbers have.
template <class T> void fromFileBytes(Bytes bytes, std::span<T> numbers) {
  if (numbers.empty()) return;
  std::memcpy(static_cast<void*>(numbers.data()), bytes.data(), numbers.size_bytes());
  if constexpr (!bytesAreInOrder) turnBytes<T>(std::as_writable_bytes(numbers));
}

template <std::unsigned_integral U> U littleEndian(const std::byte* bytes) {
  U x = 0;
  for (std::size_t i = 0; i < sizeof(U); ++i)
    x = static_cast<U>(x | (static_cast<U>(bytes[i]) << (8 * i)));
  return x;
}

} // namespace detail

BURTORCH_END_NAMESPACE
