// burtorch/scalar/types.hpp — now op/types.hpp; here for programs that include it by its old name
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/op/types.hpp> // IWYU pragma: export
