// cpp_tests/debugger/main.cpp — what tests/test_gdb.py looks at from a debugger
// SPDX-License-Identifier: MIT
#include <burtorch/block/elementwise.hpp>
#include <burtorch/burtorch.hpp>
#include <burtorch/tape/concurrent.hpp>
#include <burtorch/viz/debug.hpp>

#include <array>

namespace bt = burtorch;

void stop() {} // the breakpoint

int main() {
  bt::Tape<double> tape;
  bt::Value<double> a(tape, -41.0), b(tape, 2.0);
  a.setLabel("a");
  b.setLabel("b");
  const auto g = sqr((a + b) - (a * b + pow3(b))) / 2.0;
  g.setLabel("g");
  backward(g);
  const auto mark = tape.mark();
  const auto gone = a * 2.0;
  tape.rewind(mark);
  [[maybe_unused]] const bt::Value<double> empty;
  bt::Tape<float, bt::Concurrent> shared{bt::reserve(16)};
  const auto half = bt::Value<float, bt::Concurrent>(shared, 3.0f) * 0.5f;
  bt::Tape<double> other;
  const auto x = bt::vector(other, std::array{1.0, 2.0});
  const auto y = sqr(x);
  [[maybe_unused]] const auto y1 = y[1];
  stop();
  return y.isEmpty() || gone.isEmpty() || half.isEmpty() ? 1 : 0;
}
