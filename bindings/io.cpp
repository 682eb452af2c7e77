// bindings/io.cpp — saving and loading of tapes: ranges, graphs, and files replaced as a whole
// SPDX-License-Identifier: MIT
#include "register.hpp"

namespace burtorch_python {

void registerIo(pybind11::module_&) {}

} // namespace burtorch_python
