// bindings/plan.hpp — recording a function of parameters and data: what a Plan is made of
// SPDX-License-Identifier: MIT
#pragma once

#include "mark.hpp"
#include "view_operands.hpp"

#include <burtorch/run/section.hpp>

#include <pybind11/numpy.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

namespace burtorch_python {

// The nodes of a View or a Value, and the tape where they are.
bt::NodeRange nodesIn(const pybind11::handle& object);
AnyTape& tapeOf(const pybind11::handle& object);

// Numbers of an argument that became leaves: all of them, or those at some places.
struct RealInput {
  std::size_t argument;
  bt::NodeRange nodes;
  std::vector<std::int64_t> places;
};

// with Recorder(tape, parameters): what is recorded inside is taken off the tape afterwards.
class Recorder {
public:
  Recorder(AnyTape& tape, const pybind11::sequence& parameters) : tape_(&tape) {
    from_ = static_cast<std::size_t>(-1);
    for (const auto& each : parameters) {
      if (&tapeOf(each) != &tape)
        throw pybind11::value_error("the parameters of a module stand on one tape");
      from_ = std::min(from_, nodesIn(each).first);
    }
  }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  ~Recorder() { leave(); }

  void enter() {
    if (tape_->trace != nullptr || tape_->indexLog != nullptr)
      throw pybind11::value_error("another function is being recorded on this tape");
    demandIdle(*tape_);
    tape_->settle();
    visitPlain(*tape_, [&](auto& t) {
      t.prepare();
      mark_.emplace(t);
      before_ = t.tape.size();
      from_ = std::min(from_, before_);
    });
    trace_.from = from_;
    trace_.inputs = before_ - from_;
    trace_.isDynamic = false;
    tape_->trace = &trace_;
    tape_->indexLog = &log;
  }
  void leave() {
    if (tape_->trace == &trace_) tape_->trace = nullptr;
    if (tape_->indexLog == &log) tape_->indexLog = nullptr;
    if (mark_) mark_->rewind(*tape_);
    mark_.reset();
  }

  // Data leaves with these numbers, which are the argument's at these places (all of them if None).
  pybind11::object data(std::size_t argument, const pybind11::object& numbers,
                        const pybind11::object& places) {
    pybind11::object view = leaves(*tape_, numbers, Role::data);
    RealInput input{argument, nodesIn(view), {}};
    if (!places.is_none()) {
      const Numbers<std::int64_t> array(places);
      input.places.assign(array.data(), array.data() + array.size());
    }
    if (trace_.from + trace_.inputs == input.nodes.first) trace_.inputs += input.nodes.count;
    else trace_.late.emplace_back(input.nodes.first, input.nodes.end());
    reals.push_back(std::move(input));
    return view;
  }

  AnyTape& tape() const { return *tape_; }
  template <class T> const auto& mark(TapeOf<T>& t) const { return mark_->on(t); }

  std::vector<RealInput> reals;
  IndexLog log;

private:
  Ref<AnyTape> tape_;
  std::optional<Mark> mark_;
  std::size_t from_, before_ = 0;
  Trace trace_{};
};

// An argument's numbers as they are in memory.
struct Argument {
  pybind11::array owner;
  std::variant<const float*, const double*, const std::int32_t*, const std::int64_t*> numbers;
};
bool isArgument(const pybind11::handle& object);
Argument argumentOf(const pybind11::handle& object);

// Below what the integers of an argument must be, for each of a sample's; empty: they are no indices.
struct IndexLimit {
  std::vector<std::int64_t> below;
  std::int64_t all = 0; // where it is the same for each
};
void demandBelow(const IndexLimit& limit, const Argument& argument, std::size_t number,
                 std::size_t perSample, std::size_t samples);

void addRecorder(pybind11::module_& module);

} // namespace burtorch_python
