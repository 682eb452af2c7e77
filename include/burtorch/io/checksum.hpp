// burtorch/io/checksum.hpp — CRC-32, the one of zip, PNG and zlib, eight bytes at a time
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/base/config.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

BURTORCH_BEGIN_NAMESPACE

namespace detail {

// table[k][b]: what byte b contributes when k more bytes follow it.
inline constexpr auto crcTable = [] {
  std::array<std::array<std::uint32_t, 256>, 8> table{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t c = b;
    for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ ((c & 1) != 0 ? 0xedb88320u : 0u);
    table[0][b] = c;
  }
  for (std::size_t k = 1; k < 8; ++k)
    for (std::size_t b = 0; b < 256; ++b)
      table[k][b] = (table[k - 1][b] >> 8) ^ table[0][table[k - 1][b] & 0xff];
  return table;
}();

// Of the bytes given so far, when `before` is the checksum of those before them.
inline std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t before = 0) {
  std::uint32_t c = ~before;
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(bytes[i]); };
  const auto& t = crcTable;
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    c ^= byte(i) | byte(i + 1) << 8 | byte(i + 2) << 16 | byte(i + 3) << 24;
    c = t[7][c & 0xff] ^ t[6][(c >> 8) & 0xff] ^ t[5][(c >> 16) & 0xff] ^ t[4][c >> 24] ^
        t[3][byte(i + 4)] ^ t[2][byte(i + 5)] ^ t[1][byte(i + 6)] ^ t[0][byte(i + 7)];
  }
  for (; i < bytes.size(); ++i) c = (c >> 8) ^ t[0][(c ^ byte(i)) & 0xff];
  return ~c;
}

} // namespace detail

BURTORCH_END_NAMESPACE
