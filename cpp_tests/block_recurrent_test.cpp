// cpp_tests/block_recurrent_test.cpp — LSTM and GRU against expansions; rows at equal distances
// SPDX-License-Identifier: MIT
#include "block_support.hpp"
#include "support.hpp"

#include <burtorch/block/recurrent.hpp>

using namespace burtorch;
using namespace block_support;

namespace {

template <class T, class Block> void checkRecurrent(std::size_t gates, std::size_t states) {
  for (const std::size_t samples : {1u, 3u, 7u})
    for (const std::size_t steps : {1u, 4u})
      for (const std::size_t h : {1u, 5u, 9u})
        for (const bool biased : {false, true})
          for (const bool begun : {false, true}) {
            CAPTURE(samples);
            CAPTURE(steps);
            CAPTURE(h);
            const std::size_t n = 3;
            checkDefinition<T, Block>({{samples * steps, n},
                                       {gates * h, n},
                                       {gates * h, h},
                                       {1, gates * h},
                                       {1, gates * h},
                                       {samples, states * h}},
                                      [&](const auto& v) {
                                        RecurrentOperands<View<T>> o{v[0], v[1], v[2]};
                                        if (biased) o.bx = v[3], o.bh = v[4];
                                        if (begun) o.initial = v[5];
                                        return Block::apply(o, steps,
                                                            ParameterGradients::accumulate);
                                      });
          }
}

} // namespace

TEST_CASE_TEMPLATE("lstm: against the expansion", T, double, float) {
  checkRecurrent<T, block::Lstm>(4, 2);
}
TEST_CASE_TEMPLATE("gru: against the expansion", T, double, float) {
  checkRecurrent<T, block::Gru>(3, 1);
}

TEST_CASE("lstm and gru: PyTorch's numbers") {
  // torch.nn.LSTM(2, 2) and GRU(2, 2) with weights 0.1·(k mod 7) − 0.3, biases 0.05·k − 0.1, x = 0.25·k − 0.5
  const auto run = [](std::size_t gates, auto apply) {
    Tape<double> tape;
    const auto filled = [&](std::size_t rows, std::size_t cols, double step, double start,
                            std::size_t period) {
      View<double> v(tape, rows, cols);
      for (std::size_t i = 0; i < v.size(); ++i)
        v.data()[i] = step * static_cast<double>(i % period) + start;
      return v;
    };
    const RecurrentOperands<View<double>> o{
        filled(3, 2, 0.25, -0.5, 100), filled(2 * gates, 2, 0.1, -0.3, 7),
        filled(2 * gates, 2, 0.1, -0.3, 7), filled(1, 2 * gates, 0.05, -0.1, 100),
        filled(1, 2 * gates, 0.05, -0.1, 100)};
    const View<double> y = apply(o);
    backward(reduceSum(y));
    std::vector<double> numbers(y.data().begin(), y.data().end());
    const auto dw = o.wh.gradCopy(), dx = o.x.gradCopy();
    numbers.insert(numbers.end(), dx.begin(), dx.end());
    numbers.insert(numbers.end(), dw.begin(), dw.begin() + 4);
    return numbers;
  };
  const std::vector<double> lstmNumbers{
      0.08658962086577245,  0.08689268934381363,  0.15701046267349877,  0.13078289968378895,
      0.09004675983954337,  0.12904942772757305,  0.14466878011486123,  0.21838786287750095,
      0.0538321343439803,   0.14649415109570088,  0.07862823477244058,  0.28003708388866416,
      -0.32874808226044394, -0.03394449654173692, -0.22936368021775938, -0.027922537894489816,
      -0.12235496647407354, -0.02248641548218016, 0.007557527770438257, 0.007494767695450684,
      0.028440309691347185, 0.03385594277385069};
  const std::vector<double> gruNumbers{
      0.14083678716171508,   0.09656426955045831,   0.1217192550242437,   0.16945071180100457,
      0.04472674389958349,   0.23083818959804794,   -0.21382934265137865, 0.001371711043040652,
      -0.16582764811087503,  0.01595814136240651,   -0.09610470318827938, 0.01842798444763771,
      0.0022629046229907237, 0.0020612077611463653, 0.006231992186486648, 0.005894103302892596};
  CHECK(distance(run(4, [](const auto& o) { return lstm(o, 3); }), lstmNumbers) < 1e-14);
  CHECK(distance(run(3, [](const auto& o) { return gru(o, 3); }), gruNumbers) < 1e-14);
}

TEST_CASE("lstm: gradients of parameters are assigned on demand, a second sweep adds the same") {
  Tape<double> tape;
  const auto v = leaves<double>(tape, {{6, 2}, {12, 2}, {12, 3}, {1, 12}, {1, 12}}, -1, 1);
  const auto run = [&](ParameterGradients how, bool twice) {
    const auto mark = tape.mark();
    const auto root = reduceSumOfSquares(
        lstm(RecurrentOperands<View<double>>{v[0], v[1], v[2], v[3], v[4]}, 3, how));
    backward(root);
    if (twice) backward(root);
    tape.rewind(mark);
  };
  const auto numbers = [&](std::size_t i) {
    return std::vector<double>(v[i].gradCopy().begin(), v[i].gradCopy().end());
  };
  run(ParameterGradients::accumulate, false);
  std::vector<std::vector<double>> once;
  for (std::size_t i = 0; i < 5; ++i) once.push_back(numbers(i));
  for (std::size_t i = 1; i < 5; ++i)
    for (auto& each : v[i].grads()) each = std::numeric_limits<double>::quiet_NaN();
  run(ParameterGradients::assign, true);
  for (std::size_t i = 1; i < 5; ++i) CHECK(numbers(i) == once[i]);
  CHECK(distance(numbers(0), [&] {
          auto three = once[0];
          for (auto& each : three) each *= 3;
          return three;
        }()) < 1e-15);
}

TEST_CASE("lstm: samples are sequences") {
  Tape<double> tape;
  const auto v = leaves<double>(tape, {{12, 2}, {12, 2}, {12, 3}}, -1, 1);
  const auto y = lstm(RecurrentOperands<View<double>>{v[0], v[1], v[2]}, 3);
  const auto frame = tape.frame(tape.records()[tape.recordOf(y.sysGetRawNodeIndex())]);
  const auto keeps = frame.description.methods().traits->keepsSamples;
  CHECK(keeps(frame, 0, 4));
  CHECK_FALSE(keeps(frame, 0, 12));
  CHECK_FALSE(keeps(frame, 1, 1));
}

TEST_CASE("lstm and gru: shapes that do not fit are named") {
  Tape<double> tape;
  const View<double> x(tape, 6, 2), wx(tape, 12, 2), wh(tape, 12, 3), b(tape, 1, 9),
      initial(tape, 2, 3);
  using O = RecurrentOperands<View<double>>;
  const auto what = [](const O& o, std::size_t steps) {
    return std::string(errorOf([&] { lstm(o, steps); }).what());
  };
  CHECK(what({x, wx, wh}, 4) == "lstm: 6 rows are not sequences of 4 steps");
  CHECK(what({x, wh, wh}, 3) == "lstm: the input has 2 columns, the weights are 12×3");
  CHECK(what({x, wx, wh, b}, 3) == "lstm: there are two biases or none");
  CHECK(what({x, wx, wh, b, b}, 3) == "lstm: 9 and 9 biases for weights of 12×2 and 12×3");
  CHECK(what({x, wx, wh, {}, {}, initial}, 3) == "lstm: initial states of 2×3, not of 2×6");
  CHECK(errorOf([&] {
          gru(O{x, wx, wh}, 3);
        }).what() == std::string("gru: weights of 12×2 and 12×3 are not those of 3 gates"));
}

TEST_CASE("everyRow: rows at equal distances") {
  checkDefinition<double, block::EveryRow>({{6, 3}},
                                           [](const auto& v) { return everyRow(v[0], 1, 3); });
  Tape<double> tape;
  const View<double> x(tape, 6, 2);
  CHECK(everyRow(x, 1, 2).rows() == 3);
  CHECK(errorOf([&] { everyRow(x, 1, 4); }).what() ==
        std::string("everyRow: row 1 of each 4 rows of 6×2"));
}
