// bindings/trace.cpp — a function that is being recorded: what depends on its inputs
// SPDX-License-Identifier: MIT
#include "trace.hpp"

#include "compiled.hpp"
#include "register.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace py = pybind11;

namespace burtorch_python {

bool Trace::dependOnInputs(const AnyTape& any, std::size_t first, std::size_t count) const {
  if (count == 0 || first + count <= from) return false;
  const std::size_t node = first + count - 1; // the newest of them
  std::vector<bool> varies(node + 1 - from);
  std::fill_n(varies.begin(), std::min(inputs, varies.size()), true);
  for (const auto& [begin, end] : late)
    for (std::size_t i = begin; i < end && i <= node; ++i) varies[i - from] = true;
  visitPlain(const_cast<AnyTape&>(any), [&](const auto& t) {
    for (const auto& record : t.tape.records()) {
      if (record.firstResult() < from) continue;
      if (record.firstResult() > node) break;
      bool depends = false;
      t.tape.forEachOperand(record,
                            [&](std::size_t i) { depends |= i >= from && varies[i - from]; });
      const std::size_t last = std::min<std::size_t>(record.result, node);
      for (std::size_t i = record.firstResult(); depends && i <= last; ++i) varies[i - from] = true;
    }
  });
  const auto some = varies.begin() + static_cast<std::ptrdiff_t>(first > from ? first - from : 0);
  return std::find(some, varies.end(), true) != varies.end();
}

std::vector<std::size_t> nodesIn(const py::sequence& objects, const AnyTape& tape) {
  std::vector<std::size_t> nodes;
  for (const py::handle object : objects) {
    if (!isValue(object.ptr()))
      throw py::type_error(std::string("expected a Value, not ") + Py_TYPE(object.ptr())->tp_name);
    const auto* const value = reinterpret_cast<PyValue*>(object.ptr());
    if (value->tape != &tape) throw py::value_error("a Value of another tape");
    visitPlain(*value->tape, [&]<class T>(TapeOf<T>&) {
      value->as<T>().check();
      nodes.push_back(value->as<T>().sysGetRawNodeIndex());
    });
  }
  return nodes;
}

Tracing::Tracing(AnyTape& tape, const py::sequence& inputs, std::size_t variables, bool isDynamic)
    : tape_(&tape), variables_(variables) {
  if (tape.dtype != DType::float64 && tape.dtype != DType::float32)
    throw py::value_error("compile records on tapes of dtype float64 and float32");
  inputs_ = nodesIn(inputs, tape);
  if (variables_ > inputs_.size()) throw py::value_error("more variables than inputs");
  trace_.isDynamic = isDynamic;
  trace_.inputs = inputs_.size();
  trace_.from = visitPlain(tape, [](auto& t) { return t.tape.size(); }) - inputs_.size();
}

void registerTrace(py::module_& module) {
  py::class_<Tracing>(module, "Tracing",
                      "Notes or refuses comparisons while a function is recorded.")
      .def(py::init<AnyTape&, const py::sequence&, std::size_t, bool>(), py::arg("tape"),
           py::arg("inputs"), py::arg("variables"), py::arg("dynamic"))
      .def("__enter__",
           [](Tracing& tracing) -> Tracing& {
             tracing.enter();
             return tracing;
           })
      .def("__exit__", [](Tracing& tracing, const py::args&) { tracing.exit(); })
      .def_property_readonly("branches",
                             [](const Tracing& tracing) { return tracing.branches().size(); });
}

} // namespace burtorch_python
