// bindings/view.cpp — burtorch.View: its life, its numbers, its parts
// SPDX-License-Identifier: MIT
#include "view_operands.hpp"

#include <burtorch/block/blocks.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace burtorch_python {

// ---- life of a View -------------------------------------------------------------------------------

template <class T>
PyView::PyView(TapeOf<T>& owner, ViewOf<T> view, Shape shape_)
    : tape(&owner), shape(std::move(shape_)), slot_(owner.views.size()) {
  const auto cols = static_cast<std::size_t>(shape.back());
  const std::size_t rows = sizeOf(Shape(shape.begin(), shape.end() - 1));
  if (rows * cols == 0) view = ViewOf<T>::at(owner.tape, 0, rows, cols);
  else {
    view = view.reshape(rows, cols);
    owner.addValue(lastNodeOf(view));
  }
  set(view);
  owner.views.push_back(this);
}

PyView::~PyView() {
  auto& views = tape->views;
  views[slot_] = views.back();
  views[slot_]->slot_ = slot_;
  views.pop_back();
  visitPlain(*tape, [&]<class T>(TapeOf<T>& t) {
    const auto v = as<T>();
    if (v.size() != 0 && v.isAlive()) t.removeView(lastNodeOf(v));
  });
}

template PyView::PyView(TapeOf<double>&, ViewOf<double>, Shape);
template PyView::PyView(TapeOf<float>&, ViewOf<float>, Shape);

// ---- shapes and numbers ---------------------------------------------------------------------------

namespace {

enum class Part { data, grad };

// A copy of the numbers in an array of this type. The array is made first: what Python does meanwhile
// may move the nodes.
template <Part part> py::array copyOf(const PyView& view, PyTypeObject* type) {
  using Api = py::detail::npy_api;
  return visitPlain(*view.tape, [&]<class T>(TapeOf<T>& t) {
    const Shape shape = shapeOf(view);
    auto array = py::reinterpret_steal<py::array>(Api::get().PyArray_NewFromDescr_(
        type, py::dtype::of<T>().release().ptr(), static_cast<int>(shape.size()),
        reinterpret_cast<const Py_intptr_t*>(shape.data()), nullptr, nullptr, 0, nullptr));
    if (!array) throw py::error_already_set();
    if (part == Part::grad) demandIdle(t); // a sweep may be writing them
    const ViewOf<T> v = view.as<T>();
    const std::span<const T> numbers = part == Part::data ? v.data() : v.gradCopy();
    if (numbers.size() != static_cast<std::size_t>(array.size()))
      throw std::runtime_error("a View changed while it was read");
    std::copy(numbers.begin(), numbers.end(), static_cast<T*>(array.mutable_data()));
    return py::array(std::move(array));
  });
}
py::array plainCopy(const PyView& view) {
  return copyOf<Part::data>(view, py::detail::npy_api::get().PyArray_Type_);
}

// .data and .grad: a copy that can't be written to, because that would be lost.
template <Part part> py::array readOnlyCopy(const PyView& view) {
  static PyObject* const type =
      py::object(py::module_::import("burtorch._numpy").attr("Numbers")).release().ptr();
  if (part == Part::data && view.tape->trace != nullptr) [[unlikely]]
    with(view, [](auto& t, const auto& v) {
      v.check();
      refuseIfTraced(t, v.sysGetRawNodeIndex(), v.size(), "reads .data of a View");
    });
  py::array array = copyOf<part>(view, reinterpret_cast<PyTypeObject*>(type));
  py::detail::array_proxy(array.ptr())->flags &= ~py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
  return array;
}

// An array of the view's shape, or one number for all elements.
template <Part part> void assign(const PyView& view, const py::object& numbers) {
  visitPlain(*view.tape, [&]<class T>(TapeOf<T>& t) {
    const auto array = numbersOf<T>(numbers); // which may run a program that moves the nodes
    if (array.ndim() != 0 && shapeOf(array) != shapeOf(view))
      throw py::value_error(std::string(part == Part::grad ? "grad" : "data") + " of shape " +
                            textOf(shapeOf(array)) + " for a View of shape " +
                            textOf(shapeOf(view)));
    demandIdle(t);
    const ViewOf<T> v = view.as<T>();
    const std::span<T> to = [&] {
      if constexpr (part == Part::grad) return v.grads();
      else return v.data();
    }();
    if (array.ndim() == 0) std::fill(to.begin(), to.end(), *array.data());
    else std::copy_n(array.data(), to.size(), to.begin());
  });
}

// ---- elements, rows, slices -----------------------------------------------------------------------

// Views as runs of nodes, each as long as it can be: a list of (View, positions in the argument). What
// works on numbers one by one, like an optimizer, goes through a model of many layers in one call.
py::list runsOf(const py::list& views) {
  struct Piece {
    AnyTape* tape;
    std::size_t first, size, place;
  };
  std::vector<Piece> parts;
  for (std::size_t i = 0; i < views.size(); ++i) {
    const PyView& view = viewOf(views[i]);
    with(view, [&](auto&, const auto& v) {
      v.check();
      parts.push_back({view.tape.get(), v.sysGetRawNodeIndex(), v.size(), i});
    });
  }
  std::ranges::stable_sort(parts, [](const Piece& x, const Piece& y) {
    return std::pair(x.tape, x.first) < std::pair(y.tape, y.first);
  });
  py::list runs;
  for (std::size_t i = 0; i < parts.size();) {
    const Piece& start = parts[i];
    std::size_t end = start.first;
    py::list places;
    do {
      end = parts[i].first + parts[i].size;
      places.append(parts[i].place);
      ++i;
    } while (i < parts.size() && parts[i].tape == start.tape && parts[i].first == end);
    visitPlain(*start.tape, [&]<class T>(TapeOf<T>& t) {
      const auto run = ViewOf<T>::at(t.tape, start.first, 1, end - start.first);
      runs.append(py::make_tuple(newView(t, run, {static_cast<py::ssize_t>(run.size())}), places));
    });
  }
  return runs;
}

py::object withName(const py::object& view, const std::optional<std::string>& name) {
  if (name) view.attr("name") = *name;
  return view;
}

py::object makeLeaves(const py::object& data, const std::optional<std::string>& name,
                      std::size_t dimensions, const char* what) {
  const py::object given = isView(data) ? data : asArray(data, "biufO", "numbers");
  const Shape shape =
      isView(data) ? shapeOf(viewOf(data)) : shapeOf(py::reinterpret_borrow<py::array>(given));
  if (dimensions == 1 ? shape.size() != 1 : shape.size() < 2)
    throw py::value_error(std::string("a ") + what + " has " +
                          (dimensions == 1 ? "1 dimension" : "2 dimensions or more") +
                          ", not the shape " + textOf(shape));
  return withName(leaves(currentTape(), given), name);
}

py::object reshape(const PyView& view, const py::args& sizes) {
  Shape shape = py::cast<Shape>(sizes.size() == 1 && py::isinstance<py::sequence>(sizes[0])
                                    ? py::list(sizes[0])
                                    : py::list(sizes));
  const auto open = std::ranges::find(shape, -1);
  return with(view, [&]<class T>(TapeOf<T>& t, const ViewOf<T>& v) -> py::object {
    v.check();
    const Shape asked = shape;
    if (open != shape.end()) { // one size that follows from the others
      *open = 1;
      const std::size_t others = sizeOf(shape);
      *open = others == 0 ? -1 : static_cast<py::ssize_t>(v.size() / others);
    }
    if (shape.empty() || std::ranges::any_of(shape, [](py::ssize_t n) { return n < 0; }) ||
        sizeOf(shape) != v.size())
      throw py::value_error("a View of shape " + textOf(view.shape) + " can't become " +
                            textOf(asked));
    return newView(t, v, shape);
  });
}

py::object arrayOfValues(const py::object& view) {
  const auto& v = viewOf(view);
  const py::tuple shape = py::cast(shapeOf(v));
  const py::object flat =
      reshape(v, py::make_tuple(with(v, [](auto&, auto n) { return n.size(); })));
  const py::object array = py::module_::import("numpy").attr("empty")(py::len(flat), "O");
  for (std::size_t i = 0; i < py::len(flat); ++i) array[py::int_(i)] = flat[py::int_(i)];
  return array.attr("reshape")(shape);
}

std::string textFor(const PyView& view) {
  if (!with(view, [](auto&, const auto& v) { return v.isAlive(); }))
    return "<a View whose nodes were rewound>";
  std::string text = py::repr(plainCopy(view)).cast<std::string>(); // array(…)
  text.replace(0, text.find('('), "View");
  if (!view.name.empty())
    text.insert(text.size() - 1, ", name=" + py::repr(py::str(view.name)).cast<std::string>());
  return text;
}

void nameElements(PyView& view, const std::optional<std::string>& name) {
  with(view, [&](auto& t, const auto& v) {
    demandIdle(t);
    v.check();
    if (name) v.setLabel(*name);
    else
      for (const auto& each : v) each.setLabel("");
  });
  view.name = name.value_or("");
}

void backward(const PyView& view) {
  with(view, [&](auto& t, const auto& v) {
    v.check();
    if (v.size() != 1)
      throw py::value_error("backward() needs one number, not a View of shape " +
                            textOf(shapeOf(view)) + "; take its sum(), say");
    if (!sweepFrom(t, v[0])) throw py::error_already_set();
  });
}

} // namespace

// ---- the class ------------------------------------------------------------------------------------

void registerView(py::module_& module) {
  ViewClass c(module, "View",
              "A vector, a matrix or more of Values that stand next to each other on a tape.");
  c.def("__len__", [](const PyView& view) { return shapeOf(view)[0]; })
      .def("__getitem__", &item)
      .def("__iter__",
           [](const py::object& view) {
             return py::reinterpret_steal<py::object>(PySeqIter_New(view.ptr()));
           })
      .def("__repr__", &textFor)
      .def("_repr_mimebundle_",
           [](const py::object& self, const py::args& args, const py::kwargs& keywords) {
             return py::reinterpret_steal<py::object>(
                 notebookDisplay(self.ptr(), args.ptr(), keywords.ptr()));
           })
      .def(
          "__array__",
          [](const py::object& view, const py::object& dtype, const py::object&) {
            if (dtype.is_none() || py::dtype::from_args(dtype).kind() != 'O')
              raiseGraphError(wouldCut("an array made of a View"));
            return arrayOfValues(view);
          },
          py::arg("dtype") = py::none(), py::arg("copy") = py::none(),
          "An array of the Values themselves, with dtype=object; numbers are refused.")
      .def_property_readonly(
          "shape", [](const PyView& view) { return py::tuple(py::cast(shapeOf(view))); },
          "(n,) of a vector, (rows, columns) of a matrix.")
      .def_property_readonly("ndim", [](const PyView& view) { return view.shape.size(); })
      .def_property_readonly(
          "size",
          [](const PyView& view) { return with(view, [](auto&, auto v) { return v.size(); }); })
      .def_property_readonly("tape", [](const PyView& view) { return view.tape; })
      .def_property(
          "data", &readOnlyCopy<Part::data>, &assign<Part::data>,
          "A copy of the numbers as an array that can't be written to. Assign an array of "
          "the same shape, or one\nnumber for all, to change them; x.data -= y does that.")
      .def_property("grad", &readOnlyCopy<Part::grad>, &assign<Part::grad>,
                    "Likewise their gradients.")
      .def_property(
          "name",
          [](const PyView& view) {
            return view.name.empty() ? std::nullopt : std::optional(view.name);
          },
          &nameElements, "A label for people and pictures, or None; element i is called name[i].")
      .def("reshape", &reshape,
           "The same nodes in another shape; one size may be -1: what the others leave.")
      .def("detach", &detachedView, "The same numbers without a gradient; burtorch.stop_gradient.")
      .def("backward", &backward, "Compute the gradients of its one number.")
      .def(
          "zero_grad",
          [](const PyView& view) {
            with(view, [](auto& t, const auto& v) {
              demandIdle(t);
              std::ranges::fill(v.grads(), 0);
            });
          },
          "Set the gradients to 0.");
  addInitialize(c);
  addOperators(c);
  addAxes(c);

  module.def(
      "vector",
      [](const py::object& data, const std::optional<std::string>& name) {
        return makeLeaves(data, name, 1, "vector");
      },
      py::arg("data"), py::arg("name") = py::none(),
      "Leaves on the current tape, in a row. An array or a list of Values becomes a view of these: "
      "without\na copy where they stand next to each other.");
  module.def(
      "matrix",
      [](const py::object& data, const std::optional<std::string>& name) {
        return makeLeaves(data, name, 2, "matrix");
      },
      py::arg("data"), py::arg("name") = py::none(),
      "Leaves on the current tape, row by row, or a view of Values; of two dimensions or more.");
  module.def("_runs", &runsOf, py::arg("views"));
  module.def(
      "_data",
      [](const py::object& numbers, const PyView& beside) {
        return leaves(*beside.tape, numbers, Role::data);
      },
      py::arg("numbers"), py::arg("beside"));
}

} // namespace burtorch_python
