// bindings/others.cpp — every operation on every dtype, where speed does not matter
// SPDX-License-Identifier: MIT
#include "others.hpp"

#include <burtorch/run/anomaly.hpp>

namespace burtorch_python {

namespace {

template <class O, class... X>
concept Takes = requires(const X&... x) { bt::apply<O>(x...); };

// Calls bt::apply with the operation's struct; that the operands suit it was checked by the caller.
template <class V, class... X> V applyCode(bt::Op op, const X&... x) {
  return bt::detail::dispatch(bt::codeOf(op),
                              [&x...]<class O, bt::Form f>(bt::op::Instance<O, f>) -> V {
                                if constexpr (Takes<O, X...>) return bt::apply<O>(x...);
                                else BURTORCH_UNREACHABLE();
                              });
}

} // namespace

template <class T> auto Others<T>::apply(bt::Op op, const V& x) -> V { return applyCode<V>(op, x); }
template <class T> auto Others<T>::apply(bt::Op op, const V& x, const V& y) -> V {
  return applyCode<V>(op, x, y);
}
template <class T> auto Others<T>::apply(bt::Op op, const V& x, const T& y) -> V {
  return applyCode<V>(op, x, y);
}
template <class T> auto Others<T>::apply(bt::Op op, const T& x, const V& y) -> V {
  return applyCode<V>(op, x, y);
}
template <class T> auto Others<T>::apply(bt::Op op, const V& x, const T& lo, const T& hi) -> V {
  return applyCode<V>(op, x, lo, hi);
}
template <class T> auto Others<T>::apply(bt::Op op, const Values& x) -> V {
  return applyCode<V>(op, x);
}
template <class T> auto Others<T>::apply(bt::Op op, const Values& x, const Values& y) -> V {
  return applyCode<V>(op, x, y);
}
template <class T>
auto Others<T>::apply(bt::Op op, const Values& x, const Values& y, const V& bias) -> V {
  return applyCode<V>(op, x, y, bias);
}

template <class T> auto Others<T>::meanAndMeanSquares(const Values& x) -> std::pair<V, V> {
  const auto [mean, meanSquares] = bt::reduceMeanAndMeanSquares(x);
  return {mean, meanSquares};
}

template <class T> bool Others<T>::backward(const V& root, bool (*stop)(), std::size_t every) {
  return bt::backwardUntil(root, stop, every);
}

template <class T> std::size_t Others<T>::backwardWatched(const V& root) {
  return bt::backwardWatched(root);
}

template <class T>
void Others<T>::backwardWithScratch(const V& root, Indices& order, Indices& leaves, Indices& stack,
                                    bool reuse) {
  if (reuse) bt::backwardWithScratchStorage<bt::Reuse::orderAndLeaves>(root, order, leaves, stack);
  else bt::backwardWithScratchStorage(root, order, leaves, stack);
}

#define BURTORCH_DTYPE(name, type) template struct Others<type>;
BURTORCH_DTYPES(BURTORCH_DTYPE)
#undef BURTORCH_DTYPE

} // namespace burtorch_python
