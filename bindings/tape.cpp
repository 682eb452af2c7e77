// bindings/tape.cpp — burtorch.Tape: compaction, marks and scopes, its numbers as arrays, scratch storage
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
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace burtorch_python {

namespace {

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

Ref<AnyTape> makeTape(const std::string& name, std::optional<py::ssize_t> capacity) {
  static constexpr std::pair<const char*, DType> known[] = {
#define BURTORCH_DTYPE(dtype, type) {#dtype, DType::dtype},
      BURTORCH_DTYPES(BURTORCH_DTYPE)
#undef BURTORCH_DTYPE
  };
  if (capacity && *capacity < 0)
    throw py::value_error("capacity is a number of nodes and can't be negative: " +
                          std::to_string(*capacity));
  const auto nodes = static_cast<std::size_t>(capacity.value_or(0));
  const DType dtype = named("dtype", name, known);
  switch (dtype) {
#define BURTORCH_DTYPE(each, type)                                                                 \
  case DType::each:                                                                                \
    return Ref<AnyTape>(new TapeOf<type>(dtype, nodes));
    BURTORCH_DTYPES(BURTORCH_DTYPE)
#undef BURTORCH_DTYPE
  }
  BURTORCH_UNREACHABLE();
}

} // namespace

// ---- compaction -----------------------------------------------------------------------------------

template <class T> void TapeOf<T>::collect() {
  demandIdle(*this);
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

constexpr const char* theseLists = "these lists are";
const Scratch& demandIdle(const Scratch& scratch) {
  if (scratch.busy) throw IsBusy(theseLists);
  return scratch;
}

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
    const Busy inUse(scratch.busy, theseLists);
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
  py::class_<Scratch>(module, "Scratch", "Lists for backward_with_scratch_storage, allocated once.")
      .def(py::init<py::ssize_t>(), py::arg("capacity"))
      .def_property_readonly(
          "order", [](const Scratch& s) { return demandIdle(s).order; },
          "Records visited last, newest first, as distances from the root's.")
      .def_property_readonly(
          "leaves", [](const Scratch& s) { return demandIdle(s).leaves; },
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
