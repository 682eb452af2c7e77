// burtorch/view.hpp — a handle to nodes that stand next to each other, as a vector or a matrix
// SPDX-License-Identifier: MIT
//
// A View is to a run of nodes what a Value is to one: a tape, where the run starts, and a shape. It
// owns nothing, is cheap to copy, and is a range of Values, so the reductions and inner products of
// value.hpp take it as it is. Matrices are row by row; a vector is a matrix of one row. The blocks
// that compute with whole views are in block/.
#pragma once

#include <burtorch/tape/tape.hpp>
#include <burtorch/value.hpp>

#include <algorithm>
#include <compare>
#include <concepts>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <ranges>
#include <span>
#include <string>
#include <utility>

BURTORCH_BEGIN_NAMESPACE

namespace detail {

// Indices given from outside: each at least 0 and below the limit.
template <std::integral I>
void demandBelow(std::span<const I> indices, std::size_t limit, const char* what) {
  for (std::size_t i = 0; i < indices.size(); ++i)
    if (std::cmp_less(indices[i], 0) || std::cmp_greater_equal(indices[i], limit))
      fail(ErrorKind::badArgument, std::string(what) + " " + std::to_string(indices[i]) +
                                       " at position " + std::to_string(i) +
                                       " is not between 0 and " + std::to_string(limit) + " - 1");
}

inline std::string shapeText(std::size_t rows, std::size_t cols) {
  return std::to_string(rows) + "×" + std::to_string(cols);
}

} // namespace detail

template <Scalar T, class... Options> class View {
public:
  using Scalar = T;
  using TapeType = Tape<T, Options...>;
  using Index = typename TapeType::Index;
  using Element = Value<T, Options...>;

  View() = default;

  // Leaves: rows × cols of them, with the given numbers (row by row), or all 0.
  View(TapeType& tape, std::size_t rows, std::size_t cols, std::span<const T> numbers = {}) {
    const std::size_t n = detail::demandProduct(rows, cols);
    if (!numbers.empty() && numbers.size() != n)
      detail::fail(ErrorKind::badArgument, "a view of " + detail::shapeText(rows, cols) +
                                               " numbers was given " +
                                               std::to_string(numbers.size()));
    // Numbers that lie on this tape may move when it grows.
    const std::less<const T*> before;
    const T* const old = tape.values_;
    const bool areHere = !before(numbers.data(), old) && before(numbers.data(), old + tape.size());
    *this = at(tape, tape.leaves(n), rows, cols);
    if (numbers.empty()) std::fill_n(tape.values_ + index_, size(), T(0));
    else
      std::copy_n(areHere ? tape.values_ + (numbers.data() - old) : numbers.data(), size(),
                  tape.values_ + index_);
  }

  // Nodes that exist: rows × cols of them from `first` on.
  static View at(TapeType& tape, std::size_t first, std::size_t rows, std::size_t cols) {
    if (first > tape.size() || (cols != 0 && rows > (tape.size() - first) / cols))
      detail::fail(ErrorKind::badArgument, "a view of " + detail::shapeText(rows, cols) +
                                               " nodes from " + std::to_string(first) +
                                               " on: the tape holds " +
                                               std::to_string(tape.size()));
    View v;
    v.tape_ = &tape;
    v.index_ = static_cast<Index>(first);
    v.rows_ = rows;
    v.cols_ = cols;
#if BURTORCH_CHECKS
    if (v.size() != 0) v.birth_ = tape.births_[first + v.size() - 1];
#endif
    return v;
  }

  std::size_t rows() const { return rows_; }
  std::size_t cols() const { return cols_; }
  std::size_t size() const { return rows_ * cols_; }
  bool isEmpty() const { return tape_ == nullptr; } // no tape; a view of no nodes has one
  Index sysGetRawNodeIndex() const { return index_; }
  TapeType& tape() const {
    check();
    return *tape_;
  }

  std::span<T> data() const {
    check();
    return {tape_->values_ + index_, size()};
  }
  std::span<T> grads() const {
    check();
    return tape_->grads().subspan(index_, size());
  }
  std::span<const T> constGrads() const { // unlike after grads(), the next sweep need not clear
    check();
    return {tape_->grads_ + index_, size()};
  }
  std::span<const T> gradCopy() const { return constGrads(); } // its old name, though no copy

  Element operator[](std::size_t i) const {
    demand(i < size(), "element", i);
    return Element::at(*tape_, index_ + i);
  }
  Element operator()(std::size_t i, std::size_t j) const {
    demand(i < rows_, "row", i);
    demand(j < cols_, "column", j);
    return Element::at(*tape_, index_ + i * cols_ + j);
  }
  View row(std::size_t i) const { return slice(i, 1); }
  // Rows [first, first + count).
  View slice(std::size_t first, std::size_t count) const {
    demand(first <= rows_ && count <= rows_ - first, "row", first + count);
    return part(index_ + first * cols_, count, cols_);
  }
  // `count` numbers of a vector.
  View segment(std::size_t first, std::size_t count) const {
    demand(first <= size() && count <= size() - first, "element", first + count);
    return part(index_ + first, 1, count);
  }
  View reshape(std::size_t rows, std::size_t cols) const {
    check();
    if (detail::sizeProduct(rows, cols) != size())
      detail::fail(ErrorKind::badArgument, "a view of " + detail::shapeText(rows_, cols_) +
                                               " can't become " + detail::shapeText(rows, cols));
    return part(index_, rows, cols);
  }

  // The same nodes as data: blocks that are made from the result give them no gradient and save the
  // work. (Half of a layer's backward pass is the gradient of its input.)
  View constant() const {
    View v = *this;
    v.isConstant_ = true;
    return v;
  }
  bool isConstant() const { return isConstant_; }

  void setLabel(const std::string& label) const {
    for (std::size_t i = 0; i < size(); ++i)
      (*this)[i].setLabel(size() == 1 ? label : label + "[" + std::to_string(i) + "]");
  }

  bool isAlive() const {
    if (tape_ == nullptr || index_ + size() > tape_->size()) return false;
#if BURTORCH_CHECKS
    return size() == 0 || tape_->births_[index_ + size() - 1] == birth_;
#else
    return true;
#endif
  }
  void check() const {
    BURTORCH_ASSERT(tape_ != nullptr, emptyHandle, "an empty View was used");
    BURTORCH_ASSERT(isAlive(), staleHandle,
                    "a View was used after its nodes (from index " + std::to_string(index_) +
                        " on) were rewound or collected away");
  }

  // Values one after the other.
  class Iterator {
  public:
    using value_type = Element;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::random_access_iterator_tag;
    using pointer = void;
    using reference = Element;

    Iterator() = default;
    Iterator(TapeType* tape, std::size_t node) : tape_(tape), node_(node) {}
    Element operator*() const { return Element::at(*tape_, node_); }
    Element operator[](difference_type n) const { return *(*this + n); }
    Iterator& operator+=(difference_type n) {
      node_ += static_cast<std::size_t>(n);
      return *this;
    }
    Iterator& operator-=(difference_type n) { return *this += -n; }
    Iterator& operator++() { return *this += 1; }
    Iterator& operator--() { return *this += -1; }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    Iterator operator--(int) {
      const Iterator before = *this;
      --*this;
      return before;
    }
    friend Iterator operator+(Iterator i, difference_type n) { return i += n; }
    friend Iterator operator+(difference_type n, Iterator i) { return i += n; }
    friend Iterator operator-(Iterator i, difference_type n) { return i -= n; }
    friend difference_type operator-(const Iterator& i, const Iterator& j) {
      return static_cast<difference_type>(i.node_ - j.node_);
    }
    friend bool operator==(const Iterator& i, const Iterator& j) { return i.node_ == j.node_; }
    friend auto operator<=>(const Iterator& i, const Iterator& j) { return i.node_ <=> j.node_; }

  private:
    TapeType* tape_ = nullptr;
    std::size_t node_ = 0;
  };
  Iterator begin() const {
    check();
    return {tape_, index_};
  }
  Iterator end() const { return begin() + static_cast<std::ptrdiff_t>(size()); }

private:
  friend TapeType;
  void settleOn(TapeType& tape) { // after collect()
    const bool isConstant = isConstant_;
    *this = at(tape, index_, rows_, cols_);
    isConstant_ = isConstant;
  }

  View part(std::size_t first, std::size_t rows, std::size_t cols) const {
    View v = at(*tape_, first, rows, cols);
    v.isConstant_ = isConstant_;
    return v;
  }

  void demand(bool inside, const char* what, std::size_t i) const {
    check();
    if (!inside)
      detail::fail(ErrorKind::badArgument, std::string("a view of ") +
                                               detail::shapeText(rows_, cols_) + " has no " + what +
                                               " " + std::to_string(i));
  }

  TapeType* tape_ = nullptr;
  Index index_ = 0;
#if BURTORCH_CHECKS
  std::uint32_t birth_ = 0; // of the last node
#endif
  std::size_t rows_ = 0, cols_ = 0;
  bool isConstant_ = false;
};

namespace detail {

template <class V> inline constexpr bool isView = false;
template <class T, class... Options> inline constexpr bool isView<View<T, Options...>> = true;

} // namespace detail

template <class V>
concept AnyView = detail::isView<V>;

// Elements of type E next to each other in memory: std::vector, std::array, std::span, …
template <class R, class E>
concept ContiguousRangeOf =
    std::ranges::contiguous_range<const R> && std::ranges::sized_range<const R> &&
    std::same_as<std::ranges::range_value_t<const R>, E>;

template <class R>
concept ContiguousViews =
    ContiguousRangeOf<R, std::ranges::range_value_t<R>> && AnyView<std::ranges::range_value_t<R>>;
template <class R>
concept ContiguousIntegers = ContiguousRangeOf<R, std::ranges::range_value_t<R>> &&
                             std::integral<std::ranges::range_value_t<R>>;

namespace detail {

template <class R> std::span<const std::ranges::range_value_t<R>> spanOf(const R& range) {
  return range;
}

} // namespace detail

// What a block may say of itself; see block/describe.hpp. Each may be null, or `none`.
template <class T, class Index> struct BlockTraits {
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  bool (*keepsSamples)(const BlockFrame<T, Index>&, std::size_t view,
                       std::size_t samples) = nullptr;
  bool (*isAssigned)(const BlockFrame<T, Index>&, std::size_t view) = nullptr;
  std::size_t gradients = none, key = none; // places among the parameters
};

template <class B, class T, class Index>
inline constexpr BlockTraits<T, Index> blockTraits = [] {
  using Frame = BlockFrame<T, Index>;
  BlockTraits<T, Index> traits;
  if constexpr (requires(const Frame& f) { B::keepsSamples(f, 0, 0); })
    traits.keepsSamples = [](const Frame& f, std::size_t view, std::size_t samples) {
      return B::keepsSamples(f, view, samples);
    };
  if constexpr (requires { B::gradients; }) {
    traits.gradients = B::gradients;
    traits.isAssigned = [](const Frame& f, std::size_t view) { return B::isAssigned(f, view); };
  }
  if constexpr (requires { B::key; }) traits.key = B::key;
  return traits;
}();

// Leaves on a tape.
template <class T, class... O>
View<T, O...> vector(Tape<T, O...>& tape, std::span<const std::type_identity_t<T>> numbers) {
  return {tape, 1, numbers.size(), numbers};
}
template <class T, class... O>
View<T, O...> matrix(Tape<T, O...>& tape, std::size_t rows, std::size_t cols,
                     std::span<const std::type_identity_t<T>> numbers = {}) {
  return {tape, rows, cols, numbers};
}

// ---- applying a block: one append ----------------------------------------------------------------

// The methods of a block for a scalar type, in one place. A block whose results have no adjoint
// contributes nothing, not even 0·∞ = NaN, and is not pulled, unless it has gradients to assign.
template <class B, class T, class Index>
inline constexpr BlockMethods<T, Index> blockMethods{
    B::name, B::symbol, [](const BlockFrame<T, Index>& frame) { B::forward(frame); },
    [](const BlockFrame<T, Index>& frame) {
      const std::span<const T> adjoint(frame.grads + frame.first, frame.count);
      bool assigns = false;
      if constexpr (requires { B::assigns(frame); }) assigns = B::assigns(frame);
      if (!assigns && std::ranges::all_of(adjoint, [](const T& g) { return isZero(g); })) return;
      B::pullback(frame);
    },
    &blockTraits<B, T, Index>};

// rows × cols results of a block of `operands`, which live on one tape; it keeps `kept` numbers, of
// which the first may be given. Its parameters are those in `parameters`, then those in `more` (a
// range of integers, say the rows to gather). What the block is comes as a pointer: one function serves all.
template <class T, class... O, class More = std::span<const std::size_t>>
View<T, O...>
appendBlock(const BlockMethods<T, typename Tape<T, O...>::Index>& methods, std::size_t rows,
            std::size_t cols, std::size_t kept, std::span<const View<T, O...>> operands,
            std::span<const std::size_t> parameters = {},
            std::span<const std::type_identity_t<T>> numbers = {}, const More& more = {}) {
  using Index = typename Tape<T, O...>::Index;
  if (operands.empty()) detail::fail(ErrorKind::badArgument, "a block of no operands");
  auto& tape = operands.front().tape();
  for (const auto& operand : operands)
    if (&operand.tape() != &tape)
      detail::fail(ErrorKind::differentTapes, "operands live on two tapes");
  const std::size_t n = detail::demandProduct(rows, cols);
  if (n == 0) return View<T, O...>(tape, rows, cols); // a record has at least one result
  const Index first =
      tape.pushBlock(methods, n, kept, operands.size(), parameters.size() + std::ranges::size(more),
                     [&](const detail::BlockDescription<T, Index>& d, T* keep) {
                       std::copy(numbers.begin(), numbers.end(), keep);
                       for (std::size_t i = 0; i < operands.size(); ++i) {
                         d.view(i)[0] = operands[i].sysGetRawNodeIndex();
                         d.view(i)[1] = static_cast<Index>(operands[i].rows());
                         d.view(i)[2] = static_cast<Index>(operands[i].cols());
                         if (operands[i].isConstant()) d.hide(i);
                       }
                       Index* next = d.parameters();
                       for (const std::size_t parameter : parameters)
                         *next++ = static_cast<Index>(parameter);
                       for (const auto parameter : more) *next++ = static_cast<Index>(parameter);
                     });
  return View<T, O...>::at(tape, first, rows, cols);
}

template <class B, class T, class... O, class More = std::span<const std::size_t>>
View<T, O...>
applyBlock(std::size_t rows, std::size_t cols, std::size_t kept,
           std::span<const View<T, O...>> operands, std::span<const std::size_t> parameters = {},
           std::span<const std::type_identity_t<T>> numbers = {}, const More& more = {}) {
  return appendBlock(blockMethods<B, T, typename Tape<T, O...>::Index>, rows, cols, kept, operands,
                     parameters, numbers, more);
}

BURTORCH_END_NAMESPACE
