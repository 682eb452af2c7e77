// burtorch/program.hpp — now run/program.hpp; here for programs that include it by its old name
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/run/program.hpp> // IWYU pragma: export
