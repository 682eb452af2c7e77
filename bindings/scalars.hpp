// bindings/scalars.hpp — a node's content as Python sees it
// SPDX-License-Identifier: MIT
//
//   float64, float32, float16, bfloat16   a float
//   float128                              a numpy.longdouble: of the 113 digits it keeps those that
//                                         NumPy's type has (64 on x86, all on 64-bit ARM Linux)
//   float32x8, float64x4                  an array of the lanes
//   dual64                                an array of value and tangent
#pragma once

#include "value.hpp"

#include <pybind11/numpy.h>

#include <string>
#include <string_view>

namespace burtorch_python {

// The plain number of which a node holds one or several.
template <class T> struct NumberOf {
  using type = T;
};
template <class T, std::size_t N> struct NumberOf<bt::simd<T, N>> {
  using type = T;
};
template <class T> struct NumberOf<bt::dual<T>> {
  using type = T;
};
template <class T>
inline constexpr bool isQuad = !std::floating_point<T> && sizeof(T) == 16 && numbersIn<T> == 1;

template <class T> PyObject* toPython(const T& x) {
  if constexpr (numbersIn<T> != 1) {
    using Number = typename NumberOf<T>::type;
    pybind11::array_t<Number> array(static_cast<pybind11::ssize_t>(numbersIn<T>));
    std::memcpy(array.mutable_data(), &x, sizeof(x));
    return array.release().ptr();
  } else if constexpr (isQuad<T>) {
    pybind11::array_t<long double> array(1);
    *array.mutable_data() = static_cast<long double>(x);
    return pybind11::object(array[pybind11::int_(0)]).release().ptr();
  } else {
    return PyFloat_FromDouble(static_cast<double>(x));
  }
}

// False with a Python error set if the object is no number, and no array of the right shape; its text
// begins with `what`, "data is" for example.
template <class T> bool fromPython(PyObject* object, const char* what, T& x) {
  namespace py = pybind11;
  double number = 0;
  if constexpr (isQuad<T>) { // with the digits that float has not
    if (!PyFloat_CheckExact(object) &&
        py::isinstance(object, py::module_::import("numpy").attr("longdouble"))) {
      x = static_cast<T>(*py::array_t<long double>::ensure(py::handle(object)).data());
      return true;
    }
  }
  if (asNumber(object, number)) {
    x = static_cast<T>(number);
    return true;
  }
  if (PyErr_Occurred()) return false;
  if constexpr (numbersIn<T> != 1) {
    const auto isOfNumbers = [](const py::array& array) {
      return array && std::string_view("biuf").find(array.dtype().kind()) != std::string_view::npos;
    };
    if (!isValue(object) && PyObject_HasAttrString(object, "__len__") &&
        isOfNumbers(py::array::ensure(py::handle(object)))) {
      using Number = typename NumberOf<T>::type;
      const auto array = py::array_t<Number, py::array::c_style | py::array::forcecast>::ensure(
          py::handle(object));
      if (!array) throw py::error_already_set();
      if (array.ndim() != 1 || array.shape(0) != static_cast<py::ssize_t>(numbersIn<T>)) {
        const std::string got = py::str(py::handle(array.attr("shape")));
        PyErr_Format(PyExc_ValueError, "%s an array of shape (%zu,), not %s", what, numbersIn<T>,
                     got.c_str());
        return false;
      }
      std::memcpy(static_cast<void*>(&x), array.data(), sizeof(x));
      return true;
    }
    PyErr_Format(PyExc_TypeError, "%s a number or an array of %zu, not %.100s", what, numbersIn<T>,
                 Py_TYPE(object)->tp_name);
  } else {
    PyErr_Format(PyExc_TypeError, "%s a number, not %.100s", what, Py_TYPE(object)->tp_name);
  }
  return false;
}

// One number for comparisons and truth; several have no order.
template <class T> double oneNumber(const T& x) {
  if constexpr (numbersIn<T> == 1) return static_cast<double>(x);
  else if constexpr (requires { x.value; }) return static_cast<double>(x.value);
  else
    throw pybind11::type_error("a Value of " + std::to_string(numbersIn<T>) +
                               " lanes is neither true nor false, nor larger than another; compare "
                               ".data");
}

} // namespace burtorch_python
