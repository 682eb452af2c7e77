// bindings/value_operations.hpp — an operation of the table on Values: compiled in value.cpp, once for all callers
// SPDX-License-Identifier: MIT
#pragma once

#include <Python.h>

namespace burtorch_python {

// A plain number beside a Value. Where a double is too short, the object is read again.
struct Number {
  PyObject* object;
  double rounded = 0;
};

template <class O> PyObject* unary(PyObject* x);
// Either operand may be a number; NotImplemented for anything else.
template <class O> PyObject* binary(PyObject* x, PyObject* y);
template <class O> PyObject* clipped(PyObject* x, const Number& lo, const Number& hi);

} // namespace burtorch_python
