// bindings/recorded.cpp — gradients as Values, for transforms inside of transforms
// SPDX-License-Identifier: MIT
#include "register.hpp"
#include "value.hpp"

#include <burtorch/run/recorded_blocks.hpp>
#include <burtorch/run/recorded.hpp>

#include <concepts>
#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

namespace py = pybind11;

namespace burtorch_python {

namespace {

template <class T> typename TapeOf<T>::Value valueOn(const TapeOf<T>& tape, py::handle object) {
  if (!isValue(object.ptr()))
    throw py::type_error(std::string("expected a Value, not ") + Py_TYPE(object.ptr())->tp_name);
  const PyValue& value = *asValue(object.ptr());
  if (value.tape != &tape)
    throw bt::Error(bt::ErrorKind::differentTapes,
                    "an argument of a gradient and the function's result live on two tapes");
  return value.as<T>();
}

template <class T>
py::list recordGradients(TapeOf<T>& owner, const py::handle root, const py::list& leaves,
                         std::size_t since) {
  if constexpr (requires(const T& x) { static_cast<bool>(x == x); }) {
    owner.prepare(); // before handles are read: nodes may move
    std::vector<typename TapeOf<T>::Value> handles;
    for (const py::handle leaf : leaves) handles.push_back(valueOn<T>(owner, leaf));
    const auto kinks = owner.trace != nullptr ? bt::Kinks::open : bt::Kinks::decided;
    using Expand = std::conditional_t<std::floating_point<T>, bt::ExpandBlocks, bt::NoBlocks>;
    py::list gradients;
    for (const auto& gradient :
         bt::gradientsOf(valueOn<T>(owner, root), handles, kinks, since, Expand{})) {
      PyObject* const value = newValue<T>(owner, gradient);
      if (value == nullptr) throw py::error_already_set();
      gradients.append(py::reinterpret_steal<py::object>(value));
    }
    return gradients;
  } else {
    throw py::value_error("a transform inside of a transform needs a tape without lanes");
  }
}

// Whether some root depends on a node of [first, last), or is one.
bool reaches(const py::list& roots, std::size_t first, std::size_t last) {
  if (roots.empty() || first >= last) return false;
  AnyTape& any = *asValue(roots[0].ptr())->tape;
  return visit(any, [&]<class T>(TapeOf<T>& owner) {
    std::vector<bool> isReached(owner.tape.size());
    for (const py::handle root : roots)
      isReached[valueOn<T>(owner, root).sysGetRawNodeIndex()] = true;
    const auto records = owner.tape.records();
    for (std::size_t r = records.size(); r-- != 0;) {
      bool isNeeded = false;
      for (std::size_t i = 0; i < records[r].results(); ++i)
        isNeeded = isNeeded || isReached[records[r].firstResult() + i];
      if (isNeeded)
        owner.tape.forEachOperand(records[r], [&](std::size_t i) { isReached[i] = true; });
    }
    for (std::size_t i = first; i < last; ++i)
      if (isReached[i]) return true;
    return false;
  });
}

} // namespace

void registerRecorded(py::module_& module) {
  module.def(
      "gradients",
      [](const py::object& root, const py::list& leaves, std::size_t since) {
        if (!isValue(root.ptr())) throw py::type_error("the gradient is of a Value");
        AnyTape& tape = *asValue(root.ptr())->tape;
        return visit(tape,
                     [&](auto& owner) { return recordGradients(owner, root, leaves, since); });
      },
      py::arg("root"), py::arg("leaves"), py::arg("since"),
      "The derivatives of root by each of the leaves, as Values that were recorded. Nodes older "
      "than "
      "since are taken for numbers.");
  module.def("reaches", &reaches, py::arg("roots"), py::arg("first"), py::arg("last"),
             "Whether one of the roots, Values of one tape, depends on a node of [first, last).");
}

} // namespace burtorch_python
