// burtorch/recorded.hpp — now run/recorded.hpp; here for programs that include it by its old name
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/run/recorded.hpp> // IWYU pragma: export
