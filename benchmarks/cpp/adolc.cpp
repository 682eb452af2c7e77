// benchmarks/cpp/adolc.cpp — ADOL-C: recorded anew in every iteration, or once
// SPDX-License-Identifier: MIT
#include <adolc/adolc.h>

static adouble sqr(const adouble& x) { return x * x; }
static adouble pow3(const adouble& x) { return x * x * x; }
static adouble relu(const adouble& x) { return fmax(x, 0.0); }

#include "loop.hpp"

namespace {

using loop::Gradient;

// With buffers for graphs of this size: the default ones are cleared again in every pass.
template <class Graph> double record(Graph graph, double x, double y) {
  double value = 0;
  trace_on(1, /* keep values for the reverse pass: */ 1, 512, 512, 512, 512, 1);
  adouble a, b;
  a <<= x;
  b <<= y;
  adouble g = graph(a, b);
  g >>= value;
  trace_off();
  return value;
}

template <class Graph> auto reverseOf(Graph graph, bool once) {
  return [=, isRecorded = false](double x, double y) mutable {
    double at[] = {x, y}, g[2], value = 0, weight = 1;
    if (!once || !isRecorded) value = record(graph, x, y);
    else zos_forward(1, 1, 2, 1, at, &value);
    isRecorded = true;
    fos_reverse(1, 1, 2, &weight, g);
    return Gradient{value, g[0], g[1]};
  };
}

} // namespace

int main(int argc, char** argv) {
  return loop::main(argc, argv,
                    {loop::tiny("eager", reverseOf(loop::tinyGraph, false)),
                     loop::small("eager", reverseOf(loop::smallGraph, false)),
                     loop::tiny("recorded once", reverseOf(loop::tinyGraph, true)),
                     loop::small("recorded once", reverseOf(loop::smallGraph, true))});
}
