// burtorch/run/replay.hpp — a recorded function, run again on new inputs
// SPDX-License-Identifier: MIT
//
//   const Value a(tape, 1.0), b(tape, 2.0);
//   const Recording<double> f({a, b}, sqr(a * b) + b);     // what was recorded, frozen
//   auto workspace = f.workspace();                        // one per thread
//   double y = f.valueAndGradient(workspace, x, gradient); // x, gradient: two numbers each
//
// Inputs have roles. Variables come first: gradients are by them. Data follows them in x, other numbers at
// every run, without a gradient: Recording f(variables, data, output). A sweep does no work for data, except
// inside of reductions.
//
// A Recording is a compact copy of the part of a tape that lies between inputs and outputs; the tape
// is free to go on or to die. It may be moved and never changes, so any number of threads may run it, each in a
// Workspace of its own, and a run appends nothing and allocates nothing. A Workspace may be of another
// scalar than the tape: workspace<dual<T>>() for directional derivatives, workspace<simd<T, N>>() for
// N samples at once, which is what batch() does.
//
// Everything else is taken as it was when recording: leaves that are no inputs are constants, and a
// branch in the program that recorded stays taken. So a recording is refused if Values were compared
// (`if (a < b)`, std::max) since its first input was made, unless it is told Branches::freeze. Nobody sees
// what a program does with a number that dataCopy() gave it.
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
#include <burtorch/base/config.hpp>
#include <burtorch/base/error.hpp>
#include <burtorch/op/record.hpp>
#include <burtorch/op/table.hpp>
#include <burtorch/scalar/simd.hpp>
#include <burtorch/scalar/vector_math.hpp>
#include <burtorch/tape/rebuild.hpp>
#include <burtorch/tape/tape.hpp>
#include <burtorch/value.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
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

// What is done if comparisons of Values may have decided what was recorded.
enum class Branches : std::uint8_t { refuse, freeze };

namespace detail {

// Which sequence of a product takes part where the other one is constant.
struct OnlyFirst : Everything {
  template <int k> static constexpr bool wantsSequence = k == 0;
};
struct OnlySecond : Everything {
  template <int k> static constexpr bool wantsSequence = k == 1;
};

// Operations with many operands: out of the hot loop.
template <class O, Form F, class T, class Index, class Record>
BURTORCH_NOINLINE T evaluateMany(const T* values, const Index* operands, const Record& record) {
  return static_cast<T>(evaluate<O, F>(record, TapeSource<T, Index>{values, nullptr, operands}));
}

// A number that the step before has just computed is still in a register, and a trip through memory would
// cost more than the arithmetic. Forward: an operand. Backward: the adjoint, or the gradient of the newest
// operand, which is to be added to.
enum class Fresh : std::uint8_t { none, a, b, adjoint = a, gradient = b };

// f.template operator()<operation, form, fresh>() for what is known of a record when it is made.
template <class F> auto withInstance(Code code, Fresh fresh, const F& f) {
  return dispatch(code, [&]<class O, Form form>(op::Instance<O, form>) {
    if constexpr (op::isFew(op::layoutOf<O>(form))) {
      if (fresh == Fresh::a) return f.template operator()<O, form, Fresh::a>();
      if (fresh == Fresh::b) return f.template operator()<O, form, Fresh::b>();
    }
    return f.template operator()<O, form, Fresh::none>();
  });
}

// A record as it is run: a function that does it and then calls that of the next step, which compilers make
// a jump. All that it needs travels in registers, and no switch is left. Where a compiler does not, the
// calls nest; so a stop comes after every `most` steps.
template <class S, class Index> struct Step {
  using C = ComputedIn<S>;
  using Columns = TapeAccess::Columns<S, Index>;
  using Run = S (*)(const Step*, S* values, S* grads, const S* constants, const Columns*, S last);
  static constexpr std::size_t most = 256;

  Run run;
  Index result, a, b; // as in the record

  std::size_t results() const { return b; } // of a block
  std::size_t firstResult() const { return result + std::size_t{1} - b; }

  // Operands of which one may be in a register, copied: as references they would be read twice.
  template <Fresh fresh> struct Source {
    const S* values;
    const S* constants;
    const S& last;
    template <int k> BURTORCH_INLINE C node(std::size_t i) const {
      constexpr bool isFresh = fresh == (k == 0 ? Fresh::a : Fresh::b);
      return static_cast<C>(computed(isFresh ? last : values[i]));
    }
    BURTORCH_INLINE C number(std::size_t place) const {
      return static_cast<C>(computed(constants[place]));
    }
  };
  template <bool isBNewer_> struct PulledSource : Source<Fresh::none> {
    BURTORCH_INLINE static constexpr bool isBNewer(const Step&) { return isBNewer_; }
  };

  static S stop(const Step*, S*, S*, const S*, const Columns*, S last) { return last; }

  // Computes the result.
  template <class O, Form F, Fresh fresh>
  static S push(const Step* s, S* values, S* grads, const S* constants, const Columns* c, S last) {
    constexpr Layout layout = op::layoutOf<O>(F);
    if constexpr (layout == Layout::block) {
      const BlockDescription<S, Index> d(c->operands + s->a);
      d.methods().forward(
          {values, grads, c->constants + d.constantsPlace(), d, s->firstResult(), s->results()});
      last = values[s->result];
    } else if constexpr (op::isFew(layout)) {
      last = static_cast<S>(evaluate<O, F>(*s, Source<fresh>{values, constants, last}));
    } else {
      last = evaluateMany<O, F>(values, c->operands, *s);
    }
    values[s->result] = last;
    return s[1].run(s + 1, values, grads, constants, c, last);
  }

  // What operands gain; `last` becomes the gradient of the newest.
  template <class O, Fresh fresh, bool sets> struct Give {
    S* grads;
    const C& g;
    S& last;
    template <int, bool newest>
    BURTORCH_INLINE void node(std::size_t i, const auto& contribution) const {
      const C given = O::isLinear ? C(contribution()) : C(unlessZero(g, contribution()));
      const bool isFresh = fresh == Fresh::gradient && newest;
      const S sum = sets ? static_cast<S>(given)
                         : static_cast<S>(computed(isFresh ? last : grads[i]) + given);
      grads[i] = sum;
      if constexpr (newest) last = sum;
    }
  };

  // Adds to the gradients of the operands, or sets them where they have none yet; last is what the newest
  // of them then has.
  template <class O, Form F, Fresh fresh, bool sets, bool isBNewer, class Filter = Everything>
  static S pull(const Step* s, S* values, S* grads, const S* constants, const Columns* c, S last) {
    constexpr Layout layout = op::layoutOf<O>(F);
    const S adjoint = fresh == Fresh::adjoint ? last : grads[s->result];
    if constexpr (layout == Layout::block) {
      pullBlock(values, grads, c->constants, c->operands, Everything{}, *s);
    } else if (!O::isLinear && isZero(adjoint)) [[unlikely]] { // 0 times it might not be 0
      if constexpr (op::isFew(layout)) {
        if (sets && op::hasNodeInA(layout)) grads[s->a] = S(0);
        if (sets && op::hasNodeInB(layout)) grads[s->b] = S(0);
        last = grads[isBNewer ? s->b : s->a];
      }
    } else if constexpr (op::isFew(layout)) {
      const C g = static_cast<C>(computed(adjoint)),
              z = static_cast<C>(computed(values[s->result]));
      contribute<O, F>(*s, PulledSource<isBNewer>{{values, constants, last}}, z, g,
                       Give<O, fresh, sets>{grads, g, last});
    } else {
      pullMany<O, F>(values, grads, c->operands, Filter{}, *s, adjoint);
    }
    return s[1].run(s + 1, values, grads, constants, c, last);
  }

  // Runs the steps from the k-th on, of `all` as withStops() made them.
  static void runFrom(const std::vector<Step>& all, std::size_t k, const Columns& c, S last) {
    const Step* const begin = all.data();
    const Step* const end = begin + all.size();
    std::size_t chunk = k / most;
    for (const Step* s = begin + k + chunk; s < end; s = begin + ++chunk * (most + 1))
      last = s->run(s, c.values, c.grads, c.constants, &c, last);
  }
  static std::vector<Step> withStops(const std::vector<Step>& steps) {
    std::vector<Step> all;
    for (std::size_t i = 0; i < steps.size(); i += most) {
      const auto first = steps.begin() + static_cast<std::ptrdiff_t>(i);
      const std::size_t count = std::min(most, steps.size() - i);
      all.insert(all.end(), first, first + static_cast<std::ptrdiff_t>(count));
      all.push_back({&stop, 0, 0, 0});
    }
    return all;
  }
};

} // namespace detail

// What one run of a recording needs: values, gradients, constants of a scalar type, and the steps.
template <class S, class Index = std::uint32_t> class Workspace {
public:
  Workspace() = default; // empty, to be assigned to
  Workspace(Workspace&&) = default;
  Workspace& operator=(Workspace&&) = default;

  std::span<const S> values() const { return {columns_.values, grads_.size()}; }
  std::span<const S> grads() const { return grads_; }

private:
  template <Scalar, class...> friend class Recording;
  std::vector<S> numbers_, grads_; // the constants, then the values: see Recording::pulled
  std::vector<Index> operands_;    // of its own, where indices are data
  std::vector<detail::Step<S, Index>> forward_, backward_;
  std::vector<detail::Step<S, Index>> both_;        // in one go, if they are few
  detail::TapeAccess::Columns<S, Index> columns_{}; // of the arrays above
};

template <Scalar T, class... Options> class Recording {
  static_assert(!detail::TapeOptions<Options...>::concurrent);

public:
  using TapeType = Tape<T, Options...>;
  using Index = typename TapeType::Index;
  using Record = typename TapeType::Record;
  template <class S> using Space = Workspace<S, Index>;

  // What was recorded between the inputs, which are variables and data, and the outputs.
  template <class... O>
  Recording(std::span<const Value<T, O...>> variables, std::span<const Value<T, O...>> data,
            std::span<const Value<T, O...>> outputs, Passes passes = Passes::exact,
            Branches branches = Branches::refuse)
      : variables_(variables.size()) {
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
    take(variables, inputs_, "x");
    take(data, inputs_, "x");
    take(outputs, outputs_, "y");
    demandDistinctInputs();
    for (const Index input : inputs_)
      if (from.recordOf(input) != from.records().size())
        detail::fail(ErrorKind::badArgument, "an input of a recording is a leaf; node " +
                                                 std::to_string(input) + " is the result of " +
                                                 from.namesOf(from.recordOf(input)).function);
    if (!inputs_.empty()) branches_ = from.comparisonsSince(*std::ranges::min_element(inputs_));
    if (branches_ != 0 && branches == Branches::refuse) refuseBranches();
    detail::TapeRebuild::copy(from, nodes, 2 * from.records().size(), *owned_);
    if (has(passes, Passes::fold)) fold();
    if (has(passes, Passes::share)) share();
    if (has(passes, Passes::dead)) removeDead();
    settle();
  }
  // All inputs are variables.
  template <class... O>
  Recording(std::span<const Value<T, O...>> inputs, std::span<const Value<T, O...>> outputs,
            Passes passes = Passes::exact, Branches branches = Branches::refuse)
      : Recording(inputs, std::span<const Value<T, O...>>(), outputs, passes, branches) {}
  template <RangeOfValues X, RangeOfValues D>
  Recording(const X& variables, const D& data, const detail::ValueIn<X>& output,
            Passes passes = Passes::exact, Branches branches = Branches::refuse)
      : Recording(std::span<const detail::ValueIn<X>>(variables),
                  std::span<const detail::ValueIn<X>>(data),
                  std::span<const detail::ValueIn<X>>(&output, 1), passes, branches) {}
  template <class... O>
  Recording(std::initializer_list<Value<T, O...>> inputs, const Value<T, O...>& output,
            Passes passes = Passes::exact, Branches branches = Branches::refuse)
      : Recording(std::span<const Value<T, O...>>(inputs.begin(), inputs.size()),
                  std::span<const Value<T, O...>>(&output, 1), passes, branches) {}
  template <RangeOfValues X>
  Recording(const X& inputs, const detail::ValueIn<X>& output, Passes passes = Passes::exact,
            Branches branches = Branches::refuse)
      : Recording(std::span<const detail::ValueIn<X>>(inputs),
                  std::span<const detail::ValueIn<X>>(&output, 1), passes, branches) {}
  template <RangeOfValues X, RangeOfValues Y>
  Recording(const X& inputs, const Y& outputs, Passes passes = Passes::exact,
            Branches branches = Branches::refuse)
      : Recording(std::span<const detail::ValueIn<X>>(inputs),
                  std::span<const detail::ValueIn<X>>(outputs), passes, branches) {}
  // The inputs are the leaves made since the mark, in order.
  template <class Mark, class... O>
    requires std::same_as<Mark, typename Tape<T, O...>::Mark>
  Recording(const Mark& mark, const Value<T, O...>& root, Passes passes = Passes::exact,
            Branches branches = Branches::refuse)
      : Recording(leavesSince(mark, root), root, passes, branches) {}

  std::size_t inputs() const { return inputs_.size(); } // variables and data
  std::size_t variables() const { return variables_; }
  std::size_t outputs() const { return outputs_.size(); }
  std::size_t branches() const { return branches_; } // comparisons of Values that it froze
  std::span<const Index> inputNodes() const { return inputs_; }
  std::span<const Index> outputNodes() const { return outputs_; }
  // The labels that inputs and outputs had, else x0, x1, …, y0, ….
  const std::string& inputName(std::size_t i) const { return labels_[i]; }
  const std::string& outputName(std::size_t i) const { return labels_[inputs_.size() + i]; }
  // The frozen tape: for looking at.
  const TapeType& tape() const { return *owned_; }
  bool hasBlocks() const { return hasBlocks_; }
  std::vector<Index> operandsOf(const Record& record) const { // those that are nodes, in order
    std::vector<Index> nodes;
    tape().forEachOperand(record, [&](Index operand) { nodes.push_back(operand); });
    return nodes;
  }

  // A block takes inputs, which are whole numbers, as its parameters from `parameter` on, below a limit.
  struct IndexUse {
    std::size_t record, parameter, limit;
    std::vector<std::size_t> inputs;
  };
  // To be called before there is a workspace. Records have the numbers that they had on the tape, so
  // the recording is one without passes.
  void useIndices(std::vector<IndexUse> uses) { indices_ = std::move(uses); }

  // Memory to run in, of this scalar or of another one.
  template <class S = T> Space<S> workspace() const {
    if (!std::same_as<S, T> && hasBlocks_)
      detail::fail(ErrorKind::badArgument,
                   "a recording with block operations (of views) runs on its own scalar only");
    Space<S> w;
    w.numbers_.reserve(firstValue() + tape().size());
    append(w.numbers_, tape().constants());
    w.numbers_.resize(firstValue(), S(0));
    append(w.numbers_, tape().values());
    w.grads_.assign(tape().size(), S(0));
    using Step = detail::Step<S, Index>;
    const auto forward = forwardSteps<S>(), backward = backwardSteps<S>();
    w.forward_ = Step::withStops(forward);
    w.backward_ = Step::withStops(backward);
    if (isPlanned() && 2 * forward.size() < Step::most) {
      w.both_ = forward;
      w.both_.insert(w.both_.end(), backward.begin(), backward.end());
      w.both_.push_back({&Step::stop, 0, 0, 0});
    }
    if (!indices_.empty()) w.operands_.assign(tape().operands().begin(), tape().operands().end());
    w.columns_ = {w.numbers_.data() + firstValue(), w.grads_.data(), w.numbers_.data(),
                  indices_.empty()
                      ? const_cast<Index*>(tape().operands().data()) // which kernels only read
                      : w.operands_.data()};
    return w;
  }

  // ---- a run in parts: set inputs, forward, backward from one output, read gradients -------------

  // Numbers are copied one by one: a vector of what was just stored piece by piece would have to wait
  // until all of it has reached the cache.
  template <class S, class X> BURTORCH_INLINE void set(Space<S>& w, const X& x) const {
    S* const values = w.columns_.values;
    const Index* const nodes = inputs_.data();
    for (std::size_t i = 0, n = inputs_.size(); i < n; ++i) {
      values[nodes[i]] = x[i];
      oneByOne();
    }
  }
  template <class S> BURTORCH_INLINE S& input(Space<S>& w, std::size_t i) const {
    return w.columns_.values[inputs_[i]];
  }
  // The derivative by a variable that the last sweep left.
  template <class S> BURTORCH_INLINE S derivative(const Space<S>& w, std::size_t i) const {
    return added(w.columns_.grads[inputs_[i]]);
  }
  template <class S> BURTORCH_NOINLINE void forward(Space<S>& w) const {
    if (!indices_.empty()) placeIndices(w);
    detail::Step<S, Index>::runFrom(w.forward_, 0, w.columns_, S(0));
  }
  template <class S> const S& output(const Space<S>& w, std::size_t i = 0) const {
    return w.columns_.values[outputs_[i]];
  }
  template <class S>
  BURTORCH_NOINLINE void backward(Space<S>& w, std::size_t output = 0,
                                  const std::type_identity_t<S>& seed = S(1)) const {
    if (!isPlanned()) std::fill(w.grads_.begin(), w.grads_.end(), S(0)); // one run
    begin(w, output, seed);
    detail::Step<S, Index>::runFrom(w.backward_, sweepFrom_[output], w.columns_, seed);
  }
  template <class S, class Out> BURTORCH_INLINE void gradient(const Space<S>& w, Out&& out) const {
    const S* const grads = w.grads_.data();
    const Index* const nodes = inputs_.data();
    for (std::size_t i = 0, n = variables_; i < n; ++i) {
      out[i] = added(grads[nodes[i]]);
      oneByOne();
    }
  }

  // ---- whole runs. x has an element per input, out one per variable ------------------------------

  template <class S, class X> S value(Space<S>& w, const X& x) const {
    set(w, x);
    forward(w);
    return output(w);
  }
  template <class S, class X, class Out> void values(Space<S>& w, const X& x, Out&& out) const {
    set(w, x);
    forward(w);
    for (std::size_t i = 0; i < outputs(); ++i) out[i] = output(w, i);
  }
  template <class S, class X, class Out>
  S valueAndGradient(Space<S>& w, const X& x, Out&& out) const {
    set(w, x);
    forwardAndBackward(w);
    gradient(w, out);
    return output(w);
  }
  // The same for inputs that are set; derivative() reads what it leaves.
  template <class S> const S& valueAndGradient(Space<S>& w) const {
    forwardAndBackward(w);
    return output(w);
  }
  // Row after row: the derivatives of output i by all variables.
  template <class S, class X>
  void jacobian(Space<S>& w, const X& x, std::span<S> values, std::span<S> rows) const {
    if (values.size() < outputs() || rows.size() < outputs() * variables())
      detail::fail(ErrorKind::badArgument, "jacobian: room for " + std::to_string(outputs()) +
                                               " values and as many rows of " +
                                               std::to_string(variables()) + " is needed");
    this->values(w, x, values);
    for (std::size_t i = 0; i < outputs(); ++i) {
      backward(w, i);
      gradient(w, rows.subspan(i * variables(), variables()));
    }
  }

  // Values and gradients of the first output at n points, which are the rows of x; so are the
  // gradients. `grads` may be null. As many points at a time as a Workspace of lanes has.
  template <std::size_t N>
  void batch(Space<simd<T, N>>& w, const T* x, std::size_t n, T* values, T* grads) const {
    const std::size_t d = inputs(), v = variables();
    for (std::size_t first = 0; first < n; first += N) {
      const std::size_t count = std::min(N, n - first); // the last lanes repeat the last point
      for (std::size_t i = 0; i < d; ++i) {
        simd<T, N>& lanes = input(w, i);
        for (std::size_t k = 0; k < N; ++k)
          lanes.set(k, x[(first + std::min(k, count - 1)) * d + i]);
      }
      forward(w);
      for (std::size_t k = 0; k < count; ++k) values[first + k] = output(w)[k];
      if (grads == nullptr) continue;
      backward(w);
      for (std::size_t i = 0; i < v; ++i) {
        const simd<T, N> lanes = derivative(w, i);
        for (std::size_t k = 0; k < count; ++k) grads[(first + k) * v + i] = lanes[k];
      }
    }
  }
  void batch(Space<T>& w, const T* x, std::size_t n, T* values, T* grads) const {
    const std::size_t d = inputs(), v = variables();
    for (std::size_t k = 0; k < n; ++k)
      if (grads == nullptr) values[k] = value(w, x + k * d);
      else values[k] = valueAndGradient(w, x + k * d, grads + k * v);
  }

private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  // The tape adds contributions to 0, which makes -0 a 0; a sweep here sets the first one.
  template <class S> BURTORCH_INLINE static S added(const S& contributions) {
    return static_cast<S>(computed(contributions) + computed(S(0)));
  }
  BURTORCH_INLINE static void oneByOne() { // keeps a loop from being turned into vectors
#if defined(__GNUC__)
    __asm__ volatile("");
#endif
  }

  // What comes before a sweep: gradients that will be added to, and the output's.
  template <class S>
  BURTORCH_INLINE void begin(Space<S>& w, std::size_t output, const S& seed) const {
    S* const grads = w.grads_.data();
    for (const Index i : zeros_) {
      grads[i] = S(0);
      oneByOne();
    }
    for (const auto& [first, n] : zeroRuns_) std::fill_n(grads + first, n, S(0));
    grads[outputs_[output]] = seed;
  }
  template <class S> BURTORCH_INLINE void forwardAndBackward(Space<S>& w) const {
    if (!w.both_.empty()) {
      if (!indices_.empty()) placeIndices(w);
      begin(w, 0, S(1));
      const auto& c = w.columns_;
      const auto* const first = w.both_.data();
      first->run(first, c.values, c.grads, c.constants, &c, S(0));
    } else {
      forward(w);
      backward(w);
    }
  }

  template <class S> BURTORCH_COLD void placeIndices(Space<S>& w) const {
    if constexpr (std::same_as<S, T> && std::floating_point<T>)
      for (const IndexUse& use : indices_) {
        Index* const to =
            detail::BlockDescription<T, Index>(w.operands_.data() + tape().records()[use.record].a)
                .parameters() +
            use.parameter;
        for (std::size_t k = 0; k < use.inputs.size(); ++k) {
          const T index = input(w, use.inputs[k]);
          if (!(index >= T(0) && index < static_cast<T>(use.limit)))
            detail::fail(ErrorKind::badArgument, inputName(use.inputs[k]) + " is the index " +
                                                     std::to_string(static_cast<long long>(index)) +
                                                     ", which is not between 0 and " +
                                                     std::to_string(use.limit - 1));
          to[k] = static_cast<Index>(index);
        }
      }
  }

  template <class S> static void append(std::vector<S>& to, std::span<const T> from) {
    for (const T& each : from) to.push_back(S(each));
  }

  // Where the values begin behind the constants: on a line of the cache, as far as the constants do.
  std::size_t firstValue() const { return (tape().constants().size() + 15) / 16 * 16; }

  // A record as a sweep runs it. If only one of its two operands leads to a variable, the other one is a plain
  // number, which stands behind the constants: nothing is computed for it.
  Record pulled(Record record, const std::vector<bool>& varies) const {
    if (op::layoutOf(record.code()) != Layout::nodes || varies[record.a] == varies[record.b] ||
        firstValue() + tape().size() > std::numeric_limits<Index>::max())
      return record;
    const bool isNumberLast = varies[record.a];
    record.word = codeOf(record.operation(), isNumberLast ? Form::nodeNumber : Form::numberNode);
    Index& number = isNumberLast ? record.b : record.a;
    number = static_cast<Index>(number + firstValue());
    return record;
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
    for (std::size_t i = mark.nodes(); i < tape.size(); ++i) {
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

  [[noreturn]] void refuseBranches() const {
    detail::fail(
        ErrorKind::badArgument,
        "a recording would freeze what " + std::to_string(branches_) +
            (branches_ == 1 ? " comparison" : " comparisons") +
            " of Values decided since its first input was made: a branch stays taken whatever the "
            "inputs are. Write it with min, max, clamp, abs or relu, which are recorded, compare "
            "on "
            "another tape, or allow it with Branches::freeze");
  }

  Record* records() { return detail::TapeAccess::records(*owned_); }

  // ---- passes -----------------------------------------------------------------------------------

  // f(place, how many) for the plain numbers of a record.
  template <class F> struct Numbers : detail::EachField {
    const F& f;
    void numbers(Index& place, std::size_t n) const { f(place, n); }
    void kept(Index& place, std::size_t n) const { f(place, n); }
    static void node(Index) {}
    static void run(Index, std::size_t) {}
  };
  template <class F> void withNumbers(Record& record, const F& f) const {
    tape().eachField(record, Numbers<F>{{}, f});
  }

  void fold() {
    std::vector<bool> varies(tape().size());
    for (const Index i : inputs_) varies[i] = true;
    const auto columns = detail::TapeAccess::columns(*owned_);
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
    for (std::size_t r = 0, n = tape().records().size(); r < n; ++r) {
      Record record = records()[r];
      if (std::ranges::none_of(operandsOf(record), [&](Index i) { return bool(varies[i]); }))
        continue; // its results stay, as leaves
      for (std::size_t i = 0; i < record.results(); ++i) varies[record.firstResult() + i] = true;
      withNumbers(record, keep);
      if (op::layoutOf(record.code()) == Layout::nodes) {
        if (!varies[record.b]) makeNumber(record, record.b, Form::nodeNumber);
        else if (!varies[record.a]) makeNumber(record, record.a, Form::numberNode);
      }
      records()[kept++] = record;
    }
    std::ranges::copy(constants, columns.constants);
    detail::TapeRebuild::shrink(*owned_, kept, constants.size());
  }

  // Equal expressions become one. Neighbours that an operation takes as a run stay where they are.
  void share() {
    std::vector<bool> inRun(tape().size());
    struct : detail::EachField {
      std::vector<bool>& in;
      static void node(Index) {}
      void run(Index first, std::size_t n) const {
        for (std::size_t i = first; i < first + n; ++i) in[i] = true;
      }
    } noteRuns{{}, inRun};
    for (const Record& record : tape().records()) tape().eachField(record, noteRuns);
    std::vector<Index> same(tape().size());
    for (std::size_t i = 0; i < same.size(); ++i) same[i] = static_cast<Index>(i);
    const auto columns = detail::TapeAccess::columns(*owned_);
    struct : detail::EachField {
      std::vector<Index>& same;
      void node(Index& i) const { i = same[i]; }
      static void run(Index, std::size_t) {}
    } rename{{}, same};
    std::map<std::vector<std::uint64_t>, Index> seen;
    for (std::size_t r = 0, n = tape().records().size(); r < n; ++r) {
      Record& record = records()[r];
      if (record.isBlock()) continue;
      tape().eachField(record, rename);
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
      for (const Index i : nodes) values.push_back(Value<T, Options...>::at(*owned_, i));
      return values;
    };
    auto in = handles(inputs_), out = handles(outputs_);
    owned_->collect(in, out);
    for (std::size_t i = 0; i < in.size(); ++i) inputs_[i] = in[i].sysGetRawNodeIndex();
    for (std::size_t i = 0; i < out.size(); ++i) outputs_[i] = out[i].sysGetRawNodeIndex();
  }

  void settle() {
    for (std::size_t i = 0; i < inputs_.size(); ++i) owned_->setLabel(inputs_[i], inputName(i));
    const std::vector<bool> varies = varyingNodes();
    std::vector<std::size_t> steps(tape().records().size() + 1); // of a sweep down to this record
    for (std::size_t r = tape().records().size(); r-- != 0;)
      steps[r] = steps[r + 1] + (varies[tape().records()[r].result] ? 1 : 0);
    for (const Index output : outputs_) { // of a leaf, or of what does not vary, nothing is swept
      const std::size_t record = tape().recordOf(output);
      const bool isSwept = varies[output] && record != tape().records().size();
      sweepFrom_.push_back(isSwept ? steps[record + 1] : steps[0]);
    }
    for (const Record& record : tape().records()) {
      hasBlocks_ |= record.isBlock();
      if (record.isBlock() && variables_ != inputs_.size()) hideUnvarying(record, varies);
    }
    planSweep();
  }

  // A block computes no gradients of operands that lead to no variable. Kernels may then add in another order,
  // so this is done where there is data only: without it, gradients are those of the tape bit for bit.
  void hideUnvarying(const Record& record, const std::vector<bool>& varies) {
    const detail::BlockDescription<T, Index> d(detail::TapeAccess::columns(*owned_).operands +
                                               record.a);
    for (std::size_t i = 0; i < d.views(); ++i) {
      const auto first = varies.begin() + static_cast<std::ptrdiff_t>(d.view(i)[0]);
      const auto last = first + static_cast<std::ptrdiff_t>(d.viewSize(i));
      if (std::find(first, last, true) == last) d.hide(i);
    }
  }

  // ---- steps ------------------------------------------------------------------------------------

  template <class S> auto forwardSteps() const {
    using detail::Fresh;
    using Step = detail::Step<S, Index>;
    std::vector<Step> steps;
    std::size_t last = none;
    for (const Record& record : tape().records()) {
      const Layout layout = op::layoutOf(record.code());
      Fresh fresh = Fresh::none;
      if (op::hasNodeInA(layout) && record.a == last) fresh = Fresh::a;
      else if (op::hasNodeInB(layout) && record.b == last) fresh = Fresh::b;
      last = record.result;
      const auto run = detail::withInstance(record.code(), fresh, []<class O, Form F, Fresh f>() {
        constexpr Fresh operand =
            f == Fresh::b && !op::hasNodeInB(op::layoutOf<O>(F)) ? Fresh::none : f;
        return typename Step::Run(&Step::template push<O, F, operand>);
      });
      steps.push_back({run, record.result, record.a, record.b});
    }
    return steps;
  }
  template <class S> auto backwardSteps() const {
    using detail::Fresh;
    using Step = detail::Step<S, Index>;
    const std::vector<bool> varies = varyingNodes();
    std::vector<Step> steps;
    std::size_t last = none;
    for (std::size_t r = tape().records().size(); r-- != 0;) {
      if (!varies[tape().records()[r].result]) continue;
      const Record record = pulled(tape().records()[r], varies);
      const bool sets = isPlanned() && sets_[r];
      const Layout layout = op::layoutOf(record.code());
      const bool inA = op::hasNodeInA(layout), inB = op::hasNodeInB(layout);
      const std::size_t newest = inA && inB ? std::max(record.a, record.b)
                                 : inA      ? record.a
                                 : inB      ? record.b
                                            : none;
      const bool twice = inA && inB && record.a == record.b;
      Fresh fresh = Fresh::none;
      if (last == record.result) fresh = Fresh::adjoint;
      else if (isPlanned() && last == newest && last != none && !twice) fresh = Fresh::gradient;
      last = newest;
      const auto run = detail::withInstance(
          record.code(), fresh, [&]<class O, Form F, Fresh f>() -> typename Step::Run {
            constexpr Fresh whenSet = f == Fresh::gradient ? Fresh::none : f; // not added to
            const auto with = [&]<bool isBNewer>(std::bool_constant<isBNewer>) -> Step::Run {
              if constexpr (op::isFew(op::layoutOf<O>(F)))
                if (sets) return &Step::template pull<O, F, whenSet, true, isBNewer>;
              if constexpr (op::is<op::Product, O>) { // nobody reads what constants are given
                const auto nodes = operandsOf(record);
                const auto half = nodes.begin() + static_cast<std::ptrdiff_t>(record.b);
                const auto isConstant = [&](Index i) { return !varies[i]; };
                if (std::all_of(nodes.begin(), half, isConstant))
                  return &Step::template pull<O, F, f, false, isBNewer, detail::OnlySecond>;
                if (std::all_of(half, half + static_cast<std::ptrdiff_t>(record.b), isConstant))
                  return &Step::template pull<O, F, f, false, isBNewer, detail::OnlyFirst>;
              }
              return &Step::template pull<O, F, f, false, isBNewer>;
            };
            if constexpr (op::hasNodeInB(op::layoutOf<O>(F)))
              if (F == Form::numberNode || record.a < record.b) return with(std::true_type{});
            return with(std::false_type{});
          });
      steps.push_back({run, record.result, record.a, record.b});
    }
    return steps;
  }

  // Which records are the first to contribute to the gradients of all their operands: those set them
  // instead of adding to 0, and only the others' operands have to be 0 before a sweep. Known for a single
  // output that all records lead to, so that every sweep begins at the first step.
  bool isPlanned() const { return !sets_.empty(); }
  void planSweep() {
    if (outputs_.size() != 1) return;
    const std::size_t n = tape().records().size();
    const std::vector<bool> varies = varyingNodes();
    std::vector<bool> given(tape().size()), sets(n), isZeroed(tape().size());
    given[outputs_[0]] = true;
    const auto demandZero = [&](Index node) {
      if (!given[node] && varies[node]) isZeroed[node] = true;
      given[node] = true;
    };
    for (std::size_t r = n; r-- != 0;) {
      if (!varies[tape().records()[r].result]) continue;
      const Record record = pulled(tape().records()[r], varies);
      if (record.isBlock())
        for (std::size_t i = 0; i < record.results(); ++i)
          demandZero(static_cast<Index>(record.firstResult() + i));
      else if (!given[record.result]) return; // leads nowhere
      const auto operands = operandsOf(record);
      sets[r] = op::isFew(op::layoutOf(record.code())) &&
                std::ranges::none_of(operands, [&](Index i) { return bool(given[i]); }) &&
                (operands.size() == 1 || operands[0] != operands[1]);
      for (const Index operand : operands)
        if (sets[r]) given[operand] = true;
        else demandZero(operand);
    }
    for (const Index i : inputs_) demandZero(i);
    sets_ = std::move(sets);
    constexpr std::size_t longRun = 16; // shorter ones are done before a call of memset would be
    for (std::size_t first = 0, end = 0; first < isZeroed.size(); first = end + 1) {
      for (end = first; end < isZeroed.size() && isZeroed[end];) ++end;
      if (end - first >= longRun) zeroRuns_.emplace_back(first, end - first);
      else
        for (; first < end; ++first) zeros_.push_back(static_cast<Index>(first));
    }
  }
  // Nodes that depend on a variable. The gradients of the others are never read, nor set to 0.
  std::vector<bool> varyingNodes() const {
    std::vector<bool> varies(tape().size());
    for (std::size_t i = 0; i < variables_; ++i) varies[inputs_[i]] = true;
    for (const Record& record : tape().records()) {
      bool depends = false;
      tape().forEachOperand(record, [&](Index i) { depends = depends || varies[i]; });
      if (depends)
        for (std::size_t i = 0; i < record.results(); ++i) varies[record.firstResult() + i] = true;
    }
    return varies;
  }

  std::unique_ptr<TapeType> owned_ = std::make_unique<TapeType>(); // where workspaces find it
  std::vector<Index> inputs_, outputs_;                            // the variables, then the data
  std::size_t variables_;
  std::vector<IndexUse> indices_;
  std::vector<std::string> labels_;
  std::vector<std::size_t> sweepFrom_; // per output: the first step of a sweep from it
  std::vector<bool> sets_;             // see planSweep
  std::vector<Index> zeros_;           // the gradients to be 0 before a sweep
  std::vector<std::pair<std::size_t, std::size_t>> zeroRuns_; // likewise: from where, how many
  std::size_t branches_ = 0;
  bool hasBlocks_ = false;
};

BURTORCH_END_NAMESPACE
