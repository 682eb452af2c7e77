// burtorch/nn/models.hpp — the paper's two models of text: CharMLP and GPT
// SPDX-License-Identifier: MIT
//
// A model owns its tape, with the parameters as its first nodes. losses(x, y) computes one loss per target
// on top of them; oracle.hpp runs that over a batch. parameters(visit) names every parameter as
// the well-known public scripts do, in the order on the tape.
#pragma once

#include <burtorch/nn/layers.hpp>
#include <burtorch/base/random.hpp>
#include <burtorch/tape/tape.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

BURTORCH_BEGIN_NAMESPACE

namespace detail {

// A model's configuration, if all of its sizes are positive.
template <class Config>
const Config& demandPositive(const Config& config,
                             std::initializer_list<std::pair<const char*, std::size_t>> sizes) {
  for (const auto& [name, size] : sizes)
    if (size == 0) fail(ErrorKind::badArgument, std::string(name) + " must be at least 1: 0");
  return config;
}

} // namespace detail

namespace nn {

// Of a model's first parameters. Without one they are not drawn: for parameters that are then loaded.
using Seed = std::optional<std::uint64_t>;
inline Random seeded(const Seed& seed) { return seed ? Random(*seed) : Random::idle(); }

// The next of `vocab` characters from `context` characters: embeddings side by side, one hidden layer
// with tanh, softmax.
template <class T, class... O> class CharMLP {
public:
  using Scalar = T;
  using V = View<T, O...>;
  struct Config {
    std::size_t hidden = 64, vocab = 27, embed = 64, context = 16;
    Seed seed = 0;
  };

  static constexpr bool targetPerInput = false; // one target per sample

  explicit CharMLP(const Config& config)
      : config_(detail::demandPositive(config, {{"hidden", config.hidden},
                                                {"vocab", config.vocab},
                                                {"embed", config.embed},
                                                {"context", config.context}})),
        random_(seeded(config.seed)), table_(tape_, config.vocab, config.embed, random_),
        hidden_(tape_, detail::demandProduct(config.context, config.embed), config.hidden, random_),
        output_(tape_, config.hidden, config.vocab, random_), parameters_(tape_.size()) {}

  const Config& config() const { return config_; }
  Tape<T, O...>& tape() { return tape_; }
  std::size_t numParameters() const { return parameters_; }
  std::size_t inputsPerSample() const { return config_.context; }
  std::size_t targetsPerSample() const { return 1; }

  // x: context indices per sample. One row of logits per sample.
  template <ContiguousIntegers X>
  V logits(const X& x, ParameterGradients gradients = ParameterGradients::accumulate) const {
    const V h = gatherAffine(table_.weight, x, hidden_.weight, hidden_.bias, gradients);
    return output_(tanh(h), gradients);
  }
  template <ContiguousIntegers X, ContiguousIntegers Y>
  V losses(const X& x, const Y& y,
           ParameterGradients gradients = ParameterGradients::accumulate) const {
    return crossEntropy(logits(x, gradients), y);
  }

  // With assigned gradients, these still have to be cleared: only some of their rows occur.
  template <class F> void tables(const F& visit) const { visit(table_.weight); }

  template <class F> void parameters(const F& visit) const {
    table_.parameters(visit, "wte.");
    hidden_.parameters(visit, "mlp.0.");
    output_.parameters(visit, "mlp.2.");
  }

private:
  Config config_;
  Random random_;
  Tape<T, O...> tape_;
  Embedding<V> table_;
  Linear<V> hidden_, output_;
  std::size_t parameters_;
};

// A decoder-only transformer: token and position embeddings, pre-norm blocks, no norm at the end.
template <class T, class... O> class GPT {
public:
  using Scalar = T;
  using V = View<T, O...>;
  struct Config {
    std::size_t vocab = 65, context = 8, dModel = 24, layers = 6, heads = 6;
    Seed seed = 0;
  };

  static constexpr bool targetPerInput = true;

  explicit GPT(const Config& config)
      : config_(detail::demandPositive(config, {{"vocab", config.vocab},
                                                {"context", config.context},
                                                {"dModel", config.dModel},
                                                {"layers", config.layers},
                                                {"heads", config.heads}})),
        random_(seeded(config.seed)), tokens_(tape_, config.vocab, config.dModel, random_),
        positions_(tape_, config.context, config.dModel, random_) {
    for (std::size_t i = 0; i < config.layers; ++i)
      blocks_.emplace_back(tape_, config.dModel, config.heads, random_);
    output_ = Linear<V>(tape_, config.dModel, config.vocab, random_);
    parameters_ = tape_.size();
  }

  const Config& config() const { return config_; }
  Tape<T, O...>& tape() { return tape_; }
  std::size_t numParameters() const { return parameters_; }
  std::size_t inputsPerSample() const { return config_.context; }
  std::size_t targetsPerSample() const { return config_.context; }

  // x: sequences of `length` indices (at most the context, 0: the context). One row of logits each.
  template <ContiguousIntegers X>
  V logits(const X& x, ParameterGradients gradients = ParameterGradients::accumulate,
           std::size_t length = 0) const {
    if (length == 0) length = config_.context;
    const V at = positions_.weight.slice(0, length);
    V h = addToEach(tokens_(x), at);
    for (const auto& block : blocks_) h = block(h, length, gradients);
    return output_(h, gradients);
  }
  template <ContiguousIntegers X, ContiguousIntegers Y>
  V losses(const X& x, const Y& y,
           ParameterGradients gradients = ParameterGradients::accumulate) const {
    return crossEntropy(logits(x, gradients), y);
  }

  template <class F> void tables(const F& visit) const {
    visit(tokens_.weight);
    visit(positions_.weight);
  }

  template <class F> void parameters(const F& visit) const {
    tokens_.parameters(visit, "token_embedding_table.");
    positions_.parameters(visit, "position_embedding_table.");
    for (std::size_t i = 0; i < blocks_.size(); ++i)
      blocks_[i].parameters(visit, "blocks." + std::to_string(i) + ".");
    output_.parameters(visit, "lm_head.");
  }

private:
  // Sequences below each other: the positions' rows are added to each of them.
  V addToEach(const V& sequences, const V& positions) const {
    const std::size_t n = sequences.size() / positions.size();
    return (sequences.reshape(n, positions.size()) + positions.reshape(1, positions.size()))
        .reshape(sequences.rows(), sequences.cols());
  }

  Config config_;
  Random random_;
  Tape<T, O...> tape_;
  Embedding<V> tokens_, positions_;
  std::vector<TransformerBlock<V>> blocks_;
  Linear<V> output_;
  std::size_t parameters_ = 0;
};

} // namespace nn

BURTORCH_END_NAMESPACE
