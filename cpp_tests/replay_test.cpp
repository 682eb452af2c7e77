// cpp_tests/replay_test.cpp — recordings: the numbers of the tape bit for bit, passes, other scalars
// SPDX-License-Identifier: MIT
#include "every_operation.hpp"
#include "support.hpp"
#include "recording_support.hpp"

#include <burtorch/block/blocks.hpp>
#include <burtorch/run/replay.hpp>
#include <burtorch/op/dual.hpp>
#include <burtorch/view.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

using namespace burtorch;

using namespace recording_support;

namespace {

struct Result {
  double value;
  std::vector<double> gradient;
};

template <class F> Result eagerly(const F& f, const std::vector<double>& x) {
  Tape<double> tape;
  const TapeScope scope(tape);
  const auto in = leaves(tape, x);
  const V y = f(std::span<const V>(in));
  backward(y);
  Result r{y.dataCopy(), {}};
  for (const V& each : in) r.gradient.push_back(each.gradCopy());
  return r;
}

template <class S = double> Result replayed(const R& recording, const std::vector<double>& x) {
  auto w = recording.workspace<S>();
  Result r{0, std::vector<double>(x.size())};
  r.value = recording.valueAndGradient(w, x, r.gradient);
  return r;
}

// The same number, to the bit; any NaN is the same as any other.
bool same(double x, double y) {
  return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y) ||
         (std::isnan(x) && std::isnan(y));
}
bool same(const Result& x, const Result& y) {
  bool all = same(x.value, y.value);
  for (std::size_t i = 0; i < x.gradient.size(); ++i)
    all = all && same(x.gradient[i], y.gradient[i]);
  return all;
}

// f as recorded at one point, run at another.
template <class F> void checkSame(const F& f, const std::string& name, Passes passes) {
  Tape<double> tape;
  const TapeScope scope(tape);
  const auto in = leaves(tape, at);
  const R recording(in, f(std::span<const V>(in)), passes);
  CHECK_MESSAGE(same(replayed(recording, elsewhere), eagerly(f, elsewhere)), name);
  CHECK_MESSAGE(same(replayed(recording, at), eagerly(f, at)), name);
}

V tinyGraph(const V& a, const V& b) {
  const V c = a + b, d = a * b + pow3(b), e = c - d;
  return sqr(e) / 2.0;
}

} // namespace

TEST_CASE("replay: the paper's tiny graph at other points") {
  Tape<double> tape;
  const V a(tape, 1.0), b(tape, 1.0);
  const R f({a, b}, tinyGraph(a, b));
  auto w = f.workspace();
  std::array<double, 2> g{};
  CHECK(f.valueAndGradient(w, std::array{-41.0, 2.0}, g) == 612.5);
  CHECK(g == std::array{-35.0, 1050.0});
  CHECK(f.value(w, std::array{0.0, 0.0}) == 0.0);
  CHECK(f.valueAndGradient(w, std::array{-41.0, 2.0}, g) == 612.5); // nothing is left behind
  CHECK(g == std::array{-35.0, 1050.0});
  CHECK((a.dataCopy() == 1.0 && a.gradCopy() == 0.0)); // the tape is as it was
}

TEST_CASE("replay: every operation gives the tape's numbers bit for bit") {
  for (const Passes passes : {Passes::none, Passes::exact, Passes::all}) {
    Tape<double> tape;
    const TapeScope scope(tape);
    const auto in = leaves(tape, at);
    const auto cases = every::operation(std::span<const V>(in));
    CHECK(cases.size() > 120);
    for (std::size_t i = 0; i < cases.size(); ++i)
      checkSame([i](std::span<const V> x) { return every::operation(x)[i].root; }, cases[i].name,
                passes);
  }
}

TEST_CASE("replay: random graphs bit for bit; sharing changes gradients by rounding only") {
  std::size_t shared = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    const auto f = [seed](std::span<const V> x) { return every::graph(x, 12, seed); };
    Tape<double> tape;
    const TapeScope scope(tape);
    const auto in = leaves(tape, at);
    const V y = f(in);
    const Result want = eagerly(f, at);
    const R plain(in, y, Passes::none), exact(in, y), all(in, y, Passes::all);
    CHECK(same(replayed(plain, at), want));
    CHECK(same(replayed(exact, at), want));
    CHECK(exact.tape().records().size() <= plain.tape().records().size());
    shared += exact.tape().records().size() - all.tape().records().size();
    const Result got = replayed(all, at);
    CHECK(same(got.value, want.value));
    for (std::size_t i = 0; i < at.size(); ++i)
      CHECK(got.gradient[i] == doctest::Approx(want.gradient[i]).epsilon(1e-10));
  }
  CHECK(shared > 0);
}

TEST_CASE("replay: long chains") {
  for (const int n : {255, 256, 257, 512, 1000}) {
    const auto f = [n](std::span<const V> x) {
      V y = x[0];
      for (int i = 0; i < n; ++i) y = i % 3 == 0 ? y * x[1] : y + x[2];
      return y;
    };
    checkSame(f, "a chain", Passes::exact);
  }
}

TEST_CASE("replay: passes remove what they say") {
  Tape<double> tape;
  const V x(tape, 2.0), c(tape, 3.0);
  static_cast<void>(exp(x)); // dead
  const V k = c * c + 1.0;   // constant
  const V y = sin(x) * k + sin(x);
  CHECK(R({x}, y, Passes::none).tape().records().size() == 7);
  const R dead({x}, y, Passes::dead);
  CHECK(dead.tape().records().size() == 6);
  const R exact({x}, y);
  CHECK(exact.tape().records().size() == 4);
  CHECK(std::ranges::any_of(exact.tape().records(), [](const auto& r) {
    return r.operation() == Op::eBinaryMult && r.form() == Form::nodeNumber; // times 10
  }));
  const R all({x}, y, Passes::all);
  CHECK(all.tape().records().size() == 3);
  for (const R* each : {&dead, &exact, &all}) {
    const Result r = replayed(*each, {0.5});
    CHECK(r.value == doctest::Approx(11 * std::sin(0.5)));
    CHECK(r.gradient[0] == doctest::Approx(11 * std::cos(0.5)));
  }
}

TEST_CASE("replay: inputs since a mark, names, outputs that are inputs or constants") {
  Tape<double> tape;
  const V parameter(tape, 5.0);
  const auto mark = tape.mark();
  const V a(tape, 1.0), b(tape, 2.0);
  a.setLabel("a");
  const V y = a * parameter + b;
  const R f(mark, y);
  CHECK(f.inputs() == 2);
  CHECK((f.inputName(0) == "a" && f.inputName(1) == "x1" && f.outputName(0) == "y0"));
  const Result r = replayed(f, {2.0, 7.0});
  CHECK((r.value == 17.0 && r.gradient == std::vector{5.0, 1.0}));
  const std::vector in{b, a}, out{y, a, parameter};
  const R many(in, out);
  CHECK((many.inputs() == 2 && many.outputs() == 3));
  auto w = many.workspace();
  std::array<double, 3> values{};
  std::array<double, 6> rows{};
  many.jacobian(w, std::array{7.0, 2.0}, std::span<double>(values), std::span<double>(rows));
  CHECK(values == std::array{17.0, 2.0, 5.0});
  CHECK(rows == std::array{1.0, 5.0, 0.0, 1.0, 0.0, 0.0});
}

TEST_CASE("replay: inputs that are no neighbours, unused inputs") {
  Tape<double> tape;
  const V a(tape, 1.0), gap(tape, 9.0), b(tape, 2.0), unused(tape, 3.0);
  const R f({b, unused, a}, a / b * gap);
  const Result r = replayed(f, {4.0, 100.0, 2.0});
  CHECK((r.value == 4.5 && r.gradient == std::vector{-1.125, 0.0, 2.25}));
}

TEST_CASE("replay: lanes are samples, with a remainder") {
  Tape<double> tape;
  const TapeScope scope(tape);
  const auto in = leaves(tape, at);
  const R f(in, every::graph(std::span<const V>(in), 10, 3));
  constexpr std::size_t n = 11;
  std::vector<double> x, values(n), grads(n * 5), valuesOnly(n);
  for (std::size_t i = 0; i < n * 5; ++i) x.push_back(0.1 + 0.013 * static_cast<double>(i));
  auto lanes = f.workspace<simd<double, 4>>();
  f.batch(lanes, x.data(), n, values.data(), grads.data());
  f.batch(lanes, x.data(), n, valuesOnly.data(), nullptr);
  CHECK(valuesOnly == values);
  for (std::size_t k = 0; k < n; ++k) {
    const Result one = replayed(f, {x.begin() + static_cast<std::ptrdiff_t>(5 * k),
                                    x.begin() + static_cast<std::ptrdiff_t>(5 * k + 5)});
    CHECK(values[k] == doctest::Approx(one.value).epsilon(1e-13));
    for (std::size_t i = 0; i < 5; ++i)
      CHECK(grads[5 * k + i] == doctest::Approx(one.gradient[i]).epsilon(1e-12));
  }
}

TEST_CASE("replay: duals give a product with the Hessian") {
  Tape<double> tape;
  const V x(tape, 1.0), y(tape, 1.0);
  const R f({x, y}, x * x * y + pow3(y));
  auto w = f.workspace<dual<double>>();
  const std::array point{dual<double>(2.0, 1.0), dual<double>(3.0, -1.0)};
  std::array<dual<double>, 2> g;
  const auto value = f.valueAndGradient(w, point, g);
  CHECK((value.value == 39.0 && value.tangent == 12.0 - 31.0));
  CHECK((g[0].value == 12.0 && g[1].value == 31.0));
  CHECK((g[0].tangent == 6.0 - 4.0 && g[1].tangent == 4.0 - 18.0));
}

TEST_CASE("replay: blocks") {
  Tape<double> tape;
  const TapeScope scope(tape);
  const auto in = leaves(tape, at);
  const auto f = [](std::span<const V> x) {
    auto& tape_ = x[0].tape();
    const auto v = View<double>::at(tape_, x[0].sysGetRawNodeIndex(), 1, 5);
    const auto y = softmax(tanh(v) * v);
    return reduceSumOfSquares(std::vector<V>{y[0], y[3]}) + x[2];
  };
  const R recording(in, f(in));
  CHECK(recording.hasBlocks());
  CHECK(same(replayed(recording, elsewhere), eagerly(f, elsewhere)));
  CHECK(errorOf([&] { recording.workspace<dual<double>>(); }).kind() == ErrorKind::badArgument);
}

TEST_CASE("replay: comparisons of Values would be frozen, which has to be allowed") {
  Tape<double> tape;
  const V older(tape, 5.0);
  CHECK(older > 4.0); // before there were inputs: decides nothing between them and an output
  const auto mark = tape.mark();
  const auto record = [&](const auto& f, Branches branches = Branches::refuse) {
    tape.rewind(mark);
    const V a(tape, 1.0), b(tape, 2.0);
    const V y = f(a, b);
    return R({a, b}, y, Passes::exact, branches);
  };
  const auto refused = [&](const auto& f) {
    const Error error = errorOf([&] { record(f); });
    CHECK(error.kind() == ErrorKind::badArgument);
    CHECK(std::string(error.what()).find("Branches::freeze") != std::string::npos);
  };
  refused([](const V& a, const V& b) { return std::max(a, b); });
  refused([](const V& a, const V& b) { return a < 0 ? a : b; });
  refused([](const V& a, const V& b) { return a == b ? a : b; });
  refused([](const V& a, const V& b) { return exp(a) != 3 ? a : b; });
  refused([](const V& a, const V& b) { return 3 >= a * b ? a : b; });
  CHECK(record([](const V& a, const V& b) { return max(a, b); }).branches() == 0);
  CHECK(record([&](const V& a, const V& b) { return older < 3 ? a : b; }).branches() == 0);

  const R frozen = record([](const V& a, const V& b) { return std::max(a, b); }, Branches::freeze);
  CHECK(frozen.branches() != 0);
  auto w = frozen.workspace();
  CHECK(frozen.value(w, std::array{3.0, 2.0}) == 2); // as it was recorded
  const R recorded = record([](const V& a, const V& b) { return max(a, b); });
  auto space = recorded.workspace();
  CHECK(recorded.value(space, std::array{3.0, 2.0}) == 3);

  Tape<double> fresh;
  const V a(fresh, 1.0), b(fresh, 2.0);
  const V y = a < b && b > 1 ? a * b : a;
  CHECK(R({a, b}, y, Passes::exact, Branches::freeze).branches() == 2);
  CHECK(std::string(errorOf([&] {
                      R({a, b}, y);
                    }).what())
            .find("2 comparisons") != std::string::npos);
  V kept = y;
  fresh.collect(kept); // what was compared may have gone, the branch has not
  CHECK(fresh.comparisonsSince(0) == 2);
  fresh.clear();
  CHECK(fresh.comparisonsSince(0) == 0);
}

TEST_CASE("replay: what can't be recorded") {
  Tape<double> tape;
  const V a(tape, 1.0), b = exp(a);
  const std::vector<V> nothing;
  CHECK(errorOf([&] { R(std::vector{a}, nothing); }).kind() == ErrorKind::badArgument);
  CHECK(errorOf([&] { R({a, a}, b); }).kind() == ErrorKind::badArgument);
  CHECK(std::string(errorOf([&] { R({b}, b); }).what()).find("exp") != std::string::npos);
  const R f({a}, b);
  auto w = f.workspace();
  std::array<double, 1> room{};
  CHECK(errorOf([&] {
          f.jacobian(w, room, std::span<double>(room), std::span<double>());
        }).kind() == ErrorKind::badArgument);
}

TEST_CASE("replay: a gradient of 0 has the tape's sign, and sweeps from older outputs begin anew") {
  Tape<double> tape;
  const V a(tape, 2.0);
  const R zero({a}, a * -0.0);
  auto w = zero.workspace();
  double gradient = 1;
  zero.valueAndGradient(w, std::array{2.0}, &gradient);
  CHECK(gradient == 0.0);
  CHECK(!std::signbit(gradient));

  const std::array<V, 1> in{a};
  const std::array<V, 2> out{exp(a), sin(a)}; // the later one gives to a first
  const R two(in, out);
  auto v = two.workspace();
  std::array<double, 2> values{}, rows{};
  two.jacobian(v, std::array{0.5}, std::span<double>(values), std::span<double>(rows));
  CHECK(rows[0] == std::exp(0.5));
  CHECK(rows[1] == std::cos(0.5));
}

TEST_CASE("replay: captured constants take no part in a sweep; runs of gradients begin at 0") {
  Tape<double> tape;
  constexpr std::size_t n = 40;
  std::vector<V> weights, row;
  for (std::size_t i = 0; i < n; ++i) weights.emplace_back(tape, 1.0);
  for (std::size_t i = 0; i < n; ++i) row.emplace_back(tape, 2.0 + static_cast<double>(i));
  std::vector<V> scattered{row[3]};
  scattered.insert(scattered.end(), row.begin() + 1, row.end());
  const V one = innerProduct(weights, row), two = innerProduct(scattered, weights);
  const R f(weights, one * two + reduceSum(weights));
  auto w = f.workspace();
  std::vector<double> x(n, 0.5), g(n);
  for (int k = 0; k < 3; ++k) {
    f.valueAndGradient(w, x, g);
    double a = 0, b = 0;
    for (std::size_t i = 0; i < n; ++i) a += x[i] * row[i].dataCopy();
    for (std::size_t i = 0; i < n; ++i) b += x[i] * scattered[i].dataCopy();
    for (std::size_t i = 0; i < n; ++i)
      CHECK(g[i] == doctest::Approx(row[i].dataCopy() * b + scattered[i].dataCopy() * a + 1));
    std::size_t given = 0; // what has a gradient that is not 0: inputs, and results on the way
    for (const double each : w.grads()) given += each != 0 ? 1 : 0;
    CHECK(given == n + f.tape().records().size());
    for (double& each : x) each += 0.25;
  }
}

TEST_CASE("replay: a recording is returned, stored and moved, and its workspaces stay valid") {
  const auto make = [](double factor) {
    Tape<double> tape;
    const V a(tape, 1.0), b(tape, 2.0);
    R f({a, b}, reduceSum({a * factor, b, a}));
    return f;
  };
  std::vector<R> all;
  std::vector<Workspace<double>> workspaces;
  for (const double factor : {2.0, 3.0, 4.0}) {
    all.push_back(make(factor));
    workspaces.push_back(all.back().workspace());
  }
  std::array<double, 2> g{};
  for (std::size_t i = 0; i < 3; ++i) {
    const double factor = 2.0 + static_cast<double>(i);
    CHECK(all[i].valueAndGradient(workspaces[i], std::array{5.0, 7.0}, g) == 5 * factor + 12);
    CHECK(g == std::array{factor + 1, 1.0});
  }
  R other = make(9.0);
  other = std::move(all[1]);
  CHECK(other.value(workspaces[1], std::array{5.0, 7.0}) == 27.0);
}
