// bindings/compiled_calls.cpp — recorded functions called in inner loops, without the cost of general argument handling
// SPDX-License-Identifier: MIT
//
//   Fast    value_and_grad(x, out=None) for the array that the function was recorded for; everything
//           else goes to the Python method that it was given
//   Bound   run(): reads x, writes value and gradient into out
#include "compiled.hpp"

#include <pybind11/numpy.h>

#include <cstddef>
#include <string>

namespace py = pybind11;

namespace burtorch_python {

namespace {

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

} // namespace

void addCalls(py::module_& module) {
  for (PyTypeObject* type : {&fastType, &boundType})
    if (PyType_Ready(type) != 0) throw py::error_already_set();
  module.attr("Fast") = py::handle(reinterpret_cast<PyObject*>(&fastType));
  module.attr("Bound") = py::handle(reinterpret_cast<PyObject*>(&boundType));
  module.def("bind", &bind, py::arg("function"), py::arg("x"), py::arg("out"));
}

} // namespace burtorch_python
