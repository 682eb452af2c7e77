// burtorch/kernel/recurrent.hpp — LSTM and GRU over whole sequences, all samples side by side
// SPDX-License-Identifier: MIT
//
// Shapes: b samples of t steps, sample by sample: row i·t + s is step s of sample i. x has n columns, the
// state h (and for an LSTM c beside it) h columns each. wx is gates·h × n, wh gates·h × h, the biases have
// gates·h numbers. Steps of one time are rows that stand t apart: matrices with a stride, no copy.
//
// A cell says how the gates of one sample at one time make the new state, and what they gain on the way
// back. a = x·wxᵀ + bx is computed for all steps at once, u = h·whᵀ + bh step by step; the gates stay where
// a stood. On the way back the gains da and du of all steps are collected; the gradients of the weights are
// then one product each.
#pragma once

#include <burtorch/kernel/affine.hpp>
#include <burtorch/kernel/lanes.hpp>
#include <burtorch/kernel/matrix.hpp>
#include <burtorch/kernel/multiply.hpp>
#include <burtorch/kernel/transpose.hpp>
#include <burtorch/kernel/vector.hpp>
#include <burtorch/op/unary.hpp>

#include <algorithm>
#include <cstddef>
#include <type_traits>

BURTORCH_BEGIN_NAMESPACE

namespace kernel {

// i, f, o = σ(a + u), g = tanh(a + u) in the order i, f, g, o; c = f·c' + i·g; h = o·tanh c.
struct LstmCell {
  static constexpr std::size_t gates = 4, kept = 4, states = 2; // in units of h
  static constexpr bool sharesGains = true;                     // da and du are the same

  template <class T>
  static BURTORCH_KERNEL void forward(std::size_t h, T* a, const T* u, const T* before, T* state) {
    eachPack<T>(h, [&](std::size_t j, const auto& read, const auto& write) BURTORCH_INLINE_LAMBDA {
      const auto sum = [&](std::size_t gate) BURTORCH_INLINE_LAMBDA {
        return read(a + gate * h + j) + read(u + gate * h + j);
      };
      const Pack<T> i = op::Sigmoid::forward(sum(0)), f = op::Sigmoid::forward(sum(1)),
                    g = op::Tanh::forward(sum(2)), o = op::Sigmoid::forward(sum(3));
      const Pack<T> c = multiplyAdd<T>(f, read(before + h + j), i * g);
      write(a + j, i);
      write(a + h + j, f);
      write(a + 2 * h + j, g);
      write(a + 3 * h + j, o);
      write(state + j, o * op::Tanh::forward(c));
      write(state + h + j, c);
    });
  }

  // dstate is the adjoint of the state, carry what later steps give to it; then what this step gives to
  // the state before, without what goes through u.
  template <class T>
  static BURTORCH_KERNEL void backward(std::size_t h, const T* gate, const T* before,
                                       const T* state, const T* dstate, T* carry, T* da, T*) {
    eachPack<T>(h, [&](std::size_t j, const auto& read, const auto& write) BURTORCH_INLINE_LAMBDA {
      const Pack<T> i = read(gate + j), f = read(gate + h + j), g = read(gate + 2 * h + j),
                    o = read(gate + 3 * h + j), c = read(state + h + j);
      const Pack<T> t = op::Tanh::forward(c), dh = read(dstate + j) + read(carry + j);
      const Pack<T> dc =
          read(dstate + h + j) + read(carry + h + j) + op::Tanh::pullback(c, t, Pack<T>(dh * o));
      write(da + j, op::Sigmoid::pullback(i, i, Pack<T>(dc * g)));
      write(da + h + j, op::Sigmoid::pullback(f, f, Pack<T>(dc * read(before + h + j))));
      write(da + 2 * h + j, op::Tanh::pullback(g, g, Pack<T>(dc * i)));
      write(da + 3 * h + j, op::Sigmoid::pullback(o, o, Pack<T>(dh * t)));
      write(carry + j, fill(T(0)));
      write(carry + h + j, dc * f);
    });
  }
};

// r, z = σ(a + u), n = tanh(a + r·u) in the order r, z, n; h = (1 − z)·n + z·h'. Keeps u of n, too.
struct GruCell {
  static constexpr std::size_t gates = 3, kept = 4, states = 1;
  static constexpr bool sharesGains = false;

  template <class T>
  static BURTORCH_KERNEL void forward(std::size_t h, T* a, const T* u, const T* before, T* state) {
    eachPack<T>(h, [&](std::size_t j, const auto& read, const auto& write) BURTORCH_INLINE_LAMBDA {
      const Pack<T> r = op::Sigmoid::forward(Pack<T>(read(a + j) + read(u + j)));
      const Pack<T> z = op::Sigmoid::forward(Pack<T>(read(a + h + j) + read(u + h + j)));
      const Pack<T> inner = read(u + 2 * h + j);
      const Pack<T> n = op::Tanh::forward(multiplyAdd<T>(r, inner, read(a + 2 * h + j)));
      write(a + j, r);
      write(a + h + j, z);
      write(a + 2 * h + j, n);
      write(a + 3 * h + j, inner);
      write(state + j, multiplyAdd<T>(z, read(before + j) - n, n));
    });
  }

  template <class T>
  static BURTORCH_KERNEL void backward(std::size_t h, const T* gate, const T* before, const T*,
                                       const T* dstate, T* carry, T* da, T* du) {
    eachPack<T>(h, [&](std::size_t j, const auto& read, const auto& write) BURTORCH_INLINE_LAMBDA {
      const Pack<T> r = read(gate + j), z = read(gate + h + j), n = read(gate + 2 * h + j);
      const Pack<T> dh = read(dstate + j) + read(carry + j);
      const Pack<T> dn = op::Tanh::pullback(n, n, Pack<T>(dh - dh * z));
      const Pack<T> dr = op::Sigmoid::pullback(r, r, Pack<T>(dn * read(gate + 3 * h + j)));
      const Pack<T> dz = op::Sigmoid::pullback(z, z, Pack<T>(dh * (read(before + j) - n)));
      write(da + j, dr);
      write(da + h + j, dz);
      write(da + 2 * h + j, dn);
      write(du + j, dr);
      write(du + h + j, dz);
      write(du + 2 * h + j, dn * r);
      write(carry + j, dh * z);
    });
  }
};

// Sizes, and where a sequence's numbers lie in the memory that it works in.
template <class Cell> struct Sequence {
  std::size_t samples, steps, hidden;

  constexpr std::size_t rows() const { return samples * steps; }
  constexpr std::size_t stateCols() const { return Cell::states * hidden; }
  constexpr std::size_t gateCols() const { return Cell::gates * hidden; }

  // Gates of all steps, u of one step, whᵀ, a state of zeros; for the way back da (and du) of all steps, the
  // carry of one step, the states h before all steps.
  constexpr std::size_t u() const { return rows() * Cell::kept * hidden; }
  constexpr std::size_t transposed() const { return u() + samples * gateCols(); }
  constexpr std::size_t zeros() const { return transposed() + hidden * gateCols(); }
  constexpr std::size_t da() const { return zeros() + stateCols(); }
  constexpr std::size_t du() const { return Cell::sharesGains ? da() : da() + rows() * gateCols(); }
  constexpr std::size_t carry() const { return du() + rows() * gateCols(); }
  constexpr std::size_t before() const { return carry() + samples * stateCols(); }
  constexpr std::size_t space() const { return before() + rows() * hidden; }

  // All samples at one step, of a matrix with a row for each step of each sample.
  template <class T> Matrix<T> at(const Matrix<T>& all, std::size_t step) const {
    return {all.first + step * all.stride, samples, all.cols, steps * all.stride};
  }
  template <class T> Matrix<T> all(T* first, std::size_t cols, std::size_t stride) const {
    return {first, rows(), cols, stride};
  }
  // The states before a step: those of the step before, at first those given (none: zeros).
  template <class T>
  Matrix<const T> stateBefore(std::size_t step, const T* initial, const Matrix<const T>& states,
                              const T* zeros) const {
    if (step != 0) return at(states, step - 1);
    if (initial == nullptr) return {zeros, samples, stateCols(), 0};
    return {initial, samples, stateCols(), stateCols()};
  }
};

// states[b·t × states·h] of the sequences x; biases and initial[b × states·h] may be null.
template <class Cell, class T>
BURTORCH_NOINLINE void
recurrentForward(const Sequence<Cell>& q, ConstMatrix<T> x, ConstMatrix<T> wx, ConstMatrix<T> wh,
                 const std::type_identity_t<T>* bx, const std::type_identity_t<T>* bh,
                 const std::type_identity_t<T>* initial, Matrix<T> states, T* space) {
  const std::size_t h = q.hidden, cols = q.gateCols();
  const Matrix<T> a = q.all(space, cols, Cell::kept * h);
  affineForward<T>(x, wx, bx, a);
  T *const transposed = space + q.transposed(), *const zeros = space + q.zeros();
  for (std::size_t i = 0; i < cols; ++i)
    for (std::size_t j = 0; j < h; ++j) transposed[j * cols + i] = wh.row(i)[j];
  std::fill_n(zeros, q.stateCols(), T(0));
  const Matrix<T> u{space + q.u(), q.samples, cols, cols};
  for (std::size_t s = 0; s < q.steps; ++s) {
    const Matrix<const T> before = q.template stateBefore<T>(s, initial, states, zeros);
    detail::multiply<detail::Right::asIs, T>(q.samples, cols, h, {before.first, before.stride, 1},
                                             transposed, cols, {u.first, cols, bh, false});
    const Matrix<T> gates = q.at(a, s), now = q.at(states, s);
    for (std::size_t i = 0; i < q.samples; ++i)
      Cell::forward(h, gates.row(i), u.row(i), before.row(i), now.row(i));
  }
}

// Of dx, dwx, dwh, dbx, dbh and dinitial any may be null: not wanted. Those of dx and dinitial are added.
template <class Cell, class T>
BURTORCH_NOINLINE void
recurrentBackward(const Sequence<Cell>& q, ConstMatrix<T> x, ConstMatrix<T> wx, ConstMatrix<T> wh,
                  const std::type_identity_t<T>* initial, ConstMatrix<T> states,
                  ConstMatrix<T> dstates, Matrix<T> dx, Matrix<T> dwx, Matrix<T> dwh, T* dbx,
                  T* dbh, T* dinitial, T* space, Store parameters) {
  const std::size_t h = q.hidden, cols = q.gateCols(), width = q.stateCols();
  const Matrix<const T> kept = q.template all<const T>(space, Cell::kept * h, Cell::kept * h);
  const Matrix<T> da = q.all(space + q.da(), cols, cols), du = q.all(space + q.du(), cols, cols),
                  previous = q.all(space + q.before(), h, h),
                  carry{space + q.carry(), q.samples, width, width};
  std::fill_n(carry.first, q.samples * width, T(0));
  for (std::size_t s = q.steps; s-- != 0;) {
    const Matrix<const T> before = q.template stateBefore<T>(s, initial, states, space + q.zeros());
    const auto gates = q.at(kept, s), now = q.at(states, s), adjoint = q.at(dstates, s);
    const auto gains = q.at(da, s), gainsOfU = q.at(du, s), place = q.at(previous, s);
    for (std::size_t i = 0; i < q.samples; ++i) {
      Cell::backward(h, gates.row(i), before.row(i), now.row(i), adjoint.row(i), carry.row(i),
                     gains.row(i), gainsOfU.row(i));
      std::copy_n(before.row(i), h, place.row(i));
    }
    if (s != 0 || dinitial)
      multiplyNN<T>(gainsOfU, wh, Matrix<T>{carry.first, q.samples, h, width}, Store::add);
  }
  if (dinitial) add(carry.first, dinitial, q.samples * width);
  affineBackward<T>(x, wx, da, dx, dwx, dbx, parameters);
  affineBackward<T>(previous, wh, du, Matrix<T>{nullptr, q.rows(), h, h}, dwh, dbh, parameters);
}

} // namespace kernel

BURTORCH_END_NAMESPACE
