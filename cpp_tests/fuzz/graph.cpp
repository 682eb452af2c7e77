// cpp_tests/fuzz/graph.cpp — anything as a graph: it is refused, or it is a graph like any other
// SPDX-License-Identifier: MIT
//
// Size and checksum are set right first, so that the fuzzer gets behind them. What is loaded is swept,
// computed anew, collected, and saved: the second save must give what the first gave.
#include <burtorch/backward.hpp>
#include <burtorch/io/blocks.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

using namespace burtorch;

namespace {

// One of each kind: all functions of elements are loaded in the same way.
constexpr std::array blocks{
    knownBlock<block::Map<op::Tanh>, double>(detail::Kind::map),
    knownBlock<block::Map2<op::BinaryAdd>, double>(detail::Kind::mapNodes),
    knownBlock<block::MapNumber<op::BinaryMult, Form::nodeNumber>, double>(detail::Kind::mapNumber),
    knownBlock<block::MapNumber<op::BinaryDiv, Form::numberNode>, double>(
        detail::Kind::mapNumberOn),
    knownBlock<block::Affine, double>(),
    knownBlock<block::MatMul, double>(),
    knownBlock<block::Gather, double>(),
    knownBlock<block::GatherAffine, double>(),
    knownBlock<block::Attention, double>(),
    knownBlock<block::Concat, double>(),
    knownBlock<block::LayerNorm, double>(),
    knownBlock<block::Softmax, double>(),
    knownBlock<block::LogSoftmax, double>(),
    knownBlock<block::CrossEntropy, double>()};

void seal(std::vector<std::byte>& graph) {
  const auto put = [&](std::size_t at, auto x) {
    for (std::size_t i = 0; i < sizeof(x); ++i)
      graph[at + i] = static_cast<std::byte>(x >> (8 * i));
  };
  if (graph.size() < 24) return;
  put(16, static_cast<std::uint64_t>(graph.size()));
  put(12, detail::crc32(Bytes(graph).subspan(16)));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* const first = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> graph(first, first + size);
  seal(graph);
  Tape<double> tape;
  try {
    loadGraph(tape, Bytes(graph), blocks);
  } catch (const Error&) {
    if (tape.used() != Extent{}) std::abort();
    return 0;
  }
  if (tape.size() == 0) return 0;
  const auto saved = saveGraph(tape, {.blocks = blocks});
  Tape<double> again;
  loadGraph(again, Bytes(saved), blocks);
  if (saveGraph(again, {.blocks = blocks}) != saved) std::abort();
  auto root = Value<double>::at(tape, tape.size() - 1);
  backward(root);
  for (const auto& record : tape.records())
    if (record.isBlock()) tape.frame(record).description.methods().forward(tape.frame(record));
  tape.collect(root);
  backward(root);
  return 0;
}
