// cpp_tests/nn_generate_test.cpp — text from models: seeds, prompts, what a model sees
// SPDX-License-Identifier: MIT
#include "support.hpp"

#include <burtorch/nn/generate.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

namespace bt = burtorch;
namespace nn = burtorch::nn;
using Text = std::vector<std::int64_t>;

template <class Model>
Text textOf(Model& model, std::size_t n, std::uint64_t seed, Text start = {}) {
  bt::Random random(seed);
  return nn::generate(model, n, random, std::move(start));
}

template <class Model> void check(Model&& model) {
  const Text text = textOf(model, 50, 1);
  CHECK(text.size() == 50);
  CHECK(textOf(model, 50, 1) == text);
  CHECK(textOf(model, 50, 2) != text);
  CHECK(textOf(model, 0, 1).empty());
  CHECK(model.tape().size() == model.numParameters()); // nothing is left behind

  // Going on from what was said is the same as not having stopped.
  bt::Random random(1);
  const Text first = nn::generate(model, 20, random);
  Text both = first;
  for (const auto id : nn::generate(model, 30, random, first)) both.push_back(id);
  CHECK(both == text);

  CHECK(std::string(errorOf([&] {
                      textOf(model, 1, 1, {5, 99});
                    }).what()) == "generate: index 99 at position 1 is not between 0 and 6 - 1");
  bt::Random other(1);
  CHECK(errorOf([&] { nn::generate(model, 1, other, {}, 0); }).kind() ==
        bt::ErrorKind::badArgument);
  int calls = 0;
  CHECK_THROWS_AS(nn::generate(model, 9, other, {}, 1,
                               [&] {
                                 if (++calls == 3) throw std::runtime_error("enough");
                               }),
                  std::runtime_error);
  CHECK(calls == 3);

  model.tape().values()[0] = std::numeric_limits<double>::quiet_NaN(); // of the row of index 0
  CHECK(std::string(errorOf([&] { textOf(model, 1, 1); }).what()) ==
        "generate: the model's logits are not finite");
  CHECK(model.tape().size() == model.numParameters());
}

TEST_CASE_TEMPLATE("a CharMLP writes", T, float, double) {
  check(nn::CharMLP<T>({.hidden = 4, .vocab = 6, .embed = 3, .context = 4, .seed = 1}));
}

TEST_CASE_TEMPLATE("a GPT writes", T, float, double) {
  check(nn::GPT<T>({.vocab = 6, .context = 4, .dModel = 6, .layers = 1, .heads = 2, .seed = 1}));
}

TEST_CASE("a CharMLP does not look behind the end of a word") {
  nn::CharMLP<double> model({.hidden = 4, .vocab = 6, .embed = 3, .context = 4, .seed = 1});
  CHECK(textOf(model, 9, 3, {1, 2, 0, 5}) == textOf(model, 9, 3, {5}));
  CHECK(textOf(model, 9, 3, {1, 2, 3, 4, 5}) == textOf(model, 9, 3, {2, 3, 4, 5}));
}

} // namespace
