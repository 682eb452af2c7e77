// bindings/io.hpp — the blocks that graphs in files may contain
// SPDX-License-Identifier: MIT
#pragma once

#include "tape.hpp"

#include <burtorch/io/graph.hpp>

namespace burtorch_python {

// All of them, for double and float: defined in view_blocks.cpp, where they are compiled anyway.
template <class T> bt::KnownBlocks<T, SharedMemory> knownBlocks();

} // namespace burtorch_python
