// burtorch/tape/tape.hpp — append-only storage of scalar nodes and of the operations that made them
// SPDX-License-Identifier: MIT
//
// What is stored
//   Every number is a node: an index into two parallel arrays, values[i] and grads[i]. A node made
//   by an operation also has a record (16 bytes with 32-bit indices): which operation, which
//   result, which operands. Leaves have no record, so a million parameters cost their values and
//   gradients and nothing in the sweep. Two side arrays hold what does not fit a record: the plain
//   numbers among operands (`constants`) and the operand lists of reductions (`operands`).
//
// The invariant everything rests on
//   Records stand in the order of their results, and an operand is always older than the result. So
//   walking the records backwards is a topological order, a gradient is one such walk, and "which
//   record made node i" is a binary search. Nothing is ever sorted, hashed or visited recursively.
//
// Who may read and write what
//   append   Value's operators and functions (value.hpp), through leaf() and the push functions
//   sweep    backward.hpp; gradients of leaves accumulate over calls, those of other nodes are
//            cleared first: records [sweptFrom_, swept_) may hold a gradient of an earlier call
//   forget   mark()/rewind(), dropNewest(): what came last is dropped by resetting counters;
//            forgetOperations(): its records only
//   compact  collect(): what the kept handles do not reach is squeezed out, in order
//
// Memory
//   Owned memory grows by doubling and is never given back before the tape dies; after the first
//   pass of a loop that rewinds, nothing allocates. Borrowed memory is the caller's buffer: it
//   never grows, and running out is an error that leaves the tape as it was. Marking, rewinding and
//   sweeping never allocate.
//
// Reading order: Extent (cursor.hpp) and Record, then the push functions, then rewind and collect.
// value.hpp is the handle users hold, backward.hpp the sweep.
#pragma once

#include <burtorch/tape/block.hpp>
#include <burtorch/tape/cursor.hpp>
#include <burtorch/base/error.hpp>
#include <burtorch/tape/labels.hpp>
#include <burtorch/base/memory.hpp>
#include <burtorch/op/record.hpp>
#include <burtorch/op/table.hpp>
#include <burtorch/scalar/scalar.hpp>
#include <burtorch/base/sizes.hpp>

#include <algorithm>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

BURTORCH_BEGIN_NAMESPACE

template <Scalar T, class... Options> class Tape;
template <Scalar T, class... Options> class Value;
template <Scalar T, class... Options> class View;

// Option of a tape: several threads may append to it at once (tape/concurrent.hpp). Its memory is what it
// was given; it does not grow.
struct Concurrent {};

namespace detail {

template <class... Options>
struct TapeOptions { // the index type is the one unsigned integer among the options
  using Index = std::uint32_t;
  using Memory = HeapMemory;
  using Cursor = SequentialCursor;
  static constexpr bool concurrent = false;
};
template <class... Rest> struct TapeOptions<Concurrent, Rest...>; // is in tape/concurrent.hpp
template <std::unsigned_integral I, class... Rest>
struct TapeOptions<I, Rest...> : TapeOptions<Rest...> {
  using Index = I;
};
template <MemoryPolicy M, class... Rest> struct TapeOptions<M, Rest...> : TapeOptions<Rest...> {
  using Memory = M;
};

// Operand sequences as operations see them: neighbouring nodes, or nodes picked by index.
template <class T> struct RunOf {
  const T* first;
  std::size_t count;
  constexpr std::size_t size() const { return count; }
  BURTORCH_INLINE constexpr decltype(auto) operator[](std::size_t i) const {
    return computed(first[i]);
  }
  BURTORCH_INLINE auto operator[](Eight i) const
    requires(!std::same_as<T, ComputedIn<T>>)
  {
    return widen<8>(first + i.first);
  }
};
template <class T, class Index> struct ListOf {
  const T* values;
  const Index* indices;
  std::size_t count;
  constexpr std::size_t size() const { return count; }
  BURTORCH_INLINE constexpr decltype(auto) operator[](std::size_t i) const {
    return computed(values[indices[i]]);
  }
};

// Operands as they stand on a tape (op/record.hpp).
template <class T, class Index> struct TapeSource {
  const T* values;
  const T* constants;
  const Index* operands_;

  template <int k> BURTORCH_INLINE decltype(auto) node(std::size_t i) const {
    return computed(values[i]);
  }
  BURTORCH_INLINE decltype(auto) number(std::size_t i) const { return computed(constants[i]); }
  BURTORCH_INLINE RunOf<T> run(std::size_t first, std::size_t n) const {
    return {values + first, n};
  }
  BURTORCH_INLINE ListOf<T, Index> list(std::size_t place, std::size_t n) const {
    return {values, operands_ + place, n};
  }
  BURTORCH_INLINE std::size_t operand(std::size_t place) const { return operands_[place]; }
  BURTORCH_INLINE static bool isBNewer(const auto& record) { return record.a < record.b; }
};

struct TapeAccess;
struct TapeRebuild; // tape/rebuild.hpp
struct Nowhere {};

} // namespace detail

template <Scalar T, class... Options> class Tape {
  using Traits = detail::TapeOptions<Options...>;
  static constexpr bool concurrent = Traits::concurrent;

public:
  using Number = T;
  using Index = typename Traits::Index;
  static_assert(!concurrent || sizeof(Index) <= 4, "a Concurrent tape counts with at most 32 bits");

  struct Record {
    using Word = std::conditional_t<(sizeof(Index) < 4), std::uint16_t, std::uint32_t>;
    Index result; // of a block: the last of them
    Index a, b;   // what they mean depends on the form: see Form in op/table.hpp, and block.hpp
    Word word;    // the code; walks over the graph borrow one bit and give it back before they end

    static constexpr Word visited = 0x8000;
    BURTORCH_INLINE Code code() const { return static_cast<Code>(word & (visited - 1u)); }
    Op operation() const { return opOf(code()); }
    Form form() const { return formOf(code()); }
    BURTORCH_INLINE bool isBlock() const { return code() == blockCode; }
    BURTORCH_INLINE std::size_t results() const { return isBlock() ? b : 1; }
    BURTORCH_INLINE std::size_t firstResult() const { return result + std::size_t{1} - results(); }
    // Whether it made the node, if the node is not newer than its results.
    bool made(std::size_t node) const { return node >= firstResult(); }
  };
  using Frame = BlockFrame<T, Index>;

  // A position to come back to.
  class Mark {
  public:
    std::size_t nodes() const { return at_.nodes; } // older than it

  private:
    friend Tape;
    Extent at_;
#if BURTORCH_CHECKS
    const Tape* tape_ = nullptr;
    std::uint32_t epoch_ = 0, compactions_ = 0;
#endif
  };

  static constexpr std::size_t maxNodes = std::numeric_limits<Index>::max();
  static constexpr std::size_t alignment = 64;

  // Owned memory; grows as needed.
  Tape() = default;
  explicit Tape(Reserve reserved) {
    demandCountable(reserved.extent);
    allocate(reserved.extent);
  }

  // Borrowed memory: the caller's, for as long as the tape lives. The first form divides the buffer
  // between the arrays for graphs of a usual mix; the second as told (see bytesFor).
  explicit Tape(std::span<std::byte> buffer) : Tape(buffer, usualMix(buffer.size())) {}
  Tape(std::span<std::byte> buffer, const Extent& extent) : owned_(false) {
    if (const std::size_t bytes = bytesFor(extent); bytes > buffer.size())
      detail::fail(ErrorKind::capacity,
                   "a tape of this extent needs " +
                       (bytes == detail::tooLarge ? "more bytes than any memory has"
                                                  : std::to_string(bytes) + " bytes") +
                       ", the buffer has " + std::to_string(buffer.size()));
    std::byte* next = buffer.data();
    const auto misaligned = reinterpret_cast<std::uintptr_t>(next) % alignment;
    if (misaligned != 0) next += alignment - misaligned;
    forEachColumn([&]<class E>(E*& column, std::size_t Extent::*count) {
      column = reinterpret_cast<E*>(next);
      next += columnBytes<E>(extent.*count);
    });
    cursor_.setCapacity(countable(extent));
  }

  Tape(const Tape&) = delete; // handles point here
  Tape& operator=(const Tape&) = delete;

  ~Tape() {
    if (current_ == this) current_ = nullptr;
    if (owned_)
      forEachColumn([&, bytes = allocated_]<class E>(E*& column, std::size_t Extent::*) mutable {
        Traits::Memory::release(column, *bytes++);
      });
  }

  // Bytes a borrowed buffer needs for an extent, wherever the buffer starts; the largest number of all if
  // no buffer can have that many.
  static constexpr std::size_t bytesFor(const Extent& extent) {
    std::size_t bytes = alignment - 1;
    for (const std::size_t column :
         {columnBytes<T>(extent.nodes), columnBytes<T>(extent.nodes),
          columnBytes<Record>(extent.records), columnBytes<T>(extent.constants),
          columnBytes<Index>(extent.operands),
          BURTORCH_CHECKS ? columnBytes<std::uint32_t>(extent.nodes) : 0})
      bytes = detail::sizeSum(bytes, column);
    return bytes;
  }

  // The tape of this thread that Value(x) uses: the innermost TapeScope's, else one made on first
  // use.
  static Tape& current() {
    if (Tape* tape = current_) [[likely]]
      return *tape;
    return useDefault();
  }

  // What empty handles point to; see detail::nowhere.
  constexpr Tape(detail::Nowhere, T* number)
      : values_(number), grads_(number), owned_(false), isNowhere_(true) {}
  bool isNowhere() const { return isNowhere_; }

  std::size_t size() const { return cursor_.used().nodes; }
  Extent used() const { return cursor_.used(); }
  Extent capacity() const { return cursor_.capacity(); }
  bool ownsMemory() const { return owned_; }

  // Room for this much in all: until it is used up, nothing moves.
  void makeRoomFor(const Extent& extent) {
    const Extent now = used();
    if (fits(extent, capacity())) return;
    const auto [nodes, records, constants, operands] =
        ofEach(extent, now,
               [](std::size_t wanted, std::size_t has) { return wanted > has ? wanted - has : 0; });
    makeRoom(nodes, records, constants, operands);
  }

  // Views of the arrays; growing, collecting and the end of the tape leave them dangling, as with
  // std::vector.
  std::span<T> values() { return {values_, size()}; }
  std::span<const T> values() const { return {values_, size()}; }
  std::span<T> grads() {
    sweptFrom_ = 0;
    swept_ = used().records; // the caller may write gradients now, so the next sweep must clear
    return {grads_, size()};
  }
  std::span<const T> grads() const { return {grads_, size()}; }
  std::span<const Record> records() const { return {records_, used().records}; }
  std::span<const T> constants() const { return {constants_, used().constants}; }
  std::span<const Index> operands() const { return {operands_, used().operands}; }

  // The gradients of all nodes become 0.
  void zeroGrad() {
    std::fill_n(grads_, size(), T(0));
    swept_ = 0;
  }

  Mark mark() const {
    Mark m;
    m.at_ = cursor_.used();
#if BURTORCH_CHECKS
    m.tape_ = this;
    m.epoch_ = epoch_;
    m.compactions_ = compactions_;
#endif
    return m;
  }

  // Drops everything recorded since the mark. Handles to what is dropped must not be used any more.
  BURTORCH_INLINE void rewind(const Mark& mark) {
    BURTORCH_ASSERT(mark.tape_ == this, badArgument, "rewind: the mark is of another tape");
    BURTORCH_ASSERT(mark.compactions_ == compactions_, badArgument,
                    "rewind: the tape was collected since the mark was taken");
    if (!fits(mark.at_, cursor_.used())) [[unlikely]]
      failRewind();
    BURTORCH_ASSERT(mark.at_.nodes == 0 || births_[mark.at_.nodes - 1] <= mark.epoch_, badArgument,
                    "rewind: what stood before the mark was itself rewound and recorded anew");
    cursor_.set(mark.at_);
    swept_ = std::min(swept_, mark.at_.records);
    truncateNotes(mark.at_.nodes);
#if BURTORCH_CHECKS
    ++epoch_;
#endif
  }

  // Forgets all nodes, keeps the memory.
  void clear() {
    Mark start = mark();
    start.at_ = {};
    rewind(start);
  }

  // How many nodes dropNewest drops.
  std::size_t newest() const {
    const Extent now = used();
    if (now.records == 0) return 1;
    const Record& record = records_[now.records - 1];
    return record.result + std::size_t{1} == now.nodes ? record.results() : 1;
  }

  // Drops the newest node and, if an operation made it, the record, with all results of a block:
  // rewinding by one. No handle to them may be used any more, and no mark taken since.
  void dropNewest() {
    Extent to = used();
    --to.nodes;
    if (to.records != 0 && records_[to.records - 1].result == to.nodes) {
      const Record& record = records_[--to.records];
      to.nodes = record.firstResult();
      eachField(record, DropSides{{}, to});
    }
    cursor_.set(to);
    swept_ = std::min(swept_, to.records);
    truncateNotes(to.nodes);
  }

  // Drops the operations recorded since the tape was used as far as `from`, and keeps their results:
  // these are leaves from now on, so no gradient passes through them.
  void forgetOperations(const Extent& from) {
    const Extent now = used();
    if (now.records <= from.records) return; // what came since was dropped
    cursor_.set({now.nodes, from.records, from.constants, from.operands});
    swept_ = std::min(swept_, from.records);
  }

  // Squeezes out every node that the given handles do not reach; order, values, gradients and
  // labels stay. The handles (Values, Views, or ranges of them) are updated; any other handle or mark
  // must not be used any more. Needs one Index per node while it works: allocated here, or given by
  // the caller, which a tape in borrowed memory requires.
  template <class... Keep> void collect(Keep&... keep) {
    if (!owned_)
      detail::fail(ErrorKind::badArgument,
                   "collect: a tape in borrowed memory allocates nothing; pass a "
                   "span of at least size() indices to work in");
    std::vector<Index> work(size());
    collect(std::span<Index>(work), keep...);
  }

  template <class... Keep> void collect(std::span<Index> work, Keep&... keep) {
    if (work.size() < size())
      detail::fail(ErrorKind::badArgument, "collect: needs room for " + std::to_string(size()) +
                                               " indices, got " + std::to_string(work.size()));
    // First 0 or 1: is the node reached; then its new index plus 1.
    Index* const newIndex = work.data();
    std::fill_n(newIndex, size(), Index{0});
    (forEachHandle(keep,
                   [&](auto& handle) {
                     std::fill_n(newIndex + checkedIndex(handle), nodesOf(handle), Index{1});
                   }),
     ...);
    for (std::size_t r = used().records; r-- != 0;) {
      Index* const results = newIndex + records_[r].firstResult();
      Index* const end = results + records_[r].results();
      if (std::find(results, end, Index{1}) == end) continue;
      std::fill(results, end, Index{1});
      forEachOperand(records_[r], [&](Index operand) { newIndex[operand] = 1; });
    }
    compact(newIndex);
    // In two steps, so that a handle given twice moves once.
    [[maybe_unused]] const auto move = [&](auto& handle) {
      if (std::exchange(handle.tape_, nullptr) != nullptr)
        handle.index_ =
            nodesOf(handle) == 0 ? Index{0} : static_cast<Index>(newIndex[handle.index_] - 1u);
    };
    [[maybe_unused]] const auto settle = [&](auto& handle) { handle.settleOn(*this); };
    (forEachHandle(keep, move), ...);
    (forEachHandle(keep, settle), ...);
  }

  // The record that made a node, as a position in records(); records().size() if the node is a
  // leaf.
  std::size_t recordOf(std::size_t node) const {
    const std::size_t n = used().records;
    if (n != 0 && records_[n - 1].result == node) [[likely]]
      return n - 1;
    const Record* at =
        std::lower_bound(static_cast<const Record*>(records_),
                         static_cast<const Record*>(records_ + n), node, resultBefore);
    return at != records_ + n && at->made(node) ? static_cast<std::size_t>(at - records_) : n;
  }

  // The same for an operand of the record at position `user`. Between the two lies at most one
  // record per node, which gives a first guess that is exact where no leaves lie between.
  std::size_t recordOfOperand(std::size_t node, std::size_t user) const {
    if (node < records_[0].firstResult())
      return used().records; // older than every result: a parameter, say
    const std::size_t distance = records_[user].result - node;
    const Record* const guess = records_ + (user > distance ? user - distance : 0);
    if (guess->result == node) return static_cast<std::size_t>(guess - records_);
    const Record* at =
        std::lower_bound(guess, static_cast<const Record*>(records_ + user), node, resultBefore);
    return at->made(node) ? static_cast<std::size_t>(at - records_) : used().records;
  }

  // Calls the visitor for the fields of a record (op/record.hpp); of a block, for those of its description.
  template <class AnyRecord, class Visit>
  BURTORCH_INLINE void eachField(AnyRecord& record, Visit&& visit) const {
    if (!record.isBlock()) [[likely]]
      return detail::eachField(record, operands_, visit);
    visit.stored(record.a, description(record).size());
    const auto d = description(record); // which may have moved
    visit.kept(d.constantsPlace(), d.constants());
    for (std::size_t v = 0; v < d.views(); ++v) visit.run(d.view(v)[0], d.viewSize(v));
  }

  // Calls f(index) for each operand of a record that is a node, in operand order.
  template <class F> void forEachOperand(const Record& record, F&& f) const {
    const Layout layout = op::layoutOf(record.code());
    if (!op::isFew(layout)) return forEachArgument(record, f, [](const T&) {});
    if (op::hasNodeInA(layout))
      f(record.a); // the same in a third of the code: backwardWithScratchStorage
    if (op::hasNodeInB(layout)) f(record.b); // spends its time here
  }

  // Calls node(index) or number(x) for each operand of a record, in operand order.
  template <class N, class C>
  void forEachArgument(const Record& record, N&& node, C&& number) const {
    eachField(record, Arguments<N, C>{{}, constants_, node, number});
  }

  // Calls f(first node, rows, columns) for each operand of a block.
  template <class F> void forEachView(const Record& record, F&& f) const {
    const auto d = description(record);
    for (std::size_t v = 0; v < d.views(); ++v) f(d.view(v)[0], d.view(v)[1], d.view(v)[2]);
  }

  // The names of the operation of the record at a position, as recordOf gives it.
  OpNames namesOf(std::size_t position) const {
    if (position == used().records) return burtorch::namesOf(Op::eLeaf);
    const Record& record = records_[position];
    if (!record.isBlock()) return burtorch::namesOf(record.operation());
    const auto& methods = description(record).methods();
    return {methods.name, methods.symbol};
  }

  // A block as its kernels see it.
  Frame frame(const Record& record) {
    const auto d = description(record);
    return {values_,         grads_, constants_ + d.constantsPlace(), d, record.firstResult(),
            record.results()};
  }

  // ---- appending: for value.hpp and others that build operations -------------------------

  BURTORCH_INLINE Index leaf(T x) { // by value: it may lie on this tape, which may move
    const Extent at = claim({1, 0, 0, 0});
    return place(at.nodes, x);
  }

  // n leaves next to each other; their values are for the caller to set.
  Index leaves(std::size_t n) {
    demandCountable({n, 0, 0, 0});
    return placeMany(claim({n, 0, 0, 0}).nodes, n);
  }

  // A block of n results that keeps k numbers for its pullback. describe(description, kept) fills
  // in views, parameters, and what of those numbers is known; then forward is run.
  template <class Describe>
  Index pushBlock(const BlockMethods<T, Index>& methods, std::size_t n, std::size_t k,
                  std::size_t views, std::size_t parameters, const Describe& describe) {
    using Description = detail::BlockDescription<T, Index>;
    const Extent need{n, 1, k, Description::wordsFor(views, parameters)};
    demandCountable(need);
    const Extent at = claim(need);
    const Description d(operands_ + at.operands);
    d.write(methods, views, parameters, at.constants, k);
    describe(d, constants_ + at.constants);
    setRecord(at, blockCode, static_cast<Index>(at.operands), static_cast<Index>(n));
    Record& record = records_[at.records];
    record.result = static_cast<Index>(at.nodes + n - 1);
    const Index first = placeMany(at.nodes, n);
    methods.forward(frame(record));
    return first;
  }

  BURTORCH_INLINE Index push(Code code, const T& result, Index a, Index b) {
    const Extent at = claim({1, 1, 0, 0});
    setRecord(at, code, a, b);
    return place(at.nodes, result);
  }

  // A Binary with one plain number: node is the other operand.
  BURTORCH_INLINE Index pushWithNumber(Code code, const T& result, Index node, const T& number) {
    const Extent at = claim({1, 1, 1, 0});
    const auto place_ = static_cast<Index>(at.constants);
    constants_[at.constants] = number;
    if (formOf(code) == Form::nodeNumber) setRecord(at, code, node, place_);
    else setRecord(at, code, place_, node);
    return place(at.nodes, result);
  }

  // A Clipped: the two bounds stand next to each other among the constants.
  BURTORCH_INLINE Index pushWithBounds(Code code, const T& result, Index node, const T& lo,
                                       const T& hi) {
    const Extent at = claim({1, 1, 2, 0});
    constants_[at.constants] = lo;
    constants_[at.constants + 1] = hi;
    setRecord(at, code, node, static_cast<Index>(at.constants));
    return place(at.nodes, result);
  }

  // A Reduction over the nodes index(i), i < n, whose value is evaluate(their values).
  template <class O, class IndexAt, class Evaluate>
  Index pushReduction(std::size_t n, const IndexAt& index, const Evaluate& evaluate) {
    constexpr Op op = op::Entry<O>::code;
    if (isRun(n, index)) {
      const Index first = n == 0 ? Index{0} : index(0);
      const Extent at = claim({1, 1, 0, 0});
      setRecord(at, codeOf(op, Form::run), first, static_cast<Index>(n));
      return place(at.nodes, static_cast<T>(evaluate(source().run(first, n))));
    }
    const Extent at = claim({1, 1, 0, n});
    for (std::size_t i = 0; i < n; ++i) operands_[at.operands + i] = index(i);
    setRecord(at, codeOf(op, Form::list), static_cast<Index>(at.operands), static_cast<Index>(n));
    return place(at.nodes, static_cast<T>(evaluate(source().list(at.operands, n))));
  }

  // A Product of two sequences of n nodes, plus a bias node for those that have one.
  template <class O, class IndexX, class IndexY, class Evaluate>
  Index pushProduct(std::size_t n, const IndexX& x, const IndexY& y, Index bias,
                    const Evaluate& evaluate) {
    constexpr Op op = op::Entry<O>::code;
    constexpr std::size_t biases = O::hasBias ? 1 : 0;
    const bool runs = isRun(n, x) && isRun(n, y);
    const std::size_t each = runs ? 1 : n; // indices stored per sequence
    const Extent at = claim({1, 1, 0, 2 * each + biases});
    Index* const stored = operands_ + at.operands;
    for (std::size_t i = 0; i < each; ++i) stored[i] = n == 0 ? Index{0} : x(i);
    for (std::size_t i = 0; i < each; ++i) stored[each + i] = n == 0 ? Index{0} : y(i);
    if constexpr (O::hasBias) stored[2 * each] = bias;
    setRecord(at, codeOf(op, runs ? Form::run : Form::list), static_cast<Index>(at.operands),
              static_cast<Index>(n));
    const auto from = source();
    ComputedIn<T> result = runs
                               ? evaluate(from.run(stored[0], n), from.run(stored[1], n))
                               : evaluate(from.list(at.operands, n), from.list(at.operands + n, n));
    if constexpr (O::hasBias) result = result + computed(values_[bias]);
    return place(at.nodes, static_cast<T>(result));
  }

  void setLabel(std::size_t node, std::string label) {
    labels_.set(node, std::move(label));
    hasNotes_ = true;
  }
  std::string label(std::size_t node) const { return labels_.get(node); }

  // Comparisons of its Values decide where a program goes, which a recording (run/replay.hpp) can't follow: it
  // asks whether there were any. Atomic, because several threads may compare what none of them changes.
  BURTORCH_INLINE void noteComparison(std::size_t node) {
    if (isNowhere_) failEmpty();
    if constexpr (concurrent) return; // of which no recording is made
    constexpr auto relaxed = std::memory_order_relaxed;
    comparisons_.store(comparisons_.load(relaxed) + 1, relaxed);
    comparedUpTo_.store(std::max(comparedUpTo_.load(relaxed), node + 1), relaxed);
    setNotes();
  }
  // How many there were, unless all of them looked at nodes older than this one. Of nodes that were rewound
  // since, it is only known that they were newer than what stayed.
  std::size_t comparisonsSince(std::size_t node) const {
    return comparedUpTo_.load(std::memory_order_relaxed) > node
               ? comparisons_.load(std::memory_order_relaxed)
               : 0;
  }

private:
  friend detail::TapeAccess;
  friend detail::TapeRebuild;
  template <Scalar, class...> friend class Value;
  template <Scalar, class...> friend class View;
  template <class> friend class TapeScope;

  // ---- places ----------------------------------------------------------------------------

  BURTORCH_INLINE Extent claim(const Extent& need) {
    Extent at;
    if (!cursor_.hasRoom(need, at)) [[unlikely]] // making it leaves the counters alone
      makeRoom(need.nodes, need.records, need.constants, need.operands);
    cursor_.take(need, at);
    return at;
  }

  // The value is stored last and through the index the handle will hold: in an expression the next
  // operation usually reads it, and with no other store in between the compiler takes it from the
  // register instead.
  BURTORCH_INLINE Index place(std::size_t node, const T& value) {
    if (node > maxNodes) BURTORCH_UNREACHABLE(); // so that an index needs no widening
    const auto index = static_cast<Index>(node);
#if BURTORCH_CHECKS
    births_[index] = epoch_;
#endif
    grads_[index] = T(0);
    values_[index] = value;
    return index;
  }

  Index placeMany(std::size_t first, std::size_t n) {
#if BURTORCH_CHECKS
    std::fill_n(births_ + first, n, epoch_);
#endif
    std::fill_n(grads_ + first, n, T(0));
    return static_cast<Index>(first);
  }

  // Field by field: clang forgets the types of a struct that it copies whole, and then takes the stores
  // for stores to the counters.
  BURTORCH_INLINE void setRecord(const Extent& at, Code code, Index a, Index b) {
    Record& record = records_[at.records];
    record.result = static_cast<Index>(at.nodes);
    record.a = a;
    record.b = b;
    record.word = code;
  }

  detail::TapeSource<T, Index> source() const { return {values_, constants_, operands_}; }

  detail::BlockDescription<T, Index> description(const Record& record) const {
    return detail::BlockDescription<T, Index>(operands_ + record.a);
  }

  static bool resultBefore(const Record& record, std::size_t node) { return record.result < node; }

  template <class IndexAt> static bool isRun(std::size_t n, const IndexAt& index) {
    for (std::size_t i = 1; i < n; ++i)
      if (index(i) != index(i - 1) + 1u) return false;
    return true;
  }

  struct DropSides : detail::EachField { // where what a record has in the side arrays begins
    Extent& to;
    void numbers(Index place_, std::size_t) { to.constants = place_; }
    void kept(Index place_, std::size_t n) {
      if (n != 0) to.constants = place_; // else it has no place
    }
    void stored(Index place_, std::size_t) { to.operands = place_; }
  };
  template <class N, class C> struct Arguments : detail::EachField {
    const T* constants;
    N& node_;
    C& number;
    void node(Index i) { node_(i); }
    void run(Index first, std::size_t n) {
      for (std::size_t i = 0; i < n; ++i) node_(static_cast<Index>(first + i));
    }
    void numbers(Index first, std::size_t n) {
      for (std::size_t i = 0; i < n; ++i) number(constants[first + i]);
    }
  };

  [[noreturn]] BURTORCH_COLD static void failEmpty() {
    detail::fail(ErrorKind::emptyHandle, "an empty Value was used");
  }

  // An atomic store, but no std::atomic: compilers would not test that where it lies, which every rewind
  // does, and no thread may rewind while another one compares.
  BURTORCH_INLINE void setNotes() {
#if defined(__GNUC__)
    __atomic_store_n(&hasNotes_, true, __ATOMIC_RELAXED);
#else
    std::atomic_ref(hasNotes_).store(true, std::memory_order_relaxed);
#endif
  }
  // Labels and comparisons of nodes that are dropped.
  BURTORCH_INLINE void truncateNotes(std::size_t nodes) {
    if (hasNotes_) [[unlikely]]
      dropNotes(nodes);
  }
  BURTORCH_NOINLINE void dropNotes(std::size_t nodes) {
    labels_.truncate(nodes);
    comparedUpTo_.store(std::min(comparedUpTo_.load(std::memory_order_relaxed), nodes),
                        std::memory_order_relaxed);
  }

  [[noreturn]] BURTORCH_COLD void failRewind() const {
    detail::fail(ErrorKind::badArgument, "rewind: the mark lies ahead of the tape, which holds " +
                                             std::to_string(size()) + " nodes");
  }

  // ---- collect ---------------------------------------------------------------------------

  template <class Keep, class F> static void forEachHandle(Keep& keep, F&& f) {
    if constexpr (requires { keep.sysGetRawNodeIndex(); }) f(keep); // a View is a range as well
    else
      for (auto& each : keep) f(each);
  }

  template <class Handle> static std::size_t nodesOf(const Handle& handle) {
    if constexpr (requires { handle.size(); }) return handle.size();
    else return 1;
  }

  template <class Handle> std::size_t checkedIndex(const Handle& handle) const {
    if (handle.isEmpty()) detail::fail(ErrorKind::emptyHandle, "collect: an empty handle");
    if (handle.tape_ != this)
      detail::fail(ErrorKind::differentTapes, "collect: a handle of another tape");
    handle.check();
    return handle.index_;
  }

  // newIndex[i] is 1 for what stays; becomes its new index plus 1.
  void compact(Index* newIndex) {
    const Extent old = used();
    Extent now;
    if constexpr (concurrent) now = {0, 0, old.constants, old.operands};
    for (std::size_t i = 0; i < old.nodes; ++i) {
      if (newIndex[i] == 0) continue;
#if BURTORCH_CHECKS
      births_[now.nodes] = i == now.nodes ? births_[i] : epoch_ + 1;
#endif
      values_[now.nodes] = values_[i];
      grads_[now.nodes] = grads_[i];
      newIndex[i] = static_cast<Index>(++now.nodes);
    }
    std::size_t swept = 0;
    for (std::size_t r = 0; r < old.records; ++r) {
      Record record = records_[r];
      if (newIndex[record.result] == 0) continue;
      if (r < swept_) swept = now.records + 1;
      moveDown(record, now, newIndex);
      records_[now.records++] = record;
    }
    sweptFrom_ = 0;
    swept_ = swept;
    labels_.remap([&](std::size_t i) { return newIndex[i] != 0; },
                  [&](std::size_t i) { return newIndex[i] - std::size_t{1}; });
    comparedUpTo_.store(std::min(comparedUpTo_.load(), now.nodes)); // perhaps less
    cursor_.set(now);
#if BURTORCH_CHECKS
    ++epoch_;
    ++compactions_;
#endif
  }

  struct MoveDown : detail::EachField {
    Tape& tape;
    Extent& now;
    const Index* newIndex;
    void node(Index& i) { i = static_cast<Index>(newIndex[i] - 1u); }
    void run(Index& first, std::size_t n) {
      if (n != 0) node(first);
    }
    void numbers(Index& place_, std::size_t n) { take(tape.constants_, place_, n, now.constants); }
    void kept(Index& place_, std::size_t n) { numbers(place_, n); }
    void stored(Index& place_, std::size_t n) { take(tape.operands_, place_, n, now.operands); }
    static void take(auto* column, Index& place_, std::size_t n, std::size_t& end) {
      if constexpr (concurrent) return; // threads interleave there: no order to squeeze by
      if (n != 0) std::memmove(column + end, column + place_, n * sizeof(*column));
      place_ = static_cast<Index>(end);
      end += n;
    }
  };
  // Moves what the record keeps in the side arrays to their new ends and renames its nodes. Runs
  // stay runs: all their nodes stay, in order.
  void moveDown(Record& record, Extent& now, const Index* newIndex) {
    MoveDown move{{}, *this, now, newIndex};
    move.node(record.result);
    eachField(record, move);
  }

  // ---- memory ----------------------------------------------------------------------------

  template <class E> static constexpr std::size_t columnBytes(std::size_t count) {
    const std::size_t bytes = detail::sizeSum(detail::sizeProduct(count, sizeof(E)), alignment - 1);
    return bytes > detail::largestArray ? detail::tooLarge : bytes / alignment * alignment;
  }

  // What a buffer of so many bytes holds if a quarter of the operations involve a plain number and
  // one index per node goes to operand lists.
  static constexpr Extent usualMix(std::size_t bytes) {
    std::size_t low = 0, high = bytes; // the largest extent that fits, by bisection
    while (low < high) {
      const std::size_t middle = low + (high - low + 1) / 2;
      if (bytesFor(reserve(middle).extent) <= bytes) low = middle;
      else high = middle - 1;
    }
    return reserve(std::min(low, maxNodes)).extent;
  }

  // At most what indices can count.
  static constexpr Extent countable(const Extent& extent) {
    return ofEach(extent, {}, [](std::size_t n, std::size_t) { return std::min(n, maxNodes); });
  }
  // So much that counting it with what is there can't wrap around.
  static void demandCountable(const Extent& extent) {
    constexpr std::size_t most = std::min(maxNodes, detail::largestArray);
    if (!fits(extent, {most, most, most, most})) failToCount();
  }
  [[noreturn]] BURTORCH_COLD static void failToCount() {
    detail::fail(ErrorKind::capacity, "the tape's index type counts to " +
                                          std::to_string(maxNodes) +
                                          "; use a wider one, e.g. Tape<T, std::uint64_t>");
  }

  template <class F> void forEachColumn(F&& f) {
    f(values_, &Extent::nodes);
    f(grads_, &Extent::nodes);
    f(records_, &Extent::records);
    f(constants_, &Extent::constants);
    f(operands_, &Extent::operands);
#if BURTORCH_CHECKS
    f(births_, &Extent::nodes);
#endif
  }

  // Takes numbers, not an Extent: a struct would be built in memory on every append, just in case.
  BURTORCH_COLD void makeRoom(std::size_t nodes, std::size_t records, std::size_t constants,
                              std::size_t operands) {
    if (isNowhere_) failEmpty();
    const Extent wanted = used() + Extent{nodes, records, constants, operands};
    demandCountable(wanted);
    const Extent had = capacity();
    if (!owned_ || concurrent) {
      std::string what =
          owned_ ? "a concurrent tape does not grow" : "a tape in borrowed memory does not grow";
      auto say = [&](const char* name, std::size_t Extent::*count) {
        if (wanted.*count > had.*count)
          what += std::string("; it needs room for ") + std::to_string(wanted.*count) + " " + name +
                  " and has room for " + std::to_string(had.*count);
      };
      say("nodes", &Extent::nodes);
      say("records", &Extent::records);
      say("constants", &Extent::constants);
      say("operands", &Extent::operands);
      detail::fail(ErrorKind::capacity, what);
    }
    Extent bigger = had;
    auto raise = [&](std::size_t Extent::*count) {
      if (wanted.*count > bigger.*count)
        bigger.*count = std::max({wanted.*count, 2 * (had.*count), std::size_t{256}});
    };
    raise(&Extent::nodes);
    raise(&Extent::records);
    raise(&Extent::constants);
    raise(&Extent::operands);
    allocate(countable(bigger));
  }

  // Gives each array whose capacity changes new memory and moves its contents. If memory runs out
  // half way, arrays already moved are merely larger than the capacity says.
  void allocate(const Extent& bigger) {
    const Extent held = used();
    if (bytesFor(bigger) == detail::tooLarge)
      detail::fail(ErrorKind::capacity,
                   "a tape of this extent needs more bytes than any memory has");
    forEachColumn([&, bytes = allocated_]<class E>(E*& column, std::size_t Extent::*count) mutable {
      std::size_t& had = *bytes++;
      const std::size_t wants = bigger.*count * sizeof(E);
      if (wants <= had) return;
      column = static_cast<E*>(Traits::Memory::grow(column, had, held.*count * sizeof(E), wants));
      had = wants;
    });
    cursor_.setCapacity(bigger);
  }

  BURTORCH_COLD static Tape& useDefault() {
    static thread_local Tape tape{
        reserve(concurrent ? std::min(maxNodes, std::size_t{1} << 16) : std::size_t{0})};
    current_ = &tape;
    return tape;
  }

  static inline constinit thread_local Tape* current_ = nullptr;

  // Counters and capacities share one cache line: an append reads both.
  alignas(alignment) typename Traits::Cursor cursor_;
  T* values_ = nullptr;
  T* grads_ = nullptr;
  Record* records_ = nullptr;
  T* constants_ = nullptr;
  Index* operands_ = nullptr;
  std::size_t swept_ = 0;
  bool owned_ = true;
  bool isNowhere_ = false;
  bool hasNotes_ = false;         // labels, or comparisons
  std::size_t allocated_[6] = {}; // bytes of each column, in the order of forEachColumn
  std::size_t sweptFrom_ = 0;     // apart from swept_, else both are stored as one vector
  [[no_unique_address]] detail::Labels labels_;
  std::atomic<std::size_t> comparisons_{0}, comparedUpTo_{0}; // of nodes below the second
#if BURTORCH_CHECKS
  std::uint32_t* births_ = nullptr; // births_[i]: the epoch node i was made in
  std::uint32_t epoch_ = 0;         // counts rewinds and collects
  std::uint32_t compactions_ = 0;   // counts collects
#endif
};

namespace detail {

// Empty handles point to a tape of no nodes that has no room and makes none: an append fails where any
// append fails that finds no room, and asking handles costs nothing. What is read there is not a number.
template <class T> inline T nothing = T(std::numeric_limits<double>::quiet_NaN());
template <class TapeType> inline TapeType nowhere{Nowhere{}, &nothing<typename TapeType::Number>};

} // namespace detail

// Makes a tape the current one of this thread until the end of the scope.
template <class TapeType> class TapeScope {
public:
  explicit TapeScope(TapeType& tape) : before_(std::exchange(TapeType::current_, &tape)) {}
  ~TapeScope() { TapeType::current_ = before_; }
  TapeScope(const TapeScope&) = delete;
  TapeScope& operator=(const TapeScope&) = delete;

private:
  TapeType* before_;
};

BURTORCH_END_NAMESPACE
