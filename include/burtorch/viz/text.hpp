// burtorch/viz/text.hpp — numbers and labels as text that another program will read
// SPDX-License-Identifier: MIT
//
// The one place that knows how to quote. A label is any bytes: what is not UTF-8 becomes U+FFFD, so
// that every text made here is UTF-8, and a reader gets back exactly the characters that were
// written (pictures, which cannot show control characters, show their symbols instead: ␀, ␛, …).
#pragma once

#include <burtorch/config.hpp>

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

BURTORCH_BEGIN_NAMESPACE

namespace viz {

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
  const bool tooLarge = lead == 0xF4 && next > 0x8F;
  return overlong || surrogate || tooLarge ? 0 : length;
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

inline bool isControl(std::string_view c) {
  return c.size() == 1 && (static_cast<unsigned char>(c[0]) < 0x20 || c[0] == 0x7F);
}

inline void putHex(std::string& out, const char* prefix, int digits, char c) {
  char buffer[8];
  std::snprintf(buffer, sizeof buffer, "%s%0*x", prefix, digits, static_cast<unsigned>(c));
  out += buffer;
}

// A string that JSON and Python read alike, but for the characters they spell differently.
template <class PutControl>
std::string quoted(std::string_view text, const PutControl& putControl) {
  return '"' +
         escaped(text,
                 [&](std::string& out, std::string_view c) {
                   if (c == "\"" || c == "\\") out.append("\\").append(c);
                   else if (c == "\n") out += "\\n";
                   else if (isControl(c)) putControl(out, c[0]);
                   else return false;
                   return true;
                 }) +
         '"';
}

// What pictures must not contain as it is. Graphviz takes & for the start of an entity also inside
// quotes. XML, and so SVG, has no control characters, for which Unicode has symbols (U+2400 …), and
// lacks U+FFFE and U+FFFF.
inline bool putForPicture(std::string& out, std::string_view c) {
  if (c == "&") out += "&amp;";
  else if (c == "<") out += "&lt;";
  else if (c == ">") out += "&gt;";
  else if (c == "\"") out += "&quot;";
  else if (c == "]") out += "&#93;"; // Graphviz 2.43 can't read a label that is nothing else
  else if (c == "\xEF\xBF\xBE" || c == "\xEF\xBF\xBF") out += "\xEF\xBF\xBD";
  else if (isControl(c))
    out.append("\xE2\x90").append(1, static_cast<char>(c[0] == 0x7F ? 0xA1 : 0x80 + c[0]));
  else return false;
  return true;
}

} // namespace detail

// A quoted string of the DOT language, for labels and tooltips: "…".
inline std::string dotString(std::string_view text) {
  return '"' +
         detail::escaped(text,
                         [](std::string& out, std::string_view c) {
                           if (c == "\\") out += "\\\\";
                           else if (c == "\n") out += "\\n";
                           else return detail::putForPicture(out, c);
                           return true;
                         }) +
         '"';
}

// Text inside an HTML-like label of the DOT language; lines are broken with <BR/>.
inline std::string htmlText(std::string_view text) {
  return detail::escaped(text, [](std::string& out, std::string_view c) {
    if (c != "\n") return detail::putForPicture(out, c);
    out += "<BR/>";
    return true;
  });
}

inline std::string jsonString(std::string_view text) {
  return detail::quoted(text, [](std::string& out, char c) { detail::putHex(out, "\\u", 4, c); });
}

inline std::string pythonString(std::string_view text) {
  return detail::quoted(text, [](std::string& out, char c) { detail::putHex(out, "\\x", 2, c); });
}

// A number with so many significant digits, or with as many as it takes to read the same number
// back; nan, inf and -inf otherwise. Never depends on the locale. A scalar that is not a built-in
// number has its own overload of numberText(x, digits), beside its definition.
inline constexpr int allDigits = 0;

template <class T>
  requires std::is_arithmetic_v<T>
std::string numberText(T x, [[maybe_unused]] int digits = allDigits) {
  if (x != x) return "nan";
  std::string text(64, ' '); // enough for all digits that tell two numbers apart
  const auto written = [&] {
    char* const first = text.data();
    if constexpr (std::is_floating_point_v<T>)
      if (digits != allDigits)
        return std::to_chars(first, first + text.size(), x, std::chars_format::general, digits);
    return std::to_chars(first, first + text.size(), x);
  };
  auto end = written();
  for (; end.ec != std::errc{}; end = written()) text.resize(2 * text.size());
  text.resize(static_cast<std::size_t>(end.ptr - text.data()));
  return text;
}

// The same for readers of JSON, which knows no such numbers: strings.
template <class T> std::string jsonNumber(const T& x) {
  const std::string text = numberText(x);
  return text.find_first_not_of("0123456789+-.e") == std::string::npos ? text : jsonString(text);
}

} // namespace viz

BURTORCH_END_NAMESPACE
