// benchmarks/cpp/burtorch_models.cpp — CharMLP and GPT of this library: loss and gradient of a batch
// SPDX-License-Identifier: MIT
#include "loop.hpp"

#include <burtorch/nn/oracle.hpp>

#include <memory>
#include <span>

namespace {

namespace nn = burtorch::nn;
using loop::Outputs, loop::Parameters, loop::Run;

template <class Model>
Run gradients(typename Model::Config config, const Parameters& parameters, std::size_t microBatch) {
  const std::size_t b = parameters.count("b", 1);
  auto oracle = std::make_shared<nn::Oracle<Model>>(config);
  for (std::size_t i = 0; i < oracle->values().size(); ++i)
    oracle->values()[i] = static_cast<float>(0.2 * loop::uniform(i, 1) - 0.1);
  const auto ids = [&](std::size_t count, std::uint32_t seed) {
    std::vector<std::int64_t> found(count);
    for (std::size_t i = 0; i < count; ++i)
      found[i] =
          static_cast<std::int64_t>(loop::uniform(i, seed) * static_cast<double>(config.vocab));
    return found;
  };
  const auto x = ids(b * oracle->model().inputsPerSample(), 2);
  const auto y = ids(b * oracle->model().targetsPerSample(), 3);
  const nn::BatchOptions options{.microBatch = std::min(b, parameters.count("micro", microBatch)),
                                 .threads = parameters.count("threads", 1)};
  const auto loss = std::make_shared<double>();
  return {[=](std::size_t count) {
            for (std::size_t i = 0; i < count; ++i)
              *loss = oracle->lossAndGradient(std::span(x), std::span(y), options);
          },
          [=] {
            double sum = 0, squares = 0;
            for (const double g : oracle->gradients()) {
              sum += std::abs(g);
              squares += g * g;
            }
            return Outputs{*loss, sum, std::sqrt(squares)};
          }};
}

} // namespace

int main(int argc, char** argv) {
  return loop::main(argc, argv,
                    {{"mlp", "C++",
                      [](const Parameters& parameters) {
                        return gradients<nn::CharMLP<float>>({.hidden = parameters.count("e", 64)},
                                                             parameters, 64);
                      }},
                     {"gpt", "C++", [](const Parameters& parameters) {
                        return gradients<nn::GPT<float>>({}, parameters, 8);
                      }}});
}
