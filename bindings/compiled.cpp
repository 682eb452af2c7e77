// bindings/compiled.cpp — recorded functions, run: values, gradients, second derivatives, rows of batches
// SPDX-License-Identifier: MIT
#include "compiled.hpp"

#include "lock.hpp"

namespace py = pybind11;

namespace burtorch_python {

template <class T> const NativeOf<T> FunctionOf<T>::none;

template <class T>
FunctionOf<T>::FunctionOf(const Tracing& tracing, const py::sequence& outputs, bool shares)
    : FunctionOf(valuesAt<T>(tracing.tape(), tracing.inputs()), tracing.variables(),
                 valuesAt<T>(tracing.tape(), nodesIn(outputs, tracing.tape())), tracing.branches(),
                 shares, tracing.indexLog()) {}

template <class T>
FunctionOf<T>::FunctionOf(const Values& in, std::size_t variables, Values out,
                          std::vector<Branch> branches, bool shares, const IndexLog& log)
    : branches_(std::move(branches)), outputs_(out.size()) {
  for (Branch& branch : branches_)
    for (Trace::Side* side : {&branch.left, &branch.right})
      if (side->node >= 0) {
        const auto node = static_cast<std::size_t>(side->node);
        out.push_back(TapeOf<T>::Value::at(out.front().tape(), node));
        side->node = static_cast<std::ptrdiff_t>(out.size() - 1);
      }
  using Some = std::span<const typename Values::value_type>;
  auto passes = shares ? bt::Passes::all : bt::Passes::exact;
  if (!log.empty()) passes = bt::Passes::none; // the log names records by their numbers
  auto recording = std::make_unique<bt::Recording<T>>(
      Some(in).first(variables), Some(in).subspan(variables), Some(out), passes);
  std::vector<typename bt::Recording<T>::IndexUse> uses;
  for (const IndexUse& use : log)
    if (use.record < recording->tape().records().size())
      uses.push_back(
          {use.record, use.parameter, use.limit, {use.places.begin(), use.places.end()}});
  recording->useIndices(std::move(uses));
  recording_ = std::move(recording);
  work_ = recording_->inputs();
  for (const auto& record : recording_->tape().records()) {
    work_ += record.results();
    recording_->tape().forEachOperand(record, [&](auto) { ++work_; });
  }
  isLong_ = work_ * outputs_ >= longWork;
  if (!isLong_) workspace_ = recording_->workspace();
}

template <class T>
void FunctionOf<T>::useNative(const std::vector<std::uintptr_t>& addresses, py::object owner) {
  if (hasBranches() || addresses.size() != (outputs_ == 1 ? 3 : 2))
    throw py::value_error("native code has no branches, and three functions for one output, two "
                          "for several");
  if (isNative()) throw py::value_error("there is native code already");
  auto made = std::make_unique<Native>();
  if (outputs_ == 1) {
    made->value = reinterpret_cast<decltype(Native::value)>(addresses[0]);
    made->gradient = reinterpret_cast<decltype(Native::gradient)>(addresses[1]);
    made->batch = reinterpret_cast<decltype(Native::batch)>(addresses[2]);
  } else {
    made->values = reinterpret_cast<decltype(Native::values)>(addresses[0]);
    made->jacobian = reinterpret_cast<decltype(Native::jacobian)>(addresses[1]);
  }
  made->owner = std::move(owner);
  native_.store(made.get(), std::memory_order_release); // calls without the lock may be going on
  nativeOwner_ = std::move(made);
}

// ---- one point ------------------------------------------------------------------------------------

// Calls f(workspace). What takes long does not hold the interpreter's lock meanwhile.
template <class T> template <class F> bool FunctionOf<T>::run(const F& f) {
  if (!isLong_) [[likely]]
    return f(workspace_);
  const Unlocked unlocked;
  Loan loan(*this);
  return f(loan.space);
}

template <class T> template <class Output> bool FunctionOf<T>::holds(const Output& output) const {
  const auto number = [&](const Trace::Side& side) {
    return side.node < 0 ? side.number : output(static_cast<std::size_t>(side.node));
  };
  for (const Branch& branch : branches_)
    if (compare(number(branch.left), number(branch.right), branch.operation) != branch.outcome)
      return false;
  return true;
}

template <class T> bool FunctionOf<T>::forward(Space& w, const T* x) const {
  recording_->set(w, x);
  recording_->forward(w);
  return branches_.empty() || holds([&](std::size_t i) { return recording_->output(w, i); });
}

template <class T> bool FunctionOf<T>::values(Space& w, const T* x, T* results) const {
  if (!forward(w, x)) return false;
  for (std::size_t i = 0; i < outputs_; ++i) results[i] = recording_->output(w, i);
  return true;
}

template <class T> bool FunctionOf<T>::values(const T* x, T* results) {
  if (native().value != nullptr) return *results = native().value(x), true;
  if (native().values != nullptr) return native().values(x, results), true;
  return run([&](Space& w) { return values(w, x, results); });
}

template <class T>
bool FunctionOf<T>::valueAndGradient(Space& w, const T* x, T* gradient, T& result) const {
  if (branches_.empty()) {
    result = recording_->valueAndGradient(w, x, gradient);
    return true;
  }
  if (!forward(w, x)) return false;
  recording_->backward(w);
  recording_->gradient(w, gradient);
  result = recording_->output(w);
  return true;
}

template <class T> bool FunctionOf<T>::replayGradient(const T* x, T* gradient, T& result) {
  return run([&](Space& w) { return valueAndGradient(w, x, gradient, result); });
}

template <class T> bool FunctionOf<T>::jacobian(const T* x, T* results, T* rows) {
  if (outputs_ == 1) return valueAndGradient(x, rows, *results);
  if (native().jacobian != nullptr) {
    native().jacobian(x, results, rows);
    if (!hasNan(rows, outputs_ * variables())) return true;
  }
  return run([&](Space& w) {
    if (!values(w, x, results)) return false;
    for (std::size_t i = 0; i < outputs_; ++i) {
      recording_->backward(w, i);
      recording_->gradient(w, rows + i * variables());
    }
    return true;
  });
}

template <class T>
bool FunctionOf<T>::second(bt::Workspace<Dual>& w, const T* x, const T* v, T* valueAndSlope,
                           T* product) const {
  std::vector<Dual> at(inputs());
  for (std::size_t i = 0; i < at.size(); ++i) at[i] = {x[i], v[i]};
  recording_->set(w, at);
  recording_->forward(w);
  if (!holds([&](std::size_t i) { return recording_->output(w, i).value; })) return false;
  for (std::size_t i = 0; i < outputs_; ++i) {
    valueAndSlope[2 * i] = recording_->output(w, i).value;
    valueAndSlope[2 * i + 1] = recording_->output(w, i).tangent;
  }
  if (product == nullptr) return true;
  recording_->backward(w);
  recording_->gradient(w, at);
  for (std::size_t i = 0; i < variables(); ++i) product[i] = at[i].tangent;
  return true;
}

template <class T>
bool FunctionOf<T>::second(const T* x, const T* v, T* valueAndSlope, T* product) {
  if (!isLong_) {
    if (!duals_) duals_ = recording_->template workspace<Dual>();
    return second(*duals_, x, v, valueAndSlope, product);
  }
  const Unlocked unlocked;
  auto w = recording_->template workspace<Dual>();
  return second(w, x, v, valueAndSlope, product);
}

// ---- workspaces and rows --------------------------------------------------------------------------

template <class T> FunctionOf<T>::Loan::Loan(const FunctionOf<T>& f) : f_(f) {
  {
    const std::lock_guard lock(f.mutex_);
    if (!f.idle_.empty()) {
      space = std::move(f.idle_.back());
      f.idle_.pop_back();
      return;
    }
  }
  space = f.recording_->workspace();
}

template <class T> FunctionOf<T>::Loan::~Loan() {
  const std::lock_guard lock(f_.mutex_);
  f_.idle_.push_back(std::move(space));
}

template <class T> FunctionOf<T>::Sum::Sum(const FunctionOf<T>& f) : f_(f) {
  {
    const std::lock_guard lock(f.mutex_);
    if (!f.idleSums_.empty()) {
      sum_ = std::move(f.idleSums_.back());
      f.idleSums_.pop_back();
      return;
    }
  }
  sum_ = std::make_unique<bt::FiniteSum<bt::Recording<T>>>(*f.recording_);
}

template <class T> FunctionOf<T>::Sum::~Sum() {
  const std::lock_guard lock(f_.mutex_);
  f_.idleSums_.push_back(std::move(sum_));
}

template <class T>
FunctionOf<T>::Rows::Rows(const FunctionOf<T>& f, bool mayOverlap)
    : f_(f), isNative_(f.native().batch != nullptr && !mayOverlap) {
  if (isNative_) return;
  if (f.hasBranches() || f.hasBlocks()) loan_.emplace(f);
  else lanes_ = f.recording_->template workspace<Lanes>();
}

template <class T>
std::size_t FunctionOf<T>::Rows::run(const T* x, std::size_t first, std::size_t last, T* values,
                                     T* grads) {
  const std::size_t d = f_.inputs(), g = f_.variables(), n = last - first;
  x += first * d;
  grads += first * g;
  values += first;
  if (isNative_) {
    f_.native().batch(static_cast<unsigned long>(n), x, values, grads);
    if (hasNan(grads, n * g)) [[unlikely]]
      replaceNan(x, n, values, grads);
  } else if (!loan_) {
    f_.recording_->batch(lanes_, x, n, values, grads);
  } else {
    for (std::size_t i = 0; i < n; ++i)
      if (!f_.valueAndGradient(loan_->space, x + i * d, grads + i * g, values[i])) return first + i;
  }
  return last;
}

template <class T>
void FunctionOf<T>::Rows::replaceNan(const T* x, std::size_t n, T* values, T* grads) {
  if (!loan_) loan_.emplace(f_);
  const std::size_t g = f_.variables();
  for (const std::size_t d = f_.inputs(); n != 0; --n, x += d, grads += g, ++values)
    if (hasNan(grads, g)) f_.valueAndGradient(loan_->space, x, grads, *values);
}

template class FunctionOf<double>;
template class FunctionOf<float>;

} // namespace burtorch_python
