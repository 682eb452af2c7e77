// bindings/module.cpp — the extension module: a list of what each file registers
// SPDX-License-Identifier: MIT
//
// The same sources are compiled once per instruction set; BURTORCH_MODULE is the name of this one.
#include "register.hpp"
#include "value.hpp"

namespace py = pybind11;

PYBIND11_MODULE(BURTORCH_MODULE, module) {
  module.doc() = "The compiled part of burtorch; use the package, not this module.";
  py::register_local_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const burtorch::Error&) {
      burtorch_python::translateException();
    } catch (const burtorch_python::TapeIsBusy&) {
      burtorch_python::translateException();
    }
  });
  // What functions and classes say they are of, now and when they are pickled: never this build.
  module.attr("__name__") = "burtorch";
  burtorch_python::addValue(module.ptr());
  burtorch_python::registerTape(module);
  burtorch_python::registerAnomaly(module);
  burtorch_python::registerView(module);
  auto models = module.def_submodule("_models", "What burtorch.nn.CharMLP and GPT choose from.");
  burtorch_python::registerModels(models);
  auto optim = module.def_submodule("_optim", "What burtorch.optim chooses from.");
  burtorch_python::registerOptim(optim);
  burtorch_python::registerLossScale(module);
  auto viz = module.def_submodule("_viz", "The texts that burtorch.viz draws from.");
  burtorch_python::registerViz(viz);
  burtorch_python::registerIo(module);
  auto compile = module.def_submodule("_compile", "What burtorch.compile runs.");
  burtorch_python::registerCompile(compile);
  burtorch_python::registerRecorded(compile);
#if defined(__VERSION__)
  module.attr("_compiler") = __VERSION__;
#else
  module.attr("_compiler") = "unknown";
#endif
}
