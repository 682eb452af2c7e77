// bindings/compile.cpp — recorded functions for burtorch.compile: run, bound, in batches, minimized
// SPDX-License-Identifier: MIT
//
// Function is a recording with its workspace and, once loaded, its native code. Two small CPython types
// are what a program calls in its inner loops, without the cost of general argument handling:
//
//   Fast    value_and_grad(x, out=None) for the array that the function was recorded for; everything
//           else goes to the Python method that it was given
//   Bound   run(): reads x, writes value and gradient into out
#include "lock.hpp"
#include "register.hpp"
#include "value.hpp"

#include <burtorch/emit.hpp>
#include <burtorch/optim/minimize.hpp>
#include <burtorch/replay.hpp>
#include <burtorch/scalar/dual.hpp>
#include <burtorch/viz/dot.hpp>

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace burtorch_python {

namespace {

using Array = py::array_t<double, py::array::c_style | py::array::forcecast>;
using Lanes = bt::simd<double, bt::nativeLanes<double> == 1 ? 4 : bt::nativeLanes<double>>;
using Values = std::vector<TapeOf<double>::Value>;

// ---- recording ------------------------------------------------------------------------------------

// with Tracing(tape, dynamic): comparisons of Values made inside are noted, or refused.
class Tracing {
public:
  Tracing(AnyTape& tape, bool isDynamic) : tape_(&tape) {
    if (tape.dtype != DType::float64)
      throw py::value_error("compile records on tapes of dtype float64");
    trace_.isDynamic = isDynamic;
  }
  Tracing(const Tracing&) = delete;
  Tracing& operator=(const Tracing&) = delete;
  ~Tracing() { exit(); }
  void enter() {
    trace_.from = static_cast<TapeOf<double>&>(*tape_).tape.size();
    before_ = std::exchange(tape_->trace, &trace_);
  }
  void exit() {
    if (tape_->trace == &trace_) tape_->trace = before_;
  }
  const std::vector<Trace::Branch>& branches() const { return trace_.branches; }
  AnyTape& tape() const { return *tape_; }

private:
  Ref<AnyTape> tape_;
  Trace trace_{};
  Trace* before_ = nullptr;
};

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

// Functions compiled elsewhere: those of emit.hpp.
struct Native {
  double (*value)(const double*) = nullptr;
  double (*gradient)(const double*, double*) = nullptr;
  void (*batch)(unsigned long, const double*, double*, double*) = nullptr;
  py::object owner; // of their code
};

// A decision of the recorded program; its sides are outputs of the recording, or numbers.
using Branch = Trace::Branch;

class Function {
public:
  Function(const Tracing& tracing, const py::sequence& inputs, const py::sequence& outputs,
           bool shares)
      : branches_(tracing.branches()), outputs_(outputs.size()) {
    const Values in = valuesIn(inputs, tracing.tape());
    Values out = valuesIn(outputs, tracing.tape());
    auto& tape = static_cast<TapeOf<double>&>(tracing.tape()).tape;
    for (Branch& branch : branches_)
      for (Trace::Side* side : {&branch.left, &branch.right})
        if (side->node >= 0) {
          out.push_back(TapeOf<double>::Value::at(tape, static_cast<std::size_t>(side->node)));
          side->node = static_cast<std::ptrdiff_t>(out.size() - 1);
        }
    recording_ = std::make_unique<const bt::Recording<double>>(
        in, out, shares ? bt::Passes::all : bt::Passes::exact);
    workspace_ = recording_->workspace();
  }

  std::size_t inputs() const { return recording_->inputs(); }
  std::size_t outputs() const { return outputs_; }
  std::size_t operations() const { return recording_->tape().records().size(); }
  bool isNative() const { return native_.gradient != nullptr; }
  const bt::Recording<double>& recording() const { return *recording_; }

  void useNative(std::uintptr_t value, std::uintptr_t gradient, std::uintptr_t batch,
                 py::object owner) {
    if (!branches_.empty() || outputs_ != 1)
      throw py::value_error("native code is for one output and no branches");
    native_ = {reinterpret_cast<decltype(Native::value)>(value),
               reinterpret_cast<decltype(Native::gradient)>(gradient),
               reinterpret_cast<decltype(Native::batch)>(batch), std::move(owner)};
  }

  // False: the recorded program would have branched differently here.
  bool value(const double* x, double& result) {
    if (native_.value != nullptr) {
      result = native_.value(x);
      return true;
    }
    return values(x, &result);
  }
  bool values(const double* x, double* results) {
    return values(workspace_, x) && (copyOutputs(results), true);
  }
  bool valueAndGradient(const double* x, double* gradient, double& result) {
    if (native_.gradient != nullptr) [[likely]] {
      result = native_.gradient(x, gradient);
      return true;
    }
    return valueAndGradient(workspace_, x, gradient, result);
  }
  bool valueAndGradient(bt::Workspace<double>& w, const double* x, double* gradient,
                        double& result) const {
    if (!values(w, x)) return false;
    recording_->backward(w);
    recording_->gradient(w, gradient);
    result = recording_->output(w);
    return true;
  }
  bool jacobian(const double* x, double* results, double* rows) {
    if (!values(x, results)) return false;
    for (std::size_t i = 0; i < outputs_; ++i) {
      recording_->backward(workspace_, i);
      recording_->gradient(workspace_, rows + i * inputs());
    }
    return true;
  }
  // Value and slope along v; with a product also the Hessian times v.
  bool second(const double* x, const double* v, double* valueAndSlope, double* product) {
    if (!duals_) duals_ = recording_->workspace<bt::dual<double>>();
    std::vector<bt::dual<double>> at(inputs());
    for (std::size_t i = 0; i < at.size(); ++i) at[i] = {x[i], v[i]};
    recording_->set(*duals_, at);
    recording_->forward(*duals_);
    if (!holds([&](std::size_t i) { return recording_->output(*duals_, i).value; })) return false;
    for (std::size_t i = 0; i < outputs_; ++i) {
      valueAndSlope[2 * i] = recording_->output(*duals_, i).value;
      valueAndSlope[2 * i + 1] = recording_->output(*duals_, i).tangent;
    }
    if (product == nullptr) return true;
    recording_->backward(*duals_);
    recording_->gradient(*duals_, at);
    for (std::size_t i = 0; i < at.size(); ++i) product[i] = at[i].tangent;
    return true;
  }

  // Rows [first, last) of a batch; may be called by several threads. The first row that would branch
  // differently, or last.
  std::size_t batch(const double* x, std::size_t first, std::size_t last, double* values,
                    double* grads) const {
    const std::size_t d = inputs(), n = last - first;
    x += first * d;
    grads += first * d;
    values += first;
    if (native_.batch != nullptr) {
      native_.batch(static_cast<unsigned long>(n), x, values, grads);
    } else if (branches_.empty() && !recording_->hasBlocks()) {
      auto w = recording_->workspace<Lanes>();
      recording_->batch(w, x, n, values, grads);
    } else {
      auto w = recording_->workspace();
      for (std::size_t i = 0; i < n; ++i)
        if (!valueAndGradient(w, x + i * d, grads + i * d, values[i])) return first + i;
    }
    return last;
  }

private:
  bool values(bt::Workspace<double>& w, const double* x) const {
    recording_->set(w, x);
    recording_->forward(w);
    return branches_.empty() || holds([&](std::size_t i) { return recording_->output(w, i); });
  }
  void copyOutputs(double* results) const {
    for (std::size_t i = 0; i < outputs_; ++i) results[i] = recording_->output(workspace_, i);
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

  std::unique_ptr<const bt::Recording<double>> recording_;
  std::vector<Branch> branches_;
  std::size_t outputs_;
  bt::Workspace<double> workspace_; // used with the interpreter's lock held
  std::optional<bt::Workspace<bt::dual<double>>> duals_;
  Native native_;
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
    if (out != nullptr &&
        f->valueAndGradient(x, reinterpret_cast<double*>(py::detail::array_proxy(out)->data),
                            value)) [[likely]] {
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
  PyObject *function, *x, *out; // kept alive; nobody can resize an array that others refer to
  Function* f;
  const double* from;
  double* to;
};

PyBound* asBound(PyObject* object) { return reinterpret_cast<PyBound*>(object); }

PyObject* callBound(PyObject* self, PyObject* const*, std::size_t count, PyObject* names) {
  const PyBound* const bound = asBound(self);
  if (PyVectorcall_NARGS(count) != 0 || names != nullptr) {
    PyErr_SetString(PyExc_TypeError, "a bound function takes no arguments");
    return nullptr;
  }
  if (!bound->f->valueAndGradient(bound->from, bound->to + 1, bound->to[0])) [[unlikely]] {
    PyErr_SetString(PyExc_RuntimeError,
                    "the function branches differently here than where it was bound; bind again");
    return nullptr;
  }
  Py_RETURN_NONE;
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
  const double* const from = numbersOf(x.ptr(), f.inputs(), false);
  double* const to = numbersOf(out.ptr(), f.inputs() + 1, true);
  const std::string n = std::to_string(f.inputs()), more = std::to_string(f.inputs() + 1);
  if (from == nullptr)
    throw py::value_error("bind: x is read in place, so it must be a contiguous float64 array of "
                          "shape (" +
                          n + ",)");
  if (to == nullptr)
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
  bound->from = from;
  bound->to = to;
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
  if (f.outputs() == 1 ? !f.value(point(f, x), *y.mutable_data())
                       : !f.values(point(f, x), y.mutable_data()))
    return py::none();
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
// differently, n if there is none.
std::size_t batch(const Function& f, const Array& x, py::array_t<double> values,
                  py::array_t<double> grads, std::size_t threads) {
  const auto n = static_cast<std::size_t>(x.shape(0));
  if (static_cast<std::size_t>(x.size()) != n * f.inputs() || x.size() != grads.size() ||
      static_cast<std::size_t>(values.size()) != n)
    throw py::value_error("batch takes an array of shape (n, " + std::to_string(f.inputs()) + ")");
  const double* const from = x.data();
  double *const v = values.mutable_data(), *const g = grads.mutable_data();
  threads = std::clamp<std::size_t>(threads, 1, std::max<std::size_t>(n / 64, 1));
  std::vector<std::size_t> ends(threads);
  const auto part = [&](std::size_t k) {
    ends[k] = f.batch(from, n * k / threads, n * (k + 1) / threads, v, g);
  };
  {
    const Unlocked unlocked;
    std::vector<std::thread> helpers;
    for (std::size_t k = 1; k < threads; ++k) helpers.emplace_back(part, k);
    part(0);
    for (auto& helper : helpers) helper.join();
  }
  for (std::size_t k = 0; k < threads; ++k)
    if (ends[k] != n * (k + 1) / threads) return ends[k];
  return n;
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
  using clock = std::chrono::steady_clock;
  Array x = vector(f.inputs());
  std::copy_n(point(f, x0), f.inputs(), x.mutable_data());
  const std::span<double> at(x.mutable_data(), f.inputs());
  const bt::optim::MinimizeOptions options{methodNamed(method), steps, lr, momentum,
                                           tolerance,           memory};
  auto w = f.recording().workspace();
  bool branched = false;
  bt::optim::Minimum<double> m{};
  {
    const Unlocked unlocked;
    auto asked = clock::now();
    const auto objective = [&](const double* p, double* g) {
      double value = std::numeric_limits<double>::quiet_NaN();
      if (f.isNative()) f.valueAndGradient(p, g, value); // which has no workspace
      else if (!f.valueAndGradient(w, p, g, value)) branched = true;
      return value;
    };
    m = bt::optim::minimize<double>(objective, at, options, [&] {
      if (branched) return false;
      const auto now = clock::now();
      if (now - asked < std::chrono::milliseconds(20)) return true;
      asked = now;
      const Relocked locked;
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      return true;
    });
  }
  if (branched) return py::none();
  return py::make_tuple(x, m.value, m.slope, m.steps, m.converged);
}

} // namespace

void registerCompile(py::module_& module) {
  for (PyTypeObject* type : {&fastType, &boundType})
    if (PyType_Ready(type) != 0) throw py::error_already_set();
  module.attr("Fast") = py::handle(reinterpret_cast<PyObject*>(&fastType));
  module.attr("Bound") = py::handle(reinterpret_cast<PyObject*>(&boundType));
  py::class_<Tracing>(module, "Tracing",
                      "Notes or refuses comparisons while a function is recorded.")
      .def(py::init<AnyTape&, bool>(), py::arg("tape"), py::arg("dynamic"))
      .def("__enter__",
           [](Tracing& tracing) -> Tracing& {
             tracing.enter();
             return tracing;
           })
      .def("__exit__", [](Tracing& tracing, const py::args&) { tracing.exit(); })
      .def_property_readonly("branches",
                             [](const Tracing& tracing) { return tracing.branches().size(); });
  py::class_<Function>(module, "Function", "A recorded function of a flat vector.")
      .def(py::init<const Tracing&, const py::sequence&, const py::sequence&, bool>(),
           py::arg("tracing"), py::arg("inputs"), py::arg("outputs"), py::arg("shares") = false)
      .def_property_readonly("inputs", &Function::inputs)
      .def_property_readonly("outputs", &Function::outputs)
      .def_property_readonly("operations", &Function::operations)
      .def_property_readonly("is_native", &Function::isNative)
      .def("use_native", &Function::useNative, py::arg("value"), py::arg("gradient"),
           py::arg("batch"), py::arg("owner"))
      .def("values", &values, py::arg("x"))
      .def("value_and_grad", &valueAndGrad, py::arg("x"))
      .def("jacobian", &jacobian, py::arg("x"))
      .def("jvp", &jvp, py::arg("x"), py::arg("v"))
      .def("hvp", &hvp, py::arg("x"), py::arg("v"))
      .def("batch", &batch, py::arg("x"), py::arg("values").noconvert(),
           py::arg("gradients").noconvert(), py::arg("threads"))
      .def("minimize", &minimize, py::arg("x"), py::arg("method"), py::arg("steps"), py::arg("lr"),
           py::arg("momentum"), py::arg("tolerance"), py::arg("memory"))
      .def(
          "source",
          [](const Function& f, const std::string& name) {
            return bt::emit(f.recording(), {.name = name});
          },
          py::arg("name"))
      .def("dot", [](const Function& f) { // without the numbers that it was recorded with
        using bt::viz::Fields;
        return bt::buildDotGraph(f.recording().tape(), "",
                                 {.fields = Fields::label | Fields::operation});
      });
  module.def("bind", &bind, py::arg("function"), py::arg("x"), py::arg("out"));
}

} // namespace burtorch_python
