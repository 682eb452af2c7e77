// burtorch/run/finite_sum.hpp — a function of one sample, summed over many, and its gradients
// SPDX-License-Identifier: MIT
//
//   const Recording<double> f(w, sample, loss);       // variables w, data of one sample: see run/replay.hpp
//   FiniteSum sum(f);
//   const Given<double> given[] = {shared(at), rows(X, d), rows(Y, 1)};     // what the inputs are, in order
//   double mean = sum.mean(given, n, gradient, {.threads = 2});
//
// Samples run in the lanes of vectors: as many at a time as a register holds, and one at a time where the
// recording has blocks. Inputs that all samples share are set once. Memory does not depend on n: lanes are
// added up, and the sums of each micro-batch are added to double precision numbers.
//
// With threads the samples are cut into as many parts, whatever the timing, and the parts' sums are added in
// their order. A result depends on the number of threads and on the micro-batch, and on nothing else.
//
// Nothing is computed before all that was given has been checked.
#pragma once

#include <burtorch/base/config.hpp>
#include <burtorch/base/error.hpp>
#include <burtorch/base/team.hpp>
#include <burtorch/run/replay.hpp>
#include <burtorch/scalar/simd.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

BURTORCH_BEGIN_NAMESPACE

// What consecutive inputs are given: the same numbers for all samples, or a row of numbers or integers for each.
template <class T> struct Given {
  const T* numbers = nullptr;
  const std::int64_t* integers = nullptr; // where there are no numbers
  std::size_t width = 0;                  // inputs
  std::size_t rows = 0;                   // 0: shared

  T at(std::size_t row, std::size_t i) const {
    const std::size_t place = rows == 0 ? i : row * width + i;
    return numbers != nullptr ? numbers[place] : static_cast<T>(integers[place]);
  }
};
template <class R> auto shared(const R& numbers) {
  const std::span all(numbers);
  return Given<std::remove_cv_t<typename decltype(all)::element_type>>{.numbers = all.data(),
                                                                       .width = all.size()};
}
template <class R> auto rows(const R& numbers, std::size_t width) {
  const std::span all(numbers);
  return Given<std::remove_cv_t<typename decltype(all)::element_type>>{
      .numbers = all.data(), .width = width, .rows = width == 0 ? 0 : all.size() / width};
}

struct FiniteSumOptions {
  std::size_t microBatch = 0; // 0: automatic
  std::size_t threads = 1;
  std::optional<std::span<const std::int64_t>> index = {}; // the samples to take, in this order
  double clip = 0;                    // the largest norm of a sample's gradient; 0: any
  std::function<void()> between = {}; // called on this thread after each micro-batch; may throw
};

template <class F> class FiniteSum;

template <class T, class... O> class FiniteSum<Recording<T, O...>> {
  using Function = Recording<T, O...>;
  static constexpr std::size_t lanes = nativeLanes<T> == 1 ? 4 : nativeLanes<T>;
  using Lanes = simd<T, lanes>;
  template <class S> using Space = typename Function::template Space<S>;

public:
  using Options = FiniteSumOptions;
  static constexpr std::size_t automatic = 256; // samples of a micro-batch

  explicit FiniteSum(const Function& f) : f_(&f) { // which has to live as long
    if (f.outputs() != 1)
      detail::fail(ErrorKind::badArgument, "a sum over samples is of a function with one output; "
                                           "this one has " +
                                               std::to_string(f.outputs()));
  }

  // The sum over samples 0 … n − 1, or over those of the index; its gradient by the variables. The
  // variables are shared.
  double sum(std::span<const Given<T>> given, std::size_t n, std::span<T> gradient,
             const Options& options = {}) {
    return reduced(given, n, gradient, options, false);
  }
  double mean(std::span<const Given<T>> given, std::size_t n, std::span<T> gradient,
              const Options& options = {}) {
    return reduced(given, n, gradient, options, true);
  }
  // The value of each sample and, row by row, its gradient.
  void perSample(std::span<const Given<T>> given, std::size_t n, std::span<T> values,
                 std::span<T> gradients, const Options& options = {}) {
    const std::size_t count = check(given, n, options), d = f_->variables();
    demandRoom(values.size(), count, "values");
    demandRoom(gradients.size(), count * d, "derivatives");
    inParts(given, count, options, [&](auto& w, std::size_t, std::size_t first, std::size_t last) {
      store(w, given, options, first, last, values.data(), gradients.data());
    });
  }

private:
  // What the thread of a part works with.
  struct Part {
    std::optional<Space<Lanes>> lanes;
    std::optional<Space<T>> one;
    std::vector<double> gradient; // sums of the micro-batches so far
    double value = 0;
  };
  struct Stopped {};

  template <class S> static constexpr std::size_t width = std::same_as<S, T> ? 1 : lanes;
  template <class S> BURTORCH_INLINE static T lane(const S& x, std::size_t k) {
    if constexpr (std::same_as<S, T>) return x;
    else return x[k];
  }

  static void demandRoom(std::size_t size, std::size_t wanted, const char* what) {
    if (size != wanted)
      detail::fail(ErrorKind::badArgument, "room for " + std::to_string(size) + " numbers, but " +
                                               std::to_string(wanted) + " " + what);
  }

  // How many samples there are to take; an error if something does not fit.
  std::size_t check(std::span<const Given<T>> given, std::size_t n, const Options& options) const {
    std::size_t inputs = 0;
    for (const auto& each : given) {
      if (each.rows != 0 && each.rows != n && each.width != 0)
        detail::fail(ErrorKind::badArgument, "data of " + std::to_string(each.rows) +
                                                 " samples beside data of " + std::to_string(n));
      inputs += each.width;
    }
    if (inputs != f_->inputs())
      detail::fail(ErrorKind::badArgument, "the function has " + std::to_string(f_->inputs()) +
                                               " inputs and was given " + std::to_string(inputs));
    if (!(options.clip >= 0)) detail::fail(ErrorKind::badArgument, "clip is a positive number");
    if (!options.index) return n;
    for (std::size_t k = 0; k < options.index->size(); ++k)
      if (const std::int64_t i = (*options.index)[k]; i < 0 || static_cast<std::size_t>(i) >= n)
        detail::fail(ErrorKind::badArgument, "index[" + std::to_string(k) + "] is " +
                                                 std::to_string(i) + ", but there are " +
                                                 std::to_string(n) + " samples");
    return options.index->size();
  }

  double reduced(std::span<const Given<T>> given, std::size_t n, std::span<T> gradient,
                 const Options& options, bool isMean) {
    const std::size_t count = check(given, n, options), d = f_->variables();
    demandRoom(gradient.size(), d, "derivatives");
    std::size_t place = 0;
    for (const auto& each : given) {
      if (place < d && each.rows != 0 && each.width != 0)
        detail::fail(ErrorKind::badArgument, "a sum is by variables that its samples share");
      place += each.width;
    }
    if (isMean && count == 0) detail::fail(ErrorKind::badArgument, "a mean of no samples");
    const std::size_t used =
        inParts(given, count, options, [&](auto& w, std::size_t p, std::size_t i, std::size_t j) {
          add(w, given, options, i, j, parts_[p]);
        });
    const double scale = isMean ? 1 / static_cast<double>(count) : 1;
    double value = 0;
    std::vector<double> sums(d);
    for (std::size_t p = 0; p < used; ++p) {
      value += parts_[p].value;
      for (std::size_t i = 0; i < d; ++i) sums[i] += parts_[p].gradient[i];
    }
    for (std::size_t i = 0; i < d; ++i) gradient[i] = static_cast<T>(sums[i] * scale);
    return value * scale;
  }

  // work(workspace, part, first, last) for the micro-batches of each part. Returns how many parts there are.
  template <class Work>
  std::size_t inParts(std::span<const Given<T>> given, std::size_t count, const Options& options,
                      const Work& work) {
    if (count == 0) return 0;
    const std::size_t n = std::clamp<std::size_t>(options.threads, 1, count);
    const std::size_t m = options.microBatch == 0 ? automatic : options.microBatch;
    if (parts_.size() < n) parts_.resize(n);
    std::vector<std::exception_ptr> errors(n);
    std::atomic<std::size_t> next = 0;
    std::atomic<bool> stop = false;
    const auto run = [&](auto& w, std::size_t p, bool isHere) {
      share(w, given);
      parts_[p].gradient.assign(f_->variables(), 0);
      parts_[p].value = 0;
      const std::size_t last = count / n * (p + 1) + std::min(p + 1, count % n);
      for (std::size_t i = count / n * p + std::min(p, count % n); i < last; i += m) {
        work(w, p, i, std::min(i + m, last));
        if (isHere && options.between) options.between();
        if (stop.load(std::memory_order_relaxed)) throw Stopped();
      }
    };
    // A thread takes parts until there are none, so that fewer threads do the same work.
    const auto job = [&](std::size_t thread) {
      for (std::size_t p = 0; (p = next.fetch_add(1)) < n;) try {
          Part& part = parts_[p];
          if (f_->hasBlocks()) {
            if (!part.one) part.one = f_->template workspace<T>();
            run(*part.one, p, thread == 0);
          } else {
            if (!part.lanes) part.lanes = f_->template workspace<Lanes>();
            run(*part.lanes, p, thread == 0);
          }
        } catch (const Stopped&) {
        } catch (...) {
          stop = true;
          errors[p] = std::current_exception();
        }
    };
    try {
      team_.run(n, job);
    } catch (const std::system_error&) { // there are no more threads; no job has begun
      team_.run(team_.threads() + 1, job);
    }
    for (const auto& error : errors)
      if (error) std::rethrow_exception(error);
    return n;
  }

  template <class S> void share(Space<S>& w, std::span<const Given<T>> given) const {
    std::size_t place = 0;
    for (const auto& each : given) {
      for (std::size_t i = 0; each.rows == 0 && i < each.width; ++i)
        f_->input(w, place + i) = S(each.at(0, i));
      place += each.width;
    }
  }
  // Sets the inputs of samples first … first + count − 1; the lanes behind them repeat the last.
  template <class S>
  BURTORCH_INLINE void setRows(Space<S>& w, std::span<const Given<T>> given, const Options& options,
                               std::size_t first, std::size_t count) const {
    std::size_t row[width<S>];
    for (std::size_t k = 0; k < width<S>; ++k) {
      const std::size_t sample = first + std::min(k, count - 1);
      row[k] = options.index ? static_cast<std::size_t>((*options.index)[sample]) : sample;
    }
    std::size_t place = 0;
    for (const auto& each : given) {
      if (each.rows != 0 && each.numbers != nullptr)
        setFrom(w, each.numbers, row, each.width, place);
      else if (each.rows != 0) setFrom(w, each.integers, row, each.width, place);
      place += each.width;
    }
  }
  template <class S, class Number>
  BURTORCH_INLINE void setFrom(Space<S>& w, const Number* numbers, const std::size_t* row,
                               std::size_t count, std::size_t place) const {
    const Number* from[width<S>];
    for (std::size_t k = 0; k < width<S>; ++k) from[k] = numbers + row[k] * count;
    for (std::size_t i = 0; i < count; ++i) {
      T lanesOf[width<S>];
      for (std::size_t k = 0; k < width<S>; ++k) lanesOf[k] = static_cast<T>(from[k][i]);
      if constexpr (std::same_as<S, T>) f_->input(w, place + i) = lanesOf[0];
      else f_->input(w, place + i) = S::load(lanesOf);
    }
  }

  // What the gradients of the samples in the lanes are multiplied by, so that no norm is larger than `clip`.
  template <class S> S scaleFor(const Space<S>& w, double clip) const {
    S squares(T(0));
    for (std::size_t i = 0; i < f_->variables(); ++i) {
      const S g = f_->derivative(w, i);
      squares = squares + g * g;
    }
    S scale(T(1));
    for (std::size_t k = 0; k < width<S>; ++k) {
      const double norm = std::sqrt(static_cast<double>(lane(squares, k)));
      const T factor = norm > clip ? static_cast<T>(clip / norm) : T(1);
      if constexpr (std::same_as<S, T>) scale = factor;
      else scale.set(k, factor);
    }
    return scale;
  }

  template <class S>
  void add(Space<S>& w, std::span<const Given<T>> given, const Options& options, std::size_t first,
           std::size_t last, Part& part) const {
    constexpr std::size_t N = width<S>;
    const std::size_t d = f_->variables();
    std::vector<S> sums(d, S(T(0)));
    for (; first < last; first += N) {
      const std::size_t count = std::min(N, last - first);
      setRows(w, given, options, first, count);
      const S value = f_->valueAndGradient(w);
      for (std::size_t k = 0; k < count; ++k) part.value += static_cast<double>(lane(value, k));
      const bool isClipped = options.clip > 0;
      const S scale = isClipped ? scaleFor(w, options.clip) : S(T(1));
      for (std::size_t i = 0; i < d; ++i) {
        S g = f_->derivative(w, i);
        if (isClipped) g = g * scale;
        if constexpr (N != 1)
          for (std::size_t k = count; k < N; ++k) g.set(k, T(0));
        sums[i] = sums[i] + g;
      }
    }
    for (std::size_t i = 0; i < d; ++i)
      for (std::size_t k = 0; k < N; ++k) part.gradient[i] += static_cast<double>(lane(sums[i], k));
  }

  template <class S>
  void store(Space<S>& w, std::span<const Given<T>> given, const Options& options,
             std::size_t first, std::size_t last, T* values, T* gradients) const {
    constexpr std::size_t N = width<S>;
    const std::size_t d = f_->variables();
    for (; first < last; first += N) {
      const std::size_t count = std::min(N, last - first);
      setRows(w, given, options, first, count);
      const S value = f_->valueAndGradient(w);
      const bool isClipped = options.clip > 0;
      const S scale = isClipped ? scaleFor(w, options.clip) : S(T(1));
      for (std::size_t k = 0; k < count; ++k) values[first + k] = lane(value, k);
      for (std::size_t i = 0; i < d; ++i) {
        S g = f_->derivative(w, i);
        if (isClipped) g = g * scale;
        for (std::size_t k = 0; k < count; ++k) gradients[(first + k) * d + i] = lane(g, k);
      }
    }
  }

  const Function* f_;
  std::vector<Part> parts_;
  Team team_;
};

template <class T, class... O>
FiniteSum(const Recording<T, O...>&) -> FiniteSum<Recording<T, O...>>;

BURTORCH_END_NAMESPACE
