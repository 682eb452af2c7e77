// burtorch/viz/text.hpp — numbers and labels as text that another program will read
// SPDX-License-Identifier: MIT
//
// How pictures and scripts quote. A label is any bytes: what is not UTF-8 becomes U+FFFD, so
// that every text made here is UTF-8, and a reader gets back exactly the characters that were
// written (pictures, which cannot show control characters, show their symbols instead: ␀, ␛, …).
#pragma once

#include <burtorch/base/config.hpp>
#include <burtorch/base/text.hpp>

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
         burtorch::detail::escaped(text,
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
         burtorch::detail::escaped(text,
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
  return burtorch::detail::escaped(text, [](std::string& out, std::string_view c) {
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
