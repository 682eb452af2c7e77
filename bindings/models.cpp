// bindings/models.cpp — the paper's models: loss and gradient over a batch, parameters as NumPy views
// SPDX-License-Identifier: MIT
//
// The classes are private, one per model and dtype; burtorch.nn.CharMLP and GPT choose one. The
// parameters' memory never moves (Oracle::reserve), so views of it stay what they are; they keep
// the model alive.
//
// What comes from Python is checked here and by the oracle before anything is computed. The engine's own checks
// note the birth of every node, which would cost an eighth of a GPT's time, and no handle leaves this file:
// it is compiled without them, and so with an engine of another inline namespace than the other files have.
#include "busy.hpp"
#include "interrupts.hpp"
#include "lock.hpp"

#include <burtorch/nn/generate.hpp>
#include <burtorch/nn/oracle.hpp>

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <vector>

#if BURTORCH_CHECKS
#error "the models are compiled with BURTORCH_CHECKS=0"
#endif

namespace py = pybind11;

namespace burtorch_python {

namespace {

namespace bt = burtorch;
namespace nn = bt::nn;

template <class Id> using Indices = py::array_t<Id, py::array::c_style>;

Indices<std::int64_t> converted(const py::handle& object, const char* name) {
  const auto array = py::array::ensure(object);
  if (!array) throw py::type_error(std::string(name) + " is no array of integers");
  if (array.dtype().kind() != 'i' && array.dtype().kind() != 'u')
    throw py::type_error(std::string(name) + " holds " +
                         py::str(array.dtype()).cast<std::string>() + " and not integers");
  return py::array_t<std::int64_t, py::array::c_style | py::array::forcecast>(array);
}

std::string shapeOf(const py::array& array) {
  return py::str(array.attr("shape")).cast<std::string>();
}

std::size_t demandPositive(py::ssize_t number, const char* name) {
  if (number < 1)
    throw py::value_error(std::string(name) + " must be at least 1: " + std::to_string(number));
  return static_cast<std::size_t>(number);
}

// A number of samples, or "auto".
std::size_t microBatchOf(const py::object& given) {
  if (py::isinstance<py::str>(given)) {
    if (given.cast<std::string>() == "auto") return nn::automatic;
  } else if (PyIndex_Check(given.ptr())) {
    return demandPositive(PyNumber_AsSsize_t(given.ptr(), nullptr), "micro_batch");
  }
  throw py::type_error("micro_batch is a number of samples or 'auto', not " +
                       py::repr(given).cast<std::string>());
}

template <class Model> class BoundModel {
public:
  using T = typename Model::Scalar;
  using Config = typename Model::Config;

  explicit BoundModel(const Config& config) : oracle_(config) { oracle_.reserve(mostAtATime); }

  double lossAndGradient(const py::handle& x, const py::handle& y, const py::object& microBatch,
                         py::ssize_t threads, bool accumulate) {
    nn::BatchOptions options{
        microBatchOf(microBatch), demandPositive(threads, "threads"), accumulate, {}};
    return withSamples(x, y, [&](auto xs, auto ys) {
      return run(xs.size(), options.between,
                 [&] { return oracle_.lossAndGradient(xs, ys, options); });
    });
  }

  double loss(const py::handle& x, const py::handle& y, const py::object& microBatch) {
    nn::BatchOptions options;
    options.microBatch = microBatchOf(microBatch);
    return withSamples(x, y, [&](auto xs, auto ys) {
      return run(xs.size(), options.between, [&] { return oracle_.loss(xs, ys, options); });
    });
  }

  py::array_t<T> perSampleGradients(const py::handle& x, const py::handle& y) {
    return withSamples(x, y, [&](auto xs, auto ys) {
      py::array_t<T> out({samples(xs), parameters()});
      const std::span<T> numbers(out.mutable_data(), static_cast<std::size_t>(out.size()));
      std::function<void()> between;
      run(xs.size(), between, [&] { oracle_.perSampleGradients(xs, ys, numbers, between); });
      return out;
    });
  }

  // (b, vocab), or (b, context, vocab) for a model with as many targets as inputs.
  py::array_t<T> logits(const py::handle& x) {
    return withIndices(x, x, [&](const auto& xs, const auto&) {
      if (xs.ndim() != 2 || xs.shape(1) != context())
        throw py::value_error("x has shape " + shapeOf(xs) + "; expected (b, " +
                              std::to_string(context()) + ")");
      std::vector<py::ssize_t> shape{xs.shape(0), size(oracle_.model().config().vocab)};
      if constexpr (Model::targetPerInput) shape.insert(shape.begin() + 1, context());
      py::array_t<T> out(shape);
      const std::span<T> numbers(out.mutable_data(), static_cast<std::size_t>(out.size()));
      nn::BatchOptions options;
      const auto ids = spanOf(xs);
      run(ids.size(), options.between, [&] { oracle_.logits(ids, numbers, options); });
      return out;
    });
  }

  py::array_t<std::int64_t> generate(py::ssize_t n, std::uint64_t seed,
                                     const std::vector<std::int64_t>& start, double temperature) {
    if (n < 0) throw py::value_error("n can't be negative: " + std::to_string(n));
    bt::Random random(seed);
    std::function<void()> between;
    const auto count = static_cast<std::size_t>(n);
    const auto text = run(count * oracle_.model().inputsPerSample(), between, [&] {
      return nn::generate(oracle_.model(), count, random, start, temperature, between);
    });
    return py::array_t<std::int64_t>(size(text.size()), text.data());
  }

  std::size_t microBatchFor(py::ssize_t samples) {
    return oracle_.microBatchFor(demandPositive(samples, "samples"));
  }

  std::span<T> values() { return oracle_.values(); }
  std::span<T> gradients() { return oracle_.gradients(); }
  py::ssize_t parameters() { return size(oracle_.model().numParameters()); }
  py::ssize_t context() { return size(oracle_.model().inputsPerSample()); }
  std::size_t bytes() {
    auto& tape = oracle_.model().tape();
    return tape.bytesFor(tape.capacity());
  }

  // (name, shape, first) of each parameter, as state dictionaries have them: a view of one row may
  // be a vector or a matrix.
  py::list layout() {
    py::list all;
    std::size_t first = 0;
    oracle_.model().parameters([&](const std::string& name, const auto& view) {
      const bool isVector = name.ends_with("bias") || name.find(".ln") != std::string::npos;
      const py::tuple shape = isVector ? py::tuple(py::make_tuple(view.size()))
                                       : py::make_tuple(view.rows(), view.cols());
      all.append(py::make_tuple(name, shape, first));
      first += view.size();
    });
    return all;
  }

private:
  static constexpr std::size_t mostAtATime = 256; // samples of a micro-batch
  static constexpr const char* thisModel = "this model is";

  static py::ssize_t size(std::size_t n) { return static_cast<py::ssize_t>(n); }
  template <class Id> py::ssize_t samples(std::span<const Id> x) {
    return size(x.size()) / context();
  }

  template <class Id> static std::span<const Id> spanOf(const Indices<Id>& array) {
    return {array.data(), static_cast<std::size_t>(array.size())};
  }

  // Calls f with both arrays as they are if they are int64 or int32, else converted.
  template <class F> auto withIndices(const py::handle& x, const py::handle& y, const F& f) {
    const auto as = [&]<class Id>(Id) {
      return f(py::reinterpret_borrow<Indices<Id>>(x), py::reinterpret_borrow<Indices<Id>>(y));
    };
    if (Indices<std::int64_t>::check_(x) && Indices<std::int64_t>::check_(y))
      return as(std::int64_t{});
    if (Indices<std::int32_t>::check_(x) && Indices<std::int32_t>::check_(y))
      return as(std::int32_t{});
    return f(converted(x, "x"), converted(y, "y"));
  }

  template <class F> auto withSamples(const py::handle& x, const py::handle& y, const F& f) {
    return withIndices(x, y, [&](const auto& xs, const auto& ys) {
      const bool right = xs.ndim() == 2 && xs.shape(0) > 0 && xs.shape(1) == context() &&
                         ys.ndim() == (Model::targetPerInput ? 2 : 1) &&
                         ys.shape(0) == xs.shape(0) &&
                         (!Model::targetPerInput || ys.shape(1) == context());
      if (!right) {
        const std::string expected = "(b, " + std::to_string(context()) + ")";
        throw py::value_error("x has shape " + shapeOf(xs) + " and y " + shapeOf(ys) +
                              "; expected " + expected + " and " +
                              (Model::targetPerInput ? expected : "(b,)"));
      }
      return f(spanOf(xs), spanOf(ys));
    });
  }

  // Runs work for so many indices. A long one runs without the interpreter's lock, with `between` set
  // to look for Ctrl-C.
  template <class Work>
  auto run(std::size_t indices, std::function<void()>& between, const Work& work) {
    if (isBusy_) throw IsBusy(thisModel);
    const std::size_t samples = indices / oracle_.model().inputsPerSample();
    if (samples * oracle_.model().numParameters() < longWork) return work();
    const Busy inUse(isBusy_, thisModel);
    Interrupts interrupts;
    between = std::ref(interrupts);
    const Unlocked unlocked;
    return work();
  }

  nn::Oracle<Model> oracle_;
  bool isBusy_ = false;
};

// A NumPy array over memory of the model `self`, which it keeps alive.
template <class T> py::array_t<T> viewOf(const py::object& self, std::span<T> numbers) {
  return py::array_t<T>(static_cast<py::ssize_t>(numbers.size()), numbers.data(), self);
}

template <class Model> auto registerModel(py::module_& module, const std::string& name) {
  using Bound = BoundModel<Model>;
  return py::class_<Bound>(module, name.c_str())
      .def("loss_and_grad", &Bound::lossAndGradient, py::arg("x"), py::arg("y"),
           py::arg("micro_batch") = "auto", py::arg("threads") = 1, py::arg("accumulate") = false)
      .def("loss", &Bound::loss, py::arg("x"), py::arg("y"), py::arg("micro_batch") = "auto")
      .def("micro_batch_for", &Bound::microBatchFor, py::arg("samples"))
      .def("per_sample_grads", &Bound::perSampleGradients, py::arg("x"), py::arg("y"))
      .def("logits", &Bound::logits, py::arg("x"))
      .def("generate", &Bound::generate, py::arg("n"), py::arg("seed") = 0,
           py::arg("start") = std::vector<std::int64_t>(), py::arg("temperature") = 1.0)
      .def_property_readonly(
          "values",
          [](const py::object& self) { return viewOf(self, self.cast<Bound&>().values()); })
      .def_property_readonly(
          "grads",
          [](const py::object& self) { return viewOf(self, self.cast<Bound&>().gradients()); })
      .def_property_readonly("num_parameters", &Bound::parameters)
      .def_property_readonly("nbytes", &Bound::bytes)
      .def_property_readonly("layout", &Bound::layout);
}

template <class T> void registerModels(py::module_& module, const std::string& dtype) {
  using MLP = nn::CharMLP<T>;
  using GPT = nn::GPT<T>;
  registerModel<MLP>(module, "CharMLP_" + dtype)
      .def(py::init([](py::ssize_t hidden, py::ssize_t vocab, py::ssize_t embed,
                       py::ssize_t context, nn::Seed seed) {
             return std::make_unique<BoundModel<MLP>>(typename MLP::Config{
                 demandPositive(hidden, "hidden"), demandPositive(vocab, "vocab"),
                 demandPositive(embed, "embed"), demandPositive(context, "context"), seed});
           }),
           py::arg("hidden"), py::arg("vocab"), py::arg("embed"), py::arg("context"),
           py::arg("seed"));
  registerModel<GPT>(module, "GPT_" + dtype)
      .def(py::init([](py::ssize_t vocab, py::ssize_t context, py::ssize_t dModel,
                       py::ssize_t layers, py::ssize_t heads, nn::Seed seed) {
             return std::make_unique<BoundModel<GPT>>(typename GPT::Config{
                 demandPositive(vocab, "vocab"), demandPositive(context, "context"),
                 demandPositive(dModel, "d_model"), demandPositive(layers, "layers"),
                 demandPositive(heads, "heads"), seed});
           }),
           py::arg("vocab"), py::arg("context"), py::arg("d_model"), py::arg("layers"),
           py::arg("heads"), py::arg("seed"));
}

} // namespace

void registerModels(py::module_& module) {
  registerModels<float>(module, "float32");
  registerModels<double>(module, "float64");
}

} // namespace burtorch_python
