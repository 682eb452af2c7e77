// burtorch/block/expand.hpp — blocks on a tape as operations on single Values
// SPDX-License-Identifier: MIT
//
//   const auto y = softmax(x);
//   const auto same = expanded(y);   // Values, made of exp, / and so on
//
// What is recorded is the definition that each block brings: one node per number and operation. That is
// right for small views, slow for large ones.
#pragma once

#include <burtorch/block/blocks.hpp>

#include <cstddef>
#include <string>
#include <vector>

BURTORCH_BEGIN_NAMESPACE

namespace detail {

template <class B, class T, class... O>
std::vector<Value<T, O...>> expandedAs(Tape<T, O...>& tape,
                                       const typename Tape<T, O...>::Record& record) {
  const auto frame = tape.frame(record);
  const auto& d = frame.description;
  BlockParts<T, O...> parts;
  tape.forEachView(record, [&](std::size_t first, std::size_t rows, std::size_t cols) {
    parts.views.push_back(View<T, O...>::at(tape, first, rows, cols));
  });
  parts.parameters.assign(d.parameters(), d.parameters() + block::storedParameters<B>(frame));
  parts.kept.assign(frame.kept, frame.kept + d.constants());
  parts.results = frame.count;
  return B::expanded(parts);
}

} // namespace detail

// For gradientsOf: the results of a block as Values; none of a block that is not of block/.
struct ExpandBlocks {
  template <class T, class... O>
  std::vector<Value<T, O...>> operator()(Tape<T, O...>& tape,
                                         const typename Tape<T, O...>::Record& record) const {
    const auto among = [&]<class... B>(block::List<B...>) {
      const auto* const methods = &tape.frame(record).description.methods();
      std::vector<Value<T, O...>> results;
      (void)((methods == &blockMethods<B, T, typename Tape<T, O...>::Index> &&
              (results = detail::expandedAs<B>(tape, record), true)) ||
             ...);
      return results;
    };
    return among(block::All{});
  }
};

// The elements of a view of results, as the definition of their block makes them.
template <class T, class... O> std::vector<Value<T, O...>> expanded(const View<T, O...>& results) {
  if (results.isEmpty()) return {};
  auto& tape = results.tape();
  const std::size_t first = results.sysGetRawNodeIndex(), position = tape.recordOf(first);
  std::vector<Value<T, O...>> all;
  std::size_t skipped = 0;
  if (position != tape.records().size() && tape.records()[position].isBlock()) {
    const auto record = tape.records()[position]; // a copy: the records move as they grow
    skipped = first - record.firstResult();
    all = ExpandBlocks{}(tape, record);
  }
  if (all.size() < skipped + results.size())
    detail::fail(ErrorKind::badArgument, "expanded: a view of results of a block in block/");
  return {all.begin() + static_cast<std::ptrdiff_t>(skipped),
          all.begin() + static_cast<std::ptrdiff_t>(skipped + results.size())};
}

BURTORCH_END_NAMESPACE
