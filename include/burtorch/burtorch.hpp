// burtorch/burtorch.hpp — the engine, in namespace burtorch; the parts in reading order
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/base/config.hpp>   // the compile-time switches
#include <burtorch/base/error.hpp>    // how it fails
#include <burtorch/base/memory.hpp>   // where owned memory comes from
#include <burtorch/base/sizes.hpp>    // sums and products of sizes, checked
#include <burtorch/scalar/scalar.hpp> // what a node may hold
#include <burtorch/op/table.hpp>      // every operation, its value and its pullback
#include <burtorch/tape/cursor.hpp>   // how full a tape is
#include <burtorch/tape/labels.hpp>   // names of nodes
#include <burtorch/tape/tape.hpp>     // storage: values, gradients, records; mark, rewind, collect
#include <burtorch/tape/sweep.hpp>    // what the operands of a record gain
#include <burtorch/value.hpp>         // the handle of one scalar, its operators and functions
#include <burtorch/backward.hpp>      // gradients
#include <burtorch/scratch.hpp>       // the same in the caller's memory, over what the root reaches

// What a program includes if it wants it; some take longer to compile than all of the above:
//   view.hpp                 vectors and matrices of nodes
//   restricted.hpp           gradients that leave out a part of the tape
//   tape/concurrent.hpp      Tape<T, Concurrent>: several threads append to one graph
//   block/blocks.hpp         what is computed with whole views: linear layers, attention, …
//   run/derivatives.hpp      jvp, hvp, Jacobian, Hessian of functions
//   run/recorded.hpp         gradients as nodes, to be differentiated again
//   run/recorded_blocks.hpp  the same through blocks
//   run/replay.hpp           recorded functions, run again on new inputs
//   run/finite_sum.hpp       a recorded function of one sample over many
//   run/emit.hpp             recorded functions as C
//   run/program.hpp          functions recorded while compiling
//   run/anomaly.hpp          which operation first made a NaN or an infinity
//   nn/nn.hpp                layers, the paper's models, their gradients over a batch
//   optim/optim.hpp          optimizers, schedules, whole minimizations
//   io/io.hpp                saving and loading: ranges of nodes, whole graphs
//   io/blocks.hpp            graphs with blocks in files
//   io/scalars.hpp           halves, quads, lanes, duals in files
//   viz/viz.hpp              pictures of graphs, plots
//   viz/debug.hpp            functions to call from a debugger
//   op/types.hpp             nodes that hold halves, quads, lanes, duals
//   scalar/loss_scale.hpp    training with halves
//   base/random.hpp          random numbers that are the same on every platform
//   base/team.hpp            threads that stay between calls
