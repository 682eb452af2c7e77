// bindings/value.hpp — burtorch.Value, a CPython type written by hand
// SPDX-License-Identifier: MIT
//
// Its operators are what a Python program does all day, and dispatching them through a general
// binding layer would cost several times the operation itself.
#pragma once

#include "errors.hpp"
#include "names.hpp"
#include "numbers.hpp"
#include "tape.hpp"

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace burtorch_python {

// A tape, a node, and the place in the tape's list of live Values: 48 bytes.
struct PyValue {
  PyObject_HEAD AnyTape* tape;     // which lives as long as any of its Values
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
inline PyValue* asValue(PyObject* object) { return reinterpret_cast<PyValue*>(object); }

// A new reference to the same.
inline PyObject* positive(PyObject* x) {
  Py_INCREF(x);
  return x;
}

// A new Python Value for a node.
template <class T> PyObject* newValue(TapeOf<T>& tape, const typename TapeOf<T>::Value& v);

// The gradients of the root; false with an error set if a signal ended the sweep.
template <class T> bool sweepFrom(TapeOf<T>& tape, const typename TapeOf<T>::Value& root);
PyObject* backwardOf(PyObject* value, PyObject*); // the same, as a method

// Adds the type and the functions of the operation table to the module.
void addValue(PyObject* module);

// What the type is made of, each in the file of its topic.
extern PyGetSetDef valueAttributes[];
std::vector<PyMethodDef> valueMethods();    // those that are no operations
std::vector<PyMethodDef>& tableMethods();   // all
std::vector<PyMethodDef>& tableFunctions(); // of the module
std::vector<PyMethodDef>& reductions();     // which take sequences of Values
PyObject* compareValues(PyObject* x, PyObject* y, int operation);
int isNonZero(PyObject* x);
PyObject* refuseFloat(PyObject* x);
PyObject* safeRepresent(PyObject* x);
PyObject* detached(PyObject* x, PyObject*);

// _repr_mimebundle_(include=None, exclude=None) of a Value or a Tape: burtorch.viz draws it.
PyObject* notebookDisplay(PyObject* self, PyObject* args, PyObject* keywords);

// Throws GraphError where a function is being recorded and one of these nodes depends on its inputs:
// `what`, "reads .data of a Value" for example, would hold for all of them.
void refuseIfTraced(const AnyTape& tape, std::size_t first, std::size_t count, const char* what);

// Throws GraphError where a backward from the root can't give the gradient that is meant.
template <class T> void demandGradients(TapeOf<T>& t, const typename TapeOf<T>::Value& root) {
  if (AnyTape::isInNoGrad() && computesWithoutGradients()) [[unlikely]]
    raiseGraphError("backward() inside of no_grad(), where nothing has a gradient");
  t.settle();
  if (t.trace != nullptr) [[unlikely]] {
    root.check();
    refuseIfTraced(t, root.sysGetRawNodeIndex(), 1, "goes backward from a Value");
  }
}

// For tables of functions, which live as long as the module.
inline const char* keep(const std::string& text) { return (new std::string(text))->c_str(); }
template <class Function> PyCFunction erased(Function* function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

} // namespace burtorch_python
