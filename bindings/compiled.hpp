// bindings/compiled.hpp — a recorded function with its workspaces and, once loaded, its native code
// SPDX-License-Identifier: MIT
#pragma once

#include "value.hpp"

#include <burtorch/op/dual.hpp>
#include <burtorch/run/finite_sum.hpp>
#include <burtorch/run/replay.hpp>

#include <pybind11/pybind11.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace burtorch_python {

template <class T> using ValuesOf = std::vector<typename TapeOf<T>::Value>;
// The nodes of Values that are on this tape.
std::vector<std::size_t> nodesIn(const pybind11::sequence& objects, const AnyTape& tape);
template <class T> ValuesOf<T> valuesAt(AnyTape& tape, const std::vector<std::size_t>& nodes) {
  ValuesOf<T> values;
  for (const std::size_t node : nodes)
    values.push_back(TapeOf<T>::Value::at(static_cast<TapeOf<T>&>(tape).tape, node));
  return values;
}

// with Tracing(tape, inputs, variables, dynamic): comparisons made inside of Values that depend on the inputs,
// which are the newest leaves, are noted or refused. The first of the inputs are variables, the others data.
class Tracing {
public:
  Tracing(AnyTape& tape, const pybind11::sequence& inputs, std::size_t variables, bool isDynamic);
  Tracing(const Tracing&) = delete;
  Tracing& operator=(const Tracing&) = delete;
  ~Tracing() { exit(); }
  void enter() {
    before_ = std::exchange(tape_->trace, &trace_);
    logBefore_ = std::exchange(tape_->indexLog, &log_);
  }
  void exit() {
    if (tape_->trace == &trace_) tape_->trace = before_;
    if (tape_->indexLog == &log_) tape_->indexLog = logBefore_;
  }
  const std::vector<std::size_t>& inputs() const { return inputs_; }
  std::size_t variables() const { return variables_; }
  const IndexLog& indexLog() const { return log_; }
  const std::vector<Trace::Branch>& branches() const { return trace_.branches; }
  AnyTape& tape() const { return *tape_; }

private:
  Ref<AnyTape> tape_;
  std::vector<std::size_t> inputs_;
  std::size_t variables_;
  Trace trace_{};
  Trace* before_ = nullptr;
  IndexLog log_;
  IndexLog* logBefore_ = nullptr;
};

// Functions compiled elsewhere: those of emit.hpp, for one output or for several.
template <class T> struct NativeOf {
  T (*value)(const T*) = nullptr;
  T (*gradient)(const T*, T*) = nullptr;
  void (*batch)(unsigned long, const T*, T*, T*) = nullptr;
  void (*values)(const T*, T*) = nullptr;
  void (*jacobian)(const T*, T*, T*) = nullptr;
  pybind11::object owner; // of their code
};

// Native code does not ask whether an adjoint is 0, so NaN may be where 0 is right (see emit.hpp). Sums
// find it; ∞ - ∞ is found as well, which costs time only.
template <class T> bool hasNan(const T* x, std::size_t n) {
  T sums[4] = {};
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (std::size_t k = 0; k < 4; ++k) sums[k] += x[i + k];
  for (; i < n; ++i) sums[0] += x[i];
  const T sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  return sum != sum;
}
template <class T> bool overlap(const T* x, std::size_t n, const T* y, std::size_t m) {
  const std::less<> less; // of any pointers
  return less(x, y + m) && less(y, x + n);
}

template <class T> class FunctionOf {
  using Native = NativeOf<T>;
  using Space = bt::Workspace<T>;
  using Dual = bt::dual<T>;
  using Lanes = bt::simd<T, bt::nativeLanes<T> == 1 ? 4 : bt::nativeLanes<T>>;
  using Branch = Trace::Branch; // its sides are outputs of the recording, or numbers

public:
  using Values = ValuesOf<T>;
  FunctionOf(const Tracing& tracing, const pybind11::sequence& outputs, bool shares);
  // The first of the inputs are variables.
  FunctionOf(const Values& in, std::size_t variables, Values out, std::vector<Branch> branches = {},
             bool shares = false, const IndexLog& log = {});

  std::size_t inputs() const { return recording_->inputs(); }
  std::size_t variables() const { return recording_->variables(); }
  std::size_t outputs() const { return outputs_; }
  std::size_t operations() const { return recording_->tape().records().size(); }
  std::size_t work() const { return work_; } // of one run, in nodes read and written
  bool hasBlocks() const { return recording_->hasBlocks(); }
  bool hasBranches() const { return !branches_.empty(); }
  bool isNative() const { return native().owner.ptr() != nullptr; }
  const bt::Recording<T>& recording() const { return *recording_; }

  // f_value, f and f_batch of one output, f_values and f_jacobian of several.
  void useNative(const std::vector<std::uintptr_t>& addresses, pybind11::object owner);

  // False: the recorded program would have branched differently here.
  bool values(const T* x, T* results);
  bool valueAndGradient(const T* x, T* gradient, T& result) {
    return nativeGradient(x, gradient, result) || replayGradient(x, gradient, result);
  }
  // False: there is no native code, or not for this point: nothing was computed, x is as it was.
  bool nativeGradient(const T* x, T* gradient, T& result) const {
    if (native().gradient == nullptr || overlap(x, inputs(), gradient, variables())) return false;
    const T value = native().gradient(x, gradient); // result might be one of x
    if (hasNan(gradient, variables())) [[unlikely]]
      return false;
    result = value;
    return true;
  }
  bool valueAndGradient(Space& w, const T* x, T* gradient, T& result) const;
  bool jacobian(const T* x, T* results, T* rows);
  // Value and slope along v; with a product also the Hessian times v.
  bool second(const T* x, const T* v, T* valueAndSlope, T* product);

  // A workspace for as long as this lives, on any thread.
  class Loan {
  public:
    explicit Loan(const FunctionOf& f);
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    ~Loan();
    Space space;

  private:
    const FunctionOf& f_;
  };

  // A sum over samples for as long as this lives.
  class Sum {
  public:
    explicit Sum(const FunctionOf& f);
    Sum(const Sum&) = delete;
    Sum& operator=(const Sum&) = delete;
    ~Sum();
    bt::FiniteSum<bt::Recording<T>>* operator->() const { return sum_.get(); }

  private:
    const FunctionOf& f_;
    std::unique_ptr<bt::FiniteSum<bt::Recording<T>>> sum_;
  };

  // Runs rows of a batch on one thread; natively if they are written elsewhere than read.
  class Rows {
  public:
    Rows(const FunctionOf& f, bool mayOverlap);
    // The first row of [first, last) that would branch differently, or last.
    std::size_t run(const T* x, std::size_t first, std::size_t last, T* values, T* grads);

  private:
    void replaceNan(const T* x, std::size_t n, T* values, T* grads);

    const FunctionOf& f_;
    bool isNative_;
    bt::Workspace<Lanes> lanes_;
    std::optional<Loan> loan_;
  };

private:
  bool replayGradient(const T* x, T* gradient, T& result);
  template <class F> bool run(const F& f);
  bool forward(Space& w, const T* x) const;
  bool values(Space& w, const T* x, T* results) const;
  bool second(bt::Workspace<Dual>& w, const T* x, const T* v, T* valueAndSlope, T* product) const;
  template <class Output> bool holds(const Output& output) const;

  // Native code may come at any time, and then stays.
  const Native& native() const { return *native_.load(std::memory_order_acquire); }
  static const Native none;

  std::unique_ptr<const bt::Recording<T>> recording_;
  std::vector<Branch> branches_;
  std::size_t outputs_, work_ = 0;
  bool isLong_ = false;
  Space workspace_; // used with the interpreter's lock held
  std::optional<bt::Workspace<Dual>> duals_;
  mutable std::mutex mutex_;
  mutable std::vector<Space> idle_; // for runs without it
  mutable std::vector<std::unique_ptr<bt::FiniteSum<bt::Recording<T>>>> idleSums_;
  std::unique_ptr<const Native> nativeOwner_;
  std::atomic<const Native*> native_{&none};
};

using Function = FunctionOf<double>;

// Adds what a program calls in its inner loops: Fast, and bind(), which makes a Bound.
void addCalls(pybind11::module_& module);

} // namespace burtorch_python
