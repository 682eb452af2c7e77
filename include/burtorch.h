// burtorch.h — the whole library with its names brought in, for programs in the paper's spelling
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/burtorch.hpp>
#include <burtorch/viz/viz.hpp>

using namespace burtorch; // NOLINT: this header exists to do this
