// burtorch/nn/generate.hpp — text from a model: one index after the other, each drawn from its logits
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/nn/models.hpp>
#include <burtorch/base/random.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

BURTORCH_BEGIN_NAMESPACE

namespace detail {

// What a CharMLP sees: at most the last `context` indices since the last 0, which ends a word, and
// zeros before them.
template <class T, class... O>
auto nextLogits(nn::CharMLP<T, O...>& model, std::span<const std::int64_t> text) {
  const auto context = static_cast<std::ptrdiff_t>(model.inputsPerSample());
  std::vector<std::int64_t> seen(model.inputsPerSample());
  const auto word = std::find(text.rbegin(), text.rend(), 0).base();
  const auto first = std::max(word, text.end() - std::min(context, text.end() - text.begin()));
  std::copy(first, text.end(), seen.end() - (text.end() - first));
  return model.logits(std::span<const std::int64_t>(seen));
}

// What a GPT sees: the last `context` indices, or a 0 where there are none yet.
template <class T, class... O>
auto nextLogits(nn::GPT<T, O...>& model, std::span<const std::int64_t> text) {
  static constexpr std::int64_t start[] = {0};
  if (text.empty()) text = start;
  const std::size_t length = std::min(text.size(), model.inputsPerSample());
  const auto all = model.logits(text.last(length), ParameterGradients::accumulate, length);
  return all.row(length - 1);
}

} // namespace detail

namespace nn {

// Continues a text by n indices. Logits are divided by the temperature: below 1 the likely becomes
// likelier. `between` is called after each; it may throw.
template <class Model>
std::vector<std::int64_t> generate(Model& model, std::size_t n, Random& random,
                                   std::vector<std::int64_t> text = {}, double temperature = 1,
                                   const std::function<void()>& between = {}) {
  if (!(temperature > 0))
    detail::fail(ErrorKind::badArgument, "generate: the temperature must be positive");
  detail::demandBelow(std::span<const std::int64_t>(text), model.config().vocab, "generate: index");
  std::vector<double> weights(model.config().vocab);
  const std::size_t given = text.size();
  for (std::size_t i = 0; i < n; ++i) {
    const auto mark = model.tape().mark();
    const auto logits = detail::nextLogits(model, text);
    const double most = static_cast<double>(std::ranges::max(logits.data()));
    double sum = 0;
    std::ranges::transform(logits.data(), weights.begin(), [&](const auto& logit) {
      const double weight = std::exp((static_cast<double>(logit) - most) / temperature);
      sum += weight;
      return weight;
    });
    model.tape().rewind(mark);
    if (!std::isfinite(sum)) // the largest is infinite, or one of them is NaN
      detail::fail(ErrorKind::badArgument, "generate: the model's logits are not finite");
    double left = random.uniform() * sum;
    std::size_t chosen = 0;
    while (chosen + 1 < weights.size() && !(left < weights[chosen])) left -= weights[chosen++];
    text.push_back(static_cast<std::int64_t>(chosen));
    if (between) between();
  }
  text.erase(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(given));
  return text;
}

} // namespace nn

BURTORCH_END_NAMESPACE
