// bindings/dtypes.hpp — the scalar types Python can ask for
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

// X(name in Python and NumPy, C++ type). Adding a line here is all it takes to offer another one.
#define BURTORCH_DTYPES(X)                                                                         \
  X(float64, double)                                                                               \
  X(float32, float)

namespace burtorch_python {

enum class DType : std::uint8_t {
#define BURTORCH_DTYPE(name, type) name,
  BURTORCH_DTYPES(BURTORCH_DTYPE)
#undef BURTORCH_DTYPE
};

} // namespace burtorch_python
