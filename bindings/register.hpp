// bindings/register.hpp — what module.cpp lists: one function per topic, defined in the file of that name
// SPDX-License-Identifier: MIT
#pragma once

#include "tape.hpp"

#include <pybind11/pybind11.h>

PYBIND11_DECLARE_HOLDER_TYPE(T, burtorch_python::Ref<T>, true)

namespace burtorch_python {

void registerTape(pybind11::module_& module);
void registerContext(pybind11::module_& module);
void registerAnomaly(pybind11::module_& module);
void registerRandom(pybind11::module_& module);
void registerView(pybind11::module_& module);
void registerBlocks(pybind11::module_& module);
void registerModels(pybind11::module_& module);
void registerOptim(pybind11::module_& module);
void registerLossScale(pybind11::module_& module);
void registerViz(pybind11::module_& module);
void registerIo(pybind11::module_& module);
void registerTrace(pybind11::module_& module);
void registerCompile(pybind11::module_& module);
void registerRecorded(pybind11::module_& module);
void registerPlans(pybind11::module_& module);

// Classes of the module can only be made by calling them, and not be pickled unless they say how.
void sealAll(const pybind11::module_& module);

} // namespace burtorch_python
