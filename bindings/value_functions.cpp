// bindings/value_functions.cpp — the functions and methods of the operation table
// SPDX-License-Identifier: MIT
#include "help.hpp"
#include "names.hpp"
#include "value.hpp"
#include "value_operations.hpp"
#include "view.hpp"

#include <pybind11/numpy.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace burtorch_python {

namespace {

template <class O> PyObject* unaryMethod(PyObject* self, PyObject*) { return unary<O>(self); }

// A function of the table on every element of NumPy arrays of Values, such as burtorch.grad hands to
// its function; nullptr without an error set if no operand is one.
PyObject* mapArray(PyObject* module, const char* function, PyObject* const* x, Py_ssize_t count) {
  namespace py = pybind11;
  return guarded([&]() -> PyObject* {
    const auto isOfObjects = [](PyObject* object) {
      return py::isinstance<py::array>(object) &&
             py::reinterpret_borrow<py::array>(object).dtype().kind() == 'O';
    };
    if (std::none_of(x, x + count, isOfObjects)) return nullptr;
    py::tuple operands(static_cast<std::size_t>(count));
    for (Py_ssize_t i = 0; i < count; ++i) operands[static_cast<std::size_t>(i)] = py::handle(x[i]);
    const py::object f = py::handle(module).attr(snakeCase(function).c_str());
    const py::object mapped = py::module_::import("numpy").attr("frompyfunc")(f, count, 1);
    return py::object(mapped(*operands)).release().ptr();
  });
}

// An operation on what is neither a Value nor a number: Views, arrays of Values.
template <class O> PyObject* mapAny(PyObject* module, PyObject* const* x, Py_ssize_t count) {
  PyObject* view = nullptr;
  if (count == 1) view = mapView(bt::op::Entry<O>::code, x[0]);
  if (count == 2) view = mapView(bt::op::Entry<O>::code, x[0], x[1]);
  if (view != nullptr || PyErr_Occurred()) return view;
  return mapArray(module, bt::op::Entry<O>::name, x, count);
}

PyObject* stopGradient(PyObject* module, PyObject* x) {
  if (isValue(x)) return detached(x, nullptr);
  double plain = 0;
  if (asNumber(x, plain)) return PyFloat_FromDouble(plain);
  if (PyErr_Occurred()) return nullptr;
  PyObject* stopped = detachView(x);
  if (stopped == nullptr && !PyErr_Occurred()) stopped = mapArray(module, "stopGradient", &x, 1);
  if (stopped != nullptr || PyErr_Occurred()) return stopped;
  return typeError("expected a Value, a View or a number, not %.100s", x);
}

// burtorch.exp(x) and the like: of a Value, or of a plain number, which gives a plain number.
template <class O> PyObject* unaryFunction(PyObject* module, PyObject* x) {
  if (isValue(x)) return unary<O>(x);
  double plain = 0;
  if (asNumber(x, plain)) return PyFloat_FromDouble(O::forward(plain));
  if (PyErr_Occurred()) return nullptr;
  PyObject* const mapped = mapAny<O>(module, &x, 1);
  if (mapped != nullptr || PyErr_Occurred()) return mapped;
  return typeError("expected a Value, a View or a number, not %.100s", x);
}

template <class O>
PyObject* binaryFunction(PyObject* module, PyObject* const* args, Py_ssize_t count) {
  if (!checkCount(count, 2)) return nullptr;
  if (!isValue(args[0]) && !isValue(args[1])) {
    double x = 0, y = 0;
    if (asNumber(args[0], x) && asNumber(args[1], y)) return PyFloat_FromDouble(O::forward(x, y));
    if (PyErr_Occurred()) return nullptr;
    PyObject* const mapped = mapAny<O>(module, args, count);
    if (mapped != nullptr || PyErr_Occurred()) return mapped;
    return typeError("expected Values or numbers, not %.100s",
                     asNumber(args[0], x) ? args[1] : args[0]);
  }
  PyObject* const z = binary<O>(args[0], args[1]);
  if (z != Py_NotImplemented) return z;
  Py_DECREF(z);
  PyObject* const mapped = mapAny<O>(module, args, count);
  if (mapped != nullptr || PyErr_Occurred()) return mapped;
  return typeError("expected Values or numbers, not %.100s", isValue(args[0]) ? args[1] : args[0]);
}

template <class O>
PyObject* clippedFunction(PyObject* module, PyObject* const* args, Py_ssize_t count) {
  if (!checkCount(count, 3)) return nullptr;
  Number lo{args[1]}, hi{args[2]};
  if (!asNumber(lo.object, lo.rounded) || !asNumber(hi.object, hi.rounded)) {
    if (PyErr_Occurred()) return nullptr;
    return typeError("expected numbers as bounds, not %.100s",
                     asNumber(lo.object, lo.rounded) ? hi.object : lo.object);
  }
  if (isValue(args[0])) return clipped<O>(args[0], lo, hi);
  double x = 0;
  if (asNumber(args[0], x)) return PyFloat_FromDouble(O::forward(x, lo.rounded, hi.rounded));
  if (PyErr_Occurred()) return nullptr;
  PyObject* mapped = mapView(bt::op::Entry<O>::code, args[0], lo.rounded, hi.rounded);
  if (mapped == nullptr && !PyErr_Occurred())
    mapped = mapArray(module, bt::op::Entry<O>::name, args, count);
  if (mapped != nullptr || PyErr_Occurred()) return mapped;
  return typeError("expected a Value, a View or a number first, not %.100s", args[0]);
}

// ---- methods of two operands ----------------------------------------------------------------------

template <class O> PyObject* binaryMethod(PyObject* x, PyObject* y) {
  PyObject* const z = binary<O>(x, y);
  if (z != Py_NotImplemented) return z;
  Py_DECREF(z);
  return typeError("expected a Value or a number, not %.100s", y);
}

// x += y, but for everyone who holds x: it moves to the new node. What was made of x before still
// stands on the old one.
template <class O> PyObject* inplaceMethod(PyObject* x, PyObject* y) {
  PyObject* const z = binaryMethod<O>(x, y);
  if (z == nullptr) return nullptr;
  std::swap(asValue(x)->handle, asValue(z)->handle);
  Py_DECREF(z);
  return positive(x);
}

template <class O> PyObject* inplaceFunction(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (!checkCount(count, 2)) return nullptr;
  if (!isValue(args[0])) return typeError("expected a Value first, not %.100s", args[0]);
  return inplaceMethod<O>(args[0], args[1]);
}

// X(struct in namespace op, name in Python)
#define BURTORCH_INPLACE_OPERATIONS(X)                                                             \
  X(BinaryAdd, add_inplace)                                                                        \
  X(BinarySub, sub_inplace)                                                                        \
  X(BinaryMult, mult_inplace)                                                                      \
  X(BinaryDiv, div_inplace)

} // namespace

// ---- tables ---------------------------------------------------------------------------------------

std::vector<PyMethodDef>& tableMethods() {
  static std::vector<PyMethodDef> all = [] {
    std::vector<PyMethodDef> m = valueMethods();
    m.insert(
        m.end(),
        {
            // What NumPy's functions of these names look for in the elements of an array.
            {"arcsin", unaryMethod<bt::op::Asin>, METH_NOARGS, "The same as asin, for NumPy."},
            {"arccos", unaryMethod<bt::op::Acos>, METH_NOARGS, "The same as acos, for NumPy."},
            {"arctan", unaryMethod<bt::op::Atan>, METH_NOARGS, "The same as atan, for NumPy."},
            {"arctan2", binaryMethod<bt::op::BinaryAtan2>, METH_O, "burtorch.atan2, for NumPy."},
            {"hypot", binaryMethod<bt::op::BinaryHypot>, METH_O, "burtorch.hypot, for NumPy."},
        });
#define BURTORCH_METHOD(Name, function)                                                            \
  m.push_back({#function, inplaceMethod<bt::op::Name>, METH_O,                                     \
               help(#function, "($self, y, /)",                                                    \
                    "Move this Value to the result of the operation with y; returns it.")});
    BURTORCH_INPLACE_OPERATIONS(BURTORCH_METHOD)
#undef BURTORCH_METHOD
#define BURTORCH_METHOD(Name, function)                                                            \
  m.push_back({keep(snakeCase(#function)), unaryMethod<bt::op::Name>, METH_NOARGS,                 \
               help(snakeCase(#function), "($self, /)", "x is this Value.")});
    BURTORCH_UNARY_OPERATIONS(BURTORCH_METHOD)
#undef BURTORCH_METHOD
    m.push_back({nullptr, nullptr, 0, nullptr});
    return m;
  }();
  return all;
}

std::vector<PyMethodDef>& tableFunctions() {
  static std::vector<PyMethodDef> all = [] {
    std::vector<PyMethodDef> f{
        {"logarithm", unaryFunction<bt::op::Log>, METH_O,
         help("logarithm", "(x, /)", "ln x; the same as log.")},
        {"stop_gradient", stopGradient, METH_O,
         "stop_gradient(x, /)\n--\n\nThe same numbers without a gradient, of a Value, a View, an "
         "array of Values or a number:\nleaves. In a compiled function they follow its inputs at "
         "every call."},
    };
#define BURTORCH_FUNCTION(Name, function)                                                          \
  f.push_back({keep(snakeCase(#function)), unaryFunction<bt::op::Name>, METH_O,                    \
               help(snakeCase(#function), "(x, /)",                                                \
                    "of a Value, a View, an array of Values or a number.")});
    BURTORCH_UNARY_OPERATIONS(BURTORCH_FUNCTION)
#undef BURTORCH_FUNCTION
#define BURTORCH_FUNCTION(Name, function)                                                          \
  f.push_back({keep(snakeCase(#function)), erased(binaryFunction<bt::op::Name>), METH_FASTCALL,    \
               help(snakeCase(#function), "(x, y, /)",                                             \
                    "of Values, Views, arrays of Values and numbers.")});
    BURTORCH_BINARY_OPERATIONS(BURTORCH_FUNCTION)
#undef BURTORCH_FUNCTION
#define BURTORCH_FUNCTION(Name, function)                                                          \
  f.push_back({keep(snakeCase(#function)), erased(clippedFunction<bt::op::Name>), METH_FASTCALL,   \
               help(snakeCase(#function), "(x, lo, hi, /)",                                        \
                    "of a Value, a View, an array of Values or a number, between two numbers.")});
    BURTORCH_CLIPPED_OPERATIONS(BURTORCH_FUNCTION)
#undef BURTORCH_FUNCTION
#define BURTORCH_FUNCTION(Name, function)                                                          \
  f.push_back({#function, erased(inplaceFunction<bt::op::Name>), METH_FASTCALL,                    \
               help(#function, "(x, y, /)",                                                        \
                    "Move x, a Value, to the result of the operation with y; returns x.")});
    BURTORCH_INPLACE_OPERATIONS(BURTORCH_FUNCTION)
#undef BURTORCH_FUNCTION
    f.push_back({nullptr, nullptr, 0, nullptr});
    return f;
  }();
  return all;
}

} // namespace burtorch_python
