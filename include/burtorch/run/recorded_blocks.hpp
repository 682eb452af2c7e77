// burtorch/run/recorded_blocks.hpp — blocks of a tape as operations on single Values, for recorded gradients
// SPDX-License-Identifier: MIT
//
//   gradientsOf(loss, leaves, Kinks::decided, 0, ExpandBlocks{});
//
// The pullback of a block is a kernel over plain numbers. To be differentiated again, a block is recorded once
// more as what defines it, and those operations are pulled.
#pragma once

#include <burtorch/block/expand.hpp> // IWYU pragma: export
#include <burtorch/run/recorded.hpp> // IWYU pragma: export
