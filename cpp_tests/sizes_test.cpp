// cpp_tests/sizes_test.cpp — sizes that wrap around when added or multiplied are refused, and nothing changes
// SPDX-License-Identifier: MIT
#include "support.hpp"

#include <burtorch/block/blocks.hpp>
#include <burtorch/nn/models.hpp>
#include <burtorch/base/sizes.hpp>
#include <burtorch/tape/concurrent.hpp>
#include <burtorch/view.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

using namespace burtorch;

namespace {

constexpr std::size_t huge = static_cast<std::size_t>(-1);
constexpr std::size_t eighth = huge / 8 + 1; // times 8 it is 0

template <class F> void isTooLarge(const F& f) { CHECK(errorOf(f).kind() == ErrorKind::capacity); }

} // namespace

TEST_CASE("sizes: sums and products stop at the largest") {
  using detail::sizeProduct, detail::sizeSum, detail::tooLarge;
  static_assert(sizeSum(2, 3) == 5 && sizeSum(huge, 1) == tooLarge && sizeSum(huge, huge) == huge);
  static_assert(sizeProduct(2, 3) == 6 && sizeProduct(eighth, 8) == tooLarge);
  static_assert(sizeProduct(0, huge) == 0 && sizeProduct(huge, 0) == 0);
  CHECK(detail::demandProduct(6, 7) == 42);
  isTooLarge([] { detail::demandProduct(eighth, 8); });
  isTooLarge([] { detail::demandProduct(huge, 1); });
}

TEST_CASE_TEMPLATE("sizes: leaves and views", Index, std::uint16_t, std::uint32_t, std::uint64_t) {
  using Tape = burtorch::Tape<double, Index>;
  using View = burtorch::View<double, Index>;
  for (const std::size_t before : {0u, 1u, 300u}) {
    Tape tape;
    tape.leaves(before);
    const auto capacity = tape.capacity();
    isTooLarge([&] { tape.leaves(huge); });
    isTooLarge([&] { tape.leaves(huge - before); });
    isTooLarge([&] { tape.leaves(huge / 2 + 1); });
    isTooLarge([&] { View(tape, huge, 1); });
    isTooLarge([&] { View(tape, 1, huge); });
    isTooLarge([&] { View(tape, eighth, 8); });
    isTooLarge([&] { View(tape, huge, huge); });
    isTooLarge([&] { tape.makeRoomFor({eighth, 0, 0, 0}); });
    isTooLarge([&] { tape.makeRoomFor({0, huge, 0, 0}); });
    isTooLarge([&] { tape.makeRoomFor({0, 0, 0, huge / 2 + 1}); });
    CHECK(tape.size() == before);
    CHECK(tape.capacity() == capacity);
    const View some(tape, 2, 3);
    CHECK(errorOf([&] { some.reshape(huge / 2 + 1, 2); }).kind() == ErrorKind::badArgument);
  }
}

TEST_CASE("sizes: tapes of an extent") {
  std::array<std::byte, 1024> buffer;
  for (const std::size_t n : {eighth, huge / 16 + 1, huge, huge / 2, huge - 62}) {
    for (const Extent& extent : {Extent{n, 0, 0, 0}, {0, n, 0, 0}, {0, 0, n, 0}, {0, 0, 0, n}}) {
      CHECK(Tape<double>::bytesFor(extent) >= huge / 8);
      isTooLarge([&] { Tape<double>(std::span<std::byte>(buffer), extent); });
      isTooLarge([&] { Tape<double>{reserve(extent)}; });
      isTooLarge([&] { Tape<double, std::uint64_t>{reserve(extent)}; });
    }
    isTooLarge([&] { Tape<double>{reserve(n)}; });
  }
  isTooLarge([] { Tape<float, std::uint16_t>{reserve(65536)}; }); // more than it counts
  CHECK(Tape<float, std::uint16_t>{reserve(65535)}.capacity().nodes == 65535);
  Tape<float, std::uint16_t, Concurrent>::current(); // takes what it can count
}

TEST_CASE("sizes: blocks and models") {
  Tape<double> tape;
  const View<double> x(tape, 2, 6);
  CHECK(errorOf([&] { attention(x, huge / 3 + 1, 1); }).kind() == ErrorKind::badArgument);
  using MLP = nn::CharMLP<float>;
  const std::size_t quarter = huge / 4 + 1;
  isTooLarge([&] { MLP({.hidden = quarter}); });
  isTooLarge([&] { MLP({.vocab = quarter}); });
  isTooLarge([&] { MLP({.embed = quarter}); });
  isTooLarge([&] { MLP({.embed = std::size_t{1} << 31, .context = std::size_t{1} << 33}); });
  using GPT = nn::GPT<float>;
  isTooLarge([&] { GPT({.dModel = quarter}); });
  isTooLarge([&] { GPT({.context = quarter}); });
}
