// burtorch/value.hpp — the handle users hold: one scalar, its operators and functions
// SPDX-License-Identifier: MIT
//
// A Value is a tape and an index: 16 bytes, copied freely, owning nothing. Operators append to the
// tape of their operands; plain numbers mix in on either side and take no node. The functions at
// the end come from the table of operations.
#pragma once

#include <burtorch/op/table.hpp>
#include <burtorch/tape/tape.hpp>

#include <algorithm>
#include <compare>
#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

BURTORCH_BEGIN_NAMESPACE

// A plain number that becomes a T.
template <class Number, class T>
concept NumberFor = std::is_arithmetic_v<Number> || std::same_as<Number, T>;

template <Scalar T, class... Options> class Value {
public:
  using Scalar = T;
  using TapeType = Tape<T, Options...>;
  using Index = typename TapeType::Index;

  // An empty handle, to be assigned to. Used as the first operand it fails, as what is set, compared or
  // differentiated, too; read, or as the second operand, it is NaN unless BURTORCH_CHECKS refuses it.
  Value() = default;

  // A leaf on this thread's current tape, or on a given one.
  template <NumberFor<T> Number>
  BURTORCH_INLINE explicit Value(const Number& x) : Value(TapeType::current(), x) {}
  template <NumberFor<T> Number>
  BURTORCH_INLINE Value(TapeType& tape, const Number& x)
      : Value(at(tape, tape.leaf(static_cast<T>(x)))) {}

  // The handle of an existing node.
  static BURTORCH_INLINE Value at(TapeType& tape, std::size_t index) {
    BURTORCH_ASSERT(index < tape.size(), badArgument,
                    "node " + std::to_string(index) + " of a tape of " +
                        std::to_string(tape.size()));
    Value v;
    v.tape_ = &tape;
    v.index_ = static_cast<Index>(index);
#if BURTORCH_CHECKS
    v.birth_ = tape.births_[index];
#endif
    return v;
  }

  BURTORCH_INLINE T dataCopy() const {
    check();
    return tape_->values_[index_];
  }
  T gradCopy() const {
    check();
    return tape_->grads_[index_];
  }
  void setData(const T& x) const {
    demandNode();
    tape_->values_[index_] = x;
  }
  void setGrad(const T& x) const {
    demandNode();
    tape_->grads()[index_] = x;
  }
  template <class Text> void setLabel([[maybe_unused]] Text&& label) const {
#if BURTORCH_LABELS
    check();
    tape_->setLabel(index_, std::string(std::forward<Text>(label)));
#endif
  }
  std::string label() const {
    check();
    return tape_->label(index_);
  }
  Index sysGetRawNodeIndex() const { return index_; }
  BURTORCH_INLINE TapeType& tape() const {
    check();
    return *tape_;
  }
  bool isEmpty() const { return tape_->isNowhere(); }
  Op operation() const {
    const std::size_t record = tape().recordOf(index_);
    return record == tape_->records().size() ? Op::eLeaf : tape_->records()[record].operation();
  }
  OpNames names() const { return tape().namesOf(tape_->recordOf(index_)); } // of its operation

  template <class Y> Value& operator+=(const Y& y) { return *this = *this + y; }
  template <class Y> Value& operator-=(const Y& y) { return *this = *this - y; }
  template <class Y> Value& operator*=(const Y& y) { return *this = *this * y; }
  template <class Y> Value& operator/=(const Y& y) { return *this = *this / y; }

  // Whether the handle's node is still there. Without BURTORCH_CHECKS a node that took its index is
  // not told apart.
  BURTORCH_INLINE bool isAlive() const {
    if (index_ >= tape_->size()) return false; // as that of an empty handle is
#if BURTORCH_CHECKS
    return tape_->births_[index_] == birth_;
#else
    return true;
#endif
  }
  // Contract of every use: the handle is not empty and its node has not been rewound or collected.
  BURTORCH_INLINE void check() const {
#if BURTORCH_CHECKS
    if (!isAlive()) failCheck();
#endif
  }
  // With another node, or with a number.
  BURTORCH_INLINE void noteComparison(std::size_t other = 0) const {
    check();
    tape_->noteComparison(std::max(std::size_t{index_}, other));
  }
  BURTORCH_INLINE void checkSameTape([[maybe_unused]] const Value& other) const {
    check();
    other.check();
    BURTORCH_ASSERT(tape_ == other.tape_, differentTapes, "operands live on two tapes");
  }

private:
  friend TapeType;
  void demandNode() const {
    check();
    if (isEmpty()) TapeType::failEmpty();
  }
  [[noreturn]] BURTORCH_COLD void failCheck() const {
    if (isEmpty()) TapeType::failEmpty();
    detail::fail(ErrorKind::staleHandle, "a Value was used after its node (index " +
                                             std::to_string(index_) +
                                             ") was rewound or collected away");
  }
  void settleOn(TapeType& tape) { *this = at(tape, index_); } // after collect()
  TapeType* tape_ = &detail::nowhere<TapeType>;
  Index index_ = 0;
#if BURTORCH_CHECKS
  std::uint32_t birth_ = 0;
#endif
};

template <class Number>
Value(Number) -> Value<std::conditional_t<std::integral<Number>, double, Number>>;
template <class T, class... Options, class Number>
Value(Tape<T, Options...>&, Number) -> Value<T, Options...>;

namespace detail {

template <class V> inline constexpr bool isValue = false;
template <class T, class... Options> inline constexpr bool isValue<Value<T, Options...>> = true;

} // namespace detail

template <class V>
concept AnyValue = detail::isValue<V>;

// What may stand beside a V in an operation: a plain number, or another V.
template <class Y, class V>
concept NumberBeside = AnyValue<V> && NumberFor<Y, typename V::Scalar>;
template <class Y, class V>
concept OperandBeside = NumberBeside<Y, V> || (AnyValue<V> && std::same_as<Y, V>);

// Two operands, at least one of them a Value; two Values must be of one type (no mixing of
// precisions).
template <class X, class Y>
concept OperandsOfOneType =
    (AnyValue<X> && OperandBeside<Y, X>) || (AnyValue<Y> && OperandBeside<X, Y>);

// A range of Values that knows its size: std::vector, std::array, std::span, …
template <class R>
concept RangeOfValues = std::ranges::random_access_range<R> && std::ranges::sized_range<R> &&
                        AnyValue<std::remove_cv_t<std::ranges::range_value_t<R>>>;

// ---- applying an operation: one append -----------------------------------------------------------

// How the result's value is found when an operation is applied.
template <class O> struct Evaluate { // as the operation says
  template <class... X> BURTORCH_INLINE constexpr auto operator()(const X&... x) const {
    return O::forward(computed(x)...);
  }
};
// Only if the pullback reads it: for a root whose gradient is all that is wanted.
template <class O, class T> struct EvaluateIfPulled {
  template <class... X> BURTORCH_INLINE constexpr auto operator()(const X&... x) const {
    if constexpr (O::usesOutput) return O::forward(computed(x)...);
    else return ComputedIn<T>(std::numeric_limits<double>::quiet_NaN());
  }
};
template <class T> struct Evaluated { // it is known already
  T value;
  template <class... X> constexpr T operator()(const X&...) const { return value; }
};

template <class O, class How, AnyValue V>
  requires op::is<op::Unary, O>
BURTORCH_INLINE V applyAs(How how, const V& x) {
  constexpr Code code = codeOf(op::Entry<O>::code);
  using T = typename V::Scalar;
  return V::at(x.tape(),
               x.tape().push(code, static_cast<T>(how(x.dataCopy())), x.sysGetRawNodeIndex(), 0));
}

template <class O, class How, class X, class Y>
  requires op::is<op::Binary, O> && OperandsOfOneType<X, Y>
BURTORCH_INLINE auto applyAs(How how, const X& x, const Y& y) {
  constexpr Op op = op::Entry<O>::code;
  if constexpr (!AnyValue<Y>) {
    using T = typename X::Scalar;
    const auto number = static_cast<T>(y);
    const auto result = static_cast<T>(how(x.dataCopy(), number));
    return X::at(x.tape(), x.tape().pushWithNumber(codeOf(op, Form::nodeNumber), result,
                                                   x.sysGetRawNodeIndex(), number));
  } else if constexpr (!AnyValue<X>) {
    using T = typename Y::Scalar;
    const auto number = static_cast<T>(x);
    const auto result = static_cast<T>(how(number, y.dataCopy()));
    return Y::at(y.tape(), y.tape().pushWithNumber(codeOf(op, Form::numberNode), result,
                                                   y.sysGetRawNodeIndex(), number));
  } else {
    x.checkSameTape(y);
    using T = typename X::Scalar;
    return X::at(x.tape(),
                 x.tape().push(codeOf(op), static_cast<T>(how(x.dataCopy(), y.dataCopy())),
                               x.sysGetRawNodeIndex(), y.sysGetRawNodeIndex()));
  }
}

template <class O, class How, AnyValue V>
  requires op::is<op::Clipped, O>
V applyAs(How how, const V& x, typename V::Scalar lo, typename V::Scalar hi) {
  const auto result = static_cast<typename V::Scalar>(how(x.dataCopy(), lo, hi));
  return V::at(x.tape(), x.tape().pushWithBounds(codeOf(op::Entry<O>::code), result,
                                                 x.sysGetRawNodeIndex(), lo, hi));
}

namespace detail {

template <class R> using ValueIn = std::remove_cv_t<std::ranges::range_value_t<R>>;

// The tape of a range's Values; the current one if there are none.
template <RangeOfValues R> auto& tapeOf(const R& x) {
  if (std::ranges::empty(x)) return ValueIn<R>::TapeType::current();
  const auto& first = *std::ranges::begin(x);
#if BURTORCH_CHECKS
  for (const auto& each : x) first.checkSameTape(each);
#endif
  return first.tape();
}

// The tape of the first operand that has one.
template <class X, class... Rest> auto& tapeAmong(const X& x, const Rest&... rest) {
  if constexpr (AnyValue<X>) return x.tape();
  else if constexpr (RangeOfValues<X>) return tapeOf(x);
  else return tapeAmong(rest...);
}

template <RangeOfValues R> auto indexIn(const R& x) {
  return [first = std::ranges::begin(x)](std::size_t i) {
    return first[static_cast<std::ranges::range_difference_t<const R>>(i)].sysGetRawNodeIndex();
  };
}

} // namespace detail

template <class O, class How, RangeOfValues R>
  requires op::is<op::Reduction, O>
auto applyAs(How how, const R& x) {
  if constexpr (op::is<op::Extremum<true>, O> || op::is<op::Extremum<false>, O>)
    if (std::ranges::empty(x)) detail::fail(ErrorKind::badArgument, "the extremum of no operands");
  auto& tape = detail::tapeOf(x);
  return detail::ValueIn<R>::at(
      tape, tape.template pushReduction<O>(std::ranges::size(x), detail::indexIn(x), how));
}

// One bias for a Product that has one, none otherwise.
template <class O, class How, RangeOfValues X, RangeOfValues Y>
  requires op::is<op::Product, O> && std::same_as<detail::ValueIn<X>, detail::ValueIn<Y>>
auto applyAs(How how, const X& x, const Y& y, const detail::ValueIn<X>& bias = {}) {
  const std::size_t n = std::ranges::size(x);
  if (n != std::ranges::size(y))
    detail::fail(ErrorKind::badArgument, "an inner product of " + std::to_string(n) + " with " +
                                             std::to_string(std::ranges::size(y)) + " operands");
  auto& tape = O::hasBias ? bias.tape() : detail::tapeOf(x);
  if (n != 0)
    BURTORCH_ASSERT(&detail::tapeOf(x) == &tape && &detail::tapeOf(y) == &tape, differentTapes,
                    "operands live on two tapes");
  return detail::ValueIn<X>::at(tape, tape.template pushProduct<O>(n, detail::indexIn(x),
                                                                   detail::indexIn(y),
                                                                   bias.sysGetRawNodeIndex(), how));
}

template <class O, class... Operands>
  requires requires(const Operands&... x) { applyAs<O>(Evaluate<O>{}, x...); }
BURTORCH_INLINE auto apply(const Operands&... x) {
  return applyAs<O>(Evaluate<O>{}, x...);
}

// ---- the functions of the table ------------------------------------------------------------------

#define BURTORCH_FUNCTION(Name, function)                                                          \
  template <AnyValue V> BURTORCH_INLINE V function(const V& x) { return apply<op::Name>(x); }
BURTORCH_UNARY_OPERATIONS(BURTORCH_FUNCTION)
#undef BURTORCH_FUNCTION

#define BURTORCH_FUNCTION(Name, function)                                                          \
  template <class X, OperandsOfOneType<X> Y>                                                       \
  BURTORCH_INLINE auto function(const X& x, const Y& y) {                                          \
    return apply<op::Name>(x, y);                                                                  \
  }
BURTORCH_BINARY_OPERATIONS(BURTORCH_FUNCTION)
#undef BURTORCH_FUNCTION

#define BURTORCH_FUNCTION(Name, function)                                                          \
  template <AnyValue V, NumberBeside<V> Lo, NumberBeside<V> Hi>                                    \
  V function(const V& x, const Lo& lo, const Hi& hi) {                                             \
    using T = typename V::Scalar;                                                                  \
    return apply<op::Name>(x, static_cast<T>(lo), static_cast<T>(hi));                             \
  }
BURTORCH_CLIPPED_OPERATIONS(BURTORCH_FUNCTION)
#undef BURTORCH_FUNCTION

#define BURTORCH_FUNCTION(Name, function)                                                          \
  template <RangeOfValues R> auto function(const R& x) { return apply<op::Name>(x); }              \
  template <AnyValue V> V function(std::initializer_list<V> x) {                                   \
    return apply<op::Name>(std::span(x.begin(), x.size()));                                        \
  }
BURTORCH_REDUCTIONS(BURTORCH_FUNCTION)
#undef BURTORCH_FUNCTION

template <RangeOfValues X, RangeOfValues Y> auto innerProduct(const X& x, const Y& y) {
  return apply<op::InnerProductNoBias>(x, y);
}
template <AnyValue V> V innerProduct(std::initializer_list<V> x, std::initializer_list<V> y) {
  return innerProduct(std::span(x.begin(), x.size()), std::span(y.begin(), y.size()));
}
template <RangeOfValues X, RangeOfValues Y>
auto innerProductWithBias(const X& x, const Y& y, const detail::ValueIn<X>& bias) {
  return apply<op::InnerProductWithBias>(x, y, bias);
}
template <AnyValue V>
V innerProductWithBias(std::initializer_list<V> x, std::initializer_list<V> y, const V& bias) {
  return innerProductWithBias(std::span(x.begin(), x.size()), std::span(y.begin(), y.size()), bias);
}

// The mean and the mean of squares of the same operands, which are read once.
template <RangeOfValues R> auto reduceMeanAndMeanSquares(const R& x) {
  using T = typename detail::ValueIn<R>::Scalar;
  const std::size_t n = std::ranges::size(x);
  using C = ComputedIn<T>;
  const T* const values = detail::tapeOf(x).values().data();
  const auto value = [values, index = detail::indexIn(x)](std::size_t i) {
    return C(computed(values[index(i)]));
  };
  const auto square = [&](std::size_t i) { return value(i) * value(i); };
  const auto sums = op::sum<op::Two<C>>(n, [&](std::size_t i) {
    const C v = value(i);
    return op::Two<C>(v, v * v);
  });
  const C first = op::meanFromSum(sums.first, n, value);
  const C second = op::meanFromSum(sums.second, n, square);
  const auto mean = applyAs<op::MeanVarying>(Evaluated<C>{first}, x);
  const auto meanSquares = applyAs<op::MeanSquaresVarying>(Evaluated<C>{second}, x);
  return std::pair{mean, meanSquares};
}
template <AnyValue V> auto reduceMeanAndMeanSquares(std::initializer_list<V> x) {
  return reduceMeanAndMeanSquares(std::span(x.begin(), x.size()));
}

template <AnyValue V> BURTORCH_INLINE V log(const V& x) { return logarithm(x); }

// ---- operators -----------------------------------------------------------------------------------

template <class X, OperandsOfOneType<X> Y> BURTORCH_INLINE auto operator+(const X& x, const Y& y) {
  return add(x, y);
}
template <class X, OperandsOfOneType<X> Y> BURTORCH_INLINE auto operator-(const X& x, const Y& y) {
  return sub(x, y);
}
template <class X, OperandsOfOneType<X> Y> BURTORCH_INLINE auto operator*(const X& x, const Y& y) {
  return mul(x, y);
}
template <class X, OperandsOfOneType<X> Y> BURTORCH_INLINE auto operator/(const X& x, const Y& y) {
  return div(x, y);
}
template <AnyValue V> BURTORCH_INLINE V operator-(const V& x) { return negative(x); }
template <AnyValue V> BURTORCH_INLINE V operator+(const V& x) { return x; }

// The handle moves to the new node; other handles to the old node stay where they are.
template <AnyValue V, OperandBeside<V> Y> V& addInplace(V& x, const Y& y) { return x += y; }
template <AnyValue V, OperandBeside<V> Y> V& subInplace(V& x, const Y& y) { return x -= y; }
template <AnyValue V, OperandBeside<V> Y> V& multInplace(V& x, const Y& y) { return x *= y; }
template <AnyValue V, OperandBeside<V> Y> V& divInplace(V& x, const Y& y) { return x /= y; }

// Comparisons look at the numbers only and record nothing, but that there was one: see Branches in
// replay.hpp. Comparing what dataCopy() returned leaves no trace.
namespace detail {
template <class V, class Y> BURTORCH_INLINE auto compared(const V& x, const Y& y) {
  if constexpr (!AnyValue<Y>) {
    x.noteComparison();
    return static_cast<typename V::Scalar>(y);
  } else {
    if (&x.tape() == &y.tape()) {
      x.noteComparison(y.sysGetRawNodeIndex());
    } else {
      x.noteComparison();
      y.noteComparison();
    }
    return y.dataCopy();
  }
}
} // namespace detail
template <AnyValue V, OperandBeside<V> Y> BURTORCH_INLINE bool operator==(const V& x, const Y& y) {
  return x.dataCopy() == detail::compared(x, y);
}
template <AnyValue V, OperandBeside<V> Y> BURTORCH_INLINE auto operator<=>(const V& x, const Y& y) {
  return x.dataCopy() <=> detail::compared(x, y);
}

BURTORCH_END_NAMESPACE

// A Value's type has the digits and the range of its scalar, but no numbers: a limit would have to be a
// leaf on some tape, and the empty handle that the standard's own template returns is none.
template <class T, class... Options>
struct std::numeric_limits<burtorch::Value<T, Options...>> : std::numeric_limits<T> {
#define BURTORCH_NO_LIMIT(function)                                                                \
  template <class Asked = burtorch::Value<T, Options...>> static Asked function() {                \
    static_assert(!std::is_same_v<Asked, Asked>,                                                   \
                  "std::numeric_limits of a Value: there is no such Value. Ask the limits of its " \
                  "scalar, std::numeric_limits<T>, and use the number as it is or as a leaf");     \
    return Asked();                                                                                \
  }
  // clang-format off
  BURTORCH_NO_LIMIT(min) BURTORCH_NO_LIMIT(max) BURTORCH_NO_LIMIT(lowest)
  BURTORCH_NO_LIMIT(epsilon) BURTORCH_NO_LIMIT(round_error) BURTORCH_NO_LIMIT(denorm_min)
  BURTORCH_NO_LIMIT(infinity) BURTORCH_NO_LIMIT(quiet_NaN) BURTORCH_NO_LIMIT(signaling_NaN)
  // clang-format on
#undef BURTORCH_NO_LIMIT
};
