// burtorch/random.hpp — now base/random.hpp; here for programs that include it by its old name
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/base/random.hpp> // IWYU pragma: export
