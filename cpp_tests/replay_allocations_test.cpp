// cpp_tests/replay_allocations_test.cpp — after the first passes no way to a gradient allocates
// SPDX-License-Identifier: MIT
//
// operator new is replaced by one that counts, in the whole program; the counts of this file are differences
// of two moments on one thread. Tapes that map their memory do so when they grow, which is the first pass.
#include <burtorch/burtorch.hpp>
#include <burtorch/nn/nn.hpp>
#include <burtorch/restricted.hpp>
#include <burtorch/run/replay.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

namespace {

thread_local std::size_t allocationsSoFar = 0;

void* countedMemory(std::size_t bytes, std::size_t alignment) {
  ++allocationsSoFar;
  const std::size_t whole = (bytes + alignment - 1) / alignment * alignment;
  if (void* const block = std::aligned_alloc(alignment, whole == 0 ? alignment : whole))
    return block;
  throw std::bad_alloc();
}

// How often f allocates when it is called for the third time.
template <class F> std::size_t allocationsAfterWarmUp(const F& f) {
  f();
  f();
  const std::size_t before = allocationsSoFar;
  f();
  return allocationsSoFar - before;
}

} // namespace

BURTORCH_NOINLINE void* operator new(std::size_t bytes) {
  return countedMemory(bytes, alignof(std::max_align_t));
}
BURTORCH_NOINLINE void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return countedMemory(bytes, static_cast<std::size_t>(alignment));
}
BURTORCH_NOINLINE void operator delete(void* block) noexcept { std::free(block); }
BURTORCH_NOINLINE void operator delete(void* block, std::size_t) noexcept { std::free(block); }
BURTORCH_NOINLINE void operator delete(void* block, std::align_val_t) noexcept { std::free(block); }
BURTORCH_NOINLINE void operator delete(void* block, std::size_t, std::align_val_t) noexcept {
  std::free(block);
}

using namespace burtorch;

namespace {

template <class V> V allocationGraph(const V& a, const V& b) {
  const std::array<V, 3> both{a, b, a * b};
  return reduceMeanSquares(both) + clamp(tanh(a), -1.0, 1.0) + innerProduct(both, both) * 0.5;
}

} // namespace

TEST_CASE("the counter counts") {
  CHECK(allocationsAfterWarmUp([] { const std::vector<double> numbers(100); }) == 1);
}

TEST_CASE("eager gradients allocate nothing after the first pass") {
  Tape<double> tape;
  const Value<double> a(tape, 0.5), b(tape, -1.5);
  const auto mark = tape.mark();
  std::vector<std::uint8_t> work(1000);
  std::vector<std::uint32_t> order, leaves, stack;
  for (auto* list : {&order, &leaves, &stack}) list->reserve(1000);
  CHECK(allocationsAfterWarmUp([&] {
          backward(allocationGraph(a, b));
          tape.rewind(mark);
        }) == 0);
  CHECK(allocationsAfterWarmUp([&] {
          backwardWithScratchStorage(allocationGraph(a, b), order, leaves, stack);
          tape.rewind(mark);
        }) == 0);
  CHECK(allocationsAfterWarmUp([&] {
          backwardRestricted(allocationGraph(a, b), std::array{a}, work);
          backwardReaching(allocationGraph(a, b));
          backwardOf<op::BinaryMult>(allocationGraph(a, b), 0.5);
          tape.rewind(mark);
        }) == 0);
}

TEST_CASE("a replayed recording allocates nothing after the first call") {
  Tape<double> tape;
  const Value<double> a(tape, 0.5), b(tape, -1.5);
  const Recording<double> f({a, b}, allocationGraph(a, b));
  auto workspace = f.workspace();
  std::array<double, 2> x{0.25, 2}, gradient{};
  CHECK(allocationsAfterWarmUp([&] {
          x[0] += 0.125;
          f.valueAndGradient(workspace, x, gradient);
        }) == 0);
}

TEST_CASE("a model's loss and gradient allocate nothing after the first call") {
  nn::Oracle<nn::CharMLP<float>> mlp({.hidden = 4});
  const std::vector<int> x(4 * 16, 3), y(4, 5);
  CHECK(allocationsAfterWarmUp([&] { mlp.lossAndGradient(x, y); }) == 0);
  CHECK(allocationsAfterWarmUp([&] { mlp.loss(x, y); }) == 0);
  nn::Oracle<nn::GPT<float>> gpt({.vocab = 5, .context = 4, .dModel = 8, .layers = 1, .heads = 2});
  const std::vector<int> tokens(3 * 4, 2);
  CHECK(allocationsAfterWarmUp([&] { gpt.lossAndGradient(tokens, tokens); }) == 0);
  CHECK(allocationsAfterWarmUp([&] { gpt.loss(tokens, tokens); }) == 0);
}
