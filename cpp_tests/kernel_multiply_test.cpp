// cpp_tests/kernel_multiply_test.cpp — products of matrices of all small sizes against plain loops
// SPDX-License-Identifier: MIT
#include "kernel_support.hpp"

#include <burtorch/kernel/multiply.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

namespace {

namespace bk = burtorch::kernel;
using kernel_support::anyOf;
using kernel_support::Grid;
using kernel_support::worst;

struct Shape {
  std::size_t m, n, k;
};

// Sizes at which a way of computing ends or begins, and random ones.
std::vector<Shape> shapes() {
  std::vector<Shape> all{{1, 1, 1},     {1, 27, 64}, {8, 72, 24},   {8, 65, 24},
                         {64, 24, 96},  {5, 4, 33},  {64, 4, 1024}, {7, 70, 193},
                         {64, 64, 400}, {4, 8, 0},   {64, 100, 8},  {30, 48, 192},
                         {30, 48, 193}, {0, 5, 5},   {5, 0, 5},     {12, 80, 1000}};
  for (int i = 0; i < 150; ++i) all.push_back({anyOf(1, 70), anyOf(1, 70), anyOf(1, 70)});
  return all;
}

template <class T> Grid<T> grid(std::size_t rows, std::size_t cols) { return {rows, cols}; }

enum class Form { NT, NN, TN };

// w may lie in a much wider matrix: rows that are far apart are copied before they are used.
template <class T> double worstOf(Form form, Shape s, bk::Store how, std::size_t gap) {
  const bool turned = form == Form::TN;
  Grid<T> x = turned ? grid<T>(s.k, s.m) : grid<T>(s.m, s.k);
  Grid<T> w = form == Form::NT ? Grid<T>(s.n, s.k, gap) : Grid<T>(s.k, s.n, gap);
  Grid<T> y(s.m, s.n);
  const Grid<T> before = y;
  if (form == Form::NT) bk::multiplyNT(x.view(), w.view(), y.view(), how);
  if (form == Form::NN) bk::multiplyNN(x.view(), w.view(), y.view(), how);
  if (form == Form::TN) bk::multiplyTN(x.view(), w.view(), y.view(), how);
  return worst(y, s.k + 1, [&](std::size_t i, std::size_t j) {
    long double sum = how == bk::Store::add ? before.at(i, j) : T(0);
    for (std::size_t p = 0; p < s.k; ++p)
      sum += static_cast<long double>(turned ? x.at(p, i) : x.at(i, p)) *
             (form == Form::NT ? w.at(j, p) : w.at(p, j));
    return sum;
  });
}

TEST_CASE_TEMPLATE("the three forms equal plain loops", T, float, double, long double) {
  for (const Shape& s : shapes())
    for (const Form form : {Form::NT, Form::NN, Form::TN})
      for (const bk::Store how : {bk::Store::assign, bk::Store::add})
        for (const std::size_t gap : {0u, 1000u}) {
          CAPTURE(s.m);
          CAPTURE(s.n);
          CAPTURE(s.k);
          CAPTURE(static_cast<int>(form));
          CHECK(worstOf<T>(form, s, how, gap) <= 1);
        }
}

// A scalar that is neither float nor double, with lanes of its own.
TEST_CASE("a scalar with lanes") {
  using Lanes = burtorch::simd<float, 4>;
  constexpr std::size_t m = 5, n = 7, k = 3;
  std::vector<Lanes> x(m * k), w(n * k), y(m * n, Lanes(9.0f));
  for (std::size_t i = 0; i < x.size(); ++i)
    for (std::size_t l = 0; l < 4; ++l) x[i].set(l, static_cast<float>(i + l));
  for (std::size_t i = 0; i < w.size(); ++i)
    for (std::size_t l = 0; l < 4; ++l) w[i].set(l, static_cast<float>(i * (l + 1)));
  bk::multiplyNT<Lanes>({x.data(), m, k, k}, {w.data(), n, k, k}, {y.data(), m, n, n},
                        bk::Store::assign);
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t l = 0; l < 4; ++l) {
        float sum = 0;
        for (std::size_t p = 0; p < k; ++p) sum += x[i * k + p][l] * w[j * k + p][l];
        CHECK(y[i * n + j][l] == sum);
      }
}

} // namespace
