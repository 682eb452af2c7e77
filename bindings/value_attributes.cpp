// bindings/value_attributes.cpp — what a Value tells and lets be set, and its methods that are no operations
// SPDX-License-Identifier: MIT
#include "anomaly.hpp"
#include "interrupts.hpp"
#include "others.hpp"
#include "register.hpp"
#include "scalars.hpp"
#include "value.hpp"

#include <burtorch/restricted.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace burtorch_python {

// ---- attributes -----------------------------------------------------------------------------------

namespace {

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
    demandIdle(t); // a sweep may be writing gradients
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
    demandIdle(t);
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
    demandIdle(t);
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

} // namespace

// A stale Value still has a repr: debuggers and tracebacks ask for it.
PyObject* safeRepresent(PyObject* self) {
  PyObject* const text = represent(self);
  if (text != nullptr || !isStaleError()) return text;
  PyErr_Clear();
  return PyUnicode_FromString("<stale Value: its node was rewound>");
}

PyGetSetDef valueAttributes[] = {
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

// ---- methods --------------------------------------------------------------------------------------

template <class T> bool sweepFrom(TapeOf<T>& t, const typename TapeOf<T>::Value& root) {
  demandIdle(t);
  demandGradients(t, root);
  if (t.watchedFrom) [[unlikely]] {
    watchedBackward(t, root);
    return true;
  }
  if (t.tape.records().size() < longWork) {
    if constexpr (isOther<T>)
      Others<T>::backward(
          root, [] { return false; }, longWork);
    else bt::backwardReaching(root); // garbage may lie below
    return true;
  }
  return t.unlocked([&] {
    if constexpr (isOther<T>) return Others<T>::backward(root, isInterrupted, longWork);
    else return bt::backwardUntil(root, isInterrupted, longWork);
  });
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

// Its number without a gradient: a leaf. In a function that is being recorded, the number at each of
// its calls: 1·x as mul_by_constant has it, which is not differentiated by x.
PyObject* detached(PyObject* self, PyObject*) {
  return withValue(self, [&]<class T>(TapeOf<T>& t, const auto& v) -> PyObject* {
    v.check();
    if (t.trace != nullptr && v.sysGetRawNodeIndex() >= t.trace->from) {
      t.prepare();
      const auto x = asValue(self)->template as<T>(); // which may have moved
      return newValue(t, Others<T>::apply(bt::Op::eBinaryMultByConst, static_cast<T>(1.0), x));
    }
    T number = v.dataCopy();
    if constexpr (requires { number.tangent; }) number = T(number.value);
    t.prepare();
    return newValue(t, typename TapeOf<T>::Value(t.tape, number));
  });
}

namespace {

PyObject* copySelf(PyObject* self, PyObject*) { return positive(self); }

PyObject* leafLike(PyObject* self) {
  return withValue(self, []<class T>(TapeOf<T>& t, const auto& v) -> PyObject* {
    demandIdle(t);
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

} // namespace

std::vector<PyMethodDef> valueMethods() {
  return {
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
  };
}

} // namespace burtorch_python
