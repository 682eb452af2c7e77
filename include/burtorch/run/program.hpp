// burtorch/run/program.hpp — a function recorded while compiling, run as straight-line code
// SPDX-License-Identifier: MIT
//
//   using P = Program<[](auto a, auto b) { return sqr(a * b + pow3(b)) / 2.0; }, 2>;
//   double g = P::valueAndGradient(x, gradient);     // x, gradient: anything with two elements
//
// The lambda is called once, by the compiler, with Symbols instead of numbers; what it does to them is a
// list of instructions, known as a constant. Running the program is one expression per instruction
// over a local array with constant indices, which the optimizer turns into registers: no tape, no
// switch, no memory. The calculus is that of the table: the same structs that the tape runs.
//
// Loops with constant bounds and in-place operators work, as they do in any constant expression. What can't
// work is to branch on a value, which does not exist yet: `if (a < b)` says so, and
// select(a < b, x, y) is the way out; conditions have &&, || and !.
//
// The lambda takes `inputs` symbols, or one std::array of them, and returns a symbol or several outputs as a
// std::array or std::tuple of symbols; a number is a symbol that depends on nothing. T is the type of
// x's elements: any scalar, also simd<T, N> and dual<T>.
//
//   value(x)                     gradient(x), gradient(x, out)      valueAndGradient(x, out)
//   values(x)                    jacobian(x, out): a row per output
//   hessian(x, out)              through duals: a row per input
//
// All of them are constexpr where the operations of the lambda are (arithmetic is).
//
// As on a tape, an adjoint of 0 gives nothing, even where the derivative is no finite number. Asking costs, so
// operations that keep a 0 by themselves (op/kinds.hpp) are asked only in what a select chooses from, which
// has no say if it is not chosen, and where an operand came out of other operations, as in x·log(x). What is
// left: a tape gives 0 where this gives NaN if an input is not finite or a product overflowed.
#pragma once

#include <burtorch/base/config.hpp>
#include <burtorch/base/error.hpp>
#include <burtorch/op/record.hpp>
#include <burtorch/op/table.hpp>
#include <burtorch/op/dual.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

// The most instructions a Program may have. Compilers need memory and time in proportion: some seconds and some
// hundred megabytes per thousand.
#ifndef BURTORCH_PROGRAM_LIMIT
#define BURTORCH_PROGRAM_LIMIT 4000
#endif

BURTORCH_BEGIN_NAMESPACE

namespace detail {

template <Op operation> struct OperationOf;
#define BURTORCH_OPERATION_OF(Name, function)                                                      \
  template <> struct OperationOf<Op::e##Name> {                                                    \
    using type = op::Name;                                                                         \
  };
BURTORCH_OPERATIONS(BURTORCH_OPERATION_OF)
#undef BURTORCH_OPERATION_OF

constexpr bool keepsZero(Op operation) {
  switch (operation) {
#define BURTORCH_CASE(Name, function)                                                              \
  case Op::e##Name:                                                                                \
    return op::Name::isLinear || op::Name::keepsZero;
    BURTORCH_OPERATIONS(BURTORCH_CASE)
#undef BURTORCH_CASE
  default:
    return true; // a number, a select
  }
}

enum class Comparison : std::uint8_t { less, lessEqual, greater, greaterEqual, equal, notEqual };

// Nodes are numbered inputs first, then results. With operation eLeaf: in the form `list` a select,
// of which the list says x, y and what is compared; in the form `numberNode` the constant at a.
struct Instruction {
  Op operation = Op::eLeaf;
  Form form = Form::nodes;
  Comparison comparison = Comparison::less;
  std::uint32_t a = 0, b = 0;                                     // as in a record (op/record.hpp)
  constexpr Code code() const { return codeOf(operation, form); } // of an operation
};

// What is compared, or how other conditions (by their places) are joined.
struct Condition {
  enum class Kind : std::uint8_t { compares, both, either, negates };
  Kind kind;
  Comparison comparison;
  std::uint32_t x, y;
};

enum class Mistake : std::uint8_t { none, tooLong, differentLengths };

// Not constexpr: a call ends the recording, with its name in the compiler's message.
inline void aSymbolWasUsedBeforeItWasGivenAValue() {}
inline void thisProgramIsFarBeyond_BURTORCH_PROGRAM_LIMIT() {}

struct Recorder {
  std::size_t inputs;
  std::vector<Instruction> code{};
  std::vector<std::uint32_t> operands{};
  std::vector<double> constants{};
  std::vector<Condition> conditions{};
  Mistake mistake = Mistake::none;
  std::size_t dropped = 0;

  // What is too long is not recorded to its end: it could take a compiler minutes to say so, or more steps
  // than it is willing to take.
  constexpr bool isFull() const { return code.size() == BURTORCH_PROGRAM_LIMIT; }

  constexpr std::uint32_t add(const Instruction& instruction) {
    if (isFull()) {
      mistake = Mistake::tooLong;
      if (++dropped == BURTORCH_PROGRAM_LIMIT) thisProgramIsFarBeyond_BURTORCH_PROGRAM_LIMIT();
    } else {
      code.push_back(instruction);
    }
    return static_cast<std::uint32_t>(inputs + code.size() - 1);
  }
  constexpr std::uint32_t constant(double number) {
    if (!isFull()) constants.push_back(number);
    return static_cast<std::uint32_t>(constants.size() - 1);
  }
  constexpr std::uint32_t operand(std::uint32_t node) {
    if (!isFull()) operands.push_back(node);
    return static_cast<std::uint32_t>(operands.size() - 1);
  }
  constexpr std::uint32_t condition(const Condition& what) {
    if (!isFull()) conditions.push_back(what);
    return static_cast<std::uint32_t>(conditions.size() - 1);
  }
};

template <class Bool> constexpr Bool refuseBranch() {
  static_assert(!std::same_as<Bool, bool>,
                "a Program is recorded while compiling, when its inputs have no values: it can't "
                "branch on them. Use select(condition, ifTrue, ifFalse).");
  return Bool();
}

template <class X>
concept PlainNumber = std::is_arithmetic_v<X>;

} // namespace detail

// A number of a program that is being recorded.
struct Symbol {
  detail::Recorder* recorder = nullptr;
  std::uint32_t node = 0;

  template <class Y> constexpr Symbol& operator+=(const Y& y) { return *this = *this + y; }
  template <class Y> constexpr Symbol& operator-=(const Y& y) { return *this = *this - y; }
  template <class Y> constexpr Symbol& operator*=(const Y& y) { return *this = *this * y; }
  template <class Y> constexpr Symbol& operator/=(const Y& y) { return *this = *this / y; }

  template <std::same_as<bool> Bool> constexpr explicit operator Bool() const {
    return detail::refuseBranch<Bool>();
  }
};

// What comparing Symbols gives: a condition for select.
struct SymbolicCondition {
  detail::Recorder* recorder;
  std::uint32_t place; // among the recorder's conditions

  template <std::same_as<bool> Bool> constexpr operator Bool() const {
    return detail::refuseBranch<Bool>();
  }
};

namespace detail {

template <class X, class Y>
concept SymbolOperands = (std::same_as<X, Symbol> && (std::same_as<Y, Symbol> || PlainNumber<Y>)) ||
                         (PlainNumber<X> && std::same_as<Y, Symbol>);

constexpr Recorder& recorderOf(const Symbol& x) {
  if (x.recorder == nullptr) aSymbolWasUsedBeforeItWasGivenAValue();
  return *x.recorder;
}
template <class X, class Y> constexpr Recorder& recorderOf(const X& x, const Y& y) {
  if constexpr (std::same_as<X, Symbol> && std::same_as<Y, Symbol>) recorderOf(y);
  if constexpr (std::same_as<X, Symbol>) return recorderOf(x);
  else return recorderOf(y);
}

template <class O> constexpr Symbol record(const Symbol& x) {
  Recorder& recorder = recorderOf(x);
  return {&recorder, recorder.add({op::Entry<O>::code, Form::nodes, {}, x.node, 0})};
}
template <class O, class X, class Y> constexpr Symbol record(const X& x, const Y& y) {
  constexpr Op code = op::Entry<O>::code;
  Recorder& recorder = recorderOf(x, y);
  const auto place = [&](const auto& plain) {
    return recorder.constant(static_cast<double>(plain));
  };
  if constexpr (!std::same_as<Y, Symbol>)
    return {&recorder, recorder.add({code, Form::nodeNumber, {}, x.node, place(y)})};
  else if constexpr (!std::same_as<X, Symbol>)
    return {&recorder, recorder.add({code, Form::numberNode, {}, place(x), y.node})};
  else return {&recorder, recorder.add({code, Form::nodes, {}, x.node, y.node})};
}
// A number as a node: something to compare with, to choose or to return.
constexpr Symbol asNode(Recorder& recorder, double number) {
  const std::uint32_t place = recorder.constant(number);
  return {&recorder, recorder.add({Op::eLeaf, Form::numberNode, {}, place, 0})};
}
constexpr Symbol asNode(Recorder&, const Symbol& x) { return {&recorderOf(x), x.node}; }

template <class O> constexpr Symbol recordList(std::span<const Symbol> x, std::size_t count) {
  Recorder& recorder = recorderOf(x.front());
  const auto first = static_cast<std::uint32_t>(recorder.operands.size());
  for (const Symbol& each : x) recorder.operand(asNode(recorder, each).node);
  return {
      &recorder,
      recorder.add({op::Entry<O>::code, Form::list, {}, first, static_cast<std::uint32_t>(count)})};
}

template <class X, class Y>
constexpr SymbolicCondition compare(Comparison how, const X& x, const Y& y) {
  Recorder& recorder = recorderOf(x, y);
  const std::uint32_t atX = asNode(recorder, x).node, atY = asNode(recorder, y).node;
  return {&recorder, recorder.condition({Condition::Kind::compares, how, atX, atY})};
}
constexpr SymbolicCondition join(Condition::Kind how, const SymbolicCondition& x,
                                 const SymbolicCondition& y) {
  return {x.recorder, x.recorder->condition({how, {}, x.place, y.place})};
}

// One instruction per comparison: joined conditions choose in turn.
constexpr Symbol choose(const SymbolicCondition& condition, const Symbol& x, const Symbol& y) {
  Recorder& recorder = *condition.recorder;
  if (recorder.isFull()) return {&recorder, recorder.add({})};
  const Condition c = recorder.conditions[condition.place];
  const SymbolicCondition left{&recorder, c.x}, right{&recorder, c.y};
  if (c.kind == Condition::Kind::both) return choose(left, choose(right, x, y), y);
  if (c.kind == Condition::Kind::either) return choose(left, x, choose(right, x, y));
  if (c.kind == Condition::Kind::negates) return choose(left, y, x);
  const auto first = static_cast<std::uint32_t>(recorder.operands.size());
  for (const std::uint32_t node : {x.node, y.node, c.x, c.y}) recorder.operand(node);
  return {&recorder, recorder.add({Op::eLeaf, Form::list, c.comparison, first, 4})};
}

} // namespace detail

#define BURTORCH_FUNCTION(Name, function)                                                          \
  constexpr Symbol function(const Symbol& x) { return detail::record<op::Name>(x); }
BURTORCH_UNARY_OPERATIONS(BURTORCH_FUNCTION)
#undef BURTORCH_FUNCTION
constexpr Symbol log(const Symbol& x) { return logarithm(x); }
constexpr Symbol operator-(const Symbol& x) { return negative(x); }
constexpr Symbol operator+(const Symbol& x) { return x; }

#define BURTORCH_FUNCTION(Name, function)                                                          \
  template <class X, class Y>                                                                      \
    requires detail::SymbolOperands<X, Y>                                                          \
  constexpr Symbol function(const X& x, const Y& y) {                                              \
    return detail::record<op::Name>(x, y);                                                         \
  }
BURTORCH_BINARY_OPERATIONS(BURTORCH_FUNCTION)
#undef BURTORCH_FUNCTION

#define BURTORCH_OPERATOR(symbol, function)                                                        \
  template <class X, class Y>                                                                      \
    requires detail::SymbolOperands<X, Y>                                                          \
  constexpr Symbol operator symbol(const X& x, const Y& y) {                                       \
    return function(x, y);                                                                         \
  }
BURTORCH_OPERATOR(+, add)
BURTORCH_OPERATOR(-, sub)
BURTORCH_OPERATOR(*, mul)
BURTORCH_OPERATOR(/, div)
#undef BURTORCH_OPERATOR

template <class Y> constexpr Symbol& addInplace(Symbol& x, const Y& y) { return x += y; }
template <class Y> constexpr Symbol& subInplace(Symbol& x, const Y& y) { return x -= y; }
template <class Y> constexpr Symbol& multInplace(Symbol& x, const Y& y) { return x *= y; }
template <class Y> constexpr Symbol& divInplace(Symbol& x, const Y& y) { return x /= y; }

#define BURTORCH_OPERATOR(symbol, comparison)                                                      \
  template <class X, class Y>                                                                      \
    requires detail::SymbolOperands<X, Y>                                                          \
  constexpr SymbolicCondition operator symbol(const X& x, const Y& y) {                            \
    return detail::compare(detail::Comparison::comparison, x, y);                                  \
  }
BURTORCH_OPERATOR(<, less)
BURTORCH_OPERATOR(<=, lessEqual)
BURTORCH_OPERATOR(>, greater)
BURTORCH_OPERATOR(>=, greaterEqual)
BURTORCH_OPERATOR(==, equal)
BURTORCH_OPERATOR(!=, notEqual)
#undef BURTORCH_OPERATOR

constexpr SymbolicCondition operator&&(const SymbolicCondition& x, const SymbolicCondition& y) {
  return detail::join(detail::Condition::Kind::both, x, y);
}
constexpr SymbolicCondition operator||(const SymbolicCondition& x, const SymbolicCondition& y) {
  return detail::join(detail::Condition::Kind::either, x, y);
}
constexpr SymbolicCondition operator!(const SymbolicCondition& x) {
  return detail::join(detail::Condition::Kind::negates, x, x);
}

// x where the condition holds, else y; the gradient goes to the one chosen.
template <class X, class Y>
  requires(std::same_as<X, Symbol> || detail::PlainNumber<X>) &&
          (std::same_as<Y, Symbol> || detail::PlainNumber<Y>)
constexpr Symbol select(const SymbolicCondition& condition, const X& x, const Y& y) {
  detail::Recorder& recorder = *condition.recorder;
  const Symbol atX = detail::asNode(recorder, x), atY = detail::asNode(recorder, y);
  return detail::choose(condition, atX, atY);
}

#define BURTORCH_FUNCTION(Name, function)                                                          \
  constexpr Symbol function(const Symbol& x, double lo, double hi) {                               \
    detail::Recorder& recorder = detail::recorderOf(x);                                            \
    const std::uint32_t bounds = recorder.constant(lo);                                            \
    recorder.constant(hi);                                                                         \
    return {&recorder, recorder.add({Op::e##Name, Form::nodes, {}, x.node, bounds})};              \
  }
BURTORCH_CLIPPED_OPERATIONS(BURTORCH_FUNCTION)
#undef BURTORCH_FUNCTION

// Sequences: anything that is a span of Symbols, or braces.
#define BURTORCH_FUNCTION(Name, function)                                                          \
  constexpr Symbol function(std::span<const Symbol> x) {                                           \
    return detail::recordList<op::Name>(x, x.size());                                              \
  }                                                                                                \
  constexpr Symbol function(std::initializer_list<Symbol> x) {                                     \
    return function(std::span(x.begin(), x.size()));                                               \
  }
BURTORCH_REDUCTIONS(BURTORCH_FUNCTION)
#undef BURTORCH_FUNCTION

constexpr std::pair<Symbol, Symbol> reduceMeanAndMeanSquares(std::span<const Symbol> x) {
  const Symbol mean = reduceMean(x);
  return {mean, reduceMeanSquares(x)};
}
constexpr std::pair<Symbol, Symbol> reduceMeanAndMeanSquares(std::initializer_list<Symbol> x) {
  return reduceMeanAndMeanSquares(std::span(x.begin(), x.size()));
}

namespace detail {
template <class O, class... Bias>
constexpr Symbol recordProduct(std::span<const Symbol> x, std::span<const Symbol> y,
                               const Bias&... bias) {
  if (x.size() != y.size()) recorderOf(x.front()).mistake = Mistake::differentLengths;
  std::vector<Symbol> all(x.begin(), x.end());
  all.insert(all.end(), y.begin(), y.end());
  (all.push_back(bias), ...);
  return recordList<O>(all, x.size());
}
} // namespace detail

constexpr Symbol innerProduct(std::span<const Symbol> x, std::span<const Symbol> y) {
  return detail::recordProduct<op::InnerProductNoBias>(x, y);
}
constexpr Symbol innerProduct(std::initializer_list<Symbol> x, std::initializer_list<Symbol> y) {
  return innerProduct(std::span(x.begin(), x.size()), std::span(y.begin(), y.size()));
}
constexpr Symbol innerProductWithBias(std::span<const Symbol> x, std::span<const Symbol> y,
                                      const Symbol& bias) {
  return detail::recordProduct<op::InnerProductWithBias>(x, y, bias);
}
constexpr Symbol innerProductWithBias(std::initializer_list<Symbol> x,
                                      std::initializer_list<Symbol> y, const Symbol& bias) {
  return innerProductWithBias(std::span(x.begin(), x.size()), std::span(y.begin(), y.size()), bias);
}

namespace detail {

// Calls f(integral_constant<i>) for i in [0, n), in groups, because compilers limit the depth of one
// fold. Long programs do not fit the registers anyway: their groups are functions, since the time
// to inline everything into one grows with the square of its length.
template <std::size_t first, std::size_t... i, class F>
BURTORCH_INLINE constexpr void unrollGroup(std::index_sequence<i...>, const F& f) {
  (f(std::integral_constant<std::size_t, first + i>{}), ...);
}
template <std::size_t first, std::size_t n, class F>
BURTORCH_NOINLINE constexpr void unrollApart(const F& f) {
  unrollGroup<first>(std::make_index_sequence<n>{}, f);
}
template <std::size_t n, class F> BURTORCH_INLINE constexpr void unroll(const F& f) {
  constexpr std::size_t group = 64, inlined = 256;
  [&]<std::size_t... g>(std::index_sequence<g...>) BURTORCH_INLINE_LAMBDA {
    constexpr auto size = [](std::size_t k) {
      return n - k * group < group ? n - k * group : group;
    };
    if constexpr (n > inlined) (unrollApart<g * group, size(g)>(f), ...);
    else (unrollGroup<g * group>(std::make_index_sequence<size(g)>{}, f), ...);
  }(std::make_index_sequence<(n + group - 1) / group>{});
}

// What the lambda did, with the sizes as constants.
template <auto f, std::size_t inputs> struct ProgramCode {
  template <class Visit> static constexpr auto withRecording(const Visit& visit) {
    Recorder recorder{inputs};
    std::array<Symbol, inputs> x{};
    for (std::size_t i = 0; i < inputs; ++i) x[i] = {&recorder, static_cast<std::uint32_t>(i)};
    constexpr bool takesScalars = []<std::size_t... i>(std::index_sequence<i...>) {
      return std::invocable<decltype(f), decltype(Symbol{nullptr, i})...>;
    }(std::make_index_sequence<inputs>{});
    if constexpr (takesScalars) return visit(recorder, outputsOf(recorder, std::apply(f, x)));
    else return visit(recorder, outputsOf(recorder, f(x)));
  }
  template <class Y> static constexpr auto outputsOf(Recorder& recorder, const Y& y) {
    if constexpr (requires { asNode(recorder, y); }) {
      return std::array{asNode(recorder, y)};
    } else if constexpr (requires { std::tuple_size<Y>::value; }) {
      return std::apply(
          [&](const auto&... each) {
            return std::array<Symbol, sizeof...(each)>{asNode(recorder, each)...};
          },
          y);
    } else {
      static_assert(!std::same_as<Y, Y>, "the lambda of a Program returns a symbol or a number, or "
                                         "a std::array or std::tuple of them");
    }
  }

  struct Sizes {
    std::size_t code, operands, constants, outputs;
    Mistake mistake;
  };
  static constexpr Sizes sizes = withRecording([](const Recorder& r, const auto& y) {
    if (r.mistake != Mistake::none) return Sizes{0, 0, 0, y.size(), r.mistake};
    return Sizes{r.code.size(), r.operands.size(), r.constants.size(), y.size(), r.mistake};
  });
  static_assert(sizes.mistake != Mistake::tooLong,
                "this Program has more instructions than BURTORCH_PROGRAM_LIMIT");
  static_assert(sizes.mistake != Mistake::differentLengths,
                "innerProduct in a Program: the two sequences have different lengths");

  struct Data {
    std::array<Instruction, sizes.code> code{};
    std::array<std::uint32_t, sizes.operands> operands{};
    std::array<double, sizes.constants> constants{};
    std::array<std::uint32_t, sizes.outputs> outputs{};
  };
  static constexpr Data data = withRecording([](const Recorder& r, const auto& y) {
    Data d;
    if (sizes.mistake != Mistake::none) return d;
    for (std::size_t i = 0; i < r.code.size(); ++i) d.code[i] = r.code[i];
    for (std::size_t i = 0; i < r.operands.size(); ++i) d.operands[i] = r.operands[i];
    for (std::size_t i = 0; i < r.constants.size(); ++i) d.constants[i] = r.constants[i];
    for (std::size_t i = 0; i < sizes.outputs; ++i) d.outputs[i] = y[i].node;
    return d;
  });

  // visit(node, k) for the operands that are nodes, in the order in which they gain something: sums round
  // as those of a tape.
  template <class Visit>
  static constexpr void eachOperand(const Instruction& i, const Visit& visit) {
    if (i.operation == Op::eLeaf && i.form != Form::list) return; // a number as a node
    if (i.operation == Op::eLeaf) {
      for (std::uint32_t k = 0; k < 4; ++k) visit(data.operands[i.a + k], k);
      return;
    }
    Operands<Visit> operands{{}, visit};
    if (op::layoutOf(i.code()) == Layout::nodes && i.a >= i.b) {
      visit(i.b, 1u);
      visit(i.a, 0u);
    } else {
      eachField(i, data.operands.data(), operands);
    }
  }
  template <class Visit> struct Operands : EachField { // counts numbers, too
    const Visit& visit;
    std::uint32_t k = 0;
    constexpr void node(std::uint32_t node_) { visit(node_, k++); }
    static constexpr void run(std::uint32_t, std::size_t) {} // there are none
    constexpr void numbers(std::uint32_t, std::size_t n) { k += static_cast<std::uint32_t>(n); }
  };
  static constexpr std::size_t listSize(const Instruction& i) {
    return op::storedOperands(i.code(), i.b);
  }

  // What the backward pass from one output needs: which instructions it reaches, and which contribution
  // is the first that an operand gets, which then assigns instead of adding to 0.
  struct Plan {
    std::array<bool, inputs + sizes.code> reached{};
    std::array<std::array<bool, 2>, sizes.code> first{};
    std::array<bool, sizes.operands> firstInList{};
    std::array<bool, inputs + sizes.code> mayBeUnchosen{}; // a select is on the way to the output
  };
  // Which nodes may be infinite or NaN although the inputs are finite and no product overflowed.
  static constexpr auto untamed = [] {
    std::array<bool, inputs + sizes.code> is{};
    for (std::size_t i = 0; i < sizes.code; ++i) {
      bool& z = is[inputs + i] = !keepsZero(data.code[i].operation);
      eachOperand(data.code[i], [&](std::uint32_t node, std::uint32_t) { z = z || is[node]; });
    }
    return is;
  }();
  static constexpr Plan planFor(std::size_t root) {
    Plan p;
    p.reached[root] = true;
    for (std::size_t i = sizes.code; i-- != 0;) {
      if (!p.reached[inputs + i]) continue;
      const Instruction& instruction = data.code[i];
      const bool isSelect = instruction.operation == Op::eLeaf;
      const bool inList = isSelect || !op::isFew(op::layoutOf(instruction.code()));
      eachOperand(instruction, [&](std::uint32_t node, std::uint32_t k) {
        if (isSelect && k >= 2) return; // compared, not differentiated
        if (isSelect || p.mayBeUnchosen[inputs + i]) p.mayBeUnchosen[node] = true;
        const bool isFirst = !p.reached[node];
        p.reached[node] = true;
        if (inList) p.firstInList[instruction.a + k] = isFirst;
        else p.first[i][k] = isFirst;
      });
    }
    return p;
  }
  template <std::size_t output> static constexpr Plan plan = planFor(data.outputs[output]);

  static constexpr std::size_t nodes = inputs + sizes.code;
  template <class T> using Values = std::array<T, nodes>;

  template <std::size_t i, class T>
  BURTORCH_INLINE static constexpr T evaluate(const Values<T>& v) {
    constexpr Instruction ins = data.code[i];
    if constexpr (ins.operation == Op::eLeaf && ins.form == Form::list) {
      return select(holds<i, T>(v), v[data.operands[ins.a]], v[data.operands[ins.a + 1]]);
    } else if constexpr (ins.operation == Op::eLeaf) {
      return T(data.constants[ins.a]);
    } else {
      using O = typename OperationOf<ins.operation>::type;
      return detail::evaluate<O, ins.form>(ins, Source<ins.b, T>{v});
    }
  }

  template <std::size_t output, std::size_t i, class T>
  BURTORCH_INLINE static constexpr void pull(const Values<T>& v, Values<T>& grads) {
    constexpr Instruction ins = data.code[i];
    const T& g = grads[inputs + i];
    const T& z = v[inputs + i];
    if constexpr (ins.operation == Op::eLeaf && ins.form == Form::list) {
      const auto chosen = holds<i, T>(v);
      give<plan<output>.firstInList[ins.a]>(grads[data.operands[ins.a]], select(chosen, g, T(0)));
      give<plan<output>.firstInList[ins.a + 1]>(grads[data.operands[ins.a + 1]],
                                                select(chosen, T(0), g));
    } else if constexpr (ins.operation != Op::eLeaf) {
      using O = typename OperationOf<ins.operation>::type;
      Give<output, i, O, T> to{grads, g};
      contribute<O, ins.form>(ins, Source<ins.b, T>{v}, z, g, to);
      if constexpr (!op::isFew(op::layoutOf<O>(ins.form)))
        unroll<listSize(ins)>([&](auto k) BURTORCH_INLINE_LAMBDA {
          give<plan<output>.firstInList[ins.a + k]>(grads[data.operands[ins.a + k]], to.all[k]);
        });
    }
  }

private:
  template <bool isFirst, class T>
  BURTORCH_INLINE static constexpr void give(T& grad, const T& contribution) {
    if constexpr (isFirst) grad = contribution;
    else grad = grad + contribution;
  }

  // Operands (op/record.hpp) of an instruction whose sequences have n of them.
  template <std::size_t n, class T> struct Source {
    const Values<T>& v;
    template <int> BURTORCH_INLINE constexpr const T& node(std::size_t i) const { return v[i]; }
    BURTORCH_INLINE constexpr T number(std::size_t place) const { return T(data.constants[place]); }
    BURTORCH_INLINE constexpr std::size_t operand(std::size_t place) const {
      return data.operands[place];
    }
    BURTORCH_INLINE constexpr auto list(std::size_t place, std::size_t) const {
      std::array<T, n> x;
      unroll<n>([&](auto k) BURTORCH_INLINE_LAMBDA { x[k] = v[data.operands[place + k]]; });
      return x;
    }
    BURTORCH_INLINE static constexpr bool isBNewer(const Instruction& i) { return i.a < i.b; }
  };
  // What they gain from instruction i. Those of a sequence gain it when all is known: one may occur twice.
  template <std::size_t output, std::size_t i, class O, class T> struct Give {
    static constexpr Instruction ins = data.code[i];
    Values<T>& grads;
    const T& g;
    std::array<T, (op::isFew(op::layoutOf<O>(ins.form)) ? 1 : listSize(ins) + 1)> all{};

    BURTORCH_INLINE constexpr T unlessZero(const T& contribution) const {
      constexpr std::size_t node = inputs + i; // untamed, as a result, if an operand is
      constexpr bool asks = untamed[node] || plan<output>.mayBeUnchosen[node];
      if constexpr (O::isLinear || !asks) return contribution;
      else return select(whereZero(g), T(0), contribution);
    }
    template <int k, bool>
    BURTORCH_INLINE constexpr void node(std::size_t at, const auto& contribution) {
      if constexpr (k == 2) all[2 * ins.b] = unlessZero(contribution());
      else give<plan<output>.first[i][k]>(grads[at], unlessZero(contribution()));
    }
    template <int k> BURTORCH_INLINE constexpr auto list(std::size_t, std::size_t n) {
      return [this, first = k * n](std::size_t j, const T& c) { all[first + j] = unlessZero(c); };
    }
  };
  template <std::size_t i, class T>
  BURTORCH_INLINE static constexpr auto holds(const Values<T>& v) {
    constexpr Instruction ins = data.code[i];
    const T &x = v[data.operands[ins.a + 2]], &y = v[data.operands[ins.a + 3]];
    if constexpr (ins.comparison == Comparison::less) return x < y;
    else if constexpr (ins.comparison == Comparison::lessEqual) return x <= y;
    else if constexpr (ins.comparison == Comparison::greater) return x > y;
    else if constexpr (ins.comparison == Comparison::greaterEqual) return x >= y;
    else if constexpr (ins.comparison == Comparison::equal) return x == y;
    else return x != y;
  }
};

template <class X> using ElementOf = std::remove_cvref_t<decltype(std::declval<X&>()[0])>;

// What the elements of x are: the scalar that a program then runs over.
template <class X> struct ProgramScalar {
  using type = ElementOf<const X>;
  static_assert(!std::integral<type>,
                "a Program runs over floating-point numbers or other scalars: "
                "integers have no derivatives");
};

// How many elements X is known to have, or dynamic_extent, which is more than anybody needs.
template <class X> constexpr std::size_t extentOf() {
  if constexpr (std::is_array_v<X>) return std::extent_v<X>;
  else if constexpr (requires { std::tuple_size<X>::value; }) return std::tuple_size_v<X>;
  else if constexpr (requires { X::extent; }) return X::extent;
  else return std::dynamic_extent;
}
template <std::size_t n, class X> BURTORCH_INLINE constexpr void demandElements(const X& x) {
  static_assert(extentOf<X>() >= n, "a Program was given an array that has too few elements");
  static_cast<void>(x); // which may have no size, as a pointer
  if constexpr (requires { x.size(); })
    BURTORCH_ASSERT(x.size() >= n, badArgument,
                    "a Program was given an array that has too few elements");
}

} // namespace detail

template <auto f, std::size_t numberOfInputs> struct Program {
private:
  using Code = detail::ProgramCode<f, numberOfInputs>;
  template <class X> using ScalarIn = typename detail::ProgramScalar<X>::type;

  template <class T, class X> BURTORCH_INLINE static constexpr auto forward(const X& x) {
    detail::demandElements<inputs>(x);
    typename Code::template Values<T> v;
    detail::unroll<inputs>([&](auto i) BURTORCH_INLINE_LAMBDA { v[i] = x[i]; });
    detail::unroll<operations>(
        [&](auto i) BURTORCH_INLINE_LAMBDA { v[inputs + i] = Code::template evaluate<i>(v); });
    return v;
  }
  // The derivatives of one output, from the values of a forward pass.
  template <std::size_t output, class T, class Out>
  BURTORCH_INLINE static constexpr void backward(const typename Code::template Values<T>& v,
                                                 Out& out) {
    static_assert(!std::integral<detail::ElementOf<Out>>, "derivatives are no integers");
    detail::demandElements<inputs>(out);
    constexpr auto& plan = Code::template plan<output>;
    typename Code::template Values<T> g;
    g[Code::data.outputs[output]] = T(1);
    detail::unroll<operations>([&](auto k) BURTORCH_INLINE_LAMBDA {
      constexpr std::size_t i = operations - 1 - k;
      if constexpr (plan.reached[inputs + i]) Code::template pull<output, i>(v, g);
    });
    detail::unroll<inputs>([&](auto i) BURTORCH_INLINE_LAMBDA {
      if constexpr (plan.reached[i]) out[i] = g[i];
      else out[i] = T(0);
    });
  }

public:
  static constexpr std::size_t inputs = numberOfInputs;
  static constexpr std::size_t outputs = Code::sizes.outputs;
  static constexpr std::size_t operations = Code::sizes.code;

  template <class X> static constexpr auto values(const X& x) {
    using T = ScalarIn<X>;
    const auto v = forward<T>(x);
    std::array<T, outputs> y;
    for (std::size_t i = 0; i < outputs; ++i) y[i] = v[Code::data.outputs[i]];
    return y;
  }
  template <class X>
    requires(outputs == 1)
  static constexpr auto value(const X& x) {
    return values(x)[0];
  }

  template <class X, class Out>
    requires(outputs == 1)
  static constexpr auto valueAndGradient(const X& x, Out&& out) {
    using T = ScalarIn<X>;
    const auto v = forward<T>(x);
    backward<0, T>(v, out);
    return v[Code::data.outputs[0]];
  }
  template <class X, class Out>
    requires(outputs == 1)
  static constexpr void gradient(const X& x, Out&& out) {
    valueAndGradient(x, out);
  }
  template <class X>
    requires(outputs == 1)
  static constexpr auto gradient(const X& x) {
    std::array<ScalarIn<X>, inputs> out{};
    valueAndGradient(x, out);
    return out;
  }

  // out[i][j]: the derivative of output i by input j. Returns the values.
  template <class X, class Out> static constexpr auto jacobian(const X& x, Out&& out) {
    using T = ScalarIn<X>;
    detail::demandElements<outputs>(out);
    const auto v = forward<T>(x);
    detail::unroll<outputs>([&](auto i) BURTORCH_INLINE_LAMBDA { backward<i, T>(v, out[i]); });
    std::array<T, outputs> y;
    for (std::size_t i = 0; i < outputs; ++i) y[i] = v[Code::data.outputs[i]];
    return y;
  }

  // out[i][j]: the second derivative by inputs i and j. Returns the value.
  template <class X, class Out>
    requires(outputs == 1)
  static constexpr auto hessian(const X& x, Out&& out) {
    using T = ScalarIn<X>;
    detail::demandElements<inputs>(x);
    detail::demandElements<inputs>(out);
    T value{};
    for (std::size_t i = 0; i < inputs; ++i) {
      detail::demandElements<inputs>(out[i]);
      std::array<dual<T>, inputs> at, gradient;
      for (std::size_t j = 0; j < inputs; ++j) at[j] = dual<T>(x[j], T(i == j ? 1 : 0));
      value = valueAndGradient(at, gradient).value;
      for (std::size_t j = 0; j < inputs; ++j) out[i][j] = gradient[j].tangent;
    }
    return value;
  }
};

BURTORCH_END_NAMESPACE
