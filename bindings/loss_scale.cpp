// bindings/loss_scale.cpp — burtorch.LossScale
// SPDX-License-Identifier: MIT
#include "register.hpp"

#include <burtorch/scalar/loss_scale.hpp>

#include <pybind11/numpy.h>

#include <span>

namespace py = pybind11;

namespace burtorch_python {

namespace {

using Floats = py::array_t<float, py::array::c_style | py::array::forcecast>;

py::object unscale(bt::LossScale& scale, const Floats& scaled) {
  Floats gradients(std::vector<py::ssize_t>(scaled.shape(), scaled.shape() + scaled.ndim()));
  const auto n = static_cast<std::size_t>(scaled.size());
  const bool finite =
      scale.unscale(std::span(scaled.data(), n), std::span(gradients.mutable_data(), n));
  if (finite) return gradients;
  return py::none();
}

} // namespace

void registerLossScale(py::module_& module) {
  py::class_<bt::LossScale>(module, "LossScale",
                            "Keeps the gradients of a half-precision tape in range.\n\n"
                            "(loss * scale.scale).backward(), then unscale() the gradients.")
      .def(py::init<double, std::size_t, double>(), py::arg("initial") = 65536.0,
           py::arg("patience") = 2000, py::arg("factor") = 2.0)
      .def_property_readonly("scale", &bt::LossScale::scale, "What to multiply the loss with.")
      .def_property_readonly("good_steps", &bt::LossScale::goodSteps,
                             "Steps without overflow since the scale last changed.")
      .def("unscale", &unscale, py::arg("grads"),
           "The gradients divided by the scale, as float32; None if one of them is infinite or\n"
           "NaN: then the step is to be skipped, and the scale has become smaller.")
      .def("update", &bt::LossScale::update, py::arg("finite"),
           "The same rule for those who look for overflow themselves.");
}

} // namespace burtorch_python
