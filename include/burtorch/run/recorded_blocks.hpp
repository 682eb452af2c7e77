// burtorch/run/recorded_blocks.hpp — blocks of a tape as operations on single Values, for recorded gradients
// SPDX-License-Identifier: MIT
//
//   gradientsOf(loss, leaves, Kinks::decided, 0, ExpandBlocks{});
//
// The pullback of a block is a kernel over plain numbers. To be differentiated again, a block is recorded once
// more as what defines it (expand.hpp), and those operations are pulled. That is one node per number and
// operation: right for small views, slow for large ones.
#pragma once

#include <burtorch/block/blocks.hpp>
#include <burtorch/block/expand.hpp>
#include <burtorch/run/recorded.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <vector>

BURTORCH_BEGIN_NAMESPACE

namespace detail {

// A block as it stands on a tape; its parameters may be followed by space to work in.
template <class T, class... O> struct BlockOnTape {
  using V = View<T, O...>;
  std::vector<V> views;
  std::vector<std::size_t> parameters;
  std::vector<T> kept;

  BlockOnTape(Tape<T, O...>& tape, const typename Tape<T, O...>::Record& record) {
    const auto frame = tape.frame(record);
    const auto& d = frame.description;
    tape.forEachView(record, [&](std::size_t first, std::size_t rows, std::size_t cols) {
      views.push_back(V::at(tape, first, rows, cols));
    });
    const std::size_t head = std::remove_cvref_t<decltype(d)>::wordsFor(d.views(), 0);
    parameters.assign(d.parameters(), d.parameters() + (d.size() - head));
    kept.assign(frame.kept, frame.kept + d.constants());
  }
};

// What a kind of block is, given its description: a Value per result.
template <class Kind> struct Expanded;

template <class Op> struct Expanded<block::Map<Op>> {
  template <class B> static auto of(const B& b) { return expand::mapElements<Op>(b.views[0]); }
};
template <class Op> struct Expanded<block::Map2<Op>> {
  template <class B> static auto of(const B& b) {
    return expand::mapElements<Op>(b.views[0], b.views[1]);
  }
};
template <class Op, Form form> struct Expanded<block::MapNumber<Op, form>> {
  template <class B> static auto of(const B& b) {
    return expand::mapElementsWithNumber<Op, form>(b.views[0], b.kept[0]);
  }
};
template <class Op> struct Expanded<block::MapBounded<Op>> {
  template <class B> static auto of(const B& b) {
    return expand::mapElements<Op>(b.views[0], b.kept[0], b.kept[1]);
  }
};
template <> struct Expanded<block::Affine> { // views: w, b or none, x…
  template <class B> static auto of(const B& b) {
    using V = typename B::V;
    const bool hasBias = b.parameters[0] != 0;
    const auto x = std::span<const V>(b.views).subspan(hasBias ? 2 : 1);
    return expand::affine(b.views[0], x, hasBias ? b.views[1] : V{});
  }
};
template <> struct Expanded<block::MatMul> {
  template <class B> static auto of(const B& b) { return expand::matmul(b.views[0], b.views[1]); }
};
template <> struct Expanded<block::Gather> { // parameters: ids
  template <class B> static auto of(const B& b) {
    return expand::gather(b.views[0], std::span<const std::size_t>(b.parameters));
  }
};
template <> struct Expanded<block::GatherAffine> { // views: table, w, b or none
  template <class B> static auto of(const B& b) {
    using V = typename B::V;
    const V &table = b.views[0], &w = b.views[1];
    const std::size_t ids = b.parameters[2] * (w.cols() / table.cols());
    const auto all = std::span<const std::size_t>(b.parameters);
    return expand::gatherAffine(table, all.subspan(block::GatherAffine::first, ids), w,
                                b.parameters[0] != 0 ? b.views[2] : V{});
  }
};
template <> struct Expanded<block::Attention> { // parameters: heads, positions
  template <class B> static auto of(const B& b) {
    return expand::attention(b.views[0], b.parameters[0], b.parameters[1]);
  }
};
template <> struct Expanded<block::Concat> {
  template <class B> static auto of(const B& b) {
    return expand::concatColumns(std::span<const typename B::V>(b.views));
  }
};
template <> struct Expanded<block::LayerNorm> { // keeps eps first
  template <class B> static auto of(const B& b) {
    return expand::layerNorm(b.views[0], b.views[1], b.views[2], b.kept[0]);
  }
};
template <> struct Expanded<block::Softmax> {
  template <class B> static auto of(const B& b) { return expand::softmax(b.views[0]); }
};
template <> struct Expanded<block::LogSoftmax> {
  template <class B> static auto of(const B& b) { return expand::logSoftmax(b.views[0]); }
};
template <> struct Expanded<block::CrossEntropy> { // parameters: targets
  template <class B> static auto of(const B& b) {
    return expand::crossEntropy(b.views[0], std::span<const std::size_t>(b.parameters));
  }
};

} // namespace detail

// For gradientsOf: the results of a block as Values; none of a block that is not of block/.
struct ExpandBlocks {
  template <class T, class... O>
  std::vector<Value<T, O...>> operator()(Tape<T, O...>& tape,
                                         const typename Tape<T, O...>::Record& record) const {
    using Index = typename Tape<T, O...>::Index;
    using Block = detail::BlockOnTape<T, O...>;
    struct Known {
      const BlockMethods<T, Index>* methods;
      std::vector<Value<T, O...>> (*expanded)(const Block&);
    };
#define BURTORCH_KNOWN(...)                                                                        \
  Known{&blockMethods<__VA_ARGS__, T, Index>,                                                      \
        [](const Block& b) { return detail::Expanded<__VA_ARGS__>::of(b); }},
    static const std::array all{
#define BURTORCH_MAP(Name, function) BURTORCH_KNOWN(block::Map<op::Name>)
        BURTORCH_UNARY_OPERATIONS(BURTORCH_MAP)
#undef BURTORCH_MAP
#define BURTORCH_MAP(Name, function)                                                               \
  BURTORCH_KNOWN(block::Map2<op::Name>)                                                            \
  BURTORCH_KNOWN(block::MapNumber<op::Name, Form::nodeNumber>)                                     \
  BURTORCH_KNOWN(block::MapNumber<op::Name, Form::numberNode>)
            BURTORCH_BINARY_OPERATIONS(BURTORCH_MAP)
#undef BURTORCH_MAP
#define BURTORCH_MAP(Name, function) BURTORCH_KNOWN(block::MapBounded<op::Name>)
                BURTORCH_CLIPPED_OPERATIONS(BURTORCH_MAP)
#undef BURTORCH_MAP
                    BURTORCH_KNOWN(block::Affine) BURTORCH_KNOWN(block::MatMul)
                        BURTORCH_KNOWN(block::Gather) BURTORCH_KNOWN(block::GatherAffine)
                            BURTORCH_KNOWN(block::Attention) BURTORCH_KNOWN(block::Concat)
                                BURTORCH_KNOWN(block::LayerNorm) BURTORCH_KNOWN(block::Softmax)
                                    BURTORCH_KNOWN(block::LogSoftmax)
                                        BURTORCH_KNOWN(block::CrossEntropy)};
#undef BURTORCH_KNOWN
    const auto* const methods = &tape.frame(record).description.methods();
    for (const Known& known : all)
      if (known.methods == methods) return known.expanded(Block(tape, record));
    return {};
  }
};

BURTORCH_END_NAMESPACE
