// benchmarks/cpp/sacado.cpp — Sacado's reverse mode
// SPDX-License-Identifier: MIT
#define TRILINOS_NO_CONFIG_H // without Kokkos and what it would need
#include <Sacado_trad.hpp>

namespace Sacado::Rad {
using Var = ADvar<double>;
inline Var sqr(const Var& x) { return x * x; }
inline Var pow3(const Var& x) { return x * x * x; }
inline Var relu(const Var& x) { return max(x, 0.0); }
} // namespace Sacado::Rad

#include "loop.hpp"

namespace {

template <class Graph> auto reverse(Graph graph) {
  return [=](double x, double y) {
    using Sacado::Rad::Var;
    Var a(x), b(y);
    Var g = graph(a, b);
    Var::Gradcomp();
    return loop::Gradient{g.val(), a.adj(), b.adj()};
  };
}

} // namespace

int main(int argc, char** argv) {
  return loop::main(argc, argv,
                    {loop::tiny("eager", reverse(loop::tinyGraph)),
                     loop::small("eager", reverse(loop::smallGraph))});
}
