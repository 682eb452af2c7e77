// bindings/value.cpp — burtorch.Value: number slots, attributes, and the functions of the table
// SPDX-License-Identifier: MIT
#include "value.hpp"

#include "anomaly.hpp"
#include "help.hpp"
#include "lock.hpp"
#include "others.hpp"
#include "register.hpp"
#include "scalars.hpp"
#include "view.hpp"

#include <pybind11/pybind11.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace burtorch_python {

// ---- exceptions -----------------------------------------------------------------------------------

namespace {

PyObject* errorBase = nullptr;    // burtorch.Error
PyObject* staleError = nullptr;   // burtorch.StaleHandleError
PyObject* tapesError = nullptr;   // burtorch.TapeMismatchError
PyObject* roomError = nullptr;    // burtorch.CapacityError
PyObject* graphError = nullptr;   // burtorch.GraphError
PyObject* branchError = nullptr;  // burtorch.BranchError
PyObject* numpyNumbers = nullptr; // numpy.floating, numpy.integer, numpy.bool_
PyObject* numpyTime = nullptr;    // numpy.timedelta64, which NumPy counts among the integers

PyObject* exceptionFor(bt::ErrorKind kind) {
  switch (kind) {
  case bt::ErrorKind::capacity:
    return roomError;
  case bt::ErrorKind::staleHandle:
    return staleError;
  case bt::ErrorKind::differentTapes:
    return tapesError;
  case bt::ErrorKind::emptyHandle:
  case bt::ErrorKind::badArgument:
  case bt::ErrorKind::badData:
    break;
  case bt::ErrorKind::file:
    return PyExc_OSError;
  }
  return PyExc_ValueError;
}

} // namespace

PyObject* typeError(const char* format, PyObject* object) {
  PyErr_Format(PyExc_TypeError, format, Py_TYPE(object)->tp_name);
  return nullptr;
}

PyObject* differentTapes() {
  PyErr_SetString(tapesError, "the operands live on two different tapes");
  return nullptr;
}

void raiseGraphError(const std::string& what) {
  PyErr_SetString(graphError, what.c_str());
  throw pybind11::error_already_set();
}

std::string wouldCut(const std::string& what) {
  return what + " would cut the graph silently; use .data for the numbers, or burtorch's function "
                "of that name";
}

bool checkCount(Py_ssize_t got, Py_ssize_t want) {
  if (got == want) return true;
  PyErr_Format(PyExc_TypeError, "expected %zd arguments, got %zd", want, got);
  return false;
}

void translateException() {
  try {
    throw;
  } catch (pybind11::error_already_set& error) {
    error.restore();
  } catch (const pybind11::builtin_exception& error) {
    error.set_error();
  } catch (const bt::Error& error) {
    PyErr_SetString(exceptionFor(error.kind()), error.what());
  } catch (const TapeIsBusy& error) {
    PyErr_SetString(errorBase, error.what());
  } catch (const std::invalid_argument& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
}

bool asNumber(PyObject* object, double& number) {
  if (PyFloat_CheckExact(object)) {
    number = PyFloat_AS_DOUBLE(object);
    return true;
  }
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

bool compare(double left, double right, int operation) {
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

std::string snakeCase(const char* camelCase) {
  std::string out;
  for (const char* c = camelCase; *c != 0; ++c) {
    if (std::isupper(static_cast<unsigned char>(*c))) {
      out += '_';
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(*c)));
    } else {
      out += *c;
    }
  }
  return out == "logarithm" ? "log" : out;
}

// ---- life of a Value ------------------------------------------------------------------------------

namespace {

// Values come and go by the million; the last few hundred that went are kept for those that come.
constexpr std::size_t maxFree = 512;
PyValue* freeValues[maxFree];
std::size_t freeCount = 0;

void removeFromLive(PyValue* value) {
  auto& live = value->tape->live;
  PyValue* const last = live.back();
  live[value->slot] = last;
  last->slot = value->slot;
  live.pop_back();
}

void deallocate(PyObject* self) {
  auto* const value = reinterpret_cast<PyValue*>(self);
  if (value->tape != nullptr) {
    removeFromLive(value);
    visit(*value->tape, [&]<class T>(TapeOf<T>& t) {
      const auto v = value->as<T>();
      if (v.isAlive()) t.removeValue(v.sysGetRawNodeIndex());
    });
    if (value->tape->live.empty()) value->tape->release();
  }
  if (freeCount < maxFree) freeValues[freeCount++] = value;
  else PyObject_Free(self);
}

} // namespace

template <class T> PyObject* newValue(TapeOf<T>& tape, const typename TapeOf<T>::Value& v) {
  PyValue* value;
  if (freeCount != 0) {
    value = freeValues[--freeCount];
    _Py_NewReference(reinterpret_cast<PyObject*>(value)); // its type is still set
  } else {
    value = PyObject_New(PyValue, &valueType);
    if (value == nullptr) return nullptr;
  }
  value->tape = nullptr;
  value->slot = static_cast<std::uint32_t>(tape.live.size());
  value->set(v);
  try {
    tape.addValue(v.sysGetRawNodeIndex());
    tape.live.push_back(value);
  } catch (...) {
    Py_DECREF(value);
    throw;
  }
  value->tape = &tape;
  if (value->slot == 0) tape.retain();
  return reinterpret_cast<PyObject*>(value);
}

#define BURTORCH_DTYPE(name, type)                                                                 \
  template PyObject* newValue<type>(TapeOf<type>&, const TapeOf<type>::Value&);
BURTORCH_DTYPES(BURTORCH_DTYPE)
#undef BURTORCH_DTYPE

namespace {

template <class T> T narrow(double x) { return static_cast<T>(x); }

// A plain number beside a Value. Where a double is too short, the object is read again.
struct Number {
  PyObject* object;
  double rounded = 0;
};
template <class T> T narrow(const Number& x) {
  if constexpr (isQuad<T>) {
    T exact;
    if (!fromPython(x.object, "expected", exact)) throw pybind11::error_already_set();
    return exact;
  } else return narrow<T>(x.rounded);
}

// Value(data, name=None): a leaf on the current tape.
PyObject* create(PyTypeObject*, PyObject* args, PyObject* keywords) {
  static const char* names[] = {"data", "name", nullptr};
  PyObject* data = nullptr;
  PyObject* name = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|O:Value", const_cast<char**>(names), &data,
                                   &name))
    return nullptr;
  return guarded([&]() -> PyObject* {
    const Ref<AnyTape> tape(&currentTape()); // reading an array may run a program that leaves it
    PyObject* const value = visit(*tape, [&]<class T>(TapeOf<T>& t) -> PyObject* {
      T number;
      if (!fromPython(data, "Value() takes", number)) return nullptr;
      t.prepare();
      return newValue(t, typename TapeOf<T>::Value(t.tape, number));
    });
    if (value != nullptr && name != Py_None && PyObject_SetAttrString(value, "name", name) != 0) {
      Py_DECREF(value);
      return nullptr;
    }
    return value;
  });
}

PyObject* createQuickly(PyObject* type, PyObject* const* args, std::size_t count, PyObject* names) {
  if (PyVectorcall_NARGS(count) == 1 && names == nullptr && PyFloat_Check(args[0]))
    return guarded([&]() -> PyObject* {
      return visit(currentTape(), [&]<class T>(TapeOf<T>& t) {
        t.prepare();
        return newValue(t,
                        typename TapeOf<T>::Value(t.tape, narrow<T>(PyFloat_AS_DOUBLE(args[0]))));
      });
    });
  const auto positional = PyVectorcall_NARGS(count);
  PyObject* const tuple = PyTuple_New(positional);
  if (tuple == nullptr) return nullptr;
  for (Py_ssize_t i = 0; i < positional; ++i) {
    Py_INCREF(args[i]);
    PyTuple_SET_ITEM(tuple, i, args[i]);
  }
  PyObject* keywords = nullptr;
  if (names != nullptr) {
    keywords = PyDict_New();
    for (Py_ssize_t i = 0; keywords != nullptr && i < PyTuple_GET_SIZE(names); ++i)
      if (PyDict_SetItem(keywords, PyTuple_GET_ITEM(names, i), args[positional + i]) != 0)
        Py_CLEAR(keywords);
    if (keywords == nullptr) {
      Py_DECREF(tuple);
      return nullptr;
    }
  }
  PyObject* const value = create(reinterpret_cast<PyTypeObject*>(type), tuple, keywords);
  Py_DECREF(tuple);
  Py_XDECREF(keywords);
  return value;
}

// ---- operations -----------------------------------------------------------------------------------

// What an operation on float64 costs is what Python programs feel, so each one is compiled for that
// dtype; the others take the operation as an argument, and are compiled once for all operations.
template <class O> struct Compiled {
  template <class... X> auto operator()(const X&... x) const { return bt::apply<O>(x...); }
};
template <class T> struct Chosen {
  bt::Op op;
  template <class... X> auto operator()(const X&... x) const { return Others<T>::apply(op, x...); }
};

template <class Shape, class... X>
BURTORCH_NOINLINE PyObject* appendOther(AnyTape& any, bt::Op op, const X&... x) {
  return visit(any, [&]<class T>(TapeOf<T>& t) {
    t.prepare();
    return newValue(t, Shape::apply(t, Chosen<T>{op}, x...));
  });
}

// A Value made by the operation from operands of that shape: Shape says how to read them.
template <class O, class Shape, class... X> PyObject* append(AnyTape& any, const X&... x) {
  if (any.dtype != DType::float64) [[unlikely]]
    return appendOther<Shape>(any, bt::op::Entry<O>::code, x...);
  auto& t = static_cast<TapeOf<double>&>(any);
  t.prepare();
  return newValue(t, Shape::apply(t, Compiled<O>{}, x...));
}

struct OneValue {
  template <class T, class F> static auto apply(TapeOf<T>&, F f, PyObject* x) {
    return f(asValue(x)->as<T>());
  }
};
struct TwoValues {
  template <class T, class F> static auto apply(TapeOf<T>&, F f, PyObject* x, PyObject* y) {
    return f(asValue(x)->as<T>(), asValue(y)->as<T>());
  }
};
struct ValueAndNumber {
  template <class T, class F> static auto apply(TapeOf<T>&, F f, PyObject* x, const Number& y) {
    return f(asValue(x)->as<T>(), narrow<T>(y));
  }
};
struct NumberAndValue {
  template <class T, class F> static auto apply(TapeOf<T>&, F f, const Number& x, PyObject* y) {
    return f(narrow<T>(x), asValue(y)->as<T>());
  }
};
struct ValueAndBounds {
  template <class T, class F>
  static auto apply(TapeOf<T>&, F f, PyObject* x, const Number& lo, const Number& hi) {
    return f(asValue(x)->as<T>(), narrow<T>(lo), narrow<T>(hi));
  }
};

template <class O> BURTORCH_NOINLINE PyObject* unary(PyObject* x) {
  return guarded([&] { return append<O, OneValue>(*asValue(x)->tape, x); });
}

// Either operand may be a number; anything else is left to the other side to handle.
template <class O> BURTORCH_NOINLINE PyObject* binary(PyObject* x, PyObject* y) {
  return guarded([&]() -> PyObject* {
    if (isValue(x) && isValue(y)) {
      if (asValue(x)->tape != asValue(y)->tape) return differentTapes();
      return append<O, TwoValues>(*asValue(x)->tape, x, y);
    }
    Number number{isValue(x) ? y : x};
    if (!asNumber(number.object, number.rounded)) {
      if (PyErr_Occurred()) return nullptr;
      Py_RETURN_NOTIMPLEMENTED;
    }
    if (isValue(x)) return append<O, ValueAndNumber>(*asValue(x)->tape, x, number);
    return append<O, NumberAndValue>(*asValue(y)->tape, number, y);
  });
}

// x ** y; the powers that people write most have operations of their own.
PyObject* power(PyObject* x, PyObject* y, PyObject* modulus) {
  if (modulus != Py_None) {
    PyErr_SetString(PyExc_TypeError, "pow() of a Value takes no modulus");
    return nullptr;
  }
  double exponent = 0;
  if (isValue(x) && !isValue(y) && asNumber(y, exponent)) {
    if (exponent == 2) return unary<bt::op::Sqr>(x);
    if (exponent == 3) return unary<bt::op::Cub>(x);
    if (exponent == -1) return unary<bt::op::Inv>(x);
  }
  if (PyErr_Occurred()) return nullptr;
  return binary<bt::op::BinaryPow>(x, y);
}

template <class T> double number(const typename TapeOf<T>::Value& v) {
  return oneNumber(v.dataCopy());
}

PyObject* refuseFloat(PyObject*) {
  return guarded([]() -> PyObject* {
    raiseGraphError(wouldCut("float() of a Value, and so the functions of math,"));
  });
}

// A Value or a number in a comparison.
struct Compared {
  double number = 0;
  Trace* trace = nullptr; // of a Value that depends on the inputs of a function being recorded
  std::ptrdiff_t node = -1;
};

Compared readValue(PyObject* value) {
  return visit(*asValue(value)->tape, [&]<class T>(TapeOf<T>& t) {
    const auto v = asValue(value)->template as<T>();
    Compared c{number<T>(v)};
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

void refuseBranch() {
  PyErr_Format(
      branchError,
      "%s compares a Value that depends on the inputs: a function is recorded once, so the "
      "outcome would hold for all inputs. Use burtorch's min, max, abs, relu or clamp, or "
      "compile(f, dynamic=True), which records again for each way it can go",
      placeInProgram().c_str());
}

} // namespace

void refuseIfTraced(const AnyTape& tape, std::size_t first, std::size_t count, const char* what) {
  if (tape.trace == nullptr || !tape.trace->dependOnInputs(tape, first, count)) return;
  raiseGraphError(placeInProgram() + " " + what +
                  " that depends on the inputs: a function is recorded once, so what it was then "
                  "would hold for all inputs. Use the Value itself, or burtorch.stop_gradient(x), "
                  "which is its number at every call, without a gradient");
}

namespace {

// The outcome of a comparison, noted or refused where a function is being recorded.
PyObject* compared(const Compared& left, const Compared& right, int operation) {
  const bool outcome = compare(left.number, right.number, operation);
  if (Trace* const trace = left.trace != nullptr ? left.trace : right.trace) [[unlikely]] {
    if (!trace->isDynamic) {
      refuseBranch();
      return nullptr;
    }
    trace->branches.push_back(
        {{left.node, left.number}, {right.node, right.number}, operation, outcome});
  }
  return PyBool_FromLong(outcome);
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

// ---- attributes -----------------------------------------------------------------------------------

template <class F> PyObject* withValue(PyObject* self, const F& f) {
  return guarded([&]() -> PyObject* {
    return visit(*asValue(self)->tape, [&]<class T>(TapeOf<T>& t) -> PyObject* {
      return f(t, asValue(self)->template as<T>());
    });
  });
}

// `what` is done with a Value's number, which a function that is being recorded would keep.
template <class T> void refuseIfTraced(TapeOf<T>& t, const auto& v, const char* what) {
  if (t.trace == nullptr) [[likely]]
    return;
  v.check();
  refuseIfTraced(static_cast<AnyTape&>(t), v.sysGetRawNodeIndex(), 1, what);
}

PyObject* getData(PyObject* self, void*) {
  return withValue(self, [](auto& t, const auto& v) {
    refuseIfTraced(t, v, "reads .data of a Value");
    return toPython(v.dataCopy());
  });
}
PyObject* getGrad(PyObject* self, void*) {
  return withValue(self, [](auto& t, const auto& v) {
    if (t.busy) throw TapeIsBusy(); // which may be writing gradients
    return toPython(v.gradCopy());
  });
}

template <bool isGrad> int setNumber(PyObject* self, PyObject* value, void*) {
  if (value == nullptr) {
    PyErr_SetString(PyExc_AttributeError,
                    "a Value always has data and grad; they can't be deleted");
    return -1;
  }
  PyObject* const done = withValue(self, [&]<class T>(TapeOf<T>& t, const auto&) -> PyObject* {
    T x;
    if (!fromPython(value, isGrad ? "grad is" : "data is", x)) return nullptr;
    if (t.busy) throw TapeIsBusy();
    const auto v = asValue(self)->template as<T>(); // reading an array may have moved it
    if constexpr (isGrad) v.setGrad(x);
    else v.setData(x);
    return Py_None;
  });
  return done == nullptr ? -1 : 0;
}

PyObject* getIndex(PyObject* self, void*) {
  return withValue(self, [](auto&, const auto& v) {
    v.check();
    return PyLong_FromUnsignedLong(v.sysGetRawNodeIndex());
  });
}

PyObject* getOp(PyObject* self, void*) {
  return withValue(self, [](auto&, const auto& v) {
    return PyUnicode_FromString(snakeCase(v.names().function).c_str());
  });
}

// The Value of a node: the one that lives, so that graphs can be walked by identity, else a new one.
// A guess from an earlier call says where the living one is; it is verified, so that nothing has to
// keep it true, and only when it fails, all live Values are looked through once.
template <class T> PyObject* valueOf(TapeOf<T>& t, std::size_t node) {
  const auto holds = [&](const PyValue* value) {
    const auto v = value->as<T>();
    return v.sysGetRawNodeIndex() == node && v.isAlive();
  };
  t.seenAt.resize(std::max(t.seenAt.size(), t.tape.size()));
  if (node >= t.valuesOfNode.size() || t.valuesOfNode[node] == 0) {
    t.seenAt[node] = static_cast<std::uint32_t>(t.live.size());
    return newValue(t, TapeOf<T>::Value::at(t.tape, node));
  }
  const auto isSeen = [&] {
    return t.seenAt[node] < t.live.size() && holds(t.live[t.seenAt[node]]);
  };
  if (!isSeen())
    for (const PyValue* value : t.live)
      if (const auto v = value->as<T>(); v.isAlive())
        t.seenAt[v.sysGetRawNodeIndex()] = value->slot;
  if (isSeen()) return positive(reinterpret_cast<PyObject*>(t.live[t.seenAt[node]]));
  return newValue(t, TapeOf<T>::Value::at(t.tape, node)); // only a View names it
}

// The operands in order: Values, and floats for plain numbers. They are all made before the tuple is
// allocated, when the collector may run a program that rewinds the tape.
PyObject* getArgs(PyObject* self, void*) {
  return withValue(self, []<class T>(TapeOf<T>& t, const auto& v) -> PyObject* {
    v.check();
    const std::size_t r = t.tape.recordOf(v.sysGetRawNodeIndex());
    if (r == t.tape.records().size()) return PyTuple_New(0);
    std::vector<std::variant<std::size_t, T>> operands;
    t.tape.forEachArgument(
        t.tape.records()[r], [&](std::size_t node) { operands.emplace_back(node); },
        [&](const T& number) { operands.emplace_back(number); });
    std::vector<pybind11::object> made;
    made.reserve(operands.size());
    const auto add = [&](PyObject* object) {
      if (object == nullptr) throw pybind11::error_already_set();
      made.push_back(pybind11::reinterpret_steal<pybind11::object>(object));
    };
    for (const auto& operand : operands)
      if (const auto* const node = std::get_if<std::size_t>(&operand)) add(valueOf(t, *node));
    auto next = made.begin();
    pybind11::tuple args(operands.size());
    for (std::size_t i = 0; i < operands.size(); ++i)
      args[i] =
          operands[i].index() == 0
              ? std::move(*next++)
              : pybind11::reinterpret_steal<pybind11::object>(toPython(std::get<T>(operands[i])));
    return args.release().ptr();
  });
}

// micrograd's names for what a picture of the graph needs: its operands, plain numbers left out, and
// the symbol of its operation, "" for a leaf.
PyObject* getPrev(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    const auto args = pybind11::reinterpret_steal<pybind11::tuple>(getArgs(self, nullptr));
    if (!args) return nullptr;
    pybind11::set operands;
    for (const pybind11::handle arg : args)
      if (isValue(arg.ptr())) operands.add(arg);
    return operands.release().ptr();
  });
}
PyObject* getSymbol(PyObject* self, void*) {
  return withValue(self, [](auto&, const auto& v) {
    return PyUnicode_FromString(v.operation() == bt::Op::eLeaf ? "" : v.names().symbol);
  });
}

PyObject* getName(PyObject* self, void*) {
  return withValue(self, [](auto&, const auto& v) -> PyObject* {
    const std::string label = v.label();
    if (label.empty()) Py_RETURN_NONE;
    return PyUnicode_DecodeUTF8(label.data(), static_cast<Py_ssize_t>(label.size()), "replace");
  });
}
int setName(PyObject* self, PyObject* value, void*) {
  std::string text;
  if (value != nullptr && value != Py_None) {
    if (!PyUnicode_Check(value)) {
      typeError("name is a str or None, not %.100s", value);
      return -1;
    }
    Py_ssize_t size = 0;
    const char* const bytes = PyUnicode_AsUTF8AndSize(value, &size);
    if (bytes == nullptr) return -1;
    text.assign(bytes, static_cast<std::size_t>(size));
  }
  PyObject* const done = withValue(self, [&](auto& t, const auto& v) {
    if (t.busy) throw TapeIsBusy();
    v.setLabel(text);
    return Py_None;
  });
  return done == nullptr ? -1 : 0;
}

PyObject* getTape(PyObject* self, void*) {
  return guarded([&] { return pybind11::cast(Ref<AnyTape>(asValue(self)->tape)).release().ptr(); });
}

PyObject* represent(PyObject* self) {
  return withValue(self, [](auto& t, const auto& v) -> PyObject* {
    const auto number = v.dataCopy(), slope = t.busy ? decltype(number){} : v.gradCopy();
    PyObject* const data = toPython(number);
    PyObject* const grad = t.busy ? PyUnicode_FromString("in use") : toPython(slope);
    PyObject* const text =
        data && grad ? PyUnicode_FromFormat("Value(data=%R, grad=%R)", data, grad) : nullptr;
    Py_XDECREF(data);
    Py_XDECREF(grad);
    return text;
  });
}

// A stale Value still has a repr: debuggers and tracebacks ask for it.
PyObject* safeRepresent(PyObject* self) {
  PyObject* const text = represent(self);
  if (text != nullptr || !PyErr_ExceptionMatches(staleError)) return text;
  PyErr_Clear();
  return PyUnicode_FromString("<stale Value: its node was rewound>");
}

// ---- methods --------------------------------------------------------------------------------------

} // namespace

template <class T> bool sweepFrom(TapeOf<T>& t, const typename TapeOf<T>::Value& root) {
  if (t.busy) throw TapeIsBusy();
  demandGradients(t, root);
  if (t.watchedFrom) [[unlikely]] {
    watchedBackward(t, root);
    return true;
  }
  if (t.tape.records().size() < longSweep) {
    if constexpr (isOther<T>)
      Others<T>::backward(
          root, [] { return false; }, longSweep);
    else bt::backwardReaching(root); // garbage may lie below
    return true;
  }
  const typename TapeOf<T>::Busy busy(t);
  const Unlocked unlocked;
  if constexpr (isOther<T>) return Others<T>::backward(root, isInterrupted, longSweep);
  else return bt::backwardUntil(root, isInterrupted, longSweep);
}

#define BURTORCH_DTYPE(name, type)                                                                 \
  template bool sweepFrom<type>(TapeOf<type>&, const TapeOf<type>::Value&);
BURTORCH_DTYPES(BURTORCH_DTYPE)
#undef BURTORCH_DTYPE

PyObject* backwardOf(PyObject* self, PyObject*) {
  return withValue(self, [](auto& t, const auto& v) -> PyObject* {
    if (!sweepFrom(t, v)) return nullptr;
    Py_RETURN_NONE;
  });
}

namespace {

PyObject* copySelf(PyObject* self, PyObject*) { return positive(self); }

PyObject* leafLike(PyObject* self) {
  return withValue(self, []<class T>(TapeOf<T>& t, const auto& v) -> PyObject* {
    if (t.busy) throw TapeIsBusy();
    refuseIfTraced(t, v, "copies a Value");
    const T data = v.dataCopy(), grad = v.gradCopy();
    const std::string label = v.label();
    t.prepare();
    const typename TapeOf<T>::Value leaf(t.tape, data);
    leaf.setGrad(grad);
    if (!label.empty()) leaf.setLabel(label);
    return newValue(t, leaf);
  });
}
PyObject* deepCopy(PyObject* self, PyObject*) { return leafLike(self); }

// Its number without a gradient: a leaf. In a function that is being recorded, the number at each of
// its calls: 1·x as mul_by_constant has it, which is not differentiated by x.
PyObject* detached(PyObject* self, PyObject*) {
  return withValue(self, [&]<class T>(TapeOf<T>& t, const auto& v) -> PyObject* {
    v.check();
    if (t.trace != nullptr && v.sysGetRawNodeIndex() >= t.trace->from)
      return append<bt::op::BinaryMultByConst, NumberAndValue>(t, Number{nullptr, 1.0}, self);
    T number = v.dataCopy();
    if constexpr (requires { number.tangent; }) number = T(number.value);
    t.prepare();
    return newValue(t, typename TapeOf<T>::Value(t.tape, number));
  });
}

// Pickles as a leaf: the graph stays behind (tapes are saved as a whole).
PyObject* reduceForPickle(PyObject* self, PyObject*) {
  PyObject* const data = getData(self, nullptr);
  PyObject* const name = data ? getName(self, nullptr) : nullptr;
  PyObject* const grad = name ? getGrad(self, nullptr) : nullptr;
  PyObject* const reduced =
      grad ? Py_BuildValue("O(OO)O", reinterpret_cast<PyObject*>(&valueType), data, name, grad)
           : nullptr;
  Py_XDECREF(data);
  Py_XDECREF(name);
  Py_XDECREF(grad);
  return reduced;
}
PyObject* restoreFromPickle(PyObject* self, PyObject* grad) {
  if (setNumber<true>(self, grad, nullptr) != 0) return nullptr;
  Py_RETURN_NONE;
}

PyObject* formatValue(PyObject* self, PyObject* specification) {
  if (PyUnicode_Check(specification) && PyUnicode_GET_LENGTH(specification) == 0)
    return safeRepresent(self);
  // Also of one that a function being recorded depends on: text is for people.
  PyObject* const data =
      withValue(self, [](auto&, const auto& v) { return toPython(v.dataCopy()); });
  if (data == nullptr) return nullptr;
  PyObject* const text = PyObject_Format(data, specification);
  Py_DECREF(data);
  return text;
}

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
  if (isValue(args[0]))
    return guarded(
        [&] { return append<O, ValueAndBounds>(*asValue(args[0])->tape, args[0], lo, hi); });
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

// ---- tables ---------------------------------------------------------------------------------------

std::vector<PyMethodDef>& methods() {
  static std::vector<PyMethodDef> all = [] {
    std::vector<PyMethodDef> m{
        {"backward", backwardOf, METH_NOARGS,
         "Compute the gradients of this Value by everything it was made from."},
        {"detach", detached, METH_NOARGS,
         "detach($self, /)\n--\n\nThe same number without a gradient; burtorch.stop_gradient."},
        {"__copy__", copySelf, METH_NOARGS, nullptr},
        {"__deepcopy__", deepCopy, METH_O, nullptr},
        {"__reduce__", reduceForPickle, METH_NOARGS, nullptr},
        {"__setstate__", restoreFromPickle, METH_O, nullptr},
        {"__format__", formatValue, METH_O, nullptr},
        {"_repr_mimebundle_", erased(notebookDisplay), METH_VARARGS | METH_KEYWORDS, nullptr},
        // What NumPy's functions of these names look for in the elements of an array.
        {"arcsin", unaryMethod<bt::op::Asin>, METH_NOARGS, "The same as asin, for NumPy."},
        {"arccos", unaryMethod<bt::op::Acos>, METH_NOARGS, "The same as acos, for NumPy."},
        {"arctan", unaryMethod<bt::op::Atan>, METH_NOARGS, "The same as atan, for NumPy."},
        {"arctan2", binaryMethod<bt::op::BinaryAtan2>, METH_O, "burtorch.atan2, for NumPy."},
        {"hypot", binaryMethod<bt::op::BinaryHypot>, METH_O, "burtorch.hypot, for NumPy."},
    };
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

std::vector<PyMethodDef>& functions() {
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

PyGetSetDef attributes[] = {
    {"data", getData, setNumber<false>, "The number. Settable; nothing is computed anew.", nullptr},
    {"grad", getGrad, setNumber<true>, "The derivative of the last root by this Value. Settable.",
     nullptr},
    {"index", getIndex, nullptr, "The index of the node on its tape; collect() may change it.",
     nullptr},
    {"op", getOp, nullptr, "The name of the operation that made it; 'leaf' if none did.", nullptr},
    {"args", getArgs, nullptr, "The operands: Values, and floats for plain numbers.", nullptr},
    {"_prev", getPrev, nullptr, "The set of operands that are Values; micrograd's name.", nullptr},
    {"_op", getSymbol, nullptr, "The symbol of the operation, '' if none; micrograd's name.",
     nullptr},
    {"name", getName, setName, "A label for people and pictures, or None.", nullptr},
    {"tape", getTape, nullptr, "The tape it lives on.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyNumberMethods numberSlots = [] {
  PyNumberMethods n{};
  n.nb_add = binary<bt::op::BinaryAdd>;
  n.nb_subtract = binary<bt::op::BinarySub>;
  n.nb_multiply = binary<bt::op::BinaryMult>;
  n.nb_true_divide = binary<bt::op::BinaryDiv>;
  n.nb_power = power;
  n.nb_negative = unary<bt::op::Negative>;
  n.nb_positive = positive;
  n.nb_absolute = unary<bt::op::Abs>;
  n.nb_bool = isNonZero;
  n.nb_float = refuseFloat;
  return n;
}();

} // namespace

PyObject* newException(PyObject* module, const char* name, const char* doc, PyObject* bases) {
  const std::string qualified = std::string("burtorch.") + name;
  PyObject* const exception = PyErr_NewExceptionWithDoc(qualified.c_str(), doc, bases, nullptr);
  Py_XINCREF(exception);
  if (exception == nullptr || PyModule_AddObject(module, name, exception) != 0)
    throw pybind11::error_already_set();
  return exception;
}

PyTypeObject valueType = [] {
  PyTypeObject t{};
  t.ob_base = {PyObject_HEAD_INIT(nullptr) 0};
  t.tp_name = "burtorch.Value";
  t.tp_basicsize = sizeof(PyValue);
  t.tp_dealloc = deallocate;
  t.tp_repr = safeRepresent;
  t.tp_as_number = &numberSlots;
  t.tp_flags = Py_TPFLAGS_DEFAULT;
  t.tp_doc =
      "Value(data, name=None)\n--\n\nA number on the current tape that remembers how it was made."
      "\n\nComparisons, == and != among them, are of numbers, and so is `x in values` of a list. "
      "The\n"
      "hash is of the identity: sets, and dicts by their keys, tell Values of equal numbers apart.";
  t.tp_richcompare = compareValues;
  t.tp_getset = attributes;
  t.tp_new = create;
  t.tp_vectorcall = createQuickly;
  return t;
}();

void addValue(PyObject* module) {
  namespace py = pybind11;
  const auto numpy = py::module_::import("numpy");
  numpyNumbers = py::make_tuple(numpy.attr("floating"), numpy.attr("integer"), numpy.attr("bool_"))
                     .release()
                     .ptr();
  numpyTime = py::object(numpy.attr("timedelta64")).release().ptr();
  errorBase = newException(module, "Error", "Misuse of a tape or a Value.", PyExc_RuntimeError);
  staleError =
      newException(module, "StaleHandleError", "The node of this Value was rewound.", errorBase);
  const py::tuple tapes = py::make_tuple(py::handle(errorBase), py::handle(PyExc_ValueError));
  tapesError =
      newException(module, "TapeMismatchError", "Operands live on two tapes.", tapes.ptr());
  const py::tuple room = py::make_tuple(py::handle(errorBase), py::handle(PyExc_MemoryError));
  roomError = newException(module, "CapacityError", "A tape can't hold more.", room.ptr());
  const py::tuple graph = py::make_tuple(py::handle(errorBase), py::handle(PyExc_TypeError));
  graphError = newException(module, "GraphError",
                            "A number was asked for that would be without its graph.", graph.ptr());
  branchError =
      newException(module, "BranchError",
                   "A compiled function compares Values that depend on its inputs.", graphError);
  valueType.tp_methods = methods().data();
  valueType.tp_hash = PyBaseObject_Type.tp_hash;
  if (PyType_Ready(&valueType) != 0) throw py::error_already_set();
  Py_INCREF(&valueType);
  if (PyModule_AddObject(module, "Value", reinterpret_cast<PyObject*>(&valueType)) != 0 ||
      PyModule_AddFunctions(module, functions().data()) != 0 ||
      PyModule_AddFunctions(module, reductions().data()) != 0)
    throw py::error_already_set();
}

} // namespace burtorch_python
