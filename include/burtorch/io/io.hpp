// burtorch/io/io.hpp — saving and loading, in reading order
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/io/file.hpp>
#include <burtorch/io/layout.hpp>
#include <burtorch/io/range.hpp>
#include <burtorch/io/stream.hpp>
#include <burtorch/io/graph.hpp>

// Not included, because they take longer to compile than all of the above:
//   io/scalars.hpp   tapes of halves, quads, lanes, duals
//   io/blocks.hpp    graphs with blocks
