// burtorch/base/text.hpp — any bytes as UTF-8, character by character
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/base/config.hpp>

#include <cstddef>
#include <string>
#include <string_view>

BURTORCH_BEGIN_NAMESPACE

namespace detail {

// Bytes of the well-formed UTF-8 sequence at the start of the text; 0 if there is none.
inline std::size_t sequenceLength(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xC2 ? 0
                             : lead < 0xE0 ? 2
                             : lead < 0xF0 ? 3
                             : lead < 0xF5 ? 4
                                           : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  if (length < 3) return length;
  const unsigned next = byte(1);
  const bool overlong = (lead == 0xE0 && next < 0xA0) || (lead == 0xF0 && next < 0x90);
  const bool surrogate = lead == 0xED && next > 0x9F;
  const bool isBeyond = lead == 0xF4 && next > 0x8F;
  return overlong || surrogate || isBeyond ? 0 : length;
}

// The text, with what put(out, character) has put in place of the characters for which it returns
// true. A character is its UTF-8.
template <class Put> std::string escaped(std::string_view text, const Put& put) {
  std::string out;
  out.reserve(text.size() + 2);
  while (!text.empty()) {
    const std::size_t length = sequenceLength(text);
    const std::string_view character =
        length == 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(0, length); // U+FFFD
    if (!put(out, character)) out += character;
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

} // namespace detail

BURTORCH_END_NAMESPACE
