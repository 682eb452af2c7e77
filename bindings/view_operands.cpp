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
  with(view, [&](auto&, const auto& v) { v.check(); });
  return view.shape;
}
std::string textOf(const Shape& shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + (shape.size() == 1 ? ",)" : ")");
}
Shape shapeOf(const py::array& array) { return {array.shape(), array.shape() + array.ndim()}; }

std::size_t sizeOf(const Shape& shape) {
  std::size_t n = 1;
  for (const py::ssize_t each : shape) n *= static_cast<std::size_t>(each);
  return n;
}

Shape broadcast(const Shape& x, const Shape& y, const char* who) {
  const std::size_t n = std::max(x.size(), y.size());
  Shape shape;
  for (std::size_t i = 0; i < n; ++i) {
    const auto at = [&](const Shape& s) { return i + s.size() < n ? 1 : s[i + s.size() - n]; };
    if (at(x) != at(y) && at(x) != 1 && at(y) != 1)
      throw py::value_error(std::string(who) + ": " + textOf(x) + " does not go with " + textOf(y));
    shape.push_back(at(x) == 1 ? at(y) : at(x));
  }
  return shape;
}

std::vector<std::size_t> stridesFor(const Shape& from, const Shape& to) {
  std::vector<std::size_t> strides(to.size());
  std::size_t stride = 1;
  for (std::size_t i = from.size(), j = to.size(); i-- > 0;) {
    strides[--j] = from[i] == 1 ? 0 : stride;
    stride *= static_cast<std::size_t>(from[i]);
  }
  return strides;
}

std::size_t axisOf(py::ssize_t axis, const Shape& shape) {
  const auto n = static_cast<py::ssize_t>(shape.size());
  if (axis < -n || axis >= n)
    throw py::value_error("axis " + std::to_string(axis) + " of views of shape " + textOf(shape));
  return static_cast<std::size_t>(axis < 0 ? axis + n : axis);
}

template <class T>
ViewOf<T> stridedNodes(const ViewOf<T>& v, std::size_t offset, const Shape& shape,
                       const std::vector<std::size_t>& strides) {
  std::vector<std::size_t> sizes, steps; // neighbouring axes that are one are joined
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const auto n = static_cast<std::size_t>(shape[i]);
    if (n == 1) continue;
    if (!sizes.empty() && steps.back() == n * strides[i]) {
      sizes.back() *= n;
      steps.back() = strides[i];
    } else {
      sizes.push_back(n);
      steps.push_back(strides[i]);
    }
  }
  const std::size_t n = sizeOf(shape);
  if (n <= 1 || (sizes.size() == 1 && steps[0] == 1))
    return v.reshape(1, v.size()).segment(n == 0 ? 0 : offset, n);
  return bt::strided(v, offset, std::span<const std::size_t>(sizes),
                     std::span<const std::size_t>(steps));
}
template ViewOf<double> stridedNodes(const ViewOf<double>&, std::size_t, const Shape&,
                                     const std::vector<std::size_t>&);
template ViewOf<float> stridedNodes(const ViewOf<float>&, std::size_t, const Shape&,
                                    const std::vector<std::size_t>&);

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

void demandAxes(const Shape& shape) {
  if (shape.empty()) throw py::value_error("a View has at least one dimension; a Value has none");
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
    demandAxes(shapeOf(objects));
    const std::span<const ViewOf<T>> parts(runs);
    const auto all = parts.size() == 1 ? parts[0] : bt::concatColumns(parts);
    return newView(t, all, shapeOf(objects));
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
    demandAxes(shapeOf(array));
    t.prepare();
    const std::span<const T> numbers(array.data(), static_cast<std::size_t>(array.size()));
    const ViewOf<T> view(t.tape, 1, numbers.size(), numbers);
    return newView(t, role == Role::data ? view.constant() : view, shapeOf(array));
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
  if (view.shape.size() == 2) return view;
  throw py::value_error(std::string(what) + " is a matrix, not of shape " + textOf(shapeOf(view)));
}
void demandReduction(const std::string& reduction) {
  if (reduction != "mean" && reduction != "sum" && reduction != "none")
    throw py::value_error("reduction is 'mean', 'sum' or 'none', not '" + reduction + "'");
}
void demandTape(const PyView& view, const AnyTape& tape) {
  if (view.tape.get() != &tape)
    bt::detail::fail(bt::ErrorKind::differentTapes, "the operands live on two different tapes");
}

} // namespace burtorch_python
