// bindings/compile.cpp — recorded functions for burtorch.compile: run, bound, in batches, minimized
// SPDX-License-Identifier: MIT
//
// Function is a recording with its workspaces and, once loaded, its native code. Two small CPython types
// are what a program calls in its inner loops, without the cost of general argument handling:
//
//   Fast    value_and_grad(x, out=None) for the array that the function was recorded for; everything
//           else goes to the Python method that it was given
//   Bound   run(): reads x, writes value and gradient into out
#include "interrupts.hpp"
#include "lock.hpp"
#include "mark.hpp"
#include "register.hpp"
#include "value.hpp"

#include <burtorch/run/emit.hpp>
#include <burtorch/optim/minimize.hpp>
#include <burtorch/run/replay.hpp>
#include <burtorch/op/dual.hpp>
#include <burtorch/viz/dot.hpp>

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace burtorch_python {

bool Trace::dependOnInputs(const AnyTape& any, std::size_t first, std::size_t count) const {
  if (count == 0 || first + count <= from) return false;
  const auto& tape = static_cast<const TapeOf<double>&>(any).tape;
  const std::size_t node = first + count - 1; // the newest of them
  std::vector<bool> varies(node + 1 - from);
  std::fill_n(varies.begin(), std::min(inputs, varies.size()), true);
  for (const auto& record : tape.records()) {
    if (record.firstResult() < from) continue;
    if (record.firstResult() > node) break;
    bool depends = false;
    tape.forEachOperand(record, [&](std::size_t i) { depends |= i >= from && varies[i - from]; });
    const std::size_t last = std::min<std::size_t>(record.result, node);
    for (std::size_t i = record.firstResult(); depends && i <= last; ++i) varies[i - from] = true;
  }
  const auto some = varies.begin() + static_cast<std::ptrdiff_t>(first > from ? first - from : 0);
  return std::find(some, varies.end(), true) != varies.end();
}

namespace {

using Array = py::array_t<double, py::array::c_style | py::array::forcecast>;
using Lanes = bt::simd<double, bt::nativeLanes<double> == 1 ? 4 : bt::nativeLanes<double>>;
using Values = std::vector<TapeOf<double>::Value>;

// ---- recording ------------------------------------------------------------------------------------

Values valuesIn(const py::sequence& objects, const AnyTape& tape) {
  Values values;
  for (const py::handle object : objects) {
    if (!isValue(object.ptr()))
      throw py::type_error(std::string("expected a Value, not ") + Py_TYPE(object.ptr())->tp_name);
    const auto* const value = reinterpret_cast<PyValue*>(object.ptr());
    if (value->tape != &tape) throw py::value_error("a Value of another tape");
    values.push_back(value->as<double>());
    values.back().check();
  }
  return values;
}

// with Tracing(tape, inputs, dynamic): comparisons made inside of Values that depend on the inputs,
// which are the newest leaves, are noted or refused.
class Tracing {
public:
  Tracing(AnyTape& tape, const py::sequence& inputs, bool isDynamic) : tape_(&tape) {
    if (tape.dtype != DType::float64)
      throw py::value_error("compile records on tapes of dtype float64");
    inputs_ = valuesIn(inputs, tape);
    trace_.isDynamic = isDynamic;
    trace_.inputs = inputs_.size();
    trace_.from = static_cast<TapeOf<double>&>(tape).tape.size() - inputs_.size();
  }
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
  py::object owner; // of their code
};
const Native none;

// Native code does not ask whether an adjoint is 0, so NaN may be where 0 is right (see emit.hpp). Sums
// find it; ∞ - ∞ is found as well, which costs time only.
bool hasNan(const double* x, std::size_t n) {
  double sums[4] = {};
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (std::size_t k = 0; k < 4; ++k) sums[k] += x[i + k];
  for (; i < n; ++i) sums[0] += x[i];
  const double sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  return sum != sum;
}
bool overlap(const double* x, std::size_t n, const double* y, std::size_t m) {
  const std::less<> less; // of any pointers
  return less(x, y + m) && less(y, x + n);
}

// A decision of the recorded program; its sides are outputs of the recording, or numbers.
using Branch = Trace::Branch;

class Function {
  using Space = bt::Workspace<double>;
  using Dual = bt::dual<double>;

public:
  Function(const Tracing& tracing, const py::sequence& outputs, bool shares)
      : Function(tracing.inputs(), valuesIn(outputs, tracing.tape()), tracing.branches(), shares) {}
  Function(const Values& in, Values out, std::vector<Branch> branches = {}, bool shares = false)
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
    isLong_ = work_ * outputs_ > longWork;
    if (!isLong_) workspace_ = recording_->workspace();
  }

  std::size_t inputs() const { return recording_->inputs(); }
  std::size_t outputs() const { return outputs_; }
  std::size_t operations() const { return recording_->tape().records().size(); }
  std::size_t work() const { return work_; } // of one run, in nodes read and written
  bool hasBlocks() const { return recording_->hasBlocks(); }
  bool hasBranches() const { return !branches_.empty(); }
  bool isNative() const { return native().owner.ptr() != nullptr; }
  const bt::Recording<double>& recording() const { return *recording_; }

  // f_value, f and f_batch of one output, f_values and f_jacobian of several.
  void useNative(const std::vector<std::uintptr_t>& addresses, py::object owner) {
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

  // False: the recorded program would have branched differently here.
  bool values(const double* x, double* results) {
    if (native().value != nullptr) return *results = native().value(x), true;
    if (native().values != nullptr) return native().values(x, results), true;
    return run([&](Space& w) { return values(w, x, results); });
  }
  bool valueAndGradient(const double* x, double* gradient, double& result) {
    if (nativeGradient(x, gradient, result)) [[likely]]
      return true;
    return run([&](Space& w) { return valueAndGradient(w, x, gradient, result); });
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
  bool valueAndGradient(Space& w, const double* x, double* gradient, double& result) const {
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
  bool jacobian(const double* x, double* results, double* rows) {
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
  // Value and slope along v; with a product also the Hessian times v.
  bool second(const double* x, const double* v, double* valueAndSlope, double* product) {
    if (!isLong_) {
      if (!duals_) duals_ = recording_->workspace<Dual>();
      return second(*duals_, x, v, valueAndSlope, product);
    }
    const Unlocked unlocked;
    auto w = recording_->workspace<Dual>();
    return second(w, x, v, valueAndSlope, product);
  }

  // A workspace for as long as this lives, on any thread.
  class Loan {
  public:
    explicit Loan(const Function& f) : f_(f) {
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
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    ~Loan() {
      const std::lock_guard lock(f_.mutex_);
      f_.idle_.push_back(std::move(space));
    }
    Space space;

  private:
    const Function& f_;
  };

  // Runs rows of a batch on one thread; natively if they are written elsewhere than read.
  class Rows {
  public:
    Rows(const Function& f, bool mayOverlap)
        : f_(f), isNative_(f.native().batch != nullptr && !mayOverlap) {
      if (isNative_) return;
      if (f.hasBranches() || f.hasBlocks()) loan_.emplace(f);
      else lanes_ = f.recording_->workspace<Lanes>();
    }
    // The first row of [first, last) that would branch differently, or last.
    std::size_t run(const double* x, std::size_t first, std::size_t last, double* values,
                    double* grads) {
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
          if (!f_.valueAndGradient(loan_->space, x + i * d, grads + i * d, values[i]))
            return first + i;
      }
      return last;
    }

  private:
    void replaceNan(const double* x, std::size_t n, double* values, double* grads) {
      if (!loan_) loan_.emplace(f_);
      for (const std::size_t d = f_.inputs(); n != 0; --n, x += d, grads += d, ++values)
        if (hasNan(grads, d)) f_.valueAndGradient(loan_->space, x, grads, *values);
    }

    const Function& f_;
    bool isNative_;
    bt::Workspace<Lanes> lanes_;
    std::optional<Loan> loan_;
  };

private:
  static constexpr std::size_t longWork = 20'000; // some ten microseconds

  // Calls f(workspace). What takes long does not hold the interpreter's lock meanwhile.
  template <class F> bool run(const F& f) {
    if (!isLong_) [[likely]]
      return f(workspace_);
    const Unlocked unlocked;
    Loan loan(*this);
    return f(loan.space);
  }

  bool forward(Space& w, const double* x) const {
    recording_->set(w, x);
    recording_->forward(w);
    return branches_.empty() || holds([&](std::size_t i) { return recording_->output(w, i); });
  }
  bool values(Space& w, const double* x, double* results) const {
    if (!forward(w, x)) return false;
    for (std::size_t i = 0; i < outputs_; ++i) results[i] = recording_->output(w, i);
    return true;
  }
  bool second(bt::Workspace<Dual>& w, const double* x, const double* v, double* valueAndSlope,
              double* product) const {
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
  template <class Output> bool holds(const Output& output) const {
    const auto number = [&](const Trace::Side& side) {
      return side.node < 0 ? side.number : output(static_cast<std::size_t>(side.node));
    };
    for (const Branch& branch : branches_)
      if (compare(number(branch.left), number(branch.right), branch.operation) != branch.outcome)
        return false;
    return true;
  }

  // Native code may come at any time, and then stays.
  const Native& native() const { return *native_.load(std::memory_order_acquire); }

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

// ---- arrays without ceremony ----------------------------------------------------------------------

// The numbers of a contiguous float64 array of n elements; nullptr if it is something else.
double* numbersOf(PyObject* object, std::size_t n, bool isWritten) {
  static const auto& api = py::detail::npy_api::get();
  static PyObject* const float64 = py::dtype::of<double>().release().ptr();
  if (Py_TYPE(object) != api.PyArray_Type_) return nullptr;
  const auto* const array = py::detail::array_proxy(object);
  constexpr int wanted =
      py::detail::npy_api::NPY_ARRAY_C_CONTIGUOUS_ | py::detail::npy_api::NPY_ARRAY_ALIGNED_;
  if (array->nd != 1 || array->dimensions[0] != static_cast<py::ssize_t>(n) ||
      array->descr != float64 || (array->flags & wanted) != wanted)
    return nullptr;
  if (isWritten && (array->flags & py::detail::npy_api::NPY_ARRAY_WRITEABLE_) == 0) return nullptr;
  return reinterpret_cast<double*>(array->data);
}

PyObject* newVector(std::size_t n) {
  static const auto& api = py::detail::npy_api::get();
  static PyObject* const float64 = py::dtype::of<double>().release().ptr();
  const py::ssize_t size = static_cast<py::ssize_t>(n);
  Py_INCREF(float64);
  return api.PyArray_NewFromDescr_(api.PyArray_Type_, float64, 1, &size, nullptr, nullptr, 0,
                                   nullptr);
}

// ---- Fast -----------------------------------------------------------------------------------------

struct PyFast {
  PyObject_HEAD vectorcallfunc call;
  PyObject* slow;     // what is called with everything else
  PyObject* function; // a Function, or null until there is one for a single vector
  Function* f;
};

PyFast* asFast(PyObject* object) { return reinterpret_cast<PyFast*>(object); }

PyObject* callFast(PyObject* self, PyObject* const* args, std::size_t count, PyObject* names) {
  const PyFast* const fast = asFast(self);
  Function* const f = fast->f;
  const auto positional = PyVectorcall_NARGS(count);
  static PyObject* const outName = PyUnicode_InternFromString("out");
  const bool hasOut =
      names != nullptr && PyTuple_GET_SIZE(names) == 1 && PyTuple_GET_ITEM(names, 0) == outName;
  if (f != nullptr && positional == 1 && (names == nullptr || hasOut)) [[likely]] {
    const double* const x = numbersOf(args[0], f->inputs(), false);
    PyObject* out = nullptr;
    if (x != nullptr && hasOut && args[1] != Py_None) {
      if (numbersOf(args[1], f->inputs(), true) != nullptr) Py_INCREF(out = args[1]);
    } else if (x != nullptr) {
      out = newVector(f->inputs());
      if (out == nullptr) return nullptr;
    }
    double value = 0;
    bool isDone = false;
    try {
      isDone = out != nullptr &&
               f->valueAndGradient(x, reinterpret_cast<double*>(py::detail::array_proxy(out)->data),
                                   value);
    } catch (...) { // no memory for a workspace
      Py_DECREF(out);
      translateException();
      return nullptr;
    }
    if (isDone) [[likely]] {
      PyObject* const number = PyFloat_FromDouble(value);
      PyObject* const pair = number == nullptr ? nullptr : PyTuple_New(2);
      if (pair == nullptr) {
        Py_XDECREF(number);
        Py_DECREF(out);
        return nullptr;
      }
      PyTuple_SET_ITEM(pair, 0, number);
      PyTuple_SET_ITEM(pair, 1, out);
      return pair;
    }
    Py_XDECREF(out);
  }
  return PyObject_Vectorcall(fast->slow, args, count, names);
}

int traverseFast(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(asFast(self)->slow);
  Py_VISIT(asFast(self)->function);
  return 0;
}
int clearFast(PyObject* self) {
  asFast(self)->f = nullptr;
  Py_CLEAR(asFast(self)->slow);
  Py_CLEAR(asFast(self)->function);
  return 0;
}
void deallocateFast(PyObject* self) {
  PyObject_GC_UnTrack(self);
  clearFast(self);
  Py_TYPE(self)->tp_free(self);
}

PyObject* createFast(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* slow = nullptr;
  if (!PyArg_ParseTuple(args, "O:Fast", &slow)) return nullptr;
  auto* const fast = asFast(type->tp_alloc(type, 0));
  if (fast == nullptr) return nullptr;
  fast->call = callFast;
  Py_INCREF(fast->slow = slow);
  return reinterpret_cast<PyObject*>(fast);
}

// attach(function): its single vector is what the fast way takes from now on; None: nothing is.
PyObject* attachFast(PyObject* self, PyObject* function) {
  return guarded([&]() -> PyObject* {
    auto* const fast = asFast(self);
    Function* const f = function == Py_None ? nullptr : py::handle(function).cast<Function*>();
    Py_INCREF(function);
    Py_XSETREF(fast->function, function);
    fast->f = f;
    Py_RETURN_NONE;
  });
}

PyMethodDef fastMethods[] = {
    {"attach", attachFast, METH_O, "Take the fast way for the vector of this function."},
    {nullptr, nullptr, 0, nullptr},
};

PyTypeObject fastType = [] {
  PyTypeObject t{};
  t.ob_base = {PyObject_HEAD_INIT(nullptr) 0};
  t.tp_name = "burtorch._core._compile.Fast";
  t.tp_basicsize = sizeof(PyFast);
  t.tp_dealloc = deallocateFast;
  t.tp_vectorcall_offset = offsetof(PyFast, call);
  t.tp_call = PyVectorcall_Call;
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_HAVE_GC;
  t.tp_doc = "value_and_grad(x, out=None): the value and the gradient, which is written into out.";
  t.tp_traverse = traverseFast;
  t.tp_clear = clearFast;
  t.tp_methods = fastMethods;
  t.tp_new = createFast;
  return t;
}();

// ---- Bound ----------------------------------------------------------------------------------------

struct PyBound {
  PyObject_HEAD vectorcallfunc call;
  PyObject *function, *x,
      *out; // kept alive; resize(refcheck=False) may still move an array's numbers
  Function* f;
};

PyBound* asBound(PyObject* object) { return reinterpret_cast<PyBound*>(object); }

PyObject* callBound(PyObject* self, PyObject* const*, std::size_t count, PyObject* names) {
  const PyBound* const bound = asBound(self);
  if (PyVectorcall_NARGS(count) != 0 || names != nullptr) {
    PyErr_SetString(PyExc_TypeError, "a bound function takes no arguments");
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    const double* const from = numbersOf(bound->x, bound->f->inputs(), false);
    double* const to = numbersOf(bound->out, bound->f->inputs() + 1, true);
    if (from == nullptr || to == nullptr) [[unlikely]]
      throw py::value_error("a bound array is not what it was when it was bound: its shape, its "
                            "dtype or its flags changed; bind again");
    if (bound->f->valueAndGradient(from, to + 1, to[0])) [[likely]]
      Py_RETURN_NONE;
    PyErr_SetString(PyExc_RuntimeError,
                    "the function branches differently here than where it was bound; bind again");
    return nullptr;
  });
}

void deallocateBound(PyObject* self) {
  Py_XDECREF(asBound(self)->function);
  Py_XDECREF(asBound(self)->x);
  Py_XDECREF(asBound(self)->out);
  Py_TYPE(self)->tp_free(self);
}

PyTypeObject boundType = [] {
  PyTypeObject t{};
  t.ob_base = {PyObject_HEAD_INIT(nullptr) 0};
  t.tp_name = "burtorch._core._compile.Bound";
  t.tp_basicsize = sizeof(PyBound);
  t.tp_dealloc = deallocateBound;
  t.tp_vectorcall_offset = offsetof(PyBound, call);
  t.tp_call = PyVectorcall_Call;
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL;
  t.tp_doc = "run(): read the bound x, write value and gradient into the bound out.";
  return t;
}();

py::object bind(const py::object& function, const py::object& x, const py::object& out) {
  auto& f = function.cast<Function&>();
  const bool isRead = numbersOf(x.ptr(), f.inputs(), false) != nullptr;
  const bool isWritten = numbersOf(out.ptr(), f.inputs() + 1, true) != nullptr;
  const std::string n = std::to_string(f.inputs()), more = std::to_string(f.inputs() + 1);
  if (!isRead)
    throw py::value_error("bind: x is read in place, so it must be a contiguous float64 array of "
                          "shape (" +
                          n + ",)");
  if (!isWritten)
    throw py::value_error("bind: out receives the value and then the gradient, so it must be a "
                          "contiguous, writable float64 array of shape (" +
                          more + ",)");
  auto* const bound = asBound(boundType.tp_alloc(&boundType, 0));
  if (bound == nullptr) throw py::error_already_set();
  bound->call = callBound;
  bound->function = py::object(function).release().ptr();
  bound->x = py::object(x).release().ptr();
  bound->out = py::object(out).release().ptr();
  bound->f = &f;
  return py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(bound));
}

// ---- what Python calls ----------------------------------------------------------------------------

const double* point(const Function& f, const Array& x) {
  if (static_cast<std::size_t>(x.size()) != f.inputs())
    throw py::value_error("the function was recorded for " + std::to_string(f.inputs()) +
                          " numbers and was given " + std::to_string(x.size()));
  return x.data();
}
Array vector(std::size_t n) { return Array(static_cast<py::ssize_t>(n)); }

// Each returns None where the recorded program would have branched differently.
py::object values(Function& f, const Array& x) {
  Array y = vector(f.outputs());
  if (!f.values(point(f, x), y.mutable_data())) return py::none();
  return y;
}
py::object valueAndGrad(Function& f, const Array& x) {
  Array g = vector(f.inputs());
  double value = 0;
  if (!f.valueAndGradient(point(f, x), g.mutable_data(), value)) return py::none();
  return py::make_tuple(value, g);
}
py::object jacobian(Function& f, const Array& x) {
  Array y = vector(f.outputs());
  Array rows({static_cast<py::ssize_t>(f.outputs()), static_cast<py::ssize_t>(f.inputs())});
  if (!f.jacobian(point(f, x), y.mutable_data(), rows.mutable_data())) return py::none();
  return py::make_tuple(y, rows);
}
py::object jvp(Function& f, const Array& x, const Array& v) {
  Array y({static_cast<py::ssize_t>(f.outputs()), py::ssize_t{2}});
  if (!f.second(point(f, x), point(f, v), y.mutable_data(), nullptr)) return py::none();
  return y;
}
py::object hvp(Function& f, const Array& x, const Array& v) {
  double valueAndSlope[2];
  Array product = vector(f.inputs());
  if (f.outputs() != 1) throw py::value_error("hvp is of a function with one output");
  if (!f.second(point(f, x), point(f, v), valueAndSlope, product.mutable_data())) return py::none();
  return py::make_tuple(valueAndSlope[0], product);
}

// Values and gradients are written into arrays of the right shapes. Returns the first row that would branch
// differently, n if there is none. Threads take rows in chunks, in order, so that fewer threads than
// wanted do the same work, and none waits for another for longer than a chunk takes.
std::size_t batch(const Function& f, const Array& x, py::array_t<double> values,
                  py::array_t<double> grads, std::size_t threads) {
  const auto n = static_cast<std::size_t>(x.shape(0));
  if (static_cast<std::size_t>(x.size()) != n * f.inputs() || x.size() != grads.size() ||
      static_cast<std::size_t>(values.size()) != n)
    throw py::value_error("batch takes an array of shape (n, " + std::to_string(f.inputs()) + ")");
  const double* const from = x.data();
  double *const v = values.mutable_data(), *const g = grads.mutable_data();
  const std::size_t most = 4 * std::max(std::thread::hardware_concurrency(), 1u);
  threads = std::clamp<std::size_t>(threads, 1, std::min(most, n / 64 + 1));
  // Whole vectors of samples, of a few milliseconds at most.
  const std::size_t chunk =
      8 * std::clamp<std::size_t>((std::size_t{1} << 19) / (f.work() + 1), 1,
                                  std::min<std::size_t>(512, n / (32 * threads) + 1));
  const bool mayOverlap =
      overlap(from, n * f.inputs(), g, n * f.inputs()) || overlap(from, n * f.inputs(), v, n);
  std::atomic<std::size_t> next = 0, end = n;
  const auto endAt = [&](std::size_t row) {
    for (std::size_t e = end; row < e && !end.compare_exchange_weak(e, row);) {
    }
  };
  std::vector<std::exception_ptr> failures(threads);
  const auto work = [&](std::size_t k) {
    try {
      Function::Rows rows(f, mayOverlap);
      Interrupts interrupts;
      for (std::size_t first = 0; (first = next.fetch_add(chunk)) < end;) {
        const std::size_t last = std::min(first + chunk, n);
        const std::size_t done = rows.run(from, first, last, v, g);
        if (done != last) endAt(done);
        if (k == 0) interrupts();
      }
    } catch (...) {
      failures[k] = std::current_exception();
      endAt(0);
    }
  };
  {
    const Unlocked unlocked;
    std::vector<std::thread> helpers;
    try {
      for (std::size_t k = 1; k < threads; ++k) helpers.emplace_back(work, k);
    } catch (const std::exception&) {
    } // the system gives no more of them
    work(0);
    for (auto& helper : helpers) helper.join();
  }
  for (const auto& failure : failures)
    if (failure) std::rethrow_exception(failure);
  return end;
}

bt::optim::Method methodNamed(const std::string& name) {
  using bt::optim::Method;
  static const std::vector<std::pair<std::string, Method>> known{{"gd", Method::gd},
                                                                 {"momentum", Method::momentum},
                                                                 {"adam", Method::adam},
                                                                 {"lbfgs", Method::lbfgs}};
  std::string all;
  for (const auto& [each, method] : known) {
    if (each == name) return method;
    all += (all.empty() ? "" : ", ") + each;
  }
  throw py::value_error("unknown method '" + name + "'; there are " + all);
}

py::object minimize(Function& f, const Array& x0, const std::string& method, std::size_t steps,
                    double lr, double momentum, double tolerance, std::size_t memory) {
  Array x = vector(f.inputs());
  std::copy_n(point(f, x0), f.inputs(), x.mutable_data());
  const std::span<double> at(x.mutable_data(), f.inputs());
  const bt::optim::MinimizeOptions options{methodNamed(method), steps, lr, momentum,
                                           tolerance,           memory};
  bool branched = false;
  bt::optim::Minimum<double> m{};
  {
    const Unlocked unlocked;
    Function::Loan loan(f);
    Interrupts interrupts;
    const auto objective = [&](const double* p, double* g) {
      double value = std::numeric_limits<double>::quiet_NaN();
      if (!f.nativeGradient(p, g, value) && !f.valueAndGradient(loan.space, p, g, value))
        branched = true;
      return value;
    };
    m = bt::optim::minimize<double>(objective, at, options, [&] {
      if (branched) return false;
      interrupts();
      return true;
    });
  }
  if (branched) return py::none();
  return py::make_tuple(x, m.value, m.slope, m.steps, m.converged);
}

// ---- looking and keeping --------------------------------------------------------------------------

std::string source(const Function& f, const std::string& name, bool isGuarded) {
  if (f.hasBranches())
    throw py::value_error("the function branches here: C code has one way to go. The text is "
                          "available where no comparison depends on the arguments");
  return bt::emit(f.recording(), {.name = name, .isGuarded = isGuarded});
}

// Without the numbers that it was recorded with, and without what only decides where to go.
std::string dot(const Function& f) {
  using bt::viz::Fields;
  const auto text = [](const bt::Recording<double>& recording) {
    return bt::buildDotGraph(recording.tape(), "", {.fields = Fields::label | Fields::operation});
  };
  const auto& all = f.recording();
  if (!f.hasBranches()) return text(all);
  auto& tape = const_cast<bt::Tape<double>&>(all.tape()); // which a recording only reads
  std::vector<bt::Value<double>> in, out;
  for (const auto i : all.inputNodes()) in.push_back(bt::Value<double>::at(tape, i));
  for (const auto i : all.outputNodes().first(f.outputs()))
    out.push_back(bt::Value<double>::at(tape, i));
  return text(bt::Recording<double>(in, out));
}

// The recording as a tape, to be saved with three marks: its inputs are the leaves between the first
// and the second, its outputs the nodes from the third on.
py::tuple graph(const Function& f) {
  if (f.hasBranches())
    throw py::value_error("the function branches here: one recording would not be the function");
  const auto& r = f.recording();
  Ref<AnyTape> any(new TapeOf<double>(DType::float64, 0));
  auto& t = static_cast<TapeOf<double>&>(*any);
  bt::detail::TapeAccess::copy(r.tape(), r.tape().size(), 0, t.tape);
  for (std::size_t i = 0; i < r.tape().size(); ++i)
    if (const auto label = r.tape().label(i); !label.empty()) t.tape.setLabel(i, label);
  const auto in = r.inputNodes(), out = r.outputNodes();
  const auto follow = [](const auto& nodes) {
    return std::ranges::adjacent_find(nodes, [](auto a, auto b) { return b != a + 1; }) ==
           nodes.end();
  };
  if (!follow(in)) throw py::value_error("the inputs do not stand next to each other");
  const std::size_t record = t.tape.recordOf(out.front());
  const bool isWhole =
      record == t.tape.records().size() || t.tape.records()[record].firstResult() == out.front();
  std::size_t outputs = out.front();
  if (!follow(out) || out.back() + std::size_t{1} != t.tape.size() || !isWhole) {
    outputs = t.tape.size();
    for (const auto node : out) TapeOf<double>::Value::at(t.tape, node) * 1.0;
  }
  const std::size_t first = in.empty() ? 0 : in.front();
  py::list marks;
  for (const std::size_t nodes : {first, first + in.size(), outputs}) {
    TapeOf<double>::Tape ruler; // in files a mark is how many nodes are older
    ruler.leaves(nodes);
    marks.append(std::make_unique<Mark>(t, ruler.mark()));
  }
  return py::make_tuple(any, marks);
}

// The function that such a tape holds.
std::unique_ptr<Function> functionOnTape(AnyTape& any, const std::vector<Mark*>& marks) {
  const auto refuse = [](const std::string& why) -> void {
    throw py::value_error("this graph is no stored function: " + why);
  };
  if (any.dtype != DType::float64) refuse("its numbers are not float64");
  if (marks.size() != 3) refuse("it has " + std::to_string(marks.size()) + " marks, not 3");
  auto& t = static_cast<TapeOf<double>&>(any);
  std::size_t at[3];
  for (std::size_t i = 0; i < 3; ++i) at[i] = marks[i]->on(t).nodes();
  if (at[2] == t.tape.size()) refuse("it has no outputs");
  const auto nodes = [&](std::size_t first, std::size_t last) {
    Values values;
    for (; first < last; ++first) values.push_back(TapeOf<double>::Value::at(t.tape, first));
    return values;
  };
  return std::make_unique<Function>(nodes(at[0], at[1]), nodes(at[2], t.tape.size()));
}

} // namespace

void registerCompile(py::module_& module) {
  for (PyTypeObject* type : {&fastType, &boundType})
    if (PyType_Ready(type) != 0) throw py::error_already_set();
  module.attr("Fast") = py::handle(reinterpret_cast<PyObject*>(&fastType));
  module.attr("Bound") = py::handle(reinterpret_cast<PyObject*>(&boundType));
  py::class_<Tracing>(module, "Tracing",
                      "Notes or refuses comparisons while a function is recorded.")
      .def(py::init<AnyTape&, const py::sequence&, bool>(), py::arg("tape"), py::arg("inputs"),
           py::arg("dynamic"))
      .def("__enter__",
           [](Tracing& tracing) -> Tracing& {
             tracing.enter();
             return tracing;
           })
      .def("__exit__", [](Tracing& tracing, const py::args&) { tracing.exit(); })
      .def_property_readonly("branches",
                             [](const Tracing& tracing) { return tracing.branches().size(); });
  py::class_<Function>(module, "Function", "A recorded function of a flat vector.")
      .def(py::init<const Tracing&, const py::sequence&, bool>(), py::arg("tracing"),
           py::arg("outputs"), py::arg("shares") = false)
      .def(py::init(&functionOnTape), py::arg("tape"), py::arg("marks"))
      .def_property_readonly("inputs", &Function::inputs)
      .def_property_readonly("outputs", &Function::outputs)
      .def_property_readonly("operations", &Function::operations)
      .def_property_readonly("work", &Function::work)
      .def_property_readonly("has_blocks", &Function::hasBlocks)
      .def_property_readonly("is_native", &Function::isNative)
      .def("use_native", &Function::useNative, py::arg("addresses"), py::arg("owner"))
      .def("values", &values, py::arg("x"))
      .def("value_and_grad", &valueAndGrad, py::arg("x"))
      .def("jacobian", &jacobian, py::arg("x"))
      .def("jvp", &jvp, py::arg("x"), py::arg("v"))
      .def("hvp", &hvp, py::arg("x"), py::arg("v"))
      .def("batch", &batch, py::arg("x"), py::arg("values").noconvert(),
           py::arg("gradients").noconvert(), py::arg("threads"))
      .def("minimize", &minimize, py::arg("x"), py::arg("method"), py::arg("steps"), py::arg("lr"),
           py::arg("momentum"), py::arg("tolerance"), py::arg("memory"))
      .def("source", &source, py::arg("name"), py::arg("guarded") = true)
      .def("dot", &dot)
      .def("graph", &graph);
  module.def("bind", &bind, py::arg("function"), py::arg("x"), py::arg("out"));
}

} // namespace burtorch_python
