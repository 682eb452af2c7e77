// burtorch/optim/clip.hpp — keeping gradients within bounds
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/base/error.hpp>
#include <burtorch/kernel/vector.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <type_traits>

BURTORCH_BEGIN_NAMESPACE

namespace optim {

// √Σg²
template <class T> double norm(std::span<const T> gradients) {
  constexpr std::size_t atATime = 1024; // sums of so many lose little in T
  double sum = 0;
  for (std::size_t i = 0; i < gradients.size(); i += atATime) {
    const T* const part = gradients.data() + i;
    sum += static_cast<double>(kernel::dot(part, part, std::min(atATime, gradients.size() - i)));
  }
  return std::sqrt(sum);
}

// What gradients of a norm are multiplied by so that it becomes at most `most`.
inline double clipFactor(double norm, double most) {
  if (!(most >= 0))
    burtorch::detail::fail(ErrorKind::badArgument,
                           "clipByNorm: the largest norm can't be negative");
  const double factor = most / (norm + 1e-6); // as torch.nn.utils.clip_grad_norm_ does
  return factor < 1 ? factor : 1;
}

template <class T> void scale(std::span<T> gradients, double factor) {
  for (T& g : gradients) g = g * T(factor);
}

// Scales gradients to a norm of at most `most` and returns the norm they had.
template <class T> double clipByNorm(std::span<T> gradients, double most) {
  const double had = norm(std::span<const T>(gradients)), factor = clipFactor(had, most);
  if (factor < 1) scale(gradients, factor);
  return had;
}

// Moves each gradient into [-most, most].
template <class T> void clipByValue(std::span<T> gradients, const std::type_identity_t<T>& most) {
  if (!(most >= T(0)))
    burtorch::detail::fail(ErrorKind::badArgument,
                           "clipByValue: the largest value can't be negative");
  for (T& g : gradients) g = std::clamp(g, T(-most), most);
}

} // namespace optim

BURTORCH_END_NAMESPACE
