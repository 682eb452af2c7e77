// bindings/sealed.cpp — classes that can only be made by calling them
// SPDX-License-Identifier: MIT
//
// pybind11's __new__ gives an object without its C++ half, which any use would read. So the classes get
// a metaclass whose call says what is being made, and a __new__ that makes nothing else.
#include "register.hpp"
#include "value.hpp"

#include <utility>

namespace py = pybind11;

namespace burtorch_python {

namespace {

thread_local const PyTypeObject* beingMade = nullptr;

PyObject* callClass(PyObject* type, PyObject* args, PyObject* keywords) {
  const PyTypeObject* const before =
      std::exchange(beingMade, reinterpret_cast<const PyTypeObject*>(type));
  PyObject* const object =
      py::detail::get_internals().default_metaclass->tp_call(type, args, keywords);
  beingMade = before;
  return object;
}

PyObject* newObject(PyTypeObject* type, PyObject*, PyObject*) {
  if (std::exchange(beingMade, nullptr) == type) return py::detail::make_new_instance(type);
  PyErr_Format(PyExc_TypeError, "%.100s.__new__ makes no object; call the class", type->tp_name);
  return nullptr;
}

// __new__(class, …), which heirs call that have a __new__ of their own.
PyObject* newFromPython(PyObject*, PyObject* args, PyObject*) {
  PyObject* const type = PyTuple_GET_SIZE(args) == 0 ? nullptr : PyTuple_GET_ITEM(args, 0);
  if (type != nullptr && PyType_Check(type))
    return newObject(reinterpret_cast<PyTypeObject*>(type), nullptr, nullptr);
  PyErr_SetString(PyExc_TypeError, "__new__ takes a class");
  return nullptr;
}
PyMethodDef construction{"__new__", erased(newFromPython), METH_VARARGS | METH_KEYWORDS, nullptr};

PyObject* refusePickle(PyObject* self, PyObject*) {
  PyErr_Format(PyExc_TypeError, "cannot pickle '%.100s' object", Py_TYPE(self)->tp_name);
  return nullptr;
}
PyMethodDef refusal{"__reduce_ex__", refusePickle, METH_O,
                    "Objects of this class can't be pickled."};

// All classes of a module that pybind11 made, and those of the modules in it.
void seal(const py::module_& module, PyTypeObject* metaclass) {
  PyTypeObject* const theirs = py::detail::get_internals().default_metaclass;
  for (const auto& [name, each] : module.attr("__dict__").cast<py::dict>()) {
    if (PyModule_Check(each.ptr())) seal(py::reinterpret_borrow<py::module_>(each), metaclass);
    if (Py_TYPE(each.ptr()) != theirs) continue;
    auto* const type = reinterpret_cast<PyTypeObject*>(each.ptr());
    Py_INCREF(metaclass);
    Py_SET_TYPE(type, metaclass);
    Py_DECREF(theirs);
    const auto make = py::reinterpret_steal<py::object>(PyCFunction_New(&construction, nullptr));
    if (!make) throw py::error_already_set();
    each.attr("__new__") = make;
    type->tp_new = newObject; // without the way over the attribute
    const auto method = py::reinterpret_steal<py::object>(PyDescr_NewMethod(type, &refusal));
    if (!method) throw py::error_already_set();
    each.attr("__reduce_ex__") = method;
  }
}

} // namespace

void sealAll(const py::module_& module) {
  PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(callClass)}, {0, nullptr}};
  PyType_Spec spec{"burtorch.class", 0, 0, Py_TPFLAGS_DEFAULT, slots};
  const py::tuple bases = py::make_tuple(
      py::handle(reinterpret_cast<PyObject*>(py::detail::get_internals().default_metaclass)));
  PyObject* const metaclass = PyType_FromSpecWithBases(&spec, bases.ptr());
  if (metaclass == nullptr) throw py::error_already_set();
  seal(module, reinterpret_cast<PyTypeObject*>(metaclass)); // which lives as long as its classes
}

} // namespace burtorch_python
