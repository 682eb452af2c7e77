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
#include <cstddef>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace burtorch_python {

namespace {

using Array = py::array_t<double, py::array::c_style | py::array::forcecast>;

// ---- what Python calls ----------------------------------------------------------------------------

const double* point(const Function& f, const Array& x) {
  if (static_cast<std::size_t>(x.size()) != f.inputs())
    throw py::value_error("the function was recorded for " + std::to_string(f.inputs()) +
                          " numbers and was given " + std::to_string(x.size()));
  return x.data();
}
Array vector(std::size_t n) { return Array(static_cast<py::ssize_t>(n)); }

// Each returns None where the recorded program would have branched differently.
py::object values(Function& f, const Array& x) {
  Array y = vector(f.outputs());
  if (!f.values(point(f, x), y.mutable_data())) return py::none();
  return y;
}
py::object valueAndGrad(Function& f, const Array& x) {
  Array g = vector(f.inputs());
  double value = 0;
  if (!f.valueAndGradient(point(f, x), g.mutable_data(), value)) return py::none();
  return py::make_tuple(value, g);
}
py::object jacobian(Function& f, const Array& x) {
  Array y = vector(f.outputs());
  Array rows({static_cast<py::ssize_t>(f.outputs()), static_cast<py::ssize_t>(f.inputs())});
  if (!f.jacobian(point(f, x), y.mutable_data(), rows.mutable_data())) return py::none();
  return py::make_tuple(y, rows);
}
py::object jvp(Function& f, const Array& x, const Array& v) {
  Array y({static_cast<py::ssize_t>(f.outputs()), py::ssize_t{2}});
  if (!f.second(point(f, x), point(f, v), y.mutable_data(), nullptr)) return py::none();
  return y;
}
py::object hvp(Function& f, const Array& x, const Array& v) {
  double valueAndSlope[2];
  Array product = vector(f.inputs());
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
std::size_t batch(const Function& f, const Array& x, py::array_t<double> values,
                  py::array_t<double> grads, std::size_t threads) {
  const auto n = static_cast<std::size_t>(x.shape(0));
  if (static_cast<std::size_t>(x.size()) != n * f.inputs() || x.size() != grads.size() ||
      static_cast<std::size_t>(values.size()) != n)
    throw py::value_error("batch takes an array of shape (n, " + std::to_string(f.inputs()) + ")");
  const double* const from = x.data();
  double *const v = values.mutable_data(), *const g = grads.mutable_data();
  const std::size_t most = 4 * std::max(std::thread::hardware_concurrency(), 1u);
  threads = std::clamp<std::size_t>(threads, 1, std::min(most, n / 64 + 1));
  // Whole vectors of samples, of a few milliseconds at most.
  const std::size_t chunk =
      8 * std::clamp<std::size_t>((std::size_t{1} << 19) / (f.work() + 1), 1,
                                  std::min<std::size_t>(512, n / (32 * threads) + 1));
  const bool mayOverlap =
      overlap(from, n * f.inputs(), g, n * f.inputs()) || overlap(from, n * f.inputs(), v, n);
  std::atomic<std::size_t> next = 0, end = n;
  const auto endAt = [&](std::size_t row) {
    for (std::size_t e = end; row < e && !end.compare_exchange_weak(e, row);) {
    }
  };
  std::vector<std::exception_ptr> failures(threads);
  const auto work = [&](std::size_t k) {
    try {
      Function::Rows rows(f, mayOverlap);
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

bt::optim::Method methodNamed(const std::string& name) {
  using bt::optim::Method;
  static constexpr std::pair<const char*, Method> known[] = {{"gd", Method::gd},
                                                             {"momentum", Method::momentum},
                                                             {"adam", Method::adam},
                                                             {"lbfgs", Method::lbfgs}};
  return named("method", name, known);
}

py::object minimize(Function& f, const Array& x0, const std::string& method, std::size_t steps,
                    double lr, double momentum, double tolerance, std::size_t memory) {
  Array x = vector(f.inputs());
  std::copy_n(point(f, x0), f.inputs(), x.mutable_data());
  const std::span<double> at(x.mutable_data(), f.inputs());
  const bt::optim::MinimizeOptions options{methodNamed(method), steps, lr, momentum,
                                           tolerance,           memory};
  bool branched = false;
  bt::optim::Minimum<double> m{};
  {
    const Unlocked unlocked;
    Function::Loan loan(f);
    Interrupts interrupts;
    const auto objective = [&](const double* p, double* g) {
      double value = std::numeric_limits<double>::quiet_NaN();
      if (!f.nativeGradient(p, g, value) && !f.valueAndGradient(loan.space, p, g, value))
        branched = true;
      return value;
    };
    m = bt::optim::minimize<double>(objective, at, options, [&] {
      if (branched) return false;
      interrupts();
      return true;
    });
  }
  if (branched) return py::none();
  return py::make_tuple(x, m.value, m.slope, m.steps, m.converged);
}

// ---- looking and keeping --------------------------------------------------------------------------

std::string source(const Function& f, const std::string& name, bool isGuarded) {
  if (f.hasBranches())
    throw py::value_error("the function branches here: C code has one way to go. The text is "
                          "available where no comparison depends on the arguments");
  return bt::emit(f.recording(), {.name = name, .isGuarded = isGuarded});
}

// Without the numbers that it was recorded with, and without what only decides where to go.
std::string dot(const Function& f) {
  using bt::viz::Fields;
  const auto text = [](const bt::Recording<double>& recording) {
    return bt::buildDotGraph(recording.tape(), "", {.fields = Fields::label | Fields::operation});
  };
  const auto& all = f.recording();
  if (!f.hasBranches()) return text(all);
  auto& tape = const_cast<bt::Tape<double>&>(all.tape()); // which a recording only reads
  std::vector<bt::Value<double>> in, out;
  for (const auto i : all.inputNodes()) in.push_back(bt::Value<double>::at(tape, i));
  for (const auto i : all.outputNodes().first(f.outputs()))
    out.push_back(bt::Value<double>::at(tape, i));
  return text(bt::Recording<double>(in, out));
}

// The recording as a tape, to be saved with three marks: its inputs are the leaves between the first
// and the second, its outputs the nodes from the third on.
py::tuple graph(const Function& f) {
  if (f.hasBranches())
    throw py::value_error("the function branches here: one recording would not be the function");
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
    Values values;
    for (; first < last; ++first) values.push_back(TapeOf<double>::Value::at(t.tape, first));
    return values;
  };
  return std::make_unique<Function>(nodes(at[0], at[1]), nodes(at[2], t.tape.size()));
}

} // namespace

void registerCompile(py::module_& module) {
  addCalls(module);
  py::class_<Function>(module, "Function", "A recorded function of a flat vector.")
      .def(py::init<const Tracing&, const py::sequence&, bool>(), py::arg("tracing"),
           py::arg("outputs"), py::arg("shares") = false)
      .def(py::init(&functionOnTape), py::arg("tape"), py::arg("marks"))
      .def_property_readonly("inputs", &Function::inputs)
      .def_property_readonly("outputs", &Function::outputs)
      .def_property_readonly("operations", &Function::operations)
      .def_property_readonly("work", &Function::work)
      .def_property_readonly("has_blocks", &Function::hasBlocks)
      .def_property_readonly("is_native", &Function::isNative)
      .def("use_native", &Function::useNative, py::arg("addresses"), py::arg("owner"))
      .def("values", &values, py::arg("x"))
      .def("value_and_grad", &valueAndGrad, py::arg("x"))
      .def("jacobian", &jacobian, py::arg("x"))
      .def("jvp", &jvp, py::arg("x"), py::arg("v"))
      .def("hvp", &hvp, py::arg("x"), py::arg("v"))
      .def("batch", &batch, py::arg("x"), py::arg("values").noconvert(),
           py::arg("gradients").noconvert(), py::arg("threads"))
      .def("minimize", &minimize, py::arg("x"), py::arg("method"), py::arg("steps"), py::arg("lr"),
           py::arg("momentum"), py::arg("tolerance"), py::arg("memory"))
      .def("source", &source, py::arg("name"), py::arg("guarded") = true)
      .def("dot", &dot)
      .def("graph", &graph);
}

} // namespace burtorch_python
