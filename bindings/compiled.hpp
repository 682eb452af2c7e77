// bindings/compiled.hpp — a recorded function with its workspaces and, once loaded, its native code
// SPDX-License-Identifier: MIT
#pragma once

#include "value.hpp"

#include <burtorch/op/dual.hpp>
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

using Values = std::vector<TapeOf<double>::Value>;
Values valuesIn(const pybind11::sequence& objects, const AnyTape& tape);

// with Tracing(tape, inputs, dynamic): comparisons made inside of Values that depend on the inputs,
// which are the newest leaves, are noted or refused.
class Tracing {
public:
  Tracing(AnyTape& tape, const pybind11::sequence& inputs, bool isDynamic);
  Tracing(const Tracing&) = delete;
  Tracing& operator=(const Tracing&) = delete;
  ~Tracing() { exit(); }
  void enter() { before_ = std::exchange(tape_->trace, &trace_); }
  void exit() {
    if (tape_->trace == &trace_) tape_->trace = before_;
  }
  const Values& inputs() const { return inputs_; }
  const std::vector<Trace::Branch>& branches() const { return trace_.branches; }
  AnyTape& tape() const { return *tape_; }

private:
  Ref<AnyTape> tape_;
  Values inputs_;
  Trace trace_{};
  Trace* before_ = nullptr;
};

// Functions compiled elsewhere: those of emit.hpp, for one output or for several.
struct Native {
  double (*value)(const double*) = nullptr;
  double (*gradient)(const double*, double*) = nullptr;
  void (*batch)(unsigned long, const double*, double*, double*) = nullptr;
  void (*values)(const double*, double*) = nullptr;
  void (*jacobian)(const double*, double*, double*) = nullptr;
  pybind11::object owner; // of their code
};

// Native code does not ask whether an adjoint is 0, so NaN may be where 0 is right (see emit.hpp). Sums
// find it; ∞ - ∞ is found as well, which costs time only.
inline bool hasNan(const double* x, std::size_t n) {
  double sums[4] = {};
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (std::size_t k = 0; k < 4; ++k) sums[k] += x[i + k];
  for (; i < n; ++i) sums[0] += x[i];
  const double sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  return sum != sum;
}
inline bool overlap(const double* x, std::size_t n, const double* y, std::size_t m) {
  const std::less<> less; // of any pointers
  return less(x, y + m) && less(y, x + n);
}

class Function {
  using Space = bt::Workspace<double>;
  using Dual = bt::dual<double>;
  using Lanes = bt::simd<double, bt::nativeLanes<double> == 1 ? 4 : bt::nativeLanes<double>>;
  using Branch = Trace::Branch; // its sides are outputs of the recording, or numbers

public:
  Function(const Tracing& tracing, const pybind11::sequence& outputs, bool shares)
      : Function(tracing.inputs(), valuesIn(outputs, tracing.tape()), tracing.branches(), shares) {}
  Function(const Values& in, Values out, std::vector<Branch> branches = {}, bool shares = false);

  std::size_t inputs() const { return recording_->inputs(); }
  std::size_t outputs() const { return outputs_; }
  std::size_t operations() const { return recording_->tape().records().size(); }
  std::size_t work() const { return work_; } // of one run, in nodes read and written
  bool hasBlocks() const { return recording_->hasBlocks(); }
  bool hasBranches() const { return !branches_.empty(); }
  bool isNative() const { return native().owner.ptr() != nullptr; }
  const bt::Recording<double>& recording() const { return *recording_; }

  // f_value, f and f_batch of one output, f_values and f_jacobian of several.
  void useNative(const std::vector<std::uintptr_t>& addresses, pybind11::object owner);

  // False: the recorded program would have branched differently here.
  bool values(const double* x, double* results);
  bool valueAndGradient(const double* x, double* gradient, double& result) {
    return nativeGradient(x, gradient, result) || replayGradient(x, gradient, result);
  }
  // False: there is no native code, or not for this point: nothing was computed, x is as it was.
  bool nativeGradient(const double* x, double* gradient, double& result) const {
    if (native().gradient == nullptr || overlap(x, inputs(), gradient, inputs())) return false;
    const double value = native().gradient(x, gradient); // result might be one of x
    if (hasNan(gradient, inputs())) [[unlikely]]
      return false;
    result = value;
    return true;
  }
  bool valueAndGradient(Space& w, const double* x, double* gradient, double& result) const;
  bool jacobian(const double* x, double* results, double* rows);
  // Value and slope along v; with a product also the Hessian times v.
  bool second(const double* x, const double* v, double* valueAndSlope, double* product);

  // A workspace for as long as this lives, on any thread.
  class Loan {
  public:
    explicit Loan(const Function& f);
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    ~Loan();
    Space space;

  private:
    const Function& f_;
  };

  // Runs rows of a batch on one thread; natively if they are written elsewhere than read.
  class Rows {
  public:
    Rows(const Function& f, bool mayOverlap);
    // The first row of [first, last) that would branch differently, or last.
    std::size_t run(const double* x, std::size_t first, std::size_t last, double* values,
                    double* grads);

  private:
    void replaceNan(const double* x, std::size_t n, double* values, double* grads);

    const Function& f_;
    bool isNative_;
    bt::Workspace<Lanes> lanes_;
    std::optional<Loan> loan_;
  };

private:
  bool replayGradient(const double* x, double* gradient, double& result);
  template <class F> bool run(const F& f);
  bool forward(Space& w, const double* x) const;
  bool values(Space& w, const double* x, double* results) const;
  bool second(bt::Workspace<Dual>& w, const double* x, const double* v, double* valueAndSlope,
              double* product) const;
  template <class Output> bool holds(const Output& output) const;

  // Native code may come at any time, and then stays.
  const Native& native() const { return *native_.load(std::memory_order_acquire); }
  static const Native none;

  std::unique_ptr<const bt::Recording<double>> recording_;
  std::vector<Branch> branches_;
  std::size_t outputs_, work_ = 0;
  bool isLong_ = false;
  Space workspace_; // used with the interpreter's lock held
  std::optional<bt::Workspace<Dual>> duals_;
  mutable std::mutex mutex_;
  mutable std::vector<Space> idle_; // for runs without it
  std::unique_ptr<const Native> nativeOwner_;
  std::atomic<const Native*> native_{&none};
};

// Adds what a program calls in its inner loops: Fast, and bind(), which makes a Bound.
void addCalls(pybind11::module_& module);

} // namespace burtorch_python
