// bindings/context.cpp — what a context (contextvars) has entered: the current tape, no_grad()
// SPDX-License-Identifier: MIT
#include "register.hpp"
#include "value.hpp"

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace burtorch_python {

// ---- the current tape of a context ----------------------------------------------------------------
//
// A context (contextvars) holds what was entered in it as a chain, innermost first, of capsules. Links
// never change: contexts are copied for asyncio's tasks, and what a task enters the others do not see.

namespace {

// An object that a context variable refers to, with what was entered around it.
template <class T> struct Link {
  T content;
  py::object outer; // null if there is none
};

template <class T> py::object linked(T content, py::object outer) {
  auto link = std::make_unique<Link<T>>(Link<T>{std::move(content), std::move(outer)});
  py::capsule capsule(link.get(), [](void* p) { delete static_cast<Link<T>*>(p); });
  link.release();
  return capsule;
}
template <class T> Link<T>& linkIn(const py::object& capsule) {
  return *py::reinterpret_borrow<py::capsule>(capsule).get_pointer<Link<T>>();
}

// A variable of contexts; None, as a context can't forget one, and nothing at all are the same.
class Variable {
public:
  explicit Variable(const char* name) : variable_(PyContextVar_New(name, nullptr)) {
    if (variable_ == nullptr) throw py::error_already_set();
  }
  py::object get() const {
    PyObject* content = nullptr;
    if (PyContextVar_Get(variable_, nullptr, &content) != 0) throw py::error_already_set();
    auto object = py::reinterpret_steal<py::object>(content);
    return object && object.is_none() ? py::object() : object;
  }
  void set(const py::object& content) const {
    PyObject* const token = PyContextVar_Set(variable_, content ? content.ptr() : Py_None);
    if (token == nullptr) throw py::error_already_set();
    Py_DECREF(token);
  }

private:
  PyObject* variable_; // which lives as long as the module
};

const Variable& enteredTapes() {
  static const Variable variable("burtorch.tape");
  return variable;
}
const Variable& enteredNoGrads() {
  static const Variable variable("burtorch.no_grad");
  return variable;
}

// What currentTape() found last, under the interpreter's lock. It holds as long as the interpreter's
// thread is the same (their numbers are never used again) and has not switched contexts; enterTape and
// leaveTape drop it.
struct Found {
  std::uint64_t thread, version;
  AnyTape* tape;
};
constinit Found found{0, 0, nullptr};

BURTORCH_COLD AnyTape& findTape(std::uint64_t thread, std::uint64_t version) {
  static thread_local Ref<AnyTape> own; // made on first use
  AnyTape* tape = nullptr;
  if (const py::object entered = enteredTapes().get())
    tape = linkIn<Ref<AnyTape>>(entered).content.get();
  else {
    if (!own) own = Ref<AnyTape>(new TapeOf<double>(DType::float64, 0));
    tape = own.get();
  }
  found = {thread, version, tape};
  return *tape;
}

} // namespace

AnyTape& currentTape() {
  const PyThreadState* const state = PyThreadState_Get();
  if (found.version == state->context_ver && found.thread == state->id && found.tape != nullptr)
      [[likely]]
    return *found.tape;
  return findTape(state->id, state->context_ver);
}

void enterTape(AnyTape& tape) {
  const auto& tapes = enteredTapes();
  tapes.set(linked(Ref<AnyTape>(&tape), tapes.get()));
  found.tape = nullptr;
}

// Usually the innermost; a generator may leave it when others were entered since.
void leaveTape(AnyTape& tape) {
  const auto& tapes = enteredTapes();
  std::vector<py::object> since;
  py::object at = tapes.get();
  while (at && linkIn<Ref<AnyTape>>(at).content.get() != &tape) {
    since.push_back(at);
    at = linkIn<Ref<AnyTape>>(at).outer;
  }
  if (!at) throw std::runtime_error("this tape was not entered here, or was left already");
  at = linkIn<Ref<AnyTape>>(at).outer;
  for (; !since.empty(); since.pop_back())
    at = linked(linkIn<Ref<AnyTape>>(since.back()).content, at);
  tapes.set(at);
  found.tape = nullptr;
}

// ---- without gradients ----------------------------------------------------------------------------

namespace {

// The tapes there are. A thread that ends leaves its tapes without the interpreter's lock, hence the
// other one.
std::mutex allTapesMutex;
std::vector<AnyTape*>& allTapes() {
  static auto* const tapes = new std::vector<AnyTape*>; // threads may end after everything else
  return *tapes;
}
int noGrads = 0; // how many contexts are inside

} // namespace

void AnyTape::joinAll() {
  const std::lock_guard lock(allTapesMutex);
  allTapes().push_back(this);
  if (noGrads != 0) threshold_ = 0;
}
void AnyTape::leaveAll() {
  const std::lock_guard lock(allTapesMutex);
  std::erase(allTapes(), this);
}

bool AnyTape::isInNoGrad() { return noGrads != 0; }

void AnyTape::enterNoGrad() {
  const std::lock_guard lock(allTapesMutex);
  ++noGrads;
  for (AnyTape* const tape : allTapes()) tape->threshold_ = 0;
}
void AnyTape::leaveNoGrad() {
  const std::lock_guard lock(allTapesMutex);
  --noGrads;
  for (AnyTape* const tape : allTapes())
    if (!tape->busy) tape->settle(); // else the next append does that
}

namespace {

// with burtorch.no_grad(): its link says whether the end was reached, also to contexts that were
// copied inside.
class NoGrad {
public:
  void enter() {
    if (currentTape().trace != nullptr)
      raiseGraphError(
          "no_grad() inside of a function that is being recorded would keep its numbers "
          "for all inputs; use burtorch.stop_gradient(x), which follows the inputs");
    const auto& entered = enteredNoGrads();
    links_.push_back(linked(true, entered.get()));
    entered.set(links_.back());
    AnyTape::enterNoGrad();
  }
  void exit() {
    if (links_.empty()) throw std::runtime_error("this no_grad() was not entered");
    linkIn<bool>(links_.back()).content = false;
    links_.pop_back();
    AnyTape::leaveNoGrad();
    enteredNoGrads().set(innermost());
  }
  // The innermost link of this context whose end was not reached.
  static py::object innermost() {
    py::object at = enteredNoGrads().get();
    while (at && !linkIn<bool>(at).content) at = linkIn<bool>(at).outer;
    return at;
  }

private:
  std::vector<py::object> links_; // it may be entered inside of itself
};

} // namespace

bool computesWithoutGradients() {
  return AnyTape::isInNoGrad() && static_cast<bool>(NoGrad::innermost());
}

void registerContext(py::module_& module) {
  py::class_<NoGrad>(module, "no_grad",
                     "with no_grad(): what is computed inside, on any tape, is a number without a "
                     "graph: its Values\n"
                     "are leaves, and no gradient passes through them to what they were made of. "
                     "backward() raises\n"
                     "inside. In a function that is being compiled use stop_gradient(x).")
      .def(py::init<>())
      .def("__enter__", &NoGrad::enter)
      .def("__exit__", [](NoGrad& self, const py::args&) { self.exit(); });
  module.def(
      "current_tape", [] { return Ref<AnyTape>(&currentTape()); },
      "The tape on which new Values begin: the one that was entered last in this context (a "
      "thread, or a\n"
      "task of asyncio), else this thread's own.");
}

} // namespace burtorch_python
