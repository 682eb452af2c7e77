// bindings/viz.cpp — the texts that burtorch.viz draws from
// SPDX-License-Identifier: MIT
#include "lock.hpp"
#include "register.hpp"
#include "value.hpp"

#include <burtorch/viz/dot.hpp>
#include <burtorch/viz/json.hpp>
#include <burtorch/viz/script.hpp>

#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

namespace py = pybind11;

namespace burtorch_python {

namespace {

using Limit = std::optional<std::size_t>;
using Texts = std::vector<std::string>;

bt::viz::Selection selection(Limit depth, Limit maxNodes, Limit parametersBelow,
                             bool expandBlocks = false) {
  return {depth.value_or(bt::viz::unlimited), maxNodes.value_or(bt::viz::unlimited),
          parametersBelow, expandBlocks ? bt::viz::Blocks::nodes : bt::viz::Blocks::boxes};
}

// f(tape) without the interpreter's lock if the tape is large, so that nobody waits for a long text.
template <class T, class F> auto onIdleTape(TapeOf<T>& t, const F& f) {
  demandIdle(t);
  constexpr std::size_t numbersPerNode = 8; // that could be swept while the text of one is made
  return unlockedIfLong(t, t.tape.size() * numbersPerNode, [&] { return f(t.tape); });
}

[[noreturn]] void refuse(const char* wanted, const py::object& object) {
  throw py::type_error(std::string("a picture needs ") + wanted + ", not " +
                       Py_TYPE(object.ptr())->tp_name);
}

template <class F> auto withRoot(const py::object& object, const F& f) {
  if (!isValue(object.ptr())) refuse("a Value", object);
  const auto* const value = reinterpret_cast<PyValue*>(object.ptr());
  return visitPlain(*value->tape, [&]<class T>(TapeOf<T>& t) {
    return onIdleTape(t, [&](auto&) { return f(value->as<T>()); });
  });
}

// f(a Value), or f(a tape).
template <class F> auto withRootOrTape(const py::object& object, const F& f) {
  if (!py::isinstance<AnyTape>(object)) {
    if (!isValue(object.ptr())) refuse("a Value or a Tape", object);
    return withRoot(object, f);
  }
  return visitPlain(object.cast<AnyTape&>(), [&]<class T>(TapeOf<T>& t) {
    return onIdleTape(t, [&](const auto& tape) { return f(tape); });
  });
}

bt::viz::Fields fieldsNamed(const Texts& names) {
  using bt::viz::Fields;
  static constexpr std::pair<const char*, Fields> known[] = {
      {"label", Fields::label}, {"operation", Fields::operation},
      {"value", Fields::value}, {"gradient", Fields::gradient},
      {"index", Fields::index}, {"derivatives", Fields::derivatives},
  };
  Fields fields = Fields::none;
  for (const std::string& name : names) fields = fields | named("field", name, known);
  return fields;
}

bt::viz::Direction directionNamed(const std::string& name) {
  static constexpr std::pair<const char*, bt::viz::Direction> known[] = {
      {"LR", bt::viz::Direction::leftToRight}, {"TB", bt::viz::Direction::topToBottom}};
  return named("direction", name, known);
}

std::string dot(const py::object& root, const std::string& title, Limit depth, Limit maxNodes,
                Limit parametersBelow, const std::string& direction, const Texts& fields,
                int digits, bool expandBlocks) {
  if (digits < 0 || digits > 17)
    throw py::value_error("digits are 1 to 17, or 0 for all; not " + std::to_string(digits));
  const bt::viz::DotOptions options{selection(depth, maxNodes, parametersBelow, expandBlocks),
                                    directionNamed(direction), fieldsNamed(fields), digits};
  return withRootOrTape(root, [&](const auto& v) { return bt::buildDotGraph(v, title, options); });
}

bt::viz::Scale scale(bool isLogarithmic) {
  return isLogarithmic ? bt::viz::Scale::logarithmic : bt::viz::Scale::linear;
}

void registerScripts(py::module_& module) {
  using Curves = std::vector<std::tuple<std::string, std::vector<double>, std::vector<double>>>;
  module.def(
      "curves_script",
      [](const Curves& curves, const std::string& title, const std::string& x, const std::string& y,
         bool log) {
        std::vector<bt::viz::Curve> all;
        for (const auto& [name, xs, ys] : curves) all.push_back({name, xs, ys});
        return bt::generateCurves(all, {title, x, y}, scale(log));
      },
      py::arg("curves"), py::arg("title"), py::arg("x_label"), py::arg("y_label"), py::arg("log"));
  module.def(
      "histogram_script",
      [](const std::vector<double>& numbers, const std::string& title, const std::string& x,
         const std::string& y, std::size_t bins, bool log) {
        return bt::generateHistogram(numbers, {title, x, y}, bins, scale(log));
      },
      py::arg("numbers"), py::arg("title"), py::arg("x_label"), py::arg("y_label"), py::arg("bins"),
      py::arg("log"));
  module.def(
      "heatmap_basic_script",
      [](const std::vector<std::vector<double>>& matrix, const std::string& title,
         const std::string& x, const std::string& y, const Texts& rows, const Texts& columns) {
        return bt::generateHeatMapBasic(matrix, {title, x, y, rows, columns});
      },
      py::arg("matrix"), py::arg("title"), py::arg("x_label"), py::arg("y_label"),
      py::arg("row_labels"), py::arg("column_labels"));
  module.def(
      "heatmap_script",
      [](std::size_t rows, std::size_t cols, const py::function& item, const py::function& counter,
         const std::string& title, const std::string& x, const std::string& y,
         const Texts& rowLabels, const Texts& columnLabels) {
        return bt::generateHeatMap(
            rows, cols,
            [&](std::size_t i, std::size_t j) { return py::str(item(i, j)).cast<std::string>(); },
            [&](std::size_t i, std::size_t j) { return counter(i, j).cast<double>(); },
            {title, x, y, rowLabels, columnLabels});
      },
      py::arg("rows"), py::arg("cols"), py::arg("item"), py::arg("counter"), py::arg("title"),
      py::arg("x_label"), py::arg("y_label"), py::arg("row_labels"), py::arg("column_labels"));
}

} // namespace

PyObject* notebookDisplay(PyObject* self, PyObject* args, PyObject* keywords) {
  return guarded([&] {
    const py::object display = py::module_::import("burtorch.viz").attr("mimebundle");
    const auto rest = py::reinterpret_borrow<py::args>(args);
    const auto named =
        keywords == nullptr ? py::kwargs() : py::reinterpret_borrow<py::kwargs>(keywords);
    return display(py::handle(self), *rest, **named).release().ptr();
  });
}

void registerViz(py::module_& module) {
  module.def(
      "graph_json",
      [](const py::object& root, Limit depth, Limit maxNodes, const std::string& title,
         Limit parametersBelow) {
        return withRoot(root, [&](const auto& v) {
          return bt::buildJsonGraph(v, title, selection(depth, maxNodes, parametersBelow));
        });
      },
      py::arg("root"), py::arg("depth") = py::none(), py::arg("max_nodes") = py::none(),
      py::arg("title") = "", py::arg("parameters_below") = py::none(),
      "The graph of a Value as JSON.");
  module.def("dot", &dot, py::arg("root"), py::arg("title"), py::arg("depth"), py::arg("max_nodes"),
             py::arg("parameters_below"), py::arg("direction"), py::arg("fields"),
             py::arg("digits"), py::arg("expand_blocks"));
  module.def(
      "node_count",
      [](const py::object& root, Limit depth, Limit maxNodes, bool expandBlocks) {
        return withRootOrTape(root, [&](const auto& v) {
          return bt::viz::graphOf(v, selection(depth, maxNodes, std::nullopt, expandBlocks))
              .nodes.size();
        });
      },
      py::arg("root"), py::arg("depth"), py::arg("max_nodes"), py::arg("expand_blocks") = false,
      "How many nodes a picture with these limits shows.");
  module.def(
      "as_string",
      [](const py::object& root) {
        return withRoot(root, [](const auto& v) { return bt::asString(v); });
      },
      py::arg("root"), "A Value as a line of text that says everything about its node.");
  registerScripts(module);
}

} // namespace burtorch_python
