// burtorch/replay.hpp — now run/replay.hpp; here for programs that include it by its old name
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/run/replay.hpp> // IWYU pragma: export
