// burtorch/viz/viz.hpp — seeing the graph: everything but what is for debuggers (viz/debug.hpp)
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/viz/text.hpp>   // quoting, numbers
#include <burtorch/viz/graph.hpp>  // what a root was made from
#include <burtorch/viz/dot.hpp>    // buildDotGraph, asString
#include <burtorch/viz/json.hpp>   // buildJsonGraph
#include <burtorch/viz/script.hpp> // generatePlot, generateHeatMap, …
#include <burtorch/viz/show.hpp>   // showScript, saveGraphPicture
