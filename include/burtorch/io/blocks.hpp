// burtorch/io/blocks.hpp — everyBlock: the blocks of block/, as graphs in files know them
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/block/blocks.hpp>
#include <burtorch/io/graph.hpp>

#include <array>

BURTORCH_BEGIN_NAMESPACE

namespace detail {

// Blocks have a name of their own in files; those of every element share the names of operations.
template <class B> inline constexpr Kind kindOfBlock = Kind::block;
template <class O> inline constexpr Kind kindOfBlock<block::Map<O>> = Kind::map;
template <class O> inline constexpr Kind kindOfBlock<block::Map2<O>> = Kind::mapNodes;
template <class O, Form form>
inline constexpr Kind kindOfBlock<block::MapNumber<O, form>> =
    form == Form::nodeNumber ? Kind::mapNumber : Kind::mapNumberOn;

} // namespace detail

// One kind of block for a list to give to saveGraph and loadGraph.
template <class B, class T, class... O>
constexpr KnownBlock<T, O...> knownBlock(detail::Kind kind = detail::kindOfBlock<B>) {
  using Index = typename Tape<T, O...>::Index;
  return {kind, B::name, &blockMethods<B, T, Index>,
          [](const BlockFrame<T, Index>& f) { return block::storedParameters<B>(f); },
          [](const BlockParts<T, O...>& parts) { B::record(parts); }};
}

// All of them: everyBlock<double>(), or everyBlock<float, std::uint64_t>() for such a tape.
template <class T, class... O> KnownBlocks<T, O...> everyBlock() {
  const auto known = []<class... B>(block::List<B...>) -> KnownBlocks<T, O...> {
    static constexpr std::array all{knownBlock<B, T, O...>()...};
    return all;
  };
  return known(block::All{});
}

BURTORCH_END_NAMESPACE
