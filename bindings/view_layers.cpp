// bindings/view_layers.cpp — the blocks of layers: convolution, pooling, LSTM and GRU, batch norm, dropout
// SPDX-License-Identifier: MIT
#include "view_operands.hpp"

#include <burtorch/block/batch_norm.hpp>
#include <burtorch/block/convolution.hpp>
#include <burtorch/block/dropout.hpp>
#include <burtorch/block/pooling.hpp>
#include <burtorch/block/recurrent.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace py = pybind11;

namespace burtorch_python {

namespace {

// ---- shapes -----------------------------------------------------------------------------------------

// A new view f<T>() whose shape is asked for once the block has found its sizes right.
template <class F, class S> py::object appendThen(AnyTape& tape, const F& f, const S& shape) {
  return visitPlain(tape, [&]<class T>(TapeOf<T>& t) -> py::object {
    t.prepare();
    const ViewOf<T> view = f.template operator()<T>();
    return newView(t, view, shape(view));
  });
}
Shape matrixShape(const auto& view) {
  return {static_cast<py::ssize_t>(view.rows()), static_cast<py::ssize_t>(view.cols())};
}

std::size_t sizeOf(py::ssize_t n) { return static_cast<std::size_t>(n); }
py::ssize_t productOf(const Shape& shape) {
  py::ssize_t n = 1;
  for (const py::ssize_t each : shape) n *= each;
  return n;
}

// A View, or an array of numbers, which is data; and its shape.
class Samples {
public:
  Samples(const py::object& object, AnyTape& tape, const char* what) {
    if (isArray(object)) {
      const auto array = py::reinterpret_borrow<py::array>(object);
      shape_ = shapeOf(array);
      owner_ = leaves(tape, array.attr("reshape")(1, -1), Role::data);
    } else {
      owner_ = asView(object);
      shape_ = shapeOf(demandView(owner_, what));
    }
    demandTape(view(), tape);
  }
  const PyView& view() const { return viewOf(owner_); }
  const Shape& shape() const { return shape_; }
  // As a matrix of so many rows.
  template <class T> ViewOf<T> rows(std::size_t n) const {
    const auto v = view().as<T>();
    return n == 0 ? v : v.reshape(n, v.size() / n);
  }

private:
  py::object owner_;
  Shape shape_;
};

// One number, or one for each dimension.
using Each = std::variant<std::size_t, std::vector<std::size_t>>;
std::array<std::size_t, 2> pairOf(const Each& each, const char* what) {
  if (const auto* one = std::get_if<std::size_t>(&each)) return {*one, *one};
  const auto& both = std::get<std::vector<std::size_t>>(each);
  if (both.size() != 2)
    throw py::value_error(std::string(what) + " is one number or two, not " +
                          std::to_string(both.size()));
  return {both[0], both[1]};
}

// x as images of `dimensions` sizes (channels, then height and width or a length): those given, else the
// last ones of its own. Before them may stand how many images there are.
struct Images {
  Shape image, before; // its sizes; the number of images, or nothing
  std::size_t count;

  Images(const Samples& x, const std::optional<Shape>& given, std::size_t dimensions,
         const char* names) {
    const Shape& all = x.shape();
    if (given) {
      const py::ssize_t size = productOf(*given), numbers = productOf(all);
      if (given->size() != dimensions || size <= 0 || numbers % size != 0)
        throw py::value_error("x of shape " + textOf(all) + " is not images of shape " +
                              textOf(*given));
      image = *given;
      if (numbers != size || all.size() > 1) before = {numbers / size};
    } else {
      if (all.size() != dimensions && all.size() != dimensions + 1)
        throw py::value_error("x has the shape " + std::string(names) + ", not " + textOf(all) +
                              "; say shape= of one image");
      const auto first = all.end() - static_cast<std::ptrdiff_t>(dimensions);
      image.assign(first, all.end());
      before.assign(all.begin(), first);
    }
    count = sizeOf(productOf(before));
  }
  Shape result(std::initializer_list<std::size_t> sizes) const {
    Shape shape = before;
    for (const std::size_t each : sizes) shape.push_back(static_cast<py::ssize_t>(each));
    return shape;
  }
};

// ---- convolution and pooling ------------------------------------------------------------------------

// The sizes of a filter: the last ones of the weight, or those given.
template <class Given>
Shape filterOf(const PyView& weight, const Given& kernel, std::size_t dimensions) {
  const Shape shape = shapeOf(weight);
  if (kernel) {
    const auto sizes = pairOf(*kernel, "kernel");
    return dimensions == 2
               ? Shape{static_cast<py::ssize_t>(sizes[0]), static_cast<py::ssize_t>(sizes[1])}
               : Shape{static_cast<py::ssize_t>(sizes[0])};
  }
  if (shape.size() != dimensions + 2)
    throw py::value_error(
        "weight has a number of outputs, of channels, and the sizes of a filter; not "
        "the shape " +
        textOf(shape) + "; say kernel=");
  return {shape.end() - static_cast<std::ptrdiff_t>(dimensions), shape.end()};
}

py::object convolution(const PyView& w, const py::object& bias, const Samples& x,
                       const Images& images, const bt::Windows& windows, std::size_t groups,
                       bool isSignal) {
  const PyView* const b = bias.is_none() ? nullptr : &demandView(bias, "bias");
  if (b != nullptr) demandTape(*b, *w.tape);
  const std::size_t outputs = sizeOf(shapeOf(w)[0]);
  if (outputs == 0)
    throw py::value_error("weight of shape " + textOf(shapeOf(w)) + " has no outputs");
  const auto block = [&]<class T>() {
    const auto filters = w.as<T>();
    return bt::conv2d(x.rows<T>(images.count), filters.reshape(outputs, filters.size() / outputs),

                      b == nullptr ? ViewOf<T>() : b->as<T>(), windows, groups);
  };
  return appendThen(*w.tape, block, [&](const auto&) {
    return isSignal ? images.result({outputs, windows.cols()})
                    : images.result({outputs, windows.rows(), windows.cols()});
  });
}

py::object conv2d(const py::object& object, const py::object& weight, const py::object& bias,
                  const Each& stride, const Each& padding, std::size_t groups,
                  const std::optional<Shape>& shape, const std::optional<Each>& kernel) {
  const PyView& w = demandView(weight, "weight");
  const Samples x(object, *w.tape, "x");
  const Images images(x, shape, 3, "(channels, height, width) after the number of images");
  const Shape filter = filterOf(w, kernel, 2);
  const auto strides = pairOf(stride, "stride"), paddings = pairOf(padding, "padding");
  const bt::Windows windows{sizeOf(images.image[0]),
                            sizeOf(images.image[1]),
                            sizeOf(images.image[2]),
                            sizeOf(filter[0]),
                            sizeOf(filter[1]),
                            strides[0],
                            strides[1],
                            paddings[0],
                            paddings[1]};
  return convolution(w, bias, x, images, windows, groups, false);
}

py::object conv1d(const py::object& object, const py::object& weight, const py::object& bias,
                  std::size_t stride, std::size_t padding, std::size_t groups,
                  const std::optional<Shape>& shape, const std::optional<std::size_t>& kernel) {
  const PyView& w = demandView(weight, "weight");
  const Samples x(object, *w.tape, "x");
  const Images images(x, shape, 2, "(channels, length) after the number of signals");
  const Shape filter =
      filterOf(w, kernel ? std::optional<Each>(*kernel) : std::optional<Each>(), 1);
  const bt::Windows windows{sizeOf(images.image[0]),
                            1,
                            sizeOf(images.image[1]),
                            1,
                            sizeOf(filter[0]),
                            1,
                            stride,
                            0,
                            padding};
  return convolution(w, bias, x, images, windows, groups, true);
}

template <class F>
py::object pool(const py::object& object, const Each& kernel, const std::optional<Each>& stride,
                const std::optional<Shape>& shape, const F& f) {
  const py::object viewed = asView(object);
  const Samples x(viewed, *demandView(viewed, "x").tape, "x");
  const Images images(x, shape, 3, "(channels, height, width) after the number of images");
  const auto sizes = pairOf(kernel, "kernel"), strides = pairOf(stride.value_or(kernel), "stride");
  const bt::Windows windows{sizeOf(images.image[0]),
                            sizeOf(images.image[1]),
                            sizeOf(images.image[2]),
                            sizes[0],
                            sizes[1],
                            strides[0],
                            strides[1]};
  return appendThen(
      *x.view().tape, [&]<class T>() { return f(x.rows<T>(images.count), windows); },
      [&](const auto&) {
        return images.result({windows.channels, windows.rows(), windows.cols()});
      });
}

// ---- LSTM and GRU -----------------------------------------------------------------------------------

template <class F>
py::object recurrent(const py::object& object, const py::object& weightIh,
                     const py::object& weightHh, const py::object& biasIh, const py::object& biasHh,
                     const py::object& initial, std::optional<std::size_t> steps, const F& f) {
  const PyView &wx = demandMatrix(weightIh, "weight_ih"), &wh = demandMatrix(weightHh, "weight_hh");
  AnyTape& tape = *wx.tape;
  const Samples x(object, tape, "x");
  const Shape& shape = x.shape();
  if (shape.size() != 2 && shape.size() != 3)
    throw py::value_error("x has the shape (samples, steps, inputs) or (rows, inputs), not " +
                          textOf(shape));
  const auto optional = [&](const py::object& each, const char* what) -> const PyView* {
    if (each.is_none()) return nullptr;
    const PyView& view = demandView(each, what);
    demandTape(view, tape);
    return &view;
  };
  demandTape(wh, tape);
  const PyView *bx = optional(biasIh, "bias_ih"), *bh = optional(biasHh, "bias_hh"),
               *first = optional(initial, "initial");
  const std::size_t rows = sizeOf(productOf(shape) / std::max<py::ssize_t>(shape.back(), 1));
  const std::size_t t = steps.value_or(sizeOf(shape[shape.size() - 2]));
  const auto block = [&]<class T>() {
    const auto as = [](const PyView* view) { return view ? view->as<T>() : ViewOf<T>(); };
    return f(bt::RecurrentOperands<ViewOf<T>>{x.rows<T>(rows), wx.as<T>(), wh.as<T>(), as(bx),
                                              as(bh), as(first)},
             t);
  };
  return appendThen(tape, block, [](const auto& view) { return matrixShape(view); });
}

// ---- batch norm and dropout -------------------------------------------------------------------------

py::object batchNorm(const py::object& object, const py::object& weight, const py::object& bias,
                     const py::object& runningMean, const py::object& runningVar, bool training,
                     double momentum, double eps) {
  const PyView &w = demandView(weight, "weight"), &b = demandView(bias, "bias"),
               &mean = demandView(runningMean, "running_mean"),
               &variance = demandView(runningVar, "running_var");
  const Samples x(object, *w.tape, "x");
  for (const PyView* each : {&b, &mean, &variance}) demandTape(*each, *w.tape);
  const Shape& shape = x.shape();
  const py::ssize_t channels = productOf(shapeOf(w));
  // Of more than two dimensions the second is the channels'; a matrix may hold them flat.
  if (shape.size() < 2 || (shape.size() > 2 && shape[1] != channels))
    throw py::value_error("x of shape " + textOf(shape) + " has no " + std::to_string(channels) +
                          " channels after the number of samples");
  return append(*w.tape, shape, [&]<class T>() {
    return bt::batchNorm(x.rows<T>(sizeOf(shape[0])), w.as<T>(), b.as<T>(), mean.as<T>().constant(),
                         variance.as<T>().constant(), sizeOf(channels),
                         training ? bt::Statistics::batch : bt::Statistics::running,
                         static_cast<T>(momentum), static_cast<T>(eps));
  });
}

py::object dropout(const py::object& object, double p, std::uint64_t key) {
  const py::object viewed = asView(object);
  const PyView& x = demandView(viewed, "x");
  return append(*x.tape, x.shape,
                [&]<class T>() { return bt::dropout(x.as<T>(), static_cast<T>(p), key); });
}

py::object everyRow(const PyView& x, std::size_t first, std::size_t distance, std::size_t parts) {
  const auto block = [&]<class T>() {
    const auto v = x.as<T>();
    return bt::everyRow(v.reshape(v.rows() * parts, v.cols() / std::max<std::size_t>(parts, 1)),
                        first, distance);
  };
  return appendThen(*x.tape, block, [](const auto& view) { return matrixShape(view); });
}

} // namespace

void registerLayers(py::module_& module) {
  module.def(
      "conv2d", &conv2d, py::arg("x"), py::arg("weight"), py::arg("bias") = py::none(),
      py::arg("stride") = 1, py::arg("padding") = 0, py::arg("groups") = 1,
      py::arg("shape") = py::none(), py::arg("kernel") = py::none(),
      "Filters over images: x (b, channels, height, width), or without b; weight (outputs, "
      "channels / groups, height, width).\nshape= says the sizes of one image and kernel= "
      "those of a filter where views are matrices with a row for each. An array in the place "
      "of x is data.");
  module.def("conv1d", &conv1d, py::arg("x"), py::arg("weight"), py::arg("bias") = py::none(),
             py::arg("stride") = 1, py::arg("padding") = 0, py::arg("groups") = 1,
             py::arg("shape") = py::none(), py::arg("kernel") = py::none(),
             "Filters over signals: as conv2d, without the height.");
  module.def(
      "max_pool2d",
      [](const py::object& x, const Each& kernel, const std::optional<Each>& stride,
         const std::optional<Shape>& shape) {
        return pool(x, kernel, stride, shape,
                    [](const auto& v, const bt::Windows& g) { return bt::maxPool2d(v, g); });
      },
      py::arg("x"), py::arg("kernel"), py::arg("stride") = py::none(),
      py::arg("shape") = py::none(),
      "The largest number of each window of each channel; of equal ones the first takes the "
      "gradient. The stride is the kernel's size unless given.");
  module.def(
      "avg_pool2d",
      [](const py::object& x, const Each& kernel, const std::optional<Each>& stride,
         const std::optional<Shape>& shape) {
        return pool(x, kernel, stride, shape,
                    [](const auto& v, const bt::Windows& g) { return bt::avgPool2d(v, g); });
      },
      py::arg("x"), py::arg("kernel"), py::arg("stride") = py::none(),
      py::arg("shape") = py::none(), "The mean of each window of each channel.");
  module.def(
      "lstm",
      [](const py::object& x, const py::object& wx, const py::object& wh, const py::object& bx,
         const py::object& bh, const py::object& initial, std::optional<std::size_t> steps) {
        return recurrent(x, wx, wh, bx, bh, initial, steps,
                         [](const auto& o, std::size_t t) { return bt::lstm(o, t); });
      },
      py::arg("x"), py::arg("weight_ih"), py::arg("weight_hh"), py::arg("bias_ih") = py::none(),
      py::arg("bias_hh") = py::none(), py::arg("initial") = py::none(),
      py::arg("steps") = py::none(),
      "An LSTM over whole sequences, x (samples, steps, inputs), or rows sample by sample with "
      "steps=.\nThe result has a row for each step of each sample: the states h and c side by "
      "side, "
      "as `initial` has for each sample.");
  module.def(
      "gru",
      [](const py::object& x, const py::object& wx, const py::object& wh, const py::object& bx,
         const py::object& bh, const py::object& initial, std::optional<std::size_t> steps) {
        return recurrent(x, wx, wh, bx, bh, initial, steps,
                         [](const auto& o, std::size_t t) { return bt::gru(o, t); });
      },
      py::arg("x"), py::arg("weight_ih"), py::arg("weight_hh"), py::arg("bias_ih") = py::none(),
      py::arg("bias_hh") = py::none(), py::arg("initial") = py::none(),
      py::arg("steps") = py::none(),
      "A GRU over whole sequences, as lstm; the result has the state h of each step.");
  module.def(
      "batch_norm", &batchNorm, py::arg("x"), py::arg("weight"), py::arg("bias"),
      py::arg("running_mean"), py::arg("running_var"), py::arg("training") = false,
      py::arg("momentum") = 0.1, py::arg("eps") = 1e-5,
      "Each channel of x (samples, channels, …) shifted and scaled to mean 0 and variance 1, "
      "times weight, plus bias.\nIn training by the batch's own mean and variance, towards "
      "which the running ones move; else by the running ones.");
  module.def("dropout", &dropout, py::arg("x"), py::arg("p"), py::arg("key"),
             "Each element is 0 with probability p, else divided by 1 - p; the key, 64 bits, says "
             "which.");
  module.def("_every_row", &everyRow, py::arg("x"), py::arg("first"), py::arg("distance"),
             py::arg("parts") = 1,
             "Row `first` of each `distance` rows, where each row of x counts as so many rows side "
             "by side.");
}

} // namespace burtorch_python
