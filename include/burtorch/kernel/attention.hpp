// burtorch/kernel/attention.hpp — causal self-attention of all heads over one sequence
// SPDX-License-Identifier: MIT
//
// A sequence of T tokens, heads of size s, d = heads·s. qkv is [T, 3d]: head h has its key in the
// columns 3sh … 3sh+s−1, its query in the s after them and its value in the s after these. y is
// [T, d], head h in the columns sh … sh+s−1.
//
//   weight of key u for query t = softmax over u ≤ t of scale·(query t · key u), 0 for u > t
//   y of t = Σ over u of weight·value u
//
// weights is [head][key u][query t]: the lanes of a register are queries, and a softmax is a sum of
// registers. Everything is done in squares of L = lanes<T> keys times L queries, of which those
// with all keys behind all queries are skipped.
#pragma once

#include <burtorch/kernel/lanes.hpp>
#include <burtorch/kernel/matrix.hpp>
#include <burtorch/kernel/softmax.hpp>
#include <burtorch/kernel/transpose.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <type_traits>

BURTORCH_BEGIN_NAMESPACE

namespace kernel {

namespace detail {

// A row for each of at most L keys, a lane for each of at most L queries (or the other way round).
template <class T> struct Square {
  alignas(64) T at[lanes<T> * lanes<T>];
  BURTORCH_INLINE T* row(std::size_t i) { return at + i * lanes<T>; }
};

// square[i][l] = a[l] · b[i], the dot product of two rows; lanes behind a's rows become 0.
template <class T>
BURTORCH_INLINE void dotProducts(const Matrix<const T>& a, const Matrix<const T>& b,
                                 Square<T>& square) {
  constexpr std::size_t L = lanes<T>;
  Square<T> turned;
  for (std::size_t c = 0; c == 0 || c < a.cols; c += L) {
    const std::size_t cols = std::min(L, a.cols - c);
    transpose(a.first + c, a.stride, a.rows, cols, turned.at, L);
    for (std::size_t i = 0; i < b.rows; ++i) {
      Pack<T> sum = c == 0 ? fill(T(0)) : load(square.row(i));
      for (std::size_t j = 0; j < cols; ++j)
        sum = multiplyAdd<T>(fill(b.row(i)[c + j]), load(turned.row(j)), sum);
      store(square.row(i), sum);
    }
  }
}

// y[l] (+)= Σᵢ square[i][l]·b[i], for as many lanes l as y has rows.
template <class T>
BURTORCH_INLINE void combine(Square<T>& square, const Matrix<const T>& b, const Matrix<T>& y,
                             Store how) {
  constexpr std::size_t L = lanes<T>, width = std::min<std::size_t>(L, 4);
  for (std::size_t c = 0; c < y.cols; c += width) {
    const std::size_t cols = std::min(width, y.cols - c);
    Pack<T> sums[width];
    unroll<width>([&](auto j) BURTORCH_INLINE_LAMBDA { sums[j] = fill(T(0)); });
    for (std::size_t i = 0; i < b.rows; ++i) {
      const Pack<T> weight = load(square.row(i));
      const T* const from = b.row(i) + c;
      unroll<width>([&](auto j) BURTORCH_INLINE_LAMBDA {
        sums[j] = multiplyAdd<T>(weight, fill(from[j < cols ? j : 0]), sums[j]);
      });
    }
    Square<T> turned, rows;
    unroll<width>([&](auto j) BURTORCH_INLINE_LAMBDA { store(turned.row(j), sums[j]); });
    transpose(turned.at, L, width, L, rows.at, L);
    for (std::size_t l = 0; l < y.rows; ++l) {
      T* const to = y.row(l) + c;
      const T* const from = rows.row(l);
      for (std::size_t j = 0; j < cols; ++j) to[j] = how == Store::add ? to[j] + from[j] : from[j];
    }
  }
}

// Lanes of queries that must not see the key become `otherwise`; query and key are counted from the
// first ones of a square on the diagonal. A query sees itself and what was before it.
template <class T>
BURTORCH_INLINE Pack<T> causal(const Pack<T>& x, std::size_t key, const T& otherwise) {
  constexpr std::size_t L = lanes<T>;
  if constexpr (L == 1) {
    return x;
  } else {
    static constexpr auto number = [] {
      std::array<T, L> n{};
      for (std::size_t l = 0; l < L; ++l) n[l] = static_cast<T>(l);
      return n;
    }();
    return select(load(number.data()) < fill(static_cast<T>(key)), fill(otherwise), x);
  }
}

// The columns of one head in qkv or its gradient.
template <class T> struct Head {
  Matrix<T> key, query, value;

  Head(const Matrix<T>& qkv, std::size_t h, std::size_t s)
      : key(qkv.part(0, qkv.rows, 3 * s * h, s)), query(qkv.part(0, qkv.rows, 3 * s * h + s, s)),
        value(qkv.part(0, qkv.rows, 3 * s * h + 2 * s, s)) {}
};

// As many rows as a square has, from row i on.
template <class T> BURTORCH_INLINE Matrix<T> someOf(const Matrix<T>& x, std::size_t i) {
  return x.part(i, std::min(lanes<std::remove_const_t<T>>, x.rows - i), 0, x.cols);
}

// The queries from t on, as many as there are lanes. weights is that of one head.
template <class T>
BURTORCH_INLINE void attend(const Head<const T>& head, std::size_t t, const T& scale,
                            const Matrix<T>& y, const Matrix<T>& weights, const auto& read,
                            const auto& write) {
  constexpr std::size_t L = lanes<T>;
  const std::size_t end = t + y.rows; // of the keys that these queries see
  Square<T> square;
  Pack<T> most = fill(T(0)), total = fill(T(0));
  for (std::size_t u = 0; u < end; u += L) {
    const Matrix<const T> keys = someOf(head.key, u);
    dotProducts<T>(someOf(head.query, t), keys, square);
    for (std::size_t i = 0; i < keys.rows; ++i) {
      Pack<T> x = load(square.row(i)) * fill(scale);
      if (u == t) x = causal(x, i, std::numeric_limits<T>::lowest());
      most = u + i == 0 ? x : larger(x, most);
      write(weights.row(u + i) + t, x);
    }
  }
  for (std::size_t u = 0; u < end; ++u) {
    T* const w = weights.row(u) + t;
    Pack<T> x = read(w) - most;
    if (u >= t) x = causal(x, u - t, T(0)); // no tiny exponentials: they take their time
    Pack<T> e = exp(x);
    if (u >= t) e = causal(e, u - t, T(0));
    total = total + e;
    write(w, e);
  }
  const Pack<T> share = fill(T(1)) / total;
  for (std::size_t u = 0; u < end; u += L) {
    const Matrix<const T> values = someOf(head.value, u);
    for (std::size_t i = 0; i < values.rows; ++i) {
      T* const w = weights.row(u + i) + t;
      const Pack<T> p = read(w) * share;
      write(w, p);
      store(square.row(i), p);
    }
    combine(square, values, y, u == 0 ? Store::assign : Store::add);
  }
  for (std::size_t u = end; u < weights.rows; ++u) write(weights.row(u) + t, fill(T(0)));
}

template <class T>
BURTORCH_INLINE void attendBackward(const Head<const T>& head, std::size_t t, const T& scale,
                                    const Matrix<const T>& weights, const Matrix<const T>& dy,
                                    const Head<T>& grad, const auto& read) {
  constexpr std::size_t L = lanes<T>;
  const std::size_t end = t + dy.rows;
  Square<T> square, weight, turned; // square: first what the weights' gradients are
  Pack<T> mean = fill(T(0));
  for (std::size_t u = 0; u < end; u += L) {
    const Matrix<const T> values = someOf(head.value, u);
    dotProducts<T>(dy, values, square);
    for (std::size_t i = 0; i < values.rows; ++i)
      mean = multiplyAdd<T>(read(weights.row(u + i) + t), load(square.row(i)), mean);
  }
  for (std::size_t u = 0; u < end; u += L) {
    const Matrix<const T> values = someOf(head.value, u);
    if (end > L) dotProducts<T>(dy, values, square); // else it is still there
    for (std::size_t i = 0; i < values.rows; ++i) {
      const Pack<T> p = read(weights.row(u + i) + t);
      store(weight.row(i), p);
      store(square.row(i), p * (load(square.row(i)) - mean) * fill(scale));
    }
    combine<T>(square, someOf(head.key, u), someOf(grad.query, t), Store::add);
    transpose(square.at, L, values.rows, dy.rows, turned.at, L);
    combine<T>(turned, someOf(head.query, t), someOf(grad.key, u), Store::add);
    transpose(weight.at, L, values.rows, dy.rows, turned.at, L);
    combine<T>(turned, dy, someOf(grad.value, u), Store::add);
  }
}

} // namespace detail

// weights, [heads][T][T] numbers, are kept for the way back.
template <class T>
BURTORCH_NOINLINE void attentionForward(ConstMatrix<T> qkv, std::size_t heads,
                                        std::type_identity_t<T> scale, Matrix<T> y,
                                        std::type_identity_t<T>* weights) {
  constexpr std::size_t L = lanes<T>;
  const std::size_t n = y.rows, s = y.cols / heads;
  for (std::size_t h = 0; h < heads; ++h) {
    const detail::Head<const T> head(qkv, h, s);
    const Matrix<T> w{weights + h * n * n, n, n, n};
    eachPack<T>(n, [&](std::size_t t, const auto& read, const auto& write) BURTORCH_INLINE_LAMBDA {
      const Matrix<T> to = y.part(t, std::min(L, n - t), s * h, s);
      detail::attend<T>(head, t, scale, to, w, read, write);
    });
  }
}

// dqkv gains what dy asks for.
template <class T>
BURTORCH_NOINLINE void
attentionBackward(ConstMatrix<T> qkv, std::size_t heads, std::type_identity_t<T> scale,
                  const std::type_identity_t<T>* weights, ConstMatrix<T> dy, Matrix<T> dqkv) {
  constexpr std::size_t L = lanes<T>;
  const std::size_t n = dy.rows, s = dy.cols / heads;
  for (std::size_t h = 0; h < heads; ++h) {
    const detail::Head<const T> head(qkv, h, s);
    const detail::Head<T> grad(dqkv, h, s);
    const Matrix<const T> w{weights + h * n * n, n, n, n};
    eachPack<T>(n, [&](std::size_t t, const auto& read, const auto&) BURTORCH_INLINE_LAMBDA {
      const Matrix<const T> from = dy.part(t, std::min(L, n - t), s * h, s);
      detail::attendBackward<T>(head, t, scale, w, from, grad, read);
    });
  }
}

} // namespace kernel

BURTORCH_END_NAMESPACE
