// cpp_tests/fuzz/range.cpp — anything as a range: it is loaded or refused, and nothing is touched beside it
// SPDX-License-Identifier: MIT
#include <burtorch/io/range.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

using namespace burtorch;

// The first byte says how many nodes there are, the second where to load to.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const Bytes content(reinterpret_cast<const std::byte*>(data) + 2, size - 2);
  const auto check = [&]<Parts parts>(std::integral_constant<Parts, parts>) {
    Tape<float> tape;
    tape.leaves(data[0]);
    std::ranges::fill(tape.values(), 7.0f);
    std::ranges::fill(tape.grads(), 7.0f);
    std::size_t n = 0;
    const std::size_t first = data[1];
    try {
      n = loadRange<parts>(tape, first, content);
    } catch (const Error&) {
    }
    if (n != 0 && !std::ranges::equal(saveRange<parts>(tape, first, first + n), content))
      std::abort();
    for (std::size_t i = 0; i < tape.size(); ++i) {
      const bool beside = i < first || i >= first + n;
      if ((beside || parts == Parts::gradients) && tape.values()[i] != 7.0f) std::abort();
      if ((beside || parts == Parts::values) && tape.grads()[i] != 7.0f) std::abort();
    }
  };
  check(std::integral_constant<Parts, Parts::values>{});
  check(std::integral_constant<Parts, Parts::gradients>{});
  check(std::integral_constant<Parts, Parts::both>{});
  return 0;
}
