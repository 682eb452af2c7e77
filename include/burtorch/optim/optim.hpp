// burtorch/optim/optim.hpp — all optimizers, clipping and schedules
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/optim/adam.hpp>     // Adam, AdamW
#include <burtorch/optim/clip.hpp>     // gradients within bounds
#include <burtorch/optim/minimize.hpp> // whole minimizations, L-BFGS
#include <burtorch/optim/schedule.hpp> // learning rates over time
#include <burtorch/optim/sgd.hpp>      // GD, SGD
