// bindings/comparisons.cpp — Values compared, and refused where a function is being recorded
// SPDX-License-Identifier: MIT
#include "scalars.hpp"
#include "value.hpp"

#include <string>

namespace burtorch_python {

PyObject* refuseFloat(PyObject*) {
  return guarded([]() -> PyObject* {
    raiseGraphError(wouldCut("float() of a Value, and so the functions of math,"));
  });
}

namespace {

// A Value or a number in a comparison.
struct Compared {
  double number = 0;
  Trace* trace = nullptr; // of a Value that depends on the inputs of a function being recorded
  std::ptrdiff_t node = -1;
};

Compared readValue(PyObject* value) {
  return visit(*asValue(value)->tape, [&]<class T>(TapeOf<T>& t) {
    const auto v = asValue(value)->template as<T>();
    Compared c{oneNumber(v.dataCopy())};
    if (t.trace != nullptr && t.trace->concerns(t, v.sysGetRawNodeIndex())) [[unlikely]] {
      c.trace = t.trace;
      c.node = v.sysGetRawNodeIndex();
    }
    return c;
  });
}

// Where the Python program is.
std::string placeInProgram() {
  std::string where = "somewhere";
  if (PyFrameObject* const frame = PyEval_GetFrame(); frame != nullptr) {
    PyCodeObject* const code = PyFrame_GetCode(frame);
    if (const char* const file = PyUnicode_AsUTF8(code->co_filename))
      where = std::string(file) + ":" + std::to_string(PyFrame_GetLineNumber(frame));
    PyErr_Clear();
    Py_DECREF(code);
  }
  return where;
}

// The outcome of a comparison, noted or refused where a function is being recorded.
PyObject* compared(const Compared& left, const Compared& right, int operation) {
  const bool outcome = compare(left.number, right.number, operation);
  if (Trace* const trace = left.trace != nullptr ? left.trace : right.trace) [[unlikely]] {
    if (!trace->isDynamic) {
      setBranchError(
          placeInProgram() +
          " compares a Value that depends on the inputs: a function is recorded once, so the "
          "outcome would hold for all inputs. Use burtorch's min, max, abs, relu or clamp, or "
          "compile(f, dynamic=True), which records again for each way it can go");
      return nullptr;
    }
    trace->branches.push_back(
        {{left.node, left.number}, {right.node, right.number}, operation, outcome});
  }
  return PyBool_FromLong(outcome);
}

} // namespace

void refuseIfTraced(const AnyTape& tape, std::size_t first, std::size_t count, const char* what) {
  if (tape.trace == nullptr || !tape.trace->dependOnInputs(tape, first, count)) return;
  raiseGraphError(placeInProgram() + " " + what +
                  " that depends on the inputs: a function is recorded once, so what it was then "
                  "would hold for all inputs. Use the Value itself, or burtorch.stop_gradient(x), "
                  "which is its number at every call, without a gradient");
}

int isNonZero(PyObject* x) {
  PyObject* const answer = guarded([&] { return compared(readValue(x), {}, Py_NE); });
  if (answer == nullptr) return -1;
  Py_DECREF(answer);
  return answer == Py_True;
}

// By value. The hash is of the identity all the same: two Values never have the same one, so sets and
// dicts tell them apart without comparing.
PyObject* compareValues(PyObject* x, PyObject* y, int operation) {
  return guarded([&]() -> PyObject* {
    Compared right;
    if (isValue(y)) right = readValue(y);
    else if (!asNumber(y, right.number)) {
      if (PyErr_Occurred()) return nullptr;
      Py_RETURN_NOTIMPLEMENTED;
    }
    return compared(readValue(x), right, operation);
  });
}

} // namespace burtorch_python
