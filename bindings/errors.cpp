// bindings/errors.cpp — burtorch's exceptions, and C++'s turned into Python's
// SPDX-License-Identifier: MIT
#include "errors.hpp"

#include "busy.hpp"

#include <burtorch/base/error.hpp>

#include <pybind11/pybind11.h>

#include <exception>
#include <new>
#include <stdexcept>

namespace burtorch_python {

namespace {

PyObject* errorBase = nullptr;   // burtorch.Error
PyObject* staleError = nullptr;  // burtorch.StaleHandleError
PyObject* tapesError = nullptr;  // burtorch.TapeMismatchError
PyObject* roomError = nullptr;   // burtorch.CapacityError
PyObject* graphError = nullptr;  // burtorch.GraphError
PyObject* branchError = nullptr; // burtorch.BranchError

PyObject* exceptionFor(burtorch::ErrorKind kind) {
  using burtorch::ErrorKind;
  switch (kind) {
  case ErrorKind::capacity:
    return roomError;
  case ErrorKind::staleHandle:
    return staleError;
  case ErrorKind::differentTapes:
    return tapesError;
  case ErrorKind::emptyHandle:
  case ErrorKind::badArgument:
  case ErrorKind::badData:
    break;
  case ErrorKind::file:
    return PyExc_OSError;
  }
  return PyExc_ValueError;
}

PyObject* addException(PyObject* module, const char* name, const char* doc, PyObject* bases) {
  const std::string qualified = std::string("burtorch.") + name;
  PyObject* const exception = PyErr_NewExceptionWithDoc(qualified.c_str(), doc, bases, nullptr);
  Py_XINCREF(exception);
  if (exception == nullptr || PyModule_AddObject(module, name, exception) != 0)
    throw pybind11::error_already_set();
  return exception;
}

} // namespace

PyObject* newException(PyObject* module, const char* name, const char* doc, PyObject* builtin) {
  if (builtin == nullptr) return addException(module, name, doc, errorBase);
  const auto bases = pybind11::make_tuple(pybind11::handle(errorBase), pybind11::handle(builtin));
  return addException(module, name, doc, bases.ptr());
}

void addErrors(PyObject* module) {
  errorBase = addException(module, "Error", "Misuse of burtorch; the base of its other exceptions.",
                           PyExc_RuntimeError);
  staleError = newException(module, "StaleHandleError", "The node of this Value was rewound.");
  tapesError =
      newException(module, "TapeMismatchError", "Operands live on two tapes.", PyExc_ValueError);
  roomError = newException(module, "CapacityError", "A tape can't hold more.", PyExc_MemoryError);
  graphError =
      newException(module, "GraphError", "A number was asked for that would be without its graph.",
                   PyExc_TypeError);
  branchError =
      addException(module, "BranchError",
                   "A compiled function compares Values that depend on its inputs.", graphError);
  pybind11::register_local_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const burtorch::Error&) {
      translateException();
    } catch (const IsBusy&) {
      translateException();
    }
  });
}

void translateException() {
  try {
    throw;
  } catch (pybind11::error_already_set& error) {
    error.restore();
  } catch (const pybind11::builtin_exception& error) {
    error.set_error();
  } catch (const burtorch::Error& error) {
    PyErr_SetString(exceptionFor(error.kind()), error.what());
  } catch (const IsBusy& error) {
    PyErr_SetString(errorBase, error.what());
  } catch (const std::invalid_argument& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
}

PyObject* typeError(const char* format, PyObject* object) {
  PyErr_Format(PyExc_TypeError, format, Py_TYPE(object)->tp_name);
  return nullptr;
}

PyObject* differentTapes() {
  PyErr_SetString(tapesError, "the operands live on two different tapes");
  return nullptr;
}

bool checkCount(Py_ssize_t got, Py_ssize_t want) {
  if (got == want) return true;
  PyErr_Format(PyExc_TypeError, "expected %zd arguments, got %zd", want, got);
  return false;
}

bool isStaleError() { return PyErr_ExceptionMatches(staleError) != 0; }

void setBranchError(const std::string& what) { PyErr_SetString(branchError, what.c_str()); }

void raiseGraphError(const std::string& what) {
  PyErr_SetString(graphError, what.c_str());
  throw pybind11::error_already_set();
}

std::string wouldCut(const std::string& what) {
  return what + " would cut the graph silently; use .data for the numbers, or burtorch's function "
                "of that name";
}

} // namespace burtorch_python
