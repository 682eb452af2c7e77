// burtorch/tape/rebuild.hpp — a tape made from another one, or from records that something else describes
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/op/record.hpp>
#include <burtorch/tape/tape.hpp>

#include <algorithm>
#include <cstddef>

BURTORCH_BEGIN_NAMESPACE

namespace detail {

struct TapeRebuild {
  // Appends to an empty tape what another one holds up to a node, with room for more constants. All
  // numbers in the side arrays come along: those that no record refers to go with the next collect().
  template <class T, class... O, class... P>
  static void copy(const Tape<T, O...>& from, std::size_t nodes, std::size_t moreConstants,
                   Tape<T, P...>& to) {
    const auto isWithin = [&](const auto& r) { return r.result < nodes; };
    const auto records = static_cast<std::size_t>(
        std::ranges::partition_point(from.records(), isWithin) - from.records().begin());
    const Extent extent{nodes, records, from.used().constants, from.used().operands};
    to.makeRoomFor(extent + Extent{0, 0, moreConstants, 0});
    to.cursor_.set(extent);
    to.placeMany(0, nodes);
    std::copy_n(from.values_, nodes, to.values_);
    std::copy_n(from.constants_, extent.constants, to.constants_);
    std::copy_n(from.operands_, extent.operands, to.operands_);
    for (std::size_t r = 0; r < records; ++r) {
      const auto& record = from.records_[r];
      to.records_[r] = {record.result, record.a, record.b, record.word};
    }
  }
  // How much of the last two arrays, and of the records, is used from now on.
  template <class T, class... O>
  static void shrink(Tape<T, O...>& tape, std::size_t records, std::size_t constants) {
    tape.cursor_.set({tape.used().nodes, records, constants, tape.used().operands});
  }

  // Appends any record but a block's, of n operands if it has many: fields.node(n) is the first of n
  // neighbours, fields.number() the next plain number.
  template <class T, class... O, class Fields>
  static auto pushRecord(Tape<T, O...>& tape, Code code, std::size_t n, const T& result,
                         const Fields& fields) {
    using Index = typename Tape<T, O...>::Index;
    const Extent need{1, 1, storedNumbers(code), op::storedOperands(code, n)};
    tape.demandCountable(need);
    Extent at = tape.claim(need);
    tape.setRecord(at, code, 0, static_cast<Index>(n));
    const Index node = tape.place(at.nodes, result);
    tape.eachField(tape.records_[at.records],
                   Filling<T, Index, Fields>{{}, tape.constants_, at, fields});
    return node;
  }

private:
  static constexpr std::size_t storedNumbers(Code code) {
    const Layout layout = op::layoutOf(code);
    if (layout == Layout::nodeNumbers) return 2;
    return layout == Layout::nodeNumber || layout == Layout::numberNode ? 1 : 0;
  }

  template <class T, class Index, class Fields> struct Filling : EachField {
    T* constants;
    Extent& at; // the next free places
    const Fields& fields;
    void node(Index& i) const { i = fields.node(1); }
    void run(Index& first, std::size_t n) const { first = n == 0 ? Index{0} : fields.node(n); }
    void numbers(Index& place, std::size_t n) const {
      place = static_cast<Index>(at.constants);
      for (; n != 0; --n) constants[at.constants++] = fields.number();
    }
    void stored(Index& place, std::size_t) const { place = static_cast<Index>(at.operands); }
  };
};

} // namespace detail

BURTORCH_END_NAMESPACE
