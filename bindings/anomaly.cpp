// bindings/anomaly.cpp — burtorch.detect_anomaly: which operation first made a NaN or an infinity
// SPDX-License-Identifier: MIT
//
// Operations are not looked at while they are recorded, only afterwards: before each backward inside, and
// at the end.
#include "anomaly.hpp"

#include "mark.hpp"
#include "others.hpp"
#include "register.hpp"
#include "scalars.hpp"
#include "value.hpp"

#include <burtorch/run/anomaly.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace burtorch_python {

namespace {

PyObject* anomalyError = nullptr; // burtorch.AnomalyError

[[noreturn]] void raise(const std::string& message) {
  PyErr_SetString(anomalyError, message.c_str());
  throw py::error_already_set();
}

template <class T> std::string text(const T& number) {
  return py::repr(py::reinterpret_steal<py::object>(toPython(number)));
}

template <class T> std::string nodeName(TapeOf<T>& t, std::size_t node) {
  const std::string label = t.tape.label(node);
  return "node " + std::to_string(node) + (label.empty() ? "" : " ('" + label + "')");
}

// log(-1.0). What it needs is copied first: Python's repr may run programs that change the tape.
template <class T> std::string expression(TapeOf<T>& t, std::size_t record) {
  constexpr std::size_t most = 8;
  const std::string function = snakeCase(t.tape.namesOf(record).function);
  std::vector<T> operands;
  t.tape.forEachArgument(
      t.tape.records()[record],
      [&](std::size_t node) { operands.push_back(std::as_const(t.tape).values()[node]); },
      [&](const T& number) { operands.push_back(number); });
  std::string out;
  for (std::size_t i = 0; i < std::min(most, operands.size()); ++i)
    out += (i == 0 ? "" : ", ") + text(operands[i]);
  if (operands.size() > most) out += ", … " + std::to_string(operands.size()) + " operands";
  return function + "(" + out + ")";
}

// with burtorch.detect_anomaly(): on the tape that is the current one then.
class DetectAnomaly {
public:
  void enter() {
    AnyTape& any = currentTape();
    demandIdle(any);
    watches_.push_back({std::make_unique<Mark>(any), Ref<AnyTape>(&any), any.watchedFrom});
    any.watchedFrom = visit(any, [](auto& t) { return t.tape.records().size(); });
  }
  void exit(const py::object& error) {
    if (watches_.empty()) throw std::runtime_error("this detect_anomaly() was not entered");
    demandIdle(*watches_.back().tape);
    const Watch watch = std::move(watches_.back());
    watches_.pop_back();
    visit(*watch.tape, [&](auto& t) {
      struct End { // whatever is found
        AnyTape& tape;
        std::optional<std::size_t> outer;
        ~End() { tape.watchedFrom = outer; }
      } const end{t, watch.outer};
      if (error.is_none()) demandFinite(t);
    });
  }

private:
  struct Watch {
    std::unique_ptr<Mark> mark; // nothing goes unseen
    Ref<AnyTape> tape;
    std::optional<std::size_t> outer; // of the one around it
  };
  std::vector<Watch> watches_;
};

} // namespace

template <class T> void demandFinite(TapeOf<T>& t) {
  if (!t.watchedFrom) return;
  const std::size_t found = bt::findAnomaly(t.tape, *t.watchedFrom);
  t.watchedFrom = t.tape.records().size(); // each is told once
  if (found == t.tape.records().size()) return;
  const auto& record = t.tape.records()[found];
  std::size_t node = record.firstResult();
  while (bt::isFinite(t.tape.values()[node])) ++node;
  const T made = t.tape.values()[node];
  const std::string where = nodeName(t, node), how = expression(t, found);
  raise(how + " made " + text(made) + " at " + where);
}

template <class T> void watchedBackward(TapeOf<T>& t, const typename TapeOf<T>::Value& root) {
  demandFinite(t);
  const std::size_t found = Others<T>::backwardWatched(root);
  if (found == t.tape.records().size()) return;
  const auto& record = t.tape.records()[found];
  const auto grads = t.tape.grads();
  std::size_t node = record.result;
  t.tape.forEachOperand(record, [&](std::size_t operand) {
    if (!bt::isFinite(grads[operand])) node = operand;
  });
  const T given = grads[record.result], made = grads[node];
  const std::string from = nodeName(t, record.result), to = nodeName(t, node);
  const std::string how = expression(t, found);
  raise("backward of " + how + " at " + from + ", whose gradient is " + text(given) +
        ", made the gradient " + text(made) + " of " + to);
}

#define BURTORCH_DTYPE(name, type)                                                                 \
  template void demandFinite<type>(TapeOf<type>&);                                                 \
  template void watchedBackward<type>(TapeOf<type>&, const TapeOf<type>::Value&);
BURTORCH_DTYPES(BURTORCH_DTYPE)
#undef BURTORCH_DTYPE

void registerAnomaly(py::module_& module) {
  anomalyError = newException(module.ptr(), "AnomalyError",
                              "An operation made a NaN or an infinity of finite numbers.",
                              PyExc_ArithmeticError);
  py::class_<DetectAnomaly>(
      module, "detect_anomaly",
      "with detect_anomaly(): an operation on the current tape that makes a NaN or an infinity of\n"
      "finite numbers raises AnomalyError, which names it: at the next backward, or at the end. A\n"
      "backward raises where it makes such a gradient. Inside, the tape forgets nothing by itself.")
      .def(py::init<>())
      .def("__enter__", &DetectAnomaly::enter)
      .def("__exit__",
           [](DetectAnomaly& self, const py::object& error, const py::args&) { self.exit(error); });
}

} // namespace burtorch_python
