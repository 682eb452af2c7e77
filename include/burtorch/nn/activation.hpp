// burtorch/nn/activation.hpp — what stands between layers
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/base/config.hpp>

BURTORCH_BEGIN_NAMESPACE

namespace nn {

enum class Activation { identity, sigmoid, relu, tanh, gelu };

// Of a Value or of every element of a View.
template <class X> constexpr X activate(const X& x, Activation activation) {
  switch (activation) {
  case Activation::sigmoid:
    return sigmoid(x);
  case Activation::relu:
    return relu(x);
  case Activation::tanh:
    return tanh(x);
  case Activation::gelu:
    return gelu(x);
  case Activation::identity:
    break;
  }
  return x;
}

} // namespace nn

BURTORCH_END_NAMESPACE
