// bindings/tape.cpp — burtorch.Tape, marks and scopes, views, the current tape, scratch storage
// SPDX-License-Identifier: MIT
#include "anomaly.hpp"
#include "lock.hpp"
#include "mark.hpp"
#include "others.hpp"
#include "register.hpp"
#include "scalars.hpp"
#include "value.hpp"
#include "view.hpp"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
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

template <class F> decltype(auto) withDType(const std::string& name, F&& f) {
#define BURTORCH_DTYPE(dtype, type)                                                                \
  if (name == #dtype) return f(type{}, DType::dtype);
  BURTORCH_DTYPES(BURTORCH_DTYPE)
#undef BURTORCH_DTYPE
  std::string known;
#define BURTORCH_DTYPE(dtype, type) known += std::string(known.empty() ? "" : ", ") + #dtype;
  BURTORCH_DTYPES(BURTORCH_DTYPE)
#undef BURTORCH_DTYPE
  throw py::value_error("unknown dtype '" + name + "'; there are " + known);
}

const char* nameOf(DType dtype) {
  switch (dtype) {
#define BURTORCH_DTYPE(name, type)                                                                 \
  case DType::name:                                                                                \
    return #name;
    BURTORCH_DTYPES(BURTORCH_DTYPE)
#undef BURTORCH_DTYPE
  }
  return "";
}

Ref<AnyTape> makeTape(const std::string& dtype, std::optional<py::ssize_t> capacity) {
  if (capacity && *capacity < 0)
    throw py::value_error("capacity is a number of nodes and can't be negative: " +
                          std::to_string(*capacity));
  return withDType(dtype, [&]<class T>(T, DType code) {
    return Ref<AnyTape>(new TapeOf<T>(code, static_cast<std::size_t>(capacity.value_or(0))));
  });
}

} // namespace

namespace {

BURTORCH_COLD AnyTape& findTape(std::uint64_t thread, std::uint64_t version) {
  static thread_local Ref<AnyTape> own; // made on first use
  AnyTape* tape = nullptr;
  if (const py::object entered = enteredTapes().get())
    tape = linkIn<Ref<AnyTape>>(entered).content.get();
  else {
    if (!own) own = makeTape("float64", std::nullopt);
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

// ---- compaction -----------------------------------------------------------------------------------

template <class T> void TapeOf<T>::collect() {
  if (busy) throw TapeIsBusy();
  settle();
  const std::size_t before = tape.size();
  std::vector<Value> handles;
  std::vector<PyValue*> owners;
  handles.reserve(live.size());
  owners.reserve(live.size());
  for (PyValue* value : live) {
    const Value v = value->as<T>();
    if (!v.isAlive()) continue; // rewound: nothing to keep, and it goes on raising
    handles.push_back(v);
    owners.push_back(value);
  }
  std::vector<ViewOf<T>> viewHandles;
  std::vector<PyView*> viewOwners;
  for (PyView* view : views) {
    const ViewOf<T> v = view->as<T>();
    if (!v.isAlive()) continue;
    viewHandles.push_back(v);
    viewOwners.push_back(view);
  }
  tape.collect(handles, viewHandles);
  forgetValues(0, before);
  for (std::size_t i = 0; i < owners.size(); ++i) {
    owners[i]->set(handles[i]);
    addValue(handles[i].sysGetRawNodeIndex());
  }
  for (std::size_t i = 0; i < viewOwners.size(); ++i) {
    viewOwners[i]->set(viewHandles[i]);
    if (viewHandles[i].size() != 0) addValue(lastNodeOf(viewHandles[i]));
  }
}

// Blocks have thousands of nodes that nobody named: where handles are few, theirs are cleared one by one.
template <class T> void TapeOf<T>::forgetValues(std::size_t first, std::size_t end) {
  if (watchedFrom) watchedFrom = std::min(*watchedFrom, tape.records().size());
  end = std::min(end, valuesOfNode.size());
  if (first >= end) return;
  constexpr std::size_t costOfOne = 16; // a handle takes as long as a run of so many nodes
  if ((live.size() + views.size()) * costOfOne > end - first) {
    std::fill(valuesOfNode.begin() + static_cast<std::ptrdiff_t>(first),
              valuesOfNode.begin() + static_cast<std::ptrdiff_t>(end), 0);
    return;
  }
  const auto forget =
      [&](std::size_t node) { // of handles that were stale already, too: they count 0
        if (node >= first && node < end) valuesOfNode[node] = 0;
      };
  for (const PyValue* value : live) forget(value->as<T>().sysGetRawNodeIndex());
  for (const PyView* view : views)
    if (const auto v = view->as<T>(); v.size() != 0) forget(lastNodeOf(v));
}

#define BURTORCH_DTYPE(name, type)                                                                 \
  template void TapeOf<type>::collect();                                                           \
  template void TapeOf<type>::forgetValues(std::size_t, std::size_t);
BURTORCH_DTYPES(BURTORCH_DTYPE)
#undef BURTORCH_DTYPE

// ---- marks and views ------------------------------------------------------------------------------

namespace {

// with tape.scope(): what is recorded inside is forgotten at the end.
class Scope {
public:
  explicit Scope(AnyTape& tape) : tape_(&tape) {}
  Ref<AnyTape> enter() {
    auto mark = std::make_unique<Mark>(*tape_);
    enterTape(*tape_);
    marks_.push_back(std::move(mark));
    return tape_;
  }
  void exit() {
    if (marks_.empty()) throw std::runtime_error("this scope was not entered");
    leaveTape(*tape_);
    const auto mark = std::move(marks_.back());
    marks_.pop_back();
    mark->rewind(*tape_);
  }

private:
  Ref<AnyTape> tape_;
  std::vector<std::unique_ptr<Mark>> marks_; // it may be entered inside of itself
};

// A NumPy array over one of the tape's columns. It owns a share of the memory: it stays valid when the
// tape grows out of it or dies, though it then shows what was, not what is.
// Where NumPy has no such type (bfloat16, float128) it is a copy in the next larger one it has, which
// can't be written to.
// A share of the memory is taken before Python is asked for anything: whatever its collector ends may
// let the tape grow.
template <class T> py::array view(std::span<T> column) {
  const auto size = static_cast<py::ssize_t>(column.size());
  if constexpr (std::same_as<T, bt::bfloat16> || isQuad<T>) {
    using Wide = std::conditional_t<isQuad<T>, long double, float>;
    py::array_t<Wide> copy(size);
    for (py::ssize_t i = 0; i < size; ++i)
      copy.mutable_data()[i] = static_cast<Wide>(column[static_cast<std::size_t>(i)]);
    copy.attr("flags").attr("writeable") = false;
    return copy;
  } else {
    using Number = typename NumberOf<T>::type;
    struct Share {
      explicit Share(void* block_) : block(block_) {
        if (block != nullptr) SharedMemory::retain(block);
      }
      ~Share() { SharedMemory::release(block, 0); }
      Share(const Share&) = delete;
      Share& operator=(const Share&) = delete;
      void* block;
    } share(column.empty() ? nullptr : column.data());
    const py::dtype type = [] {
      if constexpr (std::same_as<T, bt::float16>) return py::dtype("float16");
      else return py::dtype::of<Number>();
    }();
    std::vector<py::ssize_t> shape{size};
    if constexpr (numbersIn<T> != 1) shape.push_back(static_cast<py::ssize_t>(numbersIn<T>));
    if (column.empty()) return py::array(type, shape);
    const py::capsule owner(share.block, [](void* block) { SharedMemory::release(block, 0); });
    share.block = nullptr;
    return py::array(type, shape, column.data(), owner);
  }
}

template <class F> auto onTape(const F& f) {
  return [f](AnyTape& any) {
    return visit(any, [&]<class T>(TapeOf<T>& t) {
      demandIdle(t);
      t.settle();
      return f(t);
    });
  };
}

// ---- scratch storage ------------------------------------------------------------------------------

// The lists of backward_with_scratch_storage, allocated once.
struct Scratch {
  explicit Scratch(py::ssize_t capacity) {
    if (capacity < 0)
      throw py::value_error("capacity can't be negative: " + std::to_string(capacity));
    for (auto* list : {&order, &leaves, &stack}) list->reserve(static_cast<std::size_t>(capacity));
  }
  std::vector<std::uint32_t> order, leaves, stack;
  bool busy = false; // a long call without the interpreter's lock writes to them
};

Scratch& demandIdle(Scratch& scratch) {
  if (scratch.busy) throw TapeIsBusy("these lists are in use by a long call of another thread");
  return scratch;
}

class ScratchInUse {
public:
  explicit ScratchInUse(Scratch& scratch) : scratch_(demandIdle(scratch)) { scratch_.busy = true; }
  ~ScratchInUse() { scratch_.busy = false; }
  ScratchInUse(const ScratchInUse&) = delete;
  ScratchInUse& operator=(const ScratchInUse&) = delete;

private:
  Scratch& scratch_;
};

void backwardWithScratch(const py::object& root, Scratch& scratch, bool reuse) {
  if (!isValue(root.ptr()))
    throw py::type_error(std::string("backward needs a Value, not ") +
                         Py_TYPE(root.ptr())->tp_name);
  const auto* const value = reinterpret_cast<PyValue*>(root.ptr());
  visit(*value->tape, [&]<class T>(TapeOf<T>& t) {
    demandIdle(t);
    const auto v = value->as<T>();
    demandGradients(t, v);
    demandFinite(t);
    const ScratchInUse inUse(scratch);
    auto &order = scratch.order, &leaves = scratch.leaves, &stack = scratch.stack;
    unlockedIfLong(t, t.tape.records().size(), [&] {
      if constexpr (isOther<T>) Others<T>::backwardWithScratch(v, order, leaves, stack, reuse);
      else if (reuse)
        bt::backwardWithScratchStorage<bt::Reuse::orderAndLeaves>(v, order, leaves, stack);
      else bt::backwardWithScratchStorage(v, order, leaves, stack);
    });
  });
}

} // namespace

void registerTape(py::module_& module) {
  py::class_<AnyTape, Ref<AnyTape>> tape(
      module, "Tape", "Numbers and the operations that made them, in flat arrays.");
  py::class_<Mark>(module, "Mark", "A position on a tape, to rewind to.");
  py::class_<Scope>(module, "Scope", "Forgets at its end what was recorded inside.")
      .def("__enter__", &Scope::enter)
      .def("__exit__", [](Scope& scope, const py::args&) { scope.exit(); });
  py::class_<NoGrad>(module, "no_grad",
                     "with no_grad(): what is computed inside, on any tape, is a number without a "
                     "graph: its Values\n"
                     "are leaves, and no gradient passes through them to what they were made of. "
                     "backward() raises\n"
                     "inside. In a function that is being compiled use stop_gradient(x).")
      .def(py::init<>())
      .def("__enter__", &NoGrad::enter)
      .def("__exit__", [](NoGrad& self, const py::args&) { self.exit(); });
  py::class_<Scratch>(module, "Scratch", "Lists for backward_with_scratch_storage, allocated once.")
      .def(py::init<py::ssize_t>(), py::arg("capacity"))
      .def_property_readonly(
          "order", [](Scratch& s) { return demandIdle(s).order; },
          "Records visited last, newest first, as distances from the root's.")
      .def_property_readonly(
          "leaves", [](Scratch& s) { return demandIdle(s).leaves; },
          "Indices of the leaves the last root depends on.");

  tape.def(py::init(&makeTape), py::arg("dtype") = "float64", py::arg("capacity") = py::none(),
           "An empty tape; capacity reserves memory for that many nodes.")
      .def("__len__", onTape([](auto& t) { return t.tape.size(); }))
      .def("__bool__", [](AnyTape&) { return true; })
      .def("__repr__",
           [](AnyTape& any) {
             return visit(any, [&](auto& t) {
               return std::string("Tape(dtype='") + nameOf(any.dtype) + "', " +
                      std::to_string(t.tape.size()) + " nodes)";
             });
           })
      .def("_repr_mimebundle_",
           [](const py::object& self, const py::args& args, const py::kwargs& keywords) {
             return py::reinterpret_steal<py::object>(
                 notebookDisplay(self.ptr(), args.ptr(), keywords.ptr()));
           })
      .def("__enter__",
           [](AnyTape& any) {
             enterTape(any);
             return Ref<AnyTape>(&any);
           })
      .def("__exit__", [](AnyTape& any, const py::args&) { leaveTape(any); })
      .def_property_readonly("dtype", [](AnyTape& any) { return nameOf(any.dtype); })
      .def_property_readonly("nbytes", onTape([]<class T>(TapeOf<T>& t) {
                               const auto c = t.tape.capacity();
                               return TapeOf<T>::Tape::bytesFor(c);
                             }),
                             "Bytes of memory reserved by the tape's arrays.")
      .def_property_readonly("values", onTape([](auto& t) { return view(t.tape.values()); }),
                             "All values as a NumPy array, without a copy.")
      .def_property_readonly("grads", onTape([](auto& t) { return view(t.tape.grads()); }),
                             "All gradients as a NumPy array, without a copy.")
      .def(
          "mark", [](AnyTape& any) { return std::make_unique<Mark>(any); },
          "The present position. While a Mark lives, the tape forgets nothing by itself: what no\n"
          "Value names stays until rewind() or collect(), so keep one no longer than needed.")
      .def(
          "rewind", [](AnyTape& any, const Mark& mark) { mark.rewind(any); }, py::arg("mark"),
          "Forget everything recorded since the mark; Values made since raise from now on.")
      .def(
          "scope", [](AnyTape& any) { return std::make_unique<Scope>(any); },
          "with tape.scope(): what is recorded inside is forgotten at the end. Until then nothing\n"
          "is, as with mark().")
      .def("collect", onTape([](auto& t) { demandFinite(t), t.collect(); }),
           "Compact to what live Values reach.")
      .def("zero_grad", onTape([](auto& t) { t.tape.zeroGrad(); }), "Set all gradients to 0.");

  module.def(
      "current_tape", [] { return Ref<AnyTape>(&currentTape()); },
      "The tape on which new Values begin: the one that was entered last in this context (a "
      "thread, or a\n"
      "task of asyncio), else this thread's own.");
  module.def(
      "zero_grad", [] { visit(currentTape(), [](auto& t) { demandIdle(t), t.tape.zeroGrad(); }); },
      "Set all gradients on the current tape to 0.");
  module.def(
      "backward",
      [](const py::object& root) {
        if (!isValue(root.ptr()))
          throw py::type_error(std::string("backward needs a Value, not ") +
                               Py_TYPE(root.ptr())->tp_name);
        if (!backwardOf(root.ptr(), nullptr)) throw py::error_already_set();
      },
      py::arg("root"), "Compute the gradients of root by everything it was made from.");
  module.def("backward_with_scratch_storage", &backwardWithScratch, py::arg("root"),
             py::arg("scratch"), py::arg("reuse") = false,
             "The same, visiting only what root reaches, in the memory of scratch. With reuse=True "
             "the order\n"
             "found by the call before is taken again: for the same expression, built anew.");
}

} // namespace burtorch_python
