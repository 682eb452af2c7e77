// cpp_tests/two_units/two.cpp — the second unit; includes the umbrella with the paper's names as well
// SPDX-License-Identifier: MIT
#include "burtorch.h"

burtorch::Value<double> squareElsewhere(burtorch::Value<double> x);

burtorch::Value<double> squareElsewhere(burtorch::Value<double> x) { return sqr(x); }
