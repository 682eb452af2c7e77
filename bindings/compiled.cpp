// bindings/compiled.cpp — recorded functions, run: values, gradients, second derivatives, rows of batches
// SPDX-License-Identifier: MIT
#include "compiled.hpp"

#include "lock.hpp"

namespace py = pybind11;

namespace burtorch_python {

const Native Function::none;

Function::Function(const Values& in, Values out, std::vector<Branch> branches, bool shares)
    : branches_(std::move(branches)), outputs_(out.size()) {
  for (Branch& branch : branches_)
    for (Trace::Side* side : {&branch.left, &branch.right})
      if (side->node >= 0) {
        const auto node = static_cast<std::size_t>(side->node);
        out.push_back(TapeOf<double>::Value::at(out.front().tape(), node));
        side->node = static_cast<std::ptrdiff_t>(out.size() - 1);
      }
  recording_ = std::make_unique<const bt::Recording<double>>(
      in, out, shares ? bt::Passes::all : bt::Passes::exact);
  work_ = recording_->inputs();
  for (const auto& record : recording_->tape().records()) {
    work_ += record.results();
    recording_->tape().forEachOperand(record, [&](auto) { ++work_; });
  }
  isLong_ = work_ * outputs_ >= longWork;
  if (!isLong_) workspace_ = recording_->workspace();
}

void Function::useNative(const std::vector<std::uintptr_t>& addresses, py::object owner) {
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
template <class F> bool Function::run(const F& f) {
  if (!isLong_) [[likely]]
    return f(workspace_);
  const Unlocked unlocked;
  Loan loan(*this);
  return f(loan.space);
}

template <class Output> bool Function::holds(const Output& output) const {
  const auto number = [&](const Trace::Side& side) {
    return side.node < 0 ? side.number : output(static_cast<std::size_t>(side.node));
  };
  for (const Branch& branch : branches_)
    if (compare(number(branch.left), number(branch.right), branch.operation) != branch.outcome)
      return false;
  return true;
}

bool Function::forward(Space& w, const double* x) const {
  recording_->set(w, x);
  recording_->forward(w);
  return branches_.empty() || holds([&](std::size_t i) { return recording_->output(w, i); });
}

bool Function::values(Space& w, const double* x, double* results) const {
  if (!forward(w, x)) return false;
  for (std::size_t i = 0; i < outputs_; ++i) results[i] = recording_->output(w, i);
  return true;
}

bool Function::values(const double* x, double* results) {
  if (native().value != nullptr) return *results = native().value(x), true;
  if (native().values != nullptr) return native().values(x, results), true;
  return run([&](Space& w) { return values(w, x, results); });
}

bool Function::valueAndGradient(Space& w, const double* x, double* gradient, double& result) const {
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

bool Function::replayGradient(const double* x, double* gradient, double& result) {
  return run([&](Space& w) { return valueAndGradient(w, x, gradient, result); });
}

bool Function::jacobian(const double* x, double* results, double* rows) {
  if (outputs_ == 1) return valueAndGradient(x, rows, *results);
  if (native().jacobian != nullptr) {
    native().jacobian(x, results, rows);
    if (!hasNan(rows, outputs_ * inputs())) return true;
  }
  return run([&](Space& w) {
    if (!values(w, x, results)) return false;
    for (std::size_t i = 0; i < outputs_; ++i) {
      recording_->backward(w, i);
      recording_->gradient(w, rows + i * inputs());
    }
    return true;
  });
}

bool Function::second(bt::Workspace<Dual>& w, const double* x, const double* v,
                      double* valueAndSlope, double* product) const {
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
  for (std::size_t i = 0; i < at.size(); ++i) product[i] = at[i].tangent;
  return true;
}

bool Function::second(const double* x, const double* v, double* valueAndSlope, double* product) {
  if (!isLong_) {
    if (!duals_) duals_ = recording_->workspace<Dual>();
    return second(*duals_, x, v, valueAndSlope, product);
  }
  const Unlocked unlocked;
  auto w = recording_->workspace<Dual>();
  return second(w, x, v, valueAndSlope, product);
}

// ---- workspaces and rows --------------------------------------------------------------------------

Function::Loan::Loan(const Function& f) : f_(f) {
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

Function::Loan::~Loan() {
  const std::lock_guard lock(f_.mutex_);
  f_.idle_.push_back(std::move(space));
}

Function::Rows::Rows(const Function& f, bool mayOverlap)
    : f_(f), isNative_(f.native().batch != nullptr && !mayOverlap) {
  if (isNative_) return;
  if (f.hasBranches() || f.hasBlocks()) loan_.emplace(f);
  else lanes_ = f.recording_->workspace<Lanes>();
}

std::size_t Function::Rows::run(const double* x, std::size_t first, std::size_t last,
                                double* values, double* grads) {
  const std::size_t d = f_.inputs(), n = last - first;
  x += first * d;
  grads += first * d;
  values += first;
  if (isNative_) {
    f_.native().batch(static_cast<unsigned long>(n), x, values, grads);
    if (hasNan(grads, n * d)) [[unlikely]]
      replaceNan(x, n, values, grads);
  } else if (!loan_) {
    f_.recording_->batch(lanes_, x, n, values, grads);
  } else {
    for (std::size_t i = 0; i < n; ++i)
      if (!f_.valueAndGradient(loan_->space, x + i * d, grads + i * d, values[i])) return first + i;
  }
  return last;
}

void Function::Rows::replaceNan(const double* x, std::size_t n, double* values, double* grads) {
  if (!loan_) loan_.emplace(f_);
  for (const std::size_t d = f_.inputs(); n != 0; --n, x += d, grads += d, ++values)
    if (hasNan(grads, d)) f_.valueAndGradient(loan_->space, x, grads, *values);
}

} // namespace burtorch_python
