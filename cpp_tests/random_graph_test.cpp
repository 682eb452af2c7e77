// cpp_tests/random_graph_test.cpp — random graphs of all operations against an independent evaluation
// SPDX-License-Identifier: MIT
//
// A graph is built twice at once: on a tape, and as a plain list of steps. The list is then
// evaluated without the library: each step's value and its partial derivatives come from dual
// numbers in long double, with every function written from its definition, and the adjoints from
// the textbook reverse pass. The same graphs then check that all ways to a gradient agree, and that
// collect changes nothing that is kept.
#include <burtorch/burtorch.hpp>
#include <burtorch/restricted.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numbers>
#include <random>
#include <span>
#include <string>
#include <vector>

using namespace burtorch;

namespace {

using Real = long double;

// ---- an evaluation of our own --------------------------------------------------------------------

struct Dual { // a value and its derivative in some direction
  Real v = 0, d = 0;
  Dual(Real value = 0, Real derivative = 0)
      : v(value), d(derivative) {} // NOLINT: numbers are duals
  friend Dual operator+(Dual a, Dual b) { return {a.v + b.v, a.d + b.d}; }
  friend Dual operator-(Dual a, Dual b) { return {a.v - b.v, a.d - b.d}; }
  friend Dual operator*(Dual a, Dual b) { return {a.v * b.v, a.d * b.v + a.v * b.d}; }
  friend Dual operator/(Dual a, Dual b) {
    return {a.v / b.v, (a.d * b.v - a.v * b.d) / (b.v * b.v)};
  }
};

Dual dexp(Dual x) { return {std::exp(x.v), x.d * std::exp(x.v)}; }
Dual dlog(Dual x) { return {std::log(x.v), x.d / x.v}; }
Dual dsqrt(Dual x) { return {std::sqrt(x.v), x.d / (2 * std::sqrt(x.v))}; }
Dual dsin(Dual x) { return {std::sin(x.v), x.d * std::cos(x.v)}; }
Dual dcos(Dual x) { return {std::cos(x.v), -x.d * std::sin(x.v)}; }
Dual datan(Dual x) { return {std::atan(x.v), x.d / (1 + x.v * x.v)}; }
Dual derf(Dual x) {
  return {std::erf(x.v), x.d * 2 / std::sqrt(std::numbers::pi_v<Real>) * std::exp(-x.v * x.v)};
}

Dual unary(Op op, Dual x) {
  switch (op) {
  case Op::eRelu:
    return x.v > 0 ? x : Dual(0);
  case Op::eTanh:
    return (dexp(2 * x) - 1) / (dexp(2 * x) + 1);
  case Op::eExp:
    return dexp(x);
  case Op::eNegLog:
    return 0 - dlog(x);
  case Op::eSigmoid:
    return 1 / (1 + dexp(0 - x));
  case Op::eInv:
    return 1 / x;
  case Op::eSqr:
    return x * x;
  case Op::eCub:
    return x * x * x;
  case Op::eLog:
    return dlog(x);
  case Op::eSqrt:
    return dsqrt(x);
  case Op::eInvSqrt:
    return 1 / dsqrt(x);
  case Op::eNegative:
    return 0 - x;
  case Op::eAbs:
    return x.v > 0 ? x : x.v < 0 ? 0 - x : Dual(0);
  case Op::eSin:
    return dsin(x);
  case Op::eCos:
    return dcos(x);
  case Op::eTan:
    return dsin(x) / dcos(x);
  case Op::eAsin:
    return datan(x / dsqrt(1 - x * x));
  case Op::eAcos:
    return std::numbers::pi_v<Real> / 2 - datan(x / dsqrt(1 - x * x));
  case Op::eAtan:
    return datan(x);
  case Op::eSinh:
    return (dexp(x) - dexp(0 - x)) / 2;
  case Op::eCosh:
    return (dexp(x) + dexp(0 - x)) / 2;
  case Op::eErf:
    return derf(x);
  case Op::eLog1p:
    return dlog(1 + x);
  case Op::eExpm1:
    return dexp(x) - 1;
  case Op::eSoftplus:
    return dlog(1 + dexp(x));
  case Op::eGelu:
    return x / 2 * (1 + derf(x / std::numbers::sqrt2_v<Real>));
  case Op::eSilu:
    return x / (1 + dexp(0 - x));
  default:
    FAIL("an operation this test does not know: " << namesOf(op).function);
    return {};
  }
}

Dual binary(Op op, Dual x, Dual y) {
  switch (op) {
  case Op::eBinaryAdd:
    return x + y;
  case Op::eBinarySub:
    return x - y;
  case Op::eBinaryMult:
    return x * y;
  case Op::eBinaryMultByConst:
    return x * y.v;
  case Op::eBinaryDiv:
    return x / y;
  case Op::eBinaryMean:
    return (x + y) / 2;
  case Op::eBinaryAddSquares:
    return x * x + y * y;
  case Op::eBinaryMeanSquares:
    return (x * x + y * y) / 2;
  case Op::eBinaryNegativeMean:
    return 0 - (x + y) / 2;
  case Op::eBinaryPow:
    return dexp(y * dlog(x));
  case Op::eBinaryMin:
    return x.v < y.v ? x : y.v < x.v ? y : (x + y) / 2;
  case Op::eBinaryMax:
    return x.v > y.v ? x : y.v > x.v ? y : (x + y) / 2;
  case Op::eBinaryAtan2:
    return datan(x / y); // the second operand is positive here
  case Op::eBinaryHypot:
    return dsqrt(x * x + y * y);
  default:
    FAIL("an operation this test does not know: " << namesOf(op).function);
    return {};
  }
}

Dual many(Op op, const std::vector<Dual>& x) {
  Dual sum, squares, product = 1, best = x[0];
  for (const Dual& each : x) {
    sum = sum + each;
    squares = squares + each * each;
    product = product * each;
    if (op == Op::eMaxVarying ? each.v > best.v : each.v < best.v)
      best = each; // the first that attains it
  }
  const auto n = static_cast<Real>(x.size());
  Dual spread;
  for (const Dual& each : x) spread = spread + (each - sum / n) * (each - sum / n);
  switch (op) {
  case Op::eAddVarying:
    return sum;
  case Op::eSubVarying:
    return x[0] + x[0] - sum;
  case Op::eMulVarying:
    return product;
  case Op::eMeanVarying:
    return sum / n;
  case Op::eSumOfSquaresVarying:
    return squares;
  case Op::eMeanSquaresVarying:
    return squares / n;
  case Op::eNegativeMeanVarying:
    return 0 - sum / n;
  case Op::eVarianceBiasedVarying:
    return spread / n;
  case Op::eVarianceVarying:
    return spread / (n - 1);
  case Op::eMaxVarying:
  case Op::eMinVarying:
    return best;
  default:
    FAIL("an operation this test does not know: " << namesOf(op).function);
    return {};
  }
}

// One node as we know it: operands are positions in the list of steps. The numbers are among a
// Binary's operands (numberFirst says on which side) or are a Clipped's bounds.
struct Step {
  Op op = Op::eLeaf;
  std::vector<std::size_t> operands = {};
  bool hasNumber = false, numberFirst = false;
  Real number = 0, upper = 0;
};

enum class Kind { leaf, unary, binary, clipped, reduction, product };

Kind kindOf(Op op) {
  switch (op) {
  case Op::eLeaf:
  case Op::eBlock: // none of these graphs has one
    return Kind::leaf;
#define CASE(Name, function) case Op::e##Name:
    BURTORCH_UNARY_OPERATIONS(CASE) return Kind::unary;
    BURTORCH_BINARY_OPERATIONS(CASE) return Kind::binary;
    BURTORCH_CLIPPED_OPERATIONS(CASE) return Kind::clipped;
    BURTORCH_REDUCTIONS(CASE) return Kind::reduction;
    BURTORCH_PRODUCTS(CASE) return Kind::product;
#undef CASE
  }
  return Kind::leaf;
}

Dual evaluate(const Step& step, const std::vector<Dual>& x) {
  switch (kindOf(step.op)) {
  case Kind::leaf:
    return x[0];
  case Kind::unary:
    return unary(step.op, x[0]);
  case Kind::binary:
    if (!step.hasNumber) return binary(step.op, x[0], x[1]);
    return step.numberFirst ? binary(step.op, step.number, x[0])
                            : binary(step.op, x[0], step.number);
  case Kind::clipped:
    return x[0].v < step.number ? Dual(step.number) : x[0].v > step.upper ? Dual(step.upper) : x[0];
  case Kind::reduction:
    return many(step.op, x);
  case Kind::product: {
    const std::size_t n = x.size() / 2;
    Dual sum = x.size() % 2 == 1 ? x.back() : Dual(0);
    for (std::size_t i = 0; i < n; ++i) sum = sum + x[i] * x[n + i];
    return sum;
  }
  }
  return {};
}

// ---- random graphs -------------------------------------------------------------------------------

template <class T> struct Graph {
  using V = Value<T>;
  Tape<T> tape;
  std::vector<Step> steps;
  std::vector<V> nodes; // nodes[i] was made by steps[i]
  std::mt19937_64 random;

  explicit Graph(std::uint64_t seed) : random(seed) {}

  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random() % n); }
  double number(double lo, double hi) {
    return lo + (hi - lo) * static_cast<double>(random() >> 11) * 0x1p-53;
  }
  bool isSmall(std::size_t i) const { return std::fabs(nodes[i].dataCopy()) <= T(3); }
  // Mostly any node, sometimes a recent one: depth grows like the logarithm, with some chains.
  // Large values are not built upon (append() squashes them), so that nothing explodes.
  std::size_t any() {
    for (;;) {
      const std::size_t n = nodes.size();
      const std::size_t i =
          random() % 8 == 0 ? n - 1 - below(std::min<std::size_t>(n, 8)) : below(n);
      if (isSmall(i)) return i;
    }
  }

  std::size_t keep(const V& node, Step step) {
    nodes.push_back(node);
    steps.push_back(std::move(step));
    return nodes.size() - 1;
  }
  std::size_t leaf(double x) { return keep(V(tape, x), {}); }

  std::size_t unaryOf(Op op, std::size_t x) {
    const Step step{op, {x}};
    switch (op) {
#define CASE(Name, function)                                                                       \
  case Op::e##Name:                                                                                \
    return keep(function(nodes[x]), step);
      BURTORCH_UNARY_OPERATIONS(CASE)
#undef CASE
    default:
      return x;
    }
  }
  std::size_t binaryOf(Op op, std::size_t x, std::size_t y) {
    const Step step{op, {x, y}};
    switch (op) {
#define CASE(Name, function)                                                                       \
  case Op::e##Name:                                                                                \
    return keep(function(nodes[x], nodes[y]), step);
      BURTORCH_BINARY_OPERATIONS(CASE)
#undef CASE
    default:
      return x;
    }
  }
  std::size_t binaryWithNumber(Op op, std::size_t x, T c, bool numberFirst) {
    const Step step{op, {x}, true, numberFirst, static_cast<Real>(c)};
    switch (op) {
#define CASE(Name, function)                                                                       \
  case Op::e##Name:                                                                                \
    return keep(numberFirst ? function(c, nodes[x]) : function(nodes[x], c), step);
      BURTORCH_BINARY_OPERATIONS(CASE)
#undef CASE
    default:
      return x;
    }
  }
  std::size_t clampOf(std::size_t x, T lo, T hi) {
    return keep(clamp(nodes[x], lo, hi),
                {Op::eClamp, {x}, false, false, static_cast<Real>(lo), static_cast<Real>(hi)});
  }
  std::vector<V> handles(const std::vector<std::size_t>& positions) const {
    std::vector<V> v;
    for (const std::size_t i : positions) v.push_back(nodes[i]);
    return v;
  }
  std::size_t reductionOf(Op op, const std::vector<std::size_t>& x) {
    const Step step{op, x};
    switch (op) {
#define CASE(Name, function)                                                                       \
  case Op::e##Name:                                                                                \
    return keep(function(handles(x)), step);
      BURTORCH_REDUCTIONS(CASE)
#undef CASE
    default:
      return x[0];
    }
  }
  std::size_t productOf(const std::vector<std::size_t>& x, const std::vector<std::size_t>& y) {
    Step step{Op::eInnerProductNoBias, x};
    step.operands.insert(step.operands.end(), y.begin(), y.end());
    return keep(innerProduct(handles(x), handles(y)), step);
  }
  std::size_t productOf(const std::vector<std::size_t>& x, const std::vector<std::size_t>& y,
                        std::size_t bias) {
    Step step{Op::eInnerProductWithBias, x};
    step.operands.insert(step.operands.end(), y.begin(), y.end());
    step.operands.push_back(bias);
    return keep(innerProductWithBias(handles(x), handles(y), nodes[bias]), step);
  }

  // Operands of one operation: neighbours, or a list with repetitions.
  std::vector<std::size_t> several(std::size_t n) {
    n = std::min(n, nodes.size());
    std::vector<std::size_t> positions(n);
    bool run = random() % 2 == 0;
    const std::size_t first = below(nodes.size() - n + 1);
    for (std::size_t i = 0; i < n; ++i) run = run && isSmall(first + i);
    for (std::size_t i = 0; i < n; ++i) positions[i] = run ? first + i : any();
    return positions;
  }
  std::size_t positive(std::size_t x) { // in (0.5, 1.5)
    return binaryWithNumber(Op::eBinaryAdd, unaryOf(Op::eSigmoid, x), T(0.5), random() % 2 == 0);
  }
  std::size_t insideOne(std::size_t x) { // in (-0.8, 0.8)
    return binaryWithNumber(Op::eBinaryMult, unaryOf(Op::eSin, x), T(0.8), random() % 2 == 0);
  }

  void appendUnary() {
    const Op op = static_cast<Op>(static_cast<std::size_t>(Op::eRelu) + below(27));
    std::size_t x = any();
    if (op == Op::eNegLog || op == Op::eInv || op == Op::eLog || op == Op::eSqrt ||
        op == Op::eInvSqrt)
      x = positive(x);
    if (op == Op::eAsin || op == Op::eAcos || op == Op::eLog1p || op == Op::eTan) x = insideOne(x);
    unaryOf(op, x);
  }
  void appendBinary() {
    const Op op = static_cast<Op>(static_cast<std::size_t>(Op::eBinaryAdd) + below(14));
    std::size_t x = any(), y = any();
    const auto form = below(3);
    T c = static_cast<T>(number(-2, 2));
    if (op == Op::eBinaryPow) {
      x = positive(x);
      if (form == 2) c = static_cast<T>(number(0.5, 1.5));
    }
    if (op == Op::eBinaryDiv || op == Op::eBinaryAtan2 || op == Op::eBinaryHypot) {
      y = positive(y);
      if (form == 1) c = static_cast<T>(number(0.5, 1.5));
    }
    if (form == 0) binaryOf(op, x, y);
    else if (form == 1) binaryWithNumber(op, x, c, false);
    else binaryWithNumber(op, y, c, true);
  }
  void append() {
    switch (below(8)) {
    case 0:
    case 1:
      appendUnary();
      break;
    case 2:
    case 3:
    case 4:
      appendBinary();
      break;
    case 5: {
      const double lo = number(-1.5, 0.5);
      clampOf(any(), static_cast<T>(lo), static_cast<T>(lo + number(0, 1.5)));
      break;
    }
    case 6:
      reductionOf(static_cast<Op>(static_cast<std::size_t>(Op::eAddVarying) + below(11)),
                  several(2 + below(9)));
      break;
    case 7: {
      const bool bias = random() % 2 == 0;
      const auto x = several(below(7) + (bias ? 0 : 1)),
                 y = several(x.size()); // none at all only with a bias
      if (bias) productOf(x, y, any());
      else productOf(x, y);
      break;
    }
    }
    if (!isSmall(nodes.size() - 1))
      unaryOf(random() % 2 == 0 ? Op::eTanh : Op::eSin, nodes.size() - 1);
    if (below(20) == 0) leaf(number(-2, 2));
  }

  // The root is a mean of means of many nodes.
  std::size_t build(std::size_t size) {
    for (std::size_t i = 0; i < 4 + below(10); ++i) leaf(number(-2, 2));
    while (nodes.size() + 2 < size) append();
    std::vector<std::size_t> ends;
    for (std::size_t i = 0; i < std::max<std::size_t>(size / 5, 3); ++i) ends.push_back(any());
    while (ends.size() != 1) {
      std::vector<std::size_t> means;
      for (std::size_t i = 0; i < ends.size(); i += 16) {
        const auto last = std::min(i + 16, ends.size());
        means.push_back(reductionOf(Op::eMeanVarying, {ends.data() + i, ends.data() + last}));
      }
      ends = means;
    }
    return ends[0];
  }
};

// The adjoint of every node, and how far rounding to T's precision may have moved the tape's.
// Partial derivatives are taken at the values on the tape, so that errors do not grow with depth
// other than linearly.
template <class T> struct Reference {
  std::vector<Real> adjoint, error;
  std::size_t wrongValues = 0;

  Reference(const Graph<T>& graph, std::size_t root) : adjoint(root + 1), error(root + 1) {
    constexpr Real eps = static_cast<Real>(std::numeric_limits<T>::epsilon());
    const auto value = [&](std::size_t i) { return static_cast<Real>(graph.nodes[i].dataCopy()); };
    std::vector<Real> size(root + 1); // the adjoint with no cancellation
    adjoint[root] = size[root] = 1;
    std::vector<Dual> x;
    for (std::size_t i = root + 1; i-- != 0;) {
      const Step& step = graph.steps[i];
      if (step.op == Op::eLeaf) continue;
      x.clear();
      for (const std::size_t operand : step.operands) x.emplace_back(value(operand));
      const Real should = evaluate(step, x).v;
      Real scale =
          1 + std::fabs(should); // values are of order 1; a sum's error grows with its terms
      for (const Dual& each : x) scale += std::fabs(each.v) + each.v * each.v;
      if (!(std::fabs(value(i) - should) <= 8 * eps * scale)) ++wrongValues;
      for (std::size_t k = 0; k < x.size(); ++k) {
        x[k].d = 1;
        const Real partial = evaluate(step, x).d;
        x[k].d = 0;
        const std::size_t to = step.operands[k];
        adjoint[to] += partial * adjoint[i];
        size[to] += std::fabs(partial) * size[i];
        error[to] += std::fabs(partial) * error[i] + 16 * eps * (1 + std::fabs(partial)) * size[i];
      }
    }
    for (std::size_t i = 0; i <= root; ++i) error[i] += 16 * eps * size[i];
  }
};

// Counts instead of one assertion per node: a failure says which node came first.
template <class T> void checkAgainstReference(std::uint64_t seed, std::size_t size) {
  CAPTURE(seed);
  Graph<T> graph(seed);
  const std::size_t root = graph.build(size);
  const Reference<T> reference(graph, root);
  CHECK(reference.wrongValues == 0);
  backward(graph.nodes[root]);
  std::size_t wrong = 0, reached = 0;
  Real largest = 0;
  std::string first;
  for (std::size_t i = 0; i <= root; ++i) {
    REQUIRE(graph.nodes[i].sysGetRawNodeIndex() == i);
    const Real g = static_cast<Real>(graph.nodes[i].gradCopy());
    if (reference.adjoint[i] != 0) ++reached;
    largest =
        std::max(largest, reference.error[i] / (std::fabs(reference.adjoint[i]) + Real(1e-3)));
    if (std::fabs(g - reference.adjoint[i]) <= reference.error[i]) continue;
    if (wrong++ == 0)
      first = "node " + std::to_string(i) + " (" + namesOf(graph.steps[i].op).function +
              "): " + std::to_string(g) + " for " + std::to_string(reference.adjoint[i]);
  }
  INFO(first);
  CHECK(wrong == 0);
  CHECK(reached > size / 8);
  CHECK(largest < (sizeof(T) == 4 ? Real(0.2) : Real(1e-9))); // the bound is worth something
}

template <class T> std::vector<T> gradientsOf(const Tape<T>& tape) {
  return {tape.grads().begin(), tape.grads().end()};
}

} // namespace

TEST_CASE_TEMPLATE("random graphs: many small ones", T, float, double) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed)
    checkAgainstReference<T>(seed, 20 + 7 * seed % 300);
}

TEST_CASE_TEMPLATE("random graphs: a hundred thousand nodes", T, float, double) {
  checkAgainstReference<T>(1001, 1'000);
  checkAgainstReference<T>(1002, 10'000);
  checkAgainstReference<T>(1003, 100'000);
}

TEST_CASE("random graphs: every operation in every form occurs") {
  Graph<double> graph(1002);
  graph.build(10'000);
  std::vector<Code> seen;
  for (const auto& record : graph.tape.records()) seen.push_back(record.code());
  const auto occurs = [&](Op op, Form form) {
    return std::ranges::find(seen, codeOf(op, form)) != seen.end();
  };
#define ONE(Name, function) CHECK_MESSAGE(occurs(Op::e##Name, Form::nodes), #function);
#define TWO(Name, function)                                                                        \
  CHECK_MESSAGE(occurs(Op::e##Name, Form::run), #function);                                        \
  CHECK_MESSAGE(occurs(Op::e##Name, Form::list), #function);
#define THREE(Name, function)                                                                      \
  CHECK_MESSAGE(occurs(Op::e##Name, Form::nodes), #function);                                      \
  CHECK_MESSAGE(occurs(Op::e##Name, Form::nodeNumber), #function);                                 \
  CHECK_MESSAGE(occurs(Op::e##Name, Form::numberNode), #function);
  BURTORCH_UNARY_OPERATIONS(ONE)
  BURTORCH_BINARY_OPERATIONS(THREE)
  BURTORCH_CLIPPED_OPERATIONS(ONE)
  BURTORCH_REDUCTIONS(TWO)
  BURTORCH_PRODUCTS(TWO)
#undef THREE
#undef TWO
#undef ONE
}

TEST_CASE_TEMPLATE("random graphs: scratch storage gives backward's gradients to the last bit", T,
                   float, double) {
  std::vector<std::uint32_t> order, leaves, stack;
  order.reserve(5'000);
  leaves.reserve(5'000);
  stack.reserve(5'000);
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    Graph<T> graph(seed);
    graph.build(30 + 29 * seed % 2'000);
    for (int k = 0; k < 5; ++k) { // whole and small parts, older roots after younger ones
      const auto root = graph.nodes[graph.below(graph.nodes.size())];
      graph.tape.zeroGrad();
      backward(root);
      const auto once = gradientsOf(graph.tape);
      backward(root);
      const auto twice = gradientsOf(graph.tape);
      graph.tape.zeroGrad();
      backwardWithScratchStorage(root, order, leaves, stack);
      CHECK(gradientsOf(graph.tape) == once);
      backwardWithScratchStorage<Reuse::orderAndLeaves>(root, order, leaves, stack);
      CHECK(gradientsOf(graph.tape) == twice);
    }
  }
}

TEST_CASE("random graphs: backwardRestricted gives the wanted part of backward's gradient") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    Graph<double> graph(seed);
    const auto root = graph.nodes[graph.build(30 + 17 * seed % 500)];
    backward(root);
    const auto expected = gradientsOf(graph.tape);
    std::vector<Value<double>> wanted;
    std::vector<bool> isWanted(graph.nodes.size());
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      isWanted[i] = graph.random() % 5 == 0;
      if (isWanted[i]) wanted.push_back(graph.nodes[i]);
    }
    graph.tape.zeroGrad();
    backwardRestricted(root, wanted);
    const auto got = gradientsOf(graph.tape);
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (isWanted[i]) CHECK(got[i] == expected[i]);
      else if (graph.steps[i].op == Op::eLeaf) CHECK(got[i] == 0.0);
    }
  }
}

TEST_CASE("random graphs: collect keeps values, gradients and order of what is reached, and "
          "nothing else") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    Graph<double> graph(seed);
    graph.build(30 + 23 * seed % 800);
    auto& tape = graph.tape;
    const auto& nodes = graph.nodes;
    std::vector<bool> reached(nodes.size());
    std::vector<Value<double>> roots;
    for (int k = 0; k < 3; ++k) {
      const std::size_t i = graph.below(nodes.size());
      roots.push_back(nodes[i]);
      reached[i] = true;
    }
    for (std::size_t i = nodes.size(); i-- != 0;)
      if (reached[i])
        for (const std::size_t operand : graph.steps[i].operands) reached[operand] = true;
    const auto gradients = [&](std::vector<Value<double>>& of) {
      std::vector<std::vector<double>> all;
      for (const auto& root : of) {
        tape.zeroGrad();
        backward(root);
        all.push_back(gradientsOf(tape));
      }
      return all;
    };
    const auto before = gradients(roots);
    std::vector<double> values;
    std::vector<std::vector<double>> expected(roots.size());
    std::vector<Value<double>> some;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (!reached[i]) continue;
      values.push_back(nodes[i].dataCopy());
      for (std::size_t k = 0; k < roots.size(); ++k) expected[k].push_back(before[k][i]);
      if (graph.random() % 4 == 0) some.push_back(nodes[i]);
    }
    std::vector<double> someValues;
    for (const auto& v : some) someValues.push_back(v.dataCopy());
    tape.collect(roots, some);
    CHECK(std::vector<double>(tape.values().begin(), tape.values().end()) == values);
    CHECK(gradientsOf(tape) == expected.back()); // as they were
    for (std::size_t i = 0; i < some.size(); ++i) CHECK(some[i].dataCopy() == someValues[i]);
    CHECK(gradients(roots) == expected);
    const Extent used = tape.used();
    tape.collect(roots); // nothing left to squeeze out
    CHECK(tape.used() == used);
  }
}

TEST_CASE("random graphs: rewinding and building again gives the same tape") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    Graph<double> graph(seed);
    graph.build(200);
    const auto m = graph.tape.mark();
    const std::size_t size = graph.nodes.size();
    const auto random = graph.random;
    std::vector<double> first;
    for (int round = 0; round < 4; ++round) {
      if (round % 2 == 1) graph.random.seed(seed + 77); // another graph in between
      else graph.random = random;
      for (int i = 0; i < 100; ++i) graph.append();
      graph.tape.zeroGrad();
      backward(graph.nodes.back());
      const auto got = gradientsOf(graph.tape);
      if (round == 0) first = got;
      if (round == 2) CHECK(got == first);
      graph.tape.rewind(m);
      graph.nodes.resize(size);
      graph.steps.resize(size);
    }
  }
}
