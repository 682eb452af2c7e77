// bindings/errors.hpp — burtorch's exceptions, and C++'s turned into Python's
// SPDX-License-Identifier: MIT
#pragma once

#include <Python.h>

#include <string>

namespace burtorch_python {

// A new exception of the module, a burtorch.Error that is also one of these built-in ones, if any.
PyObject* newException(PyObject* module, const char* name, const char* doc,
                       PyObject* builtin = nullptr);
void addErrors(PyObject* module); // burtorch.Error and those that several files raise

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

// Errors are set, and nullptr returned for the caller to return.
PyObject* typeError(const char* format, PyObject* object); // its type's name fills in the format
PyObject* differentTapes();
bool checkCount(Py_ssize_t got, Py_ssize_t want);           // of arguments
bool isStaleError();                                        // the one that is set
void setBranchError(const std::string& what);               // burtorch.BranchError
[[noreturn]] void raiseGraphError(const std::string& what); // burtorch.GraphError

// "… would cut the graph silently": what a function that knows only numbers does to Values.
std::string wouldCut(const std::string& what);

} // namespace burtorch_python
