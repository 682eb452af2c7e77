// benchmarks/eager.cpp — eager gradients of the paper's tiny and small graph, and of chains, against yardsticks
// SPDX-License-Identifier: MIT
//
// Usage: bench_eager [longest chain, default 100000000]. Everything is one process, one core;
// contenders take turns.
#include "graphs.hpp"
#include "timing.hpp"
#include "yardstick.hpp"

#include <burtorch/burtorch.hpp>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

// ---- every allocation of this process is counted -------------------------------------------------

namespace {
std::atomic<long> allocations{0};
}

#if defined(__GLIBC__)
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void* malloc(std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, bytes);
}
}
#endif

void* operator new(std::size_t bytes) {
  if (void* p = std::malloc(bytes)) return p;
  throw std::bad_alloc();
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  const auto a = static_cast<std::size_t>(alignment);
  if (void* p = std::aligned_alloc(a, (bytes + a - 1) / a * a)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

// ---- loops over the graphs -----------------------------------------------------------------------

namespace {

namespace bt = burtorch;
using yardstick::Gradient;
using yardstick::Plain;
using yardstick::PlainTape;
using Tape = bt::Tape<double>;
using Value = bt::Value<double>;

volatile double sink; // results go here, so that none can be skipped

struct Graph {
  const char* title;
  double a, b;
  Gradient want;
  Gradient (*byHand)(double, double);
};

template <bool isTiny> struct Loops {
  template <class V, class Number> static V build(V a, V b, Number number) {
    if constexpr (isTiny) return graphs::tiny<V>(a, b, number);
    else return graphs::small<V>(a, b, number);
  }

  static Gradient plain(PlainTape& tape, int start, double x, double y) {
    tape.size = start;
    const Plain a(tape, x), b(tape, y);
    const Plain g = build(a, b, [&](double c) { return Plain(tape, c); });
    tape.backward(g.index, start);
    return {g.data(), a.grad(), b.grad()};
  }

  // The gradient by any of the library's ways: backward is a callable that takes the root.
  template <class Backward>
  static Gradient ours(Tape& tape, const Tape::Mark& start, double x, double y,
                       const Backward& backward) {
    tape.rewind(start);
    const Value a(tape, x), b(tape, y);
    const Value g = build(a, b, [](double c) { return c; });
    backward(g);
    return {g.dataCopy(), a.gradCopy(), b.gradCopy()};
  }

  static Gradient oursWithLeaves(Tape& tape, const Tape::Mark& start, double x, double y) {
    tape.rewind(start);
    const Value a(tape, x), b(tape, y);
    const Value g = build(a, b, [&](double c) { return Value(tape, c); });
    bt::backward(g);
    return {g.dataCopy(), a.gradCopy(), b.gradCopy()};
  }
};

bool close(double x, double y) { return std::abs(x - y) <= 1e-12 * std::abs(y); }

void demand(bool condition, const std::string& what) {
  if (condition) return;
  std::fprintf(stderr, "wrong result: %s\n", what.c_str());
  std::exit(1);
}

// One contender: checks the gradient once, then offers the loop. Inputs are hidden from the
// optimizer.
template <class F> timing::Contender contender(std::string name, const Graph& graph, F gradient) {
  const double a = timing::opaque(graph.a), b = timing::opaque(graph.b);
  const Gradient got = gradient(a, b);
  demand(close(got.value, graph.want.value) && close(got.a, graph.want.a) &&
             close(got.b, graph.want.b),
         name);
  return {std::move(name), [=](int iterations) {
            for (int i = 0; i < iterations; ++i) {
              const Gradient g = gradient(timing::opaque(a), timing::opaque(b));
              sink = g.value + g.a + g.b;
            }
          }};
}

template <bool isTiny> void raceGraph(const Graph& graph, int iterations) {
  using L = Loops<isTiny>;
  static PlainTape plainTape(1024);
  static Tape tape;
  tape.clear();
  const int start = static_cast<int>(timing::opaque(5));
  for (int i = 0; i < start; ++i) tape.leaf(0.5);
  const auto mark = tape.mark();
  static std::vector<std::uint32_t> order(64), leaves(64), stack(64);
  order.reserve(64);
  const auto sweep = [](const Value& g) { bt::backward(g); };
  const auto scratch = [](const Value& g) {
    bt::backwardWithScratchStorage(g, order, leaves, stack);
  };
  const auto reused = [](const Value& g) {
    bt::backwardWithScratchStorage<bt::Reuse::orderAndLeaves>(g, order, leaves, stack);
  };
  const std::vector<timing::Contender> contenders{
      contender("by hand", graph, graph.byHand),
      contender("plain tape (the yardstick)", graph,
                [=](double x, double y) { return L::plain(plainTape, start, x, y); }),
      contender("burtorch: backward", graph,
                [=](double x, double y) { return L::ours(tape, mark, x, y, sweep); }),
      contender("burtorch: backward, a leaf for each constant", graph,
                [=](double x, double y) { return L::oursWithLeaves(tape, mark, x, y); }),
      contender("burtorch: scratch storage", graph,
                [=](double x, double y) { return L::ours(tape, mark, x, y, scratch); }),
      contender("burtorch: scratch storage, order reused", graph,
                [=](double x, double y) { return L::ours(tape, mark, x, y, reused); }),
  };
  const auto results = timing::race(contenders, iterations);
  timing::print(graph.title, contenders, results, 1);
  std::printf("  asked: backward / plain tape at most %.2f; reached %.2f\n", isTiny ? 1.0 : 0.85,
              results[2].minimum / results[1].minimum);

  const long before = allocations.load();
  for (int i = 0; i < 1000; ++i)
    sink = L::ours(tape, mark, graph.a, graph.b, sweep).a +
           L::ours(tape, mark, graph.a, graph.b, scratch).a;
  std::printf("  allocations in 2000 further gradients: %ld\n", allocations.load() - before);
}

// ---- chains --------------------------------------------------------------------------------------

struct ChainTimes {
  double first,
      best; // nanoseconds per node: of the first round, whose memory is new, and of the best
};

// x ← x · 0.999…, n times, then the gradient, on a tape that starts empty and grows.
ChainTimes chain(std::size_t n, std::size_t repetitions, bt::Extent& used) {
  Tape tape;
  const auto start = tape.mark();
  const double factor = timing::opaque(1 - 1e-9);
  ChainTimes times{0, 1e300};
  for (int round = 0; round < 5; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t r = 0; r < repetitions; ++r) {
      tape.rewind(start);
      const Value x(tape, 1.0), c(tape, factor);
      Value y = x;
      for (std::size_t i = 0; i < n; ++i) y = y * c;
      bt::backward(y);
      sink = x.gradCopy();
    }
    const std::chrono::duration<double, std::nano> passed =
        std::chrono::steady_clock::now() - begin;
    const double ns = passed.count() / static_cast<double>(n * repetitions);
    if (round == 0) times.first = ns;
    times.best = std::min(times.best, ns);
  }
  used = tape.used();
  return times;
}

void raceChains(std::size_t longest) {
  std::printf(
      "\nA chain of n products, forward and backward, in ns per node\n  %12s %14s %14s %24s\n", "n",
      "first round", "best round", "speed against n = 1000");
  double reference = 0;
  bt::Extent used;
  for (std::size_t n = 1000; n <= longest; n *= 10) {
    const ChainTimes times = chain(n, std::max<std::size_t>(1, 2000000 / n), used);
    if (n == 1000) reference = times.best;
    std::printf("  %12zu %14.2f %14.2f %24.2f\n", n, times.first, times.best,
                reference / times.best);
  }
  const double bytes =
      static_cast<double>(used.nodes * 2 * sizeof(double) + used.records * sizeof(Tape::Record) +
                          used.constants * sizeof(double) + used.operands * sizeof(Tape::Index));
  std::printf("  bytes per node: %.2f (asked: at most 32)\n",
              bytes / static_cast<double>(used.nodes));
}

// ---- plain numbers -------------------------------------------------------------------------------

// Σ (x − c)² over plain numbers c, or over leaves: an append with a number writes one array more and
// must not wait for it.
template <bool withLeaves> double distances(Tape& tape, const Tape::Mark& start, std::size_t n) {
  tape.rewind(start);
  const Value x(tape, timing::opaque(0.5));
  Value sum = x * 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    const double c = static_cast<double>(i % 7);
    if constexpr (withLeaves) {
      const Value difference = x - Value(tape, c);
      sum += difference * difference;
    } else {
      const Value difference = x - c;
      sum += difference * difference;
    }
  }
  bt::backward(sum);
  return x.gradCopy();
}

void racePlainNumbers() {
  static Tape tape;
  const auto start = tape.mark();
  constexpr std::size_t n = 1000;
  const auto loop = [](auto gradient) {
    return [gradient](int iterations) {
      for (int i = 0; i < iterations; ++i) sink = gradient();
    };
  };
  demand(close(distances<false>(tape, start, n), distances<true>(tape, start, n)), "distances");
  const std::vector<timing::Contender> contenders{
      {"plain numbers", loop([=] { return distances<false>(tape, start, n); })},
      {"a leaf for each number", loop([=] { return distances<true>(tape, start, n); })},
  };
  const auto results = timing::race(contenders, 200);
  timing::print("A sum of 1000 squared distances", contenders, results, 1);
  std::printf("  plain numbers / leaves: %.2f\n", results[0].minimum / results[1].minimum);
}

} // namespace

int main(int argc, char** argv) {
  const std::size_t longest = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 100000000;
  timing::pinToOneCore();
#if defined(__clang__)
  std::printf("compiler: clang %s\n", __clang_version__);
#elif defined(__GNUC__)
  std::printf("compiler: g++ %s\n", __VERSION__);
#endif
  raceGraph<true>({"Tiny graph, FP64, rebuilt every iteration",
                   -41,
                   2,
                   {612.5, -35, 1050},
                   yardstick::tinyByHand},
                  20000);
  raceGraph<false>({"Small graph, FP64, rebuilt every iteration",
                    -4,
                    2,
                    {24.70408163265306, 138.83381924198252, 645.5772594752186},
                    yardstick::smallByHand},
                   10000);
  racePlainNumbers();
  raceChains(longest);
}
