// burtorch/block/gather.hpp — rows of a table by index, alone or straight into a linear layer
// SPDX-License-Identifier: MIT
//
// Shapes: the table is v × d. ids has p indices for each of m samples; the rows they name, side by side,
// are an m × p·d matrix x. gather gives x; gatherAffine gives x·wᵀ + b without making x.
//
// In a batch the same row comes up again and again at the same position. gatherAffine multiplies each
// row that occurs at a position by that position's slice of w once, and adds the product
// wherever it occurs; backward, adjoints are added first and multiplied once. With m samples and a
// table of 27 letters that is at most 27 rows of products instead of m, and the same sums.
#pragma once

#include <burtorch/block/affine.hpp>
#include <burtorch/block/describe.hpp>
#include <burtorch/kernel/vector.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <ranges>
#include <span>
#include <string>
#include <vector>

BURTORCH_BEGIN_NAMESPACE

namespace block {

// Views: table. Parameters: ids.
struct Gather {
  static constexpr const char* name = "gather";
  static constexpr const char* symbol = "gather";
  static constexpr const char* meaning =
      "the rows of a table that ids name; with several ids to a sample, these rows side by side";

  template <class Frame> static void forward(const Frame& f) {
    const auto table = f.value(0);
    auto* out = f.result(1).first;
    for (std::size_t i = 0; i < f.count / table.cols; ++i, out += table.cols)
      std::copy_n(table.row(f.parameter(i)), table.cols, out);
  }
  template <class Frame> static void pullback(const Frame& f) {
    if (!f.wants(0)) return;
    const auto gradient = f.grad(0);
    const auto* adjoint = f.adjoint(1).first;
    for (std::size_t i = 0; i < f.count / gradient.cols; ++i, adjoint += gradient.cols)
      kernel::add(adjoint, gradient.row(f.parameter(i)), gradient.cols);
  }

  // No operation at all: the Values of the table.
  template <class Parts> static auto expanded(const Parts& p) {
    return rows(p.views[0], p.parametersFrom(0));
  }
  template <AnyView V> static auto rows(const V& table, std::span<const std::size_t> ids) {
    std::vector<typename V::Element> y;
    for (const std::size_t id : ids)
      for (const auto& each : table.row(id)) y.push_back(each);
    return y;
  }
  template <class Parts> static void record(const Parts& p) {
    p.demandOperands(1, 1);
    p.demandSizes(detail::sizeProduct(p.parameters.size(), p.views[0].cols()));
    gather(p.views[0], p.parameters);
  }
};

// Views: table, w (n × p·d), b (or none). Parameters: has it a bias; what becomes of the gradients of w
// and b; samples; ids, sample by sample; and space to work in, see Shape.
struct GatherAffine {
  static constexpr const char* name = "gatherAffine";
  static constexpr const char* symbol = "gather, affine";
  static constexpr const char* meaning = "gather, then affine, without a copy of the rows";
  static constexpr std::size_t first = 3; // parameters before the ids
  static constexpr std::size_t gradients = 1;
  template <class Frame> static bool isAssigned(const Frame&, std::size_t view) {
    return view != 0;
  }
  template <class Frame> static bool assigns(const Frame& f) {
    return storeOf(f, gradients) == kernel::Store::assign;
  }

  // Space beside the ids (indices) and kept (numbers) for the given shape.
  struct Space {
    std::size_t indices, numbers;
  };
  static Space spaceFor(std::size_t v, std::size_t d, std::size_t positions, std::size_t samples) {
    if (samples == 1) return {0, 2 * positions * d};
    // A few samples need no indices, but the space grows at most as their number does: two of them tell
    // how much any number needs (Oracle::reserve).
    const std::size_t most = samples <= few ? samples : std::min(v, samples);
    return {samples * positions + v + positions + positions * most,
            2 * positions * most * d + most * block};
  }

  template <class Frame> static void forward(const Frame& f) {
    const Shape s(f);
    const auto y = f.result(s.samples);
    const auto* const bias = s.hasBias ? f.value(2).first : nullptr;
    if (s.samples <= few) {
      for (std::size_t i = 0; i < s.samples * s.positions; ++i)
        std::copy_n(f.value(0).row(s.ids[i]), s.d, f.kept + i * s.d);
      return kernel::affineForward(constant(s.input()), f.value(1), bias, y);
    }
    s.findOccurring(f.value(0));
    for (std::size_t i = 0; i < s.samples; ++i) {
      if (bias != nullptr) std::copy_n(bias, s.n, y.row(i));
      else std::fill_n(y.row(i), s.n, typename Shape<Frame>::T(0));
    }
    s.eachPart([&](std::size_t at, std::size_t n, std::size_t p) {
      const auto products = s.products(p, n);
      kernel::multiplyNT(constant(s.rows(p)), part(f.value(1), at, n, p * s.d, s.d), products,
                         kernel::Store::assign);
      for (std::size_t i = 0; i < s.samples; ++i)
        kernel::add(constant(products).row(s.place(i, p)), y.row(i) + at, n);
    });
  }

  template <class Frame> static void pullback(const Frame& f) {
    const Shape s(f);
    const auto dy = f.adjoint(s.samples);
    const kernel::Store store = storeOf(f, 1);
    using T = typename Shape<Frame>::T;
    const auto& w = f.value(1);
    auto dw = f.grad(1);
    if (!f.wants(1)) dw.first = nullptr;
    T* const db = s.hasBias && f.wants(2) ? f.grad(2).first : nullptr;
    if (s.samples <= few) {
      auto dx = s.inputGradient();
      std::fill_n(dx.first, dx.rows * dx.cols, T(0));
      if (!f.wants(0)) dx.first = nullptr;
      kernel::affineBackward(constant(s.input()), w, dy, dx, dw, db, store);
      for (std::size_t i = 0; i < s.samples * s.positions && f.wants(0); ++i)
        kernel::add(constant(dx).first + i * s.d, f.grad(0).row(s.ids[i]), s.d);
      return;
    }
    if (db != nullptr) {
      if (store == kernel::Store::assign) std::fill_n(db, s.n, T(0));
      for (std::size_t i = 0; i < s.samples; ++i) kernel::add(dy.row(i), db, s.n);
    }
    s.eachPart([&](std::size_t at, std::size_t n, std::size_t p) {
      const auto sums = s.products(p, n);
      std::fill_n(sums.first, sums.rows * sums.cols, T(0));
      for (std::size_t i = 0; i < s.samples; ++i)
        kernel::add(dy.row(i) + at, sums.row(s.place(i, p)), n);
      if (dw.first != nullptr)
        kernel::multiplyTN(constant(sums), constant(s.rows(p)), part(dw, at, n, p * s.d, s.d),
                           store);
      if (f.wants(0))
        kernel::multiplyNN(constant(sums), part(w, at, n, p * s.d, s.d), s.rowGradients(p),
                           at == 0 ? kernel::Store::assign : kernel::Store::add);
    });
    for (std::size_t p = 0; p < s.positions && f.wants(0); ++p)
      for (std::size_t k = 0; k < s.count(p); ++k)
        kernel::add(constant(s.rowGradients(p)).row(k), f.grad(0).row(s.occurringId(p, k)), s.d);
  }

  template <class Parts> static auto expanded(const Parts& p) {
    const auto &table = p.views[0], &w = p.views[1];
    const std::size_t positions = w.cols() / table.cols();
    const auto ids = p.parametersFrom(first);
    std::vector<typename Parts::V::Element> y;
    for (std::size_t i = 0; i < ids.size(); i += positions)
      Affine::appendProducts(y, Gather::rows(table, ids.subspan(i, positions)), w, bias(p));
    return y;
  }
  template <class Frame> static std::size_t stored(const Frame& f) { // without the space
    return first + f.parameter(2) * (f.value(1).cols / f.value(0).cols);
  }
  template <class Parts> static void record(const Parts& p) {
    p.demand(p.parameters.size() > first && p.parameters[0] <= 1);
    p.demandOperands(2 + p.parameters[0]);
    const auto &table = p.views[0], &w = p.views[1];
    p.demand(table.size() != 0 && w.size() != 0);
    const auto ids = p.parametersFrom(first);
    const std::size_t samples = p.parameters[2], positions = w.cols() / table.cols();
    p.demand(detail::sizeProduct(samples, positions) == ids.size());
    p.demandSizes(detail::sizeProduct(samples, w.rows()),
                  spaceFor(table.rows(), table.cols(), positions, samples).numbers);
    gatherAffine(table, ids, w, bias(p), parameterGradients(p, 1));
  }

private:
  template <class Parts> static auto bias(const Parts& p) {
    return p.parameters[0] != 0 ? p.views[2] : typename Parts::V{};
  }

  static constexpr std::size_t few = 8;    // samples that hardly share a row at a position
  static constexpr std::size_t block = 32; // rows of w at a time: they and their gradients fit L2

  template <class T> static kernel::Matrix<const T> constant(const kernel::Matrix<T>& m) {
    return m;
  }
  template <class T>
  static kernel::Matrix<T> part(const kernel::Matrix<T>& m, std::size_t row, std::size_t rows,
                                std::size_t col, std::size_t cols) {
    return {m.row(row) + col, rows, cols, m.stride};
  }

  // The shapes, and which rows of the table occur at which position. That is found in forward and used in
  // both passes:
  //   indices  place[samples][positions]: among those that occur there; mark[v]: 0 between uses;
  //            count[positions]; occurring[positions][most]: their ids
  //   numbers  rows[positions][most][d]: copies; their gradients, of the same size; products[most][block]
  // A few samples are copied to rows of p·d numbers instead, with their gradients behind them.
  template <class Frame> struct Shape {
    using T = std::remove_reference_t<decltype(*std::declval<Frame>().values)>;
    using Index =
        std::remove_reference_t<decltype(*std::declval<Frame>().description.parameters())>;
    std::size_t v, d, n, positions, samples, most;
    bool hasBias;
    T* kept;
    Index* ids;

    explicit Shape(const Frame& f)
        : v(f.value(0).rows), d(f.value(0).cols), n(f.value(1).rows),
          positions(f.value(1).cols / f.value(0).cols), samples(f.parameter(2)),
          most(std::min(v, samples)), hasBias(f.parameter(0) != 0), kept(f.kept),
          ids(f.description.parameters() + first) {}

    std::size_t id(std::size_t i, std::size_t p) const { return ids[i * positions + p]; }
    Index& place(std::size_t i, std::size_t p) const { return ids[(samples + i) * positions + p]; }
    Index* marks() const { return ids + 2 * samples * positions; }
    Index& count(std::size_t p) const { return marks()[v + p]; }
    Index& occurringId(std::size_t p, std::size_t k) const {
      return marks()[v + positions + p * most + k];
    }

    kernel::Matrix<T> rows(std::size_t p) const { return {kept + p * most * d, count(p), d, d}; }
    kernel::Matrix<T> rowGradients(std::size_t p) const {
      return {kept + (positions + p) * most * d, count(p), d, d};
    }
    kernel::Matrix<T> products(std::size_t p, std::size_t cols) const {
      return {kept + 2 * positions * most * d, count(p), cols, cols};
    }
    kernel::Matrix<T> input() const { return {kept, samples, positions * d, positions * d}; }
    kernel::Matrix<T> inputGradient() const {
      return {kept + samples * positions * d, samples, positions * d, positions * d};
    }

    void findOccurring(const kernel::Matrix<const T>& table) const {
      for (std::size_t p = 0; p < positions; ++p) {
        std::size_t found = 0;
        for (std::size_t i = 0; i < samples; ++i) {
          Index& mark = marks()[id(i, p)];
          if (mark == 0) {
            std::copy_n(table.row(id(i, p)), d, kept + (p * most + found) * d);
            occurringId(p, found) = static_cast<Index>(id(i, p));
            mark = static_cast<Index>(++found);
          }
          place(i, p) = static_cast<Index>(mark - 1u);
        }
        for (std::size_t k = 0; k < found; ++k) marks()[occurringId(p, k)] = 0;
        count(p) = static_cast<Index>(found);
      }
    }
    // visit(first row of w, number of rows, position): some rows of w at all positions, then the next.
    template <class F> void eachPart(const F& visit) const {
      for (std::size_t at = 0; at < n; at += block)
        for (std::size_t p = 0; p < positions; ++p) visit(at, std::min(block, n - at), p);
    }
  };
  template <class Frame> Shape(const Frame&) -> Shape<Frame>;
};

} // namespace block

// The rows of a table that ids name, `perRow` of them side by side in each row of the result.
template <AnyView V, ContiguousIntegers Ids>
V gather(const V& table, const Ids& rows, std::size_t perRow = 1) {
  const auto ids = detail::spanOf(rows);
  if (perRow == 0 || ids.size() % perRow != 0)
    detail::fail(ErrorKind::badArgument, "gather: " + std::to_string(ids.size()) +
                                             " indices do not fill rows of " +
                                             std::to_string(perRow));
  detail::demandBelow(ids, table.rows(), "gather: index");
  return applyBlock<block::Gather>(ids.size() / perRow, perRow * table.cols(), 0,
                                   std::span<const V>(&table, 1), {}, {}, ids);
}

// The same times wᵀ, plus b (empty: no bias).
template <AnyView V, ContiguousIntegers Ids>
V gatherAffine(const V& table, const Ids& rows, const V& w, const V& b = {},
               ParameterGradients gradients = ParameterGradients::accumulate) {
  const auto ids = detail::spanOf(rows);
  if (table.cols() == 0 || w.cols() % table.cols() != 0 || w.cols() == 0)
    detail::fail(ErrorKind::badArgument, "gatherAffine: rows of " + std::to_string(table.cols()) +
                                             " do not fill weights of " +
                                             detail::shapeText(w.rows(), w.cols()));
  const std::size_t positions = w.cols() / table.cols();
  if (ids.size() % positions != 0)
    detail::fail(ErrorKind::badArgument, "gatherAffine: " + std::to_string(ids.size()) +
                                             " indices are not samples of " +
                                             std::to_string(positions));
  const bool hasBias = !b.isEmpty();
  if (hasBias && b.size() != w.rows())
    detail::fail(ErrorKind::badArgument, "gatherAffine: " + std::to_string(b.size()) +
                                             " biases for weights of " +
                                             detail::shapeText(w.rows(), w.cols()));
  detail::demandBelow(ids, table.rows(), "gatherAffine: index");
  const std::size_t samples = ids.size() / positions;
  const std::array all{table, w, hasBias ? b : w};
  const std::array parameters{std::size_t{hasBias}, static_cast<std::size_t>(gradients), samples};
  const auto space = block::GatherAffine::spaceFor(table.rows(), table.cols(), positions, samples);
  const auto idsAndSpace = std::views::iota(std::size_t{0}, ids.size() + space.indices) |
                           std::views::transform([&](std::size_t i) {
                             return i < ids.size() ? std::size_t(ids[i]) : 0;
                           });
  return applyBlock<block::GatherAffine>(samples, w.rows(), space.numbers,
                                         std::span<const V>(all.data(), hasBias ? 3 : 2),
                                         std::span<const std::size_t>(parameters), {}, idsAndSpace);
}

BURTORCH_END_NAMESPACE
