// burtorch/tape/block.hpp — records whose result is a run of nodes: how the tape stores them
// SPDX-License-Identifier: MIT
//
// A block computes many numbers at once: an affine layer, a softmax, a function of every element. Its
// results are ordinary nodes next to each other; one record stands for all of them. The tape knows
// of a block only what follows, so that a program pays for the kernels it names and for no others:
//
//   record      result: the last of the results    b: how many    a: where in the tape's `operands`
//               the description starts
//   description where its BlockMethods are; how many indices the description has; operand views,
//               each as first node, rows, columns; a place among the tape's `constants` with
//               numbers that the block keeps for its pullback; parameters, which are what the block
//               says they are
//
// BlockFrame is a block as its kernels see it. The blocks themselves are in block/.
#pragma once

#include <burtorch/base/config.hpp>
#include <burtorch/kernel/matrix.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

BURTORCH_BEGIN_NAMESPACE

template <class T, class Index> struct BlockFrame;
template <class T, class Index> struct BlockTraits; // view.hpp: what a block says of itself

// What a block is: one constant of this type per block and scalar type.
template <class T, class Index> struct BlockMethods {
  const char *name, *symbol; // of its C++ function; what a picture shows
  void (*forward)(const BlockFrame<T, Index>&);
  void (*pullback)(const BlockFrame<T, Index>&);
  const BlockTraits<T, Index>* traits;
};

namespace detail {

// A description in the tape's array of indices.
template <class T, class Index> class BlockDescription {
public:
  using Methods = BlockMethods<T, Index>;
  static constexpr std::size_t pointerWords = (sizeof(void*) + sizeof(Index) - 1) / sizeof(Index);
  static constexpr std::size_t headWords = pointerWords + 5;
  static constexpr std::size_t wordsFor(std::size_t views, std::size_t parameters) {
    return headWords + 3 * views + parameters;
  }

  explicit BlockDescription(Index* words) : words_(words) {}

  void write(const Methods& methods, std::size_t views, std::size_t parameters,
             std::size_t constantsPlace, std::size_t constants) const {
    const Methods* const pointer = &methods;
    std::memcpy(words_, &pointer, sizeof(void*));
    words_[pointerWords] = static_cast<Index>(wordsFor(views, parameters));
    words_[pointerWords + 1] = static_cast<Index>(views);
    words_[pointerWords + 2] = static_cast<Index>(constantsPlace);
    words_[pointerWords + 3] = static_cast<Index>(constants);
    words_[pointerWords + 4] = 0;
  }

  const Methods& methods() const {
    const Methods* pointer;
    std::memcpy(&pointer, words_, sizeof(void*));
    return *pointer;
  }
  std::size_t size() const { return words_[pointerWords]; }
  std::size_t views() const { return words_[pointerWords + 1]; }
  Index& constantsPlace() const { return words_[pointerWords + 2]; }
  std::size_t constants() const { return words_[pointerWords + 3]; }
  // Views whose gradients nobody wants, as bits; of those that do not fit all are wanted.
  std::size_t hidden() const { return words_[pointerWords + 4]; }
  void hide(std::size_t view) const {
    if (view < std::numeric_limits<Index>::digits)
      words_[pointerWords + 4] = static_cast<Index>(hidden() | (std::size_t{1} << view));
  }
  Index* view(std::size_t i) const { return words_ + headWords + 3 * i; } // first, rows, columns
  std::size_t viewSize(std::size_t i) const { return std::size_t{view(i)[1]} * view(i)[2]; }
  Index* parameters() const { return view(views()); }
  std::size_t parameterCount() const { return size() - wordsFor(views(), 0); }

private:
  Index* words_;
};

} // namespace detail

// A block while it is computed. Operand views and results as matrices, row by row.
template <class T, class Index> struct BlockFrame {
  using Scalar = T;
  T* values;
  T* grads;
  T* kept; // numbers that forward leaves for pullback
  detail::BlockDescription<T, Index> description;
  std::size_t first, count; // of the results
  std::uint64_t hidden = 0; // views, as bits, whose gradients this sweep does not want

  std::size_t views() const { return description.views(); }
  static constexpr std::size_t mostHidden = 64;
  void hide(std::size_t view) { hidden |= std::uint64_t{1} << view; }
  bool wants(std::size_t view) const {
    return view >= mostHidden || (((hidden | description.hidden()) >> view) & 1) == 0;
  }
  std::size_t parameter(std::size_t i) const { return description.parameters()[i]; }
  kernel::Matrix<const T> value(std::size_t i) const { return matrix<const T>(values, i); }
  kernel::Matrix<T> grad(std::size_t i) const { return matrix<T>(grads, i); }
  // The results as a matrix of so many rows.
  kernel::Matrix<T> result(std::size_t rows) const { return results<T>(values, rows); }
  kernel::Matrix<const T> adjoint(std::size_t rows) const { return results<const T>(grads, rows); }

private:
  template <class E> kernel::Matrix<E> matrix(E* base, std::size_t i) const {
    const Index* const v = description.view(i);
    return {base + v[0], v[1], v[2], v[2]};
  }
  template <class E> kernel::Matrix<E> results(E* base, std::size_t rows) const {
    const std::size_t cols = rows == 0 ? 0 : count / rows;
    return {base + first, rows, cols, cols};
  }
};

BURTORCH_END_NAMESPACE
