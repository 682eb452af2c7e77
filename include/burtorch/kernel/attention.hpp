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
// registers. Everything is done in squares of L keys times L queries, of which those with all keys
// behind all queries are skipped; L is lanes<T>, or less for a short sequence.
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
template <class T, std::size_t L> struct Square {
  alignas(64) T at[L * L];
  BURTORCH_INLINE T* row(std::size_t i) { return at + i * L; }
};

// square[i][l] = a[l] · b[i], the dot product of two rows; lanes behind a's rows become 0.
template <std::size_t L, class T>
BURTORCH_INLINE void dotProducts(const Matrix<const T>& a, const Matrix<const T>& b,
                                 Square<T, L>& square) {
  Square<T, L> turned;
  for (std::size_t c = 0; c == 0 || c < a.cols; c += L) {
    const std::size_t cols = std::min(L, a.cols - c);
    transpose<L>(a.first + c, a.stride, a.rows, cols, turned.at, L);
    for (std::size_t i = 0; i < b.rows; ++i) {
      Pack<T, L> sum = c == 0 ? fill<L>(T(0)) : load<L>(square.row(i));
      for (std::size_t j = 0; j < cols; ++j)
        sum = multiplyAdd<T>(fill<L>(b.row(i)[c + j]), load<L>(turned.row(j)), sum);
      store(square.row(i), sum);
    }
  }
}

// y[l] (+)= Σᵢ square[i][l]·b[i], for as many lanes l as y has rows.
template <std::size_t L, class T>
BURTORCH_INLINE void combine(Square<T, L>& square, const Matrix<const T>& b, const Matrix<T>& y,
                             Store how) {
  constexpr std::size_t width = std::min<std::size_t>(L, 4);
  for (std::size_t c = 0; c < y.cols; c += width) {
    const std::size_t cols = std::min(width, y.cols - c);
    Pack<T, L> sums[width];
    unroll<width>([&](auto j) BURTORCH_INLINE_LAMBDA { sums[j] = fill<L>(T(0)); });
    for (std::size_t i = 0; i < b.rows; ++i) {
      const Pack<T, L> weight = load<L>(square.row(i));
      const T* const from = b.row(i) + c;
      unroll<width>([&](auto j) BURTORCH_INLINE_LAMBDA {
        sums[j] = multiplyAdd<T>(weight, fill<L>(from[j < cols ? j : 0]), sums[j]);
      });
    }
    Square<T, L> turned, rows;
    unroll<width>([&](auto j) BURTORCH_INLINE_LAMBDA { store(turned.row(j), sums[j]); });
    transpose<L>(turned.at, L, width, L, rows.at, L);
    for (std::size_t l = 0; l < y.rows; ++l) {
      T* const to = y.row(l) + c;
      const T* const from = rows.row(l);
      for (std::size_t j = 0; j < cols; ++j) to[j] = how == Store::add ? to[j] + from[j] : from[j];
    }
  }
}

// Lanes of queries that must not see the key become `otherwise`; query and key are counted from the
// first ones of a square on the diagonal. A query sees itself and what was before it.
template <std::size_t L, class T>
BURTORCH_INLINE Pack<T, L> causal(const std::type_identity_t<Pack<T, L>>& x, std::size_t key,
                                  const T& otherwise) {
  if constexpr (L == 1) {
    return x;
  } else {
    static constexpr auto number = [] {
      std::array<T, L> n{};
      for (std::size_t l = 0; l < L; ++l) n[l] = static_cast<T>(l);
      return n;
    }();
    return select(load<L>(number.data()) < fill<L>(static_cast<T>(key)), fill<L>(otherwise), x);
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
template <std::size_t L, class T>
BURTORCH_INLINE Matrix<T> someOf(const Matrix<T>& x, std::size_t i) {
  return x.part(i, std::min(L, x.rows - i), 0, x.cols);
}

// The queries from t on, as many as there are lanes. weights is that of one head.
template <std::size_t L, class T>
BURTORCH_INLINE void attend(const Head<const T>& head, std::size_t t, const T& scale,
                            const Matrix<T>& y, const Matrix<T>& weights, const auto& read,
                            const auto& write) {
  const std::size_t end = t + y.rows; // of the keys that these queries see
  Square<T, L> square;
  Pack<T, L> most = fill<L>(T(0)), total = fill<L>(T(0));
  for (std::size_t u = 0; u < end; u += L) {
    const Matrix<const T> keys = someOf<L>(head.key, u);
    dotProducts<L, T>(someOf<L>(head.query, t), keys, square);
    for (std::size_t i = 0; i < keys.rows; ++i) {
      Pack<T, L> x = load<L>(square.row(i)) * fill<L>(scale);
      if (u == t) x = causal<L, T>(x, i, std::numeric_limits<T>::lowest());
      most = u + i == 0 ? x : larger(x, most);
      write(weights.row(u + i) + t, x);
    }
  }
  for (std::size_t u = 0; u < end; ++u) {
    T* const w = weights.row(u) + t;
    Pack<T, L> x = read(w) - most;
    if (u >= t) x = causal<L, T>(x, u - t, T(0)); // no tiny exponentials: they take their time
    Pack<T, L> e = exp(x);
    if (u >= t) e = causal<L, T>(e, u - t, T(0));
    total = total + e;
    write(w, e);
  }
  const Pack<T, L> share = fill<L>(T(1)) / total;
  for (std::size_t u = 0; u < end; u += L) {
    const Matrix<const T> values = someOf<L>(head.value, u);
    for (std::size_t i = 0; i < values.rows; ++i) {
      T* const w = weights.row(u + i) + t;
      const Pack<T, L> p = read(w) * share;
      write(w, p);
      store(square.row(i), p);
    }
    combine<L, T>(square, values, y, u == 0 ? Store::assign : Store::add);
  }
  for (std::size_t u = end; u < weights.rows; ++u) write(weights.row(u) + t, fill<L>(T(0)));
}

template <std::size_t L, class T>
BURTORCH_INLINE void attendBackward(const Head<const T>& head, std::size_t t, const T& scale,
                                    const Matrix<const T>& weights, const Matrix<const T>& dy,
                                    const Head<T>& grad, const auto& read) {
  const std::size_t end = t + dy.rows;
  Square<T, L> square, weight, turned; // square: first what the weights' gradients are
  Pack<T, L> mean = fill<L>(T(0));
  for (std::size_t u = 0; u < end; u += L) {
    const Matrix<const T> values = someOf<L>(head.value, u);
    dotProducts<L, T>(dy, values, square);
    for (std::size_t i = 0; i < values.rows; ++i)
      mean = multiplyAdd<T>(read(weights.row(u + i) + t), load<L>(square.row(i)), mean);
  }
  for (std::size_t u = 0; u < end; u += L) {
    const Matrix<const T> values = someOf<L>(head.value, u);
    if (end > L) dotProducts<L, T>(dy, values, square); // else it is still there
    for (std::size_t i = 0; i < values.rows; ++i) {
      const Pack<T, L> p = read(weights.row(u + i) + t);
      store(weight.row(i), p);
      store(square.row(i), p * (load<L>(square.row(i)) - mean) * fill<L>(scale));
    }
    combine<L, T>(square, someOf<L>(head.key, u), someOf<L>(grad.query, t), Store::add);
    transpose<L>(square.at, L, values.rows, dy.rows, turned.at, L);
    combine<L, T>(turned, someOf<L>(head.query, t), someOf<L>(grad.key, u), Store::add);
    transpose<L>(weight.at, L, values.rows, dy.rows, turned.at, L);
    combine<L, T>(turned, dy, someOf<L>(grad.value, u), Store::add);
  }
}

template <std::size_t L, class T>
BURTORCH_NOINLINE void attentionForward(const Matrix<const T>& qkv, std::size_t heads,
                                        const T& scale, const Matrix<T>& y, T* weights) {
  const std::size_t n = y.rows, s = y.cols / heads;
  for (std::size_t h = 0; h < heads; ++h) {
    const Head<const T> head(qkv, h, s);
    const Matrix<T> w{weights + h * n * n, n, n, n};
    eachPack<T, L>(n,
                   [&](std::size_t t, const auto& read, const auto& write) BURTORCH_INLINE_LAMBDA {
                     const Matrix<T> to = y.part(t, std::min(L, n - t), s * h, s);
                     attend<L, T>(head, t, scale, to, w, read, write);
                   });
  }
}

template <std::size_t L, class T>
BURTORCH_NOINLINE void attentionBackward(const Matrix<const T>& qkv, std::size_t heads,
                                         const T& scale, const T* weights,
                                         const Matrix<const T>& dy, const Matrix<T>& dqkv) {
  const std::size_t n = dy.rows, s = dy.cols / heads;
  for (std::size_t h = 0; h < heads; ++h) {
    const Head<const T> head(qkv, h, s);
    const Head<T> grad(dqkv, h, s);
    const Matrix<const T> w{weights + h * n * n, n, n, n};
    eachPack<T, L>(n, [&](std::size_t t, const auto& read, const auto&) BURTORCH_INLINE_LAMBDA {
      const Matrix<const T> from = dy.part(t, std::min(L, n - t), s * h, s);
      attendBackward<L, T>(head, t, scale, w, from, grad, read);
    });
  }
}

} // namespace detail

// weights, [heads][T][T] numbers, are kept for the way back.
template <class T>
void attentionForward(ConstMatrix<T> qkv, std::size_t heads, std::type_identity_t<T> scale,
                      Matrix<T> y, std::type_identity_t<T>* weights) {
  if (y.rows <= fewerLanes<T>)
    return detail::attentionForward<fewerLanes<T>, T>(qkv, heads, scale, y, weights);
  detail::attentionForward<lanes<T>, T>(qkv, heads, scale, y, weights);
}

// dqkv gains what dy asks for.
template <class T>
void attentionBackward(ConstMatrix<T> qkv, std::size_t heads, std::type_identity_t<T> scale,
                       const std::type_identity_t<T>* weights, ConstMatrix<T> dy, Matrix<T> dqkv) {
  if (dy.rows <= fewerLanes<T>)
    return detail::attentionBackward<fewerLanes<T>, T>(qkv, heads, scale, weights, dy, dqkv);
  detail::attentionBackward<lanes<T>, T>(qkv, heads, scale, weights, dy, dqkv);
}

} // namespace kernel

BURTORCH_END_NAMESPACE
