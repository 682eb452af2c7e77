// cpp_tests/block_convolution_test.cpp — convolution and pooling against expansions and plain loops
// SPDX-License-Identifier: MIT
#include "block_support.hpp"
#include "support.hpp"

#include <burtorch/block/convolution.hpp>
#include <burtorch/block/pooling.hpp>

using namespace burtorch;
using namespace block_support;

namespace {

struct ConvolutionCase {
  Windows windows;
  std::size_t images, outputs, groups;
  bool hasBias;
};

const ConvolutionCase convolutionCases[]{
    {{1, 5, 6, 3, 3}, 1, 2, 1, true},
    {{2, 12, 11, 3, 3}, 2, 7, 1, true},
    {{3, 4, 5, 2, 3, 1, 1, 1, 1}, 2, 3, 1, false},
    {{2, 7, 9, 3, 2, 2, 3, 0, 1}, 2, 4, 2, true},
    {{4, 6, 13, 3, 3, 2, 2, 1, 2}, 1, 6, 2, true},
    {{4, 3, 5, 1, 1}, 3, 8, 2, true},
    {{3, 1, 9, 1, 4, 1, 2, 0, 3}, 2, 2, 1, false},
    {{2, 2, 2, 4, 4, 1, 1, 2, 1}, 2, 2, 2, true},
};

} // namespace

TEST_CASE_TEMPLATE("conv2d: against the expansion", T, double, float) {
  for (const ConvolutionCase& c : convolutionCases) {
    std::vector<Shape> shapes{{c.outputs, c.windows.window() / c.groups},
                              {c.images, c.windows.image()}};
    if (c.hasBias) shapes.push_back({1, c.outputs});
    checkDefinition<T, block::Convolution>(shapes, [&](const auto& v) {
      return conv2d(v[1], v[0], c.hasBias ? v[2] : View<T>{}, c.windows, c.groups);
    });
  }
}

TEST_CASE("conv2d: against plain loops over a padded image") {
  const std::size_t channels = 4, height = 5, width = 7, outputs = 6, groups = 2, images = 2;
  const Windows g{channels, height, width, 3, 2, 2, 1, 1, 1};
  Tape<double> tape;
  const auto v = leaves<double>(
      tape, {{images, g.image()}, {outputs, g.window() / groups}, {1, outputs}}, -1, 1);
  const View<double> y = conv2d(v[0], v[1], v[2], g, groups);
  REQUIRE(g.rows() == 3);
  REQUIRE(g.cols() == 8);
  CHECK(y.rows() == images);
  CHECK(y.cols() == outputs * 3 * 8);
  std::vector<double> want;
  for (std::size_t n = 0; n < images; ++n)
    for (std::size_t o = 0; o < outputs; ++o)
      for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 8; ++j) {
          double sum = v[2].data()[o];
          for (std::size_t c = 0; c < 2; ++c)
            for (int a = 0; a < 3; ++a)
              for (int b = 0; b < 2; ++b) {
                const int row = 2 * i + a - 1, col = j + b - 1;
                if (row < 0 || row >= 5 || col < 0 || col >= 7) continue;
                const std::size_t channel = (o < 3 ? 0 : 2) + c;
                sum += v[0].data()[n * g.image() + channel * 35 + std::size_t(row * 7 + col)] *
                       v[1].data()[o * 12 + c * 6 + std::size_t(a * 2 + b)];
              }
          want.push_back(sum);
        }
  CHECK(distance(std::vector(y.data().begin(), y.data().end()), want) < 1e-14);
}

TEST_CASE("conv2d: gradients of parameters are assigned on demand, those of data are not made") {
  Tape<double> tape;
  const Windows g{2, 4, 4, 3, 3};
  const auto v = leaves<double>(tape, {{3, 32}, {2, 18}, {1, 2}}, -1, 1);
  const auto run = [&](ParameterGradients how) {
    const auto mark = tape.mark();
    backward(reduceSumOfSquares(conv2d(v[0].constant(), v[1], v[2], g, 1, how)));
    tape.rewind(mark);
  };
  run(ParameterGradients::accumulate);
  const std::vector<double> once(v[1].gradCopy().begin(), v[1].gradCopy().end());
  const double bias = v[2].gradCopy()[1];
  for (const double each : v[0].gradCopy()) CHECK(each == 0);
  for (const auto& parameter : {v[1], v[2]})
    for (auto& each : parameter.grads()) each = std::numeric_limits<double>::quiet_NaN();
  run(ParameterGradients::assign);
  CHECK(std::vector<double>(v[1].gradCopy().begin(), v[1].gradCopy().end()) == once);
  CHECK(v[2].gradCopy()[1] == bias);
  run(ParameterGradients::accumulate);
  CHECK(v[2].gradCopy()[1] == doctest::Approx(2 * bias)); // not always in the same order
}

TEST_CASE("conv2d: samples are images") {
  Tape<double> tape;
  const auto v = leaves<double>(tape, {{6, 16}, {2, 9}}, -1, 1);
  const View<double> y = conv2d(v[0], v[1], {}, {1, 4, 4, 3, 3});
  const auto frame = tape.frame(tape.records()[tape.recordOf(y.sysGetRawNodeIndex())]);
  const auto keeps = frame.description.methods().traits->keepsSamples;
  REQUIRE(bool(keeps));
  CHECK(keeps(frame, 1, 6));
  CHECK(keeps(frame, 1, 3));
  CHECK_FALSE(keeps(frame, 1, 4));
  CHECK_FALSE(keeps(frame, 0, 1));
}

TEST_CASE("conv2d: shapes that do not fit are named") {
  Tape<double> tape;
  const View<double> x(tape, 2, 32), w(tape, 3, 18), b(tape, 1, 4);
  const auto what = [&](const Windows& g, std::size_t groups = 1, View<double> bias = {}) {
    return std::string(errorOf([&] { conv2d(x, w, bias, g, groups); }).what());
  };
  CHECK(what({3, 4, 4, 3, 3}) == "conv2d: rows of 2×32 are not images of 3×4×4");
  CHECK(what({2, 4, 4, 3, 3, 0}) ==
        "conv2d: windows of 3×3 with strides of 0×1; all are at least 1");
  CHECK(what({2, 4, 4, 3, 3, 1, 1, 3, 0}) ==
        "conv2d: paddings of 3×0 are not smaller than the windows of 3×3");
  CHECK(what({2, 4, 4, 3, 7, 1, 1, 0, 1}) ==
        "conv2d: windows of 3×7 do not fit into images of 4×4 with paddings of 0×1");
  CHECK(what({2, 4, 4, 3, 3}, 2) == "conv2d: 2 channels and 3 outputs can't be shared by 2 groups");
  CHECK(what({2, 4, 4, 2, 3}) == "conv2d: weights of 3×18 are not filters of 2×2×3");
  CHECK(what({2, 4, 4, 3, 3}, 1, b) == "conv2d: 4 biases for 3 outputs");
}

TEST_CASE_TEMPLATE("maxPool2d and avgPool2d: against the expansion", T, double, float) {
  for (const Windows& g :
       {Windows{3, 4, 6, 2, 2, 2, 2}, Windows{1, 5, 7, 2, 2, 2, 2}, Windows{2, 7, 8, 3, 2, 2, 3},
        Windows{2, 5, 5, 3, 3, 1, 1}, Windows{1, 1, 9, 1, 4, 1, 2}})
    for (const std::size_t images : {1u, 3u}) {
      checkDefinition<T, block::MaxPool>({{images, g.image()}},
                                         [&](const auto& v) { return maxPool2d(v[0], g); });
      checkDefinition<T, block::AvgPool>({{images, g.image()}},
                                         [&](const auto& v) { return avgPool2d(v[0], g); });
    }
}

TEST_CASE("maxPool2d: the first of equal numbers takes the gradient, NaN passes through") {
  Tape<double> tape;
  const double numbers[]{1, 2, 2, 2, 5, 4, std::numeric_limits<double>::quiet_NaN(), 9};
  const View<double> x(tape, 1, 8, numbers);
  const View<double> y = maxPool2d(x, {1, 4, 2, 2, 2, 2, 2});
  CHECK(y.data()[0] == 2);
  CHECK(std::isnan(y.data()[1]));
  backward(y[0]);
  CHECK(std::vector(x.gradCopy().begin(), x.gradCopy().end()) ==
        std::vector<double>{0, 1, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("maxPool2d: what does not fit is named") {
  Tape<double> tape;
  const View<double> x(tape, 2, 12);
  CHECK(errorOf([&] {
          maxPool2d(x, {1, 3, 3, 2, 2});
        }).what() == std::string("maxPool2d: rows of 2×12 are not images of 1×3×3"));
  CHECK(errorOf([&] {
          avgPool2d(x, {1, 3, 4, 2, 2, 1, 1, 1, 0});
        }).what() == std::string("avgPool2d: windows have no padding"));
}
