// bindings/names.hpp — what Python calls the things of C++: functions, and choices that are strings
// SPDX-License-Identifier: MIT
#pragma once

#include <pybind11/pybind11.h>

#include <cctype>
#include <cstddef>
#include <string>
#include <utility>

namespace burtorch_python {

// The choice of this name, of a table of names and choices. `what` is what they are: "scheme".
template <class Choice, std::size_t n>
Choice named(const char* what, const std::string& name,
             const std::pair<const char*, Choice> (&choices)[n]) {
  std::string known;
  for (const auto& [text, choice] : choices) {
    if (name == text) return choice;
    known += std::string(known.empty() ? "" : ", ") + text;
  }
  throw pybind11::value_error(std::string("unknown ") + what + " '" + name + "'; there are " +
                              known);
}

// The name in Python of a C++ function of the table.
inline std::string snakeCase(const char* camelCase) {
  std::string out;
  for (const char* c = camelCase; *c != 0; ++c) {
    if (std::isupper(static_cast<unsigned char>(*c))) {
      out += '_';
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(*c)));
    } else {
      out += *c;
    }
  }
  return out == "logarithm" ? "log" : out;
}

} // namespace burtorch_python
