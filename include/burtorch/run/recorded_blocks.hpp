// burtorch/run/recorded_blocks.hpp — blocks of a tape as operations on single Values, for recorded gradients
// SPDX-License-Identifier: MIT
//
//   gradientsOf(loss, leaves, Kinks::decided, 0, ExpandBlocks{});
//
// The pullback of a block is a kernel over plain numbers. To be differentiated again, a block is recorded once
// more as its definition says, and those operations are pulled. That is one node per number and operation: right
// for small views, slow for large ones.
#pragma once

#include <burtorch/block/blocks.hpp>
#include <burtorch/run/recorded.hpp>

#include <vector>

BURTORCH_BEGIN_NAMESPACE

// For gradientsOf: the results of a block as Values; none of a block that is not of block/.
struct ExpandBlocks {
  template <class T, class... O>
  std::vector<Value<T, O...>> operator()(Tape<T, O...>& tape,
                                         const typename Tape<T, O...>::Record& record) const {
    const auto among = [&]<class... B>(block::List<B...>) {
      const auto* const methods = &tape.frame(record).description.methods();
      std::vector<Value<T, O...>> results;
      (void)((methods == &blockMethods<B, T, typename Tape<T, O...>::Index> &&
              (results = block::expandedAs<B>(tape, record), true)) ||
             ...);
      return results;
    };
    return among(block::All{});
  }
};

BURTORCH_END_NAMESPACE
