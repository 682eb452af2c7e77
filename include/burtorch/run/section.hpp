// burtorch/run/section.hpp — a stretch of a tape, taken off it and run again above the same nodes
// SPDX-License-Identifier: MIT
//
//   const auto mark = tape.mark();                  // parameters are older
//   const View x(tape, 32, 8);                      // data, of 32 samples
//   const auto loss = reduceMean(sqr(net(x)));
//   Section section(tape, mark, NodeRange{loss.sysGetRawNodeIndex(), 1});
//   tape.rewind(mark);
//   section.assignGradients(parameters);            // of these runs of nodes; others get none
//   auto space = section.space(tape);               // where it runs: here, in the tape's free memory
//   std::copy_n(numbers, 32 * 8, space.values + section.first());    // x is its first nodes
//   section.forward(space);
//   section.backward(space, 1.0, SumPart::first);
//
// Parameters stay where they are: nothing is copied in or out, and their gradients are on the tape
// afterwards. What lies between them and the loss is computed in the tape's memory beyond its last
// node, so a run appends nothing, and sections of one tape share that memory. If nodes were appended meanwhile,
// space() moves the section behind them.
//
// The records are run by the same functions that recorded them, in the same order, so the numbers are those of
// the eager program.
//
// samples() says what becomes of n samples that lie one after the other in the data: whether the root is their
// mean or their sum, so that a batch can be run in parts, and if not, which operation mixes them.
#pragma once

#include <burtorch/backward.hpp>
#include <burtorch/base/config.hpp>
#include <burtorch/base/error.hpp>
#include <burtorch/block/affine.hpp>
#include <burtorch/op/record.hpp>
#include <burtorch/op/table.hpp>
#include <burtorch/tape/sweep.hpp>
#include <burtorch/tape/tape.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

BURTORCH_BEGIN_NAMESPACE

// Neighbouring nodes.
struct NodeRange {
  std::size_t first, count;
  std::size_t end() const { return first + count; }
};

// Of gradients that are summed over several runs: the first replaces what there was.
enum class SumPart : std::uint8_t { first, more };

// What a root is to the samples in the data.
enum class Samples : std::uint8_t {
  shared, // nothing: it does not depend on them
  apart,  // as many parts, one after the other, each of its own sample
  mean,   // the mean of something of each (and what depends on no sample)
  sum,
  mixed,
};

template <Scalar T, class... Options> class Section {
public:
  using TapeType = Tape<T, Options...>;
  using Index = typename TapeType::Index;
  using Record = typename TapeType::Record;
  using Columns = detail::TapeAccess::Columns<T, Index>;
  using Description = detail::BlockDescription<T, Index>;

  // What was recorded since the mark, up to these nodes: the results of the section.
  Section(TapeType& tape, const typename TapeType::Mark& mark, NodeRange results)
      : base_(mark.nodes()), at_(base_), root_(results.end() - 1 - base_), results_(results.count) {
    const auto all = tape.records();
    const std::size_t last = tape.recordOf(results.end() - 1);
    if (results.first < base_ || last == all.size())
      detail::fail(ErrorKind::badArgument, "nothing was computed that could be run again");
    nodes_ = all[last].result + std::size_t{1} - base_;
    firstRecord_ = static_cast<std::size_t>(
        std::ranges::partition_point(all, [&](const Record& r) { return r.result < base_; }) -
        all.begin());
    records_.assign(all.begin() + offset(firstRecord_), all.begin() + offset(last + 1));
    removeDead(tape);
    for (const Record& record : records_) tape.eachField(record, DemandOld{{}, tape, base_});
    operands_.assign(tape.operands().begin(), tape.operands().end());
    constants_.assign(tape.constants().begin(), tape.constants().end());
    dropOldSides();
    const std::span<const T> values = tape.values();
    std::size_t node = base_;
    const auto keep = [&](std::size_t end) { // leaves
      if (node < end) leaves_.push_back({node - base_, end - node});
    };
    for (std::size_t r = firstRecord_; r <= last; ++r) {
      keep(all[r].firstResult());
      node = all[r].result + std::size_t{1};
    }
    for (const NodeRange& each : leaves_)
      leafValues_.insert(leafValues_.end(), values.begin() + offset(base_ + each.first),
                         values.begin() + offset(base_ + each.end()));
    for (const Record& record : records_)
      if (record.isBlock() && description(record).methods().traits->key != Traits::none)
        drawing_.push_back(record.a +
                           placeOfParameter(record, description(record).methods().traits->key));
  }

  std::size_t nodes() const { return nodes_; }
  std::size_t bytes() const { // that a run touches, beside parameters
    return (2 * nodes_ + constants_.size()) * sizeof(T);
  }
  std::span<const Record> records() const { return records_; }
  bool draws() const { return !drawing_.empty(); } // random numbers

  // ---- before runs --------------------------------------------------------------------------------

  // These leaves are data, from their first on: they are written before each run, not restored to what they
  // were when recording.
  void setData(std::span<const NodeRange> data) {
    std::vector<NodeRange> constant;
    std::vector<T> numbers;
    std::size_t at = 0;
    for (const NodeRange& leaf : leaves_) {
      for (std::size_t i = leaf.first; i < leaf.end(); ++i, ++at) {
        const bool isData = std::ranges::any_of(data, [&](const NodeRange& each) {
          return i + base_ >= each.first && i + base_ < each.end();
        });
        if (isData) continue;
        append(constant, i);
        numbers.push_back(leafValues_[at]);
      }
    }
    leaves_ = std::move(constant);
    leafValues_ = std::move(numbers);
  }

  // The nodes that get gradients, beside those of the section itself; runs in order. Where the newest record that
  // uses a parameter can assign its gradient, nobody has to clear it.
  void assignGradients(std::span<const NodeRange> parameters) {
    const auto isParameter = [&](std::size_t first, std::size_t count) {
      return std::ranges::any_of(parameters, [&](const NodeRange& each) {
        return first >= each.first && first + count <= each.end();
      });
    };
    std::vector<bool> used(base_);
    std::vector<bool> assigned(base_);
    for (std::size_t r = records_.size(); r-- != 0;) {
      const Record& record = records_[r];
      if (record.isBlock()) {
        const Description d = description(record);
        const auto frame = frameOf(columnsForShape(), record);
        const auto eachOld = [&](const auto& f) {
          for (std::size_t v = 0; v < d.views(); ++v)
            if (d.view(v)[0] < at_) f(v, std::size_t{d.view(v)[0]}, d.viewSize(v));
        };
        eachOld([&](std::size_t v, std::size_t first, std::size_t n) {
          if (!isParameter(first, n)) d.hide(v);
        });
        if (d.methods().traits->isAssigned != nullptr &&
            d.methods().traits->gradients != Traits::none) {
          bool can = true, any = false;
          std::vector<NodeRange> ranges;
          eachOld([&](std::size_t v, std::size_t first, std::size_t n) {
            const bool clean =
                std::none_of(used.begin() + offset(first), used.begin() + offset(first + n),
                             [](bool u) { return u; });
            const bool apart = std::ranges::none_of(ranges, [&](const NodeRange& other) {
              return first < other.end() && other.first < first + n;
            });
            ranges.push_back({first, n});
            if (!d.methods().traits->isAssigned(frame, v)) can = can && apart;
            else {
              can = can && clean && apart && isParameter(first, n);
              any = true;
            }
          });
          // What is assigned must all be parameters: an inner weight's gradient adds up.
          for (std::size_t v = 0; v < d.views(); ++v)
            if (d.view(v)[0] >= at_ && d.methods().traits->isAssigned(frame, v)) can = false;
          if (can && any) {
            assigning_.push_back(record.a +
                                 placeOfParameter(record, d.methods().traits->gradients));
            eachOld([&](std::size_t v, std::size_t first, std::size_t n) {
              if (d.methods().traits->isAssigned(frame, v))
                std::fill_n(assigned.begin() + offset(first), n, true);
            });
          }
        }
        eachOld([&](std::size_t, std::size_t first, std::size_t n) {
          std::fill_n(used.begin() + offset(first), n, true);
        });
      } else {
        detail::eachField(record, operands_.data(), NoteOld{{}, used, at_});
      }
    }
    for (const NodeRange& each : parameters)
      for (std::size_t i = each.first; i < each.end(); ++i)
        if (!assigned[i]) append(cleared_, i);
    for (std::size_t i = 0; i < used.size(); ++i)
      if (used[i]) append(outside_, i);
    for (const std::size_t word : assigning_)
      operands_[word] = static_cast<Index>(ParameterGradients::accumulate);
  }

  // Where in records() the record is that stood there on the tape; none if it is no part of the section.
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  std::size_t placeOf(std::size_t record) const {
    const std::size_t i = record - firstRecord_; // of older ones too large
    return i < places_.size() ? places_[i] : none;
  }
  // Where the integers of a block stand among the operands, from one of its parameters on: to be written before
  // a run.
  std::size_t wordOf(std::size_t record, std::size_t parameter) const {
    return records_[record].a + placeOfParameter(records_[record], parameter);
  }
  // Nodes outside of it that it reads.
  const std::vector<NodeRange>& outside() const { return outside_; }

  // ---- runs ---------------------------------------------------------------------------------------

  // Where a run takes place: columns with room for all nodes up to the last of the section.
  Columns space(TapeType& tape) {
    moveTo(std::max(tape.size(), base_));
    tape.makeRoomFor(
        {at_ + nodes_, tape.used().records, tape.used().constants, tape.used().operands});
    Columns c = detail::TapeAccess::columns(tape);
    c.constants = constants_.data();
    c.operands = operands_.data();
    return c;
  }
  // What a thread of its own needs: memory for nodes, which all its sections share, and a section's other arrays.
  struct Memory {
    std::vector<T> values, grads;
  };
  struct Sides {
    std::vector<T> constants;
    std::vector<Index> operands;
    std::size_t at = static_cast<std::size_t>(-1);
  };
  Columns space(Memory& memory, Sides& sides) const { // after space(tape)
    if (memory.values.size() < at_ + nodes_) {
      memory.values.resize(at_ + nodes_);
      memory.grads.resize(at_ + nodes_);
    }
    if (sides.at != at_) {
      sides.constants = constants_;
      sides.operands = operands_;
      sides.at = at_;
    }
    return {memory.values.data(), memory.grads.data(), sides.constants.data(),
            sides.operands.data()};
  }

  std::size_t first() const { return at_; } // of its nodes, since the last space()
  T result(const Columns& c) const { return c.values[at_ + root_]; }
  std::span<const T> results(const Columns& c) const {
    return {c.values + at_ + root_ + 1 - results_, results_};
  }

  // Random numbers are drawn anew: the same for the same key.
  void draw(const Columns& c, std::uint64_t key) const {
    for (const std::size_t word : drawing_) {
      key = key * 6364136223846793005u + 1442695040888963407u;
      const std::uint64_t mixed = (key ^ (key >> 29)) * 0xbf58476d1ce4e5b9u;
      c.operands[word] = static_cast<Index>(static_cast<std::uint32_t>(mixed >> 32));
      c.operands[word + 1] = static_cast<Index>(static_cast<std::uint32_t>(mixed));
    }
  }

  void forward(const Columns& c) const {
    auto number = leafValues_.begin();
    for (const NodeRange& leaf : leaves_) {
      std::copy_n(number, leaf.count, c.values + at_ + leaf.first);
      number += offset(leaf.count);
    }
    for (const Record& record : records_) {
      if (record.isBlock()) {
        const auto frame = frameOf(c, record);
        frame.description.methods().forward(frame);
      } else {
        compute(c, record);
      }
    }
  }

  enum class Gradients : std::uint8_t {
    first,
    more
  }; // of a sum: the first part replaces what there was
  void backward(const Columns& c, const T& seed, SumPart part) const {
    const bool isFirst = part == SumPart::first;
    for (const std::size_t word : assigning_)
      c.operands[word] =
          static_cast<Index>(isFirst ? ParameterGradients::assign : ParameterGradients::accumulate);
    if (isFirst)
      for (const NodeRange& each : cleared_) std::fill_n(c.grads + each.first, each.count, T(0));
    std::fill_n(c.grads + at_, nodes_, T(0));
    detail::Pull pull(c, detail::Everything{}, at_ + root_, seed);
    for (auto record = records_.rbegin(); record != records_.rend(); ++record) pull(*record);
  }

  // ---- samples ------------------------------------------------------------------------------------

  struct Mixing {
    Samples root;
    std::string operation; // that mixes them
  };
  // The data are nodes of the section as it was recorded; they hold n samples each, one after the other. The
  // integers that some records take are data, too: those from `integers` on, as many for each sample.
  struct IntegerData {
    std::size_t record;
    bool areInOrder; // sample by sample
  };
  Mixing samples(std::size_t n, std::span<const NodeRange> data,
                 std::span<const IntegerData> integers) const {
    std::vector<Tag> tags(nodes_, Tag{Samples::shared, 0});
    const auto mark = [&](std::size_t first, std::size_t count) {
      for (std::size_t i = 0; i < count; ++i)
        tags[first + i] = {Samples::apart, static_cast<std::uint32_t>(i / (count / n))};
    };
    for (const NodeRange& each : data) {
      if (each.count % n != 0) return {Samples::mixed, "the data"};
      mark(each.first - base_, each.count);
    }
    for (std::size_t r = 0; r < records_.size(); ++r) {
      const Record& record = records_[r];
      const std::size_t first = record.firstResult() - at_;
      if (!record.isBlock()) {
        const Tag tag = tagOf(record, tags, n);
        if (tag.kind == Samples::mixed) return {Samples::mixed, nameOf(record)};
        tags[first] = tag;
        continue;
      }
      const Description d = description(record);
      const auto frame = frameOf(columnsForShape(), record);
      bool depends = false;
      for (std::size_t v = 0; v < d.views(); ++v) {
        const Samples kind = kindOf(d.view(v)[0], d.viewSize(v), tags, n);
        if (kind == Samples::shared) continue;
        const auto keeps = d.methods().traits->keepsSamples;
        if (kind != Samples::apart || keeps == nullptr || !keeps(frame, v, n))
          return {Samples::mixed, nameOf(record)};
        depends = true;
      }
      for (const IntegerData& each : integers)
        if (each.record == r) {
          if (!each.areInOrder) return {Samples::mixed, nameOf(record)};
          depends = true;
        }
      if (!depends) continue;
      if (record.results() % n != 0) return {Samples::mixed, nameOf(record)};
      mark(first, record.results());
    }
    if (results_ != 1) return {kindOf(at_ + root_ + 1 - results_, results_, tags, n), ""};
    if (tags[root_].kind == Samples::apart && n == 1) return {Samples::mean, ""};
    if (tags[root_].kind == Samples::apart)
      return {Samples::mixed, "the loss, which is of one sample"};
    return {tags[root_].kind, ""};
  }

private:
  using Traits = BlockTraits<T, Index>;
  struct Tag {
    Samples kind;
    std::uint32_t sample;
    friend bool operator==(const Tag&, const Tag&) = default;
  };

  static std::ptrdiff_t offset(std::size_t n) { return static_cast<std::ptrdiff_t>(n); }
  static void append(std::vector<NodeRange>& ranges, std::size_t node) {
    if (!ranges.empty() && ranges.back().end() == node) ++ranges.back().count;
    else ranges.push_back({node, 1});
  }

  // Leaves out what the results do not depend on.
  void removeDead(const TapeType& tape) {
    std::vector<bool> needed(nodes_);
    std::fill_n(needed.begin() + offset(root_ + 1 - results_), results_, true);
    places_.assign(records_.size(), none);
    for (std::size_t r = records_.size(); r-- != 0;) {
      const auto first = needed.begin() + offset(records_[r].firstResult() - base_);
      if (std::none_of(first, first + offset(records_[r].results()), [](bool n) { return n; }))
        continue;
      places_[r] = 0;
      tape.forEachOperand(records_[r], [&](std::size_t i) {
        if (i >= base_) needed[i - base_] = true;
      });
    }
    std::size_t kept = 0;
    for (std::size_t r = 0; r < places_.size(); ++r)
      if (places_[r] != none) {
        records_[kept] = records_[r];
        places_[r] = kept++;
      }
    records_.resize(kept);
  }

  // What a section takes from outside was not computed there: its gradient would end.
  struct DemandOld : detail::EachField {
    const TapeType& tape;
    std::size_t base;
    void node(Index i) const {
      if (i < base && tape.recordOf(i) != tape.records().size())
        detail::fail(
            ErrorKind::badArgument,
            std::string("a recorded function uses the result of ") +
                tape.namesOf(tape.recordOf(i)).function +
                " that was computed outside of it: no gradient would pass through. Compute "
                "it inside, or take its number");
    }
    void run(Index first, std::size_t n) const {
      for (std::size_t i = 0; i < n; ++i) node(static_cast<Index>(first + i));
    }
  };
  struct NoteOld : detail::EachField {
    std::vector<bool>& used;
    std::size_t base;
    void node(Index i) const {
      if (i < base) used[i] = true;
    }
    void run(Index first, std::size_t n) const {
      for (std::size_t i = 0; i < n; ++i) node(static_cast<Index>(first + i));
    }
  };
  struct Shift : detail::EachField {
    std::size_t from, by; // nodes from there on
    void node(Index& i) const {
      if (i >= from) i = static_cast<Index>(i + by);
    }
    void run(Index& first, std::size_t) const { node(first); }
  };

  Description description(const Record& record) const {
    return Description(const_cast<Index*>(operands_.data()) + record.a);
  }
  static std::size_t placeOfParameter(const Description& d, std::size_t parameter) {
    return Description::wordsFor(d.views(), 0) + parameter;
  }
  std::size_t placeOfParameter(const Record& record, std::size_t parameter) const {
    return placeOfParameter(description(record), parameter);
  }
  static BlockFrame<T, Index> frameOf(const Columns& c, const Record& record) {
    const Description d(c.operands + record.a);
    T* const kept = d.constants() == 0 ? c.constants : c.constants + d.constantsPlace();
    return {c.values, c.grads, kept, d, record.firstResult(), record.results()};
  }
  Columns columnsForShape() const { // for blocks that are asked about their shapes only
    static T nowhere{};
    return {&nowhere, &nowhere, const_cast<T*>(constants_.data()),
            const_cast<Index*>(operands_.data())};
  }
  std::string nameOf(const Record& record) const {
    return record.isBlock() ? description(record).methods().name
                            : namesOf(record.operation()).function;
  }

  // Entries of the side arrays that older records use are left out: those of the section come last.
  void dropOldSides() {
    std::size_t operands = operands_.size(), constants = constants_.size();
    struct Oldest : detail::EachField {
      std::size_t &operands, &constants;
      void node(Index) const {}
      void run(Index, std::size_t) const {}
      void numbers(Index place, std::size_t) const {
        constants = std::min<std::size_t>(constants, place);
      }
      void kept(Index place, std::size_t) const { numbers(place, 0); }
      void stored(Index place, std::size_t) const {
        operands = std::min<std::size_t>(operands, place);
      }
    } oldest{{}, operands, constants};
    eachSide(oldest);
    struct Less : detail::EachField {
      std::size_t operands, constants;
      void node(Index) const {}
      void run(Index, std::size_t) const {}
      void numbers(Index& place, std::size_t) const {
        place = static_cast<Index>(place - constants);
      }
      void kept(Index& place, std::size_t) const { numbers(place, 0); }
    };
    eachSide(Less{{}, 0, constants});
    for (Record& record : records_) {
      const Layout layout = op::layoutOf(record.code());
      if (layout == Layout::block || op::storedOperands(record.code(), record.b) != 0)
        record.a = static_cast<Index>(record.a - operands);
    }
    operands_.erase(operands_.begin(), operands_.begin() + offset(operands));
    constants_.erase(constants_.begin(), constants_.begin() + offset(constants));
    constants_.push_back(T(0)); // so that there is a place, where none is needed
  }
  template <class Visit> void eachSide(const Visit& visit) {
    for (Record& record : records_) {
      if (record.isBlock()) {
        const Description d = description(record);
        if constexpr (requires { visit.stored(record.a, 0); }) visit.stored(record.a, d.size());
        visit.kept(d.constantsPlace(), d.constants());
      } else {
        detail::eachField(record, operands_.data(), visit);
      }
    }
  }

  // From now on its nodes begin there.
  void moveTo(std::size_t first) {
    if (first <= at_) return;
    const Shift shift{{}, at_, first - at_};
    for (Record& record : records_) {
      record.result = static_cast<Index>(record.result + shift.by);
      if (record.isBlock()) {
        const Description d = description(record);
        for (std::size_t v = 0; v < d.views(); ++v) shift.node(d.view(v)[0]);
      } else {
        detail::eachField(record, operands_.data(), shift);
      }
    }
    at_ = first;
  }

  BURTORCH_NOINLINE static void compute(const Columns& c, const Record& record) {
    detail::dispatch(record.word, [&]<class O, Form F>(op::Instance<O, F>) {
      if constexpr (op::layoutOf<O>(F) != Layout::block)
        c.values[record.result] = static_cast<T>(detail::evaluate<O, F>(
            record, detail::TapeSource<T, Index>{c.values, c.constants, c.operands}));
    });
  }

  // What a run of nodes is to the samples.
  Samples kindOf(std::size_t first, std::size_t count, const std::vector<Tag>& tags,
                 std::size_t n) const {
    if (first < at_) return Samples::shared;
    const auto at = [&](std::size_t i) -> const Tag& { return tags[first - at_ + i]; };
    bool shared = true, apart = count % n == 0;
    for (std::size_t i = 0; i < count; ++i) {
      shared = shared && at(i).kind == Samples::shared;
      apart = apart && at(i).kind == Samples::apart && at(i).sample == i / (count / n);
    }
    return shared ? Samples::shared : apart ? Samples::apart : Samples::mixed;
  }

  struct Join : detail::EachField {
    const std::vector<Tag>& tags;
    std::size_t base;
    std::vector<Tag>& found;
    void node(Index i) const {
      found.push_back(i < base ? Tag{Samples::shared, 0} : tags[i - base]);
    }
    void run(Index first, std::size_t n) const {
      for (std::size_t i = 0; i < n; ++i) node(static_cast<Index>(first + i));
    }
  };
  // Of the result of an operation on single nodes.
  Tag tagOf(const Record& record, const std::vector<Tag>& tags, std::size_t n) const {
    std::vector<Tag> found;
    Record copy = record;
    detail::eachField(copy, const_cast<Index*>(operands_.data()), Join{{}, tags, at_, found});
    constexpr Tag shared{Samples::shared, 0}, mixed{Samples::mixed, 0};
    const auto all = [&](auto&& is) { return std::ranges::all_of(found, is); };
    if (all([&](const Tag& t) { return t == shared; })) return shared;
    const Op op = record.operation();
    const Layout layout = op::layoutOf(record.code());
    if (layout == Layout::run || layout == Layout::list) {
      const bool apart = found.size() % n == 0 && all([&](const Tag& t) {
                           const auto i = static_cast<std::size_t>(&t - found.data());
                           return t.kind == Samples::apart && t.sample == i / (found.size() / n);
                         });
      if (apart && n > 1 &&
          (op == Op::eMeanVarying || op == Op::eNegativeMeanVarying ||
           op == Op::eMeanSquaresVarying))
        return {Samples::mean, 0};
      if (apart && n > 1 && (op == Op::eAddVarying || op == Op::eSumOfSquaresVarying))
        return {Samples::sum, 0};
    }
    // Of one sample, and of what is shared.
    const auto one = std::ranges::find(found, Samples::apart, &Tag::kind);
    if (one != found.end() && all([&](const Tag& t) { return t == shared || t == *one; }))
      return *one;
    // Means and sums, as far as they stay so.
    const bool isSum = op == Op::eBinaryAdd || op == Op::eBinarySub || op == Op::eAddVarying;
    if (isSum &&
        all([](const Tag& t) { return t.kind == Samples::mean || t.kind == Samples::shared; }))
      return {Samples::mean, 0};
    if (isSum && all([](const Tag& t) { return t.kind == Samples::sum; })) return {Samples::sum, 0};
    if (op == Op::eNegative) return found[0];
    // A mean times a number is a mean. So is a sum, unless the number is one over the samples: nobody knows.
    const bool isProduct =
        op == Op::eBinaryMult || (op == Op::eBinaryDiv && !(found.back() != shared));
    const auto means = std::ranges::count(found, Samples::mean, &Tag::kind);
    if ((isProduct || (op == Op::eBinaryDiv && layout == Layout::nodeNumber)) && means == 1 &&
        all([](const Tag& t) { return t.kind == Samples::mean || t.kind == Samples::shared; }))
      return {Samples::mean, 0};
    return mixed;
  }

  std::size_t base_, at_,
      nodes_ = 0;               // where its nodes began, where they begin now, how many there are
  std::size_t root_, results_;  // the last of the results, counted from there; how many they are
  std::size_t firstRecord_ = 0; // on the tape
  std::vector<std::size_t> places_; // of the records there were
  std::vector<Record> records_;
  std::vector<Index> operands_;
  std::vector<T> constants_, leafValues_;
  std::vector<NodeRange> leaves_;  // constants of the section, counted from its first node
  std::vector<NodeRange> cleared_; // gradients of parameters that nobody assigns
  std::vector<NodeRange> outside_; // that it reads
  std::vector<std::size_t> assigning_, drawing_; // words among the operands
};

BURTORCH_END_NAMESPACE
