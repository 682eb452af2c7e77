// bindings/view_operands.hpp — what the files about Views share: appending, shapes, operands
// SPDX-License-Identifier: MIT
#pragma once

#include "register.hpp"
#include "value.hpp"
#include "view.hpp"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace burtorch_python {

template <class T> pybind11::object newView(TapeOf<T>& t, const ViewOf<T>& view, Shape shape) {
  return pybind11::cast(std::make_unique<PyView>(t, view, std::move(shape)));
}
template <class T> pybind11::object valueObject(TapeOf<T>& t, const typename TapeOf<T>::Value& v) {
  PyObject* const value = newValue(t, v);
  if (value == nullptr) throw pybind11::error_already_set();
  return pybind11::reinterpret_steal<pybind11::object>(value);
}

// f(tape, view) of a View's dtype.
template <class F> decltype(auto) with(const PyView& view, const F& f) {
  return visitPlain(*view.tape, [&]<class T>(TapeOf<T>& t) { return f(t, view.as<T>()); });
}

// A new view f<T>() on a tape. The operands' handles are to be read inside f: they may move before.
template <class F> pybind11::object append(AnyTape& tape, const Shape& shape, const F& f) {
  return visitPlain(tape, [&]<class T>(TapeOf<T>& t) -> pybind11::object {
    t.prepare();
    return newView(t, f.template operator()<T>(), shape);
  });
}
// The same for a Value.
template <class F> pybind11::object appendValue(AnyTape& tape, const F& f) {
  return visitPlain(tape, [&]<class T>(TapeOf<T>& t) -> pybind11::object {
    t.prepare();
    const bt::TapeScope<typename TapeOf<T>::Tape> scope(t.tape); // for operands that are empty
    return valueObject(t, f.template operator()<T>());
  });
}

Shape shapeOf(const PyView& view);
Shape shapeOf(const pybind11::array& array);
std::string textOf(const Shape& shape);
std::size_t sizeOf(const Shape& shape);
// What NumPy makes of both; `who` is named where they do not go together.
Shape broadcast(const Shape& x, const Shape& y, const char* who);
// The strides of a view of shape `from` that make it one of shape `to`, which it goes with.
std::vector<std::size_t> stridesFor(const Shape& from, const Shape& to);
// An axis, which may be counted from behind.
std::size_t axisOf(std::ptrdiff_t axis, const Shape& shape);

// The nodes of v at offset + Σ indexₖ·strideₖ: where they are if these are neighbours, else a copy.
template <class T>
ViewOf<T> stridedNodes(const ViewOf<T>& v, std::size_t offset, const Shape& shape,
                       const std::vector<std::size_t>& strides);

// The object as an array, whose dtype is of one of these kinds.
pybind11::array asArray(const pybind11::handle& data, const char* kinds, const char* wanted);
template <class T>
using Numbers = pybind11::array_t<T, pybind11::array::c_style | pybind11::array::forcecast>;
template <class T> Numbers<T> numbersOf(const pybind11::handle& data) {
  return Numbers<T>(asArray(data, "biuf", "numbers"));
}

inline bool isView(const pybind11::handle& object) { return pybind11::isinstance<PyView>(object); }
inline PyView& viewOf(const pybind11::handle& object) { return object.cast<PyView&>(); }
bool isArray(const pybind11::handle& object); // one of no dimensions is a number

// An array or a list of Values as a View; anything else as it is.
pybind11::object asView(const pybind11::handle& object);

// Leaves on a tape; Values are where they are. Numbers that are data get no gradient from blocks.
enum class Role { variables, data };
pybind11::object leaves(AnyTape& tape, const pybind11::handle& data, Role role = Role::variables);

// A View; a Value, which goes with every element; an array, which is data.
class Operand {
public:
  Operand(const pybind11::handle& object, AnyTape& tape);

  AnyTape& tape() const { return *(isView(owner_) ? viewOf(owner_).tape.get() : value()->tape); }
  Shape shape() const { return isView(owner_) ? viewOf(owner_).shape : Shape(); }
  // As if it had that shape, which it goes with.
  template <class T> ViewOf<T> repeated(const Shape& to) const {
    return shape() == to ? as<T>() : stridedNodes<T>(as<T>(), 0, to, stridesFor(shape(), to));
  }
  template <class T> ViewOf<T> as() const {
    if (isView(owner_)) return viewOf(owner_).as<T>();
    const auto v = value()->as<T>();
    return ViewOf<T>::at(v.tape(), v.sysGetRawNodeIndex(), 1, 1);
  }

private:
  const PyValue* value() const { return asValue(owner_.ptr()); }
  pybind11::object owner_;
};

const PyView& demandView(const pybind11::handle& object, const char* what);
const PyView& demandMatrix(const pybind11::handle& object, const char* what);
void demandTape(const PyView& view, const AnyTape& tape);
void demandReduction(const std::string& reduction); // of a loss

// ---- what the class View offers, from the files of the topics -------------------------------------

using ViewClass = pybind11::class_<PyView>;
void addOperators(ViewClass& view);                                     // view_blocks.cpp
void addAxes(ViewClass& view);                                          // view_axes.cpp
pybind11::object item(const PyView& view, const pybind11::object& key); // view_index.cpp
void addInitialize(ViewClass& view);                                    // random.cpp
pybind11::object detachedView(const pybind11::object& view);

} // namespace burtorch_python
