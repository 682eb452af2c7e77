// burtorch/block/recorded.hpp — now run/recorded_blocks.hpp; here for programs that include it by its old name
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/run/recorded_blocks.hpp> // IWYU pragma: export
