// cpp_tests/section_test.cpp — sections: run again, in parts, moved, against the eager program
// SPDX-License-Identifier: MIT
#include "support.hpp"

#include <burtorch/nn/layers.hpp>
#include <burtorch/run/section.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace bt = burtorch;

namespace section_test { // names of its own where tests are compiled together

namespace {

using SectionTape = bt::Tape<double>;
using SectionView = bt::View<double>;

struct Net { // 3-5-2 with a layer norm, and a penalty on the last bias
  SectionTape tape;
  bt::Random random{3};
  bt::nn::Linear<SectionView> first{tape, 3, 5, random}, last{tape, 5, 2, random};
  std::size_t parameters = tape.size();

  bt::Value<double> loss(const SectionView& x, const SectionView& y) const {
    return bt::reduceMean(bt::sqr(last(bt::tanh(first(x))) - y)) +
           0.5 * bt::reduceSumOfSquares(last.bias);
  }
  std::vector<double> gradients() {
    const auto all = tape.grads().first(parameters);
    return {all.begin(), all.end()};
  }
};

std::vector<double> someNumbers(std::size_t n, double from) {
  std::vector<double> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = from + 0.37 * static_cast<double>(i % 11);
  return x;
}

struct Kept {
  bt::Section<double> section;
  bt::Section<double>::Mixing mixing;
};
Kept keep(Net& net, std::size_t samples) {
  const auto mark = net.tape.mark();
  const SectionView x(net.tape, samples, 3), y(net.tape, samples, 2);
  const auto loss = net.loss(x.constant(), y.constant());
  bt::Section<double> section(net.tape, mark, bt::NodeRange{loss.sysGetRawNodeIndex(), 1});
  const std::vector<bt::NodeRange> data{{x.sysGetRawNodeIndex(), 3 * samples},
                                        {y.sysGetRawNodeIndex(), 2 * samples}};
  const auto mixing = section.samples(samples, data, {});
  section.setData(data);
  const std::vector<bt::NodeRange> parameters{{0, net.parameters}};
  section.assignGradients(parameters);
  net.tape.rewind(mark);
  return {std::move(section), mixing};
}

double runKept(Net& net, bt::Section<double>& section, const double* x, const double* y,
               std::size_t samples, double seed, bt::SumPart part) {
  const auto space = section.space(net.tape);
  std::copy_n(x, 3 * samples, space.values + section.first());
  std::copy_n(y, 2 * samples, space.values + section.first() + 3 * samples);
  section.forward(space);
  section.backward(space, seed, part);
  return section.result(space);
}

double eager(Net& net, const std::vector<double>& x, const std::vector<double>& y) {
  net.tape.zeroGrad();
  const auto mark = net.tape.mark();
  const std::size_t n = y.size() / 2;
  const auto loss = net.loss(SectionView(net.tape, n, 3, x).constant(),
                             SectionView(net.tape, n, 2, y).constant());
  bt::backward(loss);
  const double value = loss.dataCopy();
  net.tape.rewind(mark);
  return value;
}

} // namespace

TEST_CASE("a section computes what the program did, on new data and in place") {
  Net net;
  Kept kept = keep(net, 4);
  for (const double from : {-1.0, 0.25}) {
    const auto x = someNumbers(12, from), y = someNumbers(8, -from);
    const double value = eager(net, x, y);
    const auto wanted = net.gradients();
    std::ranges::fill(net.tape.grads(), 77.0); // what there was is replaced
    CHECK(runKept(net, kept.section, x.data(), y.data(), 4, 1, bt::SumPart::first) == value);
    CHECK(net.gradients() == wanted);
    CHECK(net.tape.size() == net.parameters);
  }
}

TEST_CASE("a section moves when nodes were appended, and sees new parameters") {
  Net net;
  Kept kept = keep(net, 2);
  const auto x = someNumbers(6, 0.1), y = someNumbers(4, 0.2);
  const bt::Value<double> other(net.tape, 5.0);
  const auto product = other * 3.0;
  net.tape.values()[0] = 0.75;
  const double value = runKept(net, kept.section, x.data(), y.data(), 2, 1, bt::SumPart::first);
  const auto gradients = net.gradients();
  CHECK(product.dataCopy() == 15.0);
  CHECK(value == eager(net, x, y));
  CHECK(gradients == net.gradients());
}

TEST_CASE("a mean over samples is run in parts") {
  Net net;
  Kept kept = keep(net, 3);
  CHECK(kept.mixing.root == bt::Samples::mean);
  const auto x = someNumbers(18, -0.3), y = someNumbers(12, 0.4);
  double value = 0.5 * runKept(net, kept.section, x.data(), y.data(), 3, 0.5, bt::SumPart::first);
  value += 0.5 * runKept(net, kept.section, x.data() + 9, y.data() + 6, 3, 0.5, bt::SumPart::more);
  const auto gradients = net.gradients();
  CHECK(value == doctest::Approx(eager(net, x, y)));
  const auto wanted = net.gradients();
  for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(gradients[i] == doctest::Approx(wanted[i]));
}

TEST_CASE("a section says what mixes samples") {
  SectionTape tape;
  const SectionView w(tape, 2, 3);
  const auto mark = tape.mark();
  const auto ask = [&](const auto& program) {
    const SectionView x(tape, 4, 3);
    const auto root = program(x);
    const bt::Section<double> section(tape, mark, bt::NodeRange{root.sysGetRawNodeIndex(), 1});
    const std::vector<bt::NodeRange> data{{x.sysGetRawNodeIndex(), 12}};
    auto found = section.samples(4, data, {});
    tape.rewind(mark);
    return found;
  };
  CHECK(ask([&](const auto& x) { return bt::reduceMean(bt::affine(w, x)); }).root ==
        bt::Samples::mean);
  CHECK(ask([&](const auto& x) { return bt::reduceSum(bt::affine(w, x)); }).root ==
        bt::Samples::sum);
  CHECK(ask([&](const auto& x) { return 2.0 * bt::reduceMean(bt::softmax(x)) + w[0]; }).root ==
        bt::Samples::mean);
  CHECK(ask([&](const auto& x) { return bt::reduceMean(bt::affine(x, w.row(0))); }).root ==
        bt::Samples::mean);
  const auto mixed = ask([&](const auto& x) { return bt::reduceMean(bt::affine(x, w)); });
  CHECK(mixed.root == bt::Samples::mixed);
  CHECK(mixed.operation == "affine");
  CHECK(ask([&](const auto& x) { return bt::sqr(bt::reduceMean(x)); }).operation == "sqr");
  CHECK(ask([&](const auto& x) { return x[0] * x[11]; }).operation == "mul");
  CHECK(ask([&](const auto& x) { return bt::reduceSum(x) + w[0]; }).root == bt::Samples::mixed);
  CHECK(ask([&](const auto& x) { return bt::reduceMax(x); }).root == bt::Samples::mixed);
}

TEST_CASE("a section refuses what was computed outside of it") {
  SectionTape tape;
  const SectionView w(tape, 1, 3);
  const auto scaled = w * 2.0;
  const auto mark = tape.mark();
  const auto root = bt::reduceSum(scaled * w);
  CHECK_THROWS_WITH_AS(bt::Section<double>(tape, mark, bt::NodeRange{root.sysGetRawNodeIndex(), 1}),
                       doctest::Contains("computed outside"), bt::Error);
}

} // namespace section_test
