// bindings/tape.hpp — a tape as Python sees it: of any dtype, counting its users, compacting itself
// SPDX-License-Identifier: MIT
//
// Every Python Value of a tape stands in the tape's list of live Values, and every node counts its
// Values. A newest node without Values can't be reached any more, so it is dropped, and those before it
// likewise: the graph of a function that returns is gone when its local names are. What is left
// behind in the middle, by programs that rebind names, is squeezed out by collect(). An
// append first compares the tape's size with a threshold; beyond it the tape compacts itself, and the
// next threshold is twice what was left, so that the work per append stays constant. While a long call
// runs without the interpreter's lock the threshold is 0: whoever else touches the tape gets to the
// same slow path and is told.
//
// Inside of no_grad() the threshold is 0, too. The slow path then forgets the operation that was
// recorded before, whose result becomes a leaf: recording itself knows nothing of all this.
#pragma once

#include "busy.hpp"
#include "dtypes.hpp"
#include "indices.hpp"
#include "lock.hpp"
#include "shared_memory.hpp"
#include "trace.hpp"

#include <burtorch/burtorch.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#if !BURTORCH_CHECKS
#error "the bindings rely on the engine's checks: compile with BURTORCH_CHECKS=1"
#endif

namespace burtorch_python {

namespace bt = burtorch;

struct PyValue; // value.hpp
class PyView;   // view.hpp

class AnyTape {
public:
  explicit AnyTape(DType type) : dtype(type) {}
  virtual ~AnyTape() = default;
  AnyTape(const AnyTape&) = delete;
  AnyTape& operator=(const AnyTape&) = delete;

  // All live Values together count as one reference.
  void retain() {
    if (++references_ == 1) joinAll();
  }
  void release() {
    if (--references_ != 0) return;
    leaveAll();
    delete this;
  }

  // From now on every append on every tape takes the slow path, until no no_grad() is left.
  static void enterNoGrad();
  static void leaveNoGrad();

  const DType dtype;
  std::vector<PyValue*> live; // unordered; each Value knows its place
  std::vector<PyView*> views; // likewise
  // How many live Values, and views that end there, name each node. It is as long as the tape has
  // room; beyond the tape's size all are 0.
  std::vector<std::uint32_t> valuesOfNode;
  std::vector<std::uint32_t> seenAt; // a guess where in `live` a node's Value is; see valueOf
  int marks = 0; // positions held by Python: while there are any, nothing moves unasked
  bool busy = false;
  Trace* trace = nullptr;
  IndexLog* indexLog = nullptr;           // while a function with integers as data is recorded
  std::optional<std::size_t> watchedFrom; // records that detect_anomaly() has not looked at yet

  // The results of operations inside of no_grad() become leaves, if that has not happened yet.
  virtual void settle() = 0;

  static bool isInNoGrad(); // anyone

protected:
  std::size_t threshold_ = 0; // the size from which an append takes the slow path

private:
  void joinAll(); // the tapes there are
  void leaveAll();
  std::atomic<long> references_ = 0; // a thread that ends leaves its tapes without the lock
};

// Counts a reference to a tape; also pybind11's holder.
template <class T> class Ref {
public:
  Ref() = default;
  explicit Ref(T* tape) : tape_(tape) {
    if (tape_ != nullptr) tape_->retain();
  }
  Ref(const Ref& other) : Ref(other.tape_) {}
  Ref(Ref&& other) noexcept : tape_(std::exchange(other.tape_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(tape_, other.tape_);
    return *this;
  }
  ~Ref() {
    if (tape_ != nullptr) tape_->release();
  }
  T* get() const { return tape_; }
  T* operator->() const { return tape_; }
  T& operator*() const { return *tape_; }
  explicit operator bool() const { return tape_ != nullptr; }

private:
  T* tape_ = nullptr;
};

// Whether this context is inside of no_grad().
bool computesWithoutGradients();

inline void demandIdle(const AnyTape& tape) {
  if (tape.busy) throw IsBusy();
}

template <class T> class TapeOf final : public AnyTape {
public:
  using Scalar = T;
  using Tape = bt::Tape<T, SharedMemory>;
  using Value = bt::Value<T, SharedMemory>;

  explicit TapeOf(DType type, std::size_t capacity) : AnyTape(type), tape(bt::reserve(capacity)) {
    threshold_ = room_;
  }

  // To be called before every append, and before the operands' handles are read: they may move.
  void prepare() {
    if (tape.size() >= threshold_) [[unlikely]]
      makeRoom();
  }

  // Compacts to what live Values reach.
  void collect();

  // A node has one Value more.
  void addValue(std::size_t node) {
    if (node >= valuesOfNode.size()) [[unlikely]]
      valuesOfNode.resize(tape.capacity().nodes);
    ++valuesOfNode[node];
  }
  // A node has one Value less; newest nodes without any go.
  void removeValue(std::size_t node) {
    if (--valuesOfNode[node] == 0 && node + 1 == tape.size() && marks == 0 && !busy) dropUnnamed();
  }
  // The same where a node may be any of the newest block's.
  void removeView(std::size_t node) {
    if (--valuesOfNode[node] == 0 && node + tape.newest() >= tape.size() && marks == 0 && !busy)
      dropUnnamed();
  }
  // Nodes [first, end) were rewound, and no newer ones stay: their Values, if any, are stale and
  // count no more.
  void forgetValues(std::size_t first, std::size_t end);

  void settle() override {
    if (!std::exchange(isForgetting_, false)) return;
    tape.forgetOperations(from_);
    if (watchedFrom) watchedFrom = std::min(*watchedFrom, tape.records().size());
  }

  // work() without the interpreter's lock; whoever else uses the tape meanwhile is told.
  template <class Work> auto unlocked(const Work& work) {
    const Busy inUse(busy);
    threshold_ = 0; // the first append afterwards sets it anew
    const Unlocked withoutLock;
    return work();
  }

  Tape tape;

private:
  // A sweep passes over the garbage below its root, so little of it may gather.
  static constexpr std::size_t smallest = std::size_t{1} << 8;

  // The results of a block go together.
  void dropUnnamed() {
    while (tape.size() != 0 && valuesOfNode[tape.size() - 1] == 0) {
      const auto end = valuesOfNode.begin() + static_cast<std::ptrdiff_t>(tape.size());
      const auto count = static_cast<std::ptrdiff_t>(tape.newest());
      if (count != 1 && std::any_of(end - count, end, [](std::uint32_t n) { return n != 0; }))
        return;
      tape.dropNewest();
    }
  }

  BURTORCH_COLD void makeRoom() {
    demandIdle(*this);
    settle();
    if (tape.size() >= room_) {
      if (marks == 0) collect();
      room_ = std::max(smallest, 2 * tape.size());
    }
    threshold_ = room_;
    if (!isInNoGrad()) return;
    threshold_ = 0;
    from_ = tape.used();
    isForgetting_ = trace == nullptr && computesWithoutGradients();
  }

  std::size_t room_ = smallest; // the size from which the tape compacts itself
  bool isForgetting_ = false;   // what is recorded since from_ was computed inside of no_grad()
  bt::Extent from_;
};

// Calls f(TapeOf<T>&) for the tape's dtype.
template <class F> decltype(auto) visit(AnyTape& any, F&& f) {
  switch (any.dtype) {
#define BURTORCH_DTYPE(name, type)                                                                 \
  case DType::name:                                                                                \
    return f(static_cast<TapeOf<type>&>(any));
    BURTORCH_DTYPES(BURTORCH_DTYPE)
#undef BURTORCH_DTYPE
  }
  BURTORCH_UNREACHABLE();
}

// The same for what there is only on tapes of float64 and float32: views, pictures.
template <class F> decltype(auto) visitPlain(AnyTape& any, F&& f) {
  if (any.dtype == DType::float64) return f(static_cast<TapeOf<double>&>(any));
  if (any.dtype == DType::float32) return f(static_cast<TapeOf<float>&>(any));
  throw std::invalid_argument("views and pictures need a tape of dtype float64 or float32");
}

// The tape on which new Values begin: the one entered last in this context (contextvars), else this
// thread's own.
AnyTape& currentTape();
void enterTape(AnyTape& tape);
void leaveTape(AnyTape& tape);

// work() on so many nodes, without the lock if it takes more than a moment.
template <class T, class Work>
auto unlockedIfLong(TapeOf<T>& tape, std::size_t nodes, const Work& work) {
  return nodes < longWork ? work() : tape.unlocked(work);
}

} // namespace burtorch_python
