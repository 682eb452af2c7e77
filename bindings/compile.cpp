// bindings/compile.cpp — what burtorch.compile calls: recorded functions run, in batches, minimized, looked at, kept
// SPDX-License-Identifier: MIT
#include "compiled.hpp"
#include "interrupts.hpp"
#include "lock.hpp"
#include "mark.hpp"
#include "register.hpp"

#include <burtorch/base/team.hpp>
#include <burtorch/optim/minimize.hpp>
#include <burtorch/run/emit.hpp>
#include <burtorch/viz/dot.hpp>

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace burtorch_python {

namespace {

template <class T> using ArrayOf = py::array_t<T, py::array::c_style | py::array::forcecast>;

// ---- what Python calls ----------------------------------------------------------------------------

template <class T> const T* point(const FunctionOf<T>& f, const ArrayOf<T>& x) {
  if (static_cast<std::size_t>(x.size()) != f.inputs())
    throw py::value_error("the function was recorded for " + std::to_string(f.inputs()) +
                          " numbers and was given " + std::to_string(x.size()));
  return x.data();
}
template <class T> ArrayOf<T> vector(std::size_t n) {
  return ArrayOf<T>(static_cast<py::ssize_t>(n));
}

// Each returns None where the recorded program would have branched differently.
template <class T> py::object values(FunctionOf<T>& f, const ArrayOf<T>& x) {
  ArrayOf<T> y = vector<T>(f.outputs());
  if (!f.values(point(f, x), y.mutable_data())) return py::none();
  return y;
}
template <class T> py::object valueAndGrad(FunctionOf<T>& f, const ArrayOf<T>& x) {
  ArrayOf<T> g = vector<T>(f.variables());
  T value = 0;
  if (!f.valueAndGradient(point(f, x), g.mutable_data(), value)) return py::none();
  return py::make_tuple(value, g);
}
template <class T> py::object jacobian(FunctionOf<T>& f, const ArrayOf<T>& x) {
  ArrayOf<T> y = vector<T>(f.outputs());
  ArrayOf<T> rows({static_cast<py::ssize_t>(f.outputs()), static_cast<py::ssize_t>(f.variables())});
  if (!f.jacobian(point(f, x), y.mutable_data(), rows.mutable_data())) return py::none();
  return py::make_tuple(y, rows);
}
template <class T> py::object jvp(FunctionOf<T>& f, const ArrayOf<T>& x, const ArrayOf<T>& v) {
  ArrayOf<T> y({static_cast<py::ssize_t>(f.outputs()), py::ssize_t{2}});
  if (!f.second(point(f, x), point(f, v), y.mutable_data(), nullptr)) return py::none();
  return y;
}
template <class T> py::object hvp(FunctionOf<T>& f, const ArrayOf<T>& x, const ArrayOf<T>& v) {
  T valueAndSlope[2];
  ArrayOf<T> product = vector<T>(f.variables());
  if (f.outputs() != 1) throw py::value_error("hvp is of a function with one output");
  if (!f.second(point(f, x), point(f, v), valueAndSlope, product.mutable_data())) return py::none();
  return py::make_tuple(valueAndSlope[0], product);
}

// job(0) … job(n − 1) at once, or as many of them as the system has threads for. The threads stay for the
// next call; calls that go on at the same time have some of their own.
void runInThreads(std::size_t n, const std::function<void(std::size_t)>& job) {
  static auto* const kept = new bt::Team; // its threads may still be parked when the process ends
  static std::mutex inUse;
  const std::unique_lock lock(inUse, std::try_to_lock);
  std::optional<bt::Team> own;
  bt::Team& team = lock ? *kept : own.emplace();
  try {
    team.run(n, job);
  } catch (const std::exception&) { // the system gives no more of them; no job has begun
    team.run(team.threads() + 1, job);
  }
}

// Values and gradients are written into arrays of the right shapes. Returns the first row that would branch
// differently, n if there is none. Threads take rows in chunks, in order, so that fewer threads than
// wanted do the same work, and none waits for another for longer than a chunk takes.
template <class T>
std::size_t batch(const FunctionOf<T>& f, const ArrayOf<T>& x, py::array_t<T> values,
                  py::array_t<T> grads, std::size_t threads) {
  const auto n = static_cast<std::size_t>(x.shape(0));
  if (static_cast<std::size_t>(x.size()) != n * f.inputs() ||
      static_cast<std::size_t>(grads.size()) != n * f.variables() ||
      static_cast<std::size_t>(values.size()) != n)
    throw py::value_error("batch takes an array of shape (n, " + std::to_string(f.inputs()) + ")");
  const T* const from = x.data();
  T *const v = values.mutable_data(), *const g = grads.mutable_data();
  const std::size_t most = 4 * std::max(std::thread::hardware_concurrency(), 1u);
  threads = std::clamp<std::size_t>(threads, 1, std::min(most, n / 64 + 1));
  // Whole vectors of samples, of a few milliseconds at most.
  const std::size_t chunk =
      8 * std::clamp<std::size_t>((std::size_t{1} << 19) / (f.work() + 1), 1,
                                  std::min<std::size_t>(512, n / (32 * threads) + 1));
  const bool mayOverlap =
      overlap(from, n * f.inputs(), g, n * f.variables()) || overlap(from, n * f.inputs(), v, n);
  std::atomic<std::size_t> next = 0, end = n;
  const auto endAt = [&](std::size_t row) {
    for (std::size_t e = end; row < e && !end.compare_exchange_weak(e, row);) {
    }
  };
  std::vector<std::exception_ptr> failures(threads);
  const auto work = [&](std::size_t k) {
    try {
      typename FunctionOf<T>::Rows rows(f, mayOverlap);
      Interrupts interrupts;
      for (std::size_t first = 0; (first = next.fetch_add(chunk)) < end;) {
        const std::size_t last = std::min(first + chunk, n);
        const std::size_t done = rows.run(from, first, last, v, g);
        if (done != last) endAt(done);
        if (k == 0) interrupts();
      }
    } catch (...) {
      failures[k] = std::current_exception();
      endAt(0);
    }
  };
  {
    const Unlocked unlocked;
    runInThreads(threads, work);
  }
  for (const auto& failure : failures)
    if (failure) std::rethrow_exception(failure);
  return end;
}

// The sum or the mean over samples, or each sample's value and gradient (reduce ""), which are written into
// gradient, a vector or rows, and values. given: (array, whether it has a row per sample) for the inputs in
// order; arrays of int64 are integers, the others have the function's own dtype.
template <class T>
double samples(const FunctionOf<T>& f, const std::vector<std::pair<py::array, bool>>& given,
               std::size_t n, const std::string& reduce, py::array_t<T> values,
               py::array_t<T> gradient, const std::optional<ArrayOf<std::int64_t>>& index,
               double clip, std::size_t microBatch, std::size_t threads) {
  if (f.hasBranches()) throw py::value_error("samples of a function that branches");
  std::vector<bt::Given<T>> all;
  for (const auto& [array, isRows] : given) {
    bt::Given<T> one;
    if (py::isinstance<py::array_t<std::int64_t>>(array))
      one.integers = static_cast<const std::int64_t*>(array.data());
    else if (py::isinstance<py::array_t<T>>(array))
      one.numbers = static_cast<const T*>(array.data());
    if ((one.integers == nullptr && one.numbers == nullptr) ||
        (array.flags() & py::array::c_style) == 0)
      throw py::value_error("samples are contiguous arrays of the function's dtype or of int64");
    const auto size = static_cast<std::size_t>(array.size());
    one.width = isRows ? size / std::max<std::size_t>(n, 1) : size;
    if (one.width == 0) continue;
    one.rows = isRows ? size / one.width : 0;
    all.push_back(one);
  }
  const auto room = [](py::array_t<T>& array) {
    return std::span<T>(array.mutable_data(), static_cast<std::size_t>(array.size()));
  };
  const std::span<T> to = room(gradient), each = room(values);
  Interrupts interrupts;
  bt::FiniteSumOptions options{
      .microBatch = microBatch, .threads = threads, .index = {}, .clip = clip, .between = [&] {
        interrupts();
      }};
  if (index) options.index = std::span(index->data(), static_cast<std::size_t>(index->size()));
  const Unlocked unlocked;
  const typename FunctionOf<T>::Sum sum(f);
  if (reduce == "mean") return sum->mean(all, n, to, options);
  if (reduce == "sum") return sum->sum(all, n, to, options);
  sum->perSample(all, n, each, to, options);
  return 0;
}

// What the first operation is that differs in another recording of the same function, run at the same point:
// what it does, or what it gives. Empty: none does.
template <class T>
std::string difference(FunctionOf<T>& f, FunctionOf<T>& other, const ArrayOf<T>& x,
                       double tolerance) {
  const auto &a = f.recording(), &b = other.recording();
  auto here = a.workspace(), there = b.workspace();
  a.set(here, point(f, x));
  b.set(there, point(other, x));
  a.forward(here);
  b.forward(there);
  const auto inA = a.tape().records(), inB = b.tape().records();
  const auto named = [](const auto& recording, std::size_t r) {
    return "operation " + std::to_string(r) + " (" + recording.tape().namesOf(r).function + ")";
  };
  for (std::size_t r = 0; r < std::min(inA.size(), inB.size()); ++r) {
    if (inA[r].word != inB[r].word || inA[r].result != inB[r].result ||
        a.operandsOf(inA[r]) != b.operandsOf(inB[r]))
      return named(a, r) + " of the recording is now " + named(b, r);
    for (std::size_t i = inA[r].firstResult(); i <= inA[r].result; ++i) {
      const double was = static_cast<double>(here.values()[i]),
                   is = static_cast<double>(there.values()[i]);
      if (!(std::abs(was - is) <= tolerance * (1 + std::abs(is))) && was != is &&
          !(was != was && is != is))
        return named(a, r) + " gives " + std::to_string(was) + " in the recording and " +
               std::to_string(is) + " now";
    }
  }
  if (inA.size() != inB.size())
    return "the recording has " + std::to_string(inA.size()) + " operations, and now there are " +
           std::to_string(inB.size());
  return "";
}

bt::optim::Method methodNamed(const std::string& name) {
  using bt::optim::Method;
  static constexpr std::pair<const char*, Method> known[] = {{"gd", Method::gd},
                                                             {"momentum", Method::momentum},
                                                             {"adam", Method::adam},
                                                             {"lbfgs", Method::lbfgs}};
  return named("method", name, known);
}

template <class T>
py::object minimize(FunctionOf<T>& f, const ArrayOf<T>& x0, const std::string& method,
                    std::size_t steps, double lr, double momentum, double tolerance,
                    std::size_t memory) {
  ArrayOf<T> x = vector<T>(f.variables());
  std::copy_n(point(f, x0), f.variables(), x.mutable_data());
  const std::span<T> at(x.mutable_data(), f.variables());
  std::vector<T> all(x0.data(), x0.data() + f.inputs()); // data stays
  const bt::optim::MinimizeOptions options{methodNamed(method), steps, lr, momentum,
                                           tolerance,           memory};
  bool branched = false;
  bt::optim::Minimum<T> m{};
  {
    const Unlocked unlocked;
    typename FunctionOf<T>::Loan loan(f);
    Interrupts interrupts;
    const auto objective = [&](const T* p, T* g) {
      T value = std::numeric_limits<T>::quiet_NaN();
      if (f.inputs() != f.variables())
        p = std::copy_n(p, f.variables(), all.data()), p = all.data();
      if (!f.nativeGradient(p, g, value) && !f.valueAndGradient(loan.space, p, g, value))
        branched = true;
      return value;
    };
    m = bt::optim::minimize<T>(objective, at, options, [&] {
      if (branched) return false;
      interrupts();
      return true;
    });
  }
  if (branched) return py::none();
  return py::make_tuple(x, m.value, m.slope, m.steps, m.converged);
}

// ---- looking and keeping --------------------------------------------------------------------------

template <class T>
std::string source(const FunctionOf<T>& f, const std::string& name, bool isGuarded) {
  if (f.hasBranches())
    throw py::value_error("the function branches here: C code has one way to go. The text is "
                          "available where no comparison depends on the arguments");
  return bt::emit(f.recording(), {.name = name, .isGuarded = isGuarded});
}

// Without the numbers that it was recorded with, and without what only decides where to go.
template <class T> std::string dot(const FunctionOf<T>& f) {
  using bt::viz::Fields;
  const auto text = [](const bt::Recording<T>& recording) {
    return bt::buildDotGraph(recording.tape(), "", {.fields = Fields::label | Fields::operation});
  };
  const auto& all = f.recording();
  if (!f.hasBranches()) return text(all);
  auto& tape = const_cast<bt::Tape<T>&>(all.tape()); // which a recording only reads
  std::vector<bt::Value<T>> in, out;
  for (const auto i : all.inputNodes()) in.push_back(bt::Value<T>::at(tape, i));
  for (const auto i : all.outputNodes().first(f.outputs()))
    out.push_back(bt::Value<T>::at(tape, i));
  return text(bt::Recording<T>(in, out));
}

// The recording as a tape, to be saved with three marks: its inputs are the leaves between the first
// and the second, its outputs the nodes from the third on.
py::tuple graph(const Function& f) {
  if (f.hasBranches())
    throw py::value_error("the function branches here: one recording would not be the function");
  if (f.inputs() != f.variables())
    throw py::value_error(
        "a function with data is not stored: in the file all inputs are variables");
  const auto& r = f.recording();
  Ref<AnyTape> any(new TapeOf<double>(DType::float64, 0));
  auto& t = static_cast<TapeOf<double>&>(*any);
  bt::detail::TapeRebuild::copy(r.tape(), r.tape().size(), 0, t.tape);
  for (std::size_t i = 0; i < r.tape().size(); ++i)
    if (const auto label = r.tape().label(i); !label.empty()) t.tape.setLabel(i, label);
  const auto in = r.inputNodes(), out = r.outputNodes();
  const auto follow = [](const auto& nodes) {
    return std::ranges::adjacent_find(nodes, [](auto a, auto b) { return b != a + 1; }) ==
           nodes.end();
  };
  if (!follow(in)) throw py::value_error("the inputs do not stand next to each other");
  const std::size_t record = t.tape.recordOf(out.front());
  const bool isWhole =
      record == t.tape.records().size() || t.tape.records()[record].firstResult() == out.front();
  std::size_t outputs = out.front();
  if (!follow(out) || out.back() + std::size_t{1} != t.tape.size() || !isWhole) {
    outputs = t.tape.size();
    for (const auto node : out) TapeOf<double>::Value::at(t.tape, node) * 1.0;
  }
  const std::size_t first = in.empty() ? 0 : in.front();
  py::list marks;
  TapeOf<double>::Tape ruler; // in files a mark is how many nodes are older
  for (const std::size_t nodes : {first, first + in.size(), outputs}) {
    if (nodes < ruler.size()) ruler.clear();
    ruler.leaves(nodes - ruler.size());
    marks.append(std::make_unique<Mark>(t, ruler.mark()));
  }
  return py::make_tuple(any, marks);
}

// The function that such a tape holds.
std::unique_ptr<Function> functionOnTape(AnyTape& any, const std::vector<Mark*>& marks) {
  const auto refuse = [](const std::string& why) -> void {
    throw py::value_error("this graph is no stored function: " + why);
  };
  if (any.dtype != DType::float64) refuse("its numbers are not float64");
  if (marks.size() != 3) refuse("it has " + std::to_string(marks.size()) + " marks, not 3");
  auto& t = static_cast<TapeOf<double>&>(any);
  std::size_t at[3];
  for (std::size_t i = 0; i < 3; ++i) at[i] = marks[i]->on(t).nodes();
  if (at[2] == t.tape.size()) refuse("it has no outputs");
  const auto nodes = [&](std::size_t first, std::size_t last) {
    Function::Values values;
    for (; first < last; ++first) values.push_back(TapeOf<double>::Value::at(t.tape, first));
    return values;
  };
  return std::make_unique<Function>(nodes(at[0], at[1]), at[1] - at[0],
                                    nodes(at[2], t.tape.size()));
}

template <class T> auto addFunction(py::module_& module, const char* name) {
  using F = FunctionOf<T>;
  return py::class_<F>(module, name, "A recorded function of a flat vector: variables, then data.")
      .def(py::init<const Tracing&, const py::sequence&, bool>(), py::arg("tracing"),
           py::arg("outputs"), py::arg("shares") = false)
      .def_property_readonly("inputs", &F::inputs)
      .def_property_readonly("variables", &F::variables)
      .def_property_readonly("outputs", &F::outputs)
      .def_property_readonly("operations", &F::operations)
      .def_property_readonly("work", &F::work)
      .def_property_readonly("has_blocks", &F::hasBlocks)
      .def_property_readonly("has_branches", &F::hasBranches)
      .def_property_readonly("is_native", &F::isNative)
      .def("use_native", &F::useNative, py::arg("addresses"), py::arg("owner"))
      .def("values", &values<T>, py::arg("x"))
      .def("value_and_grad", &valueAndGrad<T>, py::arg("x"))
      .def("jacobian", &jacobian<T>, py::arg("x"))
      .def("jvp", &jvp<T>, py::arg("x"), py::arg("v"))
      .def("hvp", &hvp<T>, py::arg("x"), py::arg("v"))
      .def("batch", &batch<T>, py::arg("x"), py::arg("values").noconvert(),
           py::arg("gradients").noconvert(), py::arg("threads"))
      .def("samples", &samples<T>, py::arg("given"), py::arg("n"), py::arg("reduce"),
           py::arg("values").noconvert(), py::arg("gradient").noconvert(), py::arg("index"),
           py::arg("clip"), py::arg("micro_batch"), py::arg("threads"))
      .def("difference", &difference<T>, py::arg("other"), py::arg("x"), py::arg("tolerance"))
      .def("minimize", &minimize<T>, py::arg("x"), py::arg("method"), py::arg("steps"),
           py::arg("lr"), py::arg("momentum"), py::arg("tolerance"), py::arg("memory"))
      .def("source", &source<T>, py::arg("name"), py::arg("guarded") = true)
      .def("dot", &dot<T>);
}

} // namespace

void registerCompile(py::module_& module) {
  addCalls(module);
  addFunction<double>(module, "Function")
      .def(py::init(&functionOnTape), py::arg("tape"), py::arg("marks"))
      .def("graph", &graph);
  addFunction<float>(module, "Function32");
}

} // namespace burtorch_python
