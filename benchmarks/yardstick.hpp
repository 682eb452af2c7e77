// benchmarks/yardstick.hpp — what burtorch is measured against: a plain tape, and derivatives by hand
// SPDX-License-Identifier: MIT
//
// The plain tape is what anyone writes in twenty minutes: parallel arrays, an inlined append, a
// reverse sweep with a switch, a leaf for each constant. No growth, no errors, no other types,
// nothing else. Its first index is known only at run time, as after a rewind.
#pragma once

#include <cstddef>
#include <vector>

namespace yardstick {

enum class Op : int { leaf, add, sub, mul, div, sqr, cub, relu };

struct PlainTape {
  explicit PlainTape(std::size_t capacity)
      : value(capacity), grad(capacity), op(capacity), a(capacity), b(capacity) {}

  int push(Op o, double x, int i, int j) {
    const int k = size++;
    const auto at = static_cast<std::size_t>(k);
    value[at] = x;
    grad[at] = 0;
    op[at] = o;
    a[at] = i;
    b[at] = j;
    return k;
  }

  void backward(int root, int first) {
    double* const g = grad.data();
    const double* const v = value.data();
    g[root] = 1;
    for (int i = root; i >= first; --i) {
      const double d = g[i];
      const int p = a[static_cast<std::size_t>(i)], q = b[static_cast<std::size_t>(i)];
      switch (op[static_cast<std::size_t>(i)]) {
      case Op::leaf:
        break;
      case Op::add:
        g[p] += d;
        g[q] += d;
        break;
      case Op::sub:
        g[p] += d;
        g[q] -= d;
        break;
      case Op::mul:
        g[p] += d * v[q];
        g[q] += d * v[p];
        break;
      case Op::div:
        g[p] += d / v[q];
        g[q] -= d * v[i] / v[q];
        break;
      case Op::sqr:
        g[p] += d * 2 * v[p];
        break;
      case Op::cub:
        g[p] += d * 3 * v[p] * v[p];
        break;
      case Op::relu:
        g[p] += v[p] > 0 ? d : 0;
        break;
      }
    }
  }

  std::vector<double> value, grad;
  std::vector<Op> op;
  std::vector<int> a, b;
  int size = 0;
};

struct Plain {
  PlainTape* tape;
  int index;

  Plain(PlainTape& t, double x) : tape(&t), index(t.push(Op::leaf, x, 0, 0)) {}
  Plain(PlainTape& t, Op op, double x, int i, int j) : tape(&t), index(t.push(op, x, i, j)) {}
  double data() const { return tape->value[static_cast<std::size_t>(index)]; }
  double grad() const { return tape->grad[static_cast<std::size_t>(index)]; }
};

inline Plain operator+(Plain x, Plain y) {
  return {*x.tape, Op::add, x.data() + y.data(), x.index, y.index};
}
inline Plain operator-(Plain x, Plain y) {
  return {*x.tape, Op::sub, x.data() - y.data(), x.index, y.index};
}
inline Plain operator*(Plain x, Plain y) {
  return {*x.tape, Op::mul, x.data() * y.data(), x.index, y.index};
}
inline Plain operator/(Plain x, Plain y) {
  return {*x.tape, Op::div, x.data() / y.data(), x.index, y.index};
}
inline Plain sqr(Plain x) { return {*x.tape, Op::sqr, x.data() * x.data(), x.index, 0}; }
inline Plain pow3(Plain x) {
  return {*x.tape, Op::cub, x.data() * x.data() * x.data(), x.index, 0};
}
inline Plain relu(Plain x) { return {*x.tape, Op::relu, x.data() > 0 ? x.data() : 0, x.index, 0}; }

struct Gradient {
  double value, a, b;
};

// The gradients as one derives them on paper.
inline Gradient tinyByHand(double a, double b) {
  const double c = a + b, d = a * b + b * b * b, e = c - d;
  return {e * e / 2, e * (1 - b), e * (1 - a - 3 * b * b)};
}

inline Gradient smallByHand(double a, double b) {
  // c = 4(a+b) + 3 − a and d = 12(ab + b³) + 4 relu(a+b) + relu(b−a), unfolded
  const double s = a + b > 0 ? 1 : 0, t = b - a > 0 ? 1 : 0;
  const double c = 3 * a + 4 * b + 3;
  const double d = 12 * (a * b + b * b * b) + 4 * s * (a + b) + t * (b - a);
  const double e = c - d, f = e * e;
  const double de = e - 20 / (f * e);
  const double ca = 3, cb = 4;
  const double da = 12 * b + 4 * s - t, db = 12 * (a + 3 * b * b) + 4 * s + t;
  return {f / 2 + 10 / f, de * (ca - da), de * (cb - db)};
}

} // namespace yardstick
