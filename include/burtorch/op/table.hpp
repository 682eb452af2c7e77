// burtorch/op/table.hpp — THE table: every operation: its struct, its functions' name, its meaning
// SPDX-License-Identifier: MIT
//
// From the lists below come the enumerators, dispatch, the functions on Values and the tests'
// enumeration; from the structs' `meaning` Python's help, and with scripts/make_table.py the types
// of its functions and docs/operations.md. CONTRIBUTING.md says how to add an operation.
#pragma once

#include <burtorch/op/binary.hpp>
#include <burtorch/op/reduce.hpp>
#include <burtorch/op/unary.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

// X(struct in namespace op, name of the C++ function)
#define BURTORCH_UNARY_OPERATIONS(X)                                                               \
  X(Relu, relu)                                                                                    \
  X(Tanh, tanh)                                                                                    \
  X(Exp, exp)                                                                                      \
  X(NegLog, negativeLog)                                                                           \
  X(Sigmoid, sigmoid)                                                                              \
  X(Inv, inv)                                                                                      \
  X(Sqr, sqr)                                                                                      \
  X(Cub, pow3)                                                                                     \
  X(Log, logarithm)                                                                                \
  X(Sqrt, sqrt)                                                                                    \
  X(InvSqrt, invSqrt)                                                                              \
  X(Negative, negative)                                                                            \
  X(Abs, abs)                                                                                      \
  X(Sin, sin)                                                                                      \
  X(Cos, cos)                                                                                      \
  X(Tan, tan)                                                                                      \
  X(Asin, asin)                                                                                    \
  X(Acos, acos)                                                                                    \
  X(Atan, atan)                                                                                    \
  X(Sinh, sinh)                                                                                    \
  X(Cosh, cosh)                                                                                    \
  X(Erf, erf)                                                                                      \
  X(Log1p, log1p)                                                                                  \
  X(Expm1, expm1)                                                                                  \
  X(Softplus, softplus)                                                                            \
  X(Gelu, gelu)                                                                                    \
  X(Silu, silu)

#define BURTORCH_BINARY_OPERATIONS(X)                                                              \
  X(BinaryAdd, add)                                                                                \
  X(BinarySub, sub)                                                                                \
  X(BinaryMult, mul)                                                                               \
  X(BinaryMultByConst, mulByConstant)                                                              \
  X(BinaryDiv, div)                                                                                \
  X(BinaryMean, mean)                                                                              \
  X(BinaryAddSquares, addSquares)                                                                  \
  X(BinaryMeanSquares, meanSquares)                                                                \
  X(BinaryNegativeMean, negativeMean)                                                              \
  X(BinaryPow, pow)                                                                                \
  X(BinaryMin, min)                                                                                \
  X(BinaryMax, max)                                                                                \
  X(BinaryAtan2, atan2)                                                                            \
  X(BinaryHypot, hypot)

#define BURTORCH_CLIPPED_OPERATIONS(X) X(Clamp, clamp)

#define BURTORCH_REDUCTIONS(X)                                                                     \
  X(AddVarying, reduceSum)                                                                         \
  X(SubVarying, reduceSub)                                                                         \
  X(MulVarying, reduceMul)                                                                         \
  X(MeanVarying, reduceMean)                                                                       \
  X(SumOfSquaresVarying, reduceSumOfSquares)                                                       \
  X(MeanSquaresVarying, reduceMeanSquares)                                                         \
  X(NegativeMeanVarying, reduceNegativeMean)                                                       \
  X(VarianceBiasedVarying, varianceBiased)                                                         \
  X(VarianceVarying, variance)                                                                     \
  X(MaxVarying, reduceMax)                                                                         \
  X(MinVarying, reduceMin)

#define BURTORCH_PRODUCTS(X)                                                                       \
  X(InnerProductNoBias, innerProduct)                                                              \
  X(InnerProductWithBias, innerProductWithBias)

#define BURTORCH_OPERATIONS(X)                                                                     \
  BURTORCH_UNARY_OPERATIONS(X)                                                                     \
  BURTORCH_BINARY_OPERATIONS(X)                                                                    \
  BURTORCH_CLIPPED_OPERATIONS(X)                                                                   \
  BURTORCH_REDUCTIONS(X)                                                                           \
  BURTORCH_PRODUCTS(X)

BURTORCH_BEGIN_NAMESPACE

enum class Op : std::uint8_t {
  eLeaf,
#define BURTORCH_ENUMERATOR(Name, function) e##Name,
  BURTORCH_OPERATIONS(BURTORCH_ENUMERATOR)
#undef BURTORCH_ENUMERATOR
      eBlock, // any of the blocks in block/
};

// Which of its forms an operation has in a record. What a record's fields then hold is its Layout
// (op/record.hpp). A Unary, a Clipped and a Block have form 0.
enum class Form : std::uint8_t {
  nodes = 0,      // Binary: of two nodes
  nodeNumber = 1, // Binary: of a node and a plain number
  numberNode = 2, // Binary: of a plain number and a node
  run = 0,        // Reduction, Product: of neighbouring nodes
  list = 1,       // Reduction, Product: of any nodes
};

// One small number for operation and form together: what a record stores and the sweep switches on.
using Code = std::uint16_t;

constexpr Code codeOf(Op operation, Form form = Form::nodes) { // from 0 on: leaves have no records
  return static_cast<Code>((static_cast<unsigned>(operation) - 1) * 4 +
                           static_cast<unsigned>(form));
}
constexpr Op opOf(Code code) { return static_cast<Op>(code / 4 + 1); }
constexpr Form formOf(Code code) { return static_cast<Form>(code % 4); }
inline constexpr Code blockCode = codeOf(Op::eBlock);

namespace op {

// What the table adds to a struct: its enumerator and the name of its function.
template <class O> struct Entry;
#define BURTORCH_ENTRY(Name, function)                                                             \
  template <> struct Entry<Name> {                                                                 \
    static constexpr Op code = Op::e##Name;                                                        \
    static constexpr const char* name = #function;                                                 \
  };
BURTORCH_OPERATIONS(BURTORCH_ENTRY)
#undef BURTORCH_ENTRY

// An operation in one of its forms, as a type: what dispatch hands to its visitor.
template <class O, Form F> struct Instance {};

template <class K, class O> inline constexpr bool is = std::is_base_of_v<K, O>;

} // namespace op

namespace detail {

// Calls visitor(op::Instance<Operation, form>{}) for the record's code: the switch
// that walks and sweeps share. (The code as an unsigned, which is how records hold it and a jump
// table wants it.)
template <class Visitor> BURTORCH_INLINE decltype(auto) dispatch(unsigned code, Visitor&& visitor) {
  switch (code) {
#define BURTORCH_CASE(Name, formName)                                                              \
  case codeOf(Op::e##Name, Form::formName):                                                        \
    return visitor(op::Instance<op::Name, Form::formName>{});
#define BURTORCH_ONE(Name, function) BURTORCH_CASE(Name, nodes)
#define BURTORCH_TWO(Name, function) BURTORCH_CASE(Name, run) BURTORCH_CASE(Name, list)
#define BURTORCH_THREE(Name, function)                                                             \
  BURTORCH_CASE(Name, nodes) BURTORCH_CASE(Name, nodeNumber) BURTORCH_CASE(Name, numberNode)
    BURTORCH_UNARY_OPERATIONS(BURTORCH_ONE)
    BURTORCH_BINARY_OPERATIONS(BURTORCH_THREE)
    BURTORCH_CLIPPED_OPERATIONS(BURTORCH_ONE)
    BURTORCH_REDUCTIONS(BURTORCH_TWO)
    BURTORCH_PRODUCTS(BURTORCH_TWO)
    BURTORCH_ONE(Block, block)
#undef BURTORCH_THREE
#undef BURTORCH_TWO
#undef BURTORCH_ONE
#undef BURTORCH_CASE
  default:
    BURTORCH_UNREACHABLE();
  }
}

} // namespace detail

// The name of an operation's C++ function, the symbol a picture shows for it, and what it computes.
struct OpNames {
  const char* function;
  const char* symbol;
  const char* meaning = "";
};

constexpr OpNames namesOf(Op operation) {
  constexpr OpNames names[] = {{"leaf", "leaf", "a number that no operation made"},
#define BURTORCH_NAMES(Name, function) {#function, op::Name::symbol, op::Name::meaning},
                               BURTORCH_OPERATIONS(BURTORCH_NAMES) BURTORCH_NAMES(Block, block)
#undef BURTORCH_NAMES
  };
  return names[static_cast<std::size_t>(operation)];
}

BURTORCH_END_NAMESPACE
