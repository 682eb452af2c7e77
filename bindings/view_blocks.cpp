// bindings/view_blocks.cpp — what is computed with Views: elementwise operations, blocks
// SPDX-License-Identifier: MIT
#include "help.hpp"
#include "io.hpp"
#include "view_operands.hpp"

#include <burtorch/block/blocks.hpp>
#include <burtorch/io/blocks.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace burtorch_python {

namespace {

// ---- elementwise operations -----------------------------------------------------------------------

bool isNumber(const py::handle& object, double& number) {
  if (!py::isinstance<py::array>(object) || isArray(object)) return asNumber(object.ptr(), number);
  number = *numbersOf<double>(object).data();
  return true;
}

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

PyObject* detachView(PyObject* x) {
  return guarded([&]() -> PyObject* {
    if (!isView(x)) return nullptr;
    return detachedView(py::reinterpret_borrow<py::object>(x)).release().ptr();
  });
}

namespace {

// ---- blocks ---------------------------------------------------------------------------------------

// Integers of any shape, as they stand in memory.
struct Integers {
  explicit Integers(const py::handle& data) : array(asArray(data, "iu", "integers")) {}
  std::span<const std::int64_t> span() const {
    return {array.data(), static_cast<std::size_t>(array.size())};
  }
  Numbers<std::int64_t> array;
};

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

template <bt::Op operation> py::object operate(const py::object& x, const py::object& y) {
  return binary(operation, x, y);
}
template <bt::Op operation> py::object operateReversed(const py::object& y, const py::object& x) {
  return binary(operation, x, y);
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

void addOperators(ViewClass& c) {
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

void registerBlocks(py::module_& module) {
  module.def(
      "affine", withViews(&affine), py::arg("W"), py::arg("x"), py::arg("b") = py::none(),
      helpOf<bt::block::Affine>("\nAn array in the place of x is data: it gets no gradient, which "
                                "saves half of the way back."));
  module.def(
      "softmax",
      [](const py::object& x) {
        return eachRow(asView(x), [](const auto& v) { return bt::softmax(v); });
      },
      py::arg("x"), helpOf<bt::block::Softmax>());
  module.def(
      "log_softmax",
      [](const py::object& x) {
        return eachRow(asView(x), [](const auto& v) { return bt::logSoftmax(v); });
      },
      py::arg("x"), helpOf<bt::block::LogSoftmax>());
  module.def("cross_entropy", withViews(&crossEntropy), py::arg("logits"), py::arg("targets"),
             py::arg("reduction") = "mean",
             helpOf<bt::block::CrossEntropy>(" The mean of them, the sum, or all ('none')."));
  module.def("layer_norm", withViews(&layerNorm), py::arg("x"), py::arg("weight"), py::arg("bias"),
             py::arg("eps") = 1e-5, helpOf<bt::block::LayerNorm>());
  module.def("gather", withViews(&gather), py::arg("table"), py::arg("ids"),
             helpOf<bt::block::Gather>(" With ids of shape (n, p), p rows are side by side."));
  module.def("attention", withViews(&attention), py::arg("x"), py::arg("heads"),
             py::arg("positions") = py::none(),
             helpOf<bt::block::Attention>(" By default they are one sequence."));
  module.def("concat", &concat, py::arg("views"), py::arg("axis") = 0,
             helpOf<bt::block::Concat>(" By default, axis=0, matrices stand below each other."));
}

template <class T> bt::KnownBlocks<T, SharedMemory> knownBlocks() {
  return bt::everyBlock<T, SharedMemory>();
}
template bt::KnownBlocks<double, SharedMemory> knownBlocks<double>();
template bt::KnownBlocks<float, SharedMemory> knownBlocks<float>();

} // namespace burtorch_python
