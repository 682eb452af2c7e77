// bindings/optim.cpp — optimizers over NumPy arrays, clipping, learning-rate schedules
// SPDX-License-Identifier: MIT
//
// The classes are private, one per optimizer and dtype; those of burtorch.optim choose among them.
#include "register.hpp"

#include <burtorch/optim/optim.hpp>

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <span>
#include <string>
#include <vector>

namespace py = pybind11;

namespace burtorch_python {

namespace {

namespace optim = bt::optim;

// The numbers of an array, to be changed where they are: nothing is converted or copied.
template <class T> std::span<T> inPlace(py::array& array, const char* name) {
  if (!py::array_t<T, py::array::c_style>::check_(array))
    throw py::type_error(std::string(name) + " must be contiguous and hold " +
                         py::str(py::dtype::of<T>()).cast<std::string>() + ", not " +
                         py::str(array.dtype()).cast<std::string>());
  return {static_cast<T*>(array.mutable_data()), static_cast<std::size_t>(array.size())};
}

template <class T, class Optimizer> auto registerOptimizer(py::module_& module, const char* name) {
  const std::string type = py::str(py::dtype::of<T>());
  return py::class_<Optimizer>(module, (std::string(name) + "_" + type).c_str())
      .def_readwrite("lr", &Optimizer::lr)
      .def_property("steps", &Optimizer::steps, &Optimizer::setSteps)
      .def(
          "step",
          [](Optimizer& optimizer, py::array& values, py::array& grads) {
            optimizer.step(inPlace<T>(values, "values"), inPlace<T>(grads, "grads"));
          },
          py::arg("values"), py::arg("grads"))
      .def_property(
          "state",
          [](Optimizer& optimizer) {
            py::dict all;
            optimizer.state([&](const char* key, const std::vector<T>& numbers) {
              all[key] = py::array_t<T>(static_cast<py::ssize_t>(numbers.size()), numbers.data());
            });
            return all;
          },
          [](Optimizer& optimizer, const py::dict& all) {
            optimizer.state([&](const char* key, std::vector<T>& numbers) {
              numbers = all[key].cast<std::vector<T>>();
            });
          });
}

template <class T> void registerOptimizers(py::module_& module) {
  registerOptimizer<T, optim::GD<T>>(module, "GD").def(py::init<double>(), py::arg("lr"));
  using SGD = optim::SGD<T>;
  registerOptimizer<T, SGD>(module, "SGD")
      .def(py::init(
               [](double lr, double momentum, double dampening, double weightDecay, bool nesterov) {
                 return SGD({lr, momentum, dampening, weightDecay, nesterov});
               }),
           py::arg("lr"), py::arg("momentum"), py::arg("dampening"), py::arg("weight_decay"),
           py::arg("nesterov"));
  const auto adam = [&]<class Optimizer>(const char* name, std::type_identity<Optimizer>) {
    registerOptimizer<T, Optimizer>(module, name)
        .def(py::init([](double lr, std::pair<double, double> betas, double epsilon,
                         double weightDecay) {
               return Optimizer({lr, betas.first, betas.second, epsilon, weightDecay});
             }),
             py::arg("lr"), py::arg("betas"), py::arg("eps"), py::arg("weight_decay"));
  };
  adam("Adam", std::type_identity<optim::Adam<T>>{});
  adam("AdamW", std::type_identity<optim::AdamW<T>>{});

  module.def(
      "clip_by_norm",
      [](py::array_t<T, py::array::c_style>& gradients, double most) {
        return optim::clipByNorm(inPlace<T>(gradients, "gradients"), most);
      },
      py::arg("gradients").noconvert(), py::arg("most"));
  module.def(
      "clip_by_value",
      [](py::array_t<T, py::array::c_style>& gradients, double most) {
        optim::clipByValue(inPlace<T>(gradients, "gradients"), static_cast<T>(most));
      },
      py::arg("gradients").noconvert(), py::arg("most"));
}

template <class Schedule> auto registerSchedule(py::module_& module, const char* name) {
  return py::class_<Schedule>(module, name)
      .def(
          "__call__", [](const Schedule& schedule, std::uint64_t step) { return schedule(step); },
          py::arg("step"));
}

} // namespace

void registerOptim(py::module_& module) {
  registerOptimizers<float>(module);
  registerOptimizers<double>(module);
  registerSchedule<optim::Constant>(module, "Constant")
      .def(py::init([](double lr) { return optim::Constant{lr}; }), py::arg("lr"));
  registerSchedule<optim::StepDecay>(module, "StepDecay")
      .def(py::init([](double lr, std::uint64_t every, double factor) {
             return optim::StepDecay{lr, every, factor};
           }),
           py::arg("lr"), py::arg("every"), py::arg("factor") = 0.1);
  registerSchedule<optim::Linear>(module, "Linear")
      .def(py::init([](double from, double to, std::uint64_t steps) {
             return optim::Linear{from, to, steps};
           }),
           py::arg("first"), py::arg("last"), py::arg("steps"));
  registerSchedule<optim::Cosine>(module, "Cosine")
      .def(py::init([](double lr, std::uint64_t steps, std::uint64_t warmUp, double least) {
             return optim::Cosine{lr, steps, warmUp, least};
           }),
           py::arg("lr"), py::arg("steps"), py::arg("warm_up") = 0, py::arg("least") = 0.0);
}

} // namespace burtorch_python
