// cpp_tests/emit_test.cpp — emitted C: compiled with warnings as errors, it gives the tape's numbers
// SPDX-License-Identifier: MIT
#include "every_operation.hpp"
#include "support.hpp"
#include "recording_support.hpp"

#include <burtorch/block/blocks.hpp>
#include <burtorch/run/emit.hpp>
#include <burtorch/view.hpp>

#include <doctest/doctest.h>

#if defined(__unix__)
#include <dlfcn.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

using namespace burtorch;

using namespace recording_support;

namespace {

#if defined(__unix__)
// C or C++ text as a loaded library; isThere says whether there was a compiler.
class Library {
public:
  explicit Library(const std::string& text, bool isCpp = false) {
    const auto folder = std::filesystem::temp_directory_path() /
                        ("burtorch_emit_test_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder);
    static int made = 0; // a library of the same name would be taken for the one that is loaded
    const auto source = folder / (isCpp ? "f.cpp" : "f.c");
    const auto binary = folder / ("f" + std::to_string(++made) + ".so");
    std::ofstream(source) << text;
    const std::string command =
        std::string(isCpp ? "c++ -std=c++11" : "cc -std=c99") +
        " -Wall -Wextra -pedantic -Werror -O1 -ffp-contract=off -fPIC -shared -o " +
        binary.string() + " " + source.string() + " -lm";
    const int status = std::system(command.c_str());
    if (status == 0) library_ = ::dlopen(binary.c_str(), RTLD_NOW | RTLD_LOCAL);
    isThere = std::system("cc --version > /dev/null 2>&1") == 0;
    std::filesystem::remove_all(folder);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (library_ != nullptr) ::dlclose(library_);
  }
  template <class F> F* function(const char* name) const {
    REQUIRE(library_ != nullptr);
    return reinterpret_cast<F*>(::dlsym(library_, name));
  }
  bool isThere;

private:
  void* library_ = nullptr;
};

using Value1 = double(const double*);
using Gradient = double(const double*, double*);
using Batch = void(unsigned long, const double*, double*, double*);
using Jacobian = void(const double*, double*, double*);

bool same(double x, double y) { return (std::isnan(x) && std::isnan(y)) || x == y; }
bool close(double x, double y) {
  return (std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= 1e-14 * (1 + std::abs(y));
}
#endif

} // namespace

#if defined(__unix__)
TEST_CASE("emit: every operation gives the tape's numbers") {
  Tape<double> tape;
  const TapeScope scope(tape);
  const auto in = leaves(tape, at);
  const auto cases = every::operation(std::span<const V>(in));
  std::vector<V> roots;
  for (const auto& each : cases) roots.push_back(each.root);
  const R recording(in, roots);
  const Library library(emit(recording));
  if (!library.isThere) {
    MESSAGE("skipped: there is no C compiler");
    return;
  }
  auto* const jacobian = library.function<Jacobian>("f_jacobian");
  auto* const values = library.function<void(const double*, double*)>("f_values");
  const std::size_t n = roots.size();
  std::vector<double> y(n), y2(n), rows(n * 5), want(n), wantRows(n * 5);
  auto w = recording.workspace();
  for (const auto& x : {at, elsewhere}) {
    jacobian(x.data(), y.data(), rows.data());
    values(x.data(), y2.data());
    recording.jacobian(w, x, std::span<double>(want), std::span<double>(wantRows));
    for (std::size_t i = 0; i < n; ++i) {
      CHECK_MESSAGE(close(y[i], want[i]), cases[i].name);
      CHECK_MESSAGE(close(y2[i], want[i]), cases[i].name);
      for (std::size_t k = 0; k < 5; ++k)
        CHECK_MESSAGE(close(rows[5 * i + k], wantRows[5 * i + k]), cases[i].name << " by " << k);
    }
  }
}

TEST_CASE("emit: value, gradient and batch of a random graph; C++ too") {
  Tape<double> tape;
  const TapeScope scope(tape);
  const auto in = leaves(tape, at);
  const R recording(in, every::graph(std::span<const V>(in), 8, 11));
  const Library c(emit(recording, {.name = "graph"}));
  if (!c.isThere) {
    MESSAGE("skipped: there is no C compiler");
    return;
  }
  const Library cpp(emit(recording, {.name = "graph", .language = Language::cpp}), true);
  constexpr std::size_t n = 19; // two groups of lanes and a rest
  std::vector<double> x, values(n), grads(n * 5), one(5), want(5);
  for (std::size_t i = 0; i < n * 5; ++i) x.push_back(0.1 + 0.013 * static_cast<double>(i));
  c.function<Batch>("graph_batch")(n, x.data(), values.data(), grads.data());
  auto w = recording.workspace();
  for (std::size_t k = 0; k < n; ++k) {
    const double value = recording.valueAndGradient(w, std::span(x).subspan(5 * k, 5), want);
    CHECK(close(values[k], value));
    CHECK(close(c.function<Value1>("graph_value")(&x[5 * k]), value));
    CHECK(close(cpp.function<Gradient>("graph")(&x[5 * k], one.data()), value));
    for (std::size_t i = 0; i < 5; ++i) {
      CHECK(close(grads[5 * k + i], want[i]));
      CHECK(close(one[i], want[i]));
    }
  }
}

TEST_CASE("emit: an adjoint of zero gives nothing, constants of all kinds are written") {
  Tape<double> tape;
  const V x(tape, 1.0), infinite(tape, HUGE_VAL);
  const R recording({x}, x * sqrt(x) * 1e30 + min(exp(-2.0 * x), infinite) - 1e-9);
  const Library library(emit(recording));
  if (!library.isThere) return;
  double g = 7, want = 7;
  auto w = recording.workspace();
  for (const double point : {0.0, 2.0}) {
    CHECK(library.function<Gradient>("f")(&point, &g) ==
          doctest::Approx(recording.valueAndGradient(w, &point, &want)));
    CHECK(g == doctest::Approx(want)); // not 0/0
  }
}

// Where a derivative is infinite or no number, behind a product with 0: one function per operation, so that
// none is computed with guards because of another one.
TEST_CASE("emit: every operation where an adjoint of zero meets an infinite derivative") {
  constexpr double inf = HUGE_VAL;
  const std::vector<std::vector<double>> points{{0, 0, 0, 0, 0, 0},
                                                {0, 1, -1, 2, 0.5, 0},
                                                {1, 0, 0, 1, 1, 0},
                                                {-1, 0.5, -0.5, 0, 1, 0},
                                                {inf, 1, 0, -inf, 2, 0},
                                                {1, inf, inf, 0, -1, 0},
                                                {1e-320, 1e300, 1e300, 1, 0, 0},
                                                {0, std::nan(""), 1, 2, 3, 0},
                                                {0.3, 0.4, 0.5, 0.6, 0.7, 2}};
  Tape<double> tape;
  std::vector<R> recordings;
  std::vector<std::string> names;
  std::string text, plain;
  {
    const TapeScope scope(tape);
    const auto in = leaves(tape, {0.3, 0.4, 0.5, 0.6, 0.7, 2});
    for (const auto& each : every::operation(std::span<const V>(in).first(5))) {
      // The second way to 0: an adjoint that was made 0, not the seed's factor.
      for (const V& root : {in[5] * each.root, 1.5 - sqr(in[5]) * (each.root * in[0])}) {
        EmitOptions options{.name = "f" + std::to_string(names.size()), .lanes = 4};
        names.push_back(each.name);
        recordings.emplace_back(in, root);
        text += emit(recordings.back(), options);
        options.isGuarded = false;
        plain += emit(recordings.back(), options);
      }
    }
  }
  const Library library(text), unguarded(plain);
  if (!library.isThere) return;
  const std::size_t n = points.size(), d = 6;
  std::vector<double> x(n * d), values(n), grads(n * d), g(d), want(d), wrong(d);
  for (std::size_t k = 0; k < n; ++k)
    std::ranges::copy(points[k], x.begin() + std::ptrdiff_t(d * k));
  std::size_t differences = 0;
  for (std::size_t c = 0; c < names.size(); ++c) {
    const std::string name = "f" + std::to_string(c);
    library.function<Batch>((name + "_batch").c_str())(n, x.data(), values.data(), grads.data());
    auto w = recordings[c].workspace();
    for (std::size_t k = 0; k < n; ++k) {
      const double* const point = x.data() + d * k;
      const double value = recordings[c].valueAndGradient(w, point, want);
      CHECK_MESSAGE(same(library.function<Gradient>(name.c_str())(point, g.data()), value),
                    names[c] << " at " << k);
      CHECK_MESSAGE(same(values[k], value), names[c] << " at " << k);
      unguarded.function<Gradient>(name.c_str())(point, wrong.data());
      for (std::size_t i = 0; i < d; ++i) {
        CHECK_MESSAGE(same(g[i], want[i]), names[c] << " at " << k << " by " << i);
        CHECK_MESSAGE(same(grads[d * k + i], want[i]), names[c] << " at " << k << " by " << i);
        // Without guards: the same, or NaN that a caller sees.
        CHECK_MESSAGE((same(wrong[i], want[i]) || std::isnan(wrong[i])), names[c] << " at " << k);
        differences += same(wrong[i], want[i]) ? 0 : 1;
      }
    }
  }
  CHECK(differences > 100); // else the points are no test
}

TEST_CASE("emit: of several outputs one meets an infinite derivative") {
  Tape<double> tape;
  const V x(tape, 2.0), y(tape, 3.0);
  const R recording(std::vector{x, y}, std::vector{x * sqrt(y), y * x, log(x) * y});
  const Library library(emit(recording));
  if (!library.isThere) return;
  auto w = recording.workspace();
  std::vector<double> values(3), rows(6), want(3), wantRows(6);
  for (const std::vector<double>& at :
       {std::vector{0.0, 0.0}, {1.0, 0.0}, {0.0, 2.0}, {2.0, 3.0}}) {
    library.function<Jacobian>("f_jacobian")(at.data(), values.data(), rows.data());
    recording.jacobian(w, at, std::span<double>(want), std::span<double>(wantRows));
    for (std::size_t i = 0; i < 3; ++i) CHECK(same(values[i], want[i]));
    for (std::size_t i = 0; i < 6; ++i) CHECK(same(rows[i], wantRows[i]));
  }
}

TEST_CASE("emit: parts of a long function compute what the whole does") {
  Tape<double> tape;
  const TapeScope scope(tape);
  const auto in = leaves(tape, at);
  const V one = every::graph(std::span<const V>(in), 30, 5);
  const std::vector<V> several{one, in[2], sin(in[0] * in[1]) * in[3], V(tape, 4.0)};
  const R single(in, one), many(in, several);
  const auto library = [](const R& recording, std::size_t part, Language language = Language::c99) {
    const EmitOptions options{.language = language, .longest = part, .part = part};
    return Library(emit(recording, options), language == Language::cpp);
  };
  constexpr std::size_t whole = 1'000'000;
  const Library wholeSingle = library(single, whole), wholeMany = library(many, whole);
  if (!wholeSingle.isThere) return;
  std::vector<double> g(5), want(5), y(4), wantY(4), rows(20), wantRows(20), batch(5);
  const double value = wholeSingle.function<Gradient>("f")(elsewhere.data(), want.data());
  wholeMany.function<Jacobian>("f_jacobian")(elsewhere.data(), wantY.data(), wantRows.data());
  double batchValue = 0;
  for (const std::size_t part : {0, 1, 2, 7, 50}) {
    const Library a = library(single, part), b = library(many, part);
    CHECK(a.function<Gradient>("f")(elsewhere.data(), g.data()) == value);
    CHECK(a.function<Value1>("f_value")(elsewhere.data()) == value);
    CHECK(g == want);
    a.function<Batch>("f_batch")(1, elsewhere.data(), &batchValue, batch.data());
    CHECK(batchValue == value);
    CHECK(batch == want);
    b.function<Jacobian>("f_jacobian")(elsewhere.data(), y.data(), rows.data());
    CHECK(y == wantY);
    CHECK(rows == wantRows);
  }
  const Library cpp = library(single, 7, Language::cpp);
  CHECK(cpp.function<Gradient>("f")(elsewhere.data(), g.data()) == value);
  CHECK(g == want);
}
#endif

TEST_CASE("emit: parts, guards and lanes only where they are needed") {
  Tape<double> tape;
  const V x(tape, 1.0), y(tape, 2.0);
  const std::string linear = emit(R({x, y}, 3.0 * x - y));
  CHECK(linear.find("guarded") == std::string::npos);
  CHECK(linear.find("sum") == std::string::npos);
  const R recording({x, y}, sin(x * y) * sqrt(y));
  const std::string text = emit(recording), callers = emit(recording, {.isGuarded = false});
  CHECK(text.find("static double f_guarded(") != std::string::npos);
  CHECK(text.find(" == 0.0 ? 0.0 : ") != std::string::npos);
  CHECK(text.find("_part") == std::string::npos);
  CHECK(callers.find("guarded") == std::string::npos);
  CHECK(callers.find("?") == std::string::npos);
  const std::string parts = emit(recording, {.isGuarded = false, .longest = 6, .part = 4});
  CHECK(parts.find("static void f_part1(") != std::string::npos);
  CHECK(parts.find("_lanes") == std::string::npos);
}

TEST_CASE("emit: equal statements are written once, calls of one operand follow each other") {
  Tape<double> tape;
  const V x(tape, 1.0);
  const std::string text =
      emit(R({x}, exp(sin(x)) * (1.0 / x + exp(sin(x)))), {.isGuarded = false});
  const std::string_view f = std::string_view(text).substr(text.find("double f("));
  const std::string_view one = f.substr(0, f.find("}\n"));
  const auto count = [&](std::string_view what) {
    std::size_t n = 0;
    for (std::size_t i = 0; (i = one.find(what, i)) != std::string_view::npos; ++i) ++n;
    return n;
  };
  CHECK(count("exp(") == 1);
  CHECK(count("sin(t0)") == 1);
  CHECK(count("cos(t0)") == 1);
  const std::string_view rest = one.substr(one.find("sin(t0);\n") + 9);
  CHECK(rest.substr(0, rest.find('\n')).ends_with("cos(t0);"));
}

TEST_CASE("emit: the text") {
  Tape<double> tape;
  const V a(tape, 1.0), b(tape, 2.0);
  const std::string text = emit(R({a, b}, a * b + 0.1), {.name = "product"});
  CHECK(text.starts_with("#include <math.h>\n\n"
                         "double product_value(const double *restrict x)\n"
                         "{\n"
                         "    const double t0 = x[0];\n"
                         "    const double t1 = x[1];\n"
                         "    const double t2 = t0 * t1;\n"
                         "    const double t3 = t2 + 0.1;\n"
                         "    return t3;\n"
                         "}\n"));
}

TEST_CASE("emit: without lanes, or where they would fill the stack, a batch is a plain loop") {
  Tape<double> tape;
  const V a(tape, 1.0), b(tape, 2.0);
  const R small({a, b}, a * b);
  for (const std::size_t lanes : {0, 1, 5000}) {
    const std::string text = emit(small, {.lanes = lanes});
    CHECK(text.find("_lanes") == std::string::npos);
    CHECK(text.find("void f_batch(") != std::string::npos);
    CHECK(text.find("xs[") == std::string::npos);
  }
  CHECK(emit(small).find("xs[2 * 8]") != std::string::npos);
  CHECK(emit(small, {.lanes = 2048}).find("xs[2 * 2048]") != std::string::npos); // 64 KiB
#if defined(__unix__)
  const Library library(emit(small, {.lanes = 0}));
  if (!library.isThere) return;
  const std::vector<double> x{1, 2, 3, 4, 5, 6};
  std::vector<double> values(3), grads(6);
  library.function<Batch>("f_batch")(3, x.data(), values.data(), grads.data());
  CHECK(values == std::vector{2.0, 12.0, 30.0});
  CHECK(grads == std::vector{2.0, 1.0, 4.0, 3.0, 6.0, 5.0});
#endif
}

TEST_CASE("emit: names that C would not take") {
  Tape<double> tape;
  const V a(tape, 1.0);
  const R recording({a}, sin(a));
  for (const char* name : {"", "2f", "a b", "f;", "f\xc3\xa9", "int", "class", "sin", "sinf",
                           "fmaxl", "NAN", "x", "gradient", "t1", "main"})
    CHECK_MESSAGE(
        errorOf([&] { emit(recording, {.name = name}); }).kind() == ErrorKind::badArgument, name);
  for (const char* name : {"f", "_f", "loss2", "t", "t1a", "sinus", "half", "model"})
    CHECK_MESSAGE(!emit(recording, {.name = name}).empty(), name);
}

TEST_CASE("emit: blocks are refused by name") {
  Tape<double> tape;
  const auto in = leaves(tape, at);
  const auto y = softmax(View<double>::at(tape, 0, 1, 5));
  CHECK(std::string(errorOf([&] { emit(R(in, y[0])); }).what()).find("softmax") !=
        std::string::npos);
}
