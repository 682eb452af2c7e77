// benchmarks/cpp/yardstick.cpp — what others are measured against: derivatives by hand, a plain tape
// SPDX-License-Identifier: MIT
#include "loop.hpp"

namespace {

using yardstick::Gradient, yardstick::Plain, yardstick::PlainTape;

template <class Graph> auto plainTape(Graph graph) {
  const int start =
      static_cast<int>(timing::opaque(5)); // known at run time only, as after a rewind
  return [=, tape = PlainTape(1024)](double x, double y) mutable {
    tape.size = start;
    const Plain a(tape, x), b(tape, y);
    const Plain g = graph(a, b, [&](double c) { return Plain(tape, c); });
    tape.backward(g.index, start);
    return Gradient{g.data(), a.grad(), b.grad()};
  };
}

} // namespace

int main(int argc, char** argv) {
  return loop::main(
      argc, argv,
      {loop::tiny("by hand", yardstick::tinyByHand), loop::small("by hand", yardstick::smallByHand),
       loop::tiny("plain tape", plainTape([](auto... x) { return graphs::tiny<Plain>(x...); })),
       loop::small("plain tape", plainTape([](auto... x) { return graphs::small<Plain>(x...); }))});
}
