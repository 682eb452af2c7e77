// bindings/numbers.hpp — plain numbers, as Python programs have them
// SPDX-License-Identifier: MIT
#pragma once

#include <Python.h>

namespace burtorch_python {

bool asOtherNumber(PyObject* object, double& number); // no float itself

// float, int, bool, NumPy scalar. False without an error set: something else. False with an error set:
// a number that does not fit.
inline bool asNumber(PyObject* object, double& number) {
  if (!PyFloat_CheckExact(object)) return asOtherNumber(object, number);
  number = PyFloat_AS_DOUBLE(object);
  return true;
}

// left < right and the like: operation is Py_LT, Py_LE, Py_GT, Py_GE, Py_EQ or Py_NE.
inline bool compare(double left, double right, int operation) {
  switch (operation) {
  case Py_LT:
    return left < right;
  case Py_LE:
    return left <= right;
  case Py_GT:
    return left > right;
  case Py_GE:
    return left >= right;
  case Py_EQ:
    return left == right;
  default:
    return left != right;
  }
}

void findNumbers(); // NumPy's scalar types; to be called once, first

} // namespace burtorch_python
