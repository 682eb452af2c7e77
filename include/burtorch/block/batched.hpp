// burtorch/block/batched.hpp — products of many pairs of matrices
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/block/affine.hpp>
#include <burtorch/block/describe.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

BURTORCH_BEGIN_NAMESPACE

namespace block {

// Views: a, `batch` matrices m × k one below the other, and b, as many k × n. Parameters: batch.
struct BatchedMatMul {
  static constexpr const char* name = "batchedMatmul";
  static constexpr const char* symbol = "@";

  template <class Frame> static void forward(const Frame& f) {
    for (std::size_t i = 0; i < f.parameter(0); ++i)
      kernel::multiplyNN(part(f, f.value(0), i), part(f, f.value(1), i),
                         part(f, f.result(f.value(0).rows), i), kernel::Store::assign);
  }
  template <class Frame> static void pullback(const Frame& f) {
    for (std::size_t i = 0; i < f.parameter(0); ++i) {
      const auto dy = part(f, f.adjoint(f.value(0).rows), i);
      if (f.wants(0))
        kernel::multiplyNT(dy, part(f, f.value(1), i), part(f, f.grad(0), i), kernel::Store::add);
      if (f.wants(1))
        kernel::multiplyTN(part(f, f.value(0), i), dy, part(f, f.grad(1), i), kernel::Store::add);
    }
  }

  template <class Frame>
  static bool keepsSamples(const Frame& f, std::size_t, std::size_t samples) {
    return f.parameter(0) % samples == 0;
  }

  template <class Parts> static auto expanded(const Parts& p) {
    const auto &a = p.views[0], &b = p.views[1];
    const std::size_t batch = p.parameters[0], m = a.rows() / batch, k = b.rows() / batch;
    std::vector<typename Parts::V::Element> y;
    for (std::size_t i = 0; i < a.rows(); ++i)
      for (std::size_t j = 0; j < b.cols(); ++j)
        y.push_back(dot(a.row(i), rowOf(k, [&](std::size_t l) { return b(i / m * k + l, j); })));
    return y;
  }
  template <class Parts> static void record(const Parts& p) {
    p.demandOperands(2, 1);
    p.demandSizes(detail::sizeProduct(p.views[0].rows(), p.views[1].cols()));
    batchedMatmul(p.views[0], p.views[1], p.parameters[0]);
  }

private:
  template <class Frame, class T>
  static kernel::Matrix<T> part(const Frame& f, const kernel::Matrix<T>& m, std::size_t i) {
    const std::size_t rows = m.rows / f.parameter(0);
    return {m.row(i * rows), rows, m.cols, m.stride};
  }
};

} // namespace block

// aᵢ·bᵢ for i below `batch`: a holds matrices m × k one below the other, b k × n.
template <AnyView V> V batchedMatmul(const V& a, const V& b, std::size_t batch) {
  if (batch == 0 || a.rows() % batch != 0 || b.rows() % batch != 0 ||
      b.rows() != detail::sizeProduct(batch, a.cols()))
    detail::fail(ErrorKind::badArgument, "matmul: " + std::to_string(batch) + " matrices in " +
                                             detail::shapeText(a.rows(), a.cols()) + " times " +
                                             detail::shapeText(b.rows(), b.cols()));
  const std::array both{a, b};
  const std::array parameters{batch};
  return applyBlock<block::BatchedMatMul>(a.rows(), b.cols(), 0, std::span<const V>(both),
                                          std::span<const std::size_t>(parameters));
}

BURTORCH_END_NAMESPACE
