// bindings/recorder.cpp — recording a function of parameters and data
// SPDX-License-Identifier: MIT
#include "plan.hpp"

#include <string>
#include <type_traits>

namespace py = pybind11;

namespace burtorch_python {

bt::NodeRange nodesIn(const py::handle& object) {
  if (isView(object))
    return with(viewOf(object), [](auto&, const auto& v) {
      v.check();
      return bt::NodeRange{v.sysGetRawNodeIndex(), v.size()};
    });
  const PyValue* const value = asValue(object.ptr());
  if (value == nullptr)
    throw py::type_error(std::string("expected a View or a Value, not ") +
                         Py_TYPE(object.ptr())->tp_name);
  return visitPlain(*value->tape, [&]<class T>(TapeOf<T>&) {
    const auto v = value->as<T>();
    v.check();
    return bt::NodeRange{v.sysGetRawNodeIndex(), 1};
  });
}
AnyTape& tapeOf(const py::handle& object) {
  return isView(object) ? *viewOf(object).tape : *asValue(object.ptr())->tape;
}

namespace {

template <class N> bool holds(const py::handle& object) {
  return py::array_t<N, py::array::c_style>::check_(object);
}
template <class N> Argument viewed(const py::handle& object) {
  const auto array = py::reinterpret_borrow<py::array>(object);
  return {array, static_cast<const N*>(array.data())};
}

} // namespace

bool isArgument(const py::handle& object) {
  return holds<float>(object) || holds<double>(object) || holds<std::int64_t>(object) ||
         holds<std::int32_t>(object);
}
Argument argumentOf(const py::handle& object) {
  if (holds<float>(object)) return viewed<float>(object);
  if (holds<double>(object)) return viewed<double>(object);
  if (holds<std::int64_t>(object)) return viewed<std::int64_t>(object);
  if (holds<std::int32_t>(object)) return viewed<std::int32_t>(object);
  throw py::type_error("data are contiguous arrays of float32, float64, int32 or int64");
}

void demandBelow(const IndexLimit& limit, const Argument& argument, std::size_t number,
                 std::size_t perSample, std::size_t samples) {
  if (limit.below.empty()) return;
  std::visit(
      [&](const auto* ids) {
        using Id = std::remove_cvref_t<decltype(*ids)>;
        if constexpr (std::is_integral_v<Id>) {
          using Unsigned = std::make_unsigned_t<Id>;
          bool fine = limit.all != 0;
          for (std::size_t i = 0; i < samples * perSample && limit.all != 0; ++i)
            fine &= static_cast<Unsigned>(ids[i]) < static_cast<Unsigned>(limit.all);
          if (fine) return;
        }
        for (std::size_t i = 0; i < samples * perSample; ++i) {
          const auto id = static_cast<std::int64_t>(ids[i]), below = limit.below[i % perSample];
          if (id < 0 || id >= below)
            throw py::index_error("argument " + std::to_string(number) + ": index " +
                                  std::to_string(id) + " (number " + std::to_string(i % perSample) +
                                  " of sample " + std::to_string(i / perSample) +
                                  ") is not between 0 and " + std::to_string(below - 1));
        }
      },
      argument.numbers);
}

void addRecorder(py::module_& module) {
  py::class_<Recorder>(module, "Recorder",
                       "Takes what is recorded inside of it off the tape again.")
      .def(py::init<AnyTape&, const py::sequence&>(), py::arg("tape"), py::arg("parameters"))
      .def("__enter__",
           [](Recorder& recorder) -> Recorder& {
             recorder.enter();
             return recorder;
           })
      .def("__exit__", [](Recorder& recorder, const py::args&) { recorder.leave(); })
      .def("data", &Recorder::data, py::arg("argument"), py::arg("numbers"),
           py::arg("places") = py::none());
}

} // namespace burtorch_python
