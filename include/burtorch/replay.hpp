// burtorch/replay.hpp — a recorded function, run again on new inputs
// SPDX-License-Identifier: MIT
//
//   const Value a(tape, 1.0), b(tape, 2.0);
//   const Recording<double> f({a, b}, sqr(a * b) + b);     // what was recorded, frozen
//   auto workspace = f.workspace();                        // one per thread
//   double y = f.valueAndGradient(workspace, x, gradient); // x, gradient: two numbers each
//
// A Recording is a compact copy of the part of a tape that lies between inputs and outputs; the tape
// is free to go on or to die. It never changes, so any number of threads may run it, each in a
// Workspace of its own, and a run appends nothing and allocates nothing. A Workspace may be of another
// scalar than the tape: workspace<dual<T>>() for directional derivatives, workspace<simd<T, N>>() for
// N samples at once, which is what batch() does.
//
// Everything else is taken as it was when recording: leaves that are no inputs are constants, and a
// branch in the program that recorded stays taken.
//
// Running does what the tape did, by the same structs in the same order, so the numbers are the same
// bit for bit (where a compiler may not fuse operations across statements: -ffp-contract=off). Passes:
//   fold      what depends on no input is computed once, now; operands known to be constant become
//             plain numbers. Changes no bit.
//   dead      what no output depends on is removed. Changes no bit.
//   share     equal expressions are computed once. Values stay as they are; gradients are sums in
//             another order, so they round differently.
#pragma once

#include <burtorch/backward.hpp>
#include <burtorch/config.hpp>
#include <burtorch/error.hpp>
#include <burtorch/op/table.hpp>
#include <burtorch/scalar/simd.hpp>
#include <burtorch/scalar/vector_math.hpp>
#include <burtorch/tape.hpp>
#include <burtorch/value.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

BURTORCH_BEGIN_NAMESPACE

// What is done to a recording when it is made; see above.
enum class Passes : std::uint8_t { none = 0, dead = 1, fold = 2, share = 4, exact = 3, all = 7 };
constexpr Passes operator|(Passes x, Passes y) {
  return static_cast<Passes>(static_cast<unsigned>(x) | static_cast<unsigned>(y));
}
constexpr bool has(Passes passes, Passes one) {
  return (static_cast<unsigned>(passes) & static_cast<unsigned>(one)) != 0;
}

namespace detail {

constexpr bool isClipped(Op operation) {
#define BURTORCH_ONE(Name, function)                                                               \
  if (operation == Op::e##Name) return true;
  BURTORCH_CLIPPED_OPERATIONS(BURTORCH_ONE)
#undef BURTORCH_ONE
  return false;
}

// Operations with many operands, and blocks: out of the hot loop.
template <class O, Form F, class T, class Index, class Record>
BURTORCH_NOINLINE T evaluateMany(const T* values, const Index* operands, const Record& record) {
  using Run = RunOf<T>;
  using List = ListOf<T, Index>;
  const std::size_t a = record.a, n = record.b;
  const Index* const stored = operands + a;
  if constexpr (op::is<op::Reduction, O>) {
    if constexpr (F == Form::run) return static_cast<T>(O::forward(Run{values + a, n}));
    else return static_cast<T>(O::forward(List{values, stored, n}));
  } else {
    ComputedIn<T> z;
    if constexpr (F == Form::run)
      z = O::forward(Run{values + stored[0], n}, Run{values + stored[1], n});
    else z = O::forward(List{values, stored, n}, List{values, stored + n, n});
    if constexpr (O::hasBias) z = z + computed(values[stored[F == Form::run ? 2 : 2 * n]]);
    return static_cast<T>(z);
  }
}

template <class T, class Index, class Record>
BURTORCH_NOINLINE void evaluateBlock(TapeAccess::Columns<T, Index> c, const Record& record) {
  const BlockDescription<T, Index> d(c.operands + record.a);
  const std::size_t count = record.b; // the word is not the tape's
  d.methods().forward({c.values, c.grads, c.constants + d.constantsPlace(), d,
                       record.result + std::size_t{1} - count, count});
}

// Which operand of a record is the result of the record before: it is still in a register, and a trip
// through memory would cost more than the arithmetic. Known when the recording is made, so the switch
// below tells the cases apart instead of every record.
enum class Fresh : std::uint8_t { none = 0, a = 1, b = 2 };

constexpr unsigned pushCode(Code code, Fresh fresh) {
  return code * 4u + static_cast<unsigned>(fresh);
}

template <class Visitor>
BURTORCH_INLINE decltype(auto) dispatchPush(unsigned code, Visitor&& visitor) {
  switch (code) {
#define BURTORCH_CASE(Name, formName, fresh)                                                       \
  case pushCode(codeOf(Op::e##Name, Form::formName), Fresh::fresh):                                \
    return visitor.template operator()<op::Name, Form::formName, Fresh::fresh>();
#define BURTORCH_ONE(Name, function) BURTORCH_CASE(Name, nodes, none) BURTORCH_CASE(Name, nodes, a)
#define BURTORCH_THREE(Name, function)                                                             \
  BURTORCH_ONE(Name, function)                                                                     \
  BURTORCH_CASE(Name, nodes, b)                                                                    \
  BURTORCH_CASE(Name, nodeNumber, none)                                                            \
  BURTORCH_CASE(Name, nodeNumber, a)                                                               \
  BURTORCH_CASE(Name, numberNode, none) BURTORCH_CASE(Name, numberNode, b)
#define BURTORCH_MANY(Name, function) BURTORCH_CASE(Name, run, none) BURTORCH_CASE(Name, list, none)
    BURTORCH_UNARY_OPERATIONS(BURTORCH_ONE)
    BURTORCH_BINARY_OPERATIONS(BURTORCH_THREE)
    BURTORCH_CLIPPED_OPERATIONS(BURTORCH_ONE)
    BURTORCH_REDUCTIONS(BURTORCH_MANY)
    BURTORCH_PRODUCTS(BURTORCH_MANY)
    BURTORCH_CASE(Block, nodes, none)
#undef BURTORCH_MANY
#undef BURTORCH_THREE
#undef BURTORCH_ONE
#undef BURTORCH_CASE
  default:
    BURTORCH_UNREACHABLE();
  }
}

// Computes the result of a record, whose word is a pushCode; the counterpart of Pull. last_ is the result
// of the record before.
template <class T, class Index> class Push {
  using C = ComputedIn<T>;

public:
  explicit Push(const TapeAccess::Columns<T, Index>& columns) : columns_(columns), last_(T(0)) {}

  template <class Record> BURTORCH_INLINE void operator()(const Record& record) {
    dispatchPush(record.word, [&]<class O, Form F, Fresh fresh>() BURTORCH_INLINE_LAMBDA {
      const T* BURTORCH_RESTRICT const values = columns_.values;
      const auto number = [&](std::size_t place) BURTORCH_INLINE_LAMBDA {
        return static_cast<C>(computed(columns_.constants[place]));
      };
      const auto x = [&]() BURTORCH_INLINE_LAMBDA {
        if constexpr (F == Form::numberNode) return number(record.a);
        else if constexpr (fresh == Fresh::a) return static_cast<C>(computed(last_));
        else return static_cast<C>(computed(values[record.a]));
      };
      const auto y = [&]() BURTORCH_INLINE_LAMBDA {
        if constexpr (F == Form::nodeNumber) return number(record.b);
        else if constexpr (fresh == Fresh::b) return static_cast<C>(computed(last_));
        else return static_cast<C>(computed(values[record.b]));
      };
      if constexpr (op::is<op::Block, O>) {
        evaluateBlock(columns_, record);
        last_ = columns_.values[record.result];
        return;
      } else if constexpr (op::is<op::Unary, O>) {
        last_ = static_cast<T>(O::forward(x()));
      } else if constexpr (op::is<op::Clipped, O>) {
        last_ =
            static_cast<T>(O::forward(x(), number(record.b), number(record.b + std::size_t{1})));
      } else if constexpr (op::is<op::Binary, O>) {
        last_ = static_cast<T>(O::forward(x(), y()));
      } else {
        last_ = evaluateMany<O, F>(columns_.values, columns_.operands, record);
      }
      columns_.values[record.result] = last_;
    });
  }

private:
  TapeAccess::Columns<T, Index> columns_;
  T last_;
};

} // namespace detail

// What one run of a recording needs: values, gradients, constants of a scalar type.
template <class S> class Workspace {
public:
  std::span<const S> values() const { return values_; }
  std::span<const S> grads() const { return grads_; }

private:
  template <Scalar, class...> friend class Recording;
  std::vector<S> values_, grads_, constants_;
};

template <Scalar T, class... Options> class Recording {
  static_assert(!detail::TapeOptions<Options...>::concurrent);

public:
  using TapeType = Tape<T, Options...>;
  using Index = typename TapeType::Index;
  using Record = typename TapeType::Record;

  // What was recorded between the inputs and the outputs.
  template <class... O>
  Recording(std::span<const Value<T, O...>> inputs, std::span<const Value<T, O...>> outputs,
            Passes passes = Passes::exact) {
    if (outputs.empty()) detail::fail(ErrorKind::badArgument, "a recording of no outputs");
    const auto& from = outputs.front().tape();
    std::size_t nodes = 0;
    const auto take = [&](const auto& handles, std::vector<Index>& to, const char* what) {
      for (const auto& handle : handles) {
        outputs.front().checkSameTape(handle);
        nodes = std::max(nodes, detail::nodesUpTo(handle));
        to.push_back(handle.sysGetRawNodeIndex());
        labels_.push_back(nameFor(handle, what, to.size()));
      }
    };
    take(inputs, inputs_, "x");
    take(outputs, outputs_, "y");
    demandDistinctInputs();
    for (const auto& input : inputs)
      if (from.recordOf(input.sysGetRawNodeIndex()) != from.records().size())
        detail::fail(ErrorKind::badArgument,
                     "an input of a recording is a leaf; node " +
                         std::to_string(input.sysGetRawNodeIndex()) + " is the result of " +
                         from.namesOf(from.recordOf(input.sysGetRawNodeIndex())).function);
    detail::TapeAccess::copy(from, nodes, 2 * from.records().size(), tape_);
    if (has(passes, Passes::fold)) fold();
    if (has(passes, Passes::share)) share();
    if (has(passes, Passes::dead)) removeDead();
    settle();
  }
  template <class... O>
  Recording(std::initializer_list<Value<T, O...>> inputs, const Value<T, O...>& output,
            Passes passes = Passes::exact)
      : Recording(std::span<const Value<T, O...>>(inputs.begin(), inputs.size()),
                  std::span<const Value<T, O...>>(&output, 1), passes) {}
  template <RangeOfValues X>
  Recording(const X& inputs, const detail::ValueIn<X>& output, Passes passes = Passes::exact)
      : Recording(std::span<const detail::ValueIn<X>>(inputs),
                  std::span<const detail::ValueIn<X>>(&output, 1), passes) {}
  template <RangeOfValues X, RangeOfValues Y>
  Recording(const X& inputs, const Y& outputs, Passes passes = Passes::exact)
      : Recording(std::span<const detail::ValueIn<X>>(inputs),
                  std::span<const detail::ValueIn<X>>(outputs), passes) {}
  // The inputs are the leaves made since the mark, in order.
  template <class Mark, class... O>
    requires std::same_as<Mark, typename Tape<T, O...>::Mark>
  Recording(const Mark& mark, const Value<T, O...>& root, Passes passes = Passes::exact)
      : Recording(leavesSince(mark, root), root, passes) {}

  std::size_t inputs() const { return inputs_.size(); }
  std::size_t outputs() const { return outputs_.size(); }
  std::span<const Index> inputNodes() const { return inputs_; }
  std::span<const Index> outputNodes() const { return outputs_; }
  // The labels that inputs and outputs had, else x0, x1, …, y0, ….
  const std::string& inputName(std::size_t i) const { return labels_[i]; }
  const std::string& outputName(std::size_t i) const { return labels_[inputs_.size() + i]; }
  // The frozen tape: for looking at.
  const TapeType& tape() const { return tape_; }
  bool hasBlocks() const { return hasBlocks_; }
  std::vector<Index> operandsOf(const Record& record) const { // those that are nodes, in order
    std::vector<Index> nodes;
    tape_.forEachOperand(record, [&](Index operand) { nodes.push_back(operand); });
    return nodes;
  }

  // Memory to run in, of this scalar or of another one.
  template <class S = T> Workspace<S> workspace() const {
    if (!std::same_as<S, T> && hasBlocks_)
      detail::fail(ErrorKind::badArgument,
                   "a recording with block operations (of views) runs on its own scalar only");
    Workspace<S> w;
    w.values_ = convert<S>(tape_.values());
    w.constants_ = convert<S>(tape_.constants());
    w.grads_.assign(tape_.size(), S(0));
    return w;
  }

  // ---- a run in parts: set inputs, forward, backward from one output, read gradients -------------

  template <class S, class X> BURTORCH_INLINE void set(Workspace<S>& w, const X& x) const {
    if (firstInput_ != none) {
      S* const to = w.values_.data() + firstInput_;
      for (std::size_t i = 0, n = inputs_.size(); i < n; ++i) to[i] = x[i];
    } else {
      for (std::size_t i = 0; i < inputs_.size(); ++i) w.values_[inputs_[i]] = x[i];
    }
  }
  template <class S> BURTORCH_NOINLINE void forward(Workspace<S>& w) const {
    detail::Push<S, Index> push(columns(w));
    for (const Record *r = pushes_.data(), *end = r + pushes_.size(); r != end; ++r) push(*r);
  }
  template <class S> const S& output(const Workspace<S>& w, std::size_t i = 0) const {
    return w.values_[outputs_[i]];
  }
  template <class S>
  BURTORCH_NOINLINE void backward(Workspace<S>& w, std::size_t output = 0,
                                  const std::type_identity_t<S>& seed = S(1)) const {
    std::fill(w.grads_.begin(), w.grads_.end(), S(0));
    detail::Pull pull(columns(w), detail::Everything{}, outputs_[output], seed);
    const Record* const records = tape_.records().data();
    for (std::size_t r = sweepFrom_[output]; r-- != 0;) pull(records[r]);
  }
  template <class S, class Out>
  BURTORCH_INLINE void gradient(const Workspace<S>& w, Out&& out) const {
    if (firstInput_ != none) {
      const S* const from = w.grads_.data() + firstInput_;
      for (std::size_t i = 0, n = inputs_.size(); i < n; ++i) out[i] = from[i];
    } else {
      for (std::size_t i = 0; i < inputs_.size(); ++i) out[i] = w.grads_[inputs_[i]];
    }
  }

  // ---- whole runs. x and out are anything with an element per input ------------------------------

  template <class S, class X> S value(Workspace<S>& w, const X& x) const {
    set(w, x);
    forward(w);
    return output(w);
  }
  template <class S, class X, class Out> void values(Workspace<S>& w, const X& x, Out&& out) const {
    set(w, x);
    forward(w);
    for (std::size_t i = 0; i < outputs(); ++i) out[i] = output(w, i);
  }
  template <class S, class X, class Out>
  S valueAndGradient(Workspace<S>& w, const X& x, Out&& out) const {
    set(w, x);
    forward(w);
    backward(w);
    gradient(w, out);
    return output(w);
  }
  // Row after row: the derivatives of output i by all inputs.
  template <class S, class X>
  void jacobian(Workspace<S>& w, const X& x, std::span<S> values, std::span<S> rows) const {
    if (values.size() < outputs() || rows.size() < outputs() * inputs())
      detail::fail(ErrorKind::badArgument, "jacobian: room for " + std::to_string(outputs()) +
                                               " values and as many rows of " +
                                               std::to_string(inputs()) + " is needed");
    this->values(w, x, values);
    for (std::size_t i = 0; i < outputs(); ++i) {
      backward(w, i);
      gradient(w, rows.subspan(i * inputs(), inputs()));
    }
  }

  // Values and gradients of the first output at n points, which are the rows of x; so are the
  // gradients. `grads` may be null. As many points at a time as a Workspace of lanes has.
  template <std::size_t N>
  void batch(Workspace<simd<T, N>>& w, const T* x, std::size_t n, T* values, T* grads) const {
    const std::size_t d = inputs();
    for (std::size_t first = 0; first < n; first += N) {
      const std::size_t count = std::min(N, n - first); // the last lanes repeat the last point
      for (std::size_t i = 0; i < d; ++i) {
        simd<T, N>& lanes = w.values_[inputs_[i]];
        for (std::size_t k = 0; k < N; ++k)
          lanes.set(k, x[(first + std::min(k, count - 1)) * d + i]);
      }
      forward(w);
      for (std::size_t k = 0; k < count; ++k) values[first + k] = output(w)[k];
      if (grads == nullptr) continue;
      backward(w);
      for (std::size_t i = 0; i < d; ++i) {
        const simd<T, N>& lanes = w.grads_[inputs_[i]];
        for (std::size_t k = 0; k < count; ++k) grads[(first + k) * d + i] = lanes[k];
      }
    }
  }
  void batch(Workspace<T>& w, const T* x, std::size_t n, T* values, T* grads) const {
    const std::size_t d = inputs();
    for (std::size_t k = 0; k < n; ++k)
      if (grads == nullptr) values[k] = value(w, x + k * d);
      else values[k] = valueAndGradient(w, x + k * d, grads + k * d);
  }

private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  template <class S> detail::TapeAccess::Columns<S, Index> columns(Workspace<S>& w) const {
    return {w.values_.data(), w.grads_.data(), w.constants_.data(),
            const_cast<Index*>(tape_.operands().data())}; // which kernels only read
  }

  template <class S> static std::vector<S> convert(std::span<const T> from) {
    std::vector<S> to;
    to.reserve(from.size());
    for (const T& each : from) to.push_back(S(each));
    return to;
  }

  template <class V>
  static std::string nameFor(const V& handle, const char* what, std::size_t number) {
    std::string label = handle.label();
    if (!label.empty()) return label;
    label = what;
    label += std::to_string(number - 1);
    return label;
  }

  template <class Mark, class V>
  static std::vector<V> leavesSince(const Mark& mark, const V& root) {
    const auto& tape = root.tape();
    const auto records = tape.records();
    std::size_t r = 0;
    std::vector<V> leaves;
    for (std::size_t i = tape.nodesAt(mark); i < tape.size(); ++i) {
      while (r < records.size() && records[r].result < i) ++r;
      if (r == records.size() || !records[r].made(i)) leaves.push_back(V::at(root.tape(), i));
    }
    return leaves;
  }

  void demandDistinctInputs() const {
    std::vector<Index> sorted = inputs_;
    std::ranges::sort(sorted);
    if (std::ranges::adjacent_find(sorted) != sorted.end())
      detail::fail(ErrorKind::badArgument, "a recording was given the same input twice");
  }

  Record* records() { return detail::TapeAccess::records(tape_); }

  // ---- passes -----------------------------------------------------------------------------------

  // f(place, how many) for the plain numbers of a record that is no block.
  template <class F> static void withNumbers(Record& record, const F& f) {
    const auto which = op::operandsOf(record.code());
    if (detail::isClipped(record.operation())) f(record.b, std::size_t{2});
    else if (which == op::Operands::a && record.form() == Form::nodeNumber)
      f(record.b, std::size_t{1});
    else if (which == op::Operands::b) f(record.a, std::size_t{1});
  }

  void fold() {
    std::vector<bool> varies(tape_.size());
    for (const Index i : inputs_) varies[i] = true;
    const auto columns = detail::TapeAccess::columns(tape_);
    std::vector<T> constants;
    const auto keep = [&](Index& place, std::size_t n) {
      const auto to = static_cast<Index>(constants.size());
      constants.insert(constants.end(), columns.constants + place, columns.constants + place + n);
      place = to;
    };
    const auto makeNumber = [&](Record& record, Index& node, Form form) {
      record.word = codeOf(record.operation(), form);
      constants.push_back(columns.values[node]);
      node = static_cast<Index>(constants.size() - 1);
    };
    std::size_t kept = 0;
    for (std::size_t r = 0, n = tape_.records().size(); r < n; ++r) {
      Record record = records()[r];
      if (std::ranges::none_of(operandsOf(record), [&](Index i) { return bool(varies[i]); }))
        continue; // its results stay, as leaves
      for (std::size_t i = 0; i < record.results(); ++i) varies[record.firstResult() + i] = true;
      if (record.isBlock()) {
        const detail::BlockDescription<T, Index> d(columns.operands + record.a);
        keep(d.constantsPlace(), d.constants());
      } else if (op::operandsOf(record.code()) == op::Operands::ab) {
        if (!varies[record.b]) makeNumber(record, record.b, Form::nodeNumber);
        else if (!varies[record.a]) makeNumber(record, record.a, Form::numberNode);
      } else {
        withNumbers(record, keep);
      }
      records()[kept++] = record;
    }
    std::ranges::copy(constants, columns.constants);
    detail::TapeAccess::shrink(tape_, kept, constants.size());
  }

  // Equal expressions become one. Neighbours that an operation takes as a run stay where they are.
  void share() {
    const auto takesRun = [](const Record& record) {
      return op::operandsOf(record.code()) == op::Operands::many &&
             (record.isBlock() || record.form() == Form::run);
    };
    std::vector<bool> inRun(tape_.size());
    for (const Record& record : tape_.records())
      if (takesRun(record))
        for (const Index operand : operandsOf(record)) inRun[operand] = true;
    std::vector<Index> same(tape_.size());
    for (std::size_t i = 0; i < same.size(); ++i) same[i] = static_cast<Index>(i);
    const auto columns = detail::TapeAccess::columns(tape_);
    std::map<std::vector<std::uint64_t>, Index> seen;
    for (std::size_t r = 0, n = tape_.records().size(); r < n; ++r) {
      Record& record = records()[r];
      if (record.isBlock()) continue;
      const auto which = op::operandsOf(record.code());
      if (which == op::Operands::a || which == op::Operands::ab) record.a = same[record.a];
      if (which == op::Operands::b || which == op::Operands::ab) record.b = same[record.b];
      const auto operands = operandsOf(record);
      if (which == op::Operands::many && !takesRun(record))
        for (std::size_t i = 0; i < operands.size(); ++i)
          columns.operands[record.a + i] = same[operands[i]];
      std::vector<std::uint64_t> key{record.code()};
      for (const Index operand : operandsOf(record)) key.push_back(operand);
      withNumbers(record, [&](Index place, std::size_t count) {
        std::vector<std::uint64_t> words((count * sizeof(T) + 7) / 8);
        std::memcpy(words.data(), columns.constants + place, count * sizeof(T));
        key.insert(key.end(), words.begin(), words.end());
      });
      const auto [at, isNew] = seen.try_emplace(std::move(key), record.result);
      if (!isNew && !inRun[record.result]) same[record.result] = at->second;
    }
    for (Index& output : outputs_) output = same[output];
  }

  void removeDead() {
    const auto handles = [&](const std::vector<Index>& nodes) {
      std::vector<Value<T, Options...>> values;
      for (const Index i : nodes) values.push_back(Value<T, Options...>::at(tape_, i));
      return values;
    };
    auto in = handles(inputs_), out = handles(outputs_);
    tape_.collect(in, out);
    for (std::size_t i = 0; i < in.size(); ++i) inputs_[i] = in[i].sysGetRawNodeIndex();
    for (std::size_t i = 0; i < out.size(); ++i) outputs_[i] = out[i].sysGetRawNodeIndex();
  }

  void settle() {
    for (std::size_t i = 0; i < inputs_.size(); ++i) tape_.setLabel(inputs_[i], inputName(i));
    bool isRun = !inputs_.empty();
    for (std::size_t i = 1; i < inputs_.size(); ++i) isRun &= inputs_[i] == inputs_[i - 1] + 1u;
    firstInput_ = isRun ? inputs_.front() : none;
    for (const Index output : outputs_) {
      const std::size_t record = tape_.recordOf(output);
      sweepFrom_.push_back(record == tape_.records().size() ? 0 : record + 1);
    }
    for (const Record& record : tape_.records()) {
      hasBlocks_ |= record.isBlock();
      const unsigned code = detail::pushCode(record.code(), freshIn(record));
      pushes_.push_back(record);
      pushes_.back().word = static_cast<typename Record::Word>(code);
    }
  }
  detail::Fresh freshIn(const Record& record) const {
    using op::Operands, detail::Fresh;
    const auto which = op::operandsOf(record.code());
    if (pushes_.empty() || which == Operands::many) return Fresh::none;
    const Index last = pushes_.back().result;
    if (which != Operands::b && record.a == last) return Fresh::a;
    return which != Operands::a && record.b == last ? Fresh::b : Fresh::none;
  }

  TapeType tape_;
  std::vector<Record> pushes_; // the tape's, with words for Push
  std::vector<Index> inputs_, outputs_;
  std::vector<std::string> labels_;
  std::vector<std::size_t> sweepFrom_; // per output: how many records a sweep from it looks at
  std::size_t firstInput_ = none;      // where the inputs are neighbours
  bool hasBlocks_ = false;
};

BURTORCH_END_NAMESPACE
