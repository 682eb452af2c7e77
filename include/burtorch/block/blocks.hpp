// burtorch/block/blocks.hpp — all blocks, in reading order
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/block/affine.hpp>
#include <burtorch/block/elementwise.hpp>
#include <burtorch/block/softmax.hpp>
#include <burtorch/block/layer_norm.hpp>
#include <burtorch/block/gather.hpp>
#include <burtorch/block/concat.hpp>
#include <burtorch/block/attention.hpp>
