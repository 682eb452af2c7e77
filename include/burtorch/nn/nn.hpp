// burtorch/nn/nn.hpp — layers and models, in reading order
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/nn/init.hpp>     // first values
#include <burtorch/nn/layers.hpp>   // Linear, MLP, Embedding, SelfAttention, …
#include <burtorch/nn/models.hpp>   // CharMLP, GPT
#include <burtorch/nn/oracle.hpp>   // loss and gradient over a batch
#include <burtorch/nn/generate.hpp> // text

// Not included: nn/fixed.hpp, layers whose sizes are template arguments.
