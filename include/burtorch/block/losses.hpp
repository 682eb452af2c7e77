// burtorch/block/losses.hpp — what regression and classification pay for each number
// SPDX-License-Identifier: MIT
//
// Each is one pass over predictions and targets, which have as many numbers; a mean or a sum follows.
#pragma once

#include <burtorch/block/describe.hpp>
#include <burtorch/kernel/map.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>

BURTORCH_BEGIN_NAMESPACE

namespace block {

// L says what one number costs, as an operation of the table would. Views: predictions, targets.
// Keeps what L needs to know.
template <class L> struct Loss {
  static constexpr const char* name = L::name;
  static constexpr const char* symbol = L::symbol;

  template <class Frame> static void forward(const Frame& f) {
    using T = typename Frame::Scalar;
    const T *const x = f.value(0).first, *const t = f.value(1).first;
    T* const y = f.result(1).first;
    const auto c = constantOf(f);
    kernel::eachPack<T>(f.count, [&](std::size_t i, const auto& read, const auto& write) {
      write(y + i, L::forward(read(x + i), read(t + i), c));
    });
  }
  template <class Frame> static void pullback(const Frame& f) {
    if (f.wants(0)) pull(f, 0, [](const auto&... all) { return L::pullbackX(all...); });
    if (f.wants(1)) pull(f, 1, [](const auto&... all) { return L::pullbackY(all...); });
  }

  template <class Frame>
  static bool keepsSamples(const Frame& f, std::size_t, std::size_t samples) {
    return f.count % samples == 0;
  }

  template <class Parts> static auto expanded(const Parts& p) {
    return rowOf(p.results,
                 [&](std::size_t i) { return L::expanded(p.views[0][i], p.views[1][i], p.kept); });
  }
  template <class Parts> static void record(const Parts& p) {
    p.demandOperands(2);
    p.demandSizes(p.views[0].size(), L::constants);
    lossOf<L>(p.views[0], p.views[1], std::span<const typename Parts::V::Scalar>(p.kept));
  }

private:
  template <class Frame> static auto constantOf(const Frame& f) {
    using T = typename Frame::Scalar;
    return kernel::fill(L::constants == 0 ? T(0) : f.kept[0]);
  }
  template <class Frame, class Pull>
  static void pull(const Frame& f, std::size_t view, const Pull& gained) {
    using T = typename Frame::Scalar;
    const T *const x = f.value(0).first, *const t = f.value(1).first;
    const T* const dy = f.adjoint(1).first;
    T* const to = f.grad(view).first;
    const auto c = constantOf(f);
    kernel::eachPack<T>(f.count, [&](std::size_t i, const auto& read, const auto& write) {
      const auto g = read(dy + i);
      write(to + i, read(to + i) + kernel::detail::given<Kinked, T>(
                                       g, gained(read(x + i), read(t + i), c, g)));
    });
  }
  struct Kinked {
    static constexpr bool isLinear = false;
  };
};

struct SquaredError {
  static constexpr const char* name = "squaredError";
  static constexpr const char* symbol = "(x-y)²";
  static constexpr std::size_t constants = 0;
  template <class T> static T forward(const T& x, const T& t, const T&) {
    return (x - t) * (x - t);
  }
  template <class T> static T pullbackX(const T& x, const T& t, const T&, const T& g) {
    return (g + g) * (x - t);
  }
  template <class T> static T pullbackY(const T& x, const T& t, const T& c, const T& g) {
    return -pullbackX(x, t, c, g);
  }
  template <class X, class Kept> static X expanded(const X& x, const X& t, const Kept&) {
    return sqr(x - t);
  }
};

// ½d² for |d| ≤ δ, else δ·(|d| − ½δ): with c = d between −δ and δ, that is c·(d − ½c), whose derivative
// is c. Keeps δ.
struct HuberError {
  static constexpr const char* name = "huberError";
  static constexpr const char* symbol = "huber";
  static constexpr std::size_t constants = 1;
  template <class T> static T near(const T& d, const T& delta) {
    return op::Clamp::forward(d, -delta, delta);
  }
  template <class T> static T forward(const T& x, const T& t, const T& delta) {
    const T d = x - t, c = near(d, delta);
    return c * (d - c * T(0.5));
  }
  template <class T> static T pullbackX(const T& x, const T& t, const T& delta, const T& g) {
    return g * near(x - t, delta);
  }
  template <class T> static T pullbackY(const T& x, const T& t, const T& delta, const T& g) {
    return -pullbackX(x, t, delta, g);
  }
  template <class X, class Kept> static X expanded(const X& x, const X& t, const Kept& kept) {
    const X d = x - t, c = clamp(d, -kept[0], kept[0]);
    return c * (d - c * number<X>(0.5));
  }
};

// −t·log σ(x) − (1 − t)·log(1 − σ(x)) = softplus(x) − x·t
struct LogisticError {
  static constexpr const char* name = "logisticError";
  static constexpr const char* symbol = "bce";
  static constexpr std::size_t constants = 0;
  template <class T> static T forward(const T& x, const T& t, const T&) {
    return op::Softplus::forward(x) - x * t;
  }
  template <class T> static T pullbackX(const T& x, const T& t, const T&, const T& g) {
    return g * (op::Sigmoid::forward(x) - t);
  }
  template <class T> static T pullbackY(const T& x, const T&, const T&, const T& g) {
    return -g * x;
  }
  template <class X, class Kept> static X expanded(const X& x, const X& t, const Kept&) {
    return softplus(x) - x * t;
  }
};

using Losses = List<Loss<SquaredError>, Loss<HuberError>, Loss<LogisticError>>;

} // namespace block

// L of each prediction and its target.
template <class L, AnyView V>
V lossOf(const V& x, const V& targets, std::span<const typename V::Scalar> constants = {}) {
  if (x.size() != targets.size())
    detail::fail(ErrorKind::badArgument, std::string(L::name) + ": predictions of " +
                                             detail::shapeText(x.rows(), x.cols()) +
                                             " and targets of " +
                                             detail::shapeText(targets.rows(), targets.cols()));
  const std::array both{x, targets};
  return applyBlock<block::Loss<L>>(x.rows(), x.cols(), L::constants, std::span<const V>(both), {},
                                    constants);
}
template <AnyView V> V squaredError(const V& x, const V& targets) {
  return lossOf<block::SquaredError>(x, targets);
}
template <AnyView V>
V huberError(const V& x, const V& targets,
             std::type_identity_t<typename V::Scalar> delta = typename V::Scalar(1)) {
  if (!(delta > typename V::Scalar(0)))
    detail::fail(ErrorKind::badArgument, "huberError: delta is positive");
  return lossOf<block::HuberError>(x, targets, std::span<const typename V::Scalar>(&delta, 1));
}
template <AnyView V> V logisticError(const V& x, const V& targets) {
  return lossOf<block::LogisticError>(x, targets);
}

BURTORCH_END_NAMESPACE
