// burtorch/team.hpp — now base/team.hpp; here for programs that include it by its old name
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/base/team.hpp> // IWYU pragma: export
