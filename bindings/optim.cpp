// bindings/optim.cpp — optimizers over NumPy arrays, clipping, learning-rate schedules
// SPDX-License-Identifier: MIT
//
// The classes are private, one per optimizer and dtype; those of burtorch.optim choose among them.
// Parameters are arrays, or a View of nodes, which are changed where they are on the tape.
#include "mark.hpp"
#include "register.hpp"
#include "view.hpp"

#include <burtorch/optim/optim.hpp>

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <concepts>
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

// The nodes of a View of this dtype, if nobody else is at work on them.
template <class T> ViewOf<T> nodesOf(const PyView& view) {
  return visitPlain(*view.tape, [&]<class U>(TapeOf<U>& tape) -> ViewOf<T> {
    if constexpr (std::same_as<T, U>) {
      demandIdle(tape);
      return view.as<T>();
    } else {
      throw py::type_error("the View is of another dtype");
    }
  });
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
      .def(
          "step",
          [](Optimizer& optimizer, const PyView& view) {
            const auto nodes = nodesOf<T>(view);
            optimizer.step(nodes.data(), nodes.gradCopy());
          },
          py::arg("view"))
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
}

// f(gradients, numbers…), whose gradients are an array's numbers or those of a View.
template <class... Numbers, class F>
void onGradients(py::module_& module, const char* name, const F& f) {
  const auto arrays = [&]<class T>(T) {
    // noconvert: an array of the other dtype goes to the other function.
    module.def(
        name,
        [f](py::array_t<T, py::array::c_style>& gradients, Numbers... numbers) {
          return f(inPlace<T>(gradients, "gradients"), numbers...);
        },
        py::arg("gradients").noconvert(),
        (static_cast<void>(sizeof(Numbers)), py::arg("number"))...);
  };
  arrays(float{});
  arrays(double{});
  module.def(name, [f](const PyView& view, Numbers... numbers) {
    return visitPlain(*view.tape,
                      [&]<class T>(TapeOf<T>&) { return f(nodesOf<T>(view).grads(), numbers...); });
  });
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
  onGradients(module, "norm",
              []<class T>(std::span<T> g) { return optim::norm(std::span<const T>(g)); });
  onGradients<double>(module, "scale", [](auto g, double by) { optim::scale(g, by); });
  onGradients<double>(module, "clip_by_value", []<class T>(std::span<T> g, double most) {
    optim::clipByValue(g, static_cast<T>(most));
  });
  module.def("clip_factor", &optim::clipFactor, py::arg("norm"), py::arg("most"));
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
