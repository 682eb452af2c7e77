// bindings/random.cpp — burtorch.Random, and the numbers that parameters begin with
// SPDX-License-Identifier: MIT
#include "view_operands.hpp"

#include <burtorch/base/random.hpp>
#include <burtorch/nn/init.hpp>

#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <utility>

namespace py = pybind11;

namespace burtorch_python {

namespace {

bt::nn::Init schemeNamed(const std::string& name) {
  using bt::nn::Init;
  static constexpr std::pair<const char*, Init> schemes[] = {
      {"zeros", Init::zeros},
      {"ones", Init::ones},
      {"uniform", Init::uniform},
      {"normal", Init::normal},
      {"linear", Init::linear},
      {"xavier_uniform", Init::xavierUniform},
      {"xavier_normal", Init::xavierNormal},
      {"kaiming_uniform", Init::kaimingUniform},
      {"kaiming_normal", Init::kaimingNormal},
      {"glorot_uniform", Init::xavierUniform}, // the same schemes by their other authors' names
      {"glorot_normal", Init::xavierNormal},
      {"he_uniform", Init::kaimingUniform},
      {"he_normal", Init::kaimingNormal},
  };
  return named("scheme", name, schemes);
}

void initialize(const PyView& view, const std::string& scheme, bt::Random& random,
                std::optional<std::size_t> inputs, std::optional<std::size_t> outputs) {
  const auto how = schemeNamed(scheme);
  with(view, [&](auto& t, const auto& v) {
    demandIdle(t);
    v.check();
    bt::nn::initialize(v, how, random, inputs.value_or(v.cols()), outputs.value_or(v.rows()));
  });
}

} // namespace

void addInitialize(ViewClass& view) {
  view.def("initialize", &initialize, py::arg("scheme"), py::arg("random"),
           py::arg("inputs") = py::none(), py::arg("outputs") = py::none(),
           "Draw the numbers as the scheme says: 'linear', 'kaiming_normal', …");
}

void registerRandom(py::module_& module) {
  py::class_<bt::Random>(module, "Random",
                         "Random numbers that are the same on every platform: xoshiro256**.")
      .def(py::init<std::uint64_t>(), py::arg("seed") = 0)
      .def("bits", &bt::Random::bits, "64 random bits.")
      .def(
          "uniform", [](bt::Random& r, double low, double high) { return r.uniform(low, high); },
          py::arg("low") = 0.0, py::arg("high") = 1.0, "A number from low to below high.")
      .def("normal", &bt::Random::normal, "A number with mean 0 and deviation 1.")
      .def(
          "below",
          [](bt::Random& r, std::size_t n) {
            if (n == 0) throw py::value_error("below(0): there is no such number");
            return r.below(n);
          },
          py::arg("n"), "One of 0 … n-1.")
      .def_property(
          "state", &bt::Random::state,
          [](bt::Random& r, const bt::Random::State& state) {
            if (state == bt::Random::idle().state())
              throw py::value_error("a state of zeros gives nothing but 0");
            r.setState(state);
          },
          "Four integers that say what comes next; not all are 0.");
}

} // namespace burtorch_python
