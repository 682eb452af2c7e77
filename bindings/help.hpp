// bindings/help.hpp — what each function of the table and each block computes, for its help
// SPDX-License-Identifier: MIT
#pragma once

#include "value.hpp"

#include <burtorch/op/table.hpp>

#include <cctype>
#include <string>

namespace burtorch_python {

// Help that begins with a signature for inspect.signature, and says what is computed of what: the
// meaning that the table has for a function with this name in Python, then the operands.
inline const char* help(const std::string& name, const char* parameters, const char* operands) {
  std::string text = name + parameters + "\n--\n\n";
#define BURTORCH_MEANING(Name, function)                                                           \
  if (name == snakeCase(#function)) text += std::string(bt::op::Name::meaning) + "; ";
  BURTORCH_OPERATIONS(BURTORCH_MEANING)
#undef BURTORCH_MEANING
  return keep(text + operands);
}

// Help of a block's function: the block's meaning as a sentence, then more.
template <class B> const char* helpOf(const char* more = "") {
  std::string text = std::string(B::meaning) + "." + more;
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return keep(text);
}

} // namespace burtorch_python
