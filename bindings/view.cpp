// bindings/view.cpp — burtorch.View: vectors and matrices, the blocks that compute with them, random numbers
// SPDX-License-Identifier: MIT
#include "view.hpp"

#include "io.hpp"
#include "mark.hpp"
#include "register.hpp"
#include "value.hpp"

#include <burtorch/block/blocks.hpp>
#include <burtorch/io/blocks.hpp>
#include <burtorch/nn/init.hpp>
#include <burtorch/base/random.hpp>

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace py = pybind11;

namespace burtorch_python {

// ---- life of a View -------------------------------------------------------------------------------

template <class T>
PyView::PyView(TapeOf<T>& owner, ViewOf<T> view, int dimensions_)
    : tape(&owner), dimensions(dimensions_), slot_(owner.views.size()) {
  if (view.size() == 0) view = ViewOf<T>::at(owner.tape, 0, view.rows(), view.cols());
  else owner.addValue(lastNodeOf(view));
  set(view);
  owner.views.push_back(this);
}

PyView::~PyView() {
  auto& views = tape->views;
  views[slot_] = views.back();
  views[slot_]->slot_ = slot_;
  views.pop_back();
  visitPlain(*tape, [&]<class T>(TapeOf<T>& t) {
    const auto v = as<T>();
    if (v.size() != 0 && v.isAlive()) t.removeView(lastNodeOf(v));
  });
}

namespace {

template <class T> py::object newView(TapeOf<T>& t, const ViewOf<T>& view, int dimensions) {
  return py::cast(std::make_unique<PyView>(t, view, dimensions));
}
template <class T> py::object valueObject(TapeOf<T>& t, const typename TapeOf<T>::Value& v) {
  PyObject* const value = newValue(t, v);
  if (value == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(value);
}

// f(tape, view) of a View's dtype.
template <class F> decltype(auto) with(const PyView& view, const F& f) {
  return visitPlain(*view.tape, [&]<class T>(TapeOf<T>& t) { return f(t, view.as<T>()); });
}

// A new view f<T>() on a tape. The operands' handles are to be read inside f: they may move before.
template <class F> py::object append(AnyTape& tape, int dimensions, const F& f) {
  return visitPlain(tape, [&]<class T>(TapeOf<T>& t) -> py::object {
    t.prepare();
    return newView(t, f.template operator()<T>(), dimensions);
  });
}
// The same for a Value.
template <class F> py::object appendValue(AnyTape& tape, const F& f) {
  return visitPlain(tape, [&]<class T>(TapeOf<T>& t) -> py::object {
    t.prepare();
    const bt::TapeScope<typename TapeOf<T>::Tape> scope(t.tape); // for operands that are empty
    return valueObject(t, f.template operator()<T>());
  });
}

// ---- shapes and numbers ---------------------------------------------------------------------------

using Shape = std::vector<py::ssize_t>;

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
template <class T> using Array = py::array_t<T, py::array::c_style | py::array::forcecast>;
template <class T> Array<T> numbersOf(const py::handle& data) {
  return Array<T>(asArray(data, "biuf", "numbers"));
}

// Integers of any shape, as they stand in memory.
struct Integers {
  explicit Integers(const py::handle& data) : array(asArray(data, "iu", "integers")) {}
  std::span<const std::int64_t> span() const {
    return {array.data(), static_cast<std::size_t>(array.size())};
  }
  Array<std::int64_t> array;
};

enum class Part { data, grad };

// A copy of the numbers in an array of this type. The array is made first: what Python does meanwhile
// may move the nodes.
template <Part part> py::array copyOf(const PyView& view, PyTypeObject* type) {
  using Api = py::detail::npy_api;
  return visitPlain(*view.tape, [&]<class T>(TapeOf<T>& t) {
    const Shape shape = shapeOf(view);
    auto array = py::reinterpret_steal<py::array>(Api::get().PyArray_NewFromDescr_(
        type, py::dtype::of<T>().release().ptr(), static_cast<int>(shape.size()),
        reinterpret_cast<const Py_intptr_t*>(shape.data()), nullptr, nullptr, 0, nullptr));
    if (!array) throw py::error_already_set();
    if (part == Part::grad) demandIdle(t); // a sweep may be writing them
    const ViewOf<T> v = view.as<T>();
    const std::span<const T> numbers = part == Part::data ? v.data() : v.gradCopy();
    if (numbers.size() != static_cast<std::size_t>(array.size()))
      throw std::runtime_error("a View changed while it was read");
    std::copy(numbers.begin(), numbers.end(), static_cast<T*>(array.mutable_data()));
    return py::array(std::move(array));
  });
}
py::array plainCopy(const PyView& view) {
  return copyOf<Part::data>(view, py::detail::npy_api::get().PyArray_Type_);
}

// .data and .grad: a copy that can't be written to, because that would be lost.
template <Part part> py::array readOnlyCopy(const PyView& view) {
  static PyObject* const type =
      py::object(py::module_::import("burtorch._numpy").attr("Numbers")).release().ptr();
  if (part == Part::data && view.tape->trace != nullptr) [[unlikely]]
    with(view, [](auto& t, const auto& v) {
      v.check();
      refuseIfTraced(t, v.sysGetRawNodeIndex(), v.size(), "reads .data of a View");
    });
  py::array array = copyOf<part>(view, reinterpret_cast<PyTypeObject*>(type));
  py::detail::array_proxy(array.ptr())->flags &= ~py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
  return array;
}

// An array of the view's shape, or one number for all elements.
template <Part part> void assign(const PyView& view, const py::object& numbers) {
  visitPlain(*view.tape, [&]<class T>(TapeOf<T>& t) {
    const auto array = numbersOf<T>(numbers); // which may run a program that moves the nodes
    if (array.ndim() != 0 && shapeOf(array) != shapeOf(view))
      throw py::value_error(std::string(part == Part::grad ? "grad" : "data") + " of shape " +
                            textOf(shapeOf(array)) + " for a View of shape " +
                            textOf(shapeOf(view)));
    demandIdle(t);
    const ViewOf<T> v = view.as<T>();
    const std::span<T> to = [&] {
      if constexpr (part == Part::grad) return v.grads();
      else return v.data();
    }();
    if (array.ndim() == 0) std::fill(to.begin(), to.end(), *array.data());
    else std::copy_n(array.data(), to.size(), to.begin());
  });
}

bool isView(const py::handle& object) { return py::isinstance<PyView>(object); }
bool isArray(const py::handle& object) { // one of no dimensions is a number
  return py::isinstance<py::array>(object) && py::reinterpret_borrow<py::array>(object).ndim() != 0;
}
PyView& viewOf(const py::handle& object) { return object.cast<PyView&>(); }

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

// An array or a list of Values as a View; anything else as it is.
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

// Leaves on a tape; Values are where they are. Numbers that are data get no gradient from blocks.
enum class Role { variables, data };
py::object leaves(AnyTape& tape, const py::handle& data, Role role = Role::variables) {
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

// Views as runs of nodes, each as long as it can be: a list of (View, positions in the argument). What
// works on numbers one by one, like an optimizer, goes through a model of many layers in one call.
py::list runsOf(const py::list& views) {
  struct Part {
    AnyTape* tape;
    std::size_t first, size, place;
  };
  std::vector<Part> parts;
  for (std::size_t i = 0; i < views.size(); ++i) {
    const PyView& view = viewOf(views[i]);
    with(view, [&](auto&, const auto& v) {
      v.check();
      parts.push_back({view.tape.get(), v.sysGetRawNodeIndex(), v.size(), i});
    });
  }
  std::ranges::stable_sort(parts, [](const Part& x, const Part& y) {
    return std::pair(x.tape, x.first) < std::pair(y.tape, y.first);
  });
  py::list runs;
  for (std::size_t i = 0; i < parts.size();) {
    const Part& start = parts[i];
    std::size_t end = start.first;
    py::list places;
    do {
      end = parts[i].first + parts[i].size;
      places.append(parts[i].place);
      ++i;
    } while (i < parts.size() && parts[i].tape == start.tape && parts[i].first == end);
    visitPlain(*start.tape, [&]<class T>(TapeOf<T>& t) {
      const auto run = ViewOf<T>::at(t.tape, start.first, 1, end - start.first);
      runs.append(py::make_tuple(newView(t, run, 1), places));
    });
  }
  return runs;
}

py::object named(const py::object& view, const std::optional<std::string>& name) {
  if (name) view.attr("name") = *name;
  return view;
}

py::object makeLeaves(const py::object& data, const std::optional<std::string>& name,
                      std::size_t dimensions, const char* what) {
  const py::object given = isView(data) ? data : asArray(data, "biufO", "numbers");
  const Shape shape =
      isView(data) ? shapeOf(viewOf(data)) : shapeOf(py::reinterpret_borrow<py::array>(given));
  if (shape.size() != dimensions)
    throw py::value_error(std::string("a ") + what + " has " + std::to_string(dimensions) +
                          (dimensions == 1 ? " dimension" : " dimensions") + ", not the shape " +
                          textOf(shape));
  return named(leaves(currentTape(), given), name);
}

// ---- operands -------------------------------------------------------------------------------------

bool isNumber(const py::handle& object, double& number) {
  if (!py::isinstance<py::array>(object) || isArray(object)) return asNumber(object.ptr(), number);
  number = *numbersOf<double>(object).data();
  return true;
}

// A View; a Value, which goes with every element; an array, which is data.
struct Operand {
  Operand(const py::handle& object, AnyTape& tape_)
      : owner(isArray(object) ? leaves(tape_, object, Role::data)
                              : py::reinterpret_borrow<py::object>(object)) {
    if (&tape() != &tape_)
      bt::detail::fail(bt::ErrorKind::differentTapes, "the operands live on two different tapes");
  }

  AnyTape& tape() const { return *(isView(owner) ? viewOf(owner).tape.get() : value()->tape); }
  int dimensions() const { return isView(owner) ? viewOf(owner).dimensions : 0; }
  template <class T> ViewOf<T> as() const {
    if (isView(owner)) return viewOf(owner).as<T>();
    const auto v = value()->as<T>();
    return ViewOf<T>::at(v.tape(), v.sysGetRawNodeIndex(), 1, 1);
  }

private:
  const PyValue* value() const { return reinterpret_cast<const PyValue*>(owner.ptr()); }
  py::object owner;
};

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

// ---- elementwise operations -----------------------------------------------------------------------

template <class F> py::object withUnary(bt::Op operation, const F& f) {
  switch (operation) {
#define BURTORCH_CASE(Name, function)                                                              \
  case bt::Op::e##Name:                                                                            \
    return f.template operator()<bt::op::Name>();
    BURTORCH_UNARY_OPERATIONS(BURTORCH_CASE)
  default:
    BURTORCH_UNREACHABLE();
  }
}
template <class F> py::object withBinary(bt::Op operation, const F& f) {
  switch (operation) {
    BURTORCH_BINARY_OPERATIONS(BURTORCH_CASE)
  default:
    BURTORCH_UNREACHABLE();
  }
}
template <class F> py::object withClipped(bt::Op operation, const F& f) {
  switch (operation) {
    BURTORCH_CLIPPED_OPERATIONS(BURTORCH_CASE)
#undef BURTORCH_CASE
  default:
    BURTORCH_UNREACHABLE();
  }
}

py::object unary(bt::Op operation, const PyView& x) {
  return withUnary(operation, [&]<class O>() {
    return append(*x.tape, x.dimensions, [&]<class T>() { return bt::mapElements<O>(x.as<T>()); });
  });
}

py::object clipped(bt::Op operation, const PyView& x, double lo, double hi) {
  return withClipped(operation, [&]<class O>() {
    return append(*x.tape, x.dimensions, [&]<class T>() {
      return bt::mapElements<O>(x.as<T>(), static_cast<T>(lo), static_cast<T>(hi));
    });
  });
}

// NotImplemented if one of them is nothing that goes with a View.
py::object binary(bt::Op operation, const py::handle& x, const py::handle& y) {
  const auto& view = viewOf(isView(x) ? x : y);
  AnyTape& tape = *view.tape;
  const py::handle other = isView(x) ? y : x;
  double number = 0;
  if (isView(other) || isValue(other.ptr()) || isArray(other)) {
    const Operand a(x, tape), b(y, tape);
    return withBinary(operation, [&]<class O>() {
      return append(tape, std::max(a.dimensions(), b.dimensions()),
                    [&]<class T>() { return bt::mapElements<O>(a.as<T>(), b.as<T>()); });
    });
  }
  if (isNumber(other, number))
    return withBinary(operation, [&]<class O>() {
      return append(tape, view.dimensions, [&]<class T>() {
        const T c = static_cast<T>(number);
        return isView(x) ? bt::mapElementsWithNumber<O, bt::Form::nodeNumber>(view.as<T>(), c)
                         : bt::mapElementsWithNumber<O, bt::Form::numberNode>(view.as<T>(), c);
      });
    });
  if (PyErr_Occurred()) throw py::error_already_set();
  return py::reinterpret_borrow<py::object>(Py_NotImplemented);
}

py::object powerOf(const py::object& x, const py::object& y) {
  double exponent = 0;
  if (isView(x) && isNumber(y, exponent)) {
    if (exponent == 2) return unary(bt::Op::eSqr, viewOf(x));
    if (exponent == 3) return unary(bt::Op::eCub, viewOf(x));
    if (exponent == -1) return unary(bt::Op::eInv, viewOf(x));
  }
  if (PyErr_Occurred()) throw py::error_already_set();
  return binary(bt::Op::eBinaryPow, x, y);
}

} // namespace

PyObject* mapView(bt::Op operation, PyObject* x) {
  return guarded([&]() -> PyObject* {
    return isView(x) ? unary(operation, viewOf(x)).release().ptr() : nullptr;
  });
}
PyObject* mapView(bt::Op operation, PyObject* x, PyObject* y) {
  return guarded([&]() -> PyObject* {
    if (!isView(x) && !isView(y)) return nullptr;
    py::object z = binary(operation, x, y);
    return z.ptr() == Py_NotImplemented ? nullptr : z.release().ptr();
  });
}
PyObject* mapView(bt::Op operation, PyObject* x, double lo, double hi) {
  return guarded([&]() -> PyObject* {
    return isView(x) ? clipped(operation, viewOf(x), lo, hi).release().ptr() : nullptr;
  });
}

namespace {

// A view of leaves with these numbers; in a function that is being recorded, 1·x as detach() of a Value.
py::object detachedView(const py::object& object) {
  const PyView& view = viewOf(object);
  return visitPlain(*view.tape, [&]<class T>(TapeOf<T>& t) -> py::object {
    view.as<T>().check();
    if (t.trace != nullptr) return binary(bt::Op::eBinaryMultByConst, py::float_(1.0), object);
    t.prepare();
    const ViewOf<T> v = view.as<T>();
    return newView(t, ViewOf<T>(t.tape, v.rows(), v.cols(), v.data()), view.dimensions);
  });
}

} // namespace

PyObject* detachView(PyObject* x) {
  return guarded([&]() -> PyObject* {
    if (!isView(x)) return nullptr;
    return detachedView(py::reinterpret_borrow<py::object>(x)).release().ptr();
  });
}

namespace {

// ---- blocks ---------------------------------------------------------------------------------------

// w·x + b for a vector, x·wᵀ + b for the rows of a matrix; x may be a list of views side by side.
py::object affine(const py::object& weights, const py::object& inputs, const py::object& bias) {
  const PyView& w = demandMatrix(weights, "W");
  const PyView* const b = bias.is_none() ? nullptr : &demandView(bias, "b");
  std::vector<py::object> owners; // a list of one's own may yield views that nobody else holds
  std::vector<const PyView*> x;
  const auto take = [&](const py::handle& each, const char* what) {
    owners.push_back(isArray(each) ? leaves(*w.tape, each, Role::data)
                                   : py::reinterpret_borrow<py::object>(each));
    x.push_back(&demandView(owners.back(), what));
  };
  if (py::isinstance<py::list>(inputs) || py::isinstance<py::tuple>(inputs))
    for (const auto each : inputs) take(each, "each part of x");
  else take(inputs, "x");
  int dimensions = 1;
  for (const PyView* each : x) {
    demandTape(*each, *w.tape);
    dimensions = std::max(dimensions, each->dimensions);
  }
  if (b != nullptr) demandTape(*b, *w.tape);
  return append(*w.tape, dimensions, [&]<class T>() {
    std::vector<ViewOf<T>> parts;
    for (const PyView* each : x) parts.push_back(each->as<T>());
    return bt::affine(w.as<T>(), parts, b == nullptr ? ViewOf<T>() : b->as<T>());
  });
}

// NumPy's @ of vectors and matrices.
py::object matmul(const py::object& left, const py::object& right) {
  const auto operandLike = [](const py::object& object) {
    return isView(object) || isArray(object);
  };
  if (!operandLike(left) || !operandLike(right))
    return py::reinterpret_borrow<py::object>(Py_NotImplemented);
  AnyTape& tape = *viewOf(isView(left) ? left : right).tape;
  const Operand a(left, tape), b(right, tape);
  if (a.dimensions() == 1 && b.dimensions() == 1)
    return appendValue(tape, [&]<class T>() { return bt::innerProduct(a.as<T>(), b.as<T>()); });
  return append(tape, std::min(a.dimensions(), b.dimensions()), [&]<class T>() {
    const auto x = a.as<T>(), y = b.as<T>();
    if (b.dimensions() == 2) return bt::matmul(x, y);
    if (x.cols() != y.size()) return bt::matmul(x, y.reshape(y.size(), 1)); // which tells
    return bt::affine(x, y);
  });
}

template <class F> py::object eachRow(const py::object& object, const F& f) {
  const PyView& x = demandView(object, "x");
  return append(*x.tape, x.dimensions, [&]<class T>() { return f(x.as<T>()); });
}

py::object crossEntropy(const py::object& logits, const py::object& targets,
                        const std::string& reduction) {
  const PyView& x = demandView(logits, "logits");
  const Integers y(targets);
  Shape wanted = shapeOf(x);
  wanted.pop_back();
  if (shapeOf(y.array).size() != wanted.size())
    throw py::value_error("logits of shape " + textOf(shapeOf(x)) + " need targets of shape " +
                          textOf(wanted) + ", not " + textOf(shapeOf(y.array)));
  if (reduction != "mean" && reduction != "sum" && reduction != "none")
    throw py::value_error("reduction is 'mean', 'sum' or 'none', not '" + reduction + "'");
  const py::object losses =
      append(*x.tape, 1, [&]<class T>() { return bt::crossEntropy(x.as<T>(), y.span()); });
  if (x.dimensions == 1) return losses[py::int_(0)];
  return reduction == "none" ? losses : losses.attr(reduction.c_str())();
}

py::object layerNorm(const py::object& object, const py::object& weight, const py::object& bias,
                     double eps) {
  const PyView &x = demandView(object, "x"), &w = demandView(weight, "weight"),
               &b = demandView(bias, "bias");
  demandTape(w, *x.tape);
  demandTape(b, *x.tape);
  return append(*x.tape, x.dimensions, [&]<class T>() {
    return bt::layerNorm(x.as<T>(), w.as<T>(), b.as<T>(), static_cast<T>(eps));
  });
}

// ids (n,): rows one below the other; (n, p): p rows side by side in each.
py::object gather(const py::object& table, const py::object& ids) {
  const PyView& from = demandMatrix(table, "table");
  const Integers indices(ids);
  const Shape shape = shapeOf(indices.array);
  if (shape.size() > 2)
    throw py::value_error("ids have at most two dimensions, not the shape " + textOf(shape));
  const auto perRow = shape.size() == 2 ? static_cast<std::size_t>(shape[1]) : 1;
  return append(*from.tape, shape.empty() ? 1 : 2,
                [&]<class T>() { return bt::gather(from.as<T>(), indices.span(), perRow); });
}

py::object attention(const py::object& keysQueriesValues, std::size_t heads,
                     std::optional<std::size_t> positions) {
  const PyView& x = demandMatrix(keysQueriesValues, "x");
  return append(*x.tape, 2, [&]<class T>() {
    const auto v = x.as<T>();
    return bt::attention(v, heads, positions.value_or(v.rows()));
  });
}

py::object concat(const py::iterable& views, int axis) {
  const auto owners = py::cast<std::vector<py::object>>(py::list(views));
  if (owners.empty()) throw py::value_error("concat of no views");
  const PyView& first = demandView(owners.front(), "each part");
  if (axis < 0) axis += first.dimensions;
  if (axis < 0 || axis >= first.dimensions)
    throw py::value_error("axis " + std::to_string(axis) + " of views of shape " +
                          textOf(shapeOf(first)));
  for (const auto& owner : owners) {
    const PyView& view = demandView(owner, "each part");
    demandTape(view, *first.tape);
    if (view.dimensions != first.dimensions)
      throw py::value_error("concat of shapes " + textOf(shapeOf(first)) + " and " +
                            textOf(shapeOf(view)));
  }
  return append(*first.tape, first.dimensions, [&]<class T>() {
    std::vector<ViewOf<T>> parts;
    for (const auto& owner : owners) parts.push_back(viewOf(owner).as<T>());
    return axis + 1 == first.dimensions ? bt::concatColumns(parts) : bt::concatRows(parts);
  });
}

// ---- elements, rows, slices -----------------------------------------------------------------------

std::size_t position(const py::handle& index, std::size_t count, const char* what) {
  const py::ssize_t i = PyNumber_AsSsize_t(index.ptr(), PyExc_IndexError);
  if (i == -1 && PyErr_Occurred()) throw py::error_already_set();
  const auto n = static_cast<py::ssize_t>(count);
  if (i < -n || i >= n)
    throw py::index_error(std::string(what) + " " + std::to_string(i) + " of " + std::to_string(n));
  return static_cast<std::size_t>(i < 0 ? i + n : i);
}

struct Run {
  std::size_t first, count;
};
Run run(const py::slice& slice, std::size_t size) {
  std::size_t start = 0, stop = 0, step = 0, count = 0;
  if (!slice.compute(size, &start, &stop, &step, &count)) throw py::error_already_set();
  if (step != 1 && count > 1)
    throw py::value_error("a View is of neighbouring nodes: slices have step 1");
  return {start, count};
}

py::object item(const PyView& view, const py::object& key) {
  const bool isVector = view.dimensions == 1;
  return with(view, [&]<class T>(TapeOf<T>& t, const ViewOf<T>& v) -> py::object {
    v.check();
    if (PyIndex_Check(key.ptr())) {
      if (isVector) return valueObject(t, v[position(key, v.size(), "element")]);
      return newView(t, v.row(position(key, v.rows(), "row")), 1);
    }
    if (py::isinstance<py::slice>(key)) {
      const Run some = run(key, isVector ? v.size() : v.rows());
      if (isVector) return newView(t, v.segment(some.first, some.count), 1);
      return newView(t, v.slice(some.first, some.count), 2);
    }
    if (!isVector && py::isinstance<py::tuple>(key) && py::len(key) == 2) {
      const py::object i = key[py::int_(0)], j = key[py::int_(1)];
      if (PyIndex_Check(i.ptr())) {
        const auto row = v.row(position(i, v.rows(), "row"));
        if (PyIndex_Check(j.ptr())) return valueObject(t, row[position(j, v.cols(), "column")]);
        if (py::isinstance<py::slice>(j)) {
          const Run some = run(j, v.cols());
          return newView(t, row.segment(some.first, some.count), 1);
        }
      }
      throw py::type_error("a View is of neighbouring nodes: m[i], m[i:j], m[i, j] and m[i, j:k] "
                           "are such; columns are not");
    }
    throw py::type_error(std::string("a View of shape ") + textOf(shapeOf(view)) +
                         " is indexed by integers and slices, not " + Py_TYPE(key.ptr())->tp_name);
  });
}

py::object reshape(const PyView& view, const py::args& sizes) {
  const Shape shape = py::cast<Shape>(sizes.size() == 1 && py::isinstance<py::sequence>(sizes[0])
                                          ? py::list(sizes[0])
                                          : py::list(sizes));
  const bool sensible = (shape.size() == 1 || shape.size() == 2) &&
                        std::ranges::all_of(shape, [](py::ssize_t n) { return n >= 0; });
  const auto size = [&](std::size_t i) { return static_cast<std::size_t>(shape[i]); };
  return with(view, [&]<class T>(TapeOf<T>& t, const ViewOf<T>& v) -> py::object {
    v.check();
    if (!sensible || (shape.size() == 1 ? size(0) : size(0) * size(1)) != v.size())
      throw py::value_error("a View of shape " + textOf(shapeOf(view)) + " can't become " +
                            textOf(shape));
    return shape.size() == 1 ? newView(t, v.reshape(1, size(0)), 1)
                             : newView(t, v.reshape(size(0), size(1)), 2);
  });
}

py::object arrayOfValues(const py::object& view) {
  const auto& v = viewOf(view);
  const py::tuple shape = py::cast(shapeOf(v));
  const py::object flat =
      reshape(v, py::make_tuple(with(v, [](auto&, auto n) { return n.size(); })));
  const py::object array = py::module_::import("numpy").attr("empty")(py::len(flat), "O");
  for (std::size_t i = 0; i < py::len(flat); ++i) array[py::int_(i)] = flat[py::int_(i)];
  return array.attr("reshape")(shape);
}

std::string textFor(const PyView& view) {
  if (!with(view, [](auto&, const auto& v) { return v.isAlive(); }))
    return "<a View whose nodes were rewound>";
  std::string text = py::repr(plainCopy(view)).cast<std::string>(); // array(…)
  text.replace(0, text.find('('), "View");
  if (!view.name.empty())
    text.insert(text.size() - 1, ", name=" + py::repr(py::str(view.name)).cast<std::string>());
  return text;
}

void nameElements(PyView& view, const std::optional<std::string>& name) {
  with(view, [&](auto& t, const auto& v) {
    demandIdle(t);
    v.check();
    if (name) v.setLabel(*name);
    else
      for (const auto& each : v) each.setLabel("");
  });
  view.name = name.value_or("");
}

void backward(const PyView& view) {
  with(view, [&](auto& t, const auto& v) {
    v.check();
    if (v.size() != 1)
      throw py::value_error("backward() needs one number, not a View of shape " +
                            textOf(shapeOf(view)) + "; take its sum(), say");
    if (!sweepFrom(t, v[0])) throw py::error_already_set();
  });
}

// ---- random numbers -------------------------------------------------------------------------------

bt::nn::Init schemeNamed(const std::string& name) {
  using bt::nn::Init;
  static constexpr std::pair<const char*, Init> schemes[] = {
      {"zeros", Init::zeros},
      {"ones", Init::ones},
      {"uniform", Init::uniform},
      {"normal", Init::normal},
      {"linear", Init::linear},
      {"xavier_uniform", Init::xavierUniform},
      {"xavier_normal", Init::xavierNormal},
      {"kaiming_uniform", Init::kaimingUniform},
      {"kaiming_normal", Init::kaimingNormal},
      {"glorot_uniform", Init::xavierUniform}, // the same schemes by their other authors' names
      {"glorot_normal", Init::xavierNormal},
      {"he_uniform", Init::kaimingUniform},
      {"he_normal", Init::kaimingNormal},
  };
  std::string known;
  for (const auto& [text, scheme] : schemes) {
    if (name == text) return scheme;
    known += std::string(known.empty() ? "" : ", ") + text;
  }
  throw py::value_error("unknown scheme '" + name + "'; there are " + known);
}

void initialize(const PyView& view, const std::string& scheme, bt::Random& random,
                std::optional<std::size_t> inputs, std::optional<std::size_t> outputs) {
  const auto how = schemeNamed(scheme);
  with(view, [&](auto& t, const auto& v) {
    demandIdle(t);
    v.check();
    bt::nn::initialize(v, how, random, inputs.value_or(v.cols()), outputs.value_or(v.rows()));
  });
}

void registerRandom(py::module_& module) {
  py::class_<bt::Random>(module, "Random",
                         "Random numbers that are the same on every platform: xoshiro256**.")
      .def(py::init<std::uint64_t>(), py::arg("seed") = 0)
      .def("bits", &bt::Random::bits, "64 random bits.")
      .def(
          "uniform", [](bt::Random& r, double low, double high) { return r.uniform(low, high); },
          py::arg("low") = 0.0, py::arg("high") = 1.0, "A number from low to below high.")
      .def("normal", &bt::Random::normal, "A number with mean 0 and deviation 1.")
      .def(
          "below",
          [](bt::Random& r, std::size_t n) {
            if (n == 0) throw py::value_error("below(0): there is no such number");
            return r.below(n);
          },
          py::arg("n"), "One of 0 … n-1.")
      .def_property(
          "state", &bt::Random::state,
          [](bt::Random& r, const bt::Random::State& state) {
            if (state == bt::Random::idle().state())
              throw py::value_error("a state of zeros gives nothing but 0");
            r.setState(state);
          },
          "Four integers that say what comes next; not all are 0.");
}

// ---- the class ------------------------------------------------------------------------------------

template <bt::Op operation> py::object operate(const py::object& x, const py::object& y) {
  return binary(operation, x, y);
}
template <bt::Op operation> py::object operateReversed(const py::object& y, const py::object& x) {
  return binary(operation, x, y);
}

void addOperators(py::class_<PyView>& c) {
  c.def("__add__", &operate<bt::Op::eBinaryAdd>);
  c.def("__radd__", &operateReversed<bt::Op::eBinaryAdd>);
  c.def("__sub__", &operate<bt::Op::eBinarySub>);
  c.def("__rsub__", &operateReversed<bt::Op::eBinarySub>);
  c.def("__mul__", &operate<bt::Op::eBinaryMult>);
  c.def("__rmul__", &operateReversed<bt::Op::eBinaryMult>);
  c.def("__truediv__", &operate<bt::Op::eBinaryDiv>);
  c.def("__rtruediv__", &operateReversed<bt::Op::eBinaryDiv>);
  c.def("__pow__", &powerOf);
  c.def("__rpow__", &operateReversed<bt::Op::eBinaryPow>);
  c.def("__matmul__", &matmul);
  c.def("__rmatmul__", [](const py::object& y, const py::object& x) { return matmul(x, y); });
  c.def("__neg__", [](const PyView& x) { return unary(bt::Op::eNegative, x); });
  c.def("__pos__", [](const py::object& x) { return x; });
  c.def("__abs__", [](const PyView& x) { return unary(bt::Op::eAbs, x); });
#define BURTORCH_METHOD(Name, function)                                                            \
  c.def(                                                                                           \
      snakeCase(#function).c_str(), [](const PyView& x) { return unary(bt::Op::e##Name, x); },     \
      "This operation on every element.");
  BURTORCH_UNARY_OPERATIONS(BURTORCH_METHOD)
#undef BURTORCH_METHOD
}

// A block whose operands may also be arrays or lists of Values.
template <class... Arguments> auto withViews(py::object (*block)(Arguments...)) {
  return [block](Arguments... arguments) {
    const auto viewed = [](const auto& x) -> decltype(auto) {
      if constexpr (std::same_as<std::remove_cvref_t<decltype(x)>, py::object>) return asView(x);
      else return x;
    };
    return block(viewed(arguments)...);
  };
}

} // namespace

void registerView(py::module_& module) {
  registerRandom(module);
  py::class_<PyView> c(module, "View",
                       "A vector or a matrix of Values that stand next to each other on a tape.");
  c.def("__len__", [](const PyView& view) { return shapeOf(view)[0]; })
      .def("__getitem__", &item)
      .def("__iter__",
           [](const py::object& view) {
             return py::reinterpret_steal<py::object>(PySeqIter_New(view.ptr()));
           })
      .def("__repr__", &textFor)
      .def("_repr_mimebundle_",
           [](const py::object& self, const py::args& args, const py::kwargs& keywords) {
             return py::reinterpret_steal<py::object>(
                 notebookDisplay(self.ptr(), args.ptr(), keywords.ptr()));
           })
      .def(
          "__array__",
          [](const py::object& view, const py::object& dtype, const py::object&) {
            if (dtype.is_none() || py::dtype::from_args(dtype).kind() != 'O')
              raiseGraphError(wouldCut("an array made of a View"));
            return arrayOfValues(view);
          },
          py::arg("dtype") = py::none(), py::arg("copy") = py::none(),
          "An array of the Values themselves, with dtype=object; numbers are refused.")
      .def_property_readonly(
          "shape", [](const PyView& view) { return py::tuple(py::cast(shapeOf(view))); },
          "(n,) of a vector, (rows, columns) of a matrix.")
      .def_property_readonly("ndim", [](const PyView& view) { return view.dimensions; })
      .def_property_readonly(
          "size",
          [](const PyView& view) { return with(view, [](auto&, auto v) { return v.size(); }); })
      .def_property_readonly("tape", [](const PyView& view) { return view.tape; })
      .def_property(
          "data", &readOnlyCopy<Part::data>, &assign<Part::data>,
          "A copy of the numbers as an array that can't be written to. Assign an array of "
          "the same shape, or one\nnumber for all, to change them; x.data -= y does that.")
      .def_property("grad", &readOnlyCopy<Part::grad>, &assign<Part::grad>,
                    "Likewise their gradients.")
      .def_property(
          "name",
          [](const PyView& view) {
            return view.name.empty() ? std::nullopt : std::optional(view.name);
          },
          &nameElements, "A label for people and pictures, or None; element i is called name[i].")
      .def(
          "sum",
          [](const PyView& x) {
            return appendValue(*x.tape, [&]<class T>() { return bt::reduceSum(x.as<T>()); });
          },
          "The sum of all elements: a Value.")
      .def(
          "mean",
          [](const PyView& x) {
            return appendValue(*x.tape, [&]<class T>() { return bt::reduceMean(x.as<T>()); });
          },
          "The mean of all elements: a Value.")
      .def("reshape", &reshape, "The same nodes in another shape.")
      .def("detach", &detachedView, "The same numbers without a gradient; burtorch.stop_gradient.")
      .def("backward", &backward, "Compute the gradients of its one number.")
      .def(
          "zero_grad",
          [](const PyView& view) {
            with(view, [](auto& t, const auto& v) {
              demandIdle(t);
              std::ranges::fill(v.grads(), 0);
            });
          },
          "Set the gradients to 0.")
      .def("initialize", &initialize, py::arg("scheme"), py::arg("random"),
           py::arg("inputs") = py::none(), py::arg("outputs") = py::none(),
           "Draw the numbers as the scheme says: 'linear', 'kaiming_normal', …");
  addOperators(c);

  module.def(
      "vector",
      [](const py::object& data, const std::optional<std::string>& name) {
        return makeLeaves(data, name, 1, "vector");
      },
      py::arg("data"), py::arg("name") = py::none(),
      "Leaves on the current tape, in a row. An array or a list of Values becomes a view of these: "
      "without\na copy where they stand next to each other.");
  module.def(
      "matrix",
      [](const py::object& data, const std::optional<std::string>& name) {
        return makeLeaves(data, name, 2, "matrix");
      },
      py::arg("data"), py::arg("name") = py::none(),
      "Leaves on the current tape, row by row, or a view of Values.");
  module.def("_runs", &runsOf, py::arg("views"));
  module.def(
      "_data",
      [](const py::object& numbers, const PyView& beside) {
        return leaves(*beside.tape, numbers, Role::data);
      },
      py::arg("numbers"), py::arg("beside"));
  module.def(
      "affine", withViews(&affine), py::arg("W"), py::arg("x"), py::arg("b") = py::none(),
      "W @ x + b; of every row if x is a matrix. x may be a list of views that stand for "
      "their concatenation.\nAn array in the place of x is data: it gets no gradient, which saves "
      "half of the way back.");
  module.def(
      "softmax",
      [](const py::object& x) {
        return eachRow(asView(x), [](const auto& v) { return bt::softmax(v); });
      },
      py::arg("x"), "e to the power of x over the sum of these, in each row.");
  module.def(
      "log_softmax",
      [](const py::object& x) {
        return eachRow(asView(x), [](const auto& v) { return bt::logSoftmax(v); });
      },
      py::arg("x"), "The logarithm of softmax.");
  module.def("cross_entropy", withViews(&crossEntropy), py::arg("logits"), py::arg("targets"),
             py::arg("reduction") = "mean",
             "-log_softmax(logits)[target] of each row: their mean, sum, or all ('none').");
  module.def("layer_norm", withViews(&layerNorm), py::arg("x"), py::arg("weight"), py::arg("bias"),
             py::arg("eps") = 1e-5,
             "Each row shifted and scaled to mean 0 and variance 1, times weight, plus bias.");
  module.def(
      "gather", withViews(&gather), py::arg("table"), py::arg("ids"),
      "The rows of a table that ids name; with ids of shape (n, p), p of them side by side.");
  module.def("attention", withViews(&attention), py::arg("x"), py::arg("heads"),
             py::arg("positions") = py::none(),
             "Causal self-attention. x holds for each head its keys, queries and values side by "
             "side;\nits rows are sequences of so many positions (one sequence by default).");
  module.def("concat", &concat, py::arg("views"), py::arg("axis") = 0,
             "A copy of views one after the other; of matrices: below each other, with axis=1 side "
             "by side.");
}

template <class T> bt::KnownBlocks<T, SharedMemory> knownBlocks() {
  return bt::everyBlock<T, SharedMemory>();
}
template bt::KnownBlocks<double, SharedMemory> knownBlocks<double>();
template bt::KnownBlocks<float, SharedMemory> knownBlocks<float>();

} // namespace burtorch_python
