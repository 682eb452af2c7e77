// burtorch/block/recurrent.hpp — lstm, gru: all states of sequences; rows of a view at equal distances
// SPDX-License-Identifier: MIT
//
// Shapes: x is b samples of t steps, b·t × n, sample by sample. wx is gates·h × n, wh gates·h × h, the
// biases gates·h, with PyTorch's order of gates: i f g o of an LSTM, r z n of a GRU. The result has a row for
// each row of x: the state h of a GRU; h and c of an LSTM side by side. So has `initial` for each sample.
#pragma once

#include <burtorch/base/sizes.hpp>
#include <burtorch/block/affine.hpp>
#include <burtorch/block/describe.hpp>
#include <burtorch/kernel/recurrent.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

BURTORCH_BEGIN_NAMESPACE

// What a recurrent block is made of; biases both or none, `initial` or none (zeros).
template <AnyView V> struct RecurrentOperands {
  V x, wx, wh, bx = {}, bh = {}, initial = {};
};

namespace block {

// Views: x, wx, wh, then bx and bh (or none), then the initial states (or none). Parameters: steps; are
// there biases; are there initial states; what becomes of the gradients of weights and biases. Keeps
// kernel::Sequence's space.
template <class Cell> struct Recurrent {
  static constexpr bool isLstm = std::is_same_v<Cell, kernel::LstmCell>;
  static constexpr const char* name = isLstm ? "lstm" : "gru";
  static constexpr const char* symbol = isLstm ? "LSTM" : "GRU";
  static constexpr std::size_t gradients = 3; // the place of that parameter
  template <class Frame> static bool isAssigned(const Frame& f, std::size_t view) {
    return view != 0 && view < 3 + 2 * f.parameter(1);
  }
  template <class Frame> static bool assigns(const Frame& f) {
    return storeOf(f, gradients) == kernel::Store::assign;
  }

  template <class Frame> static void forward(const Frame& f) {
    const bool biased = f.parameter(1) != 0;
    kernel::recurrentForward(
        sizes(f), f.value(0), f.value(1), f.value(2), biased ? f.value(3).first : nullptr,
        biased ? f.value(4).first : nullptr, initial(f), f.result(f.value(0).rows), f.kept);
  }
  template <class Frame> static void pullback(const Frame& f) {
    using T = typename Frame::Scalar;
    const bool biased = f.parameter(1) != 0;
    const auto wanted = [&](std::size_t view) {
      auto gradient = f.grad(view);
      if (!f.wants(view)) gradient.first = nullptr;
      return gradient;
    };
    const std::size_t rows = f.value(0).rows, state = f.views() - 1;
    T* const dbx = biased ? wanted(3).first : nullptr;
    T* const dbh = biased ? wanted(4).first : nullptr;
    T* const dinitial = f.parameter(2) != 0 ? wanted(state).first : nullptr;
    kernel::recurrentBackward(sizes(f), f.value(0), f.value(1), f.value(2), initial(f),
                              f.result(rows), f.adjoint(rows), wanted(0), wanted(1), wanted(2), dbx,
                              dbh, dinitial, f.kept, storeOf(f, gradients));
  }

  template <class Frame>
  static bool keepsSamples(const Frame& f, std::size_t view, std::size_t samples) {
    if (view == 0) return hasWholeRows(f, view, samples * f.parameter(0));
    return f.parameter(2) != 0 && view == f.views() - 1 && hasWholeRows(f, view, samples);
  }

  template <class Parts> static auto expanded(const Parts& p) {
    using X = typename Parts::V::Element;
    using Row = std::vector<X>;
    const auto o = operands(p);
    const std::size_t t = p.parameters[0], h = o.wh.cols();
    Row all;
    for (std::size_t row = 0; row < o.x.rows(); ++row) {
      Row before; // empty: zeros
      if (row % t != 0)
        before.assign(all.end() - static_cast<std::ptrdiff_t>(Cell::states * h), all.end());
      else if (!o.initial.isEmpty())
        for (const auto& each : o.initial.row(row / t)) before.push_back(each);
      const auto x = o.x.row(row);
      const auto a = [&](std::size_t i) {
        return o.bx.isEmpty() ? dot(x, o.wx.row(i)) : dotWithBias(x, o.wx.row(i), o.bx[i]);
      };
      // a + factor·u, of which u may be nothing
      const auto withU = [&](std::size_t i, const X* factor) {
        Row terms;
        if (!before.empty())
          terms.push_back(innerProduct(std::span<const X>(before).first(h), o.wh.row(i)));
        if (!o.bh.isEmpty()) terms.push_back(o.bh[i]);
        X sum = a(i);
        for (const X& each : terms) sum = sum + (factor ? each * *factor : each);
        return sum;
      };
      Row hidden, cell;
      for (std::size_t j = 0; j < h; ++j) {
        if constexpr (isLstm) {
          const X i = sigmoid(withU(j, nullptr)), f = sigmoid(withU(h + j, nullptr)),
                  g = tanh(withU(2 * h + j, nullptr)), out = sigmoid(withU(3 * h + j, nullptr));
          cell.push_back(before.empty() ? i * g : f * before[h + j] + i * g);
          hidden.push_back(out * tanh(cell.back()));
        } else {
          const X r = sigmoid(withU(j, nullptr)), z = sigmoid(withU(h + j, nullptr)),
                  n = tanh(withU(2 * h + j, &r));
          hidden.push_back(before.empty() ? n - z * n : n + z * (before[j] - n));
        }
      }
      all.insert(all.end(), hidden.begin(), hidden.end());
      all.insert(all.end(), cell.begin(), cell.end());
    }
    return all;
  }

  // Why the operands do not fit; empty if they do.
  template <AnyView V>
  static std::string complaint(const RecurrentOperands<V>& o, std::size_t steps) {
    const auto shape = [](const V& v) { return detail::shapeText(v.rows(), v.cols()); };
    const std::size_t h = o.wh.cols(), gates = detail::sizeProduct(Cell::gates, h);
    if (steps == 0 || o.x.rows() % steps != 0)
      return std::to_string(o.x.rows()) + " rows are not sequences of " + std::to_string(steps) +
             " steps";
    if (h == 0 || o.wh.rows() != gates || o.wx.rows() != gates)
      return "weights of " + shape(o.wx) + " and " + shape(o.wh) + " are not those of " +
             std::to_string(Cell::gates) + " gates";
    if (o.x.cols() != o.wx.cols())
      return "the input has " + std::to_string(o.x.cols()) + " columns, the weights are " +
             shape(o.wx);
    if (o.bx.isEmpty() != o.bh.isEmpty()) return "there are two biases or none";
    if (!o.bx.isEmpty() && (o.bx.size() != gates || o.bh.size() != gates))
      return std::to_string(o.bx.size()) + " and " + std::to_string(o.bh.size()) +
             " biases for weights of " + shape(o.wx) + " and " + shape(o.wh);
    if (!o.initial.isEmpty() &&
        (o.initial.rows() != o.x.rows() / steps || o.initial.cols() != Cell::states * h))
      return "initial states of " + shape(o.initial) + ", not of " +
             detail::shapeText(o.x.rows() / steps, Cell::states * h);
    return {};
  }
  // Numbers to keep; too large for any memory if they can't be counted.
  template <AnyView V> static std::size_t space(const RecurrentOperands<V>& o, std::size_t steps) {
    const std::size_t rows = detail::sizeSum(o.x.rows(), o.wh.cols());
    if (detail::sizeProduct(rows, detail::sizeProduct(16, o.wh.cols())) > detail::largestArray)
      return detail::tooLarge;
    return kernel::Sequence<Cell>{o.x.rows() / steps, steps, o.wh.cols()}.space();
  }

  template <class Parts> static void record(const Parts& p) {
    p.demand(p.parameters.size() == 4 && p.parameters[1] <= 1 && p.parameters[2] <= 1);
    p.demandOperands(3 + 2 * p.parameters[1] + p.parameters[2]);
    const auto o = operands(p);
    p.demand(complaint(o, p.parameters[0]).empty());
    p.demandSizes(detail::sizeProduct(o.x.rows(), Cell::states * o.wh.cols()),
                  space(o, p.parameters[0]));
    apply(o, p.parameters[0], parameterGradients(p, gradients));
  }
  template <AnyView V>
  static V apply(const RecurrentOperands<V>& o, std::size_t steps, ParameterGradients how) {
    if (const std::string why = complaint(o, steps); !why.empty())
      detail::fail(ErrorKind::badArgument, std::string(name) + ": " + why);
    const bool biased = !o.bx.isEmpty(), begun = !o.initial.isEmpty();
    std::array<V, 6> views{o.x, o.wx, o.wh, o.bx, o.bh, o.initial};
    if (!biased) views[3] = o.initial;
    const std::array parameters{steps, std::size_t{biased}, std::size_t{begun},
                                static_cast<std::size_t>(how)};
    return applyBlock<Recurrent>(o.x.rows(), Cell::states * o.wh.cols(), space(o, steps),
                                 std::span<const V>(views.data(), 3u + 2u * biased + begun),
                                 std::span<const std::size_t>(parameters));
  }

private:
  template <class Frame> static kernel::Sequence<Cell> sizes(const Frame& f) {
    return {f.value(0).rows / f.parameter(0), f.parameter(0), f.value(2).cols};
  }
  template <class Frame> static const typename Frame::Scalar* initial(const Frame& f) {
    return f.parameter(2) != 0 ? f.value(f.views() - 1).first : nullptr;
  }
  template <class Parts> static auto operands(const Parts& p) {
    using V = typename Parts::V;
    const bool biased = p.parameters[1] != 0;
    return RecurrentOperands<V>{p.views[0],
                                p.views[1],
                                p.views[2],
                                biased ? p.views[3] : V{},
                                biased ? p.views[4] : V{},
                                p.parameters[2] != 0 ? p.views.back() : V{}};
  }
};
using Lstm = Recurrent<kernel::LstmCell>;
using Gru = Recurrent<kernel::GruCell>;

// Views: x. Parameters: the first row, the distance to the next.
struct EveryRow {
  static constexpr const char* name = "everyRow";
  static constexpr const char* symbol = "rows";

  template <class Frame> static void forward(const Frame& f) {
    const auto x = f.value(0);
    const auto y = f.result(f.count / x.cols);
    for (std::size_t i = 0; i < y.rows; ++i) std::copy_n(x.row(place(f, i)), x.cols, y.row(i));
  }
  template <class Frame> static void pullback(const Frame& f) {
    if (!f.wants(0)) return;
    const auto dx = f.grad(0);
    const auto dy = f.adjoint(f.count / dx.cols);
    for (std::size_t i = 0; i < dy.rows; ++i) kernel::add(dy.row(i), dx.row(place(f, i)), dx.cols);
  }

  template <class Frame>
  static bool keepsSamples(const Frame& f, std::size_t view, std::size_t samples) {
    return hasWholeRows(f, view, samples * f.parameter(1));
  }

  // No operation at all: the Values of x.
  template <class Parts> static auto expanded(const Parts& p) {
    std::vector<typename Parts::V::Element> y;
    for (std::size_t i = p.parameters[0]; i < p.views[0].rows(); i += p.parameters[1])
      for (const auto& each : p.views[0].row(i)) y.push_back(each);
    return y;
  }
  template <class Parts> static void record(const Parts& p) {
    p.demandOperands(1, 2);
    const auto& x = p.views[0];
    p.demand(fits(x, p.parameters[0], p.parameters[1]));
    p.demandSizes(detail::sizeProduct(x.rows() / p.parameters[1], x.cols()));
    everyRow(x, p.parameters[0], p.parameters[1]);
  }
  template <AnyView V> static bool fits(const V& x, std::size_t first, std::size_t distance) {
    return first < distance && x.rows() % distance == 0;
  }

private:
  template <class Frame> static std::size_t place(const Frame& f, std::size_t i) {
    return f.parameter(0) + i * f.parameter(1);
  }
};

} // namespace block

// Row `first` of each `distance` rows, of which there is a whole number.
template <AnyView V> V everyRow(const V& x, std::size_t first, std::size_t distance) {
  if (!block::EveryRow::fits(x, first, distance))
    detail::fail(ErrorKind::badArgument, "everyRow: row " + std::to_string(first) + " of each " +
                                             std::to_string(distance) + " rows of " +
                                             detail::shapeText(x.rows(), x.cols()));
  const std::array parameters{first, distance};
  return applyBlock<block::EveryRow>(x.rows() / distance, x.cols(), 0, std::span<const V>(&x, 1),
                                     std::span<const std::size_t>(parameters));
}

template <AnyView V>
V lstm(const RecurrentOperands<V>& operands, std::size_t steps,
       ParameterGradients gradients = ParameterGradients::accumulate) {
  return block::Lstm::apply(operands, steps, gradients);
}
template <AnyView V>
V gru(const RecurrentOperands<V>& operands, std::size_t steps,
      ParameterGradients gradients = ParameterGradients::accumulate) {
  return block::Gru::apply(operands, steps, gradients);
}

BURTORCH_END_NAMESPACE
