// bindings/view_losses.cpp — losses of predictions and targets
// SPDX-License-Identifier: MIT
#include "view_operands.hpp"

#include <burtorch/block/losses.hpp>

#include <string>

namespace py = pybind11;

namespace burtorch_python {

namespace {

// f(predictions, targets) of each number; then the mean, the sum, or all of them.
template <class F>
py::object loss(const py::object& predictions, const py::object& given,
                const std::string& reduction, const char* who, const F& f) {
  const py::object object = asView(predictions);
  const PyView& x = demandView(object, "x");
  const py::object targets = asView(given);
  demandReduction(reduction);
  const Operand y(isView(targets) || isArray(targets)
                      ? targets
                      : py::object(py::module_::import("numpy").attr("asarray")(targets)),
                  *x.tape);
  if (y.shape() != shapeOf(x))
    throw py::value_error(std::string(who) + ": predictions of shape " + textOf(x.shape) +
                          " and targets of shape " + textOf(y.shape()));
  const py::object losses =
      append(*x.tape, x.shape, [&]<class T>() { return f(x.as<T>(), y.as<T>()); });
  return reduction == "none" ? losses : losses.attr(reduction.c_str())();
}

} // namespace

void registerLosses(py::module_& module) {
  module.def(
      "mse_loss",
      [](const py::object& x, const py::object& y, const std::string& reduction) {
        return loss(x, y, reduction, "mse_loss",
                    [](const auto& u, const auto& v) { return bt::squaredError(u, v); });
      },
      py::arg("x"), py::arg("y"), py::arg("reduction") = "mean",
      "(x - y)**2 of each number: their mean, sum, or all ('none'). An array y is data.");
  module.def(
      "huber_loss",
      [](const py::object& x, const py::object& y, double delta, const std::string& reduction) {
        if (!(delta > 0))
          throw py::value_error("delta is positive, not " +
                                std::string(py::str(py::float_(delta))));
        return loss(x, y, reduction, "huber_loss", [&](const auto& u, const auto& v) {
          using T = typename std::remove_cvref_t<decltype(u)>::Scalar;
          return bt::huberError(u, v, static_cast<T>(delta));
        });
      },
      py::arg("x"), py::arg("y"), py::arg("delta") = 1.0, py::arg("reduction") = "mean",
      "(x - y)**2 / 2 where x is no further than delta from y, else delta * (|x - y| - delta / "
      "2).");
  module.def(
      "bce_with_logits",
      [](const py::object& x, const py::object& y, const std::string& reduction) {
        return loss(x, y, reduction, "bce_with_logits",
                    [](const auto& u, const auto& v) { return bt::logisticError(u, v); });
      },
      py::arg("x"), py::arg("y"), py::arg("reduction") = "mean",
      "The cross-entropy of sigmoid(x) with y, probabilities that are 0, 1 or between.");
}

} // namespace burtorch_python
