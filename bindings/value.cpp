// bindings/value.cpp — burtorch.Value: its life, and the operations on it
// SPDX-License-Identifier: MIT
#include "value.hpp"

#include "others.hpp"
#include "scalars.hpp"
#include "value_operations.hpp"

#include <pybind11/pybind11.h>

#include <vector>

namespace burtorch_python {

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

// Where a double is too short, the object is read again.
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

} // namespace

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

template <class O>
BURTORCH_NOINLINE PyObject* clipped(PyObject* x, const Number& lo, const Number& hi) {
  return guarded([&] { return append<O, ValueAndBounds>(*asValue(x)->tape, x, lo, hi); });
}

#define BURTORCH_OPERATION(Name, function) template PyObject* unary<bt::op::Name>(PyObject*);
BURTORCH_UNARY_OPERATIONS(BURTORCH_OPERATION)
#undef BURTORCH_OPERATION
#define BURTORCH_OPERATION(Name, function)                                                         \
  template PyObject* binary<bt::op::Name>(PyObject*, PyObject*);
BURTORCH_BINARY_OPERATIONS(BURTORCH_OPERATION)
#undef BURTORCH_OPERATION
#define BURTORCH_OPERATION(Name, function)                                                         \
  template PyObject* clipped<bt::op::Name>(PyObject*, const Number&, const Number&);
BURTORCH_CLIPPED_OPERATIONS(BURTORCH_OPERATION)
#undef BURTORCH_OPERATION

namespace {

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
  t.tp_getset = valueAttributes;
  t.tp_new = create;
  t.tp_vectorcall = createQuickly;
  return t;
}();

void addValue(PyObject* module) {
  findNumbers();
  valueType.tp_methods = tableMethods().data();
  valueType.tp_hash = PyBaseObject_Type.tp_hash;
  if (PyType_Ready(&valueType) != 0) throw pybind11::error_already_set();
  Py_INCREF(&valueType);
  if (PyModule_AddObject(module, "Value", reinterpret_cast<PyObject*>(&valueType)) != 0 ||
      PyModule_AddFunctions(module, tableFunctions().data()) != 0 ||
      PyModule_AddFunctions(module, reductions().data()) != 0)
    throw pybind11::error_already_set();
}

} // namespace burtorch_python
