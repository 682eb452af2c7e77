// burtorch/op/reduce.hpp — operations of any number of operands
// SPDX-License-Identifier: MIT
//
// Sums are pairwise: the error grows with log n, and the inner loop has independent accumulators
// that a compiler can put in vector registers without being allowed to reorder anything.
#pragma once

#include <burtorch/op/kinds.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <type_traits>
#include <utility>

BURTORCH_BEGIN_NAMESPACE

namespace op {

template <class X>
concept TakesEight = requires(const X& x) { x[Eight{0}]; };

// Whether a term made of these sequences can be had for eight indices at once.
template <class... X> inline constexpr bool inEights = (TakesEight<X> && ...);

// Calls f(i) for i in [0, n), eight at a time as long as there are eight.
template <bool eights, class F> constexpr void forEachIndex(std::size_t n, const F& f) {
  std::size_t i = 0;
  if constexpr (eights)
    for (; i + 8 <= n; i += 8) f(Eight{i});
  for (; i < n; ++i) f(i);
}

// Σ term(i) for i in [first, last), fewer than a block: eight interleaved partial sums.
template <class T, bool eights, class Term>
constexpr T sumBlock(std::size_t first, std::size_t last, const Term& term) {
  constexpr std::size_t width = 8;
  if (last - first < width) {
    T sum = T(0);
    for (std::size_t i = first; i < last; ++i) sum = sum + term(i);
    return sum;
  }
  std::array<T, width> s;
  std::size_t i = first + width;
  if constexpr (eights) {
    auto lanes = term(Eight{first});
    for (; i + width <= last; i += width) lanes = lanes + term(Eight{i});
    lanes.store(s.data());
  } else {
    for (std::size_t k = 0; k < width; ++k) s[k] = term(first + k);
    for (; i + width <= last; i += width)
      for (std::size_t k = 0; k < width; ++k) s[k] = s[k] + term(i + k);
  }
  for (std::size_t k = 0; i < last; ++i, ++k) s[k] = s[k] + term(i);
  return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}

// Σ term(i) for i in [0, n): blocks are added like the digits of a binary counter, so that only
// sums of equally many terms meet. No recursion, no memory but one partial sum per bit of n.
template <class T, bool eights = false, class Term>
constexpr T sum(std::size_t n, const Term& term) {
  constexpr std::size_t block = 256;
  if (n <= block) return sumBlock<T, eights>(0, n, term);
  std::array<T, 64> partial{};
  std::size_t blocks = 0;
  for (std::size_t first = 0; first < n; first += block) {
    T s = sumBlock<T, eights>(first, n - first < block ? n : first + block, term);
    std::size_t level = 0;
    for (; (blocks >> level) & 1; ++level) s = partial[level] + s;
    partial[level] = s;
    ++blocks;
  }
  T total = T(0);
  for (std::size_t level = 0; blocks >> level; ++level)
    if ((blocks >> level) & 1) total = partial[level] + total;
  return total;
}

// Two sums in one pass: a term of sum() that is a pair.
template <class T> struct Two {
  T first, second;
  constexpr Two(int zero = 0) : Two(T(zero), T(zero)) {}
  constexpr Two(const T& x, const T& y) : first(x), second(y) {}
  friend constexpr Two operator+(const Two& x, const Two& y) {
    return {x.first + y.first, x.second + y.second};
  }
};

template <class X> using ElementOf = std::remove_cvref_t<decltype(std::declval<const X&>()[0])>;

template <class X> constexpr auto sumOf(const X& x) {
  return sum<ElementOf<X>, inEights<X>>(x.size(), [&](auto i) { return x[i]; });
}

template <class X> constexpr auto sumOfSquares(const X& x) {
  return sum<ElementOf<X>, inEights<X>>(x.size(), [&](auto i) { return x[i] * x[i]; });
}

// An empty sum is 0, an empty product 1, an empty mean 0/0 = NaN.
template <class T> constexpr T count(std::size_t n) { return T(static_cast<double>(n)); }

// The mean of terms whose sum is known. Where the sum overflows, the mean need not: then the terms are made
// smaller by a power of two before they are added.
template <class T, class Term>
constexpr T meanFromSum(const T& total, std::size_t n, const Term& term) {
  const T mean = total / count<T>(n);
  const auto isFinite = total - total == T(0);
  const auto ofSmaller = [&] {
    const double power = static_cast<double>(std::bit_ceil(n));
    const T smaller = T(1 / power);
    return T(sum<T>(n, [&](std::size_t i) { return T(term(i) * smaller); }) /
             T(static_cast<double>(n) / power));
  };
  if constexpr (std::is_same_v<decltype(isFinite), const bool>) {
    if (isFinite) [[likely]]
      return mean;
    return ofSmaller();
  } else {
    if constexpr (requires { static_cast<bool>(all(isFinite)); })
      if (all(isFinite)) [[likely]]
        return mean;
    return select(isFinite, mean, ofSmaller());
  }
}

struct AddVarying : Reduction, Named<"sum", "Σxᵢ"> {
  static constexpr bool keepsZero = true;
  template <class X> static constexpr auto forward(const X& x) { return sumOf(x); }
  template <class X, class T, class Give>
  static constexpr void pullback(const X& x, const T&, const T& g, const Give& give) {
    for (std::size_t i = 0; i < x.size(); ++i) give(i, g);
  }
};

// The first minus all others.
struct SubVarying : Reduction, Named<"sub", "x₁ − Σxᵢ over the others"> {
  static constexpr bool keepsZero = true;
  template <class X> static constexpr auto forward(const X& x) {
    using T = ElementOf<X>;
    if (x.size() == 0) return T(0);
    return T(x[0] - sum<T>(x.size() - 1, [&](std::size_t i) { return x[i + 1]; }));
  }
  template <class X, class T, class Give>
  static constexpr void pullback(const X& x, const T&, const T& g, const Give& give) {
    if (x.size() != 0) give(std::size_t{0}, g);
    for (std::size_t i = 1; i < x.size(); ++i) give(i, -g);
  }
};

// The pullback needs the product of all factors but one, for each. Dividing the product by x[i] is
// wrong where a factor is 0 and where the product over- or underflows. So: halve the range; what
// lies outside a half is the outside of the whole times the product of the other half. n log n
// multiplications, no division.
struct MulVarying : Reduction, Named<"prod", "Πxᵢ"> {
  template <class X>
  static constexpr auto product(const X& x, std::size_t first, std::size_t last) {
    auto p = ElementOf<X>(1);
    for (std::size_t i = first; i < last; ++i) p = p * x[i];
    return p;
  }
  template <class X> static constexpr auto forward(const X& x) { return product(x, 0, x.size()); }
  template <class X, class T, class Give>
  static constexpr void pullback(const X& x, const T&, const T& g, const Give& give) {
    struct Range {
      std::size_t first, last;
      T outside;
    };
    std::array<Range, 65> pending{}; // halving leaves at most one sibling per bit of n
    std::size_t waiting = 0;
    if (x.size() != 0) pending[waiting++] = {0, x.size(), g};
    while (waiting != 0) {
      const auto [first, last, outside] = pending[--waiting];
      if (last - first <= 2) {
        give(first, last - first == 1 ? outside : T(outside * x[first + 1]));
        if (last - first == 2) give(first + 1, outside * x[first]);
        continue;
      }
      const std::size_t middle = first + (last - first) / 2;
      pending[waiting++] = {first, middle, outside * product(x, middle, last)};
      pending[waiting++] = {middle, last, outside * product(x, first, middle)};
    }
  }
};

struct MeanVarying : Reduction, Named<"mean", "Σxᵢ/n"> {
  static constexpr bool keepsZero = true;
  template <class X> static constexpr auto forward(const X& x) {
    return meanFromSum(sumOf(x), x.size(), [&](std::size_t i) { return x[i]; });
  }
  template <class X, class T, class Give>
  static constexpr void pullback(const X& x, const T&, const T& g, const Give& give) {
    AddVarying::pullback(x, g, T(g / count<T>(x.size())), give);
  }
};

struct SumOfSquaresVarying : Reduction, Named<"sum x^2", "Σxᵢ²"> {
  static constexpr bool keepsZero = true;
  template <class X> static constexpr auto forward(const X& x) { return sumOfSquares(x); }
  template <class X, class T, class Give>
  static constexpr void pullback(const X& x, const T&, const T& g, const Give& give) {
    const T twice = g + g;
    for (std::size_t i = 0; i < x.size(); ++i) give(i, twice * x[i]);
  }
};

struct MeanSquaresVarying : Reduction, Named<"mean x^2", "Σxᵢ²/n"> {
  static constexpr bool keepsZero = true;
  template <class X> static constexpr auto forward(const X& x) {
    return meanFromSum(sumOfSquares(x), x.size(), [&](std::size_t i) { return x[i] * x[i]; });
  }
  template <class X, class T, class Give>
  static constexpr void pullback(const X& x, const T& z, const T& g, const Give& give) {
    SumOfSquaresVarying::pullback(x, z, T(g / count<T>(x.size())), give);
  }
};

struct NegativeMeanVarying : Reduction, Named<"-mean", "−Σxᵢ/n"> {
  static constexpr bool keepsZero = true;
  template <class X> static constexpr auto forward(const X& x) { return -MeanVarying::forward(x); }
  template <class X, class T, class Give>
  static constexpr void pullback(const X& x, const T& z, const T& g, const Give& give) {
    MeanVarying::pullback(x, z, T(-g), give);
  }
};

// Variances subtract the mean first: the textbook difference of E[x²] and (E[x])² can come out
// negative.
template <std::size_t LostDegrees> struct Variance : Reduction {
  template <class X> static constexpr auto forward(const X& x) {
    using T = ElementOf<X>;
    const T mean = MeanVarying::forward(x);
    const T squares =
        sum<T>(x.size(), [&](std::size_t i) { return (x[i] - mean) * (x[i] - mean); });
    return T(squares / divisor<T>(x.size()));
  }
  template <class X, class T, class Give>
  static constexpr void pullback(const X& x, const T&, const T& g, const Give& give) {
    const T mean = MeanVarying::forward(x);
    const T scale = (g + g) / divisor<T>(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) give(i, scale * (x[i] - mean));
  }
  template <class T> static constexpr T divisor(std::size_t n) {
    return count<T>(n > LostDegrees ? n - LostDegrees : 0);
  }
};

// Divided by n.
struct VarianceBiasedVarying : Variance<0>, Named<"var/n", "Σ(xᵢ − mean)²/n"> {};

// Divided by n − 1: NaN for a single operand.
struct VarianceVarying : Variance<1>, Named<"var", "Σ(xᵢ − mean)²/(n − 1)"> {};

// The gradient of an extremum goes to the first operand that attains it.
template <bool Largest> struct Extremum : Reduction {
  static constexpr bool keepsZero = true;
  template <class X> static constexpr auto forward(const X& x) {
    auto best = x[0];
    for (std::size_t i = 1; i < x.size(); ++i)
      best = select(Largest ? best < x[i] : x[i] < best, x[i], select(x[i] == x[i], best, x[i]));
    return best;
  }
  template <class X, class T, class Give>
  static constexpr void pullback(const X& x, const T& z, const T& g, const Give& give) {
    T left = g;
    for (std::size_t i = 0; i < x.size(); ++i) {
      give(i, select(x[i] == z, left, T(0)));
      left = select(x[i] == z, T(0), left);
    }
  }
  static constexpr bool usesOutput = true;
};

struct MaxVarying : Extremum<true>,
                    Named<"max", "the largest xᵢ, whose first place takes the gradient"> {};

struct MinVarying : Extremum<false>,
                    Named<"min", "the smallest xᵢ, whose first place takes the gradient"> {};

template <bool WithBias> struct InnerProduct : Product {
  static constexpr bool hasBias = WithBias;
  static constexpr bool keepsZero = true;
  template <class X, class Y> static constexpr auto forward(const X& x, const Y& y) {
    return sum<ElementOf<X>, inEights<X, Y>>(x.size(), [&](auto i) { return x[i] * y[i]; });
  }
  template <class X, class Y, class T, class GiveX, class GiveY>
  static constexpr void pullback(const X& x, const Y& y, const T& g, const GiveX& giveX,
                                 const GiveY& giveY) {
    constexpr bool eights = inEights<X, Y>;
    forEachIndex<eights>(x.size(), [&](auto i) { giveX(i, g * y[i]); });
    forEachIndex<eights>(x.size(), [&](auto i) { giveY(i, g * x[i]); });
  }
};

struct InnerProductNoBias : InnerProduct<false>, Named<"<x,y>", "Σxᵢyᵢ"> {};

struct InnerProductWithBias : InnerProduct<true>, Named<"<x,y>+b", "Σxᵢyᵢ + bias"> {};

} // namespace op

BURTORCH_END_NAMESPACE
