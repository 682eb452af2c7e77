// burtorch/io/blocks.hpp — everyBlock: the blocks of block/, as graphs in files know them
// SPDX-License-Identifier: MIT
//
// A block is recorded anew by the function that records it in programs, which checks shapes and
// indices. Before that the number of its results and of the numbers it keeps is compared with the
// file's, so that no file makes a block that is larger than itself.
#pragma once

#include <burtorch/block/blocks.hpp>
#include <burtorch/io/graph.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <span>

BURTORCH_BEGIN_NAMESPACE

namespace detail {

// n·m, or more than anything is.
inline std::size_t times(std::size_t n, std::size_t m) {
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  return n != 0 && m > most / n ? most : n * m;
}

// What applies to a block with so many views and at least so many parameters.
template <class B> void demandOperands(const B& b, std::size_t views, std::size_t parameters) {
  b.demand(b.views.size() == views && b.parameters.size() >= parameters);
}

template <class B> ParameterGradients gradientsOf(const B& b, std::size_t parameter) {
  b.demand(b.parameters[parameter] <= 1);
  return static_cast<ParameterGradients>(b.parameters[parameter]);
}

// How a kind of block is recorded, given its description.
template <class Kind> struct RecordBlock;

template <class Op> struct RecordBlock<block::Map<Op>> {
  template <class B> static void record(const B& b) {
    demandOperands(b, 1, 0);
    b.demandSizes(b.views[0].size());
    mapElements<Op>(b.views[0]);
  }
};
template <class Op> struct RecordBlock<block::Map2<Op>> {
  template <class B> static void record(const B& b) {
    demandOperands(b, 2, 0);
    const auto &x = b.views[0], &y = b.views[1];
    b.demandSizes(times(std::max(x.rows(), y.rows()), std::max(x.cols(), y.cols())));
    mapElements<Op>(x, y);
  }
};
template <class Op, Form form> struct RecordBlock<block::MapNumber<Op, form>> {
  template <class B> static void record(const B& b) {
    demandOperands(b, 1, 0);
    b.demandSizes(b.views[0].size(), 1);
    mapElementsWithNumber<Op, form>(b.views[0], b.kept[0]);
  }
};

template <class Op> struct RecordBlock<block::MapBounded<Op>> {
  template <class B> static void record(const B& b) {
    demandOperands(b, 1, 0);
    b.demandSizes(b.views[0].size(), 2);
    mapElements<Op>(b.views[0], b.kept[0], b.kept[1]);
  }
};

template <> struct RecordBlock<block::Affine> { // views: w, b or none, x…
  template <class B> static void record(const B& b) {
    b.demand(b.parameters.size() == 2 && b.parameters[0] <= 1);
    const std::size_t inputs = 1 + b.parameters[0];
    b.demand(b.views.size() > inputs);
    const auto x = std::span(b.views).subspan(inputs);
    b.demandSizes(times(x[0].rows(), b.views[0].rows()));
    affine(b.views[0], x, inputs == 2 ? b.views[1] : decltype(b.views[0]){}, gradientsOf(b, 1));
  }
};
template <> struct RecordBlock<block::MatMul> {
  template <class B> static void record(const B& b) {
    demandOperands(b, 2, 0);
    b.demandSizes(times(b.views[0].rows(), b.views[1].cols()));
    matmul(b.views[0], b.views[1]);
  }
};
template <> struct RecordBlock<block::Gather> { // parameters: ids
  template <class B> static void record(const B& b) {
    demandOperands(b, 1, 1);
    b.demandSizes(times(b.parameters.size(), b.views[0].cols()));
    gather(b.views[0], std::span(b.parameters));
  }
};
template <> struct RecordBlock<block::GatherAffine> { // views: table, w, b or none
  template <class B> static void record(const B& b) {
    constexpr std::size_t first = block::GatherAffine::first;
    b.demand(b.parameters.size() > first && b.parameters[0] <= 1);
    demandOperands(b, 2 + b.parameters[0], first);
    const auto &table = b.views[0], &w = b.views[1];
    b.demand(table.size() != 0 && w.size() != 0);
    const auto ids = std::span(b.parameters).subspan(first);
    const std::size_t samples = b.parameters[2], positions = w.cols() / table.cols();
    b.demand(times(samples, positions) == ids.size());
    b.demandSizes(
        times(samples, w.rows()),
        block::GatherAffine::spaceFor(table.rows(), table.cols(), positions, samples).numbers);
    gatherAffine(table, ids, w, b.views.size() == 3 ? b.views[2] : decltype(b.views[0]){},
                 gradientsOf(b, 1));
  }
  template <class Frame> static std::size_t parameters(const Frame& f) { // without the space
    return block::GatherAffine::first + f.parameter(2) * (f.value(1).cols / f.value(0).cols);
  }
};
template <> struct RecordBlock<block::Attention> { // parameters: heads, positions
  template <class B> static void record(const B& b) {
    demandOperands(b, 1, 2);
    const auto& x = b.views[0];
    const std::size_t weights = times(times(x.rows(), b.parameters[0]), b.parameters[1]);
    b.demand(weights < std::numeric_limits<std::size_t>::max());
    b.demandSizes(x.size() / 3, 1 + weights);
    attention(x, b.parameters[0], b.parameters[1]);
  }
};
template <> struct RecordBlock<block::Concat> {
  template <class B> static void record(const B& b) {
    b.demand(!b.views.empty());
    std::size_t nodes = 0;
    for (const auto& view : b.views) nodes += view.size();
    b.demandSizes(nodes);
    concatColumns(std::span(b.views));
  }
};
template <> struct RecordBlock<block::LayerNorm> { // keeps eps, then two numbers per row
  template <class B> static void record(const B& b) {
    demandOperands(b, 3, 1);
    b.demandSizes(b.views[0].size(), 1 + times(2, b.views[0].rows()));
    layerNorm(b.views[0], b.views[1], b.views[2], b.kept[0], gradientsOf(b, 0));
  }
};
template <> struct RecordBlock<block::Softmax> {
  template <class B> static void record(const B& b) {
    demandOperands(b, 1, 0);
    b.demandSizes(b.views[0].size());
    softmax(b.views[0]);
  }
};
template <> struct RecordBlock<block::LogSoftmax> {
  template <class B> static void record(const B& b) {
    demandOperands(b, 1, 0);
    b.demandSizes(b.views[0].size());
    logSoftmax(b.views[0]);
  }
};
template <> struct RecordBlock<block::CrossEntropy> { // parameters: targets; keeps probabilities
  template <class B> static void record(const B& b) {
    demandOperands(b, 1, 0);
    b.demandSizes(b.views[0].rows(), b.views[0].size());
    crossEntropy(b.views[0], std::span(b.parameters));
  }
};

} // namespace detail

// One kind of block for a list to give to saveGraph and loadGraph.
template <class B, class T, class... O>
constexpr KnownBlock<T, O...> knownBlock(detail::Kind kind = detail::Kind::block) {
  using Index = typename Tape<T, O...>::Index;
  using Frame = BlockFrame<T, Index>;
  return {kind, B::name, &blockMethods<B, T, Index>,
          [](const Frame& f) -> std::size_t {
            if constexpr (requires { detail::RecordBlock<B>::parameters(f); })
              return detail::RecordBlock<B>::parameters(f);
            else
              return f.description.size() -
                     detail::BlockDescription<T, Index>::wordsFor(f.views(), 0);
          },
          [](const BlockInFile<T, O...>& b) { detail::RecordBlock<B>::record(b); }};
}

// All of them: everyBlock<double>(), or everyBlock<float, std::uint64_t>() for such a tape.
template <class T, class... O> KnownBlocks<T, O...> everyBlock() {
  using detail::Kind;
  static constexpr std::array all{
#define BURTORCH_MAP(Name, function) knownBlock<block::Map<op::Name>, T, O...>(Kind::map),
      BURTORCH_UNARY_OPERATIONS(BURTORCH_MAP)
#undef BURTORCH_MAP
#define BURTORCH_MAP(Name, function)                                                               \
  knownBlock<block::Map2<op::Name>, T, O...>(Kind::mapNodes),                                      \
      knownBlock<block::MapNumber<op::Name, Form::nodeNumber>, T, O...>(Kind::mapNumber),          \
      knownBlock<block::MapNumber<op::Name, Form::numberNode>, T, O...>(Kind::mapNumberOn),
          BURTORCH_BINARY_OPERATIONS(BURTORCH_MAP)
#undef BURTORCH_MAP
#define BURTORCH_MAP(Name, function) knownBlock<block::MapBounded<op::Name>, T, O...>(),
              BURTORCH_CLIPPED_OPERATIONS(BURTORCH_MAP)
#undef BURTORCH_MAP
                  knownBlock<block::Affine, T, O...>(),
      knownBlock<block::MatMul, T, O...>(),
      knownBlock<block::Gather, T, O...>(),
      knownBlock<block::GatherAffine, T, O...>(),
      knownBlock<block::Attention, T, O...>(),
      knownBlock<block::Concat, T, O...>(),
      knownBlock<block::LayerNorm, T, O...>(),
      knownBlock<block::Softmax, T, O...>(),
      knownBlock<block::LogSoftmax, T, O...>(),
      knownBlock<block::CrossEntropy, T, O...>()};
  return all;
}

BURTORCH_END_NAMESPACE
