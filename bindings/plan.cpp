// bindings/plan.cpp — functions of parameters and data, recorded per number of samples and run in place
// SPDX-License-Identifier: MIT
//
// A Plan is for arguments of one kind: so many numbers for each sample, real or whole. It holds a Section
// (run/section.hpp) for each number of samples that was asked for, and runs batches through them in
// parts. burtorch.nn.Module records them; see python/burtorch/nn/module.py.
#include "busy.hpp"
#include "interrupts.hpp"
#include "plan.hpp"
#include "register.hpp"

#include <burtorch/base/team.hpp>
#include <burtorch/run/section.hpp>

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <limits>
#include <vector>

namespace py = pybind11;

namespace burtorch_python {

namespace {

std::vector<py::object> objectsIn(const py::sequence& sequence) {
  std::vector<py::object> objects;
  for (const auto& each : sequence) objects.push_back(py::reinterpret_borrow<py::object>(each));
  return objects;
}

// ---- plans ----------------------------------------------------------------------------------------

template <class T> class Plan {
  using Section = bt::Section<T, SharedMemory>;
  using Columns = typename Section::Columns;

  // A whole number of a block's parameters, one after the other, from these places of an argument.
  struct IntegerInput {
    std::size_t argument, word;
    std::vector<std::int64_t> places;
    bool areNeighbours; // the places
  };
  struct Recorded {
    Section section;
    std::size_t samples;
    std::vector<RealInput> reals; // nodes counted from the section's first
    std::vector<IntegerInput> integers;
    std::size_t used = 0;          // when, for forgetting
    std::vector<py::object> alive; // handles of what it reads from outside
  };

public:
  // sizes: how many numbers each argument has per sample.
  Plan(AnyTape& tape, const py::sequence& parameters, std::vector<std::size_t> sizes)
      : tape_(&tape), parameters_(objectsIn(parameters)), sizes_(std::move(sizes)),
        limits_(sizes_.size()) {
    for (const auto& each : parameters_) {
      const auto nodes = nodesIn(each);
      if (nodes.count != 0) ranges_.push_back(nodes);
    }
    std::ranges::sort(ranges_, {}, &bt::NodeRange::first);
    for (std::size_t i = 0; i + 1 < ranges_.size();) // neighbours become one
      if (ranges_[i].end() >= ranges_[i + 1].first) {
        ranges_[i].count = std::max(ranges_[i].end(), ranges_[i + 1].end()) - ranges_[i].first;
        ranges_.erase(ranges_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      } else {
        ++i;
      }
    for (const auto& each : ranges_) count_ += each.count;
    if (!ranges_.empty()) watch(ranges_.back());
  }

  // What was recorded for so many samples.
  void add(Recorder& recorder, std::size_t samples, const py::object& result) {
    if (&recorder.tape() != tape_.get() || &tapeOf(result) != tape_.get())
      throw py::value_error("the loss was computed on another tape than its parameters");
    auto& t = tape();
    const bt::NodeRange nodes = nodesIn(result);
    auto recorded = std::make_unique<Recorded>(
        Recorded{Section(t.tape, recorder.mark(t), nodes), samples, {}, {}, 0, {}});
    Section& section = recorded->section;
    const std::size_t base = section.first(), end = base + section.nodes();
    std::vector<bt::NodeRange> data;
    for (RealInput input : recorder.reals) {
      if (input.nodes.first >= end) continue; // made after all that counts
      data.push_back(input.nodes);
      input.nodes.first -= base;
      recorded->reals.push_back(std::move(input));
    }
    std::vector<typename Section::IntegerData> integers;
    for (const IndexUse& use : recorder.log) {
      const std::size_t record = section.placeOf(use.record);
      if (record == Section::none) continue;
      IntegerInput input{0, section.wordOf(record, use.parameter), use.places, true};
      // Places count through all arguments.
      for (auto place = use.places.front(); place >= size(sizes_[input.argument] * samples);)
        place -= size(sizes_[input.argument++] * samples);
      std::int64_t before = 0;
      for (std::size_t k = 0; k < input.argument; ++k) before += size(sizes_[k] * samples);
      const auto per = size(sizes_[input.argument]), n = size(use.places.size());
      bool inOrder = n % size(samples) == 0;
      IndexLimit& limit = limits_[input.argument];
      limit.below.resize(static_cast<std::size_t>(per), std::numeric_limits<Index>::max());
      for (std::int64_t i = 0; i < n; ++i) {
        auto& place = input.places[static_cast<std::size_t>(i)];
        place -= before;
        if (place < 0 || place >= per * size(samples))
          throw py::value_error("integers of two arguments are one index");
        input.areNeighbours = input.areNeighbours && place == input.places[0] + i;
        inOrder = inOrder && place / per == i / (n / size(samples));
        auto& below = limit.below[static_cast<std::size_t>(place % per)];
        below = std::min(below, size(use.limit));
      }
      const auto [least, most] = std::ranges::minmax_element(limit.below);
      limit.all = *least == *most ? *least : 0;
      integers.push_back({record, inOrder});
      recorded->integers.push_back(std::move(input));
    }
    if (samples > 1) {
      const auto found = section.samples(samples, data, integers);
      if (mixing_ && (mixing_->root != found.root || mixing_->operation != found.operation))
        throw py::value_error("with another number of samples another function was recorded");
      mixing_ = found;
    }
    section.setData(data);
    section.assignGradients(ranges_);
    for (const auto& each : section.outside())
      recorded->alive.push_back(
          newView(t, ViewOf<T>::at(t.tape, each.first, 1, each.count), Shape{size(each.count)}));
    if (!section.outside().empty() && section.outside().back().end() > end_)
      watch(section.outside().back());
    perSample_ = std::max<std::size_t>(section.bytes() / samples, 1);
    results_ = nodes.count / samples;
    if (sections_.size() >= mostSections) {
      const auto oldest = std::ranges::min_element(
          sections_, {}, [](const auto& each) { return each.second->used; });
      sections_.erase(oldest);
    }
    draws_ = draws_ || section.draws();
    sections_[samples] = std::move(recorded);
  }

  // Whether what it reads is where it was when recording. Nodes keep their order, so if the newest has not
  // moved, none has.
  bool isCurrent() const {
    const auto v = newestView_->as<T>();
    v.check();
    return v.sysGetRawNodeIndex() + v.size() == end_;
  }

  std::size_t samplesAtATime(std::size_t n, std::size_t wanted) const {
    if (n == 1) return 1;
    if (!mixing_) return 0;
    if (!isByParts()) {
      if (wanted != 0 && wanted < n)
        throw py::value_error("a batch can't be taken in parts or sample by sample: " + mixes() +
                              " mixes the samples");
      return n;
    }
    if (wanted != 0) return std::min(wanted, n);
    const std::size_t room = std::max(mostBytes, 2 * sizeof(T) * count_);
    return std::min(n, std::clamp<std::size_t>(room / perSample_, 1, mostAtATime));
  }

  // How many samples to record next before a batch of n can be run; 0: none.
  std::size_t missing(std::size_t n, std::size_t wanted, std::size_t threads) const {
    const std::size_t m = samplesAtATime((n + threads - 1) / threads, wanted);
    if (m == 0) return 2;
    for (std::size_t t = 0; t < threads; ++t) {
      const std::size_t count = n * (t + 1) / threads - n * t / threads;
      if (count >= m && !sections_.contains(m)) return m;
      if (count % m != 0 && !sections_.contains(count % m)) return count % m;
    }
    return 0;
  }

  bool isByParts() const {
    return mixing_->root == bt::Samples::mean || mixing_->root == bt::Samples::sum ||
           mixing_->root == bt::Samples::apart;
  }
  std::string mixes() const {
    if (!mixing_ || isByParts()) return "";
    return mixing_->root == bt::Samples::shared ? "a loss that depends on no sample"
                                                : mixing_->operation;
  }
  bool draws() const { return draws_; }

  // The loss; None: record first.
  py::object loss(const py::args& arguments, std::size_t wanted, std::uint64_t key) {
    return run(arguments, wanted, 1, [&](Batch& batch) {
      return part(batch, here(), 0, batch.samples, key, [](auto&&...) {});
    });
  }

  // The same for arguments and options as they usually are; None also if they are not.
  py::object plain(const py::args& arguments) {
    if (draws_) return py::none();
    for (const auto& each : arguments)
      if (!isArgument(each)) return py::none();
    return run(arguments, 0, 1, [&](Batch& batch) {
      return gradientPart(batch, here(), 0, batch.samples, 0, false);
    });
  }

  py::object lossAndGradient(const py::args& arguments, std::size_t wanted, std::size_t threads,
                             bool accumulate, std::uint64_t key) {
    return run(arguments, wanted, threads, [&](Batch& batch) {
      return threads == 1 ? gradientPart(batch, here(), 0, batch.samples, key, accumulate)
                          : inThreads(batch, threads, key, accumulate);
    });
  }

  // Gradients of each sample's own loss, as rows.
  py::object perSampleGradients(const py::args& arguments, std::uint64_t key) {
    const std::size_t n = samplesIn(arguments);
    py::array_t<T> out({size(n), size(count_)});
    T* const to = out.mutable_data();
    const py::object done = run(arguments, 1, 1, [&](Batch& batch) {
      const auto& grads = tape().tape;
      std::vector<T> before;
      for (const auto& each : ranges_)
        before.insert(before.end(), std::as_const(grads).grads().begin() + offset(each.first),
                      std::as_const(grads).grads().begin() + offset(each.end()));
      for (std::size_t i = 0; i < n; ++i) {
        gradientPart(batch, here(), i, i + 1, key + i, false, /*isAlone=*/true);
        T* row = to + i * count_;
        for (const auto& each : ranges_)
          row = std::copy_n(columns().grads + each.first, each.count, row);
      }
      const T* old = before.data();
      for (const auto& each : ranges_) {
        std::copy_n(old, each.count, columns().grads + each.first);
        old += each.count;
      }
      return 0.0;
    });
    return done.is_none() ? done : py::object(out);
  }

  // What the function gives for each sample, one row each; None: record first.
  py::object results(const py::args& arguments, std::size_t wanted, std::uint64_t key) {
    const std::size_t n = samplesIn(arguments);
    py::array_t<T> out({size(n), size(results_)});
    T* to = out.mutable_data();
    const py::object done = run(arguments, wanted, 1, [&](Batch& batch) {
      return part(batch, here(), 0, n, key,
                  [&](const Columns& c, const Recorded& recorded, auto&&...) {
                    to = std::ranges::copy(recorded.section.results(c), to).out;
                  });
    });
    return done.is_none() ? done : py::object(out);
  }

private:
  using Index = typename Section::Index;
  static constexpr std::size_t mostBytes = std::size_t{1} << 21, mostAtATime = 256;
  static constexpr std::size_t mostSections = 24;

  struct Batch {
    std::vector<Argument> arguments;
    std::size_t samples, atATime, threads;
    Interrupts* interrupts = nullptr;
    std::atomic<bool> stop{false};
  };

  static py::ssize_t size(std::size_t n) { return static_cast<py::ssize_t>(n); }
  static std::ptrdiff_t offset(std::size_t n) { return static_cast<std::ptrdiff_t>(n); }
  void watch(const bt::NodeRange& nodes) {
    auto& t = tape();
    newest_ =
        newView(t, ViewOf<T>::at(t.tape, nodes.first, 1, nodes.count), Shape{size(nodes.count)});
    newestView_ = &viewOf(newest_);
    end_ = nodes.end();
  }
  TapeOf<T>& tape() const { return static_cast<TapeOf<T>&>(*tape_); }
  Columns columns() const { return bt::detail::TapeAccess::columns(tape().tape); }

  std::size_t samplesIn(const py::args& arguments) const {
    if (arguments.size() != sizes_.size())
      throw py::type_error("the plan is for " + std::to_string(sizes_.size()) + " arguments");
    return static_cast<std::size_t>(py::reinterpret_borrow<py::array>(arguments[0]).shape(0));
  }

  // Runs work(batch), which returns the result. Nothing is computed before all is checked.
  template <class Work>
  py::object run(const py::args& arguments, std::size_t wanted, std::size_t threads,
                 const Work& work) {
    Batch batch{{}, samplesIn(arguments), 0, 1, nullptr, {}};
    threads = std::clamp<std::size_t>(threads, 1, batch.samples);
    batch.threads = threads;
    for (std::size_t k = 0; k < sizes_.size(); ++k) {
      batch.arguments.push_back(argumentOf(arguments[k]));
      const auto& array = batch.arguments.back().owner;
      if (static_cast<std::size_t>(array.size()) != batch.samples * sizes_[k])
        throw py::value_error("argument " + std::to_string(k) + " has " +
                              std::to_string(array.size()) + " numbers for " +
                              std::to_string(batch.samples) + " samples of " +
                              std::to_string(sizes_[k]));
    }
    if (missing(batch.samples, wanted, threads) != 0 || !isCurrent()) return py::none();
    batch.atATime = samplesAtATime((batch.samples + threads - 1) / threads, wanted);
    for (std::size_t k = 0; k < limits_.size(); ++k)
      demandBelow(limits_[k], batch.arguments[k], k, sizes_[k], batch.samples);
    auto& t = tape();
    demandIdle(t);
    t.settle();
    const std::size_t nodes = (count_ + perSample_ / sizeof(T)) * batch.samples;
    if (nodes < longWork) return py::float_(work(batch));
    Interrupts interrupts;
    batch.interrupts = &interrupts;
    return py::float_(t.unlocked([&] { return work(batch); }));
  }

  // Where a thread works: the first one on the tape itself.
  struct Own {
    typename Section::Memory memory;
    std::map<const Recorded*, typename Section::Sides> sides;
  };
  struct Place {
    Own* own = nullptr;
    Columns columns(Plan& plan, Recorded& recorded) const {
      if (own == nullptr) return recorded.section.space(plan.tape().tape);
      return recorded.section.space(own->memory, own->sides.at(&recorded));
    }
  };
  Place here() { return {}; }

  void set(const Batch& batch, const Recorded& recorded, const Columns& c,
           std::size_t first) const {
    for (const RealInput& input : recorded.reals) {
      T* const to = c.values + recorded.section.first() + input.nodes.first;
      std::visit(
          [&](const auto* all) {
            const auto* const from = all + first * sizes_[input.argument];
            if (input.places.empty())
              std::transform(from, from + input.nodes.count, to,
                             [](auto x) { return static_cast<T>(x); });
            else
              for (std::size_t i = 0; i < input.places.size(); ++i)
                to[i] = static_cast<T>(from[input.places[i]]);
          },
          batch.arguments[input.argument].numbers);
    }
    for (const IntegerInput& input : recorded.integers)
      std::visit(
          [&](const auto* all) {
            const auto* const from = all + first * sizes_[input.argument];
            Index* const to = c.operands + input.word;
            const std::size_t n = input.places.size();
            if (input.areNeighbours)
              std::transform(from + input.places[0], from + input.places[0] + offset(n), to,
                             [](auto x) { return static_cast<Index>(x); });
            else
              for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<Index>(from[input.places[i]]);
          },
          batch.arguments[input.argument].numbers);
  }

  // The part of the loss of samples [first, last); after(columns, recorded, weight) each time.
  template <class After>
  double part(Batch& batch, const Place& place, std::size_t first, std::size_t last,
              std::uint64_t key, const After& after) {
    const bool isMean = !mixing_ || mixing_->root == bt::Samples::mean || !isByParts();
    double total = 0;
    for (std::size_t i = first; i < last; i += batch.atATime) {
      const std::size_t n = std::min(batch.atATime, last - i);
      Recorded& recorded = *sections_.at(n);
      recorded.used = place.own == nullptr ? ++clock_ : recorded.used;
      const Columns c = place.columns(*this, recorded);
      set(batch, recorded, c, i);
      recorded.section.draw(c, key + i);
      recorded.section.forward(c);
      const double weight =
          isMean ? static_cast<double>(n) / static_cast<double>(batch.samples) : 1.0;
      total += weight * static_cast<double>(recorded.section.result(c));
      after(c, recorded, static_cast<T>(weight), i == first);
      if (place.own != nullptr && batch.stop.load(std::memory_order_relaxed)) break;
      if (place.own == nullptr && batch.interrupts != nullptr) (*batch.interrupts)();
    }
    return total;
  }
  double gradientPart(Batch& batch, const Place& place, std::size_t first, std::size_t last,
                      std::uint64_t key, bool accumulate, bool isAlone = false) {
    return part(batch, place, first, last, key,
                [&](const Columns& c, Recorded& recorded, const T& weight, bool isFirst) {
                  recorded.section.backward(c, isAlone ? T(1) : weight,
                                            isFirst && !accumulate ? bt::SumPart::first
                                                                   : bt::SumPart::more);
                });
  }

  // The batch is cut into as many parts as there are threads; their gradients are added in order.
  double inThreads(Batch& batch, std::size_t, std::uint64_t key, bool accumulate) {
    const std::size_t threads = batch.threads;
    if (threads == 1) return gradientPart(batch, here(), 0, batch.samples, key, accumulate);
    for (auto& [samples, recorded] : sections_) recorded->section.space(tape().tape);
    while (own_.size() + 1 < threads) own_.emplace_back(new Own);
    for (std::size_t t = 1; t < threads; ++t)
      for (auto& [samples, recorded] : sections_) {
        Own& own = *own_[t - 1];
        recorded->section.space(own.memory, own.sides[recorded.get()]);
        for (const auto& each : recorded->section.outside())
          std::copy_n(columns().values + each.first, each.count,
                      own.memory.values.begin() + offset(each.first));
      }
    std::vector<double> totals(threads);
    std::vector<std::exception_ptr> errors(threads);
    team_.run(threads, [&](std::size_t t) {
      const std::size_t first = batch.samples * t / threads,
                        last = batch.samples * (t + 1) / threads;
      try {
        Place place;
        if (t != 0) place.own = own_[t - 1].get();
        totals[t] = gradientPart(batch, place, first, last, key, t == 0 && accumulate);
      } catch (...) {
        batch.stop = true;
        errors[t] = std::current_exception();
      }
    });
    for (const auto& error : errors)
      if (error) std::rethrow_exception(error);
    double total = totals[0];
    for (std::size_t t = 1; t < threads; ++t) {
      total += totals[t];
      const T* const more = own_[t - 1]->memory.grads.data();
      for (const auto& each : ranges_)
        for (std::size_t i = each.first; i < each.end(); ++i)
          columns().grads[i] = columns().grads[i] + more[i];
    }
    return total;
  }

  Ref<AnyTape> tape_;
  std::vector<py::object> parameters_;
  std::vector<bt::NodeRange> ranges_; // of all parameters
  py::object newest_; // a handle to the newest nodes that it reads, which keeps them
  const PyView* newestView_ = nullptr;
  std::size_t count_ = 0, end_ = 0;
  std::vector<std::size_t> sizes_;
  std::vector<IndexLimit> limits_;
  std::map<std::size_t, std::unique_ptr<Recorded>> sections_;
  std::optional<typename Section::Mixing> mixing_;
  std::size_t perSample_ = 1, results_ = 1, clock_ = 0;
  bool draws_ = false;
  std::vector<std::unique_ptr<Own>> own_; // of threads but the first
  bt::Team team_;
};

template <class T> void registerPlan(py::module_& module, const char* name) {
  using P = Plan<T>;
  py::class_<P>(module, name)
      .def(py::init<AnyTape&, const py::sequence&, std::vector<std::size_t>>(), py::arg("tape"),
           py::arg("parameters"), py::arg("sizes"))
      .def("add", &P::add, py::arg("recorder"), py::arg("samples"), py::arg("result"))
      .def("missing", &P::missing, py::arg("samples"), py::arg("micro_batch"), py::arg("threads"))
      .def("samples_at_a_time", &P::samplesAtATime, py::arg("samples"), py::arg("micro_batch"))
      .def("loss", &P::loss, py::arg("micro_batch"), py::arg("key"))
      .def("plain_loss_and_grad", &P::plain)
      .def("loss_and_grad", &P::lossAndGradient, py::arg("micro_batch"), py::arg("threads"),
           py::arg("accumulate"), py::arg("key"))
      .def("per_sample_grads", &P::perSampleGradients, py::arg("key"))
      .def("results", &P::results, py::arg("micro_batch"), py::arg("key"))
      .def_property_readonly("is_current", &P::isCurrent)
      .def_property_readonly("mixes", &P::mixes)
      .def_property_readonly("draws", &P::draws);
}

} // namespace

void registerPlans(py::module_& module) {
  addRecorder(module);
  registerPlan<float>(module, "Plan_float32");
  registerPlan<double>(module, "Plan_float64");
}

} // namespace burtorch_python
