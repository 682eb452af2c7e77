// bindings/trace.hpp — a function that is being recorded: what depends on its inputs, and what it decided
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace burtorch_python {

class AnyTape; // tape.hpp

// What a function that is being recorded for burtorch.compile decided by comparing Values.
struct Trace {
  struct Side { // of a comparison: a node, or where there is none a number
    std::ptrdiff_t node;
    double number;
  };
  struct Branch {
    Side left, right;
    int operation; // Py_LT …
    bool outcome;
  };
  std::size_t from, inputs; // where the inputs are; older nodes do not depend on them
  bool isDynamic;           // else a comparison is an error
  std::vector<Branch> branches{};
  std::vector<std::pair<std::size_t, std::size_t>> late{}; // inputs that came later: from, up to

  // Whether one of these nodes depends on the inputs.
  bool dependOnInputs(const AnyTape& tape, std::size_t first, std::size_t count) const;
  // Whether a comparison of a node is to be noted or refused.
  bool concerns(const AnyTape& tape, std::size_t node) const {
    return node >= from && (isDynamic || dependOnInputs(tape, node, 1));
  }
};

} // namespace burtorch_python
