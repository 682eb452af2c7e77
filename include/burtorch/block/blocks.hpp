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
#include <burtorch/block/convolution.hpp>
#include <burtorch/block/pooling.hpp>
#include <burtorch/block/recurrent.hpp>
#include <burtorch/block/batch_norm.hpp>
#include <burtorch/block/dropout.hpp>
#include <burtorch/block/strided.hpp>
#include <burtorch/block/over.hpp>
#include <burtorch/block/where.hpp>
#include <burtorch/block/batched.hpp>
#include <burtorch/block/losses.hpp>

BURTORCH_BEGIN_NAMESPACE

namespace block {

// From this list come everyBlock (io/blocks.hpp) and ExpandBlocks (run/recorded_blocks.hpp).
using All =
    decltype(Elementwise() +
             List<Affine, MatMul, Gather, GatherAffine, Attention, Concat, LayerNorm, Softmax,
                  LogSoftmax, CrossEntropy>() +
             List<Strided, Take, Where, BatchedMatMul>() + AlongAxes() + Losses() +
             List<Convolution, MaxPool, AvgPool, Lstm, Gru, EveryRow, BatchNorm, Dropout>());

} // namespace block

BURTORCH_END_NAMESPACE
