// bindings/numbers.cpp — plain numbers, as Python programs have them
// SPDX-License-Identifier: MIT
#include "numbers.hpp"

#include <pybind11/pybind11.h>

namespace burtorch_python {

namespace {

PyObject* numpyNumbers = nullptr; // numpy.floating, numpy.integer, numpy.bool_
PyObject* numpyTime = nullptr;    // numpy.timedelta64, which NumPy counts among the integers

} // namespace

bool asOtherNumber(PyObject* object, double& number) {
  if (PyLong_Check(object)) {
    number = PyLong_AsDouble(object);
    return !(number == -1.0 && PyErr_Occurred());
  }
  if (PyFloat_Check(object)) {
    number = PyFloat_AS_DOUBLE(object);
    return true;
  }
  if (PyObject_IsInstance(object, numpyNumbers) <= 0 || PyObject_IsInstance(object, numpyTime) != 0)
    return false;
  number = PyFloat_AsDouble(object);
  return !(number == -1.0 && PyErr_Occurred());
}

void findNumbers() {
  namespace py = pybind11;
  const auto numpy = py::module_::import("numpy");
  numpyNumbers = py::make_tuple(numpy.attr("floating"), numpy.attr("integer"), numpy.attr("bool_"))
                     .release()
                     .ptr();
  numpyTime = py::object(numpy.attr("timedelta64")).release().ptr();
}

} // namespace burtorch_python
