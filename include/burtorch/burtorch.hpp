// burtorch/burtorch.hpp — everything, in namespace burtorch; the parts in reading order
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/config.hpp>        // the compile-time switches
#include <burtorch/error.hpp>         // how it fails
#include <burtorch/scalar/scalar.hpp> // what a node may hold
#include <burtorch/op/table.hpp>      // every operation, its value and its pullback
#include <burtorch/memory.hpp>        // where owned memory comes from
#include <burtorch/cursor.hpp>        // how full a tape is
#include <burtorch/labels.hpp>        // names of nodes
#include <burtorch/tape.hpp>          // storage: values, gradients, records; mark, rewind, collect
#include <burtorch/value.hpp>         // the handle of one scalar, its operators and functions
#include <burtorch/backward.hpp>      // gradients
#include <burtorch/scratch.hpp> // gradients in the caller's memory, over only what the root reaches

// Not included, because they take longer to compile than all of the above:
//   scalar/types.hpp      nodes that hold halves, quads, lanes, duals
//   scalar/loss_scale.hpp training with halves
//   anomaly.hpp           which operation first made a NaN or an infinity
//   derivatives.hpp       jvp, hvp, Jacobian, Hessian of functions
//   replay.hpp            recorded functions, run again on new inputs
//   emit.hpp              recorded functions as C
//   io/io.hpp             saving and loading: ranges of nodes, whole graphs
