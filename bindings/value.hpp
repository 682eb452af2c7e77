// bindings/value.hpp — burtorch.Value, a CPython type written by hand
// SPDX-License-Identifier: MIT
//
// Its operators are what a Python program does all day, and dispatching them through a general
// binding layer would cost several times the operation itself.
#pragma once

#include "tape.hpp"

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace burtorch_python {

// A tape, a node, and the place in the tape's list of live Values: 48 bytes.
struct PyValue {
  PyObject_HEAD AnyTape* tape;     // counted
  alignas(8) std::byte handle[16]; // a bt::Value of the tape's dtype
  std::uint32_t slot;

  template <class T> typename TapeOf<T>::Value as() const {
    typename TapeOf<T>::Value v;
    static_assert(sizeof(v) == sizeof(handle) && std::is_trivially_copyable_v<decltype(v)>);
    std::memcpy(static_cast<void*>(&v), handle, sizeof(v));
    return v;
  }
  template <class V> void set(const V& v) { std::memcpy(handle, &v, sizeof(v)); }
};

extern PyTypeObject valueType;

inline bool isValue(PyObject* object) { return Py_TYPE(object) == &valueType; }

// A new Python Value for a node.
template <class T> PyObject* newValue(TapeOf<T>& tape, const typename TapeOf<T>::Value& v);

// Adds the type, its exceptions, and the functions of the operation table to the module.
void addValue(PyObject* module);

// _repr_mimebundle_(include=None, exclude=None) of a Value or a Tape: burtorch.viz draws it.
PyObject* notebookDisplay(PyObject* self, PyObject* args, PyObject* keywords);

// Turns the C++ exception being handled into a Python one. To be called in a catch block.
void translateException();

template <class F> PyObject* guarded(F&& f) noexcept {
  try {
    return f();
  } catch (...) {
    translateException();
    return nullptr;
  }
}

// A plain number, as Python programs have them: float, int, bool, NumPy scalar. False without an
// error set: something else. False with an error set: a number that does not fit.
bool asNumber(PyObject* object, double& number);

// left < right and the like: operation is Py_LT, Py_LE, Py_GT, Py_GE or Py_NE.
bool compare(double left, double right, int operation);

// The name in Python of a C++ function of the table.
std::string snakeCase(const char* camelCase);

} // namespace burtorch_python
