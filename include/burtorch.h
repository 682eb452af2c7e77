// burtorch.h — the whole engine and pictures with their names brought in, for programs in the paper's spelling
// SPDX-License-Identifier: MIT
//
// The other headers that burtorch.hpp lists work beside it: #include <burtorch/nn/nn.hpp>, say.
#pragma once

#include <burtorch/burtorch.hpp>
#include <burtorch/restricted.hpp>
#include <burtorch/tape/concurrent.hpp>
#include <burtorch/viz/viz.hpp>

using namespace burtorch; // NOLINT: this header exists to do this
