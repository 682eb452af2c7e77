// burtorch/run/emit.hpp — a recording as C: self-contained functions for value, gradient, many samples
// SPDX-License-Identifier: MIT
//
//   std::string text = emit(recording, {.name = "loss"});
//
// gives C99 (or C++) that includes <math.h> and nothing else, allocates nothing, calls itself nowhere and
// keeps no state, so that it can be copied into firmware or compiled and loaded:
//
//   T loss_value(const T* x);                    the value at x
//   T loss(const T* x, T* gradient);             the value, and its gradient by x
//   void loss_batch(unsigned long n, const T* x, T* values, T* gradients);
//                                                at n points, which are the rows of x
// and of a recording with several outputs
//   void loss_values(const T* x, T* y);
//   void loss_jacobian(const T* x, T* y, T* rows);
//
// x and what is written must not overlap.
//
// No operation is written here. The structs of the table run over a scalar whose arithmetic writes
// statements: one per operation, in static single assignment, of which those are printed that a result needs.
// Equal statements are written once.
//
// An adjoint of 0 gives nothing, not even NaN where the derivative is infinite. To ask for it at every
// product would cost more than the products. So the functions are written without the question, and again
// with it (loss_guarded), and the second one runs where the first one gave NaN. That is enough: an adjoint
// of the first is the second's, or NaN. For the seed it holds. A contribution is a multiple of the adjoint,
// or a constant where a condition on values, never on adjoints, selects one. If the adjoint is NaN, so is
// the contribution, or both functions give the constant. If it is 0, the contribution is 0, as in the
// second, or 0·∞ or 0·NaN, which is NaN. If it is another number, both do the same. A sum with NaN is NaN.
// So a gradient without NaN is the guarded one, but for the sign of a zero. (Not with -ffast-math, under
// which compilers take it that there is no NaN.)
//
// Long functions are written in parts that hand numbers on in an array on the stack: what compilers do
// about a single sequence of statements takes time and memory that grow with the square of its length.
//
// The numbers are the tape's up to what compilers do: with -ffp-contract=off arithmetic is the same bit
// for bit, except that a first contribution to a gradient is not added to 0, which shows in the sign of
// a zero.
#pragma once

#include <burtorch/base/config.hpp>
#include <burtorch/base/error.hpp>
#include <burtorch/op/record.hpp>
#include <burtorch/op/table.hpp>
#include <burtorch/run/replay.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

BURTORCH_BEGIN_NAMESPACE

enum class Language : std::uint8_t { c99, cpp };

struct EmitOptions {
  std::string name = "f"; // of the function: an identifier that C leaves free
  Language language = Language::c99;
  std::size_t lanes = 8; // samples that the batch function computes together; 0 or 1: none
  // False: no loss_guarded; where a gradient has NaN, the caller has to look for it and to compute again.
  bool isGuarded = true;
  std::size_t longest = 1500; // statements of a function that is not written in parts
  std::size_t part = 300;     // statements of a part
};

namespace detail {

namespace c_code { // functions that must not hide those of the scalars

// Statements t0, t1, …: each an expression over earlier ones. Inputs are statements without one.
struct Statements {
  struct One {
    const std::string* expression = nullptr; // a key of known
    std::array<std::uint32_t, 4> operands{};
    std::uint32_t count = 0;
    bool isCall = false; // of a function
  };
  std::vector<One> all;
  std::unordered_map<std::string, std::uint32_t> known;

  std::uint32_t addInput() {
    all.emplace_back();
    return static_cast<std::uint32_t>(all.size() - 1);
  }
  // The statement of an expression: the one that there is, for nothing is assigned to twice.
  std::uint32_t add(std::string expression, std::initializer_list<std::uint32_t> operands,
                    bool isCall = false) {
    const auto [at, isNew] =
        known.try_emplace(std::move(expression), static_cast<std::uint32_t>(all.size()));
    if (!isNew) return at->second;
    One& one = all.emplace_back();
    one.expression = &at->first;
    one.isCall = isCall;
    for (const std::uint32_t operand : operands)
      if (operand != constant) one.operands[one.count++] = operand;
    return at->second;
  }
  static constexpr std::uint32_t constant = 0xffffffff;
};

// A number of C code being written: a constant, or the result of a statement.
template <class T> struct CNumber {
  Statements* statements = nullptr;
  std::uint32_t id = Statements::constant;
  T number = T(0);

  CNumber() = default;
  explicit CNumber(double x) : number(static_cast<T>(x)) {}
  CNumber(Statements& all, std::uint32_t statement) : statements(&all), id(statement) {}

  bool isConstant() const { return statements == nullptr; }
  bool is(double x) const { return isConstant() && number == static_cast<T>(x); }
  std::string text() const {
    if (isConstant()) return literal(number);
    std::string name = "t";
    return name += std::to_string(id);
  }

  static std::string literal(T x) {
    std::string text;
    if (std::isnan(x)) return "NAN";
    if (std::isinf(x)) return x < 0 ? "(-INFINITY)" : "INFINITY";
    char buffer[64];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, x).ptr;
    const std::string_view digits(buffer, static_cast<std::size_t>(end - buffer));
    text += digits;
    if (digits.find_first_of(".e") == std::string_view::npos) text += ".0";
    if constexpr (std::same_as<T, float>) text += "f";
    if (digits.front() != '-') return text;
    text.insert(0, "(");
    return text += ")";
  }
};

// What comparing CNumbers gives.
template <class T> struct CCondition {
  CNumber<T> x, y;
  const char* comparison;
  bool known; // of two constants

  std::string text() const { // appended: see the note on sums of strings in viz/
    std::string t = x.text();
    t += comparison;
    return t += y.text();
  }
};

template <class T> Statements& statementsOf(const CNumber<T>& x, const CNumber<T>& y) {
  return x.isConstant() ? *y.statements : *x.statements;
}

template <class T> CNumber<T> infix(const CNumber<T>& x, const char* symbol, const CNumber<T>& y) {
  Statements& all = statementsOf(x, y);
  std::string t = x.text();
  t += symbol;
  t += y.text();
  return {all, all.add(std::move(t), {x.id, y.id})};
}

// Constants are computed now, as a compiler would; 1·x is x, as a compiler would see.
template <class T> CNumber<T> operator+(const CNumber<T>& x, const CNumber<T>& y) {
  if (x.isConstant() && y.isConstant()) return CNumber<T>(double(x.number + y.number));
  return infix(x, " + ", y);
}
template <class T> CNumber<T> operator-(const CNumber<T>& x, const CNumber<T>& y) {
  if (x.isConstant() && y.isConstant()) return CNumber<T>(double(x.number - y.number));
  return infix(x, " - ", y);
}
template <class T> CNumber<T> operator*(const CNumber<T>& x, const CNumber<T>& y) {
  if (x.isConstant() && y.isConstant()) return CNumber<T>(double(x.number * y.number));
  if (x.is(1)) return y;
  if (y.is(1)) return x;
  return infix(x, " * ", y);
}
template <class T> CNumber<T> operator/(const CNumber<T>& x, const CNumber<T>& y) {
  if (x.isConstant() && y.isConstant()) return CNumber<T>(double(x.number / y.number));
  return infix(x, " / ", y);
}
template <class T> CNumber<T> operator-(const CNumber<T>& x) {
  if (x.isConstant()) return CNumber<T>(double(-x.number));
  std::string t = "-";
  return {*x.statements, x.statements->add(t += x.text(), {x.id})};
}

#define BURTORCH_OPERATOR(symbol)                                                                  \
  template <class T> CCondition<T> operator symbol(const CNumber<T>& x, const CNumber<T>& y) {     \
    return {x, y, " " #symbol " ", x.number symbol y.number};                                      \
  }
BURTORCH_OPERATOR(<)
BURTORCH_OPERATOR(<=)
BURTORCH_OPERATOR(>)
BURTORCH_OPERATOR(>=)
BURTORCH_OPERATOR(==)
BURTORCH_OPERATOR(!=)
#undef BURTORCH_OPERATOR

template <class T> CCondition<T> whereZero(const CNumber<T>& x) { return x == CNumber<T>(0); }

template <class T>
CNumber<T> select(const CCondition<T>& condition, const CNumber<T>& yes, const CNumber<T>& no) {
  if (condition.x.isConstant() && condition.y.isConstant()) return condition.known ? yes : no;
  Statements& all = statementsOf(condition.x, condition.y);
  std::string t = condition.text();
  t += " ? ";
  t += yes.text();
  t += " : ";
  t += no.text();
  return {all, all.add(std::move(t), {condition.x.id, condition.y.id, yes.id, no.id})};
}

template <class T>
CNumber<T> call(const char* function, const CNumber<T>& x, const CNumber<T>* y = nullptr) {
  Statements& all = y == nullptr ? *x.statements : statementsOf(x, *y);
  std::string t = function;
  if constexpr (std::same_as<T, float>) t += "f";
  t += "(";
  t += x.text();
  if (y != nullptr) {
    t += ", ";
    t += y->text();
  }
  t += ")";
  return {all, all.add(std::move(t), {x.id, y == nullptr ? Statements::constant : y->id}, true)};
}

#define BURTORCH_FUNCTION(function)                                                                \
  template <class T> CNumber<T> function(const CNumber<T>& x) {                                    \
    if (x.isConstant()) return CNumber<T>(double(std::function(x.number)));                        \
    return call(#function, x);                                                                     \
  }
BURTORCH_STANDARD_FUNCTIONS(BURTORCH_FUNCTION)
#undef BURTORCH_FUNCTION
#define BURTORCH_FUNCTION(function)                                                                \
  template <class T> CNumber<T> function(const CNumber<T>& x, const CNumber<T>& y) {               \
    if (x.isConstant() && y.isConstant())                                                          \
      return CNumber<T>(double(std::function(x.number, y.number)));                                \
    return call(#function, x, &y);                                                                 \
  }
BURTORCH_STANDARD_FUNCTIONS_OF_TWO(BURTORCH_FUNCTION)
#undef BURTORCH_FUNCTION

} // namespace c_code

using c_code::CNumber, c_code::Statements;

// Runs a recording's records forward and backward over CNumbers.
template <class R> class Emitter {
  using T = std::remove_cvref_t<decltype(std::declval<R>().tape().values()[0])>;
  using C = CNumber<T>;
  using Record = typename R::Record;
  using Index = typename R::Index;

public:
  explicit Emitter(const R& recording)
      : tape_(recording.tape()), recording_(recording), values_(tape_.size()),
        varies_(tape_.size()) {
    for (std::size_t i = 0; i < tape_.size(); ++i) values_[i].number = tape_.values()[i];
    for (std::size_t i = 0; i < recording.inputs(); ++i) {
      const Index node = recording.inputNodes()[i];
      values_[node] = C(statements_, statements_.addInput()); // the printer knows where it is
      varies_[node] = true;
    }
    for (const Record& record : tape_.records()) evaluate(record);
  }

  // The derivatives of an output by the inputs; without guards NaN may be in the place of a number.
  std::vector<C> gradient(std::size_t output, bool isGuarded) {
    std::vector<Adjoint> adjoints(tape_.size());
    const Index root = recording_.outputNodes()[output];
    adjoints[root] = {C(1), true};
    const std::size_t record = tape_.recordOf(root);
    for (std::size_t r = record == tape_.records().size() ? 0 : record + 1; r-- != 0;)
      pull(tape_.records()[r], adjoints, isGuarded);
    std::vector<C> gradient;
    for (const Index input : recording_.inputNodes().first(recording_.variables()))
      gradient.push_back(adjoints[input].number);
    return gradient;
  }
  const C& output(std::size_t i) const { return values_[recording_.outputNodes()[i]]; }

  // The statements that the results need, operands first. Calls with the same operand follow each other:
  // of a sine, which the value needs, and a cosine, which the gradient needs, compilers make one call.
  std::vector<std::uint32_t> statementsFor(const std::vector<C>& results) const {
    const auto& all = statements_.all;
    std::vector<bool> needed(all.size());
    for (const C& result : results)
      if (!result.isConstant()) needed[result.id] = true;
    for (std::size_t i = needed.size(); i-- != 0;)
      if (needed[i])
        for (std::uint32_t k = 0; k < all[i].count; ++k) needed[all[i].operands[k]] = true;
    constexpr std::uint32_t none = Statements::constant;
    std::vector<std::uint32_t> called(all.size(), none); // per operand: the last call so far
    std::vector<std::uint32_t> next(all.size(), none);   // per call: the one to follow it
    std::vector<bool> follows(all.size());
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      if (!needed[i] || !all[i].isCall || all[i].count != 1) continue;
      std::uint32_t& last = called[all[i].operands[0]];
      if (last != none) {
        next[last] = i;
        follows[i] = true;
      }
      last = i;
    }
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i < all.size(); ++i)
      if (needed[i] && !follows[i])
        for (std::uint32_t k = i; k != none; k = next[k]) order.push_back(k);
    return order;
  }

  bool isInput(std::uint32_t i) const { return i < recording_.inputs(); }
  const Statements::One& statement(std::uint32_t i) const { return statements_.all[i]; }
  std::size_t statements() const { return statements_.all.size(); }

  // const double t7 = source;
  static void define(std::string& text, std::string_view indent, std::uint32_t i,
                     std::string_view source) {
    text += indent;
    text += "const ";
    text += typeName();
    text += " t";
    text += std::to_string(i);
    text += " = ";
    text += source;
    text += ";\n";
  }

  // The statements as text. `inputs` and `indent` say how they look: x[#] where # is the number of the
  // input.
  std::string body(const std::vector<std::uint32_t>& order, std::string_view inputs,
                   std::string_view indent) const {
    std::string text;
    if (std::ranges::none_of(order, [&](std::uint32_t i) { return isInput(i); })) {
      text += indent;
      text += "(void)x;\n";
    }
    for (const std::uint32_t i : order)
      define(text, indent, i, isInput(i) ? element(inputs, i) : *statement(i).expression);
    return text;
  }

  static const char* typeName() { return std::same_as<T, float> ? "float" : "double"; }
  // pattern with the number i in place of #
  static std::string element(std::string_view pattern, std::size_t i) {
    const std::size_t at = pattern.find('#');
    std::string text(pattern.substr(0, at));
    if (at == std::string_view::npos) return text;
    text += std::to_string(i);
    return text += pattern.substr(at + 1);
  }

private:
  struct Adjoint {
    C number;
    bool isThere = false;
  };

  // Operands as CNumbers, and what they gain (op/record.hpp).
  struct Source {
    const Emitter& emitter;
    template <int> const C& node(std::size_t i) const { return emitter.values_[i]; }
    C number(std::size_t place) const {
      return C(static_cast<double>(emitter.tape_.constants()[place]));
    }
    std::size_t operand(std::size_t place) const { return emitter.tape_.operands()[place]; }
    std::vector<C> run(std::size_t first, std::size_t n) const {
      const auto begin = emitter.values_.begin() + static_cast<std::ptrdiff_t>(first);
      return {begin, begin + static_cast<std::ptrdiff_t>(n)};
    }
    std::vector<C> list(std::size_t place, std::size_t n) const {
      std::vector<C> all;
      for (std::size_t i = place; i < place + n; ++i) all.push_back(emitter.values_[operand(i)]);
      return all;
    }
    static bool isBNewer(const Record& record) { return record.a < record.b; }
  };
  struct Give {
    const Emitter& emitter;
    std::vector<Adjoint>& adjoints;
    const C& g;
    bool isGuarded; // an adjoint of 0 gives nothing, not even NaN

    void add(std::size_t i, C c) const {
      if (!emitter.varies_[i]) return;
      if (isGuarded && !c.is(0)) c = select(whereZero(g), C(0), c);
      Adjoint& to = adjoints[i];
      to = {to.isThere ? to.number + c : c, true};
    }
    template <int, bool> void node(std::size_t i, const auto& contribution) const {
      add(i, contribution());
    }
    template <int> auto run(std::size_t first, std::size_t) const {
      return [*this, first](std::size_t i, const C& c) { add(first + i, c); };
    }
    template <int> auto list(std::size_t place, std::size_t) const {
      return [*this, place](std::size_t i, const C& c) {
        add(emitter.tape_.operands()[place + i], c);
      };
    }
  };

  void evaluate(const Record& record) {
    dispatch(record.code(), [&]<class O, Form F>(op::Instance<O, F>) {
      if constexpr (op::is<op::Block, O>)
        fail(ErrorKind::badArgument,
             std::string("emit: ") + tape_.namesOf(tape_.recordOf(record.result)).function +
                 " of whole views has no C text; write it with operations on single Values");
      else values_[record.result] = detail::evaluate<O, F>(record, Source{*this});
    });
    bool varies = false;
    tape_.forEachOperand(record, [&](Index i) { varies = varies || varies_[i]; });
    varies_[record.result] = varies;
  }

  void pull(const Record& record, std::vector<Adjoint>& adjoints, bool isGuarded) {
    if (!adjoints[record.result].isThere) return;
    const C g = adjoints[record.result].number;
    dispatch(record.code(), [&]<class O, Form F>(op::Instance<O, F>) {
      if constexpr (!op::is<op::Block, O>) {
        const bool asks = !O::isLinear && (isGuarded || g.isConstant()); // a constant costs nothing
        contribute<O, F>(record, Source{*this}, values_[record.result], g,
                         Give{*this, adjoints, g, asks});
      }
    });
  }

  const typename R::TapeType& tape_;
  const R& recording_;
  Statements statements_;
  std::vector<C> values_;
  std::vector<bool> varies_;
};

// Names that mean something else in the text: keywords of C and C++, what <math.h> declares (its functions
// also end in f and l), what the functions call their own.
inline constexpr std::string_view takenNames =
    " alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const"
    " constexpr const_cast continue decltype default delete do double dynamic_cast else enum "
    "explicit"
    " export extern false float for friend goto if inline int long mutable namespace new noexcept "
    "not"
    " not_eq nullptr operator or or_eq private protected public register reinterpret_cast restrict"
    " return short signed sizeof static static_assert static_cast struct switch template this"
    " thread_local throw true try typedef typeid typename typeof union unsigned using virtual void"
    " volatile wchar_t while xor xor_eq _Bool _Complex _Imaginary main"
    " NAN INFINITY HUGE_VAL fpclassify isfinite isinf isnan isnormal signbit isgreater "
    "isgreaterequal"
    " isless islessequal islessgreater isunordered float_t double_t j0 j1 jn y0 y1 yn gamma signgam"
    " x y n i k xs gs sums values gradient gradients rows ";
inline constexpr std::string_view mathFunctions =
    " acos asin atan atan2 cos sin tan acosh asinh atanh cosh sinh tanh exp exp2 expm1 frexp ilogb"
    " ldexp log log10 log1p log2 logb modf scalbn scalbln cbrt fabs hypot pow sqrt erf erfc lgamma"
    " tgamma ceil floor nearbyint rint lrint llrint round lround llround trunc fmod remainder "
    "remquo"
    " copysign nan nextafter nexttoward fdim fmax fmin fma ";

inline bool isFreeIdentifier(std::string_view name) {
  constexpr std::string_view digits = "0123456789",
                             letters = "_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  const auto isIn = [](std::string_view word, std::string_view words) {
    std::string spaced = " ";
    spaced += word;
    return words.find(spaced += " ") != std::string_view::npos;
  };
  const auto isDigit = [&](char c) { return digits.find(c) != std::string_view::npos; };
  const auto isLetter = [&](char c) { return letters.find(c) != std::string_view::npos; };
  if (name.empty() || !isLetter(name.front()) ||
      !std::ranges::all_of(name, [&](char c) { return isLetter(c) || isDigit(c); }))
    return false;
  if (name.front() == 't' && name.size() > 1 && std::ranges::all_of(name.substr(1), isDigit))
    return false; // a statement
  const bool hasSuffix = name.back() == 'f' || name.back() == 'l';
  return !isIn(name, takenNames) && !isIn(name, mathFunctions) &&
         !(hasSuffix && isIn(name.substr(0, name.size() - 1), mathFunctions));
}

// Prints the functions.
template <class R> class Printer {
public:
  Printer(const R& recording, const EmitOptions& options)
      : recording_(recording), options_(options), emitter_(recording) {
    if (!isFreeIdentifier(options.name))
      fail(ErrorKind::badArgument,
           "emit: \"" + options.name + "\" can't be the name of a C function here");
  }

  std::string print() {
    line({"#include <math.h>", "", ""});
    if (options_.language == Language::cpp) line({"extern \"C\" {", "", ""});
    const bool sharesParts = recording_.outputs() == 1 && isLong(emitter_.statementsFor(outputs()));
    if (!sharesParts) values();
    if (recording_.outputs() == 1) {
      gradient();
      if (sharesParts) valueByParts();
      batch();
    } else {
      jacobian();
    }
    if (options_.language == Language::cpp) line({"", "}"});
    return std::move(text_);
  }

private:
  using Results = std::vector<std::remove_cvref_t<decltype(std::declval<Emitter<R>>().output(0))>>;
  using Number = decltype(Results{}[0].number);

  void line(std::initializer_list<std::string_view> lines) {
    bool isFirst = true;
    for (const std::string_view each : lines) {
      if (!std::exchange(isFirst, false)) text_ += "\n";
      text_ += each;
    }
  }
  void open(std::string_view result, std::string_view suffix, std::string_view parameters) {
    text_ += result;
    text_ += " ";
    text_ += options_.name;
    text_ += suffix;
    text_ += "(";
    text_ += parameters;
    text_ += ")\n{\n";
  }
  std::string in(std::string_view name) const { return pointer("const ", name); }
  std::string out(std::string_view name) const { return pointer("", name); }
  std::string pointer(std::string_view before, std::string_view name) const {
    std::string t(before);
    t += type_;
    t += options_.language == Language::c99 ? " *restrict " : " *";
    return t += name;
  }
  static std::string list(std::initializer_list<std::string_view> all) {
    std::string t;
    for (const std::string_view each : all) {
      if (!t.empty()) t += ", ";
      t += each;
    }
    return t;
  }
  void store(std::string_view pattern, const Results& results, std::string_view indent) {
    for (std::size_t i = 0; i < results.size(); ++i) {
      text_ += indent;
      text_ += Emitter<R>::element(pattern, i);
      text_ += " = ";
      text_ += results[i].text();
      text_ += ";\n";
    }
  }
  void giveBack(const Results& value) {
    text_ += "    return ";
    text_ += value[0].text();
    text_ += ";\n";
  }

  Results outputs() const {
    Results y;
    for (std::size_t i = 0; i < recording_.outputs(); ++i) y.push_back(emitter_.output(i));
    return y;
  }
  static Results joined(Results all, const Results& more) {
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  bool isLong(const std::vector<std::uint32_t>& order) const { // more than the inputs, too
    return order.size() > std::max(options_.longest, recording_.inputs());
  }

  // Begins a function that computes results as t1, t2, …: the statements, or calls of their parts.
  void begin(std::string_view result, const std::string& suffix, const std::string& parameters,
             const Results& results) {
    auto order = emitter_.statementsFor(results);
    const std::string body = isLong(order)
                                 ? parts(std::move(order), options_.name + suffix, results)
                                 : emitter_.body(order, "x[#]", "    ");
    open(result, suffix, parameters);
    text_ += body;
  }

  // Prints functions that do the statements one after the other; returns the text that calls them.
  // What a part computes and a later one reads stands in the array `work`, in a place that is free again
  // after the last part that reads it.
  std::string parts(std::vector<std::uint32_t> order, const std::string& name,
                    const Results& results) {
    std::erase_if(order, [&](auto i) { return emitter_.isInput(i); }); // read where they are used
    const std::size_t length = std::max<std::size_t>(options_.part, 1);
    const std::size_t n = (order.size() + length - 1) / length;
    constexpr std::uint32_t none = Statements::constant;
    std::vector<std::size_t> partOf(emitter_.statements()), lastUse(emitter_.statements());
    for (std::size_t p = 0; p < order.size(); ++p) {
      const auto& one = emitter_.statement(order[p]);
      partOf[order[p]] = p / length;
      for (std::uint32_t k = 0; k < one.count; ++k) lastUse[one.operands[k]] = p / length;
    }
    for (const auto& result : results)
      if (!result.isConstant()) lastUse[result.id] = n;
    std::vector<std::uint32_t> place(emitter_.statements(), none), free;
    std::vector<std::size_t> defined(emitter_.statements(), n); // the last part that knows it
    std::vector<std::vector<std::uint32_t>> ends(n + 1);
    std::uint32_t room = 0;
    const auto work = [&](std::uint32_t i) { return Emitter<R>::element("work[#]", place[i]); };
    const auto source = [&](std::uint32_t i) { // of what another part computed
      return emitter_.isInput(i) ? Emitter<R>::element("x[#]", i) : work(i);
    };
    const std::string parameters = list({in("x"), out("work")});
    for (std::size_t part = 0; part < n; ++part) {
      std::string text;
      bool usesInputs = false;
      const auto know = [&](std::uint32_t i) {
        if (std::exchange(defined[i], part) == part) return;
        Emitter<R>::define(text, "    ", i, source(i));
        usesInputs |= emitter_.isInput(i);
      };
      for (std::size_t p = part * length; p < std::min(order.size(), (part + 1) * length); ++p) {
        const std::uint32_t i = order[p];
        const auto& one = emitter_.statement(i);
        for (std::uint32_t k = 0; k < one.count; ++k) know(one.operands[k]);
        Emitter<R>::define(text, "    ", i, *one.expression);
        defined[i] = part;
        if (lastUse[i] == part) continue;
        place[i] = free.empty() ? room++ : free.back();
        if (!free.empty()) free.pop_back();
        ends[lastUse[i]].push_back(i);
        text += "    " + work(i) + " = t" + std::to_string(i) + ";\n";
      }
      for (const std::uint32_t i : ends[part]) free.push_back(place[i]);
      text_ += "static void " + name + "_part" + std::to_string(part) + "(" + parameters + ")\n{\n";
      if (!usesInputs) text_ += "    (void)x;\n";
      text_ += text + "}\n\n";
    }
    // Called through a table, they can't be made one function again.
    text_ += "static void (*const " + name + "_parts[])(" + parameters + ") = {\n";
    for (std::size_t part = 0; part < n; ++part)
      text_ += "    " + name + "_part" + std::to_string(part) + ",\n";
    text_ += "};\n\n";
    const auto callsOf = [&](std::size_t count) {
      return std::string("    ") + type_ + " work[" + std::to_string(std::max(room, 1u)) +
             "];\n    int i;\n    for (i = 0; i < " + std::to_string(count) + "; ++i) " + name +
             "_parts[i](x, work);\n";
    };
    if (const std::uint32_t y = emitter_.output(0).id; y != none)
      value_ = callsOf(partOf[y] + 1) + "    return " + source(y) + ";\n";
    std::string text = callsOf(n);
    for (const auto& result : results)
      if (!result.isConstant() && std::exchange(defined[result.id], n + 1) != n + 1)
        Emitter<R>::define(text, "    ", result.id, source(result.id));
    return text;
  }

  void values() {
    const Results y = outputs();
    if (y.size() == 1) begin(type_, "_value", in("x"), y);
    else begin("void", "_values", list({in("x"), out("y")}), y);
    if (y.size() == 1) giveBack(y);
    else store("y[#]", y, "    ");
    text_ += "}\n\n";
  }

  // The value is what the first parts of the gradient compute.
  void valueByParts() {
    open(type_, "_value", in("x"));
    text_ += value_ + "}\n\n";
  }

  // A sum that is NaN if one of the numbers is; halves first, so that additions need not wait.
  static std::string sum(const Results& numbers) {
    std::vector<std::string> terms;
    std::unordered_set<std::uint32_t> seen; // a constant is the same with guards
    for (const auto& each : numbers)
      if (!each.isConstant() && seen.insert(each.id).second) terms.push_back(each.text());
    if (terms.empty()) return "0";
    for (std::size_t width = 1; terms.size() > 1; width *= 2) {
      std::vector<std::string> sums;
      for (std::size_t i = 0; i + 1 < terms.size(); i += 2)
        sums.push_back("(" + terms[i] + (width == 8 ? "\n        + " : " + ") + terms[i + 1] + ")");
      if (terms.size() % 2 != 0) sums.push_back(terms.back());
      terms = std::move(sums);
    }
    return terms[0];
  }
  // Whether guards make a difference to these derivatives.
  bool needsGuards(const Results& plain, const Results& guarded) const {
    return !std::ranges::equal(
        plain, guarded, {}, [](const auto& x) { return x.id; }, [](const auto& x) { return x.id; });
  }
  // `otherwise` is done where one of the derivatives is NaN.
  void demandNumbers(const Results& derivatives, const std::string& otherwise) {
    text_ += "    const " + std::string(type_) + " sum = " + sum(derivatives) +
             ";\n    if (sum != sum) " + otherwise + " /* perhaps 0 times infinity */\n";
  }

  void gradient() {
    gradient_ = emitter_.gradient(0, false);
    const Results guarded = options_.isGuarded ? emitter_.gradient(0, true) : gradient_;
    isGuarded_ = needsGuards(gradient_, guarded);
    if (isGuarded_) gradientOf(guarded, "_guarded");
    gradientOf(gradient_, "");
  }
  void gradientOf(const Results& gradient, const std::string& suffix) {
    const bool isPlain = suffix.empty();
    begin(isPlain ? type_ : "static " + std::string(type_), suffix,
          list({in("x"), out("gradient")}), joined(gradient, outputs()));
    if (isPlain && isGuarded_)
      demandNumbers(gradient, "return " + options_.name + "_guarded(x, gradient);");
    store("gradient[#]", gradient, "    ");
    giveBack(outputs());
    text_ += "}\n\n";
  }

  void jacobian() {
    Results rows, guarded;
    for (std::size_t i = 0; i < recording_.outputs(); ++i) {
      rows = joined(std::move(rows), emitter_.gradient(i, false));
      if (options_.isGuarded) guarded = joined(std::move(guarded), emitter_.gradient(i, true));
    }
    isGuarded_ = options_.isGuarded && needsGuards(rows, guarded);
    if (isGuarded_) jacobianOf(guarded, "_jacobian_guarded");
    jacobianOf(rows, "_jacobian");
  }
  void jacobianOf(const Results& rows, const std::string& suffix) {
    const bool isPlain = suffix == "_jacobian";
    const Results y = outputs();
    begin(isPlain ? "void" : "static void", suffix, list({in("x"), out("y"), out("rows")}),
          joined(y, rows));
    if (isPlain && isGuarded_)
      demandNumbers(rows, "{\n        " + options_.name +
                              "_jacobian_guarded(x, y, rows);\n        return;\n    }");
    store("y[#]", y, "    ");
    store("rows[#]", rows, "    ");
    text_ += isPlain ? "}\n" : "}\n\n";
  }

  // Samples side by side: a loop over lanes that a compiler turns into vector instructions. They stand on
  // the stack, so not where many inputs would fill it, and not where the statements are many.
  void batch() {
    const std::size_t room = std::max<std::size_t>(recording_.inputs(), 1) * sizeof(Number);
    constexpr std::size_t mostBytes = 64 * 1024;
    const bool hasLanes = options_.lanes > 1 && options_.lanes <= mostBytes / 2 / room &&
                          !isLong(emitter_.statementsFor(joined(gradient_, outputs())));
    if (hasLanes) lanes();
    const std::string d = std::to_string(recording_.inputs());
    const std::string v = std::to_string(recording_.variables());
    open("void", "_batch", list({"unsigned long n", in("x"), out("values"), out("gradients")}));
    if (hasLanes) batchInLanes(d, v);
    text_ += "    for (; n != 0; --n) {\n        *values++ = " + options_.name +
             "(x, gradients);\n        x += " + d + ";\n        gradients += " + v +
             ";\n    }\n}\n";
  }
  void lanes() {
    const std::string width = std::to_string(options_.lanes);
    std::string parameters = list({in("x"), out("values"), out("gradients")});
    if (isGuarded_) parameters = list({parameters, out("sums")});
    open("static void", "_lanes", parameters);
    text_ += "    int k;\n    for (k = 0; k < " + width + "; ++k) {\n";
    text_ += emitter_.body(emitter_.statementsFor(joined(gradient_, outputs())),
                           "x[" + width + " * # + k]", "        ");
    store("gradients[" + width + " * # + k]", gradient_, "        ");
    store("values[k]", outputs(), "        "); // no # in it: one result
    if (isGuarded_) text_ += "        sums[k] = " + sum(gradient_) + ";\n";
    text_ += "    }\n";
    if (gradient_.empty()) text_ += "    (void)gradients;\n";
    text_ += "}\n\n";
  }
  void batchInLanes(const std::string& d, const std::string& v) {
    const std::string width = std::to_string(options_.lanes);
    const std::string room = std::to_string(std::max<std::size_t>(recording_.inputs(), 1));
    const std::string t = type_;
    text_ += "    " + t + " xs[" + room + " * " + width + "], gs[" + room + " * " + width + "]" +
             (isGuarded_ ? ", sums[" + width + "]" : "") + ";\n    int i, k;\n";
    text_ += "    for (; n >= " + width + "; n -= " + width + ") {\n";
    const auto eachElement = [&](const std::string& count, std::string_view what) {
      text_ += "        for (k = 0; k < " + width + "; ++k)\n";
      text_ += "            for (i = 0; i < " + count + "; ++i)\n                ";
      text_ += what;
      text_ += ";\n";
    };
    eachElement(d, "xs[" + width + " * i + k] = x[" + d + " * k + i]");
    text_ += "        " + options_.name + "_lanes(xs, values, gs" + (isGuarded_ ? ", sums" : "") +
             ");\n";
    eachElement(v, "gradients[" + v + " * k + i] = gs[" + width + " * i + k]");
    if (isGuarded_)
      text_ += "        for (k = 0; k < " + width + "; ++k)\n            if (sums[k] != sums[k]) " +
               "values[k] = " + options_.name + "_guarded(x + " + d + " * k, gradients + " + v +
               " * k);\n";
    text_ += "        x += " + d + " * " + width + ";\n        gradients += " + v + " * " + width +
             ";\n        values += " + width + ";\n    }\n";
  }

  const R& recording_;
  const EmitOptions& options_;
  Emitter<R> emitter_;
  Results gradient_;
  bool isGuarded_ = false; // there is a function with guards
  std::string value_;      // what the parts printed last compute first, as the body of a function
  const char* type_ = Emitter<R>::typeName();
  std::string text_;
};

} // namespace detail

template <class T, class... O>
  requires std::floating_point<T>
std::string emit(const Recording<T, O...>& recording, const EmitOptions& options = {}) {
  return detail::Printer(recording, options).print();
}

BURTORCH_END_NAMESPACE
