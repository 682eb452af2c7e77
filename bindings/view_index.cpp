// bindings/view_index.cpp — parts of a View: elements, rows, slices, places
// SPDX-License-Identifier: MIT
//
// Neighbouring nodes are seen where they are. For everything else NumPy says which numbers a key means:
// it indexes a pattern of the same shape, whose strides or places are then those of the View.
#include "view_operands.hpp"

#include <burtorch/block/strided.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace burtorch_python {

namespace {

std::size_t position(const py::handle& index, std::size_t count, const char* what) {
  const py::ssize_t i = PyNumber_AsSsize_t(index.ptr(), PyExc_IndexError);
  if (i == -1 && PyErr_Occurred()) throw py::error_already_set();
  const auto n = static_cast<py::ssize_t>(count);
  if (i < -n || i >= n)
    throw py::index_error(std::string(what) + " " + std::to_string(i) + " of " + std::to_string(n));
  return static_cast<std::size_t>(i < 0 ? i + n : i);
}

bool isIndex(const py::handle& key) {
  return PyIndex_Check(key.ptr()) && !PyBool_Check(key.ptr()) && !isArray(key);
}
Shape from(const Shape& shape, std::size_t axis) {
  return {shape.begin() + static_cast<py::ssize_t>(axis), shape.end()};
}

// Whether all of the keys are integers, slices, ... and None; otherwise some are integer arrays.
bool isBasic(const PyView& view, const py::tuple& keys) {
  bool basic = true;
  for (const py::handle key : keys) {
    const bool isList = py::isinstance<py::list>(key) || py::isinstance<py::tuple>(key);
    if (isArray(key) || isList || PyBool_Check(key.ptr())) {
      const py::array array = py::module_::import("numpy").attr("asarray")(key);
      const char kind = array.dtype().kind();
      if (kind == 'b')
        throw py::type_error("a View is indexed by places; use burtorch.where(condition, x, y) for "
                             "what an array of booleans chooses");
      if (array.size() != 0 && kind != 'i' && kind != 'u')
        throw py::type_error("a View is indexed by integers, not by an array of " +
                             std::string(py::str(array.dtype())));
      basic = false;
    } else if (!isIndex(key) && !py::isinstance<py::slice>(key) && !key.is_none() &&
               !py::isinstance<py::ellipsis>(key)) {
      throw py::type_error("a View of shape " + textOf(shapeOf(view)) +
                           " is indexed by integers and slices, not " +
                           Py_TYPE(key.ptr())->tp_name);
    }
  }
  return basic;
}

// The part of this shape that f(view) gives; a Value where that is one number without axes.
template <class F> py::object part(const PyView& view, const Shape& shape, const F& f) {
  return visitPlain(*view.tape, [&]<class T>(TapeOf<T>& t) -> py::object {
    t.prepare();
    const ViewOf<T> nodes = f(view.as<T>());
    if (shape.empty()) return valueObject(t, nodes[0]);
    return newView(t, nodes, shape);
  });
}

py::object byStrides(const PyView& view, const py::array& pattern, const py::array& seen) {
  const Shape shape = shapeOf(seen);
  const auto offset = static_cast<std::size_t>(static_cast<const char*>(seen.data()) -
                                               static_cast<const char*>(pattern.data()));
  std::vector<std::size_t> strides;
  for (py::ssize_t i = 0; i < seen.ndim(); ++i)
    strides.push_back(static_cast<std::size_t>(seen.strides(i)));
  return part(view, shape, [&]<class T>(const bt::View<T, SharedMemory>& v) {
    return stridedNodes<T>(v, offset, shape, strides);
  });
}

py::object byPlaces(const PyView& view, const py::tuple& keys) {
  // Axes behind those that the keys name stay whole: rows of them are taken.
  const bool countsAxes = std::ranges::none_of(keys, [](const py::handle& key) {
    return key.is_none() || py::isinstance<py::ellipsis>(key);
  });
  const std::size_t named =
      countsAxes ? std::min(keys.size(), view.shape.size()) : view.shape.size();
  const Shape rest = from(view.shape, named);
  const Shape lead(view.shape.begin(), view.shape.begin() + static_cast<py::ssize_t>(named));
  const py::object numbered = py::module_::import("numpy").attr("arange")(sizeOf(lead));
  const Numbers<std::int64_t> places =
      py::array(numbered.attr("reshape")(py::tuple(py::cast(lead)))[keys]);
  Shape shape = shapeOf(places);
  shape.insert(shape.end(), rest.begin(), rest.end());
  const std::span<const std::int64_t> all(places.data(), static_cast<std::size_t>(places.size()));
  return part(view, shape,
              [&](const auto& v) { return bt::take(v.reshape(sizeOf(lead), sizeOf(rest)), all); });
}

py::object general(const PyView& view, const py::object& key) {
  const bool isTuple = py::isinstance<py::tuple>(key);
  py::tuple keys = isTuple ? py::tuple(key) : py::make_tuple(key);
  if (!isBasic(view, keys)) return byPlaces(view, keys);
  const bool hasEllipsis =
      std::ranges::any_of(keys, [](const py::handle& each) { return each.ptr() == Py_Ellipsis; });
  const py::tuple asArrays = hasEllipsis ? keys : py::tuple(keys + py::make_tuple(py::ellipsis()));
  const py::array pattern =
      py::module_::import("numpy").attr("empty")(py::tuple(py::cast(view.shape)), "int8");
  const py::array seen = pattern[asArrays]; // with an ellipsis, never a number
  for (py::ssize_t i = 0; i < seen.ndim(); ++i)
    if (seen.strides(i) < 0) return byPlaces(view, asArrays); // backwards
  return byStrides(view, pattern, seen);
}

} // namespace

py::object item(const PyView& view, const py::object& key) {
  const Shape& shape = view.shape;
  const bool isVector = shape.size() == 1;
  return with(view, [&]<class T>(TapeOf<T>& t, const ViewOf<T>& v) -> py::object {
    v.check();
    const auto first = static_cast<std::size_t>(shape[0]);
    const std::size_t each = first == 0 ? 0 : v.size() / first;
    const auto flat = [&] { return v.reshape(1, v.size()); };
    if (isIndex(key)) {
      if (isVector) return valueObject(t, v[position(key, first, "element")]);
      const std::size_t i = position(key, first, "row");
      return newView(t, flat().segment(i * each, each), from(shape, 1));
    }
    if (py::isinstance<py::slice>(key)) {
      std::size_t start = 0, stop = 0, step = 0, count = 0;
      if (!py::reinterpret_borrow<py::slice>(key).compute(first, &start, &stop, &step, &count))
        throw py::error_already_set();
      if (step != 1 && count > 1) return general(view, key);
      Shape some = shape;
      some[0] = static_cast<py::ssize_t>(count);
      return newView(t, flat().segment(count == 0 ? 0 : start * each, count * each), some);
    }
    if (shape.size() == 2 && py::isinstance<py::tuple>(key) && py::len(key) == 2) {
      const py::object i = key[py::int_(0)], j = key[py::int_(1)];
      if (isIndex(i) && isIndex(j))
        return valueObject(t, v(position(i, v.rows(), "row"), position(j, v.cols(), "column")));
    }
    return general(view, key);
  });
}

} // namespace burtorch_python
