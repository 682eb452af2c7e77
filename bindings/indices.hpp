// bindings/indices.hpp — integers that are data of a function being recorded: where a record keeps them
// SPDX-License-Identifier: MIT
//
// While a function is recorded, an integer array among its arguments is an object with `_values`, an array of
// integers, and `_places`, an array of the same shape: where in the argument each of them came from (see
// python/burtorch/_indices.py). A block that takes integers (gather, cross_entropy) uses the values and notes the places
// here, so that another argument can be put into the recording.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace burtorch_python {

struct IndexUse {
  std::size_t record;    // its number on the tape
  std::size_t parameter; // of the block: where its integers begin
  std::size_t limit;     // they are below it
  std::vector<std::int64_t> places;
};
using IndexLog = std::vector<IndexUse>;

} // namespace burtorch_python
