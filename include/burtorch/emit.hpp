// burtorch/emit.hpp — now run/emit.hpp; here for programs that include it by its old name
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/run/emit.hpp> // IWYU pragma: export
