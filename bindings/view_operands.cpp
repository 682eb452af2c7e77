// bindings/view_operands.cpp — what becomes a View, or goes with one: shapes, arrays, lists of Values
// SPDX-License-Identifier: MIT
#include "view_operands.hpp"

#include <burtorch/block/blocks.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace burtorch_python {

Shape shapeOf(const PyView& view) {
  return with(view, [&](auto&, const auto& v) {
    v.check();
    const auto rows = static_cast<py::ssize_t>(v.rows()), cols = static_cast<py::ssize_t>(v.cols());
    return view.dimensions == 1 ? Shape{cols} : Shape{rows, cols};
  });
}
std::string textOf(const Shape& shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + (shape.size() == 1 ? ",)" : ")");
}
Shape shapeOf(const py::array& array) { return {array.shape(), array.shape() + array.ndim()}; }

py::array asArray(const py::handle& data, const char* kinds, const char* wanted) {
  const py::array array = py::module_::import("numpy").attr("asarray")(data);
  if (array.size() != 0 && std::string(kinds).find(array.dtype().kind()) == std::string::npos)
    throw py::type_error(std::string("expected ") + wanted + ", not " +
                         std::string(py::str(array.dtype())) + " (of " +
                         Py_TYPE(data.ptr())->tp_name + ")");
  return array;
}

bool isArray(const py::handle& object) {
  return py::isinstance<py::array>(object) && py::reinterpret_borrow<py::array>(object).ndim() != 0;
}

namespace {

// Rows and columns of what becomes a View.
std::pair<std::size_t, std::size_t> sizesOf(const Shape& shape) {
  if (shape.size() != 1 && shape.size() != 2)
    throw py::value_error("a View has one or two dimensions, not the shape " + textOf(shape));
  return {shape.size() == 1 ? 1 : static_cast<std::size_t>(shape[0]),
          static_cast<std::size_t>(shape.back())};
}

// A View of Values, and of numbers among them, which become leaves. Neighbours are seen where they
// stand; a copy is made only of what comes from several places.
py::object viewOfValues(const py::array& objects) {
  auto items = objects.attr("ravel")().attr("tolist")().cast<std::vector<py::object>>();
  const auto first = std::ranges::find_if(items, [](const auto& x) { return isValue(x.ptr()); });
  if (first == items.end())
    throw py::type_error("expected numbers or Values: an array of objects holds neither");
  AnyTape& tape = *asValue(first->ptr())->tape;
  return visitPlain(tape, [&]<class T>(TapeOf<T>& t) {
    for (py::object& item : items) {
      double number = 0;
      if (isValue(item.ptr())) {
        if (asValue(item.ptr())->tape != &tape)
          bt::detail::fail(bt::ErrorKind::differentTapes, "the Values live on different tapes");
      } else if (asNumber(item.ptr(), number)) {
        t.prepare();
        item = valueObject(t, typename TapeOf<T>::Value(t.tape, static_cast<T>(number)));
      } else {
        if (PyErr_Occurred()) throw py::error_already_set();
        throw py::type_error(std::string("expected numbers or Values, not ") +
                             Py_TYPE(item.ptr())->tp_name);
      }
    }
    t.prepare();
    std::vector<ViewOf<T>> runs;
    for (const py::object& item : items) {
      const auto v = asValue(item.ptr())->template as<T>();
      v.check();
      const std::size_t node = v.sysGetRawNodeIndex();
      if (!runs.empty() && node == lastNodeOf(runs.back()) + 1)
        runs.back() =
            ViewOf<T>::at(t.tape, runs.back().sysGetRawNodeIndex(), 1, runs.back().size() + 1);
      else runs.push_back(ViewOf<T>::at(t.tape, node, 1, 1));
    }
    const Shape shape = shapeOf(objects);
    const auto [rows, cols] = sizesOf(shape);
    const std::span<const ViewOf<T>> parts(runs);
    const auto all = parts.size() == 1 ? parts[0] : bt::concatColumns(parts);
    return newView(t, all.reshape(rows, cols), static_cast<int>(shape.size()));
  });
}

} // namespace

py::object asView(const py::handle& object) {
  const auto same = py::reinterpret_borrow<py::object>(object);
  if (isArray(object)) {
    const auto array = py::reinterpret_borrow<py::array>(object);
    return array.size() != 0 && array.dtype().kind() == 'O' ? viewOfValues(array) : same;
  }
  const bool isList = py::isinstance<py::list>(object) || py::isinstance<py::tuple>(object);
  if (!isList || py::len(object) == 0 || !isValue(same[py::int_(0)].ptr())) return same;
  return viewOfValues(asArray(object, "O", "Values"));
}

py::object leaves(AnyTape& tape, const py::handle& data, Role role) {
  if (const py::object view = asView(data); isView(view)) return view;
  return visitPlain(tape, [&]<class T>(TapeOf<T>& t) {
    const auto array = numbersOf<T>(data);
    const auto shape = shapeOf(array);
    const auto [rows, cols] = sizesOf(shape);
    t.prepare();
    const std::span<const T> numbers(array.data(), static_cast<std::size_t>(array.size()));
    const ViewOf<T> view(t.tape, rows, cols, numbers);
    return newView(t, role == Role::data ? view.constant() : view, static_cast<int>(shape.size()));
  });
}

Operand::Operand(const py::handle& object, AnyTape& tape_)
    : owner_(isArray(object) ? leaves(tape_, object, Role::data)
                             : py::reinterpret_borrow<py::object>(object)) {
  if (&tape() != &tape_)
    bt::detail::fail(bt::ErrorKind::differentTapes, "the operands live on two different tapes");
}

const PyView& demandView(const py::handle& object, const char* what) {
  if (isView(object)) return viewOf(object);
  throw py::type_error(std::string(what) + " is a View, not " + Py_TYPE(object.ptr())->tp_name);
}
const PyView& demandMatrix(const py::handle& object, const char* what) {
  const PyView& view = demandView(object, what);
  if (view.dimensions == 2) return view;
  throw py::value_error(std::string(what) + " is a matrix, not of shape " + textOf(shapeOf(view)));
}
void demandTape(const PyView& view, const AnyTape& tape) {
  if (view.tape.get() != &tape)
    bt::detail::fail(bt::ErrorKind::differentTapes, "the operands live on two different tapes");
}

} // namespace burtorch_python
