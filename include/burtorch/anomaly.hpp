// burtorch/anomaly.hpp — now run/anomaly.hpp; here for programs that include it by its old name
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/run/anomaly.hpp> // IWYU pragma: export
