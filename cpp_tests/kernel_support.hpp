// cpp_tests/kernel_support.hpp — matrices with gaps between their rows, which kernels must not touch
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/kernel/matrix.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <vector>

namespace kernel_support {

inline std::mt19937& generator() {
  static std::mt19937 g(20240607);
  return g;
}

inline std::size_t anyOf(std::size_t from, std::size_t to) {
  return std::uniform_int_distribution<std::size_t>(from, to)(generator());
}

template <class T> T anyNumber() {
  return static_cast<T>(std::uniform_real_distribution<double>(-1, 1)(generator()));
}

// Random numbers; in front of the first row, between rows and behind the last one stand markers.
template <class T> class Grid {
public:
  Grid(std::size_t rows, std::size_t cols, std::size_t gap = anyOf(0, 5))
      : rows_(rows), cols_(cols), stride_(cols + gap), offset_(anyOf(1, 9)),
        numbers_(offset_ + rows * stride_ + 9, marker) {
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < cols; ++j) at(i, j) = anyNumber<T>();
  }

  T& at(std::size_t i, std::size_t j) { return numbers_[offset_ + i * stride_ + j]; }
  T at(std::size_t i, std::size_t j) const { return numbers_[offset_ + i * stride_ + j]; }
  T* data() { return numbers_.data() + offset_; }
  std::size_t rows() const { return rows_; }
  std::size_t cols() const { return cols_; }
  burtorch::kernel::Matrix<T> view() { return {data(), rows_, cols_, stride_}; }

  bool isIntact() const {
    for (std::size_t p = 0; p < numbers_.size(); ++p) {
      const bool inside =
          p >= offset_ && p < offset_ + rows_ * stride_ && (p - offset_) % stride_ < cols_;
      if (!inside && numbers_[p] != marker) return false;
    }
    return true;
  }

private:
  static constexpr T marker = T(12345);
  std::size_t rows_, cols_, stride_, offset_;
  std::vector<T> numbers_;
};

// The largest |got - want(i, j)| in units of rounding errors of a sum of `terms` such numbers;
// infinite where something beside the numbers was touched.
template <class T, class F> double worst(const Grid<T>& got, std::size_t terms, const F& want) {
  if (!got.isIntact()) return std::numeric_limits<double>::infinity();
  long double largest = 0;
  for (std::size_t i = 0; i < got.rows(); ++i)
    for (std::size_t j = 0; j < got.cols(); ++j) {
      const long double distance =
          std::fabs(static_cast<long double>(got.at(i, j)) - static_cast<long double>(want(i, j)));
      if (!(distance <= largest)) largest = distance; // NaN stays
    }
  return static_cast<double>(largest / std::numeric_limits<T>::epsilon() /
                             static_cast<long double>(terms));
}

// The central difference of loss() with respect to x, which it reads.
template <class F> double slope(double& x, const F& loss) {
  const double before = x, h = 1e-5;
  x = before + h;
  const double up = loss();
  x = before - h;
  const double down = loss();
  x = before;
  return (up - down) / (2 * h);
}

// Whether `got` equals `before` plus the slope of loss() at each number of x, to a few digits less
// than a central difference has.
template <class F>
bool isGradient(const Grid<double>& got, const Grid<double>& before, Grid<double>& x,
                const F& loss) {
  if (!got.isIntact()) return false;
  for (std::size_t i = 0; i < x.rows(); ++i)
    for (std::size_t j = 0; j < x.cols(); ++j) {
      const double want = before.at(i, j) + slope(x.at(i, j), loss);
      if (!(std::fabs(got.at(i, j) - want) < 1e-8 * (1 + std::fabs(want)))) return false;
    }
  return true;
}

// Σ dy·y: the loss whose gradient with respect to y is dy.
inline double inner(const Grid<double>& y, const Grid<double>& dy) {
  double sum = 0;
  for (std::size_t i = 0; i < y.rows(); ++i)
    for (std::size_t j = 0; j < y.cols(); ++j) sum += y.at(i, j) * dy.at(i, j);
  return sum;
}

// A copy in another precision.
template <class To, class From> Grid<To> as(const Grid<From>& x) {
  Grid<To> y(x.rows(), x.cols());
  for (std::size_t i = 0; i < x.rows(); ++i)
    for (std::size_t j = 0; j < x.cols(); ++j) y.at(i, j) = static_cast<To>(x.at(i, j));
  return y;
}

} // namespace kernel_support
