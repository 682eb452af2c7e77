// cpp_tests/io_blocks_test.cpp — graphs with blocks in files
// SPDX-License-Identifier: MIT
#include "io_support.hpp"

#include <burtorch/io/blocks.hpp>

#include <numeric>

using namespace burtorch;

namespace {

using Rows = View<double>;

Rows numbers(Tape<double>& tape, std::size_t rows, std::size_t cols) {
  Rows view(tape, rows, cols);
  for (std::size_t i = 0; i < view.size(); ++i)
    view.data()[i] = 0.1 * static_cast<double>(i % 7) - 0.25;
  return view;
}

// The blocks of layers, of rows of 4.
Rows buildLayers(Tape<double>& tape, const Rows& x) {
  const Rows filters = numbers(tape, 4, 4), two = numbers(tape, 1, 2), other = numbers(tape, 1, 2);
  const Rows variance = numbers(tape, 1, 2);
  for (double& each : variance.data()) each = 1;
  const Rows image = conv2d(x, filters, numbers(tape, 1, 4), {1, 2, 2, 2, 2, 1, 1, 1, 1});
  const Rows pooled = maxPool2d(image, {4, 3, 3, 2, 2}), mean = avgPool2d(pooled, {4, 2, 2, 1, 2});
  const Rows norm =
      batchNorm(mean, two, other, numbers(tape, 1, 2), variance, 2, Statistics::batch);
  const Rows states =
      lstm(RecurrentOperands<Rows>{norm.reshape(6, 4), filters, numbers(tape, 4, 1)}, 3);
  const Rows next = gru(
      RecurrentOperands<Rows>{everyRow(states, 1, 2), numbers(tape, 3, 2), numbers(tape, 3, 1)}, 1);
  return dropout(next, 0.5, 12);
}

// Those along axes, and losses.
Value<double> buildAxes(const Rows& x) {
  const std::vector<int> places{2, 0, 2};
  const Rows turned = transpose(x), some = take(x, std::span<const int>(places));
  const Rows chosen = where(numbers(x.tape(), 3, 5), some, x);
  const Rows products = batchedMatmul(x, turned, 1);
  const Rows extremes =
      reduceOver<op::MaxVarying>(chosen, 3, 5) * reduceOver<op::MinVarying>(chosen, 3, 5);
  const Rows sums = reduceOver<op::AddVarying>(products, 3) * logSumExp(products, 3);
  const Rows moments =
      reduceOver<op::MeanVarying>(products, 3) * reduceOver<op::VarianceBiasedVarying>(products, 3);
  const Rows losses = squaredError(x, chosen) + huberError(x, chosen, 0.5) + logisticError(x, some);
  return reduceSum(extremes) + reduceSum(sums) + reduceSum(moments) + reduceSum(losses);
}

// Every kind of block once, one after the other.
Value<double> buildBlocks(Tape<double>& tape) {
  const Rows table = numbers(tape, 3, 2), w = numbers(tape, 5, 4), b = numbers(tape, 1, 5);
  const std::vector<int> ids{0, 2, 1, 1, 2, 2}, targets{1, 0, 3};
  const Rows x = gather(table, std::span<const int>(ids), 2);
  const Rows y = affine(w, x, b);
  const Rows z = gatherAffine(table, std::span<const int>(ids), w, b);
  const Rows one = gatherAffine(table, std::span<const int>(ids).first(2), w);
  const Rows q = tanh(y) + z * one;
  const Rows r = 3.0 / (sqr(q) + 1.0);
  const std::vector<Rows> parts{softmax(r), logSoftmax(r), layerNorm(r, b, numbers(tape, 1, 5))};
  const Rows c = concatColumns(std::span<const Rows>(parts));
  const std::vector<Rows> halves{x.reshape(1, 12).segment(0, 3).reshape(3, 1), x};
  const Rows wide =
      affine(numbers(tape, 2, 5), std::span<const Rows>(halves), {}, ParameterGradients::assign);
  const Rows m = clamp(matmul(attention(c, 1, 3), w), -10.0, 10.0);
  return reduceSum(crossEntropy(m, std::span<const int>(targets))) + reduceSum(wide) +
         buildAxes(r) + reduceSum(buildLayers(tape, x));
}

FileContent saved(const Tape<double>& tape) {
  return saveGraph(tape, {.blocks = everyBlock<double>()});
}

} // namespace

TEST_CASE("blocks come back as they were, and go on computing") {
  Tape<double> tape, other;
  const auto root = buildBlocks(tape);
  backward(root);
  const FileContent file = saved(tape);
  for (const auto& known : everyBlock<double>()) { // a block that joins the list joins buildBlocks
    INFO(std::string(known.name));
    CHECK((known.kind != detail::Kind::block ||
           std::ranges::any_of(tape.records(), [&](const auto& record) {
             return record.isBlock() && &tape.frame(record).description.methods() == known.methods;
           })));
  }
  other.leaf(1.0); // indices are others there
  const auto loaded = loadGraph(other, Bytes(file), everyBlock<double>());
  CHECK(loaded.count == tape.size());
  CHECK(std::ranges::equal(other.values().subspan(1), std::as_const(tape).values()));
  CHECK(std::ranges::equal(std::as_const(other).grads().subspan(1), std::as_const(tape).grads()));
  other.zeroGrad();
  backward(Value<double>::at(other, other.size() - 1));
  CHECK(std::ranges::equal(std::as_const(other).grads().subspan(1), std::as_const(tape).grads()));
  Tape<double> again;
  loadGraph(again, Bytes(file), everyBlock<double>());
  CHECK(saved(again) == file);
  // Inputs that change after loading change what the blocks compute next.
  for (Tape<double>* each : {&tape, &again}) {
    for (double& x : each->values().first(6)) x += 0.5;
    for (const auto& record : each->records())
      if (record.isBlock()) {
        const auto frame = each->frame(record);
        frame.description.methods().forward(frame);
      }
  }
  CHECK(std::ranges::equal(again.values(), tape.values()));
}

TEST_CASE("numbers that blocks keep come back, even where the inputs have changed since") {
  Tape<double> tape, other;
  const auto root = buildBlocks(tape);
  tape.values()[0] = 7.0; // not computed anew: the pullback uses what was kept
  backward(root);
  loadGraph(other, Bytes(saved(tape)), everyBlock<double>());
  other.zeroGrad();
  backward(Value<double>::at(other, other.size() - 1));
  CHECK(std::ranges::equal(std::as_const(other).grads(), std::as_const(tape).grads()));
}

TEST_CASE("only the blocks that were given are known") {
  Tape<double> tape, other;
  const Rows x = numbers(tape, 2, 2);
  softmax(x);
  checkFails(ErrorKind::badArgument, "the block softmax is not among those given",
             [&] { saveGraph(tape); });
  static constexpr std::array some{knownBlock<block::Softmax, double>()};
  const FileContent file = saveGraph(tape, {.blocks = some});
  CHECK(file == saved(tape));
  CHECK(loadGraph(other, Bytes(file), some).count == 8);
  checkFails(ErrorKind::badData, "not among those given to loadGraph: 'softmax' of kind 10",
             [&] { loadGraph(other, Bytes(file)); });
}

TEST_CASE("bytes changed and sealed again are loaded or refused, and what is loaded computes") {
  Tape<double> tape, other;
  buildBlocks(tape);
  FileContent file = saved(tape);
  checkBytesChanged(file, 64 + 16 * tape.size(), 7, [&](const FileContent& changed) {
    const auto start = other.mark();
    if (!loadsOrRefuses(other, changed, everyBlock<double>())) return false;
    loadGraph(other, Bytes(changed), everyBlock<double>());
    if (other.size() != 0) backward(Value<double>::at(other, other.size() - 1));
    other.rewind(start);
    return true;
  });
}

TEST_CASE("blocks that would be larger than the file are refused before they take memory") {
  // Outer products and tables looked up again and again: small operands, large results.
  const auto checkRefused = [](const auto& write) {
    Tape<double> tape;
    numbers(tape, 1, 100);
    FileContent file = saved(tape);
    detail::ByteWriter w; // the head and the numbers stay, a record is put behind
    w.raw(Bytes(file).first(64 + 16 * 100));
    w.integer(1);
    write(w);
    w.integer(0);
    FileContent changed = w.bytes();
    changed[32] = std::byte{1};
    checkFails(ErrorKind::badData, "operands and results do not fit",
               [&] { loadGraph(tape, Bytes(sealed(changed)), everyBlock<double>()); });
    CHECK(tape.size() == 100);
  };
  const auto record = [](detail::ByteWriter& w, const char* name,
                         std::initializer_list<std::uint64_t> words) {
    w.byte(static_cast<std::uint8_t>(detail::Kind::block));
    w.text(name);
    w.integer(0);  // marks
    w.integer(50); // leaves
    w.integer(0);  // the operation
    for (const std::uint64_t x : words) w.integer(x);
  };
  checkRefused([&](detail::ByteWriter& w) { // 50×1 times 1×50
    record(w, "matmul", {50, 2, 50, 50, 1, 50, 1, 50, 0, 0});
  });
  checkRefused([&](detail::ByteWriter& w) { // a row of 50, many times
    record(w, "gather", {50, 1, 50, 1, 50, 4, 0, 0, 0, 0, 0});
  });
  checkRefused([&](detail::ByteWriter& w) { // weights of 50 heads over 50 positions
    record(w, "attention",
           {50, 1, 50, 1, 50, 2, std::uint64_t{1} << 31, std::uint64_t{1} << 31, 0});
  });
}
