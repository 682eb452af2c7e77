// burtorch/block/blocks.hpp — all blocks, in reading order, and the list of them
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/block/affine.hpp>
#include <burtorch/block/elementwise.hpp>
#include <burtorch/block/softmax.hpp>
#include <burtorch/block/layer_norm.hpp>
#include <burtorch/block/gather.hpp>
#include <burtorch/block/concat.hpp>
#include <burtorch/block/attention.hpp>
#include <burtorch/block/strided.hpp>
#include <burtorch/block/over.hpp>
#include <burtorch/block/where.hpp>
#include <burtorch/block/batched.hpp>
#include <burtorch/block/losses.hpp>

BURTORCH_BEGIN_NAMESPACE

namespace block {

// From this list come everyBlock (io/blocks.hpp) and ExpandBlocks (run/recorded_blocks.hpp).
using All = decltype(Elementwise() +
                     List<Affine, MatMul, Gather, GatherAffine, Attention, Concat, LayerNorm,
                          Softmax, LogSoftmax, CrossEntropy>() +
                     List<Strided, Take, Where, BatchedMatMul>() + AlongAxes() + Losses());

} // namespace block

BURTORCH_END_NAMESPACE
