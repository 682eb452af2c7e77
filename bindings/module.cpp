// bindings/module.cpp — the extension module: a list of what each file registers
// SPDX-License-Identifier: MIT
//
// The same sources are compiled once per instruction set; BURTORCH_MODULE is the name of this one.
#include "register.hpp"
#include "value.hpp"

namespace py = pybind11;

PYBIND11_MODULE(BURTORCH_MODULE, module) {
  using namespace burtorch_python;
  module.doc() = "The compiled part of burtorch; use the package, not this module.";
  // What functions and classes say they are of, now and when they are pickled: never this build.
  module.attr("__name__") = "burtorch";
  addErrors(module.ptr());
  addValue(module.ptr());
  registerTape(module);
  registerContext(module);
  registerAnomaly(module);
  registerRandom(module);
  registerView(module);
  registerBlocks(module);
  auto models = module.def_submodule("_models", "What burtorch.nn.CharMLP and GPT choose from.");
  registerModels(models);
  auto optim = module.def_submodule("_optim", "What burtorch.optim chooses from.");
  registerOptim(optim);
  registerLossScale(module);
  auto viz = module.def_submodule("_viz", "The texts that burtorch.viz draws from.");
  registerViz(viz);
  registerIo(module);
  auto compile = module.def_submodule("_compile", "What burtorch.compile runs.");
  registerTrace(compile);
  registerCompile(compile);
  registerRecorded(compile);
  auto plans = module.def_submodule("_plans", "What burtorch.nn.Module runs.");
  registerPlans(plans);
  sealAll(module);
#if defined(__VERSION__)
  module.attr("_compiler") = __VERSION__;
#else
  module.attr("_compiler") = "unknown";
#endif
}
