// bindings/view_axes.cpp — what NumPy does along the axes of arrays, for Views
// SPDX-License-Identifier: MIT
#include "view_operands.hpp"

#include <burtorch/block/blocks.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace burtorch_python {

namespace {

// ---- reductions -----------------------------------------------------------------------------------

template <class R> struct Table { // a reduction of the table
  template <class V> static auto all(const V& x) { return bt::apply<R>(x); }
  template <class V> static V along(const V& x, std::size_t n, std::size_t inner) {
    return bt::reduceOver<R>(x, n, inner);
  }
};
struct LogSumExp {
  template <class V> static auto all(const V& x) { return bt::logSumExp(x, x.size())[0]; }
  template <class V> static V along(const V& x, std::size_t n, std::size_t inner) {
    return bt::logSumExp(x, n, inner);
  }
};
using Sum = Table<bt::op::AddVarying>;
using Mean = Table<bt::op::MeanVarying>;
using Variance = Table<bt::op::VarianceBiasedVarying>;
using Max = Table<bt::op::MaxVarying>;
using Min = Table<bt::op::MinVarying>;

py::ssize_t integerOf(const py::handle& object) {
  const py::ssize_t i = PyNumber_AsSsize_t(object.ptr(), PyExc_IndexError);
  if (i == -1 && PyErr_Occurred()) throw py::error_already_set();
  return i;
}

// One axis, several, or None for all: for each axis whether it is meant.
std::vector<bool> axesOf(const py::object& axis, const Shape& shape) {
  std::vector<bool> chosen(shape.size(), axis.is_none());
  const auto choose = [&](const py::handle& each) {
    const std::size_t i = axisOf(integerOf(each), shape);
    if (chosen[i]) throw py::value_error("axis " + std::to_string(i) + " is named twice");
    chosen[i] = true;
  };
  if (py::isinstance<py::tuple>(axis) || py::isinstance<py::list>(axis))
    for (const py::handle each : axis) choose(each);
  else if (!axis.is_none()) choose(axis);
  return chosen;
}

template <class How>
py::object reduce(const py::object& object, const py::object& axis, bool keepdims) {
  const PyView& x = demandView(object, "x");
  const Shape shape = shapeOf(x);
  const auto chosen = axesOf(axis, shape);
  Shape kept, result, reduced; // sizes of axes; `result` with those of size 1 that keepdims leaves
  std::vector<std::size_t> strides, reducedStrides;
  const auto own = stridesFor(shape, shape);
  std::size_t inner = 1, n = 1;
  int runs = 0; // of chosen axes, where axes of one number do not count
  for (std::size_t i = 0, wasChosen = 0; i < shape.size(); ++i) {
    const auto size = static_cast<std::size_t>(shape[i]);
    if (chosen[i]) {
      n *= size;
      reduced.push_back(shape[i]);
      reducedStrides.push_back(own[i]);
      if (keepdims) result.push_back(1);
    } else {
      kept.push_back(shape[i]);
      strides.push_back(own[i]);
      result.push_back(shape[i]);
    }
    if (size == 1) continue;
    if (chosen[i] && wasChosen == 0) {
      ++runs;
      inner = 1;
    }
    if (!chosen[i]) inner *= size;
    wasChosen = chosen[i];
  }
  if (n == 0 && !std::same_as<How, Sum>)
    throw py::value_error("no numbers to choose from along an axis of a View of shape " +
                          textOf(shape));
  if (result.empty()) return appendValue(*x.tape, [&]<class T>() { return How::all(x.as<T>()); });
  return append(*x.tape, result, [&]<class T>() {
    const std::size_t count = sizeOf(kept);
    if (n == 0 || count == 0) return ViewOf<T>(x.as<T>().tape(), 1, count);
    if (runs <= 1) return How::along(x.as<T>(), n, runs == 0 ? count : inner);
    // Axes that lie apart are brought together behind the others.
    Shape moved = kept;
    auto steps = strides;
    moved.insert(moved.end(), reduced.begin(), reduced.end());
    steps.insert(steps.end(), reducedStrides.begin(), reducedStrides.end());
    return How::along(stridedNodes<T>(x.as<T>(), 0, moved, steps), n, 1);
  });
}

template <class How> void defReduction(ViewClass& c, const char* name, const char* help) {
  c.def(name, &reduce<How>, py::arg("axis") = py::none(), py::arg("keepdims") = false, help);
}

// ---- transposes -----------------------------------------------------------------------------------

py::object transpose(const py::object& object, const py::args& given) {
  const PyView& x = demandView(object, "x");
  const Shape shape = shapeOf(x);
  const bool isList = given.size() == 1 && py::isinstance<py::sequence>(given[0]);
  const bool isDefault = given.empty() || (given.size() == 1 && given[0].is_none());
  const py::list axes = isList ? py::list(given[0]) : py::list(given);
  if (shape.size() == 1 && isDefault) return object;
  std::vector<bool> seen(shape.size(), false);
  Shape turned;
  std::vector<std::size_t> strides;
  const auto own = stridesFor(shape, shape);
  const auto take = [&](std::size_t i) {
    if (seen[i]) throw py::value_error("axis " + std::to_string(i) + " is named twice");
    seen[i] = true;
    turned.push_back(shape[i]);
    strides.push_back(own[i]);
  };
  if (isDefault)
    for (std::size_t i = shape.size(); i-- > 0;) take(i);
  else
    for (const py::handle each : axes) take(axisOf(integerOf(each), shape));
  if (turned.size() != shape.size())
    throw py::value_error("transpose: " + std::to_string(turned.size()) +
                          " axes of a View of shape " + textOf(shape));
  return append(*x.tape, turned,
                [&]<class T>() { return stridedNodes<T>(x.as<T>(), 0, turned, strides); });
}

// ---- several views as one, one as several ---------------------------------------------------------

// Views, and arrays beside them, which are data, on one tape.
std::vector<py::object> partsOf(const py::iterable& given, const char* who) {
  std::vector<py::object> parts;
  AnyTape* tape = nullptr;
  for (const py::handle each : given) {
    parts.push_back(asView(each));
    if (tape == nullptr && isView(parts.back())) tape = viewOf(parts.back()).tape.get();
  }
  if (parts.empty()) throw py::value_error(std::string(who) + " of no views");
  for (py::object& each : parts) {
    if (tape != nullptr && isArray(each)) each = leaves(*tape, each, Role::data);
    demandTape(demandView(each, "each part"), *viewOf(parts.front()).tape);
  }
  return parts;
}

// Parts of these shapes side by side along an axis. A stack gives each of them one more axis.
py::object joined(const std::vector<py::object>& parts, std::size_t axis, bool stacks,
                  const char* who) {
  const PyView& first = viewOf(parts.front());
  Shape shape = first.shape;
  py::ssize_t along = 0;
  for (const auto& part : parts) {
    const PyView& view = viewOf(part);
    Shape other = view.shape;
    if (!stacks && other.size() == shape.size()) other[axis] = shape[axis];
    if (other != shape)
      throw py::value_error(std::string(who) + " of shapes " + textOf(first.shape) + " and " +
                            textOf(view.shape));
    along += stacks ? 1 : view.shape[axis];
  }
  const auto outer = sizeOf(Shape(shape.begin(), shape.begin() + static_cast<py::ssize_t>(axis)));
  if (stacks) shape.insert(shape.begin() + static_cast<py::ssize_t>(axis), along);
  else shape[axis] = along;
  return append(*first.tape, shape, [&]<class T>() {
    std::vector<ViewOf<T>> views;
    for (const auto& part : parts) {
      const auto v = viewOf(part).as<T>();
      views.push_back(v.reshape(outer, outer == 0 ? 0 : v.size() / outer));
    }
    return bt::concatColumns(views);
  });
}

py::object concat(const py::iterable& views, py::ssize_t axis) {
  const auto parts = partsOf(views, "concat");
  return joined(parts, axisOf(axis, viewOf(parts.front()).shape), false, "concat");
}

py::object stack(const py::iterable& views, py::ssize_t axis) {
  const auto parts = partsOf(views, "stack");
  Shape more = viewOf(parts.front()).shape;
  more.push_back(1);
  return joined(parts, axisOf(axis, more), true, "stack");
}

// NumPy's split: into so many equal parts, or at these places.
py::list split(const py::object& object, const py::object& places, py::ssize_t axis) {
  const PyView& x = demandView(object, "x");
  const Shape shape = shapeOf(x);
  const std::size_t along = axisOf(axis, shape);
  std::vector<py::object> ends;
  if (PyIndex_Check(places.ptr()) && !isArray(places)) {
    const auto n = py::cast<py::ssize_t>(places);
    if (n <= 0 || shape[along] % n != 0)
      throw py::value_error("a View of shape " + textOf(shape) + " can't be split into " +
                            std::to_string(n) + " equal parts along axis " + std::to_string(along));
    for (py::ssize_t i = 1; i < n; ++i) ends.push_back(py::int_(shape[along] / n * i));
  } else {
    for (const py::handle each : places) ends.push_back(py::reinterpret_borrow<py::object>(each));
  }
  ends.push_back(py::none());
  py::list parts;
  py::object start = py::int_(0);
  for (const py::object& end : ends) {
    py::tuple key(along + 1);
    for (std::size_t i = 0; i < along; ++i) key[i] = py::slice(py::none(), py::none(), py::none());
    key[along] = py::slice(start, end, py::none());
    parts.append(item(x, along == 0 ? py::object(key[0]) : py::object(key)));
    start = end;
  }
  return parts;
}

// ---- where ----------------------------------------------------------------------------------------

py::object where(const py::object& condition, const py::object& x, const py::object& y) {
  if (isView(condition) || isValue(condition.ptr()))
    throw py::type_error(
        "where: the condition is a boolean or an array of booleans, as comparisons "
        "of .data give it, not " +
        std::string(Py_TYPE(condition.ptr())->tp_name));
  const py::module_ numpy = py::module_::import("numpy");
  const py::array chosen = numpy.attr("asarray")(condition, "bool");
  const py::object sides[] = {asView(x), asView(y)};
  AnyTape* tape = nullptr;
  for (const py::object& side : sides) {
    if (isView(side)) tape = viewOf(side).tape.get();
    else if (isValue(side.ptr())) tape = asValue(side.ptr())->tape;
  }
  if (tape == nullptr) return numpy.attr("where")(condition, x, y);
  const auto operandOf = [&](const py::object& side) {
    if (isView(side) || isValue(side.ptr()) || isArray(side)) return Operand(side, *tape);
    return Operand(numbersOf<double>(side).attr("reshape")(1), *tape);
  };
  const Operand a = operandOf(sides[0]), b = operandOf(sides[1]);
  const Shape shape = broadcast(broadcast(shapeOf(chosen), a.shape(), "where"), b.shape(), "where");
  const auto isNumber = [](const py::object& side) { return !isView(side) && !isArray(side); };
  if (chosen.ndim() == 0 && isNumber(sides[0]) && isNumber(sides[1]))
    return chosen.cast<bool>() ? sides[0] : sides[1];
  const Operand c(numpy.attr("broadcast_to")(chosen, py::tuple(py::cast(shape))), *tape);
  return append(*tape, shape, [&]<class T>() {
    const auto side = [&](const Operand& operand) {
      const auto v = operand.as<T>();
      return v.size() == 1 ? v : operand.repeated<T>(shape);
    };
    const auto u = side(a), v = side(b);
    return bt::where(c.as<T>(), u, v);
  });
}

// Bounds that are numbers are one operation; others are two.
py::object clip(const py::object& x, const py::object& lo, const py::object& hi) {
  const py::module_ core = py::module_::import("burtorch._core");
  const auto isPlain = [](const py::object& bound) {
    return bound.is_none() || PyFloat_Check(bound.ptr()) || PyLong_Check(bound.ptr());
  };
  if (!isArray(x) && isPlain(lo) && isPlain(hi)) {
    const auto infinity = std::numeric_limits<double>::infinity();
    return core.attr("clamp")(x, lo.is_none() ? py::float_(-infinity) : lo,
                              hi.is_none() ? py::float_(infinity) : hi);
  }
  const py::object above = lo.is_none() ? x : core.attr("max")(x, lo);
  return hi.is_none() ? above : core.attr("min")(above, hi);
}

} // namespace

void addAxes(ViewClass& c) {
  defReduction<Sum>(c, "sum",
                    "The sum along an axis, several axes, or of all elements: then a Value.");
  defReduction<Mean>(c, "mean", "Likewise the mean.");
  defReduction<Variance>(c, "var", "Likewise the mean square of the distances from the mean.");
  defReduction<Max>(c, "max",
                    "Likewise the largest number; of several such, the first takes the gradient.");
  defReduction<Min>(c, "min",
                    "Likewise the smallest number; of several such, the first takes the gradient.");
  defReduction<LogSumExp>(c, "logsumexp",
                          "Likewise the logarithm of the sum of e to the power of them.");
  c.def("transpose", &transpose,
        "The axes in another order, which is given or else reversed: a copy of the numbers.");
  c.def_property_readonly(
      "T", [](const py::object& x) { return transpose(x, py::args()); },
      "The axes in reversed order: a copy of the numbers.");
}

void registerAxes(py::module_& module) {
  module.def(
      "transpose",
      [](const py::object& x, const py::object& axes) {
        return transpose(asView(x), py::args(py::make_tuple(axes)));
      },
      py::arg("x"), py::arg("axes") = py::none(), "x.transpose(axes)");
  module.def(
      "logsumexp",
      [](const py::object& x, const py::object& axis, bool keepdims) {
        return reduce<LogSumExp>(asView(x), axis, keepdims);
      },
      py::arg("x"), py::arg("axis") = py::none(), py::arg("keepdims") = false,
      "The logarithm of the sum of e to the power of x, along an axis or of all elements.");
  module.def("concat", &concat, py::arg("views"), py::arg("axis") = 0,
             "A copy of views one after the other along an axis. Arrays among them are data.");
  module.def("stack", &stack, py::arg("views"), py::arg("axis") = 0,
             "A copy of views of one shape one after the other along a new axis.");
  module.def(
      "split",
      [](const py::object& x, const py::object& places, py::ssize_t axis) {
        return split(asView(x), places, axis);
      },
      py::arg("x"), py::arg("places"), py::arg("axis") = 0,
      "Parts of a view along an axis: so many equal ones, or those that begin at the places.");
  module.def("where", &where, py::arg("condition"), py::arg("x"), py::arg("y"),
             "Elements of x where the condition, an array of booleans, is true, else of y.");
  module.def("clip", &clip, py::arg("x"), py::arg("lo") = py::none(), py::arg("hi") = py::none(),
             "x within bounds: numbers, arrays or views, or None.");
  module.def(
      "maximum",
      [](const py::object& x, const py::object& y) {
        return py::module_::import("burtorch._core").attr("max")(x, y);
      },
      py::arg("x"), py::arg("y"), "burtorch.max: the larger of each two elements.");
  module.def(
      "minimum",
      [](const py::object& x, const py::object& y) {
        return py::module_::import("burtorch._core").attr("min")(x, y);
      },
      py::arg("x"), py::arg("y"), "burtorch.min: the smaller of each two elements.");
}

} // namespace burtorch_python
