// cpp_tests/viz_text_test.cpp — quoted texts say what they were made from, whatever bytes those were
// SPDX-License-Identifier: MIT
#include <burtorch/viz/text.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace viz = burtorch::viz;

namespace {

// The code points of a text, read the slow way: any sequence that does not come out the same when
// it is written again stands for one U+FFFD per byte.
std::string encode(std::uint32_t c) {
  const auto byte = [](std::uint32_t x) {
    return static_cast<char>(static_cast<unsigned char>(x));
  };
  if (c < 0x80) return {byte(c)};
  if (c < 0x800) return {byte(0xC0 | c >> 6), byte(0x80 | (c & 63))};
  if (c < 0x10000) return {byte(0xE0 | c >> 12), byte(0x80 | (c >> 6 & 63)), byte(0x80 | (c & 63))};
  return {byte(0xF0 | c >> 18), byte(0x80 | (c >> 12 & 63)), byte(0x80 | (c >> 6 & 63)),
          byte(0x80 | (c & 63))};
}

std::vector<std::uint32_t> codePoints(const std::string& text) {
  std::vector<std::uint32_t> out;
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
    std::uint32_t c = length == 1 ? lead : lead & (0xFFu >> (length + 1));
    for (std::size_t k = 1; k < length && i + k < text.size(); ++k)
      c = c << 6 | (static_cast<unsigned char>(text[i + k]) & 63u);
    const bool isSurrogate = c >= 0xD800 && c < 0xE000;
    const bool good = c <= 0x10FFFF && !isSurrogate && encode(c) == text.substr(i, length);
    out.push_back(good ? c : 0xFFFD);
    i += good ? length : 1;
  }
  return out;
}

// What a reader of JSON or Python makes of a quoted string.
std::string unquote(const std::string& quoted) {
  std::string out;
  REQUIRE(quoted.size() >= 2);
  REQUIRE(quoted.front() == '"');
  REQUIRE(quoted.back() == '"');
  REQUIRE(std::ranges::none_of(quoted, [](unsigned char c) { return c < 0x20; }));
  for (std::size_t i = 1; i + 1 < quoted.size(); ++i) {
    const char c = quoted[i];
    if (c == '"') FAIL("the string ends before its end");
    if (c != '\\') {
      out += c;
      continue;
    }
    const char kind = quoted[++i];
    if (kind == 'n') out += '\n';
    else if (kind == 'u' || kind == 'x') {
      const std::size_t digits = kind == 'u' ? 4 : 2;
      out += static_cast<char>(std::stoi(quoted.substr(i + 1, digits), nullptr, 16));
      i += digits;
    } else out += kind;
  }
  return out;
}

} // namespace

TEST_CASE("each language gets its own spelling") {
  const std::string text = "a\"b\\c\n<&>\x01 é";
  CHECK(viz::jsonString(text) == "\"a\\\"b\\\\c\\n<&>\\u0001 é\"");
  CHECK(viz::pythonString(text) == "\"a\\\"b\\\\c\\n<&>\\x01 é\"");
  CHECK(viz::dotString(text) == "\"a&quot;b\\\\c\\n&lt;&amp;&gt;␁ é\"");
  CHECK(viz::htmlText(text) == "a&quot;b\\c<BR/>&lt;&amp;&gt;␁ é");
  CHECK(viz::htmlText("\x7f") == "␡");
  CHECK(viz::htmlText("]") == "&#93;");
  CHECK(viz::htmlText("\xEF\xBF\xBF") == "\xEF\xBF\xBD"); // no XML may hold it
}

TEST_CASE("bytes that are not UTF-8 become U+FFFD, one each") {
  const std::string bad = "\xEF\xBF\xBD";
  CHECK(viz::htmlText("a\xFFz") == "a" + bad + "z");
  CHECK(viz::htmlText("\xC3") == bad);                      // cut off
  CHECK(viz::htmlText("\xC0\xAF") == bad + bad);            // an overlong slash
  CHECK(viz::htmlText("\xED\xA0\x80") == bad + bad + bad);  // half of a surrogate pair
  CHECK(viz::htmlText("\xF4\x90\x80\x80").size() == 4 * 3); // beyond Unicode
  CHECK(viz::htmlText("\xF0\x9F\x94\xA5") == "\xF0\x9F\x94\xA5");
}

TEST_CASE("random bytes come back from JSON and Python as the characters they were") {
  std::mt19937 random(7);
  const std::string special = "\"\\\n\r\t\x7f<>&'{}|n\xC3\xA9\xE2\x80\xA6\xF0\x9F\xED\xA0\x80\xFF";
  std::uniform_int_distribution<int> byte(0, 255), coin(0, 1), length(0, 24);
  std::uniform_int_distribution<std::size_t> pick(0, special.size() - 1);
  for (int trial = 0; trial < 4000; ++trial) {
    std::string text;
    for (int i = length(random); i-- != 0;)
      text += coin(random) ? special[pick(random)] : static_cast<char>(byte(random));
    const auto expected = codePoints(text);
    const std::string json = viz::jsonString(text), python = viz::pythonString(text);
    CHECK(codePoints(unquote(json)) == expected);
    CHECK(codePoints(unquote(python)) == expected);
    // Nothing in the others could end the string or the tag they stand in, or break a line.
    const std::string dot = viz::dotString(text), html = viz::htmlText(text);
    CHECK(dot.find_first_of("\"<>\n", 1) == dot.size() - 1);
    for (std::size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1))
      CHECK(html.substr(at, 5) == "<BR/>");
    for (const std::string& each : {json, python, dot, html})
      CHECK(std::ranges::none_of(codePoints(each), [](auto c) { return c < 0x20 || c == 0x7F; }));
  }
}

TEST_CASE("numbers: as many digits as asked for, or as it takes; no locale") {
  CHECK(viz::numberText(0.1) == "0.1");
  CHECK(viz::numberText(0.1f) == "0.1");
  CHECK(viz::numberText(1.0 / 3, 6) == "0.333333");
  CHECK(viz::numberText(138.83381924198252, 6) == "138.834");
  CHECK(viz::numberText(1e300, 6) == "1e+300");
  const std::string many = viz::numberText(1e-300, 63); // more than it takes
  CHECK(many.size() > 63);
  CHECK(many.starts_with("1.0000000000000000250590918352"));
  CHECK(many.ends_with("e-300"));
  CHECK(std::stod(viz::numberText(-5e-324, 2000)) == -5e-324);
  CHECK(viz::numberText(0.5, 2000) == "0.5");
  CHECK(viz::numberText(-0.0) == "-0");
  CHECK(std::stod(viz::numberText(1.0 / 3)) == 1.0 / 3);
  CHECK(viz::numberText(std::numeric_limits<double>::quiet_NaN(), 6) == "nan");
  CHECK(viz::numberText(-std::numeric_limits<double>::infinity(), 6) == "-inf");
  CHECK(viz::jsonNumber(2.5) == "2.5");
  CHECK(viz::jsonNumber(1e-300) == "1e-300");
  CHECK(viz::jsonNumber(std::numeric_limits<float>::infinity()) == "\"inf\"");
  CHECK(viz::jsonNumber(-std::numeric_limits<float>::quiet_NaN()) == "\"nan\"");
}
