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
#include <string_view>
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
    return append(*x.tape, x.shape, [&]<class T>() { return bt::mapElements<O>(x.as<T>()); });
  });
}

py::object clipped(bt::Op operation, const PyView& x, double lo, double hi) {
  return withClipped(operation, [&]<class O>() {
    return append(*x.tape, x.shape, [&]<class T>() {
      return bt::mapElements<O>(x.as<T>(), static_cast<T>(lo), static_cast<T>(hi));
    });
  });
}

// Two operands as the matrices that the blocks of two operands take: equal shapes, or one row, one
// column, one number. Axes along which both, or only one, have more than one number are joined; where
// more than two of these remain, what is smaller is repeated first.
struct Together {
  struct Sizes {
    std::size_t rows = 1, cols = 1;
  };
  Together(const Shape& a, const Shape& b, const char* who)
      : shape(a == b ? a : broadcast(a, b, who)), isSame(a == b) {
    if (isSame) return;
    enum class Has { both, left, right };
    std::vector<std::pair<Has, std::size_t>> axes;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] == 1) continue;
      const auto many = [&](const Shape& s) {
        return i + s.size() >= shape.size() && s[i + s.size() - shape.size()] != 1;
      };
      const Has has = !many(b) ? Has::left : many(a) ? Has::both : Has::right;
      const auto n = static_cast<std::size_t>(shape[i]);
      if (!axes.empty() && axes.back().first == has) axes.back().second *= n;
      else axes.emplace_back(has, n);
    }
    isDirect = axes.size() <= 2;
    if (!isDirect) axes = {{Has::both, sizeOf(shape)}};
    const auto give = [&](std::size_t Sizes::*side, const auto& axis) {
      if (axis.first != Has::right) x.*side = axis.second;
      if (axis.first != Has::left) y.*side = axis.second;
    };
    if (axes.size() == 2) give(&Sizes::rows, axes[0]);
    if (!axes.empty()) give(&Sizes::cols, axes.back());
  }
  template <class T> ViewOf<T> as(const Operand& operand, const Sizes& sizes) const {
    if (isSame) return operand.as<T>();
    const auto v = isDirect ? operand.as<T>() : operand.repeated<T>(shape);
    return v.reshape(sizes.rows, sizes.cols);
  }

  Shape shape;
  Sizes x, y;
  bool isSame, isDirect = true;
};

// NotImplemented if one of them is nothing that goes with a View.
py::object binary(bt::Op operation, const py::handle& x, const py::handle& y) {
  const auto& view = viewOf(isView(x) ? x : y);
  AnyTape& tape = *view.tape;
  const py::handle other = isView(x) ? y : x;
  double number = 0;
  if (isView(other) || isValue(other.ptr()) || isArray(other)) {
    const Operand a(x, tape), b(y, tape);
    return withBinary(operation, [&]<class O>() {
      const Together pair(a.shape(), b.shape(), bt::op::Entry<O>::name);
      return append(tape, pair.shape, [&]<class T>() {
        return bt::mapElements<O>(pair.as<T>(a, pair.x), pair.as<T>(b, pair.y));
      });
    });
  }
  if (isNumber(other, number))
    return withBinary(operation, [&]<class O>() {
      return append(tape, view.shape, [&]<class T>() {
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
    return newView(t, ViewOf<T>(t.tape, v.rows(), v.cols(), v.data()), view.shape);
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

// Integers of any shape, as they stand in memory. Those of a function that is being recorded know where they
// came from.
struct Integers {
  explicit Integers(const py::handle& data) : Integers(data, py::hasattr(data, "_places")) {}
  Integers(const py::handle& data, bool isTraced)
      : array(asArray(isTraced ? py::object(data.attr("_values"))
                               : py::reinterpret_borrow<py::object>(data),
                      "iu", "integers")) {
    if (isTraced) places = Numbers<std::int64_t>(data.attr("_places"));
  }
  // The block made last on the tape keeps them from this parameter on.
  void note(AnyTape& tape, std::size_t parameter, std::size_t limit) const {
    if (!places || array.size() == 0 || tape.indexLog == nullptr) return;
    visitPlain(tape, [&](auto& t) {
      tape.indexLog->push_back({t.tape.records().size() - 1,
                                parameter,
                                limit,
                                {places->data(), places->data() + places->size()}});
    });
  }
  std::span<const std::int64_t> span() const {
    return {array.data(), static_cast<std::size_t>(array.size())};
  }
  Numbers<std::int64_t> array;
  std::optional<Numbers<std::int64_t>> places;
};

// While a function is recorded: w·x + b where x is just what gather made, whose integers are data. Together
// they are one block, which multiplies each row that occurs once. An empty view if x is nothing of the kind.
template <class T>
ViewOf<T> affineOfGathered(TapeOf<T>& t, const ViewOf<T>& w, const ViewOf<T>& x,
                           const ViewOf<T>& b) {
  if (t.indexLog == nullptr || x.size() == 0) return {};
  for (std::size_t i = t.indexLog->size(); i-- != 0;) {
    const IndexUse use = (*t.indexLog)[i];
    const auto frame = t.tape.frame(t.tape.records()[use.record]);
    const auto& d = frame.description;
    if (frame.first != x.sysGetRawNodeIndex() || frame.count != x.size()) continue;
    if (std::string_view(d.methods().name) != bt::block::Gather::name) return {};
    const auto table = ViewOf<T>::at(t.tape, d.view(0)[0], d.view(0)[1], d.view(0)[2]);
    if (x.cols() != w.cols() || x.cols() % table.cols() != 0) return {};
    const std::vector<std::size_t> ids(d.parameters(), d.parameters() + use.places.size());
    const auto y = bt::gatherAffine(table, ids, w, b);
    t.indexLog->push_back(
        {t.tape.records().size() - 1, bt::block::GatherAffine::first, use.limit, use.places});
    return y;
  }
  return {};
}

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
  Shape shape;
  for (const PyView* each : x) {
    demandTape(*each, *w.tape);
    const Shape &more = each->shape, before = shape;
    if (more.size() > shape.size()) shape = more;
    if (before.size() > 2 || (more.size() > 2 && each != x.front()))
      if (!std::ranges::equal(std::span(before).first(before.size() - 1),
                              std::span(more).first(more.size() - 1)))
        throw py::value_error("affine: inputs side by side of shapes " + textOf(before) + " and " +
                              textOf(more));
  }
  if (shape.empty()) shape.resize(1); // no input at all, which affine refuses
  shape.back() = w.shape[0];
  if (b != nullptr) demandTape(*b, *w.tape);
  return append(*w.tape, shape, [&]<class T>() {
    std::vector<ViewOf<T>> parts;
    for (const PyView* each : x) parts.push_back(each->as<T>());
    const ViewOf<T> offsets = b == nullptr ? ViewOf<T>() : b->as<T>();
    if (parts.size() == 1)
      if (const auto y =
              affineOfGathered(static_cast<TapeOf<T>&>(*w.tape), w.as<T>(), parts[0], offsets);
          !y.isEmpty())
        return y;
    return bt::affine(w.as<T>(), parts, offsets);
  });
}

// NumPy's @: of vectors, matrices, and of many matrices at once.
py::object matmul(const py::object& left, const py::object& right) {
  const auto operandLike = [](const py::object& object) {
    return isView(object) || isArray(object);
  };
  if (!operandLike(left) || !operandLike(right))
    return py::reinterpret_borrow<py::object>(Py_NotImplemented);
  AnyTape& tape = *viewOf(isView(left) ? left : right).tape;
  const Operand a(left, tape), b(right, tape);
  Shape x = a.shape(), y = b.shape();
  if (x.size() == 1 && y.size() == 1)
    return appendValue(tape, [&]<class T>() { return bt::innerProduct(a.as<T>(), b.as<T>()); });
  if (y.size() <= 2) {
    x.pop_back();
    if (y.size() == 2) x.push_back(y[1]);
    return append(tape, x, [&]<class T>() {
      const auto u = a.as<T>(), v = b.as<T>();
      if (y.size() == 2) return bt::matmul(u, v);
      if (u.cols() != v.size()) return bt::matmul(u, v.reshape(v.size(), 1)); // which tells
      return bt::affine(u, v);
    });
  }
  const bool isVector = x.size() == 1;
  if (isVector) x.insert(x.begin(), 1);
  const Shape m(x.end() - 2, x.end()), n(y.end() - 2, y.end());
  if (m[1] != n[0]) throw py::value_error("matmul: " + textOf(a.shape()) + " times " + textOf(y));
  Shape shape = broadcast(Shape(x.begin(), x.end() - 2), Shape(y.begin(), y.end() - 2), "matmul");
  const auto with = [batch = shape](py::ssize_t rows, py::ssize_t cols) {
    Shape all = batch;
    all.insert(all.end(), {rows, cols});
    return all;
  };
  const Shape xs = with(m[0], m[1]), ys = with(n[0], n[1]);
  const std::size_t batch = sizeOf(shape);
  if (!isVector) shape.push_back(m[0]);
  shape.push_back(n[1]);
  return append(tape, shape, [&]<class T>() {
    const auto u = a.repeated<T>(xs), v = b.repeated<T>(ys);
    const auto rows = [&](py::ssize_t each) { return batch * static_cast<std::size_t>(each); };
    return bt::batchedMatmul(u.reshape(rows(m[0]), static_cast<std::size_t>(m[1])),
                             v.reshape(rows(n[0]), static_cast<std::size_t>(n[1])), batch);
  });
}

template <class F> py::object eachRow(const py::object& object, const F& f) {
  const PyView& x = demandView(object, "x");
  return append(*x.tape, x.shape, [&]<class T>() { return f(x.as<T>()); });
}

py::object crossEntropy(const py::object& logits, const py::object& targets,
                        const std::string& reduction) {
  const PyView& x = demandView(logits, "logits");
  const Integers y(targets);
  Shape wanted = shapeOf(x);
  wanted.pop_back();
  if (shapeOf(y.array).size() != wanted.size() || (wanted.size() > 1 && shapeOf(y.array) != wanted))
    throw py::value_error("logits of shape " + textOf(shapeOf(x)) + " need targets of shape " +
                          textOf(wanted) + ", not " + textOf(shapeOf(y.array)));
  demandReduction(reduction);
  const bool isVector = wanted.empty();
  const py::object losses = append(*x.tape, isVector ? Shape{1} : wanted, [&]<class T>() {
    return bt::crossEntropy(x.as<T>(), y.span());
  });
  y.note(*x.tape, 0, static_cast<std::size_t>(shapeOf(x).back()));
  if (isVector) return losses[py::int_(0)];
  return reduction == "none" ? losses : losses.attr(reduction.c_str())();
}

py::object layerNorm(const py::object& object, const py::object& weight, const py::object& bias,
                     double eps) {
  const PyView &x = demandView(object, "x"), &w = demandView(weight, "weight"),
               &b = demandView(bias, "bias");
  demandTape(w, *x.tape);
  demandTape(b, *x.tape);
  return append(*x.tape, x.shape, [&]<class T>() {
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
  const py::ssize_t cols = static_cast<py::ssize_t>(perRow) * from.shape[1];
  py::object rows =
      append(*from.tape, shape.empty() ? Shape{cols} : Shape{shape[0], cols},
             [&]<class T>() { return bt::gather(from.as<T>(), indices.span(), perRow); });
  indices.note(*from.tape, 0, static_cast<std::size_t>(shapeOf(from).front()));
  return rows;
}

py::object attention(const py::object& keysQueriesValues, std::size_t heads,
                     std::optional<std::size_t> positions) {
  const PyView& x = demandMatrix(keysQueriesValues, "x");
  return append(*x.tape, {x.shape[0], x.shape[1] / 3}, [&]<class T>() {
    const auto v = x.as<T>();
    return bt::attention(v, heads, positions.value_or(v.rows()));
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
}

template <class T> bt::KnownBlocks<T, SharedMemory> knownBlocks() {
  return bt::everyBlock<T, SharedMemory>();
}
template bt::KnownBlocks<double, SharedMemory> knownBlocks<double>();
template bt::KnownBlocks<float, SharedMemory> knownBlocks<float>();

} // namespace burtorch_python
