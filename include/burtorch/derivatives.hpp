// burtorch/derivatives.hpp — now run/derivatives.hpp; here for programs that include it by its old name
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/run/derivatives.hpp> // IWYU pragma: export
