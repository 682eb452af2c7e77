// bindings/viz.cpp — the texts that burtorch.viz draws from
// SPDX-License-Identifier: MIT
#include "register.hpp"
#include "value.hpp"

#include <burtorch/viz/json.hpp>

#include <pybind11/stl.h>

#include <optional>
#include <string>

namespace py = pybind11;

namespace burtorch_python {

namespace {

// f(value) without the interpreter's lock if the tape is large, so that nobody waits for a long text.
template <class F> std::string textOf(const py::object& root, const F& f) {
  constexpr std::size_t large = std::size_t{1} << 14;
  if (!isValue(root.ptr()))
    throw py::type_error(std::string("a picture needs a Value, not ") +
                         Py_TYPE(root.ptr())->tp_name);
  const auto* const value = reinterpret_cast<PyValue*>(root.ptr());
  return visit(*value->tape, [&]<class T>(TapeOf<T>& t) {
    if (t.busy) throw TapeIsBusy();
    if (t.tape.size() < large) return f(value->as<T>());
    const typename TapeOf<T>::Busy busy(t);
    const py::gil_scoped_release unlocked;
    return f(value->as<T>());
  });
}

bt::viz::Selection selection(std::optional<std::size_t> depth, std::optional<std::size_t> maxNodes,
                             std::optional<std::size_t> parametersBelow) {
  return {depth.value_or(bt::viz::unlimited), maxNodes.value_or(bt::viz::unlimited),
          parametersBelow};
}

} // namespace

void registerViz(py::module_& module) {
  module.def(
      "graph_json",
      [](const py::object& root, std::optional<std::size_t> depth,
         std::optional<std::size_t> maxNodes, const std::string& title,
         std::optional<std::size_t> parametersBelow) {
        return textOf(root, [&](const auto& v) {
          return bt::buildJsonGraph(v, title, selection(depth, maxNodes, parametersBelow));
        });
      },
      py::arg("root"), py::arg("depth") = py::none(), py::arg("max_nodes") = py::none(),
      py::arg("title") = "", py::arg("parameters_below") = py::none(),
      "The graph of a Value as JSON.");
}

} // namespace burtorch_python
