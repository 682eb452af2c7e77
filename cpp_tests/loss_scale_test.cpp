// cpp_tests/loss_scale_test.cpp — overflow is seen, the step skipped, the scale adapted
// SPDX-License-Identifier: MIT
#include <burtorch/burtorch.hpp>
#include <burtorch/scalar/half.hpp>
#include <burtorch/scalar/loss_scale.hpp>

#include "support.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <span>
#include <string>
#include <vector>

namespace bt = burtorch;
using bt::float16;

TEST_CASE("gradients too small for float16 survive a scaled loss") {
  bt::Tape<float16> tape;
  const bt::Value<float16> x(tape, 3.0);
  const auto loss = x * 1e-4 * 1e-4; // its derivative is a sixth of the smallest float16
  bt::backward(loss);
  CHECK(static_cast<float>(x.gradCopy()) == 0);
  tape.zeroGrad();
  bt::LossScale scale(1024);
  bt::backward(loss, scale.seed<float16>());
  std::vector<float> gradient(1);
  CHECK(scale.unscale(tape.grads().first(1), std::span(gradient)));
  CHECK(gradient[0] == doctest::Approx(1e-8).epsilon(0.01));
}

TEST_CASE("overflow skips the step and lowers the scale, patience raises it") {
  bt::LossScale scale(1024, 3);
  std::vector<float16> grads{float16(1.0), std::numeric_limits<float16>::infinity()};
  std::vector<float> out{7, 7};
  CHECK_FALSE(scale.unscale(std::span(grads), std::span(out)));
  CHECK(scale.scale() == 512);
  CHECK(out[0] == 7); // nothing was written
  grads[1] = std::numeric_limits<float16>::quiet_NaN();
  CHECK_FALSE(scale.unscale(std::span(grads), std::span(out)));
  CHECK(scale.scale() == 256);
  grads[1] = float16(512.0);
  for (int i = 0; i < 3; ++i) CHECK(scale.unscale(std::span(grads), std::span(out)));
  CHECK(out[1] == 2);
  CHECK(scale.scale() == 512);
  CHECK(scale.goodSteps() == 0);
}

TEST_CASE("a seed is finite in its type") {
  bt::LossScale scale(1e6);
  CHECK(static_cast<float>(scale.seed<float16>()) <= 65504);
  CHECK(scale.scale() == 62500);
  CHECK(bt::LossScale(65536).seed<float>() == 65536);
}

TEST_CASE("misuse is told") {
  CHECK(errorOf([] { bt::LossScale(0); }).kind() == bt::ErrorKind::badArgument);
  bt::LossScale scale;
  std::vector<float16> grads(2);
  std::vector<float> out(1);
  CHECK(errorOf([&] { scale.unscale(std::span(grads), std::span(out)); }).what() ==
        std::string("unscale: 2 gradients into room for 1"));
}
