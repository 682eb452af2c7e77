// bindings/reductions.cpp — the functions of the table that take sequences of Values
// SPDX-License-Identifier: MIT
#include "help.hpp"
#include "lock.hpp"
#include "others.hpp"
#include "value.hpp"

#include <string>
#include <vector>

namespace burtorch_python {

namespace {

// A sequence of Values of one tape, kept alive while it is used.
class Operands {
public:
  explicit Operands(PyObject* iterable)
      : fast_(PySequence_Fast(iterable, "expected Values, or one sequence of Values")) {}
  // The arguments of reduce_sum(values) or reduce_sum(a, b, c).
  static Operands given(PyObject* const* args, Py_ssize_t count) {
    if (count == 1 && !isValue(args[0])) return Operands(args[0]);
    PyObject* const tuple = PyTuple_New(count);
    for (Py_ssize_t i = 0; tuple != nullptr && i < count; ++i)
      PyTuple_SET_ITEM(tuple, i, positive(args[i]));
    return Operands(Owned{}, tuple);
  }
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;
  ~Operands() { Py_XDECREF(fast_); }

  // False with a Python error set if it is not what it should be.
  bool check(AnyTape*& tape) const {
    if (fast_ == nullptr) return false;
    for (Py_ssize_t i = 0; i < size(); ++i)
      if (!checkOne(PySequence_Fast_GET_ITEM(fast_, i), "expected Values, not %.100s", tape))
        return false;
    return true;
  }
  static bool checkOne(PyObject* item, const char* refusal, AnyTape*& tape) {
    if (!isValue(item)) return typeError(refusal, item) != nullptr;
    if (tape != nullptr && asValue(item)->tape != tape) return differentTapes() != nullptr;
    tape = asValue(item)->tape;
    return true;
  }
  Py_ssize_t size() const { return PySequence_Fast_GET_SIZE(fast_); }
  template <class T> std::vector<typename TapeOf<T>::Value> values() const {
    std::vector<typename TapeOf<T>::Value> out;
    out.reserve(static_cast<std::size_t>(size()));
    for (Py_ssize_t i = 0; i < size(); ++i)
      out.push_back(asValue(PySequence_Fast_GET_ITEM(fast_, i))->template as<T>());
    return out;
  }

private:
  struct Owned {};
  Operands(Owned, PyObject* tuple) : fast_(tuple) {}
  PyObject* fast_;
};

// append(), which makes a node or two of so many operands. For a long one room is made under the lock:
// meanwhile others may read what stands on the tape.
template <class T, class Append>
auto appended(TapeOf<T>& t, std::size_t operands, const Append& append) {
  if (operands >= longWork) t.tape.makeRoomFor(t.tape.used() + bt::Extent{2, 2, 0, operands});
  return unlockedIfLong(t, operands, append);
}

// f(tape) on the tape of the operands, or on the current one if there are none.
template <class F> PyObject* onTapeOf(AnyTape* tape, const F& f) {
  return guarded([&] {
    return visit(tape != nullptr ? *tape : currentTape(), [&]<class T>(TapeOf<T>& t) {
      t.prepare();
      const bt::TapeScope<typename TapeOf<T>::Tape> scope(t.tape);
      return f(t);
    });
  });
}

PyObject* reduce(bt::Op op, PyObject* const* args, Py_ssize_t count) {
  const Operands x = Operands::given(args, count);
  AnyTape* tape = nullptr;
  if (!x.check(tape)) return nullptr;
  return onTapeOf(tape, [&]<class T>(TapeOf<T>& t) {
    const auto values = x.template values<T>();
    return newValue(t, appended(t, values.size(), [&] { return Others<T>::apply(op, values); }));
  });
}

PyObject* multiply(bt::Op op, PyObject* xs, PyObject* ys, PyObject* bias) {
  const Operands x(xs), y(ys);
  AnyTape* tape = nullptr;
  if (!x.check(tape) || !y.check(tape)) return nullptr;
  if (bias != nullptr && !Operands::checkOne(bias, "expected a Value as bias, not %.100s", tape))
    return nullptr;
  return onTapeOf(tape, [&]<class T>(TapeOf<T>& t) {
    const auto xv = x.template values<T>(), yv = y.template values<T>();
    return newValue(t, appended(t, xv.size() + yv.size() + 1, [&] {
                      return bias == nullptr ? Others<T>::apply(op, xv, yv)
                                             : Others<T>::apply(op, xv, yv, asValue(bias)->as<T>());
                    }));
  });
}

template <class O> PyObject* reduction(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return reduce(bt::op::Entry<O>::code, args, count);
}

template <class O> PyObject* product(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (!checkCount(count, O::hasBias ? 3 : 2)) return nullptr;
  return multiply(bt::op::Entry<O>::code, args[0], args[1], O::hasBias ? args[2] : nullptr);
}

PyObject* meanAndMeanSquares(PyObject*, PyObject* const* args, Py_ssize_t count) {
  const Operands x = Operands::given(args, count);
  AnyTape* tape = nullptr;
  if (!x.check(tape)) return nullptr;
  return onTapeOf(tape, [&]<class T>(TapeOf<T>& t) {
    const auto values = x.template values<T>();
    const auto [mean, meanSquares] =
        appended(t, 2 * values.size(), [&] { return Others<T>::meanAndMeanSquares(values); });
    PyObject* const first = newValue(t, mean);
    PyObject* const second = newValue(t, meanSquares);
    return Py_BuildValue("NN", first, second);
  });
}

} // namespace

std::vector<PyMethodDef>& reductions() {
  static std::vector<PyMethodDef> all = [] {
    std::vector<PyMethodDef> f{
        {"reduce_mean_and_mean_squares", erased(meanAndMeanSquares), METH_FASTCALL,
         "The mean and the mean of squares of the same Values, which are read once."},
    };
#define BURTORCH_FUNCTION(Name, function)                                                          \
  f.push_back({keep(snakeCase(#function)), erased(reduction<bt::op::Name>), METH_FASTCALL,         \
               help(snakeCase(#function), "(*values)",                                             \
                    "of any number of Values, given as one sequence or one by one.")});
    BURTORCH_REDUCTIONS(BURTORCH_FUNCTION)
#undef BURTORCH_FUNCTION
#define BURTORCH_FUNCTION(Name, function)                                                          \
  f.push_back({keep(snakeCase(#function)), erased(product<bt::op::Name>), METH_FASTCALL,           \
               help(snakeCase(#function), bt::op::Name::hasBias ? "(x, y, bias, /)" : "(x, y, /)", \
                    "of two sequences of Values.")});
    BURTORCH_PRODUCTS(BURTORCH_FUNCTION)
#undef BURTORCH_FUNCTION
    f.push_back({nullptr, nullptr, 0, nullptr});
    return f;
  }();
  return all;
}

} // namespace burtorch_python
