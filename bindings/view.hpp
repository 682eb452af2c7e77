// bindings/view.hpp — burtorch.View: a run of nodes with a shape, of any dtype
// SPDX-License-Identifier: MIT
#pragma once

#include "tape.hpp"

#include <burtorch/view.hpp>

#include <Python.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace burtorch_python {

template <class T> using ViewOf = bt::View<T, SharedMemory>;

using Shape = std::vector<std::ptrdiff_t>;

// The newest node of a view, which has some.
template <class V> std::size_t lastNodeOf(const V& view) {
  return view.sysGetRawNodeIndex() + view.size() - 1;
}

// A View as Python holds it. It stands in the tape's list of live views, and the newest of its nodes
// counts it as a Value: nodes are only ever dropped from the newest down, so the others stay too.
class PyView {
public:
  template <class T> PyView(TapeOf<T>& tape, ViewOf<T> view, Shape shape_);
  ~PyView();
  PyView(const PyView&) = delete;
  PyView& operator=(const PyView&) = delete;

  template <class T> ViewOf<T> as() const {
    ViewOf<T> v;
    static_assert(sizeof(v) == sizeof(handle_) && std::is_trivially_copyable_v<ViewOf<T>>);
    std::memcpy(static_cast<void*>(&v), handle_, sizeof(v));
    return v;
  }
  template <class V> void set(const V& v) { std::memcpy(handle_, &v, sizeof(v)); }

  const Ref<AnyTape> tape;
  const Shape shape; // of at least one axis; the nodes are a matrix whose columns are the last one
  std::string name;

private:
  std::size_t slot_; // in tape->views
  alignas(8) std::byte handle_[sizeof(ViewOf<float>)];
};

// An operation of the table on every element, for the functions of the table; nullptr without an error
// set if the operands are no views.
PyObject* mapView(bt::Op operation, PyObject* x);
PyObject* mapView(bt::Op operation, PyObject* x, PyObject* y);
PyObject* mapView(bt::Op operation, PyObject* x, double lo, double hi);
// The same numbers without a gradient, likewise.
PyObject* detachView(PyObject* x);

} // namespace burtorch_python
