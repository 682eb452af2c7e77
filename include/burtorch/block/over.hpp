// burtorch/block/over.hpp — reductions of the table along one axis of a view
// SPDX-License-Identifier: MIT
//
// Shapes: x is outer × n × inner numbers, row by row; the result is outer × inner. inner is 1 where rows
// are reduced. Axes that stand next to each other are one axis here; others are brought together first
// (strided.hpp).
#pragma once

#include <burtorch/block/describe.hpp>
#include <burtorch/kernel/vector.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

BURTORCH_BEGIN_NAMESPACE

namespace kernel {

// Every inner-th of n numbers: one number, or the lanes of some neighbours, as `read` takes them.
template <class T, class Read> struct Column {
  const T* first;
  std::size_t inner, n;
  const Read& read;
  auto operator[](std::size_t j) const { return read(first + j * inner); }
  std::size_t size() const { return n; }
};
template <class T, class Read>
Column(const T*, std::size_t, std::size_t, const Read&) -> Column<T, Read>;

template <class T> struct ReadOne {
  T operator()(const T* at) const { return *at; }
};

} // namespace kernel

namespace block {

// What all of them share. Parameters: n, inner.
template <class Own> struct AlongAxis {
  template <class Frame>
  static bool keepsSamples(const Frame& f, std::size_t view, std::size_t samples) {
    const std::size_t outer = f.description.viewSize(view) / (f.parameter(0) * f.parameter(1));
    return outer % samples == 0;
  }
  template <class Parts> static auto expanded(const Parts& p) {
    const auto& x = p.views[0];
    const std::size_t n = p.parameters[0], inner = p.parameters[1];
    return rowOf(p.results, [&](std::size_t i) {
      const std::size_t first = i / inner * n * inner + i % inner;
      return Own::of(rowOf(n, [&](std::size_t j) { return x[first + j * inner]; }));
    });
  }
  template <class Parts> static void record(const Parts& p) {
    p.demand(p.views.size() == 1 && p.parameters.size() == 2);
    const std::size_t part = detail::sizeProduct(p.parameters[0], p.parameters[1]);
    p.demand(part != 0 && p.views[0].size() % part == 0);
    p.demandSizes(p.views[0].size() / p.parameters[0],
                  Own::keeps ? p.views[0].size() / p.parameters[0] : 0);
    Own::recordAnew(p.views[0], p.parameters[0], p.parameters[1]);
  }

protected:
  // visit(x, result, how many results are neighbours): one outer index after the other.
  template <class Frame, class F> static void each(const Frame& f, const F& visit) {
    const std::size_t n = f.parameter(0), inner = f.parameter(1);
    for (std::size_t i = 0; i < f.count / inner; ++i) visit(i * n * inner, i * inner);
  }
};

// A reduction R of the table.
template <class R> struct Over : AlongAxis<Over<R>> {
  static constexpr const char* name = op::Entry<R>::name;
  static constexpr const char* symbol = R::symbol;
  static constexpr bool keeps = false;

  template <class Frame> static void forward(const Frame& f) {
    using T = typename Frame::Scalar;
    const std::size_t n = f.parameter(0), inner = f.parameter(1);
    const T* const x = f.value(0).first;
    T* const y = f.result(1).first;
    Over::each(f, [&](std::size_t from, std::size_t to) {
      if (inner == 1) y[to] = R::forward(detail::RunOf<T>{x + from, n});
      else
        kernel::eachPack<T>(inner, [&](std::size_t i, const auto& read, const auto& write) {
          write(y + to + i, R::forward(kernel::Column{x + from + i, inner, n, read}));
        });
    });
  }
  template <class Frame> static void pullback(const Frame& f) {
    if (!f.wants(0)) return;
    using T = typename Frame::Scalar;
    const std::size_t n = f.parameter(0), inner = f.parameter(1);
    const T *const x = f.value(0).first, *const y = f.result(1).first;
    const T* const dy = f.adjoint(1).first;
    T* const dx = f.grad(0).first;
    Over::each(f, [&](std::size_t from, std::size_t to) {
      const auto pull = [&](std::size_t i, const auto& read, const auto& write) {
        const auto g = read(dy + to + i);
        R::pullback(kernel::Column{x + from + i, inner, n, read}, read(y + to + i), g,
                    [&](std::size_t j, const auto& gained) {
                      T* const at = dx + from + i + j * inner;
                      if constexpr (R::keepsZero) write(at, read(at) + gained);
                      else write(at, read(at) + unlessZero(g, gained));
                    });
      };
      if (inner != 1) return kernel::eachPack<T>(inner, pull);
      if (isZero(dy[to])) return;
      pull(0, kernel::ReadOne<T>{}, [](T* at, const T& number) { *at = number; });
    });
  }

  template <class Row> static auto of(const Row& x) { return apply<R>(x); }
  template <AnyView V> static void recordAnew(const V& x, std::size_t n, std::size_t inner) {
    reduceOver<R>(x, n, inner);
  }
};

// log Σ eˣ. Keeps what was subtracted before: the largest, or 0 where that is infinite.
struct LogSumExp : AlongAxis<LogSumExp> {
  static constexpr const char* name = "logSumExp";
  static constexpr const char* symbol = "logsumexp";
  static constexpr bool keeps = true;

  template <class Frame> static void forward(const Frame& f) {
    using T = typename Frame::Scalar;
    const std::size_t n = f.parameter(0), inner = f.parameter(1);
    const T* const x = f.value(0).first;
    T *const y = f.result(1).first, *const most = f.kept;
    each(f, [&](std::size_t from, std::size_t to) {
      kernel::eachPack<T>(inner, [&](std::size_t i, const auto& read, const auto& write) {
        write(most + to + i, op::MaxVarying::forward(kernel::Column{x + from + i, inner, n, read}));
      });
      for (std::size_t i = to; i < to + inner; ++i)
        if (!(most[i] - most[i] == T(0))) most[i] = T(0);
      if (inner == 1) {
        y[to] = kernel::sumOfEach<T>(n, [&](std::size_t j, const auto& read, const auto&) {
          return op::Exp::forward(read(x + from + j) - kernel::fill(most[to]));
        });
      } else {
        kernel::eachPack<T>(inner, [&](std::size_t i, const auto& read, const auto& write) {
          auto sum = kernel::fill(T(0));
          for (std::size_t j = 0; j < n; ++j)
            sum = sum + op::Exp::forward(read(x + from + i + j * inner) - read(most + to + i));
          write(y + to + i, sum);
        });
      }
    });
    kernel::eachPack<T>(f.count, [&](std::size_t i, const auto& read, const auto& write) {
      write(y + i, op::Log::forward(read(y + i)) + read(most + i));
    });
  }
  template <class Frame> static void pullback(const Frame& f) { // softmax
    if (!f.wants(0)) return;
    using T = typename Frame::Scalar;
    const std::size_t n = f.parameter(0), inner = f.parameter(1);
    const T *const x = f.value(0).first, *const y = f.result(1).first;
    const T* const dy = f.adjoint(1).first;
    T* const dx = f.grad(0).first;
    each(f, [&](std::size_t from, std::size_t to) {
      if (inner == 1) {
        if (isZero(dy[to])) return;
        const auto g = kernel::fill(dy[to]), z = kernel::fill(y[to]);
        return kernel::eachPack<T>(n, [&](std::size_t j, const auto& read, const auto& write) {
          T* const at = dx + from + j;
          write(at, read(at) + g * op::Exp::forward(read(x + from + j) - z));
        });
      }
      kernel::eachPack<T>(inner, [&](std::size_t i, const auto& read, const auto& write) {
        const auto g = read(dy + to + i), z = read(y + to + i);
        for (std::size_t j = 0; j < n; ++j) {
          const std::size_t at = from + i + j * inner;
          write(dx + at, read(dx + at) + unlessZero(g, g * op::Exp::forward(read(x + at) - z)));
        }
      });
    });
  }

  template <class Row> static auto of(const Row& x) {
    auto most = largestOf(x);
    if (!(most - most == decltype(most)(0))) most = decltype(most)(0);
    return logarithm(sumOf(rowOf(x.size(), [&](std::size_t j) { return exp(x[j] - most); }))) +
           most;
  }
  template <AnyView V> static void recordAnew(const V& x, std::size_t n, std::size_t inner) {
    logSumExp(x, n, inner);
  }
};

using AlongAxes = List<Over<op::AddVarying>, Over<op::MeanVarying>, Over<op::VarianceBiasedVarying>,
                       Over<op::MaxVarying>, Over<op::MinVarying>, LogSumExp>;

} // namespace block

namespace detail {

template <class B, AnyView V> V applyAlong(const V& x, std::size_t n, std::size_t inner) {
  const std::size_t part = sizeProduct(n, inner);
  if (part == 0 || x.size() % part != 0)
    fail(ErrorKind::badArgument, std::string(B::name) + ": " + shapeText(x.rows(), x.cols()) +
                                     " numbers are not parts of " + shapeText(n, inner));
  const std::array parameters{n, inner};
  const std::size_t outer = x.size() / part;
  return applyBlock<B>(outer, inner, B::keeps ? outer * inner : 0, std::span<const V>(&x, 1),
                       std::span<const std::size_t>(parameters));
}

} // namespace detail

// x as outer × n × inner numbers; of the n each time the table's reduction R: outer × inner.
template <class R, AnyView V> V reduceOver(const V& x, std::size_t n, std::size_t inner = 1) {
  return detail::applyAlong<block::Over<R>>(x, n, inner);
}
template <AnyView V> V logSumExp(const V& x, std::size_t n, std::size_t inner = 1) {
  return detail::applyAlong<block::LogSumExp>(x, n, inner);
}

BURTORCH_END_NAMESPACE
