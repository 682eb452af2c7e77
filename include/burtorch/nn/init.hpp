// burtorch/nn/init.hpp — first values of parameters
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/base/random.hpp>
#include <burtorch/view.hpp>

#include <cmath>
#include <cstddef>

BURTORCH_BEGIN_NAMESPACE

namespace nn {

// How parameters are drawn. in and out are the numbers of inputs and outputs of the layer.
enum class Init {
  zeros,
  ones,
  uniform,        // in [-1, 1)
  normal,         // deviation 1
  linear,         // uniform, |w| < 1/√in: what linear layers usually start from
  xavierUniform,  // uniform, |w| < √(6/(in + out))
  xavierNormal,   // deviation √(2/(in + out))
  kaimingUniform, // uniform, |w| < √(6/in)
  kaimingNormal,  // deviation √(2/in)
};

// Draws the numbers of a view, row by row. With Random::idle() they stay what they are.
template <AnyView V>
void initialize(const V& view, Init how, Random& random, std::size_t in, std::size_t out) {
  using T = typename V::Scalar;
  if (random.isIdle()) return;
  const auto i = static_cast<double>(in), o = static_cast<double>(out);
  const auto within = [&](double bound) {
    for (T& x : view.data()) x = T(random.uniform(-bound, bound));
  };
  const auto deviating = [&](double deviation) {
    for (T& x : view.data()) x = T(deviation * random.normal());
  };
  const auto all = [&](double number) {
    for (T& x : view.data()) x = T(number);
  };
  switch (how) {
  case Init::zeros:
    return all(0);
  case Init::ones:
    return all(1);
  case Init::uniform:
    return within(1);
  case Init::normal:
    return deviating(1);
  case Init::linear:
    return within(1 / std::sqrt(i));
  case Init::xavierUniform:
    return within(std::sqrt(6 / (i + o)));
  case Init::xavierNormal:
    return deviating(std::sqrt(2 / (i + o)));
  case Init::kaimingUniform:
    return within(std::sqrt(6 / i));
  case Init::kaimingNormal:
    return deviating(std::sqrt(2 / i));
  }
}

} // namespace nn

BURTORCH_END_NAMESPACE
