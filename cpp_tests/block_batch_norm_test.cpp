// cpp_tests/block_batch_norm_test.cpp — batch norm and dropout against their expansions
// SPDX-License-Identifier: MIT
#include "block_support.hpp"
#include "support.hpp"

#include <burtorch/base/random.hpp>
#include <burtorch/block/batch_norm.hpp>
#include <burtorch/block/dropout.hpp>

using namespace burtorch;
using namespace block_support;

namespace {

template <class V> auto keepsSamplesOfLast(const V& y, std::size_t view, std::size_t samples) {
  auto& tape = y.tape();
  const auto frame = tape.frame(tape.records()[tape.recordOf(y.sysGetRawNodeIndex())]);
  return frame.description.methods().traits->keepsSamples(frame, view, samples);
}

} // namespace

TEST_CASE_TEMPLATE("batchNorm: against the expansion", T, double, float) {
  for (const Statistics statistics : {Statistics::batch, Statistics::running})
    for (const std::size_t rows : {2u, 5u})
      for (const std::size_t channels : {1u, 3u, 17u})
        for (const std::size_t size : {1u, 4u, 19u})
          checkDefinition<T, block::BatchNorm>(
              {{rows, channels * size}, {1, channels}, {1, channels}, {1, channels}, {1, channels}},
              [&](const auto& v) {
                return batchNorm(v[0], v[1], v[2], v[3], v[4], channels, statistics);
              },
              0.25, 2);
}

TEST_CASE("batchNorm: running statistics move as PyTorch's do, and rest in evaluation") {
  Tape<double> tape;
  const double numbers[]{1, 2, 4, 8, 5, 9}; // channels (1, 4, 5) and (2, 8, 9)
  const View<double> x(tape, 3, 2, numbers), weight(tape, 1, 2), bias(tape, 1, 2), mean(tape, 1, 2),
      variance(tape, 1, 2);
  for (const auto& ones : {weight, variance})
    for (double& each : ones.data()) each = 1;
  const auto y = batchNorm(x, weight, bias, mean, variance, 2, Statistics::batch, 0.1);
  CHECK(mean.data()[0] == doctest::Approx(0.1 * 10 / 3));
  CHECK(mean.data()[1] == doctest::Approx(0.1 * 19 / 3));
  CHECK(variance.data()[0] == doctest::Approx(0.9 + 0.1 * 13 / 3)); // divided by n − 1
  CHECK(variance.data()[1] == doctest::Approx(0.9 + 0.1 * 43 / 3));
  CHECK(y.data()[0] == doctest::Approx((1 - 10. / 3) / std::sqrt(26. / 9 + 1e-5)));
  const double before = mean.data()[0];
  batchNorm(x, weight, bias, mean, variance, 2, Statistics::running, 0.1);
  CHECK(mean.data()[0] == before);
}

TEST_CASE("batchNorm: gradients of scale and shift are assigned on demand") {
  Tape<double> tape;
  const auto v = leaves<double>(tape, {{3, 4}, {1, 2}, {1, 2}, {1, 2}, {1, 2}}, 0.5, 1);
  const auto run = [&](ParameterGradients how) {
    const auto mark = tape.mark();
    backward(reduceSumOfSquares(
        batchNorm(v[0], v[1], v[2], v[3], v[4], 2, Statistics::batch, 0.1, 1e-5, how)));
    tape.rewind(mark);
  };
  run(ParameterGradients::accumulate);
  const std::vector<double> once{v[1].gradCopy()[1], v[2].gradCopy()[1]};
  for (const auto& parameter : {v[1], v[2]})
    for (auto& each : parameter.grads()) each = std::numeric_limits<double>::quiet_NaN();
  run(ParameterGradients::assign);
  CHECK(std::vector<double>{v[1].gradCopy()[1], v[2].gradCopy()[1]} == once);
}

TEST_CASE("batchNorm: samples stay apart in evaluation only") {
  Tape<double> tape;
  const auto v = leaves<double>(tape, {{4, 4}, {1, 2}, {1, 2}, {1, 2}, {1, 2}}, 0.5, 1);
  const auto of = [&](Statistics s) { return batchNorm(v[0], v[1], v[2], v[3], v[4], 2, s); };
  CHECK_FALSE(keepsSamplesOfLast(of(Statistics::batch), 0, 4));
  CHECK(keepsSamplesOfLast(of(Statistics::running), 0, 4));
  CHECK_FALSE(keepsSamplesOfLast(of(Statistics::running), 1, 1));
}

TEST_CASE("batchNorm: shapes that do not fit are named, and nothing moves") {
  Tape<double> tape;
  const View<double> x(tape, 1, 3), three(tape, 1, 3), two(tape, 1, 2);
  const auto what = [&](const View<double>& bias, std::size_t channels) {
    return std::string(errorOf([&] {
                         batchNorm(x, three, bias, three, three, channels, Statistics::batch);
                       }).what());
  };
  CHECK(what(three, 2) == "batchNorm: rows of 1×3 are not 2 channels");
  CHECK(what(two, 3) == "batchNorm: 2 weights, biases, means or variances for 3 channels");
  CHECK(what(three, 3) == "batchNorm: one number in each channel of 1×3 has no variance");
}

TEST_CASE_TEMPLATE("dropout: against the expansion", T, double, float) {
  for (const double p : {0.0, 0.25, 0.5, 1.0})
    checkDefinition<T, block::Dropout>(
        {{3, 7}}, [&](const auto& v) { return dropout(v[0], T(p), 0x123456789abcdef0u); });
}

TEST_CASE("dropout: the key says which; another key draws anew") {
  Tape<double> tape;
  View<double> x(tape, 100, 100);
  for (double& each : x.data()) each = 1;
  const auto drawn = [&](std::uint64_t key) {
    const auto y = dropout(x, 0.25, key);
    return std::vector<double>(y.data().begin(), y.data().end());
  };
  const auto first = drawn(7);
  CHECK(first == drawn(7));
  CHECK(first != drawn(8));
  CHECK(first != drawn(7 + (std::uint64_t{1} << 32)));
  const auto zeros = std::ranges::count(first, 0.0);
  CHECK(zeros > 2300);
  CHECK(zeros < 2700);
  for (const double each : first) CHECK((each == 0 || each == 1 / 0.75));
  // A key that is written into the block is used by its next forward.
  const auto y = dropout(x, 0.25, 7);
  const auto frame = tape.frame(tape.records()[tape.recordOf(y.sysGetRawNodeIndex())]);
  frame.description.parameters()[block::Dropout::key] = 8;
  frame.description.methods().forward(frame);
  CHECK(std::ranges::equal(y.data(), drawn(8)));
  // Element i is what SplitMix64 gives as its i-th number: the seeding of Random.
  const auto word = Random(7).state()[2];
  CHECK(kernel::DropoutMask{7, 0.5}.drops(2) == (static_cast<double>(word >> 11) * 0x1p-53 < 0.5));
  CHECK(keepsSamplesOfLast(y, 0, 5));
  CHECK(errorOf([&] { dropout(x, 1.5, 0); }).what() ==
        std::string("dropout: a probability lies between 0 and 1"));
}
