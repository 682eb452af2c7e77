// burtorch/scalar/loss_scale.hpp — keeps the gradients of a half-precision tape in range
// SPDX-License-Identifier: MIT
//
// Gradients are often smaller than the smallest float16. A scaled loss makes scaled gradients, which
// are divided before they are used; if the scale was too large for one of them, the step is skipped
// and the scale becomes smaller, and after many good steps it becomes larger again.
//
//   LossScale scale;
//   backward(loss, scale.seed<float16>());    // the gradients are scale() times too large
//   if (scale.unscale(tape.grads().first(n), gradients)) …      // as floats; a step can be made
#pragma once

#include <burtorch/base/error.hpp>
#include <burtorch/scalar/scalar.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <string>

BURTORCH_BEGIN_NAMESPACE

class LossScale {
public:
  explicit LossScale(double initial = 65536, std::size_t patience = 2000, double factor = 2)
      : scale_(initial), patience_(patience), factor_(factor) {
    if (!(initial > 0) || std::isinf(initial) || !(factor > 1))
      detail::fail(ErrorKind::badArgument,
                   "a loss scale is positive and finite, and its factor above 1");
  }

  double scale() const { return scale_; }
  std::size_t goodSteps() const { return good_; } // since the scale last changed

  // What to start backward() with; a T must be able to hold it.
  template <class T> T seed() {
    while (!isFinite(T(scale_))) scale_ /= factor_;
    return T(scale_);
  }

  // Divides gradients by the scale. False if one of them is infinite or NaN: then the scale has
  // become smaller, nothing was written, and the step is to be skipped.
  template <class T, class U> bool unscale(std::span<T> scaled, std::span<U> gradients) {
    if (scaled.size() != gradients.size())
      detail::fail(ErrorKind::badArgument, "unscale: " + std::to_string(scaled.size()) +
                                               " gradients into room for " +
                                               std::to_string(gradients.size()));
    bool finite = true;
    for (const auto& g : scaled) finite = finite && isFinite(g);
    if (finite) {
      const double inverse = 1 / scale_;
      for (std::size_t i = 0; i < scaled.size(); ++i)
        gradients[i] = static_cast<U>(static_cast<double>(scaled[i]) * inverse);
    }
    update(finite);
    return finite;
  }

  // The same rule for those who look for overflow themselves.
  void update(bool finite) {
    if (!finite) {
      scale_ = std::fmax(scale_ / factor_, std::numeric_limits<double>::min());
      good_ = 0;
    } else if (++good_ >= patience_) {
      if (const double larger = scale_ * factor_; !std::isinf(larger)) scale_ = larger;
      good_ = 0;
    }
  }

private:
  template <class T> static bool isFinite(const T& x) {
    return std::isfinite(static_cast<double>(x));
  }

  double scale_;
  std::size_t patience_;
  double factor_;
  std::size_t good_ = 0;
};

BURTORCH_END_NAMESPACE
