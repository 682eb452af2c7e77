// burtorch/tape/labels.hpp — names of nodes, for people
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/base/config.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

BURTORCH_BEGIN_NAMESPACE

namespace detail {

// Sorted by index, because they are mostly given in that order and dropped from
// the end. A debugging aid on the heap, also for tapes in borrowed memory.
class Labels {
public:
#if BURTORCH_LABELS
  void set(std::size_t node, std::string label) {
    auto at = find(node);
    if (at != labels_.end() && at->first == node) at->second = std::move(label);
    else labels_.emplace(at, node, std::move(label));
  }
  std::string get(std::size_t node) const {
    auto at = const_cast<Labels*>(this)->find(node);
    return at != labels_.end() && at->first == node ? at->second : std::string();
  }
  void truncate(std::size_t nodes) {
    while (!labels_.empty() && labels_.back().first >= nodes) labels_.pop_back();
  }
  // Keeps the labels of nodes for which keep(node) is true, and moves each to newIndex(node).
  template <class Keep, class NewIndex> void remap(const Keep& keep, const NewIndex& newIndex) {
    std::erase_if(labels_, [&](const auto& label) { return !keep(label.first); });
    for (auto& label : labels_) label.first = newIndex(label.first);
  }

private:
  std::vector<std::pair<std::size_t, std::string>>::iterator find(std::size_t node) {
    return std::ranges::lower_bound(labels_, node, {}, &std::pair<std::size_t, std::string>::first);
  }
  std::vector<std::pair<std::size_t, std::string>> labels_;
#else
  template <class Text> void set(std::size_t, const Text&) {}
  std::string get(std::size_t) const { return {}; }
  void truncate(std::size_t) {}
  template <class Keep, class NewIndex> void remap(const Keep&, const NewIndex&) {}
#endif
};

} // namespace detail

BURTORCH_END_NAMESPACE
