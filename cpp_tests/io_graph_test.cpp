// cpp_tests/io_graph_test.cpp — graphs in files: what comes back, and what is refused
// SPDX-License-Identifier: MIT
#include "io_support.hpp"

#include <burtorch/io/graph.hpp>
#include <burtorch/run/replay.hpp>

#include <cmath>
#include <cstdlib>
#include <fstream>

using namespace burtorch;

namespace {

// The graph of data/graph.inc; tests/test_io.py builds it in Python. Operands of all kinds.
Value<double> buildGraph(Tape<double>& tape) {
  using V = Value<double>;
  V a(tape, -3.0), b(tape, 2.0);
  a.setLabel("a");
  V c = a + b;
  V d = a * b; // one operation per statement: compilers choose the order of operands
  d += pow3(b);
  c = c * 2.0 - a;
  d = 3.0 / d;
  V e = clamp(c, -1.5, 1.5);
  V f(tape, 0.5);
  V g = reduceSum({a, b, c});
  g += reduceMax({a, b});
  V h = innerProduct({a, b}, {b, c});
  h += innerProductWithBias({a, b}, {c, d}, f);
  V root = g * h + e;
  root.setLabel("Wurzel √");
  return root;
}

FileContent golden() {
  constexpr std::uint8_t bytes[] = {
#include "data/graph.inc"
  };
  const auto* const first = reinterpret_cast<const std::byte*>(bytes);
  return {first, first + sizeof(bytes)};
}

FileContent example() {
  Tape<double> tape;
  backward(buildGraph(tape));
  const auto mark = tape.mark();
  return saveGraph(tape, {.marks = std::span(&mark, 1)});
}

// A graph put together by hand: two leaves 1 and 2, then what `records` writes.
struct Operation {
  detail::Kind kind;
  std::string name;
};
template <class Records>
FileContent written(const std::vector<Operation>& names, std::size_t nodes, std::size_t records,
                    const Records& write) {
  detail::ByteWriter w;
  w.raw(std::as_bytes(std::span(detail::GraphFile::magic)));
  w.fixed(std::uint32_t{1});
  w.fixed(std::uint32_t{0});
  w.fixed(std::uint64_t{0});
  w.fixed(std::uint64_t{nodes});
  w.fixed(std::uint64_t{records});
  w.fixed(std::uint64_t{0});
  w.raw(std::as_bytes(std::span("float64\0\0\0\0\0\0\0\0", 16)));
  for (std::size_t i = 0; i < 2 * nodes; ++i) w.number(static_cast<double>(i + 1));
  w.integer(names.size());
  for (const auto& [kind, name] : names) {
    w.byte(static_cast<std::uint8_t>(kind));
    w.text(name);
  }
  w.integer(0); // marks
  write(w);
  w.integer(0); // labels
  return sealed(w.bytes());
}

void checkRefused(const std::string& part, const FileContent& graph) {
  Tape<double> tape;
  tape.leaf(7.0);
  checkFails(ErrorKind::badData, part, [&] { loadGraph(tape, Bytes(graph)); });
  CHECK(tape.size() == 1);
}

} // namespace

TEST_CASE("a graph is stored as it always was") {
  const FileContent now = example();
  if (std::getenv("BURTORCH_GOLDEN") != nullptr) { // with the path of the file to store it in
    std::ofstream out(std::getenv("BURTORCH_GOLDEN"));
    out << "// cpp_tests/data/graph.inc — the bytes of a stored graph: see io_graph_test.cpp\n"
           "// SPDX-License-Identifier: MIT\n";
    for (std::size_t i = 0; i < now.size(); ++i)
      out << static_cast<unsigned>(now[i]) << (i % 16 == 15 || i + 1 == now.size() ? ",\n" : ", ");
  }
  CHECK(now == golden());
}

TEST_CASE("a graph that is loaded is the graph that was saved, whatever counts its nodes") {
  Tape<double> tape;
  const auto root = buildGraph(tape);
  backward(root);
  const auto saved = saveGraph(tape);
  Tape<double, std::uint8_t> narrow;
  Tape<double> same;
  const auto check = [&](auto& other) {
    const auto loaded = loadGraph(other, Bytes(saved));
    CHECK(loaded.first == 0);
    CHECK(loaded.count == tape.size());
    CHECK(std::ranges::equal(other.values(), std::as_const(tape).values()));
    CHECK(std::ranges::equal(std::as_const(other).grads(), std::as_const(tape).grads()));
    REQUIRE(other.records().size() == tape.records().size());
    for (std::size_t r = 0; r < tape.records().size(); ++r) {
      CHECK(other.records()[r].code() == tape.records()[r].code());
      CHECK(other.records()[r].result == tape.records()[r].result);
      std::vector<std::size_t> mine, its;
      tape.forEachOperand(tape.records()[r], [&](std::size_t i) { its.push_back(i); });
      other.forEachOperand(other.records()[r], [&](std::size_t i) { mine.push_back(i); });
      CHECK(mine == its);
    }
    CHECK(std::ranges::equal(other.constants(), tape.constants()));
    CHECK(other.label(0) == "a");
    CHECK(other.label(tape.size() - 1) == "Wurzel √");
    CHECK(saveGraph(other) == saved);
  };
  check(narrow);
  check(same);
}

TEST_CASE("a loaded graph has gradients of its own, beside what was on the tape") {
  Tape<double> tape;
  const auto root = buildGraph(tape);
  const auto saved = saveGraph(tape);
  backward(root);
  Tape<double> other;
  Value<double> x(other, 3.0);
  for (int i = 0; i < 2; ++i) {
    const auto loaded = loadGraph(other, Bytes(saved));
    CHECK(loaded.first == 1 + static_cast<std::size_t>(i) * tape.size());
    backward(Value<double>::at(other, loaded.first + loaded.count - 1));
    CHECK(std::ranges::equal(std::as_const(other).grads().subspan(loaded.first, 2),
                             std::as_const(tape).grads().first(2)));
  }
  CHECK(x.gradCopy() == 0.0);
  CHECK(other.label(1) == "a");
}

TEST_CASE("a stored recording can be run") {
  Tape<double> tape, loaded;
  const auto root = buildGraph(tape);
  loadGraph(loaded, Bytes(saveGraph(tape)));
  const auto at = [&](std::size_t node) { return Value<double>::at(loaded, node); };
  const Recording<double> f({at(0), at(1)}, at(loaded.size() - 1));
  auto workspace = f.workspace();
  Value<double>::at(tape, 0).setData(-2.5);
  Value<double>::at(tape, 1).setData(1.25);
  const Recording<double> g({Value<double>::at(tape, 0), Value<double>::at(tape, 1)}, root);
  auto other = g.workspace();
  std::array<double, 2> x{0.5, -1.5}, mine{}, its{};
  CHECK(f.valueAndGradient(workspace, x, mine) == g.valueAndGradient(other, x, its));
  CHECK(mine == its);
  CHECK(f.inputName(0) == "a");
}

TEST_CASE("graphs of other scalars, and numbers that are no ordinary ones") {
  const auto check = []<class T>(T, auto... numbers) {
    Tape<T> tape, other;
    for (const T& x : {T(numbers)...}) {
      Value<T> v(tape, x);
      v = v + T(1);
    }
    tape.grads()[0] = tape.values()[1];
    const auto saved = saveGraph(tape);
    CHECK(graphScalar(Bytes(saved)) == Stored<T>::name);
    loadGraph(other, Bytes(saved));
    CHECK(saveGraph(other) == saved);
  };
  check(float{}, 1.5f, -0.0f, std::nanf("7"), HUGE_VALF, 1e-44f);
  Tape<float> tape;
  const auto saved = saveGraph(tape);
  Tape<double> other;
  checkFails(ErrorKind::badData, "it holds float32, the tape float64",
             [&] { loadGraph(other, Bytes(saved)); });
}

TEST_CASE("an empty graph, only leaves, reductions of nothing") {
  Tape<double> empty, leaves, nothing;
  leaves.leaves(3);
  reduceSum(std::vector<Value<double>>{});
  const std::vector<Value<double>> none;
  TapeScope scope(nothing);
  Value<double> x(nothing, 2.0);
  reduceSum(none);
  innerProduct(none, none);
  innerProductWithBias(none, none, x);
  for (const auto* tape : {&empty, &leaves, &nothing}) {
    Tape<double> other;
    const auto saved = saveGraph(*tape);
    loadGraph(other, Bytes(saved));
    CHECK(other.size() == tape->size());
    CHECK(saveGraph(other) == saved);
  }
}

TEST_CASE("marks come back where they were") {
  Tape<double> tape;
  std::vector<Tape<double>::Mark> marks{tape.mark()};
  Value<double> x(tape, 1.0), y(tape, 2.0);
  marks.push_back(tape.mark());
  x *= y;
  tape.leaves(2);
  marks.push_back(tape.mark());
  tape.leaves(2);
  marks.push_back(tape.mark());
  const auto saved = saveGraph(tape, {.marks = marks});
  Tape<double> other;
  other.leaf(9.0);
  const auto loaded = loadGraph(other, Bytes(saved));
  REQUIRE(loaded.marks.size() == 4);
  for (std::size_t i : {3u, 2u, 1u, 0u}) {
    other.rewind(loaded.marks[i]);
    CHECK(other.size() == 1 + marks[i].nodes());
  }
  std::swap(marks[0], marks[2]);
  checkFails(ErrorKind::badArgument, "oldest first", [&] { saveGraph(tape, {.marks = marks}); });
}

TEST_CASE("no more marks than there are places for them") {
  Tape<double> tape;
  const std::vector<Tape<double>::Mark> marks(2, tape.mark());
  checkFails(ErrorKind::badArgument, "more marks than there are places",
             [&] { saveGraph(tape, {.marks = marks}); });
  FileContent graph = saveGraph(tape, {.marks = std::span(marks).first(1)});
  graph[detail::GraphFile::headBytes + 1] = std::byte{100};
  graph.insert(graph.end(), 99, std::byte{0});
  checkRefused("more marks than there are places", sealed(graph));
}

TEST_CASE("labels in files are UTF-8") {
  Tape<double> tape;
  Value<double> x(tape, 1.0);
  x.setLabel("a\xff");
  FileContent graph = saveGraph(tape);
  Tape<double> other;
  loadGraph(other, Bytes(graph));
  CHECK(other.label(0) == "a\xEF\xBF\xBD");
  graph.back() = std::byte{0xff};
  checkRefused("a label that is no UTF-8", sealed(graph));
}

TEST_CASE("graphs go through files") {
  const TemporaryFolder folder;
  Tape<double> tape;
  buildGraph(tape);
  saveGraph(tape, folder / "graph.btg");
  CHECK(readFile(folder / "graph.btg") == saveGraph(tape));
  Tape<double> other;
  CHECK(loadGraph(other, folder / "graph.btg").count == tape.size());
  checkFails(ErrorKind::file, "No such file", [&] { loadGraph(other, folder / "none"); });
  const FileContent graph = readGraph(folder / "graph.btg");
  for (const std::size_t size : {graph.size() - 1, graph.size() + 1, graph.size() + 5000}) {
    FileContent wrong = graph;
    wrong.resize(size);
    writeFile(folder / "graph.btg", Bytes(wrong));
    checkFails(ErrorKind::badData, "it should have",
               [&] { loadGraph(other, folder / "graph.btg"); });
    CHECK(readGraph(folder / "graph.btg").size() == std::min(size, graph.size() + 1));
  }
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 1);
}

TEST_CASE("a tape without room is left as it was") {
  Tape<double> tape;
  for (int i = 0; i < 20; ++i) buildGraph(tape);
  const auto saved = saveGraph(tape);
  Tape<double, std::uint8_t> narrow;
  checkFails(ErrorKind::capacity, "counts to 255", [&] { loadGraph(narrow, Bytes(saved)); });
  CHECK(narrow.size() == 0);
  alignas(64) std::byte buffer[4096];
  Tape<double> borrowed{std::span(buffer)};
  checkFails(ErrorKind::capacity, "borrowed memory", [&] { loadGraph(borrowed, Bytes(saved)); });
  CHECK(borrowed.size() == 0);
}

// ---- hostile input -------------------------------------------------------------------------------

TEST_CASE("the checksum is the one of zlib") {
  const std::string text = "123456789";
  CHECK(detail::crc32(std::as_bytes(std::span(text))) == 0xcbf43926u);
  CHECK(detail::crc32(std::as_bytes(std::span(text).subspan(4)),
                      detail::crc32(std::as_bytes(std::span(text).first(4)))) == 0xcbf43926u);
}

TEST_CASE("cut off at any byte, a graph is refused; sealed again, too") {
  const FileContent whole = example();
  Tape<double> tape;
  for (std::size_t n = 0; n < whole.size(); ++n) {
    const FileContent part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
    CHECK(!loadsOrRefuses(tape, part));
    CHECK(!loadsOrRefuses(tape, sealed(part)));
  }
  FileContent longer = whole;
  longer.push_back(std::byte{0});
  checkRefused("it should have", longer);
  checkRefused("1 bytes are left over", sealed(longer));
}

TEST_CASE("one bit changed anywhere, a graph is refused") {
  const FileContent whole = example();
  Tape<double> tape;
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    FileContent changed = whole;
    changed[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    CHECK(!loadsOrRefuses(tape, changed));
  }
}

TEST_CASE("bytes changed and sealed again are loaded or refused, never trusted") {
  Tape<double> tape;
  checkBytesChanged(example(), 16, 1,
                    [&](const FileContent& changed) { return loadsOrRefuses(tape, changed); });
}

TEST_CASE("files of other kinds") {
  FileContent graph = example();
  const auto with = [&](std::size_t at, std::uint8_t x) {
    FileContent changed = graph;
    changed[at] = std::byte{x};
    return changed;
  };
  checkRefused("does not begin as graphs do", with(0, 'x'));
  checkRefused("does not begin as graphs do", with(4, '\n')); // sent as text
  checkRefused("of version 2, known is 1", with(8, 2));
  FileContent turned = with(8, 0);
  turned[11] = std::byte{1};
  checkRefused("its bytes are in the wrong order", turned);
  checkRefused("only later versions", sealed(with(40, 1)));
  checkRefused("it holds bloat64", sealed(with(48, 'b')));
  checkRefused("does not begin as graphs do", {});
}

TEST_CASE("absurd counts take no memory") {
  const FileContent graph = example();
  for (const std::size_t at : {24u, 32u}) // nodes, records
    for (const std::byte x : {std::byte{0x7f}, std::byte{0xff}}) {
      FileContent changed = graph;
      for (std::size_t i = 2; i < 8; ++i) changed[at + i] = x;
      checkRefused("can't be in it", sealed(changed));
    }
  using detail::Kind, detail::kindOf;
  const auto many = std::uint64_t{1} << 60;
  const auto with = [&](Kind kind, const char* name, std::uint64_t count) {
    return written({{kind, name}}, 3, 1, [&](detail::ByteWriter& w) {
      w.integer(2);
      w.integer(0);
      w.integer(count);
      w.integer(1);
    });
  };
  checkRefused("a sequence of 1152921504606846976", with(kindOf(Layout::list), "reduceSum", many));
  checkRefused("a sequence of", with(kindOf(Layout::run), "reduceSum", 3));
  checkRefused("a sequence of", with(kindOf(Layout::lists), "innerProduct", many));
  checkRefused("an integer of more than 64 bits", written({}, 1, 1, [](detail::ByteWriter& w) {
                 for (int i = 0; i < 9; ++i) w.byte(0xff);
                 w.byte(0x02);
               }));
}

TEST_CASE("operands that are not older than their result") {
  using detail::Kind, detail::kindOf;
  const auto unary = [](std::uint64_t distance) {
    return written({{kindOf(Layout::node), "tanh"}}, 3, 1, [&](detail::ByteWriter& w) {
      for (const std::uint64_t x : {std::uint64_t{2}, std::uint64_t{0}, distance}) w.integer(x);
    });
  };
  Tape<double> tape;
  CHECK(loadsOrRefuses(tape, unary(1)));
  CHECK(loadsOrRefuses(tape, unary(2)));
  for (const std::uint64_t wrong : {std::uint64_t{0}, std::uint64_t{3}, ~std::uint64_t{0}})
    checkRefused("an operand that is not older than its result", unary(wrong));
  checkRefused("not older", written({{kindOf(Layout::run), "reduceSum"}}, 3, 1, [](auto& w) {
                 for (const unsigned x : {2u, 0u, 2u, 1u}) w.integer(x); // nodes 1 and 2, itself
               }));
  checkRefused("the extremum of no operands",
               written({{kindOf(Layout::list), "reduceMax"}}, 3, 1, [](auto& w) {
                 for (const unsigned x : {2u, 0u, 0u}) w.integer(x);
               }));
  checkRefused("more nodes than there are",
               written({{kindOf(Layout::node), "tanh"}}, 3, 1, [](auto& w) {
                 for (const unsigned x : {3u, 0u, 1u}) w.integer(x);
               }));
  checkRefused("not listed", written({{kindOf(Layout::node), "tanh"}}, 3, 1, [](auto& w) {
                 for (const unsigned x : {2u, 1u, 1u}) w.integer(x);
               }));
}

TEST_CASE("operations that are not known") {
  using detail::Kind, detail::kindOf;
  const auto named = [](Kind kind, const char* name) {
    return written({{kind, name}}, 2, 0, [](detail::ByteWriter&) {});
  };
  Tape<double> tape;
  CHECK(loadsOrRefuses(tape, named(kindOf(Layout::node), "tanh")));
  checkRefused("there is no such operation: 'quartic' of kind 1",
               named(kindOf(Layout::node), "quartic"));
  checkRefused("no such operation: 'tanh' of kind 3", named(kindOf(Layout::nodes), "tanh"));
  checkRefused("no such operation: 'add' of kind 6", named(kindOf(Layout::run), "add"));
  checkRefused("no such operation: '?' of kind 0", named(Kind{0}, "\n"));
  checkRefused("no such block, or it is not among those given to loadGraph: 'affine' of kind 10",
               named(Kind::block, "affine"));
  checkRefused("no such block", named(Kind{255}, "affine"));
}
